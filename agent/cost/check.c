/* Measures all nodes at the same time, as they would train: first the links and scratch folders, by
 * one rank of each node, then all cores. Last, because what the kernel tells of the CPUs' clock is
 * of that moment. */
#include "agent/comm/comm.h"
#include "agent/cost/nodes.h"
#include "agent/cost/nodes_report.h"
#include "agent/cost/pairs.h"
#include "agent/cost/scratch.h"
#include "agent/rank/context.h"
#include "agent/rank/node_state.h"
#include "agent/rank/threads.h"
#include "base/memory.h"
#include "base/output.h"
#include "base/progress.h"
#include "base/status.h"
#include "nn/backend/cpu/backend.h"
#include "nn/run/step.h"

#include <hpctrain/check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS 3 /* of computing; their median counts */
#define ROUND_SECONDS 0.25
#define ARRAY_BYTES ((size_t) 192 << 20) /* at least, of all arrays of the triad, */
#define MOST_ARRAY_BYTES ((size_t) 1 << 30)
#define CACHES 4       /* and so many times the last cache, */
#define MEMORY_SHARE 4 /* but no more than this part of the rank's memory */
#define NAMES 256

/* What a rank has measured; all-gathered. */
typedef struct record {
    double flops, bytes; /* per second */
    double scratch;      /* of the node's first rank; the others' is NAN */
    int threads;
    hpct_cost_pair pairs[HPCT_COST_PAIRS_MOST];
    char state[HPCT_COST_NODE_TEXT], why[HPCT_COST_NODE_TEXT];
} record;

typedef struct check {
    hpct_context *context;
    hpct_comm *comm;
    int num;      /* of nodes */
    int *nodes;   /* [size] by rank */
    int *leaders; /* [num] first rank of each */
    bool linked;  /* links are measured */
    hpct_rank_node_state *before, *after;
    record mine, *all; /* all: [size] */
    hpct_cost_node_row *rows;
    hpct_cost_pair *pairs; /* [num][rounds] */
    double medians[HPCT_COST_FIGURES];
} check;

static void check_free(check *c)
{
    hpct_rank_node_state_free(c->before);
    hpct_rank_node_state_free(c->after);
    free(c->nodes);
    free(c->leaders);
    free(c->all);
    free(c->rows);
    free(c->pairs);
}

static hpct_status allocate(check *c)
{
    size_t size = (size_t) c->comm->size;
    c->nodes = calloc(size, sizeof *c->nodes);
    c->leaders = calloc(size, sizeof *c->leaders);
    c->all = calloc(size, sizeof *c->all);
    c->rows = calloc(size, sizeof *c->rows);
    c->pairs = calloc(size * HPCT_COST_PAIRS_MOST, sizeof *c->pairs);
    bool fine = c->nodes != NULL && c->leaders != NULL && c->all != NULL && c->rows != NULL &&
                c->pairs != NULL;
    return fine ? HPCT_OK : hpct_fail_memory(size * sizeof *c->all);
}

/* ---- nodes ---- */

static int find_node(const check *c, const char *name)
{
    int node = 0;
    while (node < c->num && strcmp(c->rows[node].name, name) != 0)
        node++;
    return node;
}

/* Nodes in the order of their first ranks. */
static hpct_status find_nodes(check *c)
{
    hpct_status status;
    char mine[HPCT_COST_NODE_NAME] = "";
    char *all = hpct_context_allocate(c->context, (size_t) c->comm->size * sizeof mine, &status);
    snprintf(mine, sizeof mine, "%s", hpct_context_node(c->context));
    if (status == HPCT_OK)
        status = c->comm->ops->allgather(c->comm, mine, all, sizeof mine);
    for (int rank = 0; rank < c->comm->size && status == HPCT_OK; rank++) {
        const char *name = all + (size_t) rank * sizeof mine;
        int node = find_node(c, name);
        if (node == c->num) {
            c->leaders[c->num++] = rank;
            memcpy(c->rows[node].name, name, sizeof mine);
        }
        c->nodes[rank] = node;
    }
    free(all);
    return status;
}

static bool leads(const check *c)
{
    return c->leaders[c->nodes[c->comm->rank]] == c->comm->rank;
}

/* ---- measuring ---- */

static size_t array_bytes(void)
{
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    size_t bytes = cache > 0 ? CACHES * (size_t) cache : 0;
    size_t share = hpct_memory_share_now().bytes / MEMORY_SHARE;
    bytes = bytes > ARRAY_BYTES ? bytes : ARRAY_BYTES;
    bytes = bytes < MOST_ARRAY_BYTES ? bytes : MOST_ARRAY_BYTES;
    return bytes < share ? bytes : share;
}

static double middle(const double v[ROUNDS])
{
    return fmax(fmin(v[0], v[1]), fmin(fmax(v[0], v[1]), v[2]));
}

/* All ranks begin each round together. */
static hpct_status compute(check *c)
{
    hpct_cpu_meter *meter = NULL;
    hpct_backend_rates rates = {0};
    double flops[ROUNDS], bytes[ROUNDS];
    hpct_status status = hpct_cpu_meter_open(&meter, array_bytes());
    for (int i = 0; i < ROUNDS; i++) {
        status = hpct_context_agree(c->context, status);
        if (status != HPCT_OK)
            break;
        status = hpct_cpu_meter_run(meter, ROUND_SECONDS, &rates);
        flops[i] = rates.flops;
        bytes[i] = rates.bytes;
    }
    if (status == HPCT_OK) {
        c->mine.flops = middle(flops);
        c->mine.bytes = middle(bytes);
        c->mine.threads = hpct_cpu_threads();
    }
    hpct_cpu_meter_close(meter);
    return status;
}

static void measure_scratch(check *c)
{
    c->mine.scratch = NAN;
    if (leads(c))
        c->mine.scratch =
            hpct_cost_scratch_measure(hpct_cost_scratch_folder(), c->mine.why, sizeof c->mine.why);
}

static hpct_status measure(check *c)
{
    hpct_rank_node_change change;
    int node = leads(c) ? c->nodes[c->comm->rank] : -1;
    HPCT_TRY(hpct_context_agree(c->context, hpct_rank_node_state_take(&c->before)));
    if (c->linked)
        HPCT_TRY(hpct_cost_pairs_measure(c->comm, c->leaders, c->num, node, c->mine.pairs));
    HPCT_TRY(hpct_context_agree(c->context, HPCT_OK)); /* links do not disturb disks */
    measure_scratch(c);
    hpct_status status = compute(c);
    if (status == HPCT_OK)
        status = hpct_rank_node_state_take(&c->after);
    HPCT_TRY(hpct_context_agree(c->context, status));
    hpct_rank_node_state_compare(&change, c->before, c->after);
    hpct_rank_node_change_describe(&change, c->mine.state);
    return c->comm->ops->allgather(c->comm, &c->mine, c->all, sizeof c->mine);
}

/* ---- rows ---- */

/* A step waits for the slowest rank: its figures are the node's. */
static void add_rank(check *c, int rank)
{
    const record *r = &c->all[rank];
    hpct_cost_node_row *row = &c->rows[c->nodes[rank]];
    double *figures = row->figures;
    if (row->ranks++ == 0 || r->flops < figures[HPCT_COST_FIGURE_COMPUTE]) {
        figures[HPCT_COST_FIGURE_COMPUTE] = r->flops;
        row->threads = r->threads;
        memcpy(row->state, r->state, sizeof row->state);
    }
    if (row->ranks == 1 || r->bytes < figures[HPCT_COST_FIGURE_MEMORY])
        figures[HPCT_COST_FIGURE_MEMORY] = r->bytes;
}

/* A node is as fast as its best link: a slow one may be the fault of the other node. */
static void add_links(check *c, int node, int rounds)
{
    double *figures = c->rows[node].figures;
    figures[HPCT_COST_FIGURE_LATENCY] = figures[HPCT_COST_FIGURE_LINK] = NAN;
    for (int round = 0; round < rounds; round++) {
        const hpct_cost_pair *pair = &c->pairs[node * rounds + round];
        if (pair->node < 0)
            continue;
        const hpct_cost_pair *back = &c->pairs[pair->node * rounds + round];
        figures[HPCT_COST_FIGURE_LATENCY] = fmin(
            figures[HPCT_COST_FIGURE_LATENCY], fmin(pair->latency_seconds, back->latency_seconds));
        figures[HPCT_COST_FIGURE_LINK] = fmax(figures[HPCT_COST_FIGURE_LINK],
                                              fmax(pair->bytes_per_second, back->bytes_per_second));
    }
}

/* The same on all ranks. */
static hpct_status compare_nodes(check *c, int rounds)
{
    for (int rank = 0; rank < c->comm->size; rank++)
        add_rank(c, rank);
    for (int node = 0; node < c->num; node++) {
        const record *r = &c->all[c->leaders[node]];
        c->rows[node].figures[HPCT_COST_FIGURE_SCRATCH] = r->scratch;
        memcpy(c->rows[node].scratch, r->why, sizeof r->why);
        memcpy(c->pairs + node * rounds, r->pairs, (size_t) rounds * sizeof *r->pairs);
    }
    for (int node = 0; node < c->num; node++)
        add_links(c, node, rounds);
    return hpct_cost_nodes_judge(c->rows, c->num, c->medians);
}

static hpct_status report(const check *c, int rounds, FILE *stream, const char *json)
{
    const hpct_cost_nodes_report r = {
        .rows = c->rows, .num = c->num, .medians = c->medians, .pairs = c->pairs, .rounds = rounds};
    if (hpct_context_rank(c->context) != 0)
        return HPCT_OK;
    if (stream != NULL)
        hpct_cost_nodes_print(&r, stream);
    return json != NULL ? hpct_cost_nodes_write(&r, json) : HPCT_OK;
}

static hpct_status refuse_slow(const check *c)
{
    char names[NAMES];
    int slow = hpct_cost_nodes_slow(c->rows, c->num, names, sizeof names);
    return slow == 0 ? HPCT_OK
                     : hpct_fail(HPCT_ERR_PEER,
                                 "%d of %d nodes %s slow: %s; srun --exclude leaves nodes out",
                                 slow, c->num, slow == 1 ? "is" : "are", names);
}

static hpct_status check_all(check *c, FILE *stream, const char *json)
{
    bool writes = json != NULL && hpct_context_rank(c->context) == 0;
    hpct_status status = allocate(c);
    if (status == HPCT_OK && writes)
        status = hpct_output_try(json, 0);
    HPCT_TRY(hpct_context_agree(c->context, status));
    HPCT_TRY(hpct_rank_threads_set(c->context));
    HPCT_TRY(find_nodes(c));
    c->linked = c->num > 1 && c->comm->ops->of_hosts;
    HPCT_TRY(measure(c));
    int rounds = c->linked ? hpct_cost_pairs_rounds(c->num) : 0;
    status = compare_nodes(c, rounds);
    if (status == HPCT_OK)
        status = report(c, rounds, stream, json);
    HPCT_TRY(hpct_context_agree(c->context, status));
    return hpct_context_agree(c->context, refuse_slow(c));
}

hpct_status hpct_check_nodes(hpct_context *context, FILE *stream, const char *json)
{
    check c = {.context = context, .comm = hpct_context_comm(context)};
    if (hpct_context_is_apart(context))
        return hpct_fail(HPCT_ERR_USAGE, "nodes are compared by ranks that step together, which "
                                         "those of --strategy parameter-server do not");
    hpct_waits before = hpct_enter_wait(HPCT_WAITS_FOR_NOBODY);
    hpct_status status = check_all(&c, stream, json);
    hpct_enter_wait(before);
    check_free(&c);
    return status;
}
