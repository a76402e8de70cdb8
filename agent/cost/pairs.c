/* Messages go to and fro between two ranks over the communicator's streams; the node with the lower
 * number starts, has the clock, and says in each message whether it is the last of its size. */
#include "agent/cost/pairs.h"

#include "agent/comm/agree.h"
#include "base/process.h"
#include "base/status.h"

#include <math.h>
#include <stdlib.h>

#define PASSES 3                   /* of all rounds; the best one counts */
#define SMALL ((size_t) 2)         /* floats: 8 bytes */
#define FIRST ((size_t) 1 << 14)   /* 64 KiB */
#define LARGEST ((size_t) 1 << 20) /* 4 MiB */
#define GROWTH 8
#define LATENCY_SECONDS 0.05 /* longer than other processes stay on a core */
#define RATE_SECONDS 0.05    /* of the largest size; the others only say whether it is too slow */
#define TRY_SECONDS 0.01
#define SLOW_SECONDS 0.15 /* of a message and its answer: no larger ones */

/* ---- rounds of pairs ---- */

/* Rounds in which each of `nodes` meets each other once. */
static int all_rounds(int nodes)
{
    return nodes + nodes % 2 - 1;
}

int hpct_cost_pairs_rounds(int nodes)
{
    int rounds = nodes > 1 ? all_rounds(nodes) : 0;
    return rounds < HPCT_COST_PAIRS_MOST ? rounds : HPCT_COST_PAIRS_MOST;
}

/* The circle method of round-robin tournaments: on a circle of an odd number of places those whose
 * numbers add up to twice the round's meet; the one left over meets the node that is outside. */
int hpct_cost_pairs_partner(int nodes, int round, int node)
{
    int places = all_rounds(nodes), rounds = hpct_cost_pairs_rounds(nodes);
    int at = (int) ((int64_t) round * places / rounds);
    int other = node == places ? at : (2 * at - node + places) % places;
    if (other == node)
        other = places;
    return other < nodes ? other : -1;
}

/* ---- two ranks ---- */

typedef struct meeting {
    hpct_comm *comm;
    hpct_comm_stream *out, *in;
    bool starts;
} meeting;

static hpct_status open_meeting(meeting *m, hpct_comm *comm, int peer, bool starts)
{
    hpct_comm_stream_options options = {
        .peer = peer, .number = HPCT_COMM_MAX_STREAM, .floats = LARGEST, .buffers = 1};
    *m = (meeting){.comm = comm, .starts = starts};
    HPCT_TRY(comm->ops->open_stream(comm, &m->out, &options));
    options.receives = true;
    return comm->ops->open_stream(comm, &m->in, &options);
}

static void close_meeting(const meeting *m)
{
    if (m->out != NULL)
        m->comm->ops->close_stream(m->out);
    if (m->in != NULL)
        m->comm->ops->close_stream(m->in);
}

static hpct_status send(const meeting *m, size_t floats, float more)
{
    float *data;
    HPCT_TRY(m->comm->ops->next(m->out, &data));
    data[0] = more;
    return m->comm->ops->pass(m->out, floats);
}

static hpct_status receive(const meeting *m, float *more)
{
    float *data;
    HPCT_TRY(m->comm->ops->next(m->in, &data));
    *more = data[0];
    return m->comm->ops->pass(m->in, 0);
}

/* What one size gave. */
typedef struct series {
    double least, mean; /* seconds of a message and its answer */
} series;

/* Both sides: messages of that size for that long, the first one not counted. */
static hpct_status exchange(const meeting *m, size_t floats, double seconds, series *out)
{
    double began = hpct_process_clock(), before = began;
    int counted = -1;
    float more = 1;
    *out = (series){.least = INFINITY};
    while (more > 0) {
        if (!m->starts)
            HPCT_TRY(receive(m, &more));
        else
            more = counted < 1 || hpct_process_clock() - began < seconds;
        HPCT_TRY(send(m, floats, more));
        float ignored;
        if (m->starts)
            HPCT_TRY(receive(m, &ignored));
        double now = hpct_process_clock();
        if (counted++ < 0)
            began = now;
        else
            out->least = fmin(out->least, now - before);
        before = now;
    }
    out->mean = (before - began) / counted;
    return HPCT_OK;
}

/* Both sides go through the same sizes, and each has its own clock. */
static hpct_status measure_pair(const meeting *m, hpct_cost_pair *pair)
{
    series one;
    HPCT_TRY(exchange(m, SMALL, LATENCY_SECONDS, &one));
    double latency = one.least / 2, rate = 0;
    float more = 1;
    for (size_t floats = FIRST; more > 0; floats *= GROWTH) {
        floats = floats < LARGEST ? floats : LARGEST;
        HPCT_TRY(exchange(m, floats, floats < LARGEST ? TRY_SECONDS : RATE_SECONDS, &one));
        rate = 2 * (double) (floats * sizeof(float)) / one.mean;
        more = floats < LARGEST && one.mean < SLOW_SECONDS / GROWTH;
        if (m->starts)
            HPCT_TRY(send(m, SMALL, more));
        else
            HPCT_TRY(receive(m, &more));
    }
    pair->latency_seconds = fmin(pair->latency_seconds, latency);
    pair->bytes_per_second = fmax(pair->bytes_per_second, rate);
    return m->comm->ops->drain(m->out);
}

/* ---- all of a rank ---- */

static hpct_status meet_all(const meeting *meetings, int rounds, hpct_cost_pair *pairs)
{
    for (int pass = 0; pass < PASSES; pass++) {
        for (int round = 0; round < rounds; round++) {
            if (pairs[round].node >= 0)
                HPCT_TRY(measure_pair(&meetings[round], &pairs[round]));
        }
    }
    return HPCT_OK;
}

hpct_status hpct_cost_pairs_measure(hpct_comm *comm, const int *leaders, int nodes, int node,
                                    hpct_cost_pair *pairs)
{
    meeting meetings[HPCT_COST_PAIRS_MOST] = {{0}};
    int rounds = hpct_cost_pairs_rounds(nodes);
    hpct_status status = HPCT_OK;
    for (int round = 0; round < rounds; round++) {
        int other = node >= 0 ? hpct_cost_pairs_partner(nodes, round, node) : -1;
        pairs[round] = (hpct_cost_pair){.node = other, .latency_seconds = INFINITY};
        if (other >= 0 && status == HPCT_OK)
            status = open_meeting(&meetings[round], comm, leaders[other], node < other);
    }
    status = hpct_comm_agree(comm, status, "measure its links");
    if (status == HPCT_OK)
        status = meet_all(meetings, rounds, pairs);
    for (int round = 0; round < rounds; round++)
        close_meeting(&meetings[round]);
    return status;
}
