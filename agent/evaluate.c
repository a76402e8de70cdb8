/* Evaluation: each rank its share of the data set, the sums gathered. */
#include "agent/evaluate.h"

#include "agent/context.h"
#include "agent/data/dataset.h"
#include "agent/data/sampler.h"
#include "agent/threads.h"
#include "base/status.h"
#include "nn/step.h"

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

static hpct_status evaluate_share(hpct_context *context, hpct_model *model,
                                  const hpct_dataset *dataset, int batch, hpct_batch_sums *sums)
{
    int64_t begin, count = share(context, dataset, &begin);
    uint32_t *indices = malloc((size_t) batch * sizeof *indices);
    hpct_status status = HPCT_OK;
    if (indices == NULL)
        return hpct_fail_memory((size_t) batch * sizeof *indices);
    for (int64_t done = 0; done < count && status == HPCT_OK; done += batch) {
        hpct_batch_sums one = {0};
        int n = count - done < batch ? (int) (count - done) : batch;
        for (int i = 0; i < n; i++)
            indices[i] = (uint32_t) (begin + done + i);
        hpct_dataset_gather(dataset, indices, n, hpct_model_input(model), hpct_model_labels(model));
        status = hpct_model_forward(model, n, false);
        if (status == HPCT_OK)
            status = hpct_model_loss(model, n, 0, &one);
        sums->loss += one.loss;
        sums->correct += one.correct;
        sums->in_top_k += one.in_top_k;
    }
    free(indices);
    return status;
}

hpct_status hpct_evaluate_built(hpct_context *context, hpct_model *model,
                                const hpct_dataset *dataset, int batch, hpct_metrics *metrics)
{
    hpct_comm *comm = hpct_context_comm(context);
    hpct_batch_sums mine = {0}, sum = {0};
    hpct_batch_sums *all = malloc((size_t) comm->size * sizeof *all);
    hpct_status status =
        all == NULL ? hpct_fail_memory((size_t) comm->size * sizeof *all) : HPCT_OK;
    if (status == HPCT_OK)
        status = evaluate_share(context, model, dataset, batch, &mine);
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

hpct_status hpct_evaluate(hpct_context *context, hpct_model *model, const hpct_dataset *dataset,
                          int batch_size, hpct_metrics *metrics)
{
    int batch = batch_size == 0 ? DEFAULT_BATCH : batch_size, sizes[2] = {1};
    hpct_status status = HPCT_OK;
    if (batch < 1)
        status = hpct_fail(HPCT_ERR_USAGE, "batch_size is %d, it must be at least 1", batch_size);
    if (status == HPCT_OK)
        status = hpct_dataset_check(dataset, hpct_model_input_shape(model),
                                    hpct_model_count_labels(model));
    status = hpct_context_agree(context, status);
    if (status == HPCT_OK)
        status = hpct_threads_set(context);
    if (status != HPCT_OK)
        return status;
    int num_sizes = hpct_evaluate_batch_sizes(context, dataset, batch, sizes);
    hpct_build_options build = {
        .backend = "cpu",
        .batch_sizes = sizes,
        .num_batch_sizes = num_sizes > 0 ? num_sizes : 1, /* more ranks than samples */
        .inference_only = true,
    };
    status = hpct_context_agree(context, hpct_model_build(model, &build));
    if (status == HPCT_OK)
        status = hpct_evaluate_built(context, model, dataset, batch, metrics);
    return status;
}
