/* nn/cuda/cuda.h - the GPUs that this process computes on, and what all files of the CUDA module
 * share: handles, error checks, the type of activations, makers of operations.
 *
 * The module is one shared library (hpctrain-cuda.so) beside libhpctrain, loaded when a model is
 * built for the backend "cuda". One thread uses one GPU: the process's first, or that of the
 * replica which it has entered. All work for a GPU goes in order into one stream, but for input
 * from the host, which is sent beside it, and what nn/cuda/aside.h has; nothing in forward,
 * backward, loss and update allocates, or waits for the GPU. Arenas, activations and scratch are
 * device memory; Keras' layout on the host is read and written by import_param and export_param
 * alone, which wait. Pictures are NHWC.
 *
 * Files in C call CUDA's libraries; kernels stand in .cu files behind launchers in C, declared in
 * nn/cuda/kernels.h. A launcher only enqueues, and reports a failed launch. */
#ifndef HPCT_NN_CUDA_CUDA_H
#define HPCT_NN_CUDA_CUDA_H

#include "nn/backend.h"
#include "nn/cuda/kernels.h"

#include <cublas_v2.h>
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

typedef struct hpct_cuda {
    hpct_status opened; /* what came of it, */
    bool asked;         /* once it has been tried, */
    char message[512];  /* in these words */
    int device;         /* CUDA's number of it */
    int major, minor, multiprocessors;
    size_t shared_bytes;     /* most that a block may ask for */
    double bytes_per_second; /* of its memory, at best */
    cudaStream_t stream;
    cublasHandle_t blas; /* bound to the stream, */
    cublasLtHandle_t lt;
    cudnnHandle_t dnn; /* and this one */
    hpct_moment *now;  /* on the device; */
    hpct_moment told;  /* what it has there */
    bool recording;    /* launches are noted, and read `now` */
    bool draws;        /* some operation has drawn random numbers */
    /* Copies beside the stream. NULL: there was none yet. */
    cudaStream_t beside;
    cudaEvent_t sent_beside, taken_before;
    cudaEvent_t marks[HPCT_MARKS]; /* NULL: never set */
    struct hpct_choices *choices;  /* nn/cuda/tune.h; NULL: not read yet */
    struct {
        cudaStream_t stream;
        cudnnHandle_t dnn;
        cudaEvent_t begin, end[2];
        unsigned pieces; /* so far, each ended by end[its number % 2] */
        unsigned open;   /* so many of them have not been joined */
    } aside;             /* nn/cuda/aside.h */
} hpct_cuda;

/* The calling thread's GPU, after hpct_cuda_open has succeeded there once. */
extern _Thread_local hpct_cuda *hpct_gpu_here;
#define hpct_gpu (*hpct_gpu_here)

/* Opens the thread's GPU, once for the process. That of replica 0, where every thread is until it
 * enters another, is the device that CUDA_VISIBLE_DEVICES and HPC_TRAIN_GPU leave, the others
 * follow it. HPCT_ERR_CONFIG in one clear line where there is no driver, no device, or one that is
 * too old.
 */
hpct_status hpct_cuda_open(void);
hpct_status hpct_cuda_enter(int replica);

/* HPCT_OK, or HPCT_ERR_INTERNAL with the name of the function called and what CUDA says. */
hpct_status hpct_cuda_check(cudaError_t error, const char *call);
hpct_status hpct_cuda_check_blas(cublasStatus_t error, const char *call);
hpct_status hpct_cuda_check_dnn(cudnnStatus_t error, const char *call);
/* What CUDA says of it, and where a kernel may be to blame that another operation has launched. */
const char *hpct_cuda_error(cudaError_t error);
bool hpct_cuda_is_blocking(void); /* CUDA_LAUNCH_BLOCKING=1: each launch waits for its kernel */
#define HPCT_CUDA(call) hpct_cuda_check(call, #call)
#define HPCT_BLAS(call) hpct_cuda_check_blas(call, #call)
#define HPCT_DNN(call) hpct_cuda_check_dnn(call, #call)

/* Numbers of activations and their gradients: those of hpct_op_build.values. Pointers to them are
 * float * in the calls whatever they are; parameters, gradients of parameters and workspaces of
 * statistics are fp32. */
size_t hpct_cuda_value_bytes(hpct_precision values); /* 4 or 2 */
cudaDataType_t hpct_cuda_data_type(hpct_precision values);
cudnnDataType_t hpct_cuda_dnn_type(hpct_precision values);

/* Until the stream has done all that it was given. */
hpct_status hpct_cuda_wait(void);

/* Between the host and the stream; both wait for the stream. */
hpct_status hpct_cuda_to_host(void *host, const void *device, size_t bytes);
hpct_status hpct_cuda_from_host(void *device, const void *host, size_t bytes);

/* hpct_backend, takes_norm. */
bool hpct_cuda_takes_norm(const hpct_op_spec *spec, const hpct_op_build *build);
/* Makers of operations, as make_op of hpct_backend: *out is set also on failure when there is
 * something to destroy. */
hpct_status hpct_cuda_make_conv2d(hpct_op **out, const hpct_op_spec *spec,
                                  const hpct_op_build *build);
hpct_status hpct_cuda_make_dense(hpct_op **out, const hpct_op_spec *spec,
                                 const hpct_op_build *build);
hpct_status hpct_cuda_make_pool(hpct_op **out, const hpct_op_spec *spec,
                                const hpct_op_build *build); /* both poolings */
hpct_status hpct_cuda_make_activation(hpct_op **out, const hpct_op_spec *spec,
                                      const hpct_op_build *build); /* RELU … GELU, RESCALING */
hpct_status hpct_cuda_make_softmax(hpct_op **out, const hpct_op_spec *spec,
                                   const hpct_op_build *build);
hpct_status hpct_cuda_make_join(hpct_op **out, const hpct_op_spec *spec,
                                const hpct_op_build *build); /* ADD, CONCATENATE */
hpct_status hpct_cuda_make_batch_norm(hpct_op **out, const hpct_op_spec *spec,
                                      const hpct_op_build *build);
hpct_status hpct_cuda_make_pad2d(hpct_op **out, const hpct_op_spec *spec,
                                 const hpct_op_build *build);
hpct_status hpct_cuda_make_dropout(hpct_op **out, const hpct_op_spec *spec,
                                   const hpct_op_build *build);
hpct_status hpct_cuda_make_picture(hpct_op **out, const hpct_op_spec *spec,
                                   const hpct_op_build *build);

hpct_status hpct_cuda_put_sums(const hpct_batch_sums *sums, float *to);
hpct_status hpct_cuda_gather(const hpct_gather_call *call);

/* Recorded parts of a step, as hpct_device has them. */
hpct_status hpct_cuda_record(void);
hpct_status hpct_cuda_end_record(void **recording);
hpct_status hpct_cuda_replay(void *recording);
void hpct_cuda_drop_recording(void *recording);
hpct_status hpct_cuda_set_draws(uint64_t seed, int64_t step, int64_t first_sample);
hpct_status hpct_cuda_set_rates(const hpct_update_call *call);
/* Of what updates by itself, where no set_rates has come before. */
hpct_status hpct_cuda_set_rate(float rate);

/* The other entries of the backend's table. */
hpct_status hpct_cuda_loss(const hpct_loss_call *call);
hpct_status hpct_cuda_head(const hpct_head_call *call);
hpct_status hpct_cuda_update(const hpct_update_call *call);
hpct_status hpct_cuda_accumulate(size_t count, const float *src, float *dst, bool first);
hpct_status hpct_cuda_scale(size_t count, float factor, float *dst);
hpct_status hpct_cuda_measure(hpct_precision precision, hpct_rates *rates);
hpct_status hpct_cuda_copy_params(hpct_precision values, const hpct_param_copy *copies, int num);
/* dst += src, of activations. */
hpct_status hpct_cuda_add_values(hpct_precision values, size_t count, const float *src, float *dst);
/* From fp32 to activations and back, both on the device; `values` is not HPCT_FP32. */
hpct_status hpct_cuda_to_values(hpct_precision values, size_t count, const float *from, float *to);
hpct_status hpct_cuda_from_values(hpct_precision values, size_t count, const float *from,
                                  float *to);

#endif
