/* Recorded parts of a step: CUDA graphs captured from the stream. */
#include "nn/backend/cuda/ops.h"
#include "nn/backend/cuda/side_stream.h"
#include "nn/backend/cuda/update.h"

#include <string.h>

/* Thread-local capture mode: other threads may make calls that a capture forbids. */
hpct_status hpct_cuda_record(void)
{
    hpct_status status = hpct_cuda_join_side(); /* side work left by a failed step */
    if (status == HPCT_OK)
        status = HPCT_CUDA(
            cudaStreamBeginCapture(hpct_cuda_gpu.stream, cudaStreamCaptureModeThreadLocal));
    hpct_cuda_gpu.recording = status == HPCT_OK;
    return status;
}

hpct_status hpct_cuda_end_record(void **recording)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t made = NULL;
    hpct_cuda_gpu.recording = false;
    hpct_cuda_forget_side();
    hpct_status status = HPCT_CUDA(cudaStreamEndCapture(hpct_cuda_gpu.stream, &graph));
    if (status == HPCT_OK) /* reductions of gradients are captured from a high-priority stream */
        status =
            HPCT_CUDA(cudaGraphInstantiate(&made, graph, cudaGraphInstantiateFlagUseNodePriority));
    if (graph != NULL)
        cudaGraphDestroy(graph);
    /* Uploads now, so that no launch has to while kernels of other replicas wait for this one. */
    if (status == HPCT_OK)
        status = HPCT_CUDA(cudaGraphUpload(made, hpct_cuda_gpu.stream));
    if (status == HPCT_OK)
        status = hpct_cuda_wait();
    if (status != HPCT_OK && made != NULL) {
        cudaGraphExecDestroy(made);
        made = NULL;
    }
    *recording = made;
    return status;
}

hpct_status hpct_cuda_replay(void *recording)
{
    return HPCT_CUDA(cudaGraphLaunch(recording, hpct_cuda_gpu.stream));
}

void hpct_cuda_drop_recording(void *recording)
{
    cudaGraphExecDestroy(recording);
}

/* ---- values that change in every step ---- */

static hpct_status set_moment(const hpct_cuda_moment *moment)
{
    if (memcmp(moment, &hpct_cuda_gpu.cached, sizeof *moment) == 0)
        return HPCT_OK;
    hpct_cuda_gpu.cached = *moment;
    return hpct_cuda_check(hpct_cuda_launch_moment(*moment, hpct_cuda_gpu.now), "moment");
}

/* Not needed by models without random operations. */
hpct_status hpct_cuda_set_draws(uint64_t seed, int64_t step, int64_t first_sample)
{
    hpct_cuda_moment moment = hpct_cuda_gpu.cached;
    moment.seed = seed;
    moment.step = (uint32_t) step;
    moment.first_sample = (uint32_t) first_sample;
    return hpct_cuda_gpu.draws ? set_moment(&moment) : HPCT_OK;
}

hpct_status hpct_cuda_set_rate(float rate)
{
    hpct_cuda_moment moment = hpct_cuda_gpu.cached;
    moment.minus_rate = -rate;
    moment.one = 1;
    return set_moment(&moment);
}

hpct_status hpct_cuda_set_rates(const hpct_backend_update_call *call)
{
    hpct_cuda_moment moment = hpct_cuda_gpu.cached;
    moment.minus_rate = -call->learning_rate;
    moment.one = 1;
    hpct_cuda_update_args args = hpct_cuda_update_args_of(call);
    moment.rate = args.rate;
    moment.decay = args.decay;
    moment.bias_1 = args.bias_1;
    moment.bias_2 = args.bias_2;
    return set_moment(&moment);
}
