/* Trials: each candidate is opened as for training, makes a few steps, and is closed again. */
#include "agent/strategy/choose.h"

#include "agent/batch.h"
#include "agent/data/sampler.h"
#include "agent/made_up.h"
#include "agent/process.h"
#include "base/status.h"
#include "nn/snapshot.h"
#include "nn/step.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WARM_UP 2 /* of them the second is timed, to know how many may follow */
#define FEWEST 3
#define MOST 15
#define HOPELESS 2        /* times the best so far */
#define TRIAL_SECONDS 0.3 /* of each candidate, unless so many are not even the fewest steps */

/* In the order in which they are preferred where times are equal. */
static const hpct_strategy_options candidates[] = {
    {.name = "multi-worker-mirrored"},
    {.name = "hybrid", .hybrid_form = "rows"}, /* normalizes over the global batch */
    {.name = "hybrid", .hybrid_form = "columns"},
};
#define CANDIDATES (int) (sizeof candidates / sizeof *candidates)

typedef struct trial {
    hpct_context *context;
    hpct_model *model;
    const hpct_strategy_ops *ops;
    hpct_strategy_options options;
    int count, global_count;
    hpct_strategy *strategy;
} trial;

static int by_size(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

/* The slowest rank's. */
static hpct_status agree_on_seconds(hpct_context *context, double *seconds)
{
    hpct_comm *comm = hpct_context_comm(context);
    double *all = malloc((size_t) comm->size * sizeof *all), mine = *seconds;
    hpct_status status = hpct_context_agree(
        context, all == NULL ? hpct_fail_memory((size_t) comm->size * sizeof *all) : HPCT_OK);
    if (status == HPCT_OK)
        status = comm->ops->allgather(comm, &mine, all, sizeof mine);
    for (int rank = 0; status == HPCT_OK && rank < comm->size; rank++)
        *seconds = fmax(*seconds, all[rank]);
    free(all);
    return status;
}

static hpct_status one_step(trial *t, double *seconds)
{
    hpct_step_sums sums = {0};
    double began = hpct_process_clock();
    hpct_status status = hpct_strategy_step(t->strategy, t->count, t->global_count, &sums);
    *seconds = hpct_process_clock() - began;
    return status;
}

/* What is far from `best` is not timed more exactly. */
static hpct_status time_steps(trial *t, hpct_context *all, double best, double *median)
{
    double seconds[MOST], probe = 0;
    hpct_status status = HPCT_OK;
    for (int i = 0; i < WARM_UP && status == HPCT_OK; i++)
        status = one_step(t, &probe);
    if (status == HPCT_OK)
        status = agree_on_seconds(all, &probe);
    *median = probe;
    if (status != HPCT_OK || probe > HOPELESS * best)
        return status;
    int steps = (int) fmin(MOST, fmax(FEWEST, TRIAL_SECONDS / probe));
    for (int i = 0; i < steps && status == HPCT_OK; i++)
        status = one_step(t, &seconds[i]);
    if (status != HPCT_OK)
        return status;
    qsort(seconds, (size_t) steps, sizeof *seconds, by_size);
    *median = seconds[steps / 2];
    return agree_on_seconds(all, median);
}

/* Seconds of a step in *median; NAN for a strategy that cannot train this model here. `all`: where
 * the ranks agree, also when the trial is of each rank for itself. */
static hpct_status try(trial *t, hpct_context *all, double best, double *median)
{
    hpct_strategy_plan plan = {
        .context = t->context,
        .model = t->model,
        .backend = "cpu",
        .batch_sizes = &t->count,
        .num_batch_sizes = 1,
        .options = &t->options,
    };
    *median = NAN;
    hpct_status status = t->ops->open(&t->strategy, &plan);
    if (status == HPCT_ERR_CONFIG)
        return HPCT_OK;
    if (status == HPCT_OK)
        status = hpct_context_agree(
            all, hpct_made_up_batch(t->strategy->model, t->count,
                                    t->ops->whole_batch ? 0 : hpct_context_rank(all)));
    if (status == HPCT_OK)
        status = time_steps(t, all, best, median);
    if (t->strategy != NULL)
        t->ops->close(t->strategy);
    t->strategy = NULL;
    return status;
}

static hpct_status try_candidate(hpct_context *context, hpct_model *model,
                                 const hpct_strategy_options *options, int global_batch,
                                 double best, double *median)
{
    trial t = {
        .context = context, .model = model, .options = *options, .global_count = global_batch};
    int rank = hpct_context_rank(context), size = hpct_context_size(context);
    int64_t begin;
    bool fits = true;
    hpct_status status = hpct_strategy_find(&t.ops, options);
    if (status != HPCT_OK)
        return status;
    t.count =
        t.ops->whole_batch ? global_batch : (int) hpct_slice(global_batch, rank, size, &begin);
    *median = NAN;
    if (t.ops->whole_batch && hpct_model_has_own_statistics(model))
        return HPCT_OK; /* it would change more than the order of sums */
    hpct_batch_options batch = {.strategy = *options};
    status = hpct_batch_fits(context, model, &batch,
                             (int) hpct_slice(global_batch, 0, size, &begin), 0, &fits);
    return status == HPCT_OK && fits ? try(&t, context, best, median) : status;
}

/* A step of each rank for itself, on its slice: what the others are compared with. */
static hpct_status try_alone(hpct_context *context, hpct_model *model, int global_batch,
                             double *median)
{
    int64_t begin;
    int count = (int) hpct_slice(global_batch, 0, hpct_context_size(context), &begin);
    trial t = {
        .model = model, .ops = &hpct_multi_worker_mirrored, .count = count, .global_count = count};
    hpct_status status = hpct_context_agree(context, hpct_context_open_alone(&t.context));
    if (status == HPCT_OK)
        status = try(&t, context, INFINITY, median);
    hpct_context_close(t.context);
    return status;
}

/* "hybrid (rows)" */
static int put_name(char *text, size_t size, const hpct_strategy_options *o)
{
    return o->hybrid_form == NULL ? snprintf(text, size, "%s", o->name)
                                  : snprintf(text, size, "%s (%s)", o->name, o->hybrid_form);
}

static void describe(hpct_strategy_choice *out, const double *seconds, int best, double alone,
                     int ranks)
{
    double gain = ranks * alone / seconds[best];
    char name[64], others[192] = "";
    size_t length = 0;
    for (int i = 0; i < CANDIDATES; i++) {
        if (i == best || isnan(seconds[i]) || length >= sizeof others)
            continue;
        put_name(name, sizeof name, &candidates[i]);
        length += (size_t) snprintf(others + length, sizeof others - length, "%s%s %.1f",
                                    length > 0 ? ", " : "; ", name, 1e3 * seconds[i]);
    }
    put_name(name, sizeof name, &candidates[best]);
    snprintf(out->line, sizeof out->line,
             "strategy %s: %.1f ms a step%s; %d ranks are %s (%.2f times)", name,
             1e3 * seconds[best], others, ranks,
             gain < 1 ? "SLOWER than one: give it fewer" : "faster than one", gain);
}

/* The candidate with the rest of what the user gave. */
static hpct_strategy_options filled_in(const hpct_strategy_options *given,
                                       const hpct_strategy_options *candidate)
{
    hpct_strategy_options options = *given;
    options.name = candidate->name;
    if (candidate->hybrid_form != NULL)
        options.hybrid_form = candidate->hybrid_form;
    return options;
}

static hpct_status try_all(hpct_strategy_choice *out, hpct_context *context, hpct_model *model,
                           const hpct_strategy_options *options, int global_batch)
{
    double seconds[CANDIDATES], alone = NAN;
    int best = 0;
    hpct_status status = try_alone(context, model, global_batch, &alone);
    for (int i = 0; i < CANDIDATES && status == HPCT_OK; i++) {
        hpct_strategy_options one = filled_in(options, &candidates[i]);
        status =
            try_candidate(context, model, &one, global_batch,
                          i == 0 || isnan(seconds[best]) ? INFINITY : seconds[best], &seconds[i]);
        if (i > 0 && !isnan(seconds[i]) && (isnan(seconds[best]) || seconds[i] < seconds[best]))
            best = i;
    }
    if (status != HPCT_OK)
        return status;
    out->options = filled_in(options, &candidates[best]);
    status = hpct_strategy_find(&out->ops, &out->options);
    if (status == HPCT_OK && !isnan(seconds[best]))
        describe(out, seconds, best, alone, hpct_context_size(context));
    return status;
}

hpct_status hpct_strategy_choose(hpct_strategy_choice *out, hpct_context *context,
                                 hpct_model *model, const hpct_strategy_options *options,
                                 int global_batch)
{
    hpct_snapshot *before = NULL;
    *out = (hpct_strategy_choice){.options = *options};
    bool named = options->name != NULL && strcmp(options->name, "auto") != 0;
    named = named || options->compression.kind != HPCT_COMPRESS_NONE; /* only one strategy has it */
    if (named || options->replicas > 1 || hpct_context_size(context) == 1)
        return hpct_strategy_find(&out->ops, options);
    int64_t begin;
    bool fits = true;
    hpct_batch_options batch = {.strategy = *options};
    hpct_status status =
        hpct_batch_fits(context, model, &batch,
                        (int) hpct_slice(global_batch, 0, hpct_context_size(context), &begin),
                        hpct_snapshot_bytes(model), &fits);
    if (status == HPCT_OK && !fits) /* no memory to try anything in */
        return hpct_strategy_find(&out->ops, options);
    if (status == HPCT_OK)
        status = hpct_context_agree(context, hpct_snapshot_take(&before, model));
    if (status == HPCT_OK)
        status = try_all(out, context, model, options, global_batch);
    if (status == HPCT_OK)
        status = hpct_context_agree(context, hpct_snapshot_restore(before, model));
    hpct_snapshot_free(before);
    return status;
}
