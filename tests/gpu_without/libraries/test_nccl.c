/* agent/comm: what is asked of CUDA and NCCL, in which order, against recorded calls
 * (tests/gpu_without/libraries/recorder.h). The recorder stands for the two libraries at that
 * border alone: that they do what they are asked is not shown here. */
#include "agent/comm/device.h"
#include "agent/comm/nccl.h"
#include "agent/comm/staged.h"
#include "base/net/link.h"
#include "tests/gpu_without/libraries/recorder.h"
#include "tests/unit/unit.h"

#include <sys/wait.h>
#include <unistd.h>

static hpct_comm *open_ranks(int size, int rank)
{
    hpct_comm *comm = NULL;
    hpct_nccl_options options = {
        .calls = &recorder_calls, .rank = rank, .size = size, .id = {7}, .seconds = 1};
    assert_int_equal(hpct_comm_nccl_open(&comm, &options), HPCT_OK);
    assert_string_equal(comm->ops->name, "nccl");
    return comm;
}

static hpct_comm *begin(int size, int rank)
{
    recorder_reset(size);
    return open_ranks(size, rank);
}

static float *on_device(size_t floats)
{
    void *memory = NULL;
    assert_int_equal(recorder_calls.allocate(&memory, floats * sizeof(float)), HPCT_DEVICE_OK);
    for (size_t i = 0; i < floats; i++)
        ((float *) memory)[i] = (float) (i % 100 + 1);
    return memory;
}

static hpct_comm_reduction *prepared(hpct_comm *comm, const hpct_comm_reduction_options *options)
{
    hpct_comm_reduction *r = NULL;
    assert_int_equal(comm->ops->prepare(comm, &r, options), HPCT_OK);
    return r;
}

static void run(hpct_comm *comm, hpct_comm_reduction *r)
{
    assert_int_equal(comm->ops->start(r), HPCT_OK);
    assert_int_equal(comm->ops->wait(r), HPCT_OK);
}

static void assert_takes(const char *calls)
{
    assert_string_equal(recorder_take(), calls);
}

static hpct_comm_stream *stream_of(hpct_comm *comm, int peer, int buffers, bool receives)
{
    hpct_comm_stream *stream = NULL;
    const hpct_comm_stream_options options = {
        .peer = peer, .floats = 10, .buffers = buffers, .receives = receives};
    assert_int_equal(comm->ops->open_stream(comm, &stream, &options), HPCT_OK);
    return stream;
}

/* Everything that was made is given back. */
static void close_all(hpct_comm *comm, float *data)
{
    recorder.busy = recorder.events_busy = 0;
    comm->ops->close(comm);
    if (data != NULL)
        recorder_calls.release(data);
    assert_int_equal(recorder_live(), 0);
}

/* ---- opening and leaving ---- */

TEST(opening_waits_for_the_others)
{
    recorder_reset(4);
    recorder.busy = 3;
    hpct_comm *comm = open_ranks(4, 2);
    assert_takes("init n1 size 4 rank 2 id 7\n");
    assert_int_equal(comm->rank, 2);
    assert_int_equal(comm->size, 4);
    comm->ops->close(comm);
    assert_takes("finalize n1\ndestroy n1\n");
    assert_int_equal(recorder_live(), 0);
}

TEST(who_does_not_come_is_given_up)
{
    hpct_comm *comm = NULL;
    hpct_nccl_options options = {
        .calls = &recorder_calls, .rank = 0, .size = 3, .id = {7}, .seconds = 1};
    recorder_reset(3);
    recorder.never = true;
    int64_t began = hpct_now_ms();
    assert_int_equal(hpct_comm_nccl_open(&comm, &options), HPCT_ERR_PEER);
    assert_within(hpct_now_ms() - began, 900, 3000);
    assert_non_null(strstr(hpct_last_error(), "the other 2 ranks did not all come within 1 s"));
    assert_int_equal(recorder_aborts(), 1);
}

TEST(a_lost_peer_fails_the_opening)
{
    hpct_comm *comm = NULL;
    hpct_nccl_options options = {
        .calls = &recorder_calls, .rank = 1, .size = 2, .id = {7}, .seconds = 1};
    recorder_reset(2);
    recorder.busy = 1;
    recorder.lost = true;
    assert_int_equal(hpct_comm_nccl_open(&comm, &options), HPCT_ERR_PEER);
    assert_non_null(strstr(hpct_last_error(), "the library's words"));
    assert_int_equal(recorder_aborts(), 1);
}

/* ---- reductions ---- */

TEST(a_reduction_lies_between_events)
{
    hpct_comm *comm = begin(2, 0);
    float *data = on_device(19);
    hpct_comm_reduction *r =
        prepared(comm, &(hpct_comm_reduction_options){.data = data, .count = 16, .exact = 3});
    recorder_take();
    recorder.busy = 2;
    recorder.events_busy = 2;
    assert_true(comm->ops->is_done(r));
    assert_int_equal(comm->ops->start(r), HPCT_OK);
    /* behind the gradient's kernels; the end is noted once NCCL has put its own in the stream */
    assert_takes("record e3 C\nwait S1 e3\nallreduce fp32 19 m2 n1 S1\n");
    assert_false(comm->ops->is_done(r));
    assert_int_equal(comm->ops->progress(comm), HPCT_OK);
    assert_takes("");
    while (strcmp(recorder_take(), "record e4 S1\n") != 0)
        assert_int_equal(comm->ops->progress(comm), HPCT_OK);
    assert_false(comm->ops->is_done(r));
    assert_int_equal(comm->ops->wait(r), HPCT_OK);
    assert_takes("wait C e4\n"); /* the host does not wait */
    assert_true(comm->ops->is_done(r));
    comm->ops->release(r);
    close_all(comm, data);
}

/* What a recording has of a reduction is in it before what comes behind, and nobody asks an event
 * of it whether it is over. */
TEST(a_recorded_reduction_is_whole_at_once)
{
    hpct_comm *comm = begin(2, 0);
    float *data = on_device(16);
    hpct_comm_reduction *r = prepared(
        comm, &(hpct_comm_reduction_options){.data = data, .count = 16, .wire = HPCT_WIRE_BF16});
    assert_true(comm->records);
    recorder_take();
    recorder.busy = 5;
    recorder.events_busy = 1000;
    recorder.records = true;
    assert_int_equal(comm->ops->start(r), HPCT_OK);
    assert_takes("record e3 C\nwait S1 e3\nencode bf16 16 m2 m3 S1\ngroup\n"
                 "allreduce bf16 16 m3 n1 S1\nend\n"
                 "decode bf16 16 m3 m2 S1\nrecord e4 S1\n");
    assert_int_equal(comm->ops->wait(r), HPCT_OK);
    assert_takes("wait C e4\n");
    assert_true(comm->ops->is_done(r));
    recorder.records = false;
    comm->ops->release(r);
    close_all(comm, data);
}

TEST(buckets_go_in_the_order_of_starts)
{
    hpct_comm *comm = begin(2, 1);
    float *data = on_device(64);
    hpct_comm_reduction *r[3];
    for (int i = 0; i < 3; i++)
        r[i] = prepared(comm, &(hpct_comm_reduction_options){.data = data + 16 * i, .count = 16});
    recorder_take();
    recorder.busy = 4;
    for (int i = 0; i < 3; i++)
        assert_int_equal(comm->ops->start(r[i]), HPCT_OK);
    /* each behind the gradients that were there when it started; none before the one before */
    assert_takes("record e3 C\nwait S1 e3\nallreduce fp32 16 m2 n1 S1\n"
                 "record e5 C\nrecord e7 C\n");
    assert_int_equal(comm->ops->wait(r[2]), HPCT_OK);
    assert_takes("record e4 S1\nwait S1 e5\nallreduce fp32 16 m2+64 n1 S1\n"
                 "record e6 S1\nwait S1 e7\nallreduce fp32 16 m2+128 n1 S1\n"
                 "record e8 S1\nwait C e8\n");
    for (int i = 0; i < 2; i++)
        assert_int_equal(comm->ops->wait(r[i]), HPCT_OK);
    assert_takes("wait C e4\nwait C e6\n");
    for (int i = 0; i < 3; i++)
        comm->ops->release(r[i]);
    close_all(comm, data);
}

TEST(sixteen_bits_but_for_exact_numbers)
{
    const hpct_wire wires[] = {HPCT_WIRE_BF16, HPCT_WIRE_FP16};
    const char *const names[] = {"bf16", "fp16"};
    for (int i = 0; i < 2; i++) {
        char expected[512];
        hpct_comm *comm = begin(2, 0);
        float *data = on_device(36);
        hpct_comm_reduction *r =
            prepared(comm, &(hpct_comm_reduction_options){
                               .data = data, .count = 32, .exact = 4, .wire = wires[i]});
        recorder_take();
        recorder.busy = 2;
        run(comm, r);
        snprintf(expected, sizeof expected,
                 "record e3 C\nwait S1 e3\nencode %s 32 m2 m3 S1\ngroup\n"
                 "allreduce %s 32 m3 n1 S1\nallreduce fp32 4 m2+128 n1 S1\nend\n"
                 "decode %s 32 m3 m2 S1\nrecord e4 S1\nwait C e4\n",
                 names[i], names[i], names[i]);
        assert_takes(expected);
        comm->ops->release(r);
        close_all(comm, data);
    }
}

TEST(sums_alone_and_nothing_at_all)
{
    hpct_comm *comm = begin(2, 0);
    float *data = on_device(4);
    hpct_comm_reduction *sums = prepared(
        comm, &(hpct_comm_reduction_options){.data = data, .exact = 4, .wire = HPCT_WIRE_BF16});
    hpct_comm_reduction *none = prepared(comm, &(hpct_comm_reduction_options){.data = data});
    recorder_take();
    assert_int_equal(comm->ops->start(sums), HPCT_OK);
    assert_int_equal(comm->ops->start(none), HPCT_OK);
    assert_int_equal(comm->ops->wait(sums), HPCT_OK);
    assert_int_equal(comm->ops->wait(none), HPCT_OK);
    assert_takes("record e3 C\nwait S1 e3\ngroup\nallreduce fp32 4 m2 n1 S1\nend\n"
                 "record e4 S1\nrecord e5 C\nwait S1 e5\nrecord e6 S1\n"
                 "wait C e4\nwait C e6\n");
    comm->ops->release(sums);
    comm->ops->release(none);
    close_all(comm, data);
}

/* Five ranks on two nodes: the first two of each own a half. */
TEST(nodes_add_up_first)
{
    const int groups[] = {3, 3, 3, 8, 8};
    static const char *const expected[] = {
        /* rank 0 */
        "record e3 C\nwait S1 e3\ngroup\nreduce fp32 16 m2 to 0 n2 S1\n"
        "reduce fp32 8 m2+64 to 1 n2 S1\nreduce fp32 2 m2+96 to 0 n2 S1\nend\n"
        "encode bf16 16 m2 m3 S1\ngroup\nallreduce bf16 16 m3 n3 S1\n"
        "allreduce fp32 2 m2+96 n3 S1\nend\ndecode bf16 16 m3 m2 S1\n"
        "group\nbroadcast fp32 16 m2 from 0 n2 S1\nbroadcast fp32 8 m2+64 from 1 n2 S1\n"
        "broadcast fp32 2 m2+96 from 0 n2 S1\nend\nrecord e4 S1\nwait C e4\n",
        /* rank 2, which owns nothing */
        "record e3 C\nwait S1 e3\ngroup\nreduce fp32 16 m2 to 0 n2 S1\n"
        "reduce fp32 8 m2+64 to 1 n2 S1\nreduce fp32 2 m2+96 to 0 n2 S1\nend\n"
        "group\nbroadcast fp32 16 m2 from 0 n2 S1\nbroadcast fp32 8 m2+64 from 1 n2 S1\n"
        "broadcast fp32 2 m2+96 from 0 n2 S1\nend\nrecord e4 S1\nwait C e4\n",
    };
    for (int i = 0; i < 2; i++) {
        hpct_comm *comm = begin(5, 2 * i);
        float *data = on_device(26);
        hpct_comm_reduction_options options = {
            .data = data, .count = 24, .exact = 2, .wire = HPCT_WIRE_BF16, .groups = groups};
        recorder_take();
        recorder.busy = 1;
        hpct_comm_reduction *r = prepared(comm, &options);
        assert_takes(i == 0 ? "record e2 S1\nsplit n1 color 0 key 0\nsplit n1 color 0 key 0\n"
                            : "record e2 S1\nsplit n1 color 0 key 2\nsplit n1 color -1 key 2\n");
        run(comm, r);
        assert_takes(expected[i]);
        /* the same nodes again: no new communicators; in fp32 NCCL finds the nodes itself */
        hpct_comm_reduction *again = prepared(comm, &options);
        options.wire = HPCT_WIRE_FP32;
        hpct_comm_reduction *plain = prepared(comm, &options);
        assert_takes("");
        run(comm, plain);
        assert_non_null(strstr(recorder_take(), "allreduce fp32 26 m2 n1 S1\n"));
        comm->ops->release(plain);
        comm->ops->release(again);
        comm->ops->release(r);
        close_all(comm, data);
    }
}

TEST(too_little_memory_is_said)
{
    hpct_comm *comm = begin(2, 0);
    float *data = on_device(64);
    hpct_comm_reduction *r = NULL;
    recorder.memory = 100;
    assert_int_equal(comm->ops->prepare(comm, &r,
                                        &(hpct_comm_reduction_options){
                                            .data = data, .count = 64, .wire = HPCT_WIRE_BF16}),
                     HPCT_ERR_INTERNAL);
    assert_non_null(strstr(hpct_last_error(), "out of memory on the GPU"));
    close_all(comm, data);
}

/* ---- data in host memory ---- */

TEST(host_data_goes_through_the_device)
{
    const size_t count = (5 << 20) / sizeof(float); /* more than fits at once */
    hpct_comm *comm = begin(3, 1);
    float *data = malloc(count * sizeof *data);
    for (size_t i = 0; i < count; i++)
        data[i] = (float) (i % 1000);
    recorder_take();
    recorder.busy = 1;
    recorder.events_busy = 3;
    assert_int_equal(comm->ops->allreduce_sum(comm, data, count), HPCT_OK);
    for (size_t i = 0; i < count; i++)
        assert_true(data[i] == 3 * (float) (i % 1000));
    assert_takes("record e1 C\nwait S1 e1\ncopy m1 h1 4194304 S1\n"
                 "allreduce fp32 1048576 m1 n1 S1\ncopy h1 m1 4194304 S1\nrecord e2 S1\n"
                 "record e1 C\nwait S1 e1\ncopy m1 h1 1048576 S1\n"
                 "allreduce fp32 262144 m1 n1 S1\ncopy h1 m1 1048576 S1\nrecord e2 S1\n");
    free(data);

    char mine[5] = "abcd", all[15] = "";
    assert_int_equal(comm->ops->allgather(comm, mine, all, sizeof mine), HPCT_OK);
    assert_memory_equal(all, "abcd\0abcd\0abcd\0", sizeof all);
    assert_int_equal(comm->ops->broadcast(comm, mine, sizeof mine, 2), HPCT_OK);
    assert_memory_equal(mine, "abcd", sizeof mine);
    assert_takes("record e1 C\nwait S1 e1\ncopy m1 h1 5 S1\n"
                 "allgather bytes 5 m1 m1+5 n1 S1\ncopy h1+5 m1+5 15 S1\nrecord e2 S1\n"
                 "record e1 C\nwait S1 e1\ncopy m1 h1 5 S1\n"
                 "broadcast bytes 5 m1 from 2 n1 S1\ncopy h1 m1 5 S1\nrecord e2 S1\n");
    close_all(comm, NULL);
}

TEST(device_data_stays_there)
{
    hpct_comm *comm = begin(2, 1);
    float *data = on_device(24);
    recorder_take();
    assert_int_equal(comm->ops->allreduce_sum(comm, data, 24), HPCT_OK);
    assert_int_equal(comm->ops->broadcast(comm, data, 96, 0), HPCT_OK);
    assert_int_equal(comm->ops->allgather(comm, data, data + 8, 32), HPCT_OK);
    assert_takes("record e1 C\nwait S1 e1\nallreduce fp32 24 m2 n1 S1\nrecord e2 S1\n"
                 "wait C e2\nrecord e1 C\nwait S1 e1\n"
                 "broadcast bytes 96 m2 from 0 n1 S1\nrecord e2 S1\nwait C e2\n"
                 "record e1 C\nwait S1 e1\nallgather bytes 32 m2 m2+32 n1 S1\n"
                 "record e2 S1\nwait C e2\n");
    assert_int_equal(comm->ops->allgather(comm, &(int){1}, data, 4), HPCT_ERR_INTERNAL);
    close_all(comm, data);
}

TEST(reductions_of_host_data_come_back)
{
    float data[12];
    hpct_comm *comm = begin(2, 0);
    hpct_comm_reduction *r =
        prepared(comm, &(hpct_comm_reduction_options){.data = data, .count = 8, .exact = 4});
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 12; i++)
            data[i] = (float) (i + round);
        recorder.busy = 1;
        recorder.events_busy = 2;
        assert_int_equal(comm->ops->start(r), HPCT_OK);
        if (round == 0)
            assert_int_equal(comm->ops->wait(r), HPCT_OK);
        else
            while (!comm->ops->is_done(r))
                assert_int_equal(comm->ops->progress(comm), HPCT_OK);
        for (int i = 0; i < 12; i++)
            assert_true(data[i] == 2 * (float) (i + round));
    }
    comm->ops->release(r);
    close_all(comm, NULL);
}

/* ---- streams, split ---- */

TEST(each_direction_has_a_stream)
{
    hpct_comm *comm = begin(3, 1);
    float *got, *sent;
    recorder_take();
    recorder.busy = 1;
    hpct_comm_stream *in = stream_of(comm, 0, 2, true), *out = stream_of(comm, 2, 2, false),
                     *back = stream_of(comm, 0, 1, false);
    /* neighbours are connected before anything waits for a message */
    assert_takes(
        "record e2 S1\nsplit n1 color 0 key 1\nsplit n1 color 0 key 1\n"
        "record e3 C\nwait S2 e3\nreceive fp32 1 m1 from 0 n2 S2\nsend fp32 1 m1+4 to 2 n2 S2\n"
        "record e4 S2\n"
        "record e5 C\nwait S3 e5\nreceive fp32 1 m1 from 2 n3 S3\nsend fp32 1 m1+4 to 0 n3 S3\n"
        "record e6 S3\n");
    assert_int_equal(comm->ops->next(in, &got), HPCT_OK);
    assert_int_equal(comm->ops->next(out, &sent), HPCT_OK);
    assert_true(recorder_calls.is_device(got) && recorder_calls.is_device(sent));
    assert_int_equal(comm->ops->pass(in, 0), HPCT_OK);
    assert_int_equal(comm->ops->pass(out, 7), HPCT_OK);
    assert_int_equal(comm->ops->drain(out), HPCT_OK);
    assert_takes("record e7 C\nwait S2 e7\nreceive fp32 10 m2 from 0 n2 S2\nrecord e8 S2\n"
                 "wait C e8\nrecord e11 C\nwait S2 e11\nsend fp32 10 m3 to 2 n2 S2\n"
                 "record e12 S2\n");
    assert_int_equal(comm->ops->next(back, &sent), HPCT_OK);
    assert_int_equal(comm->ops->pass(back, 10), HPCT_OK);
    assert_int_equal(comm->ops->push(back), HPCT_OK);
    /* one buffer: the next message is written behind the one before */
    assert_int_equal(comm->ops->next(back, &sent), HPCT_OK);
    assert_takes("record e15 C\nwait S3 e15\nsend fp32 10 m4 to 0 n3 S3\n"
                 "record e16 S3\nwait C e16\n");
    assert_int_equal(comm->ops->pass(back, 11), HPCT_ERR_INTERNAL);
    comm->ops->close_stream(in);
    comm->ops->close_stream(out);
    comm->ops->close_stream(back);
    close_all(comm, NULL);
}

/* NCCL does not allow them to issue at once on one device; sums let messages go first. */
TEST(communicators_take_turns)
{
    hpct_comm *comm = begin(3, 1);
    float *data = on_device(8), *sent;
    hpct_comm_stream *up = stream_of(comm, 2, 1, false), *down = stream_of(comm, 0, 1, false);
    hpct_comm_reduction *sum =
        prepared(comm, &(hpct_comm_reduction_options){.data = data, .count = 8});
    assert_int_equal(comm->ops->next(up, &sent), HPCT_OK);
    assert_int_equal(comm->ops->next(down, &sent), HPCT_OK);
    recorder_take();
    recorder.busy = 5;
    assert_int_equal(comm->ops->pass(up, 10), HPCT_OK);
    assert_int_equal(comm->ops->start(sum), HPCT_OK);
    assert_int_equal(comm->ops->pass(down, 10), HPCT_OK);
    assert_takes("record e7 C\nwait S2 e7\nsend fp32 10 m3 to 2 n2 S2\n"
                 "record e11 C\nrecord e9 C\n");
    assert_int_equal(comm->ops->wait(sum), HPCT_OK);
    assert_takes("record e8 S2\nwait S3 e9\nsend fp32 10 m4 to 0 n3 S3\nrecord e10 S3\n"
                 "wait S1 e11\nallreduce fp32 8 m2 n1 S1\nrecord e12 S1\nwait C e12\n");
    assert_int_equal(comm->ops->next(up, &sent), HPCT_OK);
    assert_int_equal(comm->ops->next(down, &sent), HPCT_OK);
    assert_int_equal(comm->ops->pass(down, 10), HPCT_OK);
    assert_int_equal(comm->ops->pass(up, 10), HPCT_OK); /* not yet */
    assert_int_equal(comm->ops->start(sum), HPCT_OK);
    recorder_take();
    assert_int_equal(comm->ops->wait(sum), HPCT_OK);
    assert_takes("record e10 S3\nwait S2 e7\nsend fp32 10 m3 to 2 n2 S2\nrecord e8 S2\n"
                 "wait S1 e11\nallreduce fp32 8 m2 n1 S1\nrecord e12 S1\nwait C e12\n");
    comm->ops->release(sum);
    comm->ops->close_stream(up);
    comm->ops->close_stream(down);
    close_all(comm, data);
}

TEST(parts_share_the_lane_of_the_whole)
{
    hpct_comm *comm = begin(4, 3), *part = NULL;
    float *data = on_device(8);
    recorder_take();
    recorder.busy = 2;
    assert_int_equal(comm->ops->split(comm, &part, 5), HPCT_OK);
    assert_non_null(strstr(recorder_take(), "split n1 color 5 key 3\n"));
    assert_int_equal(part->size, 4); /* the recorder's others all have this rank's color */
    assert_int_equal(part->rank, 3);
    hpct_comm_reduction *whole =
        prepared(comm, &(hpct_comm_reduction_options){.data = data, .count = 8});
    recorder_take();
    assert_int_equal(comm->ops->start(whole), HPCT_OK);
    assert_int_equal(part->ops->allreduce_sum(part, data, 8), HPCT_OK);
    assert_takes("record e5 C\nwait S1 e5\nallreduce fp32 8 m2 n1 S1\nrecord e3 C\n"
                 "record e6 S1\nwait S1 e3\nallreduce fp32 8 m2 n2 S1\nrecord e4 S1\n"
                 "wait C e4\n");
    comm->ops->release(whole);
    part->ops->close(part);
    close_all(comm, data);
}

/* ---- the end by force ---- */

TEST(the_watch_hears_of_failures)
{
    hpct_comm *comm = NULL;
    hpct_nccl_options options = {
        .calls = &recorder_calls, .size = 2, .id = {7}, .seconds = 1, .grace_seconds = 1};
    recorder_reset(2);
    assert_int_equal(hpct_comm_nccl_open(&comm, &options), HPCT_OK);
    assert_int_equal(hpct_comm_nccl_check(), HPCT_OK);
    recorder.lost = true;
    assert_int_equal(hpct_comm_nccl_check(), HPCT_OK); /* the watch may know which peer */
    int64_t began = hpct_now_ms();
    while (hpct_comm_nccl_check() == HPCT_OK && hpct_now_ms() - began < 5000)
        usleep(10000);
    assert_int_equal(hpct_comm_nccl_check(), HPCT_ERR_PEER);
    assert_within(hpct_now_ms() - began, 900, 3000);
    hpct_comm_nccl_abort_all(1000);
    assert_int_equal(recorder_aborts(), 1);
    assert_int_equal(hpct_comm_nccl_check(), HPCT_OK); /* none is left */
    recorder.lost = false;
    recorder_take();
    float number = 1;
    assert_int_equal(comm->ops->allreduce_sum(comm, &number, 1), HPCT_ERR_PEER);
    assert_non_null(
        strstr(hpct_last_error(), "the reductions of this process's GPUs were aborted"));
    assert_null(strstr(recorder_take(), "allreduce")); /* NCCL is not asked again */
    comm->ops->abandon(comm);
    assert_int_equal(recorder_aborts(), 1); /* not twice */
}

TEST(an_abort_that_hangs_is_left_behind)
{
    hpct_comm *comm = begin(2, 0);
    recorder.abort_hangs = true;
    int64_t began = hpct_now_ms();
    hpct_comm_nccl_abort_all(300);
    assert_within(hpct_now_ms() - began, 250, 2000);
    comm->ops->abandon(comm);
    sleep(6); /* it must not find its handle gone */
    assert_int_equal(recorder_aborts(), 1);
}

TEST(a_failure_in_a_step_ends_it)
{
    hpct_comm *comm = begin(2, 0);
    float *data = on_device(8);
    hpct_comm_reduction *r =
        prepared(comm, &(hpct_comm_reduction_options){.data = data, .count = 8});
    recorder.busy = 1;
    assert_int_equal(comm->ops->start(r), HPCT_OK);
    recorder.lost = true;
    assert_int_equal(comm->ops->wait(r), HPCT_ERR_PEER);
    assert_non_null(strstr(hpct_last_error(), "rank 0: a reduction failed"));
    comm->ops->release(r);
    comm->ops->abandon(comm);
    assert_int_equal(recorder_aborts(), 1);
    /* the same while the host waits for what lies in the stream */
    comm = begin(2, 0);
    recorder.events_busy = 1 << 30;
    float on_host = 1;
    recorder_take();
    pid_t child = fork();
    if (child == 0) {
        recorder.lost = false;
        recorder.never = false;
        alarm(20);
        hpct_comm_reduction *host =
            prepared(comm, &(hpct_comm_reduction_options){.data = &on_host, .count = 1});
        assert_int_equal(comm->ops->start(host), HPCT_OK);
        recorder.lost = true;
        _exit(comm->ops->wait(host) == HPCT_ERR_PEER ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    recorder.events_busy = 0;
    close_all(comm, NULL);
}

/* ---- staging over another communicator ---- */

TEST(staging_copies_out_and_back)
{
    hpct_comm *under = NULL, *comm = NULL;
    recorder_reset(1);
    assert_int_equal(hpct_comm_self_open(&under), HPCT_OK);
    assert_int_equal(hpct_comm_staged_open(&comm, under, &recorder_calls), HPCT_OK);
    float *data = on_device(20), on_host[4] = {1, 2, 3, 4};
    hpct_comm_reduction *r =
        prepared(comm, &(hpct_comm_reduction_options){.data = data, .count = 16, .exact = 4});
    hpct_comm_reduction *host =
        prepared(comm, &(hpct_comm_reduction_options){.data = on_host, .count = 4});
    recorder_take();
    recorder.events_busy = 2;
    assert_int_equal(comm->ops->start(host), HPCT_OK);
    assert_true(comm->ops->is_done(host));
    assert_takes("");
    assert_int_equal(comm->ops->start(r), HPCT_OK);
    assert_takes("record e2 C\nwait S1 e2\ncopy h2 m1 80 S1\nrecord e3 S1\n");
    assert_int_equal(comm->ops->progress(comm), HPCT_OK); /* not before the copy is there */
    assert_takes("");
    assert_false(comm->ops->is_done(r));
    assert_int_equal(comm->ops->wait(r), HPCT_OK);
    assert_takes("copy m1 h2 80 S1\nrecord e4 S1\nwait C e4\n");
    assert_true(comm->ops->is_done(r));
    assert_int_equal(comm->ops->allreduce_sum(comm, data, 20), HPCT_OK);
    assert_takes("copy h1 m1 80 C\nrecord e1 C\ncopy m1 h1 80 C\nrecord e1 C\n");
    assert_int_equal(comm->ops->allreduce_sum(comm, on_host, 4), HPCT_OK);
    assert_int_equal(comm->ops->broadcast(comm, on_host, 16, 0), HPCT_OK);
    assert_takes("");
    float *gathered = on_device(20);
    assert_int_equal(comm->ops->allgather(comm, data, gathered, 80), HPCT_OK);
    assert_memory_equal(gathered, data, 80);
    recorder_calls.release(gathered);
    comm->ops->release(host);
    comm->ops->release(r);
    close_all(comm, data);
}
