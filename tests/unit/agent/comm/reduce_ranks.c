/* tests/unit/agent/comm/reduce_ranks.c - prepared reductions of the ranks that it was started as,
 * in all wire types and groupings, several under way at once: against sums in double of what every
 * rank brings. Rank 0 prints a line for each case, with the largest error relative to the sum of
 * sizes; ends with 1 if ranks differ, an error is too large, or a result depends on how it was cut.
 * "network": prints what the network costs. "join": how long the ranks took to join, once the last
 * had begun to (one clock: of one machine). "lost": the last rank ends itself while a reduction is
 * under way. "table": the other operations of the communicator, whole and split. "own": sums and
 * gathers over connections of our own, of few numbers and of many; "own-lost": the last rank ends
 * itself while the others wait for it in one. */
#include "agent/comm/circulant.h"
#include "agent/comm/network.h"
#include "agent/rank/context.h"

#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define COUNT 5000
#define EXACT 6
#define ALL (COUNT + EXACT)
#define ROUNDS 3

static const char *const wires[] = {"fp32", "bf16", "fp16"};
/* Two roundings to the nearest of 8 or 11 bits; in fp32 one for each addition. */
static const double bounds[] = {1e-6, 2.01 / 256, 2.01 / 2048};

static float value(int rank, int round, int i)
{
    uint64_t x = (uint64_t) (rank * 1000003 + round * 101 + i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 29;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    /* of many sizes, as gradients are */
    return (float) (((double) (x >> 40) / 8388608 - 1) * ldexp(1, -(i % 12)));
}

/* grouping 0: each its own; 1: nodes of two; 2: ranks in turn on two nodes; 3: a node of all but
 * one. */
static int group_of(int grouping, int rank)
{
    return grouping == 1 ? rank / 2 : grouping == 2 ? rank % 2 : rank == 0;
}

typedef struct scene {
    hpct_comm *comm;
    float *data, *all; /* [ALL], [size][ALL] */
    int *groups;
} scene;

static hpct_status reduce_in(scene *s, const hpct_comm_reduction_options *options, int pieces,
                             int round)
{
    hpct_comm *comm = s->comm;
    hpct_comm_reduction *reductions[4] = {NULL};
    hpct_status status = HPCT_OK;
    size_t begin = 0;
    for (int i = 0; i < pieces && status == HPCT_OK; i++) {
        hpct_comm_reduction_options o = *options;
        size_t end = i == pieces - 1 ? COUNT : (size_t) (i + 1) * 1113;
        o.data = s->data + begin;
        o.count = end - begin;
        o.exact = i == pieces - 1 ? EXACT : 0;
        begin = end;
        status = comm->ops->prepare(comm, &reductions[i], &o);
    }
    for (int again = 0; again <= round && status == HPCT_OK; again++) {
        for (int i = 0; i < ALL; i++)
            s->data[i] = value(comm->rank, again, i);
        /* ranks start and wait for them in different orders */
        for (int i = 0; i < pieces && status == HPCT_OK; i++)
            status = comm->ops->start(reductions[(i + comm->rank) % pieces]);
        float between = 1;
        if (status == HPCT_OK)
            status = comm->ops->allreduce_sum(comm, &between, 1);
        if (between != (float) comm->size) /* neither disturbs the other */
            return HPCT_ERR_INTERNAL;
        if (again == 1 && status == HPCT_OK)
            status = comm->ops->progress(comm);
        for (int i = 0; i < pieces && status == HPCT_OK; i++)
            status = comm->ops->wait(reductions[(i + 2 * comm->rank) % pieces]);
        for (int i = 0; i < pieces && status == HPCT_OK; i++) {
            if (!comm->ops->is_done(reductions[i]))
                return HPCT_ERR_INTERNAL;
        }
    }
    for (int i = 0; i < pieces; i++)
        comm->ops->release(reductions[i]);
    return status;
}

/* The largest error, relative to the sum of the terms' sizes (fp16 has steps that are relative to
 * the message's largest, too: 2^-24 / 2^14 of it a term). */
static double error_of(const scene *s, hpct_wire wire, int round)
{
    double worst = 0;
    for (int i = 0; i < ALL; i++) {
        double sum = 0, size = wire == HPCT_WIRE_FP16 ? 1e-6 : 0;
        for (int rank = 0; rank < s->comm->size; rank++) {
            sum += (double) value(rank, round, i);
            size += fabs((double) value(rank, round, i));
        }
        double error = fabs((double) s->data[i] - sum) / size;
        if (i >= COUNT) /* exact ones: of as many bits as fp32 whatever the wire */
            error *= bounds[wire] / bounds[HPCT_WIRE_FP32];
        worst = fmax(worst, error);
    }
    return worst;
}

static bool all_alike(scene *s)
{
    bool alike =
        s->comm->ops->allgather(s->comm, s->data, s->all, ALL * sizeof *s->data) == HPCT_OK;
    for (int rank = 1; rank < s->comm->size && alike; rank++)
        alike = memcmp(s->all, s->all + (size_t) rank * ALL, ALL * sizeof *s->all) == 0;
    return alike;
}

static bool compare(scene *s, hpct_wire wire, int grouping)
{
    static float whole[ALL];
    bool ok = true;
    hpct_comm_reduction_options options = {.wire = wire, .groups = grouping > 0 ? s->groups : NULL};
    for (int rank = 0; rank < s->comm->size; rank++)
        s->groups[rank] = group_of(grouping, rank);
    for (int pieces = 1; pieces <= 4; pieces += 3) {
        if (reduce_in(s, &options, pieces, ROUNDS - 1) != HPCT_OK)
            return false;
        double error = error_of(s, wire, ROUNDS - 1);
        bool alike = all_alike(s);
        ok = ok && alike && error <= bounds[wire];
        if (pieces == 1)
            memcpy(whole, s->data, sizeof whole);
        else if (wire == HPCT_WIRE_FP32)
            ok = ok && memcmp(whole, s->data, sizeof whole) == 0;
        if (s->comm->rank == 0)
            printf("%s grouping %d, %d at once: error %.2g, ranks %s\n", wires[wire], grouping,
                   pieces, error, alike ? "alike" : "differ");
    }
    return ok;
}

static int all_cases(scene *s)
{
    bool ok = true;
    for (int grouping = 0; grouping <= 3; grouping++) {
        for (int wire = 0; wire < 3; wire++)
            ok = compare(s, (hpct_wire) wire, grouping) && ok;
    }
    return ok ? 0 : 1;
}

static int lose_one(scene *s)
{
    hpct_comm_reduction *reduction;
    hpct_comm_reduction_options options = {.data = s->data, .count = COUNT};
    s->comm->ops->prepare(s->comm, &reduction, &options);
    if (s->comm->rank == s->comm->size - 1)
        kill(getpid(), SIGKILL);
    hpct_status status = s->comm->ops->start(reduction);
    if (status == HPCT_OK)
        status = s->comm->ops->wait(reduction);
    pause(); /* the watch ends the process, whatever MPI says */
    return (int) status;
}

static int print_network(hpct_context *context, int rank)
{
    hpct_comm_network network, again;
    if (hpct_context_network(context, &network) != HPCT_OK ||
        hpct_context_network(context, &again) != HPCT_OK)
        return 1;
    hpct_comm *comm = hpct_context_comm(context);
    hpct_comm_network *all = calloc((size_t) comm->size, sizeof *all);
    bool ok = all != NULL && comm->ops->allgather(comm, &again, all, sizeof *all) == HPCT_OK;
    for (int other = 0; other < comm->size && ok; other++)
        ok = memcmp(&all[other], &network, sizeof network) == 0;
    free(all);
    ok = ok && network.latency_seconds > 0 && network.bytes_per_second > 0 &&
         isfinite(network.bytes_per_second);
    if (rank == 0)
        printf("latency %.1f us, %.1f MB/s\n", 1e6 * network.latency_seconds,
               1e-6 * network.bytes_per_second);
    return ok ? 0 : 1;
}

/* ---- over connections of our own ---- */

static bool own_sum(scene *s, hpct_comm_circulant *own, size_t count)
{
    for (size_t i = 0; i < count; i++)
        s->data[i] = value(s->comm->rank, 0, (int) i);
    if (hpct_comm_circulant_sum(own, s->data, count) != HPCT_OK)
        return false;
    double worst = 0;
    for (size_t i = 0; i < count; i++) {
        double sum = 0, size = 0;
        for (int rank = 0; rank < s->comm->size; rank++) {
            sum += (double) value(rank, 0, (int) i);
            size += fabs((double) value(rank, 0, (int) i));
        }
        worst = fmax(worst, fabs((double) s->data[i] - sum) / size);
    }
    memset(s->data + count, 0, (ALL - count) * sizeof *s->data);
    bool alike = all_alike(s);
    if (s->comm->rank == 0)
        printf("own sum of %zu: error %.2g, ranks %s\n", count, worst, alike ? "alike" : "differ");
    return alike && worst <= bounds[HPCT_WIRE_FP32];
}

static bool own_gather(scene *s, hpct_comm_circulant *own, size_t count)
{
    bool ok = true;
    for (size_t i = 0; i < count; i++)
        s->data[i] = value(s->comm->rank, 1, (int) i);
    if (hpct_comm_circulant_gather(own, s->data, s->all, count) != HPCT_OK)
        return false;
    for (int rank = 0; rank < s->comm->size; rank++)
        for (size_t i = 0; i < count; i++)
            ok = ok && s->all[(size_t) rank * count + i] == value(rank, 1, (int) i);
    if (s->comm->rank == 0)
        printf("own gather of %zu: %s\n", count, ok ? "right" : "wrong");
    return ok;
}

/* Rows that their ranks double between the halves. */
static bool own_halves(scene *s, hpct_comm_circulant *own, size_t rows, size_t width)
{
    size_t count = rows * width, first, mine;
    float piggyback[2] = {1, (float) s->comm->rank};
    double worst = 0;
    for (size_t i = 0; i < count; i++)
        s->data[i] = value(s->comm->rank, 2, (int) i);
    if (hpct_comm_circulant_reduce(own, s->data, rows, width, &first, &mine) != HPCT_OK)
        return false;
    for (size_t i = 0; i < count; i++)
        s->data[i] = i / width >= first && i / width < first + mine ? 2 * s->data[i] : NAN;
    if (hpct_comm_circulant_spread(own, s->data, rows, width, piggyback, 2) != HPCT_OK)
        return false;
    for (size_t i = 0; i < count; i++) {
        double sum = 0, size = 0;
        for (int rank = 0; rank < s->comm->size; rank++) {
            sum += 2 * (double) value(rank, 2, (int) i);
            size += 2 * fabs((double) value(rank, 2, (int) i));
        }
        double error = fabs((double) s->data[i] - sum) / size;
        worst = error <= worst ? worst : error; /* also what is no number */
    }
    memset(s->data + count, 0, (ALL - count) * sizeof *s->data);
    int ranks = s->comm->size;
    bool alike = all_alike(s), together = piggyback[0] == (float) ranks &&
                                          piggyback[1] == (float) (ranks * (ranks - 1) / 2);
    if (s->comm->rank == 0)
        printf("own halves of %zux%zu: error %.2g, ranks %s, piggyback %s\n", rows, width, worst,
               alike ? "alike" : "differ", together ? "summed" : "wrong");
    return alike && together && worst <= bounds[HPCT_WIRE_FP32];
}

static int own_cases(scene *s)
{
    /* few: gathered; then blocks of a rank that are empty, that end the array, and full ones */
    static const size_t counts[] = {0, 1, 324, 1700, 4096, ALL};
    hpct_comm_circulant *own;
    bool ok = hpct_comm_circulant_open(&own, s->comm, ALL, 60) == HPCT_OK;
    for (int again = 0; again < 2 && ok; again++) {
        for (size_t i = 0; i < sizeof counts / sizeof *counts && ok; i++)
            ok = own_sum(s, own, counts[i]) && own_gather(s, own, counts[i]);
        ok = ok && own_halves(s, own, 42, 119) && own_halves(s, own, 2, 500) &&
             own_halves(s, own, 5000, 1);
    }
    ok = ok && hpct_comm_circulant_sum(own, s->data, ALL + 1) == HPCT_ERR_INTERNAL;
    if (ok)
        hpct_comm_circulant_close(own);
    return ok ? 0 : 1;
}

static int lose_one_of_own(scene *s)
{
    hpct_comm_circulant *own;
    if (hpct_comm_circulant_open(&own, s->comm, ALL, 60) != HPCT_OK)
        return 1;
    if (s->comm->rank == s->comm->size - 1)
        kill(getpid(), SIGKILL);
    hpct_status status = hpct_comm_circulant_sum(own, s->data, ALL);
    return (int) status;
}

/* ---- the other operations ---- */

#define MANY ((size_t) 3 << 19) /* floats: a sum in more than one piece */
#define RECORD 4099             /* bytes, of no multiple of anything */
#define MESSAGES 40
#define MESSAGE 100000 /* floats at most: not all of a message goes at once */
#define BUFFERS 2

static bool collectives(hpct_comm *comm)
{
    size_t size = (size_t) comm->size;
    float *many = malloc(MANY * sizeof *many);
    unsigned char mine[RECORD], *all = malloc(size * RECORD);
    bool ok = many != NULL && all != NULL;
    for (int root = 0; root < comm->size && ok; root++) {
        for (size_t i = 0; i < RECORD; i++)
            mine[i] = (unsigned char) (comm->rank + (int) i);
        ok = comm->ops->broadcast(comm, mine, RECORD - (size_t) root, root) == HPCT_OK;
        for (int i = 0; i < RECORD && ok; i++)
            ok = mine[i] == (unsigned char) ((i < RECORD - root ? root : comm->rank) + i);
    }
    for (size_t bytes = 0; bytes <= RECORD && ok; bytes += RECORD / 2) {
        memset(mine, comm->rank + 1, sizeof mine);
        ok = comm->ops->allgather(comm, mine, all, bytes) == HPCT_OK;
        for (size_t i = 0; i < size * bytes && ok; i++)
            ok = all[i] == i / bytes + 1;
    }
    for (size_t i = 0; i < MANY && ok; i++)
        many[i] = (float) ((i + (size_t) comm->rank) % 1000);
    ok = ok && comm->ops->allreduce_sum(comm, many, MANY) == HPCT_OK;
    for (size_t i = 0; i < MANY && ok; i++) {
        size_t sum = 0;
        for (size_t rank = 0; rank < size; rank++)
            sum += (i + rank) % 1000;
        ok = many[i] == (float) sum;
    }
    free(many);
    free(all);
    return ok;
}

static size_t floats_of(int message)
{
    return message % 5 == 4 ? MESSAGE : (size_t) message * 7; /* also none */
}

static bool take(hpct_comm *comm, hpct_comm_stream *in, int from, int message)
{
    float *data;
    bool ok = comm->ops->next(in, &data) == HPCT_OK;
    for (size_t i = 0; i < floats_of(message) && ok; i++)
        ok = data[i] == value(from, message, (int) i);
    return ok && comm->ops->pass(in, 0) == HPCT_OK;
}

static bool give(hpct_comm *comm, hpct_comm_stream *out, int message)
{
    float *data;
    bool ok = comm->ops->next(out, &data) == HPCT_OK;
    for (size_t i = 0; i < floats_of(message) && ok; i++)
        data[i] = value(comm->rank, message, (int) i);
    return ok && comm->ops->pass(out, floats_of(message)) == HPCT_OK &&
           comm->ops->push(out) == HPCT_OK;
}

/* Each rank to the next one, around; a sum and a split-off group's gather go between messages that
 * are on their way; who comes last opens his ends when the first messages have gone. */
static bool streams(hpct_comm *comm, hpct_comm *part)
{
    hpct_comm_stream *in = NULL, *out = NULL;
    int next = (comm->rank + 1) % comm->size, last = (comm->rank + comm->size - 1) % comm->size;
    hpct_comm_stream_options o = {
        .number = HPCT_COMM_MAX_STREAM, .floats = MESSAGE, .buffers = BUFFERS};
    o.peer = next;
    bool ok = comm->size > 1 && comm->ops->open_stream(comm, &out, &o) == HPCT_OK;
    for (int message = 0; message < BUFFERS && ok; message++)
        ok = give(comm, out, message);
    o.peer = last;
    o.receives = true;
    ok = ok && comm->ops->open_stream(comm, &in, &o) == HPCT_OK;
    for (int message = 0; message < MESSAGES && ok; message++) {
        float sum = 1, ones[8];
        ok = part->size <= 8 && comm->ops->allreduce_sum(comm, &sum, 1) == HPCT_OK &&
             part->ops->allgather(part, &sum, ones, sizeof sum) == HPCT_OK &&
             take(comm, in, last, message) &&
             (message + BUFFERS >= MESSAGES || give(comm, out, message + BUFFERS));
        for (int rank = 0; rank < part->size && ok; rank++)
            ok = ones[rank] == (float) comm->size;
    }
    ok = ok && comm->ops->drain(out) == HPCT_OK;
    if (ok) {
        comm->ops->close_stream(in);
        comm->ops->close_stream(out);
    }
    /* what comes for the next one must not find this one's buffers */
    float closed = 1;
    return ok && comm->ops->allreduce_sum(comm, &closed, 1) == HPCT_OK;
}

/* The streams are opened twice, as another strategy would. */
static int table_cases(scene *s)
{
    hpct_comm *comm = s->comm, *half, *one;
    if (!collectives(comm) || comm->ops->split(comm, &half, comm->rank % 2) != HPCT_OK)
        return 1;
    bool ok = half->rank == comm->rank / 2 && half->size == (comm->size + 1 - comm->rank % 2) / 2 &&
              collectives(half) && half->ops->split(half, &one, half->rank) == HPCT_OK;
    ok = ok && one->size == 1 && collectives(one) && streams(comm, half) && streams(comm, half) &&
         (half->size == 1 || streams(half, one));
    if (!ok)
        return 1;
    one->ops->close(one);
    scene part = {half, s->data, s->all, s->groups};
    int result = all_cases(&part);
    half->ops->close(half);
    return result != 0 || !collectives(comm);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double) time.tv_sec + 1e-9 * (double) time.tv_nsec;
}

static int print_join(const scene *s, double begun)
{
    double times[2] = {begun, now()}, first = INFINITY, last = 0, joined = 0;
    double *all = malloc((size_t) s->comm->size * sizeof times);
    if (all == NULL || s->comm->ops->allgather(s->comm, times, all, sizeof times) != HPCT_OK)
        return 1;
    for (int rank = 0; rank < s->comm->size; rank++) {
        first = fmin(first, all[2 * rank]);
        last = fmax(last, all[2 * rank]);
        joined = fmax(joined, all[2 * rank + 1]);
    }
    if (s->comm->rank == 0)
        printf("%d ranks over %s joined %.3f s after the last one began, %.3f s after the first\n",
               s->comm->size, s->comm->ops->name, joined - last, joined - first);
    free(all);
    return 0;
}

int main(int argc, char **argv)
{
    hpct_context *context;
    const char *what = argc > 1 ? argv[1] : "";
    double begun = now();
    if (hpct_context_open(&context) != HPCT_OK)
        return 2;
    hpct_comm *comm = hpct_context_comm(context);
    scene s = {.comm = comm,
               .data = calloc(ALL, sizeof(float)),
               .all = calloc((size_t) comm->size * ALL, sizeof(float)),
               .groups = calloc((size_t) comm->size, sizeof(int))};
    int result = strcmp(what, "lost") == 0       ? lose_one(&s)
                 : strcmp(what, "join") == 0     ? print_join(&s, begun)
                 : strcmp(what, "table") == 0    ? table_cases(&s)
                 : strcmp(what, "own") == 0      ? own_cases(&s)
                 : strcmp(what, "own-lost") == 0 ? lose_one_of_own(&s)
                 : strcmp(what, "network") == 0  ? print_network(context, comm->rank)
                                                 : all_cases(&s);
    free(s.data);
    free(s.all);
    free(s.groups);
    hpct_context_close(context);
    return result;
}
