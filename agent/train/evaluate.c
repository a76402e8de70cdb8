/* Evaluation: each rank evaluates its share of the data set; the sums are all-gathered. */
#include "agent/train/evaluate.h"

#include "agent/cost/batch.h"
#include "agent/data/dataset.h"
#include "agent/data/sampler.h"
#include "agent/rank/context.h"
#include "agent/rank/threads.h"
#include "agent/results/json_file.h"
#include "agent/results/results.h"
#include "agent/results/summary.h"
#include "agent/train/batch_source.h"
#include "agent/train/identity.h"
#include "agent/train/means.h"
#include "agent/train/targets.h"
#include "base/progress.h"
#include "base/status.h"
#include "nn/backend/cpu/backend.h"
#include "nn/file/weights.h"
#include "nn/run/step.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_BATCH 128
#define GATHERED_COUNTS ((size_t) 1 << 18) /* at once, of all ranks: 2 MiB */

static int64_t share(hpct_context *context, const hpct_dataset *dataset, int64_t *begin)
{
    return hpct_data_slice((int64_t) dataset->size, hpct_context_rank(context),
                           hpct_context_size(context), begin);
}

int hpct_train_evaluate_batch_sizes(hpct_context *context, const hpct_dataset *dataset, int batch,
                                    int sizes[2])
{
    int64_t begin, count = share(context, dataset, &begin);
    int num = 0;
    if (count >= batch)
        sizes[num++] = batch;
    if (count % batch != 0)
        sizes[num++] = (int) (count % batch);
    return num;
}

/* This rank's samples, in order. */
typedef struct own_share {
    int64_t begin, count;
    int batch;
    uint32_t *indices; /* [batch] */
} own_share;

static hpct_data_batch batch_of_share(void *argument, int64_t number)
{
    own_share *s = argument;
    int64_t done = number * s->batch, left = s->count - done;
    int count = left < s->batch ? (int) left : s->batch;
    for (int i = 0; i < count; i++)
        s->indices[i] = (uint32_t) (s->begin + done + i);
    return (hpct_data_batch){.indices = s->indices, .count = count, .global_count = count};
}

static hpct_status evaluate_batch(hpct_model *model, hpct_strategy *strategy, int count,
                                  hpct_backend_batch_sums *sums)
{
    if (strategy != NULL && strategy->ops->evaluate != NULL)
        return strategy->ops->evaluate(strategy, count, sums);
    HPCT_TRY(hpct_model_forward(model, count, false));
    return hpct_model_loss(model, count, 0, sums);
}

/* Of the samples from `first` on. */
static hpct_status count_part(hpct_results_tally *tally, const hpct_dataset *dataset, int64_t first,
                              const float *outputs, int count)
{
    if (dataset->targets == NULL)
        return hpct_results_tally_add(tally, outputs, dataset->labels + first, count);
    hpct_results_tally_add_numbers(tally, outputs, dataset->targets + first * dataset->num_targets,
                                   count);
    return HPCT_OK;
}

/* Counts the outputs of the last batch, of the samples from `first` on. */
static hpct_status count_outputs(hpct_model *model, hpct_strategy *strategy,
                                 hpct_results_tally *tally, const hpct_dataset *dataset,
                                 int64_t first, int count)
{
    const float *outputs = NULL;
    if (strategy == NULL || strategy->ops->evaluate == NULL) {
        outputs = hpct_model_output(model);
        return outputs != NULL ? count_part(tally, dataset, first, outputs, count)
                               : HPCT_ERR_INTERNAL;
    }
    for (int k = 0, part = 0; part >= 0; k++) {
        HPCT_TRY(strategy->ops->outputs(strategy, k, &outputs, &part));
        if (part > 0) {
            HPCT_TRY(count_part(tally, dataset, first, outputs, part));
            first += part;
        }
    }
    return HPCT_OK;
}

/* The samples from `first` on. */
static hpct_status evaluate_batches(hpct_model *model, hpct_strategy *strategy,
                                    hpct_train_batch_source *input_source, int64_t batches,
                                    hpct_results_tally *tally, const hpct_dataset *dataset,
                                    int64_t first, hpct_backend_batch_sums *sums)
{
    hpct_status status = HPCT_OK;
    for (int64_t i = 0; i < batches && status == HPCT_OK; i++) {
        hpct_backend_batch_sums one = {0};
        hpct_data_input input;
        status = hpct_train_batch_source_next(input_source, &input);
        if (status != HPCT_OK)
            break;
        status = evaluate_batch(model, strategy, input.count, &one);
        sums->loss += one.loss;
        sums->correct += one.correct;
        sums->in_top_k += one.in_top_k;
        if (status == HPCT_OK && tally != NULL)
            status = count_outputs(model, strategy, tally, dataset, first, input.count);
        first += input.count;
    }
    return status;
}

hpct_status hpct_train_evaluate_slice(hpct_model *model, hpct_strategy *strategy,
                                      const hpct_dataset *dataset, int slice, int slices, int batch,
                                      hpct_results_tally *tally, hpct_backend_batch_sums *sums)
{
    own_share mine = {.batch = batch};
    mine.count = hpct_data_slice((int64_t) dataset->size, slice, slices, &mine.begin);
    mine.indices = malloc((size_t) batch * sizeof *mine.indices);
    if (mine.indices == NULL)
        return hpct_fail_memory((size_t) batch * sizeof *mine.indices);
    hpct_train_batch_source *input_source = NULL;
    hpct_data_pipeline_options options = {
        .dataset = dataset,
        .batches = (mine.count + batch - 1) / batch,
        .largest = mine.count < batch ? (int) mine.count : batch,
        .threads = hpct_cpu_threads(),
        .batch = batch_of_share,
        .from = &mine,
    };
    hpct_status status = hpct_train_batch_source_open(&input_source, model, &options,
                                                      (size_t) mine.begin, (size_t) mine.count);
    if (status == HPCT_OK)
        status = evaluate_batches(model, strategy, input_source, options.batches, tally, dataset,
                                  mine.begin, sums);
    hpct_train_batch_source_close(input_source);
    free(mine.indices);
    return status;
}

/* ---- metrics of the whole data set ---- */

hpct_status hpct_train_evaluate_open_tally(hpct_results_tally **tally, const hpct_model *model,
                                           unsigned metrics, bool matrix)
{
    hpct_shape output = hpct_model_output_shape(model);
    *tally = NULL;
    return metrics != 0 || matrix
               ? hpct_results_tally_open(
                     tally, &(hpct_results_tally_options){.outputs = output.size[output.rank - 1],
                                                          .labels = hpct_model_count_labels(model),
                                                          .logits = hpct_model_gives_logits(model),
                                                          .numbers = hpct_model_judged(model) ==
                                                                     HPCT_TARGETS_NUMBERS,
                                                          .metrics = metrics,
                                                          .matrix = matrix})
               : HPCT_OK;
}

/* sums[num] of all ranks, in the order of the ranks. */
static hpct_status add_up_sums(hpct_context *context, double *sums, size_t num)
{
    hpct_comm *comm = hpct_context_comm(context);
    size_t all_num = num * (size_t) comm->size;
    double *all = malloc(all_num * sizeof *all);
    hpct_status status = hpct_context_agree(
        context, all != NULL ? HPCT_OK : hpct_fail_memory(all_num * sizeof *all));
    if (status == HPCT_OK)
        status = comm->ops->allgather(comm, sums, all, num * sizeof *sums);
    memset(sums, 0, num * sizeof *sums);
    for (size_t i = 0; status == HPCT_OK && i < all_num; i++)
        sums[i % num] += all[i];
    free(all);
    return status;
}

/* Adds the counts of all ranks, piece by piece: a confusion matrix may be large. */
static hpct_status add_up(hpct_context *context, hpct_results_tally *tally)
{
    hpct_comm *comm = hpct_context_comm(context);
    size_t num, size = (size_t) comm->size, piece = GATHERED_COUNTS / size + 1;
    int64_t *counts = hpct_results_tally_counts(tally, &num);
    int64_t *all = malloc(piece * size * sizeof *all);
    hpct_status status = hpct_context_agree(
        context, all != NULL ? HPCT_OK : hpct_fail_memory(piece * size * sizeof *all));
    for (size_t at = 0; status == HPCT_OK && at < num; at += piece) {
        size_t count = num - at < piece ? num - at : piece;
        status = comm->ops->allgather(comm, counts + at, all, count * sizeof *all);
        memset(counts + at, 0, count * sizeof *counts);
        for (size_t i = 0; status == HPCT_OK && i < count * size; i++)
            counts[at + i % count] += all[i];
    }
    free(all);
    return status;
}

hpct_status hpct_train_evaluate_built(hpct_context *context, hpct_model *model,
                                      hpct_strategy *strategy, const hpct_dataset *dataset,
                                      int batch, hpct_results_tally *tally, hpct_metrics *metrics)
{
    hpct_backend_batch_sums mine = {0};
    if (tally != NULL)
        hpct_results_tally_clear(tally);
    hpct_status status = hpct_context_agree(
        context, hpct_train_evaluate_slice(model, strategy, dataset, hpct_context_rank(context),
                                           hpct_context_size(context), batch, tally, &mine));
    double sums[] = {mine.loss, (double) mine.correct, (double) mine.in_top_k};
    if (status == HPCT_OK)
        status = add_up_sums(context, sums, sizeof sums / sizeof *sums);
    if (status == HPCT_OK && tally != NULL)
        status = add_up(context, tally);
    if (status == HPCT_OK && tally != NULL)
        status = add_up_sums(context, (double *) hpct_results_tally_sums(tally),
                             sizeof(hpct_metrics) / sizeof(double));
    *metrics = hpct_train_metrics_of(model, sums[0], sums[1], sums[2], (int64_t) dataset->size);
    hpct_results_tally_get(status == HPCT_OK ? tally : NULL, metrics);
    return status;
}

/* Not finite: corrupt weights, or inputs far from the training data. */
static hpct_status check_loss(const hpct_model *model, double loss)
{
    /* A ReLU may make 0 of NaN, so that the loss is finite. */
    if (hpct_model_check_finite(model) == HPCT_ERR_DATA)
        return hpct_fail(HPCT_ERR_DATA, "the loss is meaningless: in the weights, %s",
                         hpct_last_error());
    if (isfinite(loss))
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_DATA, "the loss is not finite, though the weights are: are these the "
                                    "data, and --scale, that they were trained with?");
}

/* Metrics that need not be asked for. The loss stays where it is. */
static void add_means(json_t *object, const hpct_metrics *metrics)
{
    bool numbers = isnan(metrics->accuracy);
    const hpct_results_metric_choice choice = {.classes = !numbers, .numbers = numbers};
    HPCT_RESULTS_METRIC_EACH (m, &choice, false)
        json_object_set_new(object, m->name, json_real(hpct_results_metric_get(m, metrics)));
}

/* By rank 0. */
static hpct_status write_files(const hpct_context *context, const hpct_evaluate_options *o,
                               const hpct_dataset *dataset, const hpct_results_tally *tally,
                               const hpct_metrics *metrics)
{
    if (hpct_context_rank(context) != 0)
        return HPCT_OK;
    if (o->confusion_matrix != NULL)
        HPCT_TRY(hpct_results_tally_write(tally, dataset->classes, dataset->num_classes,
                                          o->confusion_matrix));
    if (o->summary_json == NULL)
        return HPCT_OK;
    json_t *object =
        json_pack("{s:I,s:f}", "samples", (json_int_t) dataset->size, "loss", metrics->loss);
    if (object != NULL)
        add_means(object, metrics);
    if (object != NULL && tally != NULL)
        hpct_results_summary_add_tally(object, "", tally, dataset->classes, dataset->num_classes);
    return hpct_results_json_write(object, o->summary_json);
}

/* Local to the rank. */
static hpct_status check(const hpct_context *context, hpct_model *model,
                         const hpct_dataset *dataset, const hpct_evaluate_options *o,
                         hpct_results_tally **tally)
{
    const hpct_results_file files[] = {{"--confusion-matrix", o->confusion_matrix, 0},
                                       {"--summary-json", o->summary_json, 0}};
    if (o->batch_size < 0)
        return hpct_fail(HPCT_ERR_USAGE, "batch_size is %d, it must be at least 1", o->batch_size);
    HPCT_TRY(
        hpct_dataset_check(dataset, hpct_model_input_shape(model), hpct_model_count_labels(model)));
    HPCT_TRY(hpct_train_targets_evaluate(model, dataset, o));
    HPCT_TRY(hpct_train_evaluate_open_tally(tally, model, o->metrics, o->confusion_matrix != NULL));
    return hpct_context_rank(context) == 0 ? hpct_results_try(files, 2) : HPCT_OK;
}

static hpct_status build(hpct_context *context, hpct_model *model, const hpct_dataset *dataset,
                         int batch)
{
    int64_t begin,
        most = hpct_data_slice((int64_t) dataset->size, 0, hpct_context_size(context), &begin);
    int largest = most < batch ? (int) most : batch, sizes[2] = {1};
    const hpct_batch_options options = {.data = dataset, .evaluate = true};
    HPCT_TRY(hpct_cost_batch_asked(hpct_cost_batch_admit(context, model, &options, largest, NULL),
                                   largest, 0, batch, dataset->size));
    int num_sizes = hpct_train_evaluate_batch_sizes(context, dataset, batch, sizes);
    hpct_run_build_options built = {
        .batch_sizes = sizes,
        .num_batch_sizes = num_sizes > 0 ? num_sizes : 1, /* 0: more ranks than samples */
        .inference_only = true,
    };
    return hpct_context_agree(context, hpct_model_build(model, &built));
}

static hpct_status evaluate(hpct_context *context, hpct_model *model, const hpct_dataset *dataset,
                            const hpct_evaluate_options *o, hpct_results_tally **tally,
                            hpct_metrics *metrics)
{
    const hpct_train_identity_of of = {.model = model, .validation = dataset, .weights = true};
    int batch = o->batch_size == 0 ? DEFAULT_BATCH : o->batch_size;
    HPCT_TRY(hpct_context_agree(context, check(context, model, dataset, o, tally)));
    HPCT_TRY(hpct_train_identity_agree(context, &of));
    HPCT_TRY(hpct_rank_threads_set(context));
    HPCT_TRY(build(context, model, dataset, batch));
    HPCT_TRY(hpct_train_evaluate_built(context, model, NULL, dataset, batch, *tally, metrics));
    HPCT_TRY(hpct_context_agree(context, check_loss(model, metrics->loss)));
    HPCT_TRY(hpct_context_agree(context, write_files(context, o, dataset, *tally, metrics)));
    if (o->classes != NULL && *tally != NULL)
        hpct_results_tally_print(*tally, dataset->classes, dataset->num_classes, o->classes);
    return HPCT_OK;
}

hpct_status hpct_evaluate_with(hpct_context *context, hpct_model *model,
                               const hpct_dataset *dataset, const hpct_evaluate_options *options,
                               hpct_metrics *metrics)
{
    hpct_results_tally *tally = NULL;
    hpct_waits before = hpct_enter_wait(HPCT_WAITS_FOR_NOBODY);
    hpct_status status = evaluate(context, model, dataset, options, &tally, metrics);
    hpct_results_tally_close(tally);
    hpct_enter_wait(before);
    return status;
}

hpct_status hpct_evaluate(hpct_context *context, hpct_model *model, const hpct_dataset *dataset,
                          int batch_size, hpct_metrics *metrics)
{
    return hpct_evaluate_with(context, model, dataset,
                              &(hpct_evaluate_options){.batch_size = batch_size}, metrics);
}
