/* The network, measured: latency from sums of a few bytes, rate from larger ones. */
#include "agent/comm/network.h"

#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SMALL_ROUNDS 16
#define FIRST_FLOATS ((size_t) 1 << 16)
#define MOST_FLOATS ((size_t) 1 << 21)
#define ENOUGH_SECONDS 5e-3 /* one sum that takes as long says the rate; no larger one follows */

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

/* The shortest of `rounds` sums of that many floats: what disturbs a round only adds to it. */
static hpct_status time_sums(hpct_comm *comm, float *data, size_t count, int rounds,
                             double *seconds)
{
    hpct_status status = HPCT_OK;
    *seconds = INFINITY;
    for (int i = 0; i < rounds && status == HPCT_OK; i++) {
        double began = now();
        status = comm->ops->allreduce_sum(comm, data, count);
        *seconds = fmin(*seconds, now() - began);
    }
    return status == HPCT_OK ? agree_on(comm, seconds) : status;
}

static int messages(int ranks)
{
    int steps = 0;
    for (int reached = 1; reached < ranks; reached *= 2)
        steps++;
    return steps;
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

hpct_status hpct_network_measure(hpct_comm *comm, hpct_network *network)
{
    float *data;
    double small, large = 0;
    size_t count = FIRST_FLOATS;
    *network = (hpct_network){0, INFINITY};
    if (comm->size == 1)
        return HPCT_OK;
    hpct_status status = take_memory(comm, &data);
    if (status != HPCT_OK)
        return status;
    status = time_sums(comm, data, 1, SMALL_ROUNDS, &small);
    for (size_t next = count; status == HPCT_OK && next <= MOST_FLOATS && large < ENOUGH_SECONDS;
         next *= 4) {
        count = next;
        status = time_sums(comm, data, count, 2, &large);
    }
    free(data);
    if (status != HPCT_OK)
        return status;
    network->latency_seconds = small / messages(comm->size);
    /* a clock too coarse to tell them apart, or a small sum that was held up */
    double transfer = fmax(large - small, 0.1 * large);
    network->bytes_per_second = sent_share(comm->size) * (double) (count * sizeof *data) / transfer;
    return HPCT_OK;
}

double hpct_network_allreduce_seconds(const hpct_network *network, int ranks, double bytes)
{
    if (ranks == 1)
        return 0;
    return messages(ranks) * network->latency_seconds +
           sent_share(ranks) * bytes / network->bytes_per_second;
}
