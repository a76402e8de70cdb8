/* Means over each worker's gradients of the last seconds. */
#include "agent/ps/live.h"

#include "agent/train/pace_file.h"
#include "agent/train/slow_nodes.h"
#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define INTERVAL 5 /* seconds */

_Static_assert(HPCT_PS_PARTS == HPCT_PACE_PARTS, "messages have all parts of a step");

/* A worker's gradients since the last line. */
typedef struct recent {
    double sums[HPCT_PACE_MEMORY], memory;
    int64_t count;
} recent;

struct hpct_ps_live {
    int workers;
    hpct_live *live; /* NULL: not requested */
    hpct_pace_file *file;
    recent *recent; /* [workers] */
    double *known;  /* [HPCT_PACE_PARTS][workers], NaN: not known */
    char **names;   /* [workers] of nodes; NULL: not known */
    hpct_slow_nodes slow;
    int64_t steps; /* since the last line */
    double noted;  /* clock of the last line, or of the first step */
};

/* ---- opening ---- */

static hpct_status allocate(hpct_ps_live *l)
{
    size_t workers = (size_t) l->workers;
    l->recent = calloc(workers, sizeof *l->recent);
    l->known = calloc(workers * HPCT_PACE_PARTS, sizeof *l->known);
    l->names = calloc(workers, sizeof *l->names);
    if (l->recent == NULL || l->known == NULL || l->names == NULL)
        return hpct_fail_memory(workers * HPCT_PACE_PARTS * sizeof *l->known);
    for (size_t i = 0; i < workers * HPCT_PACE_PARTS; i++)
        l->known[i] = NAN;
    return hpct_slow_nodes_open(&l->slow, (const char *const *) l->names, l->workers);
}

static hpct_status open_files(hpct_ps_live *l, const hpct_ps_run *run, bool continues)
{
    const hpct_live_options options = {
        .log_dir = run->options.log_dir,
        .metrics_file = run->options.metrics_file,
        .job = getenv("SLURM_JOB_ID"),
        .model = hpct_model_name(run->model),
        .strategy = run->options.strategy.name,
        .workers = run->workers,
        .epochs = run->options.epochs,
    };
    HPCT_TRY(hpct_pace_file_open(&l->file, run->options.log_dir, continues));
    return hpct_live_open(&l->live, &options);
}

hpct_status hpct_ps_live_open(hpct_ps_live **out, const hpct_ps_run *run, bool continues)
{
    *out = NULL;
    hpct_ps_live *l = calloc(1, sizeof *l);
    if (l == NULL)
        return hpct_fail_memory(sizeof *l);
    l->workers = run->workers;
    hpct_status status = allocate(l);
    if (status == HPCT_OK)
        status = open_files(l, run, continues);
    if (status == HPCT_OK)
        *out = l;
    else
        hpct_ps_live_free(l);
    return status;
}

void hpct_ps_live_end(hpct_ps_live *l, hpct_live_how how)
{
    if (l == NULL)
        return;
    hpct_live_close(l->live, how);
    hpct_pace_file_close(l->file);
    l->live = NULL;
    l->file = NULL;
}

void hpct_ps_live_free(hpct_ps_live *l)
{
    if (l == NULL)
        return;
    hpct_ps_live_end(l, HPCT_LIVE_FAILED);
    for (int i = 0; i < l->workers && l->names != NULL; i++)
        free(l->names[i]);
    hpct_slow_nodes_close(&l->slow);
    free(l->names);
    free(l->known);
    free(l->recent);
    free(l);
}

void hpct_ps_live_settle(hpct_ps_live *l)
{
    if (l != NULL)
        hpct_pace_file_settle(l->file);
}

/* ---- workers ---- */

/* A worker that comes again may be elsewhere. */
void hpct_ps_live_joined(hpct_ps_live *l, int worker, const char *node)
{
    if (l == NULL || (l->names[worker] != NULL && strcmp(l->names[worker], node) == 0))
        return;
    char *name = strdup(node);
    if (name == NULL)
        return; /* it goes without */
    free(l->names[worker]);
    l->names[worker] = name;
    hpct_slow_nodes_number(&l->slow);
    hpct_live_node(l->live, worker, node);
}

void hpct_ps_live_left(hpct_ps_live *l, int worker)
{
    if (l == NULL)
        return;
    l->recent[worker] = (recent){0};
    for (int part = 0; part < HPCT_PACE_PARTS; part++)
        l->known[part * l->workers + worker] = NAN;
}

void hpct_ps_live_gradient(hpct_ps_live *l, int worker, const float *parts)
{
    if (l == NULL)
        return;
    recent *r = &l->recent[worker];
    for (int part = 0; part < HPCT_PACE_MEMORY; part++)
        r->sums[part] += (double) parts[part];
    r->memory = (double) parts[HPCT_PACE_MEMORY];
    r->count++;
}

const char *const *hpct_ps_live_nodes(const hpct_ps_live *l)
{
    return l != NULL ? (const char *const *) l->names : NULL;
}

/* ---- steps ---- */

/* Of a worker without a gradient in this time what is known stays. */
static void make_means(hpct_ps_live *l)
{
    for (int worker = 0; worker < l->workers; worker++) {
        recent *r = &l->recent[worker];
        if (r->count == 0)
            continue;
        for (int part = 0; part < HPCT_PACE_MEMORY; part++)
            l->known[part * l->workers + worker] = r->sums[part] / (double) r->count;
        l->known[HPCT_PACE_MEMORY * l->workers + worker] = r->memory;
        *r = (recent){0};
    }
}

static void judge(hpct_ps_live *l, double now)
{
    hpct_slow_nodes_fill(&l->slow, l->known);
    for (int node = 0; node < l->slow.num_nodes; node++) {
        double ratio;
        if (hpct_slow_nodes_heed(&l->slow, node, now, &ratio) == HPCT_SLOW_NAMED)
            hpct_slow_nodes_say(&l->slow, node, ratio, "");
    }
}

static void note(hpct_ps_live *l, const hpct_live_state *state, double now)
{
    const double *of[HPCT_PACE_PARTS];
    make_means(l);
    for (int part = 0; part < HPCT_PACE_PARTS; part++)
        of[part] = l->known + part * l->workers;
    hpct_pace_file_write(l->file, state->epoch, state->step, l->steps, l->known, l->workers);
    hpct_live_ranks(l->live, l->workers, of[HPCT_PACE_STEP], of[HPCT_PACE_WAIT],
                    of[HPCT_PACE_INPUT], of[HPCT_PACE_MEMORY], NULL);
    judge(l, now);
    l->steps = 0;
    l->noted = now;
}

void hpct_ps_live_step(hpct_ps_live *l, const hpct_live_state *state, double now)
{
    if (l == NULL)
        return;
    hpct_live_update(l->live, state);
    if (isnan(state->step_loss)) /* an evaluation */
        return;
    if (l->noted == 0)
        l->noted = now;
    l->steps++;
    if (now - l->noted >= INTERVAL || state->step >= state->steps)
        note(l, state, now);
}
