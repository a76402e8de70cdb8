#include "nn/backend/cuda/side_stream.h"

#include "base/status.h"

/* Lowest priority: side work fills gaps of the compute stream, which others wait for. */
hpct_status hpct_cuda_open_side(void)
{
    int least = 0, greatest = 0;
    HPCT_TRY(HPCT_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest)));
    HPCT_TRY(HPCT_CUDA(
        cudaStreamCreateWithPriority(&hpct_cuda_gpu.side.stream, cudaStreamNonBlocking, least)));
    HPCT_TRY(
        HPCT_CUDA(cudaEventCreateWithFlags(&hpct_cuda_gpu.side.begin, cudaEventDisableTiming)));
    return HPCT_CUDA(cudaEventCreateWithFlags(&hpct_cuda_gpu.side.end, cudaEventDisableTiming));
}

static void change_places(void)
{
    cudaStream_t stream = hpct_cuda_gpu.stream;
    hpct_cuda_gpu.stream = hpct_cuda_gpu.side.stream;
    hpct_cuda_gpu.side.stream = stream;
}

hpct_status hpct_cuda_begin_side(void)
{
    hpct_status status = HPCT_CUDA(cudaEventRecord(hpct_cuda_gpu.side.begin, hpct_cuda_gpu.stream));
    if (status == HPCT_OK)
        status =
            HPCT_CUDA(cudaStreamWaitEvent(hpct_cuda_gpu.side.stream, hpct_cuda_gpu.side.begin, 0));
    change_places();
    return status;
}

/* Also records the end after an error: some of the work may be running. */
hpct_status hpct_cuda_end_side(hpct_status status)
{
    hpct_status ended = HPCT_CUDA(cudaEventRecord(hpct_cuda_gpu.side.end, hpct_cuda_gpu.stream));
    change_places();
    hpct_cuda_gpu.side.open = hpct_cuda_gpu.side.open || ended == HPCT_OK;
    return status == HPCT_OK ? ended : status;
}

hpct_status hpct_cuda_join_side(void)
{
    if (!hpct_cuda_gpu.side.open)
        return HPCT_OK;
    hpct_cuda_gpu.side.open = false;
    return HPCT_CUDA(cudaStreamWaitEvent(hpct_cuda_gpu.stream, hpct_cuda_gpu.side.end, 0));
}

void hpct_cuda_forget_side(void)
{
    hpct_cuda_gpu.side.open = false;
}
