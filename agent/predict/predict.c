/* hpct_predict_classes: each rank predicts whole groups of consecutive samples; rank 0 gathers and
 * writes.
 */
#include "agent/predict/rows.h"
#include "agent/predict/workers.h"

#include "agent/cost/batch.h"
#include "agent/data/sampler.h"
#include "agent/rank/context.h"
#include "agent/rank/threads.h"
#include "agent/train/batch_source.h"
#include "agent/train/identity.h"
#include "base/output.h"
#include "base/progress.h"
#include "base/status.h"
#include "nn/backend/cpu/backend.h"
#include "nn/file/weights.h"
#include "nn/run/step.h"

#include <hpctrain/predict.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_BATCH 128
#define MESSAGE_BYTES ((size_t) 1 << 20) /* of a broadcast */

/* A rank's samples. */
typedef struct part {
    size_t begin, count;
} part;

typedef struct predicting {
    hpct_context *context;
    hpct_model *model;
    const hpct_dataset *dataset;
    const hpct_predict_options *options;
    int top_k, group;
    bool outputs; /* a column for each of them instead of the best classes; top_k is their number */
    part own;
    int batch;                      /* of the feed: a multiple of the group */
    uint32_t *indices;              /* [batch] */
    hpct_predict_class_score *best; /* this rank's; on rank 0 then all */
} predicting;

/* ---- who predicts what ---- */

/* Whole groups of the data, whatever the number of ranks. */
static part part_of(const predicting *p, int rank)
{
    size_t group = (size_t) p->group, size = p->dataset->size;
    int64_t first;
    int64_t groups = (int64_t) ((size + group - 1) / group);
    size_t count =
        group * (size_t) hpct_data_slice(groups, rank, hpct_context_size(p->context), &first);
    size_t begin = group * (size_t) first;
    if (begin + count > size)
        count = begin < size ? size - begin : 0;
    return (part){.begin = begin, .count = count};
}

static int round_up(size_t count, int group)
{
    return (int) ((count + (size_t) group - 1) / (size_t) group) * group;
}

static void choose_batch(predicting *p)
{
    size_t batch = p->options->batch_size > 0 ? (size_t) p->options->batch_size : DEFAULT_BATCH;
    if (hpct_model_on_device(p->model))
        batch = (size_t) p->group;
    p->own = part_of(p, hpct_context_rank(p->context));
    p->batch = round_up(batch < p->own.count ? batch : p->own.count, p->group);
}

/* The last group is filled with its last sample. */
static hpct_data_batch batch_of_part(void *argument, int64_t number)
{
    predicting *p = argument;
    size_t done = (size_t) number * (size_t) p->batch, left = p->own.count - done;
    int count = left < (size_t) p->batch ? round_up(left, p->group) : p->batch;
    for (int i = 0; i < count; i++) {
        size_t at = (size_t) i < left ? (size_t) i : left - 1;
        p->indices[i] = (uint32_t) (p->own.begin + done + at);
    }
    return (hpct_data_batch){.indices = p->indices, .count = count, .global_count = count};
}

/* ---- this rank's samples ---- */

static hpct_status predict_batches(predicting *p, hpct_predict_workers *workers,
                                   hpct_train_batch_source *input_source)
{
    for (size_t done = 0; done < p->own.count; done += (size_t) p->batch) {
        size_t left = p->own.count - done;
        hpct_data_input input;
        HPCT_TRY(hpct_train_batch_source_next(input_source, &input));
        HPCT_TRY(hpct_predict_workers_run(workers, left < (size_t) p->batch ? (int) left : p->batch,
                                          p->best + done * (size_t) p->top_k));
    }
    return HPCT_OK;
}

static hpct_status predict_part(predicting *p)
{
    hpct_predict_workers *workers = NULL;
    hpct_train_batch_source *input_source = NULL;
    int groups = p->batch / p->group, threads = hpct_cpu_threads();
    if (p->own.count == 0)
        return HPCT_OK;
    hpct_status status = hpct_predict_workers_open(
        &workers, &(hpct_predict_workers_options){.model = p->model,
                                                  .threads = threads < groups ? threads : groups,
                                                  .largest = p->batch,
                                                  .top_k = p->top_k});
    hpct_data_pipeline_options options = {
        .dataset = p->dataset,
        .batches = (int64_t) ((p->own.count + (size_t) p->batch - 1) / (size_t) p->batch),
        .largest = p->batch,
        .threads = threads,
        .batch = batch_of_part,
        .from = p,
    };
    if (status == HPCT_OK)
        status = hpct_train_batch_source_open(&input_source, p->model, &options, p->own.begin,
                                              p->own.count);
    if (status == HPCT_OK)
        status = predict_batches(p, workers, input_source);
    hpct_train_batch_source_close(input_source);
    hpct_predict_workers_close(workers);
    return status;
}

static hpct_status check_outputs(const predicting *p)
{
    for (size_t i = 0; i < p->own.count; i++) {
        size_t index = p->own.begin + i;
        const char *name = hpct_dataset_sample_name(p->dataset, index);
        if (!isnan(p->best[i * (size_t) p->top_k].probability))
            continue;
        const char *why = "are the weights finite, and are these the data, and --scale, that they "
                          "were trained with?";
        if (name != NULL)
            return hpct_fail(HPCT_ERR_DATA, "%s/%s: the model's outputs are not finite: %s",
                             p->dataset->path, name, why);
        return hpct_fail(HPCT_ERR_DATA, "%s: the model's outputs for sample %zu are not finite: %s",
                         p->dataset->path, index, why);
    }
    return HPCT_OK;
}

/* A ReLU may make 0 of NaN, so that the outputs are finite. */
static hpct_status check_weights(const predicting *p)
{
    if (p->own.count == 0 || hpct_model_check_finite(p->model) != HPCT_ERR_DATA)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_DATA, "the predictions are meaningless: in the weights, %s",
                     hpct_last_error());
}

/* ---- all ranks ---- */

/* Rank `from`'s predictions come to rank 0, in messages of bounded size. */
static hpct_status gather_from(predicting *p, int from, char *message)
{
    hpct_comm *comm = hpct_context_comm(p->context);
    part of = part_of(p, from);
    size_t each = (size_t) p->top_k * sizeof *p->best, bytes = of.count * each;
    char *to = comm->rank == 0 ? (char *) p->best + of.begin * each : (char *) p->best;
    for (size_t done = 0; done < bytes; done += MESSAGE_BYTES) {
        size_t size = bytes - done < MESSAGE_BYTES ? bytes - done : MESSAGE_BYTES;
        if (comm->rank == from)
            memcpy(message, to + done, size);
        HPCT_TRY(comm->ops->broadcast(comm, message, size, from));
        if (comm->rank == 0)
            memcpy(to + done, message, size);
    }
    return HPCT_OK;
}

static hpct_status gather(predicting *p)
{
    int size = hpct_context_size(p->context);
    char *message = size > 1 ? malloc(MESSAGE_BYTES) : NULL;
    hpct_status status = hpct_context_agree(
        p->context, size == 1 || message != NULL ? HPCT_OK : hpct_fail_memory(MESSAGE_BYTES));
    for (int from = 1; from < size && status == HPCT_OK; from++)
        status = gather_from(p, from, message);
    free(message);
    return status;
}

static hpct_status write_all(const predicting *p)
{
    hpct_predict_rows rows = {
        .dataset = p->dataset, .top_k = p->top_k, .outputs = p->outputs, .best = p->best};
    char **names = NULL;
    HPCT_TRY(p->outputs ? hpct_model_output_names(p->model, &names, &rows.num_names, NULL)
                        : hpct_model_class_names(p->model, &names, &rows.num_names));
    rows.names = names;
    hpct_status status =
        p->options->output != NULL ? hpct_predict_rows_write(&rows, p->options->output) : HPCT_OK;
    if (status == HPCT_OK && p->options->table != NULL)
        status = hpct_predict_rows_print(&rows, p->options->table);
    free(names);
    return status;
}

/* ---- hpct_cost_predict ---- */

hpct_status hpct_predict_check(const hpct_predict_options *options)
{
    if (options->batch_size < 0 || options->top_k < 0)
        return hpct_fail(HPCT_ERR_USAGE, "batch_size is %d and top_k %d, they must be at least 1",
                         options->batch_size, options->top_k);
    return options->output != NULL ? hpct_predict_rows_check_name(options->output) : HPCT_OK;
}

/* Sets whether all outputs are written. */
static hpct_status find_outputs(predicting *p)
{
    HPCT_TRY(hpct_predict_scores_find_outputs(p->model, &p->outputs));
    if (p->outputs && p->options->top_k > 0)
        return hpct_fail(HPCT_ERR_USAGE,
                         "--top-k is for classes: the weights are of a model with a number for "
                         "each output, and all of them are written");
    if (p->outputs)
        p->top_k = hpct_model_output_shape(p->model).size[0];
    return HPCT_OK;
}

/* Before anything is computed. */
static hpct_status check(predicting *p)
{
    hpct_predict_scores scores = {0};
    hpct_status status = hpct_predict_check(p->options);
    if (status == HPCT_OK)
        status = find_outputs(p);
    if (status == HPCT_OK)
        status = hpct_predict_scores_open(&scores, p->model, p->top_k);
    hpct_predict_scores_close(&scores);
    if (status == HPCT_OK)
        status = hpct_dataset_check(p->dataset, hpct_model_input_shape(p->model), INT_MAX);
    if (status == HPCT_OK && p->options->output != NULL && hpct_context_rank(p->context) == 0)
        status = hpct_output_try(p->options->output, 0);
    return status;
}

/* Of the largest part, which is rank 0's; a thread's group costs what its part of a batch would. */
static hpct_status admit(predicting *p)
{
    size_t most = (size_t) hpct_cpu_threads() * (size_t) p->group;
    part largest = part_of(p, 0);
    return hpct_cost_batch_admit(
        p->context, p->model, &(hpct_batch_options){.data = p->dataset, .evaluate = true},
        round_up(most < largest.count ? most : largest.count, p->group), NULL);
}

static hpct_status take_memory(predicting *p)
{
    size_t samples = hpct_context_rank(p->context) == 0 ? p->dataset->size : p->own.count;
    size_t bytes = (samples * (size_t) p->top_k + 1) * sizeof *p->best;
    p->best = malloc(bytes);
    p->indices = malloc(((size_t) p->batch + 1) * sizeof *p->indices);
    return p->best != NULL && p->indices != NULL ? HPCT_OK : hpct_fail_memory(bytes);
}

static hpct_status predict(predicting *p)
{
    HPCT_TRY(hpct_context_agree(p->context, check(p)));
    HPCT_TRY(hpct_train_identity_agree(
        p->context,
        &(hpct_train_identity_of){.model = p->model, .validation = p->dataset, .weights = true}));
    HPCT_TRY(hpct_rank_threads_set(p->context));
    choose_batch(p);
    HPCT_TRY(admit(p));
    HPCT_TRY(hpct_context_agree(p->context, take_memory(p)));
    hpct_status status = predict_part(p);
    if (status == HPCT_OK)
        status = check_outputs(p);
    if (status == HPCT_OK)
        status = check_weights(p);
    HPCT_TRY(hpct_context_agree(p->context, status));
    HPCT_TRY(gather(p));
    return hpct_context_agree(p->context,
                              hpct_context_rank(p->context) == 0 ? write_all(p) : HPCT_OK);
}

hpct_status hpct_predict_classes(hpct_context *context, hpct_model *model,
                                 const hpct_dataset *dataset, const hpct_predict_options *options)
{
    predicting p = {.context = context,
                    .model = model,
                    .dataset = dataset,
                    .options = options,
                    .top_k = options->top_k > 0 ? options->top_k : 1,
                    .group = hpct_predict_workers_group(model)};
    hpct_waits before = hpct_enter_wait(HPCT_WAITS_FOR_NOBODY);
    hpct_status status = predict(&p);
    hpct_enter_wait(before);
    free(p.best);
    free(p.indices);
    return status;
}
