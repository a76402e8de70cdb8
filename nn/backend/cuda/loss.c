/* Loss and metrics. */
#include "nn/backend/cuda/ops.h"

#include <stddef.h>

_Static_assert(sizeof(hpct_backend_batch_sums) == sizeof(hpct_cuda_loss_sums) &&
                   offsetof(hpct_backend_batch_sums, loss) == offsetof(hpct_cuda_loss_sums, loss) &&
                   offsetof(hpct_backend_batch_sums, correct) ==
                       offsetof(hpct_cuda_loss_sums, correct) &&
                   offsetof(hpct_backend_batch_sums, in_top_k) ==
                       offsetof(hpct_cuda_loss_sums, in_top_k),
               "the kernel's sums are not nn's");

static const hpct_cuda_loss_kind kinds[HPCT_BACKEND_LOSS_FORMS] = {
    [HPCT_BACKEND_LOSS_LOGITS] = HPCT_CUDA_LOSS_KIND_LOGITS,
    [HPCT_BACKEND_LOSS_PROBABILITIES] = HPCT_CUDA_LOSS_KIND_PROBABILITIES,
    [HPCT_BACKEND_LOSS_DISTRIBUTION] = HPCT_CUDA_LOSS_KIND_DISTRIBUTION,
    [HPCT_BACKEND_LOSS_BINARY_LOGITS] = HPCT_CUDA_LOSS_KIND_BINARY_LOGITS,
    [HPCT_BACKEND_LOSS_BINARY] = HPCT_CUDA_LOSS_KIND_BINARY,
    [HPCT_BACKEND_LOSS_SQUARED] = HPCT_CUDA_LOSS_KIND_SQUARED,
    [HPCT_BACKEND_LOSS_BINARY_FOCAL_LOGITS] = HPCT_CUDA_LOSS_KIND_BINARY_FOCAL_LOGITS,
    [HPCT_BACKEND_LOSS_BINARY_FOCAL] = HPCT_CUDA_LOSS_KIND_BINARY_FOCAL,
    [HPCT_BACKEND_LOSS_FOCAL_LOGITS] = HPCT_CUDA_LOSS_KIND_FOCAL_LOGITS,
    [HPCT_BACKEND_LOSS_FOCAL] = HPCT_CUDA_LOSS_KIND_FOCAL,
    [HPCT_BACKEND_LOSS_HUBER] = HPCT_CUDA_LOSS_KIND_HUBER,
    [HPCT_BACKEND_LOSS_DIVERGENCE] = HPCT_CUDA_LOSS_KIND_DIVERGENCE,
};

static const hpct_cuda_judged judged[] = {
    [HPCT_TARGETS_CLASS] = HPCT_CUDA_JUDGED_CLASS,
    [HPCT_TARGETS_BINARY] = HPCT_CUDA_JUDGED_BINARY,
    [HPCT_TARGETS_NUMBERS] = HPCT_CUDA_JUDGED_NUMBERS,
};

static hpct_cuda_loss_args loss_args(const hpct_backend_loss_call *call)
{
    return (hpct_cuda_loss_args){.kind = kinds[call->form],
                                 .n = call->n,
                                 .classes = call->classes,
                                 .top_k = call->top_k,
                                 .label_smoothing = call->label_smoothing,
                                 .threshold = call->threshold,
                                 .scale = call->scale,
                                 .alpha = call->alpha,
                                 .gamma = call->gamma,
                                 .delta = call->delta,
                                 .class_weights = call->class_weights,
                                 .penalty = call->penalty,
                                 .scaling = call->scaling,
                                 .labels = call->labels,
                                 .targets = call->targets,
                                 .judged = judged[call->judged],
                                 .sums = (hpct_cuda_loss_sums *) (void *) call->sums,
                                 .left = (hpct_cuda_loss_sums *) (void *) call->left,
                                 .turns = call->turns};
}

hpct_status hpct_cuda_loss(const hpct_backend_loss_call *call)
{
    hpct_cuda_loss_args args = loss_args(call);
    return hpct_cuda_check(hpct_cuda_launch_loss(hpct_cuda_current_queue(),
                                                 hpct_cuda_number_for(call->values), args,
                                                 call->src, call->diff_src),
                           "loss");
}

hpct_status hpct_cuda_put_sums(const hpct_backend_batch_sums *sums, float *to)
{
    return hpct_cuda_check(
        hpct_cuda_launch_put_sums(hpct_cuda_current_queue(),
                                  (const hpct_cuda_loss_sums *) (const void *) sums, to),
        "sums");
}
