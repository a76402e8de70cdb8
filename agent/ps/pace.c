/* Means over each worker's gradients of the last seconds. */
#include "agent/ps/pace.h"

#include "agent/ps/message.h"
#include "agent/train/slow_nodes.h"
#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define INTERVAL 5 /* seconds */

_Static_assert(HPCT_PS_PARTS == HPCT_TRAIN_PACE_PARTS, "messages have all parts of a step");

/* A worker's gradients since the last line. */
typedef struct recent {
    double sums[HPCT_TRAIN_PACE_MEMORY], memory;
    int64_t count;
} recent;

struct hpct_ps_pace {
    int workers;
    recent *recent; /* [workers] */
    char **names;   /* [workers] of nodes; NULL: not known */
    hpct_train_slow_nodes slow;
    int64_t steps; /* since the last line */
    double noted;  /* clock of the last line, or of the first step */
};

/* ---- opening ---- */

static hpct_status allocate(hpct_ps_pace *p)
{
    size_t workers = (size_t) p->workers;
    p->recent = calloc(workers, sizeof *p->recent);
    p->names = calloc(workers, sizeof *p->names);
    if (p->recent == NULL || p->names == NULL)
        return hpct_fail_memory(workers * sizeof *p->recent);
    return hpct_train_slow_nodes_open(&p->slow, (const char *const *) p->names, p->workers);
}

hpct_status hpct_ps_pace_open(hpct_ps_pace **out, int workers)
{
    *out = NULL;
    hpct_ps_pace *p = calloc(1, sizeof *p);
    if (p == NULL)
        return hpct_fail_memory(sizeof *p);
    p->workers = workers;
    hpct_status status = allocate(p);
    if (status == HPCT_OK)
        *out = p;
    else
        hpct_ps_pace_close(p);
    return status;
}

void hpct_ps_pace_close(hpct_ps_pace *p)
{
    if (p == NULL)
        return;
    for (int i = 0; i < p->workers && p->names != NULL; i++)
        free(p->names[i]);
    hpct_train_slow_nodes_close(&p->slow);
    free(p->names);
    free(p->recent);
    free(p);
}

/* ---- workers ---- */

/* A worker that comes again may be elsewhere. */
void hpct_ps_pace_joined(hpct_ps_pace *p, int worker, const char *node, hpct_results_live *live)
{
    if (p == NULL || (p->names[worker] != NULL && strcmp(p->names[worker], node) == 0))
        return;
    char *name = strdup(node);
    if (name == NULL)
        return; /* it goes without */
    free(p->names[worker]);
    p->names[worker] = name;
    hpct_train_slow_nodes_number(&p->slow);
    hpct_results_live_node(live, worker, node);
}

void hpct_ps_pace_left(hpct_ps_pace *p, int worker)
{
    if (p == NULL)
        return;
    p->recent[worker] = (recent){0};
    for (int part = 0; part < HPCT_TRAIN_PACE_PARTS; part++)
        hpct_train_slow_nodes_part(&p->slow, part)[worker] = NAN;
}

void hpct_ps_pace_gradient(hpct_ps_pace *p, int worker, const float *parts)
{
    if (p == NULL)
        return;
    recent *r = &p->recent[worker];
    for (int part = 0; part < HPCT_TRAIN_PACE_MEMORY; part++)
        r->sums[part] += (double) parts[part];
    r->memory = (double) parts[HPCT_TRAIN_PACE_MEMORY];
    r->count++;
}

const char *const *hpct_ps_pace_nodes(const hpct_ps_pace *p)
{
    return p != NULL ? (const char *const *) p->names : NULL;
}

/* ---- steps ---- */

/* Of a worker without a gradient in this time what is known stays. */
static void make_means(hpct_ps_pace *p)
{
    for (int worker = 0; worker < p->workers; worker++) {
        recent *r = &p->recent[worker];
        if (r->count == 0)
            continue;
        for (int part = 0; part < HPCT_TRAIN_PACE_MEMORY; part++)
            hpct_train_slow_nodes_part(&p->slow, part)[worker] = r->sums[part] / (double) r->count;
        hpct_train_slow_nodes_part(&p->slow, HPCT_TRAIN_PACE_MEMORY)[worker] = r->memory;
        *r = (recent){0};
    }
}

static void judge(hpct_ps_pace *p, double now)
{
    hpct_train_slow_nodes_fill(&p->slow);
    for (int node = 0; node < p->slow.num_nodes; node++) {
        double ratio;
        if (hpct_train_slow_nodes_heed(&p->slow, node, now, &ratio) == HPCT_TRAIN_SLOW_NAMED)
            hpct_train_slow_nodes_say(&p->slow, node, ratio, "");
    }
}

void hpct_ps_pace_step(hpct_ps_pace *p, int epoch, int64_t steps, bool epoch_ended, double now,
                       hpct_train_pace_file *file, hpct_results_live *live)
{
    if (p == NULL)
        return;
    if (p->noted == 0)
        p->noted = now;
    p->steps++;
    if (now - p->noted < INTERVAL && !epoch_ended)
        return;
    make_means(p);
    hpct_train_pace_file_write(file, live, epoch, steps, p->steps, p->slow.known, NULL, p->workers);
    judge(p, now);
    p->steps = 0;
    p->noted = now;
}
