/* nn/backend/cuda/cuda.h - the GPUs of this process, and what all files of the CUDA module share:
 * handles, error checks, types of activations, constructors of operations.
 *
 * The module is a shared library (hpctrain-cuda.so) beside libhpctrain, loaded when a model is
 * built for the backend "cuda". A thread uses one GPU: the process's first, or that of the replica
 * it has entered. All work of a GPU is in one stream, except copies of input from the host and the
 * side stream (nn/backend/cuda/side_stream.h); forward, backward, loss and update neither allocate
 * nor wait for the GPU. Arenas, activations and scratch are in device memory; only import_param and
 * export_param, which are synchronous, access Keras' layout on the host. Images are NHWC.
 *
 * C files call CUDA's libraries; kernels are in .cu files behind functions of C: launchers
 * (nn/backend/cuda/kernels.h), and forward and backward of operations (nn/backend/cuda/ops.h). They
 * only enqueue, and return launch errors. */
#ifndef HPCT_NN_BACKEND_CUDA_CUDA_H
#define HPCT_NN_BACKEND_CUDA_CUDA_H

#include "nn/backend/backend.h"
#include "nn/backend/cuda/kernels.h"

#include <cublas_v2.h>
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

/* Exported by the module. */
extern HPCT_API const hpct_backend hpct_cuda_backend;

typedef struct hpct_cuda {
    hpct_status opened; /* status of the attempt, */
    bool asked;         /* once it was made, */
    char message[512];  /* and its message */
    int device;         /* CUDA device number */
    int major, minor, multiprocessors;
    size_t shared_bytes;     /* maximum shared memory per block */
    double bytes_per_second; /* peak memory bandwidth */
    cudaStream_t stream;
    cublasHandle_t blas; /* on the compute stream */
    cublasLtHandle_t lt;
    cudnnHandle_t dnn;       /* on the compute stream */
    hpct_cuda_moment *now;   /* in device memory */
    hpct_cuda_moment cached; /* its cached value on the device */
    bool recording;          /* launches are captured, and must read `now` */
    bool draws;              /* an operation has drawn random numbers */
    /* The copy stream. NULL: not created yet. */
    cudaStream_t beside;
    cudaEvent_t sent_beside, taken_before;
    cudaEvent_t marks[HPCT_BACKEND_MARKS]; /* NULL: never recorded */
    struct hpct_cuda_choices *choices;     /* nn/backend/cuda/tune.h; NULL: not read yet */
    struct {
        cudaStream_t stream;
        cudaEvent_t begin, end;
        bool open; /* work not joined yet */
    } side;        /* nn/backend/cuda/side_stream.h */
} hpct_cuda;

/* The calling thread's GPU, once its hpct_cuda_open has succeeded. */
extern __thread hpct_cuda *hpct_cuda_gpu_here; /* for C++, too */
#define hpct_cuda_gpu (*hpct_cuda_gpu_here)

/* Opens the thread's GPU, once per process. Replica 0's, the default of every thread, is selected
 * by CUDA_VISIBLE_DEVICES and HPC_TRAIN_GPU, the others follow it. HPCT_ERR_CONFIG in one line if
 * there is no driver, no device, or the device is too old. */
hpct_status hpct_cuda_open(void);
hpct_status hpct_cuda_enter(int replica);

/* As in hpct_backend_device. */
bool hpct_cuda_describe(int number, char *text, size_t size);
bool hpct_cuda_links(int number, char *text, size_t size);
void hpct_cuda_versions(char *text, size_t size);
double hpct_cuda_busy(void);

/* HPCT_OK, or HPCT_ERR_INTERNAL with the called function's name and CUDA's message. */
hpct_status hpct_cuda_check(cudaError_t error, const char *call);
hpct_status hpct_cuda_check_blas(cublasStatus_t error, const char *call);
hpct_status hpct_cuda_check_dnn(cudnnStatus_t error, const char *call);
/* CUDA's message; for kernel faults with a note that an earlier operation's kernel may be the
 * cause. */
const char *hpct_cuda_error(cudaError_t error);
bool hpct_cuda_is_blocking(void); /* CUDA_LAUNCH_BLOCKING=1: every launch is synchronous */
#define HPCT_CUDA(call) hpct_cuda_check(call, #call)
#define HPCT_CUDA_BLAS(call) hpct_cuda_check_blas(call, #call)
#define HPCT_DNN(call) hpct_cuda_check_dnn(call, #call)

/* Types of activations and their gradients: hpct_op_build.values. Calls pass them as float *
 * whatever the type; parameters, their gradients and statistics in workspaces are fp32. */
cudaDataType_t hpct_cuda_data_type(hpct_precision values);
cudnnDataType_t hpct_cuda_dnn_type(hpct_precision values);

/* Waits for the stream. */
hpct_status hpct_cuda_wait(void);

/* Synchronous copies in the stream. */
hpct_status hpct_cuda_to_host(void *host, const void *device, size_t bytes);
hpct_status hpct_cuda_from_host(void *device, const void *host, size_t bytes);

/* Constructors of operations, as make_op of hpct_backend; on failure *out may be set, and must be
 * destroyed. The others are made by hpct_cuda_make_own (nn/backend/cuda/ops.h). */
hpct_status hpct_cuda_make_conv2d(hpct_op **out, const hpct_op_spec *spec,
                                  const hpct_op_build *build);
hpct_status hpct_cuda_make_dense(hpct_op **out, const hpct_op_spec *spec,
                                 const hpct_op_build *build);
hpct_status hpct_cuda_make_conv2d_transpose(hpct_op **out, const hpct_op_spec *spec,
                                            const hpct_op_build *build);

hpct_status hpct_cuda_put_sums(const hpct_backend_batch_sums *sums, float *to);
hpct_status hpct_cuda_gather_values(const hpct_backend_gather_call *call);

/* Recordings, as in hpct_backend_device. */
hpct_status hpct_cuda_record(void);
hpct_status hpct_cuda_end_record(void **recording);
hpct_status hpct_cuda_replay(void *recording);
void hpct_cuda_drop_recording(void *recording);
hpct_status hpct_cuda_set_draws(uint64_t seed, int64_t step, int64_t first_sample);
hpct_status hpct_cuda_set_rates(const hpct_backend_update_call *call);
/* Sets the learning rate of fused updates, before any set_rates. */
hpct_status hpct_cuda_set_rate(float rate);

/* Other functions of the backend table. */
hpct_status hpct_cuda_loss(const hpct_backend_loss_call *call);
hpct_status hpct_cuda_update(const hpct_backend_update_call *call);
hpct_status hpct_cuda_penalize(const hpct_backend_penalty_call *call);
hpct_status hpct_cuda_accumulate(size_t count, const float *src, float *dst, bool first);
hpct_status hpct_cuda_scale(size_t count, float factor, float *dst);
hpct_status hpct_cuda_measure(hpct_precision precision, hpct_backend_rates *rates);
hpct_status hpct_cuda_copy_params(hpct_precision values, const hpct_backend_param_copy *copies,
                                  int num);
/* dst += src, activations. */
hpct_status hpct_cuda_add_values(hpct_precision values, size_t count, const float *src, float *dst);
/* From fp32 to activations and back, on the device; `values` is not HPCT_FP32. */
hpct_status hpct_cuda_to_values(hpct_precision values, size_t count, const float *from, float *to);
hpct_status hpct_cuda_from_values(hpct_precision values, size_t count, const float *from,
                                  float *to);

#endif
