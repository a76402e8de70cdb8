/* Sums of steps, gathered after as many steps as take a few seconds. */
#include "agent/train/pace.h"

#include "agent/rank/node_state.h"
#include "agent/train/slow.h"
#include "base/process.h"
#include "base/status.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FILE_NAME "pace.jsonl"
#define FIRST_STEPS 10 /* the first ones are slower */
#define INTERVAL 5     /* seconds */
#define NAME_BYTES 256
#define TIME HPCT_PACE_PARTS /* of rank 0's clock, gathered with them */
#define VALUES (HPCT_PACE_PARTS + 1)

static const char *const keys[HPCT_PACE_PARTS] = {
    "step_ms", "input_ms", "forward_ms", "backward_ms", "wait_ms", "update_ms", "memory_mb"};

struct hpct_pace {
    hpct_context *context;
    hpct_comm *comm;
    hpct_pace_options options;
    double sums[VALUES];
    int64_t steps, planned; /* since the last time, and until the next */
    double *gathered;       /* [ranks][VALUES] */
    double *known;          /* [HPCT_PACE_PARTS][ranks] */
    char *names;            /* [ranks][NAME_BYTES] */
    const char **nodes;     /* [ranks] */
    int *node_of;           /* [ranks] index of the node */
    int num_nodes;
    hpct_slow_node *slow;           /* [num_nodes] */
    double *busy, *input, *scratch; /* [num_nodes] */
    hpct_node_state *before;        /* of this rank's node, since it is slow */
    FILE *file; /* in memory at first: an earlier run's file stays until an epoch has ended */
    char *text;
    size_t text_size;
    bool settled;
};

/* ---- opening ---- */

/* Nodes by name; ranks of a node need not be neighbours. */
static void number_nodes(hpct_pace *p)
{
    for (int rank = 0; rank < p->comm->size; rank++) {
        int first = 0;
        p->nodes[rank] = p->names + (size_t) rank * NAME_BYTES;
        while (strcmp(p->nodes[first], p->nodes[rank]) != 0)
            first++;
        p->node_of[rank] = first == rank ? p->num_nodes++ : p->node_of[first];
    }
}

static hpct_status allocate(hpct_pace *p)
{
    size_t ranks = (size_t) p->comm->size;
    p->gathered = calloc(ranks * VALUES, sizeof *p->gathered);
    p->known = calloc(ranks * HPCT_PACE_PARTS, sizeof *p->known);
    p->names = calloc(ranks, NAME_BYTES);
    p->nodes = calloc(ranks, sizeof *p->nodes);
    p->node_of = calloc(ranks, sizeof *p->node_of);
    p->slow = calloc(ranks, sizeof *p->slow);
    p->busy = calloc(ranks, sizeof *p->busy);
    p->input = calloc(ranks, sizeof *p->input);
    p->scratch = calloc(ranks, sizeof *p->scratch);
    return p->gathered != NULL && p->known != NULL && p->names != NULL && p->nodes != NULL &&
                   p->node_of != NULL && p->slow != NULL && p->busy != NULL && p->input != NULL &&
                   p->scratch != NULL
               ? HPCT_OK
               : hpct_fail_memory(ranks * NAME_BYTES);
}

static void path_of(const hpct_pace *p, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/" FILE_NAME, p->options.log_dir);
}

static void complain(const hpct_pace *p)
{
    fprintf(stderr, "hpc-train: %s/" FILE_NAME " cannot be written: %s\n", p->options.log_dir,
            strerror(errno));
}

static void open_file(hpct_pace *p)
{
    char path[PATH_MAX];
    if (p->options.log_dir == NULL || p->comm->rank != 0)
        return;
    path_of(p, path);
    p->settled = p->options.continues;
    p->file = p->settled ? fopen(path, "ae") : open_memstream(&p->text, &p->text_size);
    if (p->file == NULL)
        complain(p);
}

void hpct_pace_settle(hpct_pace *p)
{
    char path[PATH_MAX];
    if (p == NULL || p->file == NULL || p->settled)
        return;
    path_of(p, path);
    fclose(p->file);
    p->file = fopen(path, "we");
    if (p->file == NULL || fwrite(p->text, 1, p->text_size, p->file) != p->text_size)
        complain(p);
    p->settled = true;
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
    if (status != HPCT_OK) {
        hpct_pace_close(p);
        return status;
    }
    number_nodes(p);
    open_file(p);
    *out = p;
    return HPCT_OK;
}

/* A run without an epoch replaces no earlier file. */
static void close_file(hpct_pace *p)
{
    char path[PATH_MAX];
    if (p->file != NULL && !p->settled) {
        path_of(p, path);
        if (access(path, F_OK) != 0)
            hpct_pace_settle(p);
    }
    if (p->file != NULL && fclose(p->file) != 0)
        complain(p);
    free(p->text);
}

void hpct_pace_close(hpct_pace *p)
{
    if (p == NULL)
        return;
    close_file(p);
    hpct_node_state_free(p->before);
    free(p->gathered);
    free(p->known);
    free(p->names);
    free(p->nodes);
    free(p->node_of);
    free(p->slow);
    free(p->busy);
    free(p->input);
    free(p->scratch);
    free(p);
}

/* ---- the file ---- */

static json_t *numbers(const double *values, int count)
{
    json_t *array = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(array, json_real(round(values[i] * 1e4) / 1e4));
    return array;
}

static void write_line(hpct_pace *p, int epoch, int64_t step, int64_t steps)
{
    if (p->file == NULL)
        return;
    json_t *line = json_pack("{s:I,s:i,s:I,s:I}", "time", (json_int_t) time(NULL), "epoch", epoch,
                             "step", (json_int_t) step, "steps", (json_int_t) steps);
    for (int part = 0; part < HPCT_PACE_PARTS && line != NULL; part++)
        json_object_set_new(line, keys[part],
                            numbers(hpct_pace_known(p, (hpct_pace_part) part), p->comm->size));
    char *text = json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(12));
    if (text != NULL && (fprintf(p->file, "%s\n", text) < 0 || fflush(p->file) != 0)) {
        complain(p);
        fclose(p->file);
        p->file = NULL;
    }
    free(text);
    json_decref(line);
}

/* ---- slow nodes ---- */

/* Means over the ranks of each node: of a step without waiting, and of its input. */
static void fill_nodes(hpct_pace *p)
{
    for (int node = 0; node < p->num_nodes; node++) {
        double busy = 0, input = 0;
        int ranks = 0;
        for (int rank = 0; rank < p->comm->size; rank++) {
            if (p->node_of[rank] != node)
                continue;
            for (int part = HPCT_PACE_INPUT; part <= HPCT_PACE_UPDATE; part++)
                busy +=
                    part != HPCT_PACE_WAIT ? hpct_pace_known(p, (hpct_pace_part) part)[rank] : 0;
            input += hpct_pace_known(p, HPCT_PACE_INPUT)[rank];
            ranks++;
        }
        p->busy[node] = busy / ranks;
        p->input[node] = input / ranks;
    }
}

static int first_rank(const hpct_pace *p, int node)
{
    int rank = 0;
    while (p->node_of[rank] != node)
        rank++;
    return rank;
}

/* The node's first rank tells what it sees of its node. */
static hpct_status name_node(hpct_pace *p, int node, double ratio)
{
    char phrase[HPCT_NODE_PHRASE] = "";
    int teller = first_rank(p, node);
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
        fprintf(stderr,
                "hpc-train: node %s is slow: for a minute its steps have taken %.1f times "
                "the others'%s%s%s\n",
                p->nodes[teller], ratio,
                p->input[node] > p->busy[node] / 2 ? ", mostly for input" : "",
                phrase[0] != '\0' ? ": " : "", phrase);
    return HPCT_OK;
}

/* All ranks come to the same verdicts: times are rank 0's. */
static hpct_status judge(hpct_pace *p, double now)
{
    if (!p->options.waits_apart || p->num_nodes < 2)
        return HPCT_OK;
    fill_nodes(p);
    for (int node = 0; node < p->num_nodes; node++) {
        double ratio = hpct_slow_ratio(p->busy, p->num_nodes, node, p->scratch);
        enum hpct_slow_verdict verdict = hpct_slow_heed(&p->slow[node], ratio, now);
        if (verdict == HPCT_SLOW_BEGINS && p->comm->rank == first_rank(p, node)) {
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

const char *const *hpct_pace_nodes(const hpct_pace *pace)
{
    return pace->nodes;
}

static void spread(hpct_pace *p)
{
    for (int rank = 0; rank < p->comm->size; rank++) {
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
    HPCT_TRY(p->comm->ops->allgather(p->comm, mine, p->gathered, sizeof mine));
    spread(p);
    write_line(p, epoch, step, p->steps);
    plan_next(p);
    *known = true;
    return judge(p, p->gathered[TIME]);
}
