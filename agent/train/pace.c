/* Sums of steps, gathered after as many steps as take a few seconds. */
#include "agent/train/pace.h"

#include "agent/rank/node_state.h"
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
#define TIME HPCT_PACE_PARTS /* of rank 0's clock, gathered with them */
#define BUSY (HPCT_PACE_PARTS + 1)
#define VALUES (HPCT_PACE_PARTS + 2)

struct hpct_pace {
    hpct_context *context;
    hpct_comm *comm;
    hpct_pace_options options;
    double sums[VALUES];
    int64_t steps, planned; /* since the last time, and until the next */
    double *gathered;       /* [ranks][VALUES] */
    double *known;          /* [HPCT_PACE_PARTS][ranks] */
    double *busy;           /* [ranks] */
    char *names;            /* [ranks][NAME_BYTES] */
    const char **nodes;     /* [ranks] */
    hpct_slow_nodes slow;
    hpct_node_state *before; /* of this rank's node, since it is slow */
    hpct_pace_file *file;    /* rank 0 with log_dir */
};

/* ---- opening ---- */

static hpct_status allocate(hpct_pace *p)
{
    size_t ranks = (size_t) p->comm->size;
    p->gathered = calloc(ranks * VALUES, sizeof *p->gathered);
    p->known = calloc(ranks * HPCT_PACE_PARTS, sizeof *p->known);
    p->busy = calloc(ranks, sizeof *p->busy);
    p->names = calloc(ranks, NAME_BYTES);
    p->nodes = calloc(ranks, sizeof *p->nodes);
    if (p->gathered == NULL || p->known == NULL || p->busy == NULL || p->names == NULL ||
        p->nodes == NULL)
        return hpct_fail_memory(ranks * NAME_BYTES);
    for (size_t rank = 0; rank < ranks; rank++)
        p->nodes[rank] = p->names + rank * NAME_BYTES;
    return hpct_slow_nodes_open(&p->slow, p->nodes, p->comm->size);
}

static hpct_status open_file(hpct_pace *p)
{
    return hpct_pace_file_open(&p->file, p->comm->rank == 0 ? p->options.log_dir : NULL,
                               p->options.continues);
}

void hpct_pace_settle(hpct_pace *pace)
{
    if (pace != NULL)
        hpct_pace_file_settle(pace->file);
}

hpct_status hpct_pace_open(hpct_pace **out, hpct_context *context, const hpct_pace_options *options)
{
    char name[NAME_BYTES];
    hpct_pace *p = calloc(1, sizeof *p);
    HPCT_TRY(hpct_context_agree(context, p != NULL ? HPCT_OK : hpct_fail_memory(sizeof *p)));
    p->context = context;
    p->comm = hpct_context_comm(context);
    p->options = *options;
    p->planned = FIRST_STEPS;
    snprintf(name, sizeof name, "%s", hpct_context_node(context));
    hpct_status status = hpct_context_agree(context, allocate(p));
    if (status == HPCT_OK)
        status = p->comm->ops->allgather(p->comm, name, p->names, sizeof name);
    if (status == HPCT_OK)
        status = hpct_context_agree(context, open_file(p));
    if (status != HPCT_OK) {
        hpct_pace_close(p);
        return status;
    }
    hpct_slow_nodes_number(&p->slow);
    *out = p;
    return HPCT_OK;
}

void hpct_pace_close(hpct_pace *p)
{
    if (p == NULL)
        return;
    hpct_pace_file_close(p->file);
    hpct_node_state_free(p->before);
    free(p->gathered);
    free(p->known);
    free(p->busy);
    free(p->names);
    free(p->nodes);
    hpct_slow_nodes_close(&p->slow);
    free(p);
}

/* ---- slow nodes ---- */

/* The node's first rank tells what it sees of its node. */
static hpct_status name_node(hpct_pace *p, int node, double ratio)
{
    char phrase[HPCT_NODE_PHRASE] = "";
    int teller = hpct_slow_nodes_first(&p->slow, node);
    hpct_node_state *now;
    if (p->comm->rank == teller && p->before != NULL && hpct_node_state_take(&now) == HPCT_OK) {
        hpct_node_change change;
        hpct_node_state_compare(&change, p->before, now);
        hpct_node_change_describe(&change, phrase);
        hpct_node_state_free(now);
    }
    HPCT_TRY(p->comm->ops->broadcast(p->comm, phrase, sizeof phrase, teller));
    phrase[sizeof phrase - 1] = '\0';
    if (p->options.speaks)
        hpct_slow_nodes_say(&p->slow, node, ratio, phrase);
    return HPCT_OK;
}

/* All ranks come to the same verdicts: times are rank 0's. */
static hpct_status judge(hpct_pace *p, double now)
{
    if (!p->options.waits_apart || p->slow.num_nodes < 2)
        return HPCT_OK;
    hpct_slow_nodes_fill(&p->slow, p->known);
    for (int node = 0; node < p->slow.num_nodes; node++) {
        double ratio;
        enum hpct_slow_verdict verdict = hpct_slow_nodes_heed(&p->slow, node, now, &ratio);
        if (verdict == HPCT_SLOW_BEGINS && p->comm->rank == hpct_slow_nodes_first(&p->slow, node)) {
            hpct_node_state_free(p->before);
            if (hpct_node_state_take(&p->before) != HPCT_OK)
                p->before = NULL; /* then nothing is known of the reason */
        }
        if (verdict == HPCT_SLOW_NAMED)
            HPCT_TRY(name_node(p, node, ratio));
    }
    return HPCT_OK;
}

/* ---- steps ---- */

const double *hpct_pace_known(const hpct_pace *pace, hpct_pace_part part)
{
    return pace->known + (size_t) part * (size_t) pace->comm->size;
}

const double *hpct_pace_busy(const hpct_pace *pace)
{
    return pace->busy;
}

const char *const *hpct_pace_nodes(const hpct_pace *pace)
{
    return pace->nodes;
}

static void spread(hpct_pace *p)
{
    for (int rank = 0; rank < p->comm->size; rank++) {
        p->busy[rank] = p->gathered[(size_t) rank * VALUES + BUSY];
        for (int part = 0; part < HPCT_PACE_PARTS; part++)
            p->known[(size_t) part * (size_t) p->comm->size + (size_t) rank] =
                p->gathered[(size_t) rank * VALUES + (size_t) part];
    }
}

/* As many steps as take a few seconds on the slowest rank. */
static void plan_next(hpct_pace *p)
{
    double slowest = 0;
    for (int rank = 0; rank < p->comm->size; rank++)
        slowest = fmax(slowest, hpct_pace_known(p, HPCT_PACE_STEP)[rank]);
    p->planned = slowest > 0 ? (int64_t) fmin(fmax(1e3 * INTERVAL / slowest, 1), 1e6) : FIRST_STEPS;
    p->steps = 0;
    memset(p->sums, 0, sizeof p->sums);
}

hpct_status hpct_pace_step(hpct_pace *p, const double *seconds, int epoch, int64_t step,
                           bool epoch_ended, bool *known)
{
    double mine[VALUES];
    *known = false;
    if (p == NULL)
        return HPCT_OK;
    for (int part = 0; part < HPCT_PACE_MEMORY; part++)
        p->sums[part] += seconds[part];
    if (++p->steps < p->planned && !epoch_ended)
        return HPCT_OK;
    for (int part = 0; part < HPCT_PACE_MEMORY; part++)
        mine[part] = 1e3 * p->sums[part] / (double) p->steps;
    mine[HPCT_PACE_MEMORY] = hpct_process_peak_mb();
    mine[TIME] = hpct_process_clock();
    mine[BUSY] = p->options.model != NULL ? hpct_model_device_busy(p->options.model) : NAN;
    HPCT_TRY(p->comm->ops->allgather(p->comm, mine, p->gathered, sizeof mine));
    spread(p);
    hpct_pace_file_write(p->file, epoch, step, p->steps, p->known, p->comm->size);
    plan_next(p);
    *known = true;
    return judge(p, p->gathered[TIME]);
}
