/* agent/ps: who owns what, what is given out, and what is accepted from the network. */
#include "agent/ps/channel.h"
#include "agent/ps/message.h"
#include "agent/ps/partition.h"
#include "agent/ps/schedule.h"
#include "base/net/link.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <sys/socket.h>

/* ---- who owns what ---- */

/* Between parameters of these sizes, ended by 0. */
static size_t cut_between(const void *of, size_t at)
{
    size_t cut = 0;
    for (const size_t *size = of; *size != 0 && cut + *size <= at; size++)
        cut += *size;
    return cut;
}

static size_t cut_anywhere(const void *of, size_t at)
{
    (void) of;
    return at / 16 * 16;
}

static size_t largest(const size_t *bounds, int servers)
{
    size_t most = 0;
    for (int s = 0; s < servers; s++) {
        assert_true(bounds[s] <= bounds[s + 1]);
        most = bounds[s + 1] - bounds[s] > most ? bounds[s + 1] - bounds[s] : most;
    }
    return most;
}

TEST(parts_are_equal_where_all_may_be_cut)
{
    for (int servers = 1; servers <= 9; servers++) {
        size_t bounds[10], total = 16 * 1000;
        hpct_ps_partition(bounds, servers, total, cut_anywhere, NULL);
        assert_int_equal(bounds[0], 0);
        assert_int_equal(bounds[servers], total);
        size_t share = (total / 16 + (size_t) servers - 1) / (size_t) servers * 16;
        assert_int_equal(largest(bounds, servers), share);
    }
}

/* Every way to cut so many parameters, tried. */
static size_t best_of_all(const size_t *sizes, int count, int servers)
{
    size_t best = SIZE_MAX;
    for (unsigned cuts = 0; cuts < 1u << (count - 1); cuts++) {
        size_t most = 0, part = 0;
        if (__builtin_popcount(cuts) > servers - 1)
            continue;
        for (int i = 0; i < count; i++) {
            part += sizes[i];
            most = part > most ? part : most;
            part = cuts >> i & 1 ? 0 : part;
        }
        best = most < best ? most : best;
    }
    return best;
}

TEST(no_cut_between_parameters_is_better)
{
    const size_t cases[][9] = {
        {7, 2, 5, 10, 8}, {1, 1, 1, 1, 100, 1, 1, 1}, {3}, {100, 1, 1, 1, 1, 90}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        int count = 0;
        size_t total = 0;
        for (; cases[c][count] != 0; count++)
            total += cases[c][count];
        for (int servers = 1; servers <= 5; servers++) {
            size_t bounds[6];
            hpct_ps_partition(bounds, servers, total, cut_between, cases[c]);
            assert_int_equal(bounds[servers], total);
            for (int s = 0; s <= servers; s++)
                assert_int_equal(cut_between(cases[c], bounds[s]), bounds[s]);
            assert_int_equal(largest(bounds, servers), best_of_all(cases[c], count, servers));
        }
    }
}

TEST(empty_arena_is_partitioned)
{
    size_t bounds[4];
    hpct_ps_partition(bounds, 3, 0, cut_anywhere, NULL);
    assert_int_equal(bounds[3], 0);
}

/* ---- what is given out ---- */

static hpct_ps_schedule *schedule_of(hpct_ps_schedule_options options)
{
    hpct_ps_schedule *schedule;
    assert_int_equal(hpct_ps_schedule_new(&schedule, &options), HPCT_OK);
    return schedule;
}

static hpct_ps_schedule_options synchronous(int workers, int backups)
{
    return (hpct_ps_schedule_options){.workers = workers,
                                      .synchronous = true,
                                      .slices = workers - backups,
                                      .backups = backups,
                                      .max_staleness = -1,
                                      .epochs = 2,
                                      .steps_per_epoch = 2,
                                      .max_steps = 4,
                                      .full_batch = 8,
                                      .last_batch = 1};
}

static bool done(hpct_ps_schedule *schedule, int worker)
{
    hpct_ps_item item;
    return hpct_ps_schedule_done(schedule, worker, &item);
}

TEST(a_step_waits_for_all_of_its_slices)
{
    hpct_ps_schedule *s = schedule_of(synchronous(2, 0));
    hpct_ps_item a = hpct_ps_schedule_next(s, 0), b = hpct_ps_schedule_next(s, 1);
    assert_int_equal(a.task, HPCT_PS_TRAIN);
    assert_int_equal(a.slice + b.slice, 1);
    assert_int_equal(a.step + b.step, 0);
    assert_true(done(s, 0));
    assert_int_equal(hpct_ps_schedule_next(s, 0).task, HPCT_PS_WAIT);
    assert_true(done(s, 1));
    assert_int_equal(hpct_ps_schedule_statistics(s)->updates, 1);
    /* the short step has one sample: one slice */
    a = hpct_ps_schedule_next(s, 1);
    assert_int_equal(a.step, 1);
    assert_int_equal(a.slice, 0);
    assert_int_equal(a.version, 1);
    assert_int_equal(hpct_ps_schedule_next(s, 0).task, HPCT_PS_WAIT);
    assert_true(done(s, 1));
    assert_int_equal(hpct_ps_schedule_statistics(s)->trained, 1);
    assert_int_equal(hpct_ps_schedule_next(s, 0).step, 2);
    hpct_ps_schedule_free(s);
}

TEST(slice_of_a_lost_worker_is_reassigned)
{
    hpct_ps_schedule *s = schedule_of(synchronous(2, 0));
    hpct_ps_item lost = hpct_ps_schedule_next(s, 0);
    hpct_ps_schedule_next(s, 1);
    assert_true(done(s, 1));
    assert_int_equal(hpct_ps_schedule_next(s, 1).task, HPCT_PS_WAIT);
    hpct_ps_schedule_give_back(s, 0);
    hpct_ps_item again = hpct_ps_schedule_next(s, 1);
    assert_int_equal(again.task, HPCT_PS_TRAIN);
    assert_int_equal(again.slice, lost.slice);
    assert_false(done(s, 0)); /* it holds nothing any more */
    assert_true(done(s, 1));
    assert_int_equal(hpct_ps_schedule_statistics(s)->given_again, 1);
    assert_int_equal(hpct_ps_schedule_statistics(s)->updates, 1);
    hpct_ps_schedule_free(s);
}

TEST(backup_worker_recomputes_late_slices)
{
    hpct_ps_schedule *s = schedule_of(synchronous(3, 1));
    hpct_ps_item slow = hpct_ps_schedule_next(s, 0), other = hpct_ps_schedule_next(s, 1);
    assert_int_equal(hpct_ps_schedule_next(s, 2).slice, slow.slice);
    assert_true(done(s, 1));
    assert_int_equal(hpct_ps_schedule_next(s, 1).task, HPCT_PS_WAIT); /* two have it already */
    assert_true(done(s, 2));
    assert_int_equal(hpct_ps_schedule_statistics(s)->updates, 1);
    assert_int_equal(other.slice + slow.slice, 1);
    assert_int_equal(hpct_ps_schedule_next(s, 1).step, 1);
    assert_false(done(s, 0)); /* late: it was of the step before */
    assert_int_equal(hpct_ps_schedule_statistics(s)->late, 1);
    assert_int_equal(hpct_ps_schedule_statistics(s)->updates, 1);
    hpct_ps_schedule_free(s);
}

TEST(everything_is_evaluated_between_epochs)
{
    hpct_ps_schedule_options options = synchronous(2, 0);
    options.synchronous = false;
    options.slices = 1;
    options.evaluation_slices = 2;
    hpct_ps_schedule *s = schedule_of(options);
    hpct_ps_schedule_next(s, 0);
    hpct_ps_schedule_next(s, 1);
    assert_true(done(s, 0));
    assert_int_equal(hpct_ps_schedule_next(s, 0).task, HPCT_PS_WAIT); /* one is on its way */
    assert_true(done(s, 1));
    assert_int_equal(hpct_ps_schedule_statistics(s)->trained, 1);
    hpct_ps_item a = hpct_ps_schedule_next(s, 0), b = hpct_ps_schedule_next(s, 1);
    assert_int_equal(a.task, HPCT_PS_EVALUATE);
    assert_int_equal(b.task, HPCT_PS_EVALUATE);
    assert_int_equal(a.slice + b.slice, 1);
    assert_true(done(s, 0) && done(s, 1));
    assert_int_equal(hpct_ps_schedule_statistics(s)->evaluated, 1);
    assert_int_equal(hpct_ps_schedule_next(s, 0).step, 2);
    hpct_ps_schedule_stop(s);
    assert_int_equal(hpct_ps_schedule_next(s, 1).task, HPCT_PS_WAIT); /* 0 has one */
    assert_true(done(s, 0));
    assert_int_equal(hpct_ps_schedule_next(s, 1).task, HPCT_PS_END);
    assert_int_equal(hpct_ps_schedule_statistics(s)->epoch_steps, 1);
    hpct_ps_schedule_free(s);
}

TEST(stopped_step_is_completed)
{
    hpct_ps_schedule *s = schedule_of(synchronous(2, 0));
    assert_true(hpct_ps_schedule_between(s));
    hpct_ps_schedule_next(s, 0);
    assert_false(hpct_ps_schedule_between(s));
    hpct_ps_schedule_stop(s);
    assert_int_equal(hpct_ps_schedule_next(s, 1).task, HPCT_PS_TRAIN); /* the other slice */
    assert_true(done(s, 1) && done(s, 0));
    assert_true(hpct_ps_schedule_ended(s) && hpct_ps_schedule_between(s));
    hpct_ps_schedule_free(s);
    /* where no worker is left to complete it, it does not count */
    s = schedule_of(synchronous(2, 0));
    hpct_ps_schedule_next(s, 0);
    hpct_ps_schedule_stop(s);
    hpct_ps_schedule_give_back(s, 0);
    hpct_ps_schedule_end(s);
    assert_int_equal(hpct_ps_schedule_statistics(s)->version, 0);
    assert_int_equal(hpct_ps_schedule_next(s, 0).task, HPCT_PS_END);
    hpct_ps_schedule_free(s);
}

TEST(stopped_evaluation_is_completed)
{
    hpct_ps_schedule_options options = synchronous(1, 0);
    options.steps_per_epoch = 1;
    options.max_steps = 2;
    options.evaluation_slices = 1;
    hpct_ps_schedule *s = schedule_of(options);
    hpct_ps_schedule_next(s, 0);
    hpct_ps_schedule_stop(s);
    assert_true(done(s, 0));
    assert_int_equal(hpct_ps_schedule_next(s, 0).task, HPCT_PS_EVALUATE);
    assert_false(hpct_ps_schedule_between(s));
    assert_true(done(s, 0));
    assert_true(hpct_ps_schedule_ended(s));
    assert_int_equal(hpct_ps_schedule_statistics(s)->evaluated, 1);
    hpct_ps_schedule_free(s);
    /* an epoch that an earlier run has trained is evaluated first */
    options.first_step = 1;
    s = schedule_of(options);
    assert_int_equal(hpct_ps_schedule_statistics(s)->trained, 1);
    assert_int_equal(hpct_ps_schedule_next(s, 0).task, HPCT_PS_EVALUATE);
    assert_true(done(s, 0));
    hpct_ps_item item = hpct_ps_schedule_next(s, 0);
    assert_int_equal(item.task, HPCT_PS_TRAIN);
    assert_int_equal(item.step, 1);
    assert_int_equal(item.version, 1);
    hpct_ps_schedule_free(s);
}

/* Runs that are cut and stopped at random, each of which goes on where the one before ended: every
 * step is done once, and nothing is under way where the state may be saved. */
static void stop_at_random(hpct_ps_schedule_options options, unsigned seed)
{
    enum { STEPS = 60, EPOCHS = 3 };
    int counted[EPOCHS * STEPS] = {0}, epoch = 0, runs = 0;
    int slices = options.synchronous ? options.slices : 1;
    options.steps_per_epoch = STEPS;
    options.full_batch = options.last_batch = 8;
    while (epoch < EPOCHS) {
        bool works[16] = {false};
        options.epochs = EPOCHS - epoch;
        options.max_steps = (int64_t) options.epochs * STEPS;
        hpct_ps_schedule *s = schedule_of(options);
        assert_true(runs++ < 10000);
        while (!hpct_ps_schedule_ended(s)) {
            seed = seed * 1664525u + 1013904223u;
            int w = (int) (seed >> 16) % options.workers, held = 0;
            hpct_ps_item item;
            if (!works[w]) {
                works[w] = hpct_ps_schedule_next(s, w).task == HPCT_PS_TRAIN;
            } else {
                works[w] = false;
                if (hpct_ps_schedule_done(s, w, &item))
                    counted[(int64_t) epoch * STEPS + item.step]++;
            }
            for (int i = 0; i < options.workers; i++)
                held += works[i];
            assert_true(options.synchronous || !hpct_ps_schedule_between(s) || held == 0);
            if ((seed >> 8 & 63) == 0)
                hpct_ps_schedule_cut(s);
            if ((seed >> 9 & 63) == 0)
                hpct_ps_schedule_stop(s);
        }
        epoch += hpct_ps_schedule_statistics(s)->trained;
        options.first_step = hpct_ps_schedule_statistics(s)->epoch_steps % STEPS;
        hpct_ps_schedule_free(s);
    }
    assert_true(runs > 1);
    for (int i = 0; i < EPOCHS * STEPS; i++)
        assert_int_equal(counted[i], slices);
}

TEST(stopped_runs_are_continued)
{
    for (unsigned seed = 1; seed <= 50; seed++) {
        stop_at_random((hpct_ps_schedule_options){.workers = 1 + (int) seed % 7,
                                                  .slices = 1,
                                                  .max_staleness = -1},
                       seed);
        stop_at_random((hpct_ps_schedule_options){.workers = 1 + (int) seed % 7,
                                                  .synchronous = true,
                                                  .slices = 1 + (int) seed % 3,
                                                  .backups = (int) seed % 2,
                                                  .max_staleness = -1},
                       seed);
    }
}

/* Workers of random speed that come and go: every step is done once, the bound is kept, and what
 * the statistics say of it is so. */
static void run_at_random(int workers, int64_t bound, unsigned seed)
{
    enum { STEPS = 200 };
    int counted[2 * STEPS] = {0};
    int64_t updates = 0, given_at[16], largest_seen = 0, sum = 0;
    bool works[16] = {false};
    hpct_ps_schedule *s = schedule_of((hpct_ps_schedule_options){.workers = workers,
                                                                 .slices = 1,
                                                                 .max_staleness = bound,
                                                                 .epochs = 2,
                                                                 .steps_per_epoch = STEPS,
                                                                 .max_steps = 2 * STEPS,
                                                                 .full_batch = 1,
                                                                 .last_batch = 1});
    for (int turn = 0; !hpct_ps_schedule_ended(s); turn++) {
        assert_true(turn < 1000000);
        seed = seed * 1664525u + 1013904223u;
        int w = (int) (seed >> 16) % workers;
        if (!works[w]) {
            hpct_ps_item item = hpct_ps_schedule_next(s, w);
            works[w] = item.task == HPCT_PS_TRAIN;
            given_at[w] = updates;
            assert_true(!works[w] || item.version == updates);
        } else if (seed >> 8 & 15 && w % 2 == 0) {
            continue; /* slow */
        } else if ((seed >> 5 & 31) == 0) {
            hpct_ps_schedule_give_back(s, w);
            works[w] = false;
        } else {
            hpct_ps_item item;
            assert_true(hpct_ps_schedule_done(s, w, &item));
            works[w] = false;
            counted[item.step]++;
            int64_t staleness = updates++ - given_at[w];
            sum += staleness;
            largest_seen = staleness > largest_seen ? staleness : largest_seen;
            assert_true(bound < 0 || staleness <= bound);
        }
    }
    for (int i = 0; i < 2 * STEPS; i++)
        assert_int_equal(counted[i], 1);
    assert_int_equal(hpct_ps_schedule_statistics(s)->staleness_max, largest_seen);
    assert_int_equal(hpct_ps_schedule_statistics(s)->staleness_sum, sum);
    assert_true(bound >= 0 || workers == 1 || largest_seen > workers);
    assert_true((bound >= 0 && workers > 1) == (hpct_ps_schedule_statistics(s)->held > 0));
    hpct_ps_schedule_free(s);
}

TEST(staleness_is_bounded_and_counted)
{
    for (unsigned seed = 1; seed <= 20; seed++) {
        for (int64_t bound = -1; bound <= 6; bound += bound < 2 ? 1 : 4)
            run_at_random(8, bound, seed);
        run_at_random(1, 0, seed);
    }
}

/* ---- the network ---- */

static hpct_net_session session(int fd, uint8_t in, uint8_t out)
{
    const hpct_auth_key keys[2] = {{{in}}, {{out}}};
    hpct_net_session session = {.fd = fd};
    assert_int_equal(hpct_auth_seal_new(&session.in, &keys[0]), HPCT_OK);
    assert_int_equal(hpct_auth_seal_new(&session.out, &keys[1]), HPCT_OK);
    return session;
}

static void open_pair(hpct_ps_channel *a, hpct_ps_channel *b)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    hpct_net_session ends[2] = {session(fds[0], 1, 2), session(fds[1], 2, 1)};
    hpct_ps_channel_init(a, &ends[0]);
    hpct_ps_channel_init(b, &ends[1]);
}

/* More floats than a socket takes at once, from two places into two others. */
TEST(floats_follow_their_header)
{
    enum { FIRST = 300000, SECOND = 70001 };
    static float from[FIRST + SECOND], to[FIRST + SECOND];
    hpct_ps_channel a, b;
    hpct_ps_message got, message = {.type = HPCT_PS_PUSH,
                                    .step = 7,
                                    .slice = 3,
                                    .bytes = sizeof from,
                                    .loss = 0.1,
                                    .rate = 0.003};
    struct iovec pieces[2] = {{from, FIRST * sizeof(float)},
                              {from + FIRST, SECOND * sizeof(float)}};
    for (int i = 0; i < FIRST + SECOND; i++)
        from[i] = (float) i;
    open_pair(&a, &b);
    b.into[0] = (struct iovec){to, 100 * sizeof(float)};
    b.into[1] = (struct iovec){to + 100, sizeof to - 100 * sizeof(float)};
    assert_true(hpct_ps_channel_send(&a, &message, pieces));
    assert_false(hpct_ps_channel_send(&a, &message, NULL)); /* not between the floats */
    hpct_ps_received received;
    for (int i = 0; i < 1000; i++) {
        received = hpct_ps_channel_receive(&b, &got);
        if (received != HPCT_PS_NOTHING)
            break;
        hpct_ps_channel_flush(&a);
    }
    assert_int_equal(received, HPCT_PS_GOT);
    assert_int_equal(got.step, 7);
    assert_int_equal(got.slice, 3);
    assert_true(got.loss == 0.1);
    assert_true(got.rate == 0.003);
    assert_memory_equal(from, to, sizeof from);
    hpct_ps_channel_close(&a);
    assert_int_equal(hpct_ps_channel_receive(&b, &got), HPCT_PS_CLOSED);
    hpct_ps_channel_close(&b);
}

static hpct_ps_received receive_once(const hpct_ps_message *message)
{
    hpct_ps_channel a, b;
    hpct_ps_message got;
    float room[4];
    open_pair(&a, &b);
    b.into[0] = (struct iovec){room, sizeof room};
    hpct_ps_channel_send(&a, message, NULL);
    hpct_ps_received received = hpct_ps_channel_receive(&b, &got);
    hpct_ps_channel_close(&a);
    hpct_ps_channel_close(&b);
    return received;
}

TEST(messages_of_other_runs_are_refused)
{
    hpct_ps_message beat = {.type = HPCT_PS_BEAT}, much = {.type = HPCT_PS_PUSH, .bytes = 20},
                    fits = {.type = HPCT_PS_PUSH, .bytes = 16},
                    odd = {.type = HPCT_PS_DONE, .bytes = 16},
                    huge = {.type = HPCT_PS_PULL, .version = UINT64_MAX};
    assert_int_equal(receive_once(&beat), HPCT_PS_GOT);
    assert_int_equal(receive_once(&much), HPCT_PS_GARBAGE);
    assert_int_equal(receive_once(&fits), HPCT_PS_NOTHING); /* the floats are to come */
    assert_int_equal(receive_once(&odd), HPCT_PS_GARBAGE);
    assert_int_equal(receive_once(&huge), HPCT_PS_GARBAGE);
}

TEST(learning_rates_and_times_are_checked)
{
    const struct {
        hpct_ps_message message;
        hpct_ps_received received;
    } cases[] = {
        {{.type = HPCT_PS_ITEM, .rate = 0.1}, HPCT_PS_GOT},
        {{.type = HPCT_PS_ITEM, .rate = NAN}, HPCT_PS_GARBAGE},
        {{.type = HPCT_PS_ITEM, .rate = -0.1}, HPCT_PS_GARBAGE},
        {{.type = HPCT_PS_ITEM, .rate = INFINITY}, HPCT_PS_GARBAGE},
        {{.type = HPCT_PS_BEAT, .rate = 0.1}, HPCT_PS_GARBAGE},
        {{.type = HPCT_PS_DONE, .parts = {12, 1, 4, 5, 2, 0, 140}}, HPCT_PS_GOT},
        {{.type = HPCT_PS_DONE, .parts = {12, NAN}}, HPCT_PS_GARBAGE},
        {{.type = HPCT_PS_DONE, .parts = {-1}}, HPCT_PS_GARBAGE},
        {{.type = HPCT_PS_DONE, .parts = {[HPCT_PS_PARTS - 1] = INFINITY}}, HPCT_PS_GARBAGE},
        {{.type = HPCT_PS_PULL, .parts = {1}}, HPCT_PS_GARBAGE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(receive_once(&cases[i].message), cases[i].received);
}

/* Of two messages, the second with floats, as they were sent: with one bit changed, cut, repeated,
 * and in the other order, all or the first come, and nothing else. */
TEST(modified_messages_are_rejected)
{
    enum { HEADER = HPCT_PS_MESSAGE_BYTES, ALL = 2 * HEADER + 16 + HPCT_AUTH_SEAL_TAG };
    float floats[4] = {1, 2, 3, 4};
    for (int bit = -1; bit < 8 * ALL; bit += bit < 0 ? 1 : 7) {
        hpct_ps_channel a, b;
        hpct_ps_message got, beat = {.type = HPCT_PS_BEAT},
                             push = {.type = HPCT_PS_PUSH, .bytes = sizeof floats};
        struct iovec pieces[2] = {{floats, sizeof floats}};
        uint8_t wire[ALL];
        float room[4];
        open_pair(&a, &b);
        b.into[0] = (struct iovec){room, sizeof room};
        hpct_ps_channel_send(&a, &beat, NULL);
        hpct_ps_channel_send(&a, &push, pieces);
        hpct_ps_channel_flush(&a);
        assert_int_equal(recv(b.session.fd, wire, sizeof wire, MSG_DONTWAIT), ALL);
        if (bit >= 0)
            wire[bit / 8] ^= (uint8_t) (1 << bit % 8);
        assert_int_equal(send(a.session.fd, wire, sizeof wire, 0), ALL);
        hpct_ps_received first = hpct_ps_channel_receive(&b, &got);
        assert_int_equal(first, bit >= 0 && bit < 8 * HEADER ? HPCT_PS_GARBAGE : HPCT_PS_GOT);
        if (first == HPCT_PS_GOT)
            assert_int_equal(hpct_ps_channel_receive(&b, &got),
                             bit >= 0 ? HPCT_PS_GARBAGE : HPCT_PS_GOT);
        hpct_ps_channel_close(&a);
        hpct_ps_channel_close(&b);
    }
}

TEST(replayed_messages_are_rejected)
{
    hpct_ps_channel a, b;
    hpct_ps_message got, beat = {.type = HPCT_PS_BEAT};
    uint8_t wire[2 * HPCT_PS_MESSAGE_BYTES];
    open_pair(&a, &b);
    hpct_ps_channel_send(&a, &beat, NULL);
    assert_int_equal(recv(b.session.fd, wire, sizeof wire, 0), HPCT_PS_MESSAGE_BYTES);
    memcpy(wire + HPCT_PS_MESSAGE_BYTES, wire, HPCT_PS_MESSAGE_BYTES);
    assert_int_equal(send(a.session.fd, wire, sizeof wire, 0), sizeof wire);
    assert_int_equal(hpct_ps_channel_receive(&b, &got), HPCT_PS_GOT);
    assert_int_equal(hpct_ps_channel_receive(&b, &got), HPCT_PS_GARBAGE);
    hpct_ps_channel_send(&b, &beat, NULL); /* nor for who sent it */
    assert_int_equal(recv(a.session.fd, wire, sizeof wire, 0), HPCT_PS_MESSAGE_BYTES);
    assert_int_equal(send(a.session.fd, wire, HPCT_PS_MESSAGE_BYTES, 0), HPCT_PS_MESSAGE_BYTES);
    assert_int_equal(hpct_ps_channel_receive(&b, &got), HPCT_PS_GARBAGE);
    hpct_ps_channel_close(&a);
    hpct_ps_channel_close(&b);
}
