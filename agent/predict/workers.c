/* A thread pool of replicas with one thread each, which share the model's parameters. */
#include "agent/predict/workers.h"

#include "agent/strategy/replicas/thread_pool.h"
#include "base/status.h"
#include "nn/run/clone.h"

#include <stdatomic.h>
#include <stdlib.h>

#define GROUP_ON_CPU 8 /* a thread's activations stay in its cache; kernels are read once */
#define GROUP_ON_DEVICE 64

/* A replica, and how its outputs are read. */
typedef struct worker {
    hpct_model *model;
    hpct_predict_scores scores;
} worker;

struct hpct_predict_workers {
    hpct_model *model;
    int group, top_k, largest;
    worker *workers; /* [num]; on a device one, of the model itself */
    int num;
    hpct_replicas_pool *pool;       /* NULL on a device */
    atomic_int next;                /* first sample of the next group of the batch */
    int count;                      /* samples of the batch */
    hpct_predict_class_score *best; /* of the batch */
};

int hpct_predict_workers_group(const hpct_model *model)
{
    return hpct_model_on_device(model) ? GROUP_ON_DEVICE : GROUP_ON_CPU;
}

/* ---- opening ---- */

static hpct_run_build_options build_options(const hpct_predict_workers *w)
{
    return (hpct_run_build_options){.batch_sizes = &w->group,
                                    .num_batch_sizes = 1,
                                    .inference_only = true,
                                    .input_samples = w->largest};
}

/* By a thread of the pool: the layout of parameters may depend on the number of threads. */
static hpct_status build_model(void *argument, int k)
{
    const hpct_predict_workers *w = argument;
    hpct_run_build_options options = build_options(w);
    return k == 0 ? hpct_model_build(w->model, &options) : HPCT_OK;
}

/* Parameters are shared where the layouts are equal, as they should be; those of frozen layers are
 * not. */
static hpct_status build_worker(void *argument, int k)
{
    const hpct_predict_workers *w = argument;
    hpct_model *own = w->workers[k].model;
    hpct_run_build_options options = build_options(w);
    size_t count;
    options.input_samples = 0;
    options.storage = w->model;
    HPCT_TRY(hpct_model_build(own, &options));
    if (hpct_model_parameters(own, &count) != hpct_model_parameters(w->model, &count))
        HPCT_TRY(hpct_model_translate(own, w->model, HPCT_RUN_ARENA_PARAMETERS));
    HPCT_TRY(hpct_model_translate(own, w->model, HPCT_RUN_ARENA_STATES));
    return hpct_model_translate(own, w->model, HPCT_RUN_ARENA_FROZEN);
}

static hpct_status open_pool(hpct_predict_workers *w)
{
    for (int k = 0; k < w->num; k++)
        HPCT_TRY(hpct_model_clone(&w->workers[k].model, w->model));
    HPCT_TRY(hpct_replicas_pool_open(
        &w->pool, &(hpct_replicas_pool_options){.members = w->num, .threads = 1}));
    HPCT_TRY(hpct_replicas_pool_run(w->pool, build_model, w));
    return hpct_replicas_pool_run(w->pool, build_worker, w);
}

static hpct_status open_device(hpct_predict_workers *w)
{
    hpct_run_build_options options = build_options(w);
    w->workers[0].model = w->model;
    return hpct_model_build(w->model, &options);
}

hpct_status hpct_predict_workers_open(hpct_predict_workers **out,
                                      const hpct_predict_workers_options *options)
{
    bool on_device = hpct_model_on_device(options->model);
    hpct_predict_workers *w = calloc(1, sizeof *w);
    if (w == NULL)
        return hpct_fail_memory(sizeof *w);
    w->model = options->model;
    w->group = hpct_predict_workers_group(options->model);
    w->top_k = options->top_k;
    w->largest = options->largest;
    w->num = on_device ? 1 : options->threads;
    w->workers = calloc((size_t) w->num, sizeof *w->workers);
    hpct_status status =
        w->workers != NULL ? HPCT_OK : hpct_fail_memory((size_t) w->num * sizeof *w->workers);
    for (int k = 0; k < w->num && status == HPCT_OK; k++)
        status = hpct_predict_scores_open(&w->workers[k].scores, options->model, options->top_k);
    if (status == HPCT_OK)
        status = on_device ? open_device(w) : open_pool(w);
    if (status == HPCT_OK)
        *out = w;
    else
        hpct_predict_workers_close(w);
    return status;
}

void hpct_predict_workers_close(hpct_predict_workers *workers)
{
    if (workers == NULL)
        return;
    hpct_replicas_pool_close(workers->pool);
    for (int k = 0; k < workers->num && workers->workers != NULL; k++) {
        worker *own = &workers->workers[k];
        hpct_predict_scores_close(&own->scores);
        if (own->model != workers->model)
            hpct_model_free(own->model);
    }
    free(workers->workers);
    free(workers);
}

/* ---- a batch ---- */

/* The group that begins at `begin`; what is beyond the batch is computed, too, and left. */
static hpct_status compute(hpct_predict_workers *w, worker *own, int begin)
{
    int left = w->count - begin, num = left < w->group ? left : w->group;
    hpct_model_take_part(own->model, w->model, begin);
    HPCT_TRY(hpct_model_forward(own->model, w->group, false));
    const float *outputs = hpct_model_output(own->model);
    if (outputs == NULL)
        return HPCT_ERR_INTERNAL; /* hpct_model_output has recorded the message */
    for (int i = 0; i < num; i++)
        hpct_predict_scores_best(&own->scores, outputs + (size_t) i * (size_t) own->scores.outputs,
                                 w->top_k, w->best + (size_t) (begin + i) * (size_t) w->top_k);
    return HPCT_OK;
}

static hpct_status compute_groups(void *argument, int k)
{
    hpct_predict_workers *w = argument;
    int begin;
    while ((begin = atomic_fetch_add(&w->next, w->group)) < w->count)
        HPCT_TRY(compute(w, &w->workers[k], begin));
    return HPCT_OK;
}

hpct_status hpct_predict_workers_run(hpct_predict_workers *workers, int count,
                                     hpct_predict_class_score *best)
{
    workers->count = count;
    workers->best = best;
    atomic_store(&workers->next, 0);
    return workers->pool != NULL ? hpct_replicas_pool_run(workers->pool, compute_groups, workers)
                                 : compute_groups(workers, 0);
}
