/* The network, measured: latency from sums of one number, rate from what larger ones take longer
 * than smaller ones. */
#include "agent/comm/network.h"

#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SMALL_ROUNDS 16
#define ROUNDS 3
#define FIRST_FLOATS ((size_t) 1 << 16)
#define MOST_FLOATS ((size_t) 1 << 22)
#define ENOUGH_SECONDS 5e-3 /* of difference: no larger sum follows */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double) time.tv_sec + 1e-9 * (double) time.tv_nsec;
}

/* The mean over the ranks, so that all decide alike. */
static hpct_status agree_on(hpct_comm *comm, double *seconds)
{
    float sum = (float) *seconds;
    hpct_status status = comm->ops->allreduce_sum(comm, &sum, 1);
    *seconds = (double) sum / comm->size;
    return status;
}

/* The shortest of `rounds` sums of that many floats, by the way that gradients go: what disturbs a
 * round only adds to it. */
static hpct_status time_sums(hpct_comm *comm, float *data, size_t count, int rounds,
                             double *seconds)
{
    hpct_reduction *reduction = NULL;
    hpct_reduction_options options = {.data = data, .count = count, .wire = HPCT_WIRE_FP32};
    hpct_status status = comm->ops->prepare(comm, &reduction, &options);
    float missing = status != HPCT_OK; /* memory, on this rank */
    hpct_status told = comm->ops->allreduce_sum(comm, &missing, 1);
    if (status == HPCT_OK)
        status = told;
    if (status == HPCT_OK && missing > 0)
        status = hpct_fail_memory(2 * count * sizeof *data);
    *seconds = INFINITY;
    for (int i = 0; i < rounds && status == HPCT_OK; i++) {
        double began = now();
        status = comm->ops->start(reduction);
        if (status == HPCT_OK)
            status = comm->ops->wait(reduction);
        *seconds = fmin(*seconds, now() - began);
    }
    if (reduction != NULL)
        comm->ops->release(reduction);
    return status == HPCT_OK ? agree_on(comm, seconds) : status;
}

/* One after the other, there and back. */
static int messages(int ranks)
{
    int steps = 0;
    for (int reached = 1; reached < ranks; reached *= 2)
        steps++;
    return 2 * steps;
}

/* Bytes that leave each rank for a byte that is summed. */
static double sent_share(int ranks)
{
    return 2.0 * (ranks - 1) / ranks;
}

/* Ranks may differ in the memory that they have, so all are asked before the first sum. */
static hpct_status take_memory(hpct_comm *comm, float **data)
{
    float *mine = calloc(MOST_FLOATS, sizeof *mine), missing = mine == NULL;
    hpct_status status = comm->ops->allreduce_sum(comm, &missing, 1);
    if (status == HPCT_OK && missing != 0)
        status = hpct_fail_memory(MOST_FLOATS * sizeof *mine);
    if (status != HPCT_OK) {
        free(mine);
        mine = NULL;
    }
    *data = mine;
    return status;
}

/* Buffers on the way, and links that let a burst pass, take the first bytes faster than those that
 * follow: the rate is that of what comes on top of a smaller sum. */
static hpct_status measure_rate(hpct_comm *comm, float *data, double *rate)
{
    double before, seconds = 0, more = 0;
    size_t count = FIRST_FLOATS;
    hpct_status status = time_sums(comm, data, count, ROUNDS, &seconds);
    for (; status == HPCT_OK && more < ENOUGH_SECONDS && count < MOST_FLOATS; count *= 4) {
        before = seconds;
        status = time_sums(comm, data, 4 * count, ROUNDS, &seconds);
        more = fmax(seconds - before, 0.1 * seconds); /* the smaller one may have been held up */
    }
    /* the last one had `count` floats, and a quarter of them before */
    *rate = sent_share(comm->size) * 0.75 * (double) (count * sizeof *data) / more;
    return status;
}

hpct_status hpct_network_measure(hpct_comm *comm, hpct_network *network)
{
    float *data;
    double small;
    *network = (hpct_network){0, INFINITY};
    if (comm->size == 1)
        return HPCT_OK;
    hpct_status status = take_memory(comm, &data);
    if (status == HPCT_OK)
        status = time_sums(comm, data, 1, SMALL_ROUNDS, &small);
    if (status == HPCT_OK)
        status = measure_rate(comm, data, &network->bytes_per_second);
    if (status == HPCT_OK)
        network->latency_seconds = small / messages(comm->size);
    free(data);
    return status;
}

double hpct_network_allreduce_seconds(const hpct_network *network, int ranks, double bytes)
{
    if (ranks == 1)
        return 0;
    return messages(ranks) * network->latency_seconds +
           sent_share(ranks) * bytes / network->bytes_per_second;
}

/* Of one after the other in a bucket: its parts and its sums, each asked for before it is sent. */
#define BUCKET_MESSAGES 4

int hpct_network_buckets(const hpct_network *network, int ranks, double bytes)
{
    double bucket = BUCKET_MESSAGES * network->latency_seconds;
    double transfer = hpct_network_allreduce_seconds(network, ranks, bytes) -
                      hpct_network_allreduce_seconds(network, ranks, 0);
    if (!(bucket > 0))
        return HPCT_NETWORK_MOST_BUCKETS;
    return (int) fmin(fmax(floor(sqrt(transfer / bucket)), 1), HPCT_NETWORK_MOST_BUCKETS);
}
