/* Error messages of CUDA's libraries. */
#include "base/status.h"
#include "nn/backend/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hpct_status failed(const char *call, const char *what)
{
    return hpct_fail(HPCT_ERR_INTERNAL, "%.*s: %s", (int) strcspn(call, "("), call, what);
}

/* Kernel faults are reported by a call after the launch, possibly of another operation. */
static bool is_fault(cudaError_t error)
{
    return error == cudaErrorIllegalAddress || error == cudaErrorAssert ||
           (error >= cudaErrorHardwareStackError && error <= cudaErrorLaunchFailure);
}

bool hpct_cuda_is_blocking(void)
{
    const char *blocking = getenv("CUDA_LAUNCH_BLOCKING");
    return blocking != NULL && strcmp(blocking, "1") == 0;
}

/* Whether the failing call itself reports the fault. */
static bool is_told_at_once(void)
{
    const char *record = getenv("HPC_TRAIN_RECORD");
    return hpct_cuda_is_blocking() && record != NULL && strcmp(record, "0") == 0;
}

const char *hpct_cuda_error(cudaError_t error)
{
    static _Thread_local char words[256];
    if (!is_fault(error) || is_told_at_once())
        return cudaGetErrorString(error);
    snprintf(words, sizeof words,
             "%s, by a kernel of this call or an earlier one "
             "(CUDA_LAUNCH_BLOCKING=1 and HPC_TRAIN_RECORD=0 together name its layer)",
             cudaGetErrorString(error));
    return words;
}

hpct_status hpct_cuda_check(cudaError_t error, const char *call)
{
    if (error == cudaSuccess)
        return HPCT_OK;
    cudaGetLastError(); /* clears it: the next launch is not the cause */
    return failed(call, hpct_cuda_error(error));
}

/* A library reports little about a fault of an earlier kernel; the stream's status does. During
 * capture only cudaStreamIsCapturing is allowed. */
static hpct_status failed_in_library(const char *call, const char *what)
{
    enum cudaStreamCaptureStatus capture;
    cudaError_t before = hpct_cuda_gpu.recording
                             ? cudaStreamIsCapturing(hpct_cuda_gpu.stream, &capture)
                             : cudaStreamQuery(hpct_cuda_gpu.stream);
    cudaGetLastError();
    return is_fault(before) ? hpct_cuda_check(before, call) : failed(call, what);
}

hpct_status hpct_cuda_check_blas(cublasStatus_t error, const char *call)
{
    return error == CUBLAS_STATUS_SUCCESS ? HPCT_OK
                                          : failed_in_library(call, cublasGetStatusString(error));
}

hpct_status hpct_cuda_check_dnn(cudnnStatus_t error, const char *call)
{
    char said[256] = "", what[384];
    if (error == CUDNN_STATUS_SUCCESS)
        return HPCT_OK;
    cudnnGetLastErrorString(said, sizeof said);
    snprintf(what, sizeof what, "%s%s%s", cudnnGetErrorString(error), said[0] != '\0' ? ": " : "",
             said);
    return failed_in_library(call, what);
}
