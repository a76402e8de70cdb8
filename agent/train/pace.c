/* How long the parts of a step take on each rank, known to all ranks every few seconds: for
 * pace.jsonl and status.json, and to name a node that is slow. Parameter servers learn it from
 * their workers instead (agent/ps/pace.h), and write the same file. */
#include "agent/comm/comm.h"
#include "agent/rank/context.h"
#include "agent/rank/node_state.h"
#include "agent/train/observer.h"
#include "agent/train/pace_file.h"
#include "agent/train/slow_nodes.h"
#include "base/process.h"
#include "base/status.h"
#include "nn/run/step.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_STEPS 10 /* the first ones are slower */
#define INTERVAL 5     /* seconds */
#define NAME_BYTES 256
#define TIME HPCT_TRAIN_PACE_PARTS /* of rank 0's clock, gathered with them */
#define BUSY (HPCT_TRAIN_PACE_PARTS + 1)
#define VALUES (HPCT_TRAIN_PACE_PARTS + 2)

typedef struct observed {
    hpct_comm *comm;         /* NULL: parameter servers */
    const hpct_model *model; /* whose device may be busy */
    bool waits_apart;        /* where waiting for others is not part of computing */
    double sums[VALUES];
    int64_t steps, planned; /* since the last time, and until the next */
    double *gathered;       /* [ranks][VALUES] */
    double *busy;           /* [ranks] */
    char *names;            /* [ranks][NAME_BYTES] */
    const char **nodes;     /* [ranks] */
    hpct_train_slow_nodes slow;
    hpct_rank_node_state *before; /* of this rank's node, since it is slow */
    hpct_train_pace_file *file;   /* rank 0 with log_dir */
} observed;

/* ---- opening ---- */

static hpct_status allocate(observed *p)
{
    size_t ranks = (size_t) p->comm->size;
    p->gathered = calloc(ranks * VALUES, sizeof *p->gathered);
    p->busy = calloc(ranks, sizeof *p->busy);
    p->names = calloc(ranks, NAME_BYTES);
    p->nodes = calloc(ranks, sizeof *p->nodes);
    if (p->gathered == NULL || p->busy == NULL || p->names == NULL || p->nodes == NULL)
        return hpct_fail_memory(ranks * NAME_BYTES);
    for (size_t rank = 0; rank < ranks; rank++)
        p->nodes[rank] = p->names + rank * NAME_BYTES;
    return hpct_train_slow_nodes_open(&p->slow, p->nodes, p->comm->size);
}

static hpct_status begin(void *own, hpct_train_training *t)
{
    observed *p = own;
    char name[NAME_BYTES];
    if (t->strategy == NULL) /* parameter servers: without names of nodes nothing is left to do */
        return t->nodes != NULL
                   ? hpct_train_pace_file_open(&p->file, t->options.log_dir, t->continues)
                   : HPCT_OK;
    p->comm = hpct_context_comm(t->context);
    p->model = t->strategy->model;
    p->waits_apart = !t->strategy->ops->in_pieces && !t->strategy->whole_steps;
    p->planned = FIRST_STEPS;
    snprintf(name, sizeof name, "%s", t->host);
    HPCT_TRY(hpct_context_agree(t->context, allocate(p)));
    HPCT_TRY(p->comm->ops->allgather(p->comm, name, p->names, sizeof name));
    hpct_train_slow_nodes_number(&p->slow);
    t->nodes = p->nodes;
    return t->leads ? hpct_train_pace_file_open(&p->file, t->options.log_dir, t->continues)
                    : HPCT_OK;
}

/* From now on lines go to the file, which replaces that of an earlier run. */
static hpct_status settle(void *own, hpct_train_training *t)
{
    const observed *p = own;
    (void) t;
    hpct_train_pace_file_settle(p->file);
    return HPCT_OK;
}

static void close_pace(void *own, hpct_train_training *t)
{
    observed *p = own;
    (void) t;
    hpct_train_pace_file_close(p->file);
    hpct_rank_node_state_free(p->before);
    free(p->gathered);
    free(p->busy);
    free(p->names);
    free(p->nodes);
    hpct_train_slow_nodes_close(&p->slow);
}

hpct_train_pace_file *hpct_train_observed_pace_file(const hpct_train_training *t)
{
    const observed *p = hpct_train_observed(t, &hpct_train_observe_pace);
    return p != NULL ? p->file : NULL;
}

/* ---- slow nodes ---- */

/* The node's first rank tells what it sees of its node. */
static hpct_status name_node(observed *p, int node, double ratio)
{
    char phrase[HPCT_RANK_NODE_PHRASE] = "";
    int teller = hpct_train_slow_nodes_first(&p->slow, node);
    hpct_rank_node_state *now;
    if (p->comm->rank == teller && p->before != NULL &&
        hpct_rank_node_state_take(&now) == HPCT_OK) {
        hpct_rank_node_change change;
        hpct_rank_node_state_compare(&change, p->before, now);
        hpct_rank_node_change_describe(&change, phrase);
        hpct_rank_node_state_free(now);
    }
    HPCT_TRY(p->comm->ops->broadcast(p->comm, phrase, sizeof phrase, teller));
    phrase[sizeof phrase - 1] = '\0';
    if (p->comm->rank == 0)
        hpct_train_slow_nodes_say(&p->slow, node, ratio, phrase);
    return HPCT_OK;
}

/* All ranks come to the same verdicts: times are rank 0's. */
static hpct_status find_slow_nodes(observed *p, double now)
{
    if (!p->waits_apart || p->slow.num_nodes < 2)
        return HPCT_OK;
    hpct_train_slow_nodes_fill(&p->slow);
    for (int node = 0; node < p->slow.num_nodes; node++) {
        double ratio;
        enum hpct_train_slow_verdict verdict =
            hpct_train_slow_nodes_heed(&p->slow, node, now, &ratio);
        if (verdict == HPCT_TRAIN_SLOW_BEGINS &&
            p->comm->rank == hpct_train_slow_nodes_first(&p->slow, node)) {
            hpct_rank_node_state_free(p->before);
            if (hpct_rank_node_state_take(&p->before) != HPCT_OK)
                p->before = NULL; /* then nothing is known of the reason */
        }
        if (verdict == HPCT_TRAIN_SLOW_NAMED)
            HPCT_TRY(name_node(p, node, ratio));
    }
    return HPCT_OK;
}

/* ---- steps ---- */

static void spread(observed *p)
{
    for (int rank = 0; rank < p->comm->size; rank++) {
        p->busy[rank] = p->gathered[(size_t) rank * VALUES + BUSY];
        for (int part = 0; part < HPCT_TRAIN_PACE_PARTS; part++)
            hpct_train_slow_nodes_part(&p->slow, part)[rank] =
                p->gathered[(size_t) rank * VALUES + (size_t) part];
    }
}

/* As many steps as take a few seconds on the slowest rank. */
static void plan_next(observed *p)
{
    double slowest = 0;
    for (int rank = 0; rank < p->comm->size; rank++)
        slowest = fmax(slowest, p->slow.known[rank]);
    p->planned = slowest > 0 ? (int64_t) fmin(fmax(1e3 * INTERVAL / slowest, 1), 1e6) : FIRST_STEPS;
    p->steps = 0;
    memset(p->sums, 0, sizeof p->sums);
}

static hpct_status gather(observed *p)
{
    double mine[VALUES];
    for (int part = 0; part < HPCT_TRAIN_PACE_MEMORY; part++)
        mine[part] = 1e3 * p->sums[part] / (double) p->steps;
    mine[HPCT_TRAIN_PACE_MEMORY] = hpct_process_peak_mb();
    mine[TIME] = hpct_process_clock();
    mine[BUSY] = hpct_model_device_busy(p->model);
    HPCT_TRY(p->comm->ops->allgather(p->comm, mine, p->gathered, sizeof mine));
    spread(p);
    return HPCT_OK;
}

/* Collective every few seconds and at the end of epochs, after the same steps on all ranks. */
static hpct_status step_ended(void *own, hpct_train_training *t)
{
    observed *p = own;
    const hpct_train_moment *now = &t->now;
    if (p->comm == NULL)
        return HPCT_OK;
    for (int part = 0; part < HPCT_TRAIN_PACE_MEMORY; part++)
        p->sums[part] += now->times.parts[part];
    if (++p->steps < p->planned && now->sums.steps < now->planned)
        return HPCT_OK;
    HPCT_TRY(gather(p));
    hpct_train_pace_file_write(p->file, hpct_train_observed_live(t), now->epoch + 1,
                               now->sums.steps, p->steps, p->slow.known, p->busy, p->comm->size);
    plan_next(p);
    return find_slow_nodes(p, p->gathered[TIME]);
}

const hpct_train_observer hpct_train_observe_pace = {
    .size = sizeof(observed),
    .on = {[HPCT_TRAIN_ON_BEGIN] = begin,
           [HPCT_TRAIN_ON_STEP_ENDED] = step_ended,
           [HPCT_TRAIN_ON_SETTLED] = settle},
    .close = close_pace,
};
