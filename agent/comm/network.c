/* Measures the network: latency by sums of few floats, rate by the difference between larger and
 * smaller sums. */
#include "agent/comm/network.h"

#include "base/sort.h"
#include "base/status.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SMALL_ROUNDS 15
#define PAUSE_NANOSECONDS 2000000
#define LEAST_ROUNDS 5   /* so that one or two stalls of TCP do not affect the median */
#define SIZE_SECONDS 0.1 /* for more sums of one size */
#define FIRST_FLOATS ((size_t) 1 << 16)

static double read_clock(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double) time.tv_sec + 1e-9 * (double) time.tv_nsec;
}

static double now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

/* CPU time of this thread, plus the time it was runnable but not running: ranks that share a CPU
 * send one after the other, and computation beside that waits for all of them. */
static double processor_seconds(void)
{
    unsigned long long waited = 0;
    FILE *stream = fopen("/proc/thread-self/schedstat", "r");
    if (stream != NULL && fscanf(stream, "%*u %llu", &waited) != 1)
        waited = 0; /* kernel without this value */
    if (stream != NULL)
        fclose(stream);
    return read_clock(CLOCK_THREAD_CPUTIME_ID) + 1e-9 * (double) waited;
}

/* Averages over the ranks, so that all decide alike. */
static hpct_status agree_on(hpct_comm *comm, double *seconds)
{
    float sum = (float) *seconds;
    hpct_status status = comm->ops->allreduce_sum(comm, &sum, 1);
    *seconds = (double) sum / comm->size;
    return status;
}

/* ---- summation ---- */

#define PARTS 8 /* in flight at a time, like buckets of gradients */
#define LINE 16 /* floats summed by a rank at least: with none there would be fewer messages */

typedef struct reducer {
    hpct_comm *comm;
    hpct_comm_reduction *parts[PARTS]; /* reductions of `count` floats at `data`; NULL: none */
    float *data;
    size_t count;
} reducer;

/* Size of a sum in which every rank sums something. */
static size_t few_floats(int ranks)
{
    size_t few = LINE * (size_t) ranks;
    return few < HPCT_COMM_NETWORK_MOST_FLOATS ? few : HPCT_COMM_NETWORK_MOST_FLOATS;
}

static void forget(reducer *r)
{
    for (int i = 0; i < PARTS; i++) {
        if (r->parts[i] != NULL)
            r->comm->ops->release(r->parts[i]);
        r->parts[i] = NULL;
    }
    r->count = 0;
}

/* Prepares reductions of another array; the ranks call at the same time. */
static hpct_status prepare(reducer *r, float *data, size_t count)
{
    size_t each = (count + PARTS - 1) / PARTS, least = few_floats(r->comm->size);
    hpct_status status = HPCT_OK;
    each = each > least ? each : least;
    forget(r);
    for (int i = 0; i < PARTS && (size_t) i * each < count && status == HPCT_OK; i++) {
        size_t begin = (size_t) i * each;
        hpct_comm_reduction_options options = {.data = data + begin,
                                               .count = count - begin < each ? count - begin : each,
                                               .wire = HPCT_WIRE_FP32};
        status = r->comm->ops->prepare(r->comm, &r->parts[i], &options);
    }
    float missing = status != HPCT_OK; /* out of memory on this rank */
    hpct_status told = r->comm->ops->allreduce_sum(r->comm, &missing, 1);
    r->data = data;
    r->count = count;
    if (status == HPCT_OK && told == HPCT_OK && missing > 0)
        return hpct_fail_memory(2 * count * sizeof *data);
    return status == HPCT_OK ? told : status;
}

/* hpct_comm_network_sum: by the reductions used for gradients. */
static hpct_status reduce(void *argument, float *data, size_t count)
{
    reducer *r = argument;
    hpct_status status = HPCT_OK;
    if (r->data != data || r->count != count)
        status = prepare(r, data, count);
    for (int i = 0; i < PARTS && r->parts[i] != NULL && status == HPCT_OK; i++)
        status = r->comm->ops->start(r->parts[i]);
    for (int i = 0; i < PARTS && r->parts[i] != NULL && status == HPCT_OK; i++)
        status = r->comm->ops->wait(r->parts[i]);
    return status;
}

/* ---- measuring ---- */

typedef struct meter {
    hpct_comm *comm;
    hpct_comm_network_sum *sum;
    void *argument;
    float *data; /* [most] */
    size_t like, most;
    double host; /* CPU seconds of this rank per sum in the last measurement */
} meter;

/* Median of `rounds` sums of that many floats, after a warm-up. `apart`: with a pause before each,
 * as after computation: sleeping threads must wake, and ranks do not start at once. */
static hpct_status time_sums(meter *m, size_t count, int rounds, bool apart, double *seconds)
{
    double all[SMALL_ROUNDS];
    hpct_status status = m->sum(m->argument, m->data, count);
    double before = processor_seconds();
    for (int i = 0; i < rounds && status == HPCT_OK; i++) {
        if (apart)
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_NANOSECONDS}, NULL);
        double began = now();
        status = m->sum(m->argument, m->data, count);
        all[i] = now() - began;
    }
    m->host = (processor_seconds() - before) / rounds;
    if (status != HPCT_OK)
        return status;
    hpct_sort_numbers(all, (size_t) rounds);
    *seconds = all[rounds / 2];
    return agree_on(m->comm, seconds);
}

/* Number of sequential messages in one direction. */
static int doublings(int ranks)
{
    int steps = 0;
    for (int reached = 1; reached < ranks; reached *= 2)
        steps++;
    return steps;
}

/* Bytes sent by each rank per byte summed. */
static double sent_share(int ranks)
{
    return 2.0 * (ranks - 1) / ranks;
}

/* Memory may suffice on some ranks only, so all agree before the first sum. */
static hpct_status take_memory(hpct_comm *comm, size_t floats, float **data)
{
    float *mine = calloc(floats, sizeof *mine), missing = mine == NULL;
    hpct_status status = comm->ops->allreduce_sum(comm, &missing, 1);
    if (status == HPCT_OK && missing != 0)
        status = hpct_fail_memory(floats * sizeof *mine);
    if (status != HPCT_OK) {
        free(mine);
        mine = NULL;
    }
    *data = mine;
    return status;
}

/* Measures long enough that other load on the cores or links does not affect the median. */
static hpct_status time_often(meter *m, size_t count, double *seconds)
{
    hpct_status status = time_sums(m, count, LEAST_ROUNDS, false, seconds);
    int rounds = (int) fmin(SIZE_SECONDS / *seconds, SMALL_ROUNDS);
    return status == HPCT_OK && rounds > LEAST_ROUNDS ? time_sums(m, count, rounds, false, seconds)
                                                      : status;
}

/* Buffers, and links that allow bursts, take the first bytes faster than the rest: so the rate is
 * computed from the difference to a smaller sum. */
static hpct_status measure_rate(meter *m, double enough, hpct_comm_network *network)
{
    double before, seconds = 0, more = 0;
    size_t count = FIRST_FLOATS;
    hpct_status status = time_often(m, count, &seconds);
    for (; status == HPCT_OK && (more < enough || 2 * count < m->like) && count < m->most;
         count *= 4) {
        before = seconds;
        status = time_often(m, 4 * count, &seconds);
        more = fmax(seconds - before, 0.1 * seconds); /* the smaller one may have been delayed */
    }
    /* the last sum had `count` floats, the one before a quarter of them */
    double bytes = sent_share(m->comm->size) * (double) (count * sizeof *m->data);
    network->bytes_per_second = 0.75 * bytes / more;
    network->host_seconds = m->comm->sleeps ? m->host / bytes : 0;
    return status == HPCT_OK ? agree_on(m->comm, &network->host_seconds) : status;
}

hpct_status hpct_comm_network_measure_sums(hpct_comm *comm, hpct_comm_network_sum *sum,
                                           void *argument, size_t few, int rounds, double enough,
                                           size_t like, hpct_comm_network *network)
{
    meter m = {.comm = comm, .sum = sum, .argument = argument, .like = like};
    m.most = 2 * HPCT_COMM_NETWORK_MOST_FLOATS < like ? 4 * HPCT_COMM_NETWORK_MOST_FLOATS
                                                      : HPCT_COMM_NETWORK_MOST_FLOATS;
    double small;
    *network = (hpct_comm_network){.bytes_per_second = INFINITY};
    if (comm->size == 1)
        return HPCT_OK;
    hpct_status status = take_memory(comm, m.most, &m.data);
    if (status == HPCT_OK)
        status = time_sums(&m, few, SMALL_ROUNDS, true, &small);
    if (status == HPCT_OK)
        status = measure_rate(&m, enough, network);
    if (status == HPCT_OK)
        network->latency_seconds = small / (rounds * doublings(comm->size));
    free(m.data);
    return status;
}

hpct_status hpct_comm_network_measure(hpct_comm *comm, double enough, size_t like,
                                      hpct_comm_network *network)
{
    reducer r = {.comm = comm};
    hpct_status status = hpct_comm_network_measure_sums(comm, reduce, &r, few_floats(comm->size), 2,
                                                        enough, like, network);
    forget(&r);
    return status;
}

double hpct_comm_network_allreduce_seconds(const hpct_comm_network *network, int ranks,
                                           double bytes)
{
    if (ranks == 1)
        return 0;
    return 2 * doublings(ranks) * network->latency_seconds +
           sent_share(ranks) * bytes / network->bytes_per_second;
}

/* Sequential messages per bucket: its parts and its sums, each requested before it is sent; at
 * least those of a small sum, which all ranks send to one another. */
static double bucket_messages(int ranks)
{
    return fmax(4, 2 * doublings(ranks));
}

static int best_buckets(const hpct_comm_network *network, int ranks, double bytes)
{
    double bucket = bucket_messages(ranks) * network->latency_seconds;
    double transfer = hpct_comm_network_allreduce_seconds(network, ranks, bytes) -
                      hpct_comm_network_allreduce_seconds(network, ranks, 0);
    if (!(bucket > 0))
        return HPCT_COMM_NETWORK_MOST_BUCKETS;
    return (int) fmin(fmax(floor(sqrt(transfer / bucket)), 1), HPCT_COMM_NETWORK_MOST_BUCKETS);
}

double hpct_comm_network_bucket_bytes(const hpct_comm_network *network, int ranks, double bytes,
                                      double wanted)
{
    double each = wanted > 0 ? wanted : bytes / best_buckets(network, ranks, bytes);
    return fmax(each, bytes / HPCT_COMM_NETWORK_MOST_BUCKETS);
}
