#include "nn/backend/cuda/aside.h"

#include "base/status.h"

/* Lowest priority: side work fills gaps of the compute stream, which others wait for. */
hpct_status hpct_cuda_open_aside(void)
{
    int least = 0, greatest = 0;
    HPCT_TRY(HPCT_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest)));
    HPCT_TRY(HPCT_CUDA(
        cudaStreamCreateWithPriority(&hpct_gpu.aside.stream, cudaStreamNonBlocking, least)));
    HPCT_TRY(HPCT_CUDA(cudaEventCreateWithFlags(&hpct_gpu.aside.begin, cudaEventDisableTiming)));
    return HPCT_CUDA(cudaEventCreateWithFlags(&hpct_gpu.aside.end, cudaEventDisableTiming));
}

static void change_places(void)
{
    cudaStream_t stream = hpct_gpu.stream;
    hpct_gpu.stream = hpct_gpu.aside.stream;
    hpct_gpu.aside.stream = stream;
}

hpct_status hpct_cuda_aside(void)
{
    hpct_status status = HPCT_CUDA(cudaEventRecord(hpct_gpu.aside.begin, hpct_gpu.stream));
    if (status == HPCT_OK)
        status = HPCT_CUDA(cudaStreamWaitEvent(hpct_gpu.aside.stream, hpct_gpu.aside.begin, 0));
    change_places();
    return status;
}

/* Also records the end after an error: some of the work may be running. */
hpct_status hpct_cuda_back(hpct_status status)
{
    hpct_status ended = HPCT_CUDA(cudaEventRecord(hpct_gpu.aside.end, hpct_gpu.stream));
    change_places();
    hpct_gpu.aside.open = hpct_gpu.aside.open || ended == HPCT_OK;
    return status == HPCT_OK ? ended : status;
}

hpct_status hpct_cuda_join(void)
{
    if (!hpct_gpu.aside.open)
        return HPCT_OK;
    hpct_gpu.aside.open = false;
    return HPCT_CUDA(cudaStreamWaitEvent(hpct_gpu.stream, hpct_gpu.aside.end, 0));
}

void hpct_cuda_forget_aside(void)
{
    hpct_gpu.aside.open = false;
}
