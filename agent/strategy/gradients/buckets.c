/* Buckets of gradients: their plan, and one step. */
#include "agent/strategy/gradients/buckets.h"

#include "base/process.h"
#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LINE 16       /* floats in a cache line */
#define MANY_RANKS 32 /* above, ranks form a square grid instead of all pairs */
#define NODE_BYTES 64 /* compared prefix of a node's name */

struct hpct_grad_buckets {
    hpct_grad_buckets_options options;
    hpct_comm *comm;
    const hpct_comm_ops *ops;
    hpct_wire wire;
    int num;
    size_t ends[HPCT_GRAD_BUCKETS_MOST];
    hpct_comm_reduction *reductions[HPCT_GRAD_BUCKETS_MOST];
    hpct_comm_reduction *sums;
    int started, ended; /* numbers of reductions in this step; some between them may be done */
    bool done[HPCT_GRAD_BUCKETS_MOST];
    double began[HPCT_GRAD_BUCKETS_MOST]; /* for the timeline only */
};

/* ---- the plan ---- */

int hpct_grad_buckets_plan(size_t ends[HPCT_GRAD_BUCKETS_MOST], size_t count, size_t bucket_bytes,
                           int ranks, const hpct_comm_network *network)
{
    if (bucket_bytes > sizeof(float))
        bucket_bytes -= bucket_bytes % sizeof(float);
    double bytes = hpct_comm_network_bucket_bytes(network, ranks, (double) (count * sizeof(float)),
                                                  (double) bucket_bytes);
    size_t each = ((size_t) ceil(bytes / sizeof(float)) + LINE - 1) / LINE * LINE;
    int num = 0;
    for (size_t end = 0; end < count || num == 0; num++) {
        end = each < count - end ? end + each : count;
        ends[num] = end;
    }
    return num;
}

/* ---- groups of ranks ---- */

hpct_status hpct_grad_buckets_groups(hpct_context *context, hpct_wire wire, int *groups,
                                     bool *grouped)
{
    hpct_comm *comm = hpct_context_comm(context);
    size_t size = (size_t) comm->size;
    hpct_status status;
    char mine[NODE_BYTES] = "",
         *nodes = hpct_context_allocate(context, size * sizeof mine, &status);
    int num = 0;
    *grouped = false;
    strncpy(mine, hpct_context_node(context), sizeof mine - 1);
    if (status == HPCT_OK)
        status = comm->ops->allgather(comm, mine, nodes, sizeof mine);
    for (size_t rank = 0; rank < size && status == HPCT_OK; rank++) {
        size_t same = 0;
        while (memcmp(nodes + same * sizeof mine, nodes + rank * sizeof mine, sizeof mine) != 0)
            same++;
        groups[rank] = same < rank ? groups[same] : num++;
    }
    *grouped = num > 1 && num < comm->size;
    if (num == comm->size && num > MANY_RANKS && wire == HPCT_WIRE_FP32) {
        int side = (int) sqrt((double) num);
        for (int rank = 0; rank < num; rank++)
            groups[rank] = (int) ((long) rank * side / num);
        *grouped = true;
    }
    free(nodes);
    return status;
}

/* ---- open and close ---- */

static hpct_status prepare_all(hpct_grad_buckets *b, hpct_context *context, const int *groups)
{
    hpct_comm *comm = hpct_context_comm(context);
    const hpct_grad_buckets_options *o = &b->options;
    hpct_status status = HPCT_OK;
    int num = b->num + (o->sums > 0);
    for (int i = 0; i < num && status == HPCT_OK; i++) {
        size_t begin = i == 0 ? 0 : b->ends[i - 1];
        hpct_comm_reduction_options options = {
            .data = o->gradients + begin,
            .count = i < b->num ? b->ends[i] - begin : 0,
            .exact = i >= b->num - 1 ? (size_t) o->sums : 0,
            .wire = b->wire,
            .groups = groups,
        };
        status = b->ops->prepare(comm, i < b->num ? &b->reductions[i] : &b->sums, &options);
    }
    return hpct_context_agree(context, status);
}

hpct_status hpct_grad_buckets_open(hpct_grad_buckets **out, hpct_context *context,
                                   const hpct_grad_buckets_options *options)
{
    hpct_comm_network network = {0};
    hpct_comm *comm = hpct_context_comm(context);
    size_t size = (size_t) comm->size;
    bool grouped = false;
    int *groups = calloc(size, sizeof *groups);
    hpct_grad_buckets *b = calloc(1, sizeof *b);
    hpct_status status = hpct_context_agree(
        context, b == NULL || groups == NULL ? hpct_fail_memory(sizeof *b) : HPCT_OK);
    if (status == HPCT_OK && options->strategy->bucket_bytes == 0) /* else the size is given */
        status = hpct_context_network(context, &network);
    if (status == HPCT_OK)
        status = hpct_grad_buckets_groups(context, options->strategy->wire, groups, &grouped);
    if (status != HPCT_OK)
        goto fail;
    b->options = *options;
    b->options.strategy = NULL; /* may not outlive open */
    b->wire = options->strategy->wire;
    b->comm = comm;
    b->ops = comm->ops;
    b->num = hpct_grad_buckets_plan(b->ends, options->count, options->strategy->bucket_bytes,
                                    comm->size, &network);
    status = prepare_all(b, context, grouped ? groups : NULL);
    if (status != HPCT_OK)
        goto fail;
    free(groups);
    *out = b;
    return HPCT_OK;

fail:
    free(groups);
    hpct_grad_buckets_close(b);
    return status;
}

void hpct_grad_buckets_close(hpct_grad_buckets *b)
{
    if (b == NULL)
        return;
    for (int i = 0; i < b->num; i++) {
        if (b->reductions[i] != NULL)
            b->ops->release(b->reductions[i]);
    }
    if (b->sums != NULL)
        b->ops->release(b->sums);
    free(b);
}

/* Received parts of the slice, within groups and across them, take at most the slice's size;
 * encoded parts come in addition. */
size_t hpct_grad_buckets_need(size_t gradient_bytes, hpct_wire wire)
{
    return wire == HPCT_WIRE_FP32 ? 2 * gradient_bytes : 2 * gradient_bytes + gradient_bytes / 2;
}

/* ---- a step ---- */

static hpct_status start_next(hpct_grad_buckets *b)
{
    int i = b->started++;
    b->done[i] = false;
    b->began[i] = hpct_rank_timeline_now(b->options.timeline);
    return b->ops->start(b->reductions[i]);
}

static void note_done(hpct_grad_buckets *b)
{
    for (int i = b->ended; i < b->started; i++) {
        if (b->done[i] || !b->ops->is_done(b->reductions[i]))
            continue;
        b->done[i] = true;
        hpct_rank_timeline_add(b->options.timeline, HPCT_RANK_TIMELINE_REDUCTION, i, b->began[i]);
    }
    while (b->ended < b->started && b->done[b->ended])
        b->ended++;
}

/* Progresses all reductions that have been started. */
static hpct_status move(hpct_grad_buckets *b)
{
    if (b->ended == b->started)
        return HPCT_OK;
    HPCT_TRY(b->ops->progress(b->comm));
    note_done(b);
    return HPCT_OK;
}

hpct_status hpct_grad_buckets_advance(hpct_grad_buckets *b, size_t done)
{
    while (b->started < b->num - 1 && b->ends[b->started] <= done)
        HPCT_TRY(start_next(b));
    return move(b);
}

hpct_status hpct_grad_buckets_finish(hpct_grad_buckets *b)
{
    hpct_status status = HPCT_OK;
    while (b->started < b->num && status == HPCT_OK)
        status = start_next(b);
    while (b->ended < b->num && status == HPCT_OK) { /* on a GPU its stream waits, not the host */
        status = b->ops->wait(b->reductions[b->ended]);
        if (status == HPCT_OK)
            note_done(b);
    }
    b->started = b->ended = 0;
    return status;
}

hpct_status hpct_grad_buckets_sums(hpct_grad_buckets *b)
{
    HPCT_TRY(b->ops->start(b->sums));
    return b->ops->wait(b->sums);
}

size_t hpct_grad_buckets_bytes(const hpct_grad_buckets *b)
{
    size_t number = b->wire == HPCT_WIRE_FP32 ? sizeof(float) : sizeof(float) / 2;
    return b->options.count * number + hpct_grad_buckets_sum_bytes(b);
}

size_t hpct_grad_buckets_sum_bytes(const hpct_grad_buckets *b)
{
    return (size_t) b->options.sums * sizeof(float);
}
