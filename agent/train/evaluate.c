/* Evaluation: each rank evaluates its share of the data set; the sums are all-gathered. */
#include "agent/train/evaluate.h"

#include "agent/cost/batch.h"
#include "agent/data/dataset.h"
#include "agent/data/sampler.h"
#include "agent/rank/context.h"
#include "agent/rank/threads.h"
#include "agent/train/feed.h"
#include "base/headway.h"
#include "base/status.h"
#include "nn/file/weights.h"
#include "nn/run/step.h"

#include <math.h>
#include <stdlib.h>

#define DEFAULT_BATCH 128

static int64_t share(hpct_context *context, const hpct_dataset *dataset, int64_t *begin)
{
    return hpct_slice((int64_t) dataset->size, hpct_context_rank(context),
                      hpct_context_size(context), begin);
}

int hpct_evaluate_batch_sizes(hpct_context *context, const hpct_dataset *dataset, int batch,
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

static hpct_batch batch_of_share(void *argument, int64_t number)
{
    own_share *s = argument;
    int64_t done = number * s->batch, left = s->count - done;
    int count = left < s->batch ? (int) left : s->batch;
    for (int i = 0; i < count; i++)
        s->indices[i] = (uint32_t) (s->begin + done + i);
    return (hpct_batch){.indices = s->indices, .count = count, .global_count = count};
}

static hpct_status evaluate_batch(hpct_model *model, hpct_strategy *strategy, int count,
                                  hpct_batch_sums *sums)
{
    if (strategy != NULL && strategy->ops->evaluate != NULL)
        return strategy->ops->evaluate(strategy, count, sums);
    HPCT_TRY(hpct_model_forward(model, count, false));
    return hpct_model_loss(model, count, 0, sums);
}

static hpct_status evaluate_batches(hpct_model *model, hpct_strategy *strategy, hpct_feed *feed,
                                    int64_t batches, hpct_batch_sums *sums)
{
    hpct_status status = HPCT_OK;
    for (int64_t i = 0; i < batches && status == HPCT_OK; i++) {
        hpct_batch_sums one = {0};
        hpct_input input;
        status = hpct_feed_next(feed, &input);
        if (status != HPCT_OK)
            break;
        status = evaluate_batch(model, strategy, input.count, &one);
        sums->loss += one.loss;
        sums->correct += one.correct;
        sums->in_top_k += one.in_top_k;
    }
    return status;
}

hpct_status hpct_evaluate_slice(hpct_model *model, hpct_strategy *strategy,
                                const hpct_dataset *dataset, int slice, int slices, int batch,
                                hpct_batch_sums *sums)
{
    own_share mine = {.batch = batch};
    mine.count = hpct_slice((int64_t) dataset->size, slice, slices, &mine.begin);
    mine.indices = malloc((size_t) batch * sizeof *mine.indices);
    if (mine.indices == NULL)
        return hpct_fail_memory((size_t) batch * sizeof *mine.indices);
    hpct_feed *feed = NULL;
    hpct_pipeline_options options = {
        .dataset = dataset,
        .batches = (mine.count + batch - 1) / batch,
        .largest = mine.count < batch ? (int) mine.count : batch,
        .threads = hpct_cpu_threads(),
        .batch = batch_of_share,
        .from = &mine,
    };
    hpct_status status =
        hpct_feed_open(&feed, model, &options, (size_t) mine.begin, (size_t) mine.count);
    if (status == HPCT_OK)
        status = evaluate_batches(model, strategy, feed, options.batches, sums);
    hpct_feed_close(feed);
    free(mine.indices);
    return status;
}

hpct_status hpct_evaluate_built(hpct_context *context, hpct_model *model, hpct_strategy *strategy,
                                const hpct_dataset *dataset, int batch, hpct_metrics *metrics)
{
    hpct_comm *comm = hpct_context_comm(context);
    hpct_batch_sums mine = {0}, sum = {0};
    hpct_batch_sums *all = malloc((size_t) comm->size * sizeof *all);
    hpct_status status =
        all == NULL ? hpct_fail_memory((size_t) comm->size * sizeof *all) : HPCT_OK;
    if (status == HPCT_OK)
        status =
            hpct_evaluate_slice(model, strategy, dataset, comm->rank, comm->size, batch, &mine);
    status = hpct_context_agree(context, status);
    if (status == HPCT_OK)
        status = comm->ops->allgather(comm, &mine, all, sizeof mine);
    for (int rank = 0; status == HPCT_OK && rank < comm->size; rank++) {
        sum.loss += all[rank].loss;
        sum.correct += all[rank].correct;
        sum.in_top_k += all[rank].in_top_k;
    }
    metrics->loss = sum.loss / (double) dataset->size;
    metrics->accuracy = (double) sum.correct / (double) dataset->size;
    metrics->top_k_accuracy = (double) sum.in_top_k / (double) dataset->size;
    free(all);
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

hpct_status hpct_evaluate(hpct_context *context, hpct_model *model, const hpct_dataset *dataset,
                          int batch_size, hpct_metrics *metrics)
{
    int batch = batch_size == 0 ? DEFAULT_BATCH : batch_size, sizes[2] = {1};
    hpct_waits before = hpct_headway_enter(HPCT_WAITS_FOR_NOBODY);
    hpct_status status = HPCT_OK;
    if (batch < 1)
        status = hpct_fail(HPCT_ERR_USAGE, "batch_size is %d, it must be at least 1", batch_size);
    if (status == HPCT_OK)
        status = hpct_dataset_check(dataset, hpct_model_input_shape(model),
                                    hpct_model_count_labels(model));
    status = hpct_context_agree(context, status);
    if (status == HPCT_OK)
        status = hpct_threads_set(context);
    int64_t begin,
        most = hpct_slice((int64_t) dataset->size, 0, hpct_context_size(context), &begin);
    if (status == HPCT_OK)
        status = hpct_batch_asked(
            hpct_batch_admit(context, model,
                             &(hpct_batch_options){.data = dataset, .evaluate = true},
                             most < batch ? (int) most : batch, NULL),
            most < batch ? (int) most : batch, 0, batch, dataset->size);
    if (status != HPCT_OK)
        goto end;
    int num_sizes = hpct_evaluate_batch_sizes(context, dataset, batch, sizes);
    hpct_build_options build = {
        .batch_sizes = sizes,
        .num_batch_sizes = num_sizes > 0 ? num_sizes : 1, /* 0: more ranks than samples */
        .inference_only = true,
    };
    status = hpct_context_agree(context, hpct_model_build(model, &build));
    if (status == HPCT_OK)
        status = hpct_evaluate_built(context, model, NULL, dataset, batch, metrics);
    if (status == HPCT_OK)
        status = hpct_context_agree(context, check_loss(model, metrics->loss));

end:
    hpct_headway_enter(before);
    return status;
}
