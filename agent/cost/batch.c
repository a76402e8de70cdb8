/* Batch sizes from the memory plan: a batch's memory, whether it fits this rank's share, and the
 * largest power of two that fits on every rank. */
#include "agent/cost/batch.h"

#include "agent/data/augment.h"
#include "agent/data/dataset.h"
#include "agent/data/pipeline.h"
#include "agent/rank/context.h"
#include "agent/rank/threads.h"
#include "agent/strategies/strategies.h"
#include "base/memory.h"
#include "base/status.h"
#include "nn/run/step.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST (1 << 20)
#define RESERVE 16 /* this fraction of free memory is reserved: stacks, tables */

typedef struct question {
    hpct_context *context;
    hpct_model *model;
    const hpct_batch_options *options;
    size_t besides; /* bytes of other allocations at the same time */
} question;

/* One rank's result, all-gathered. */
typedef struct answer {
    int32_t batch; /* 0: not even 1 fits */
    int32_t ranks; /* that share the memory */
    uint64_t need, next,
        memory; /* bytes; next: need of the double batch, 0 if that is impossible */
    char whose[32];
} answer;

static size_t input_bytes(const question *q, int batch)
{
    hpct_shape shape = hpct_model_input_shape(q->model);
    size_t floats = 1;
    for (int i = 0; i < shape.rank; i++)
        floats *= (size_t) shape.size[i];
    return (size_t) batch * (floats * sizeof(float) + sizeof(int32_t));
}

/* Of rows of targets in agent/train/batch_source.c, besides the labels. */
static size_t target_bytes(const hpct_dataset *data, int batch)
{
    return data->targets != NULL
               ? ((size_t) batch + 1) * (size_t) data->num_targets * sizeof *data->targets
               : 0;
}

static hpct_status step_need(const question *q, const hpct_strategy_ops *strategy, int batch,
                             size_t *bytes)
{
    if (strategy != NULL) {
        hpct_strategy_plan plan = {
            .context = q->context,
            .model = q->model,
            .batch_sizes = &batch,
            .num_batch_sizes = 1,
            .keep_gradients = q->options->data == NULL,
            .dense_targets =
                q->options->data != NULL && hpct_data_augment_mixes(&q->options->data->options),
            .options = &q->options->strategy,
        };
        return strategy->need(&plan, bytes);
    }
    hpct_run_memory_plan plan;
    hpct_run_build_options build = {
        .batch_sizes = &batch, .num_batch_sizes = 1, .inference_only = true};
    hpct_status status = hpct_model_plan(q->model, &build, &plan);
    *bytes = hpct_run_memory_plan_growth(&plan);
    return status;
}

/* Bytes by which this process grows. */
static hpct_status need_of(const question *q, int batch, size_t *bytes)
{
    const hpct_dataset *data = q->options->data, *validation = q->options->validation;
    bool training = !q->options->evaluate;
    const hpct_strategy_ops *strategy = NULL;
    if (training) {
        HPCT_TRY(hpct_strategy_find(&strategy, &q->options->strategy));
        HPCT_TRY(hpct_strategy_check_device(&q->options->strategy, q->model));
    }
    if (training && strategy->whole_batch)
        batch *= hpct_context_size(q->context);
    if (data != NULL) /* as training and evaluation will; the model has a row for each sample */
        hpct_model_take_targets(q->model, data->targets != NULL);
    hpct_status status = step_need(q, strategy, batch, bytes);
    if (hpct_model_on_device(q->model)) /* input and sampler are in host memory */
        return status;
    if (data == NULL || hpct_dataset_is_plain(data, training) ||
        (validation != NULL && hpct_dataset_is_plain(validation, false)))
        *bytes += input_bytes(q, batch); /* the model's own input buffer */
    if (data != NULL)                    /* and the sampler's order */
        *bytes += hpct_data_pipeline_bytes(data, batch, training) + target_bytes(data, batch) +
                  (training ? data->size : (size_t) batch) * sizeof(uint32_t);
    if (validation != NULL)
        *bytes +=
            hpct_data_pipeline_bytes(validation, batch, false) + target_bytes(validation, batch);
    return status;
}

/* Free memory is read after planning, so that memory used by planning (oneDNN caches kernels) is
 * already subtracted. */
static hpct_status try(const question *q, int batch, answer *out)
{
    size_t need = 0;
    hpct_status status = need_of(q, batch, &need);
    hpct_memory_share share = hpct_memory_share_now();
    if (status == HPCT_OK && hpct_model_on_device(q->model)) {
        share = (hpct_memory_share){.whose = "GPU", .ranks = 1};
        status = hpct_model_memory_left(q->model, &share.bytes);
    }
    *out = (answer){.batch = batch,
                    .ranks = share.ranks,
                    .need = need + q->besides,
                    .memory = share.bytes - share.bytes / RESERVE};
    snprintf(out->whose, sizeof out->whose, "%s", share.whose);
    return status;
}

static int most_of(const question *q)
{
    int size = hpct_context_size(q->context), most = hpct_model_largest_batch(q->model);
    size_t samples = q->options->data != NULL ? q->options->data->size / (size_t) size : MOST;
    most = most > MOST ? MOST : most;
    most = most > INT_MAX / 2 / size ? INT_MAX / 2 / size : most;
    return (size_t) most < samples ? most : samples > 0 ? (int) samples : 1;
}

/* This rank's largest power of two that fits, by bisection of the exponent: at most six plans. */
static hpct_status bisect(const question *q, answer *best)
{
    int fits = -1, too_large = 0;
    answer one, over = {0};
    hpct_status status = HPCT_OK;
    for (int most = most_of(q); most >> too_large > 0;)
        too_large++;
    while (too_large - fits > 1 && status == HPCT_OK) {
        int middle = fits + (too_large - fits) / 2;
        status = try(q, 1 << middle, &one);
        if (one.need <= one.memory) {
            fits = middle;
            *best = one;
        } else {
            too_large = middle;
            over = one;
        }
    }
    if (fits < 0) {
        *best = over;
        best->batch = 0;
    }
    best->next = over.need;
    return status;
}

/* "3.1 GiB" */
static const char *bytes_text(char text[32], uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    double value = (double) bytes / 1024;
    int unit = 0;
    for (; value >= 1000 && unit < 3; unit++)
        value /= 1024;
    snprintf(text, 32, value < 10 ? "%.2f %s" : "%.1f %s", value, units[unit]);
    return text;
}

/* "of 3.9 GiB that a rank may take (cgroup, shared by 2 ranks)" */
static void of_memory(const answer *a, char text[128])
{
    char memory[32], shared[48] = "";
    if (a->ranks > 1)
        snprintf(shared, sizeof shared, ", shared by %d ranks", a->ranks);
    snprintf(text, 128, "%s that a rank may take (%s%s)", bytes_text(memory, a->memory), a->whose,
             shared);
}

static void describe(const answer *a, hpct_batch_choice *choice)
{
    char need[32], next[32], memory[128], rest[64] = "more is not in a rank's share";
    *choice = (hpct_batch_choice){.batch_size = a->batch, .need = a->need, .memory = a->memory};
    of_memory(a, memory);
    if (a->next > 0)
        snprintf(rest, sizeof rest, "%d would take %s", 2 * a->batch, bytes_text(next, a->next));
    snprintf(choice->line, sizeof choice->line, "batch size %d takes %s of %s; %s", a->batch,
             bytes_text(need, a->need), memory, rest);
}

/* All ranks' results, and the rank with the smallest batch; the caller frees *all. */
static hpct_status gather(const question *q, const answer *mine, answer **all, int *smallest)
{
    hpct_comm *comm = hpct_context_comm(q->context);
    *all = malloc((size_t) comm->size * sizeof **all);
    if (*all == NULL)
        return hpct_fail_memory((size_t) comm->size * sizeof **all);
    hpct_status status = comm->ops->allgather(comm, mine, *all, sizeof *mine);
    *smallest = 0;
    for (int rank = 1; status == HPCT_OK && rank < comm->size; rank++) {
        if ((*all)[rank].batch < (*all)[*smallest].batch)
            *smallest = rank;
    }
    return status;
}

static hpct_status choose(const question *q, answer *out)
{
    answer mine = {0}, *all = NULL;
    int smallest = 0;
    hpct_status status = hpct_context_agree(q->context, bisect(q, &mine));
    if (status == HPCT_OK)
        status = gather(q, &mine, &all, &smallest);
    if (status == HPCT_OK)
        *out = all[smallest];
    free(all);
    return status;
}

/* " (most in backward of layer conv2d: 1.2 GiB)"; "" if a rank computes only a part of the model or
 * of the batch. */
static void of_peak(const question *q, int batch, char text[160])
{
    const hpct_strategy_ops *strategy = NULL;
    hpct_run_memory_plan plan;
    hpct_run_build_options build = {
        .batch_sizes = &batch, .num_batch_sizes = 1, .inference_only = q->options->evaluate};
    char bytes[32];
    *text = '\0';
    if (hpct_strategy_find(&strategy, &q->options->strategy) != HPCT_OK ||
        (!q->options->evaluate && (strategy->whole_batch || strategy->replicas)) ||
        hpct_model_plan(q->model, &build, &plan) != HPCT_OK)
        return;
    snprintf(text, 160, " (most activations in %s of layer %s: %s)",
             plan.peak.backward ? "backward" : "forward", plan.peak.layer,
             bytes_text(bytes, plan.peak.bytes));
}

static hpct_status refuse(const question *q, const answer *a, int batch)
{
    char need[32], memory[128], peak[160], advice[64] = "not even 1 fits";
    of_memory(a, memory);
    of_peak(q, batch, peak);
    if (a->batch > 0)
        snprintf(advice, sizeof advice, "at most %d fits (as --batch-size auto finds)", a->batch);
    return hpct_fail(HPCT_ERR_CONFIG, "batch size %d takes %s%s, more than the %s: %s", batch,
                     bytes_text(need, a->need), peak, memory, advice);
}

hpct_status hpct_batch_choose(hpct_context *context, hpct_model *model,
                              const hpct_batch_options *options, hpct_batch_choice *choice)
{
    question q = {.context = context, .model = model, .options = options};
    hpct_context *alone = NULL;
    answer found = {0};
    hpct_status status = context == NULL ? hpct_context_open_alone(&alone) : HPCT_OK;
    if (context == NULL)
        q.context = alone;
    if (status == HPCT_OK)
        status = hpct_rank_threads_set(q.context);
    if (status == HPCT_OK)
        status = choose(&q, &found);
    if (status == HPCT_OK && found.batch == 0)
        status = hpct_context_agree(q.context, refuse(&q, &found, 1));
    if (status == HPCT_OK)
        describe(&found, choice);
    hpct_context_close(alone);
    return status;
}

hpct_status hpct_cost_batch_asked(hpct_status status, int tried, int global, int own,
                                  size_t samples)
{
    char asked[96];
    if (status != HPCT_ERR_CONFIG || (global > 0 ? global : own) == tried)
        return status;
    snprintf(asked, sizeof asked, "%sbatch size %d of %zu pictures in all",
             global > 0 ? "global " : "", global > 0 ? global : own, samples);
    return hpct_fail_within(status, asked);
}

/* *over: result of the first rank on which it does not fit, if any. */
static hpct_status ask(const question *q, int batch, bool *fits, answer *mine, answer *over)
{
    answer *all = NULL;
    int ignored;
    *mine = (answer){0};
    hpct_status status = hpct_context_agree(q->context, try(q, batch, mine));
    if (status == HPCT_OK)
        status = gather(q, mine, &all, &ignored);
    *fits = true;
    for (int rank = 0; status == HPCT_OK && rank < hpct_context_size(q->context); rank++) {
        if (*fits && all[rank].need > all[rank].memory) {
            *fits = false;
            *over = all[rank];
        }
    }
    free(all);
    return status;
}

hpct_status hpct_cost_batch_fits(hpct_context *context, hpct_model *model,
                                 const hpct_batch_options *options, int batch, size_t besides,
                                 bool *fits)
{
    answer mine, over;
    return ask(&(question){context, model, options, besides}, batch, fits, &mine, &over);
}

hpct_status hpct_cost_batch_admit(hpct_context *context, hpct_model *model,
                                  const hpct_batch_options *options, int batch, size_t *need)
{
    question q = {.context = context, .model = model, .options = options};
    bool fits = true;
    answer mine, over = {0}, largest;
    hpct_status status = ask(&q, batch, &fits, &mine, &over);
    if (need != NULL)
        *need = mine.need;
    if (status != HPCT_OK || fits)
        return status;
    status = choose(&q, &largest);
    over.batch = largest.batch;
    return status == HPCT_OK ? hpct_context_agree(context, refuse(&q, &over, batch)) : status;
}
