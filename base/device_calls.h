/* base/device_calls.h - calls of CUDA and NCCL used by communicators for device memory: a table
 * filled by the CUDA module (nn/backend/cuda/nccl_calls.c) or by a test that records calls. Handles
 * are the libraries'. Calls are asynchronous unless said otherwise. */
#ifndef HPCT_BASE_DEVICE_CALLS_H
#define HPCT_BASE_DEVICE_CALLS_H

#include <hpctrain/strategy.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum hpct_device_result {
    HPCT_DEVICE_OK,
    HPCT_DEVICE_BUSY,    /* cudaErrorNotReady, ncclInProgress */
    HPCT_DEVICE_LOST,    /* ncclRemoteError, ncclSystemError: a peer is probably lost */
    HPCT_DEVICE_MEMORY,  /* out of memory */
    HPCT_DEVICE_ABORTED, /* the communicator was aborted by this process */
    HPCT_DEVICE_FAILED,  /* anything else */
} hpct_device_result;

typedef enum hpct_device_type {
    HPCT_DEVICE_BYTES,
    HPCT_DEVICE_FP32,
    HPCT_DEVICE_BF16,
    HPCT_DEVICE_FP16,
} hpct_device_type;

#define HPCT_DEVICE_ID_BYTES 128 /* NCCL_UNIQUE_ID_BYTES */

typedef struct hpct_device_calls {
    /* The calling thread's last error: the call and the library's message. */
    const char *(*error)(void);

    /* ---- CUDA, on the calling thread's device ---- */
    hpct_device_result (*open)(
        void); /* selects the device for this process and the calling thread */
    const char *(*device_name)(void);  /* PCI address: distinguishes the GPUs of a host */
    void *(*compute_stream)(void);     /* the stream of the model's operations */
    bool (*is_recording)(void);        /* the stream is being captured (hpct_backend_device) */
    bool (*is_device)(const void *at); /* whether this is device memory */
    hpct_device_result (*allocate)(void **out, size_t bytes);
    void (*release)(void *at);
    hpct_device_result (*allocate_host)(void **out, size_t bytes); /* pinned */
    void (*release_host)(void *at);
    hpct_device_result (*create_stream)(void **out);
    void (*destroy_stream)(void *stream);
    hpct_device_result (*create_event)(void **out); /* without timing */
    void (*destroy_event)(void *event);
    hpct_device_result (*record)(void *event, void *stream);
    hpct_device_result (*query)(
        void *event); /* BUSY until the event has completed; also if recorded into a graph */
    hpct_device_result (*wait_event)(void *stream,
                                     void *event); /* makes the stream wait, not the host */
    hpct_device_result (*copy)(void *dst, const void *src, size_t bytes, void *stream);
    hpct_device_result (*encode)(hpct_device_type type, size_t count, const float *src, void *dst,
                                 void *stream); /* to BF16 or FP16, round to nearest even */
    hpct_device_result (*decode)(hpct_device_type type, size_t count, const void *src, float *dst,
                                 void *stream);

    /* ---- NCCL; communicators are non-blocking: after BUSY poll async_error ---- */
    bool (*has_nccl)(int *version); /* loads NCCL; false: see error() */
    hpct_device_result (*unique_id)(unsigned char id[HPCT_DEVICE_ID_BYTES]);
    hpct_device_result (*init)(void **comm, int size, const unsigned char *id, int rank);
    /* *out is set once `comm` is no longer busy. */
    hpct_device_result (*split)(void *comm, int color, int key, void **out);
    hpct_device_result (*async_error)(void *comm); /* not concurrent with another call on it */
    hpct_device_result (*group_start)(void);
    hpct_device_result (*group_end)(void);
    /* In-place sum. */
    hpct_device_result (*all_reduce)(void *data, size_t count, hpct_device_type type, void *comm,
                                     void *stream);
    hpct_device_result (*reduce)(void *data, size_t count, hpct_device_type type, int root,
                                 void *comm, void *stream);
    hpct_device_result (*broadcast)(void *data, size_t count, hpct_device_type type, int root,
                                    void *comm, void *stream);
    hpct_device_result (*all_gather)(const void *src, void *dst, size_t count,
                                     hpct_device_type type, void *comm, void *stream);
    hpct_device_result (*send)(const void *src, size_t count, hpct_device_type type, int peer,
                               void *comm, void *stream);
    hpct_device_result (*receive)(void *dst, size_t count, hpct_device_type type, int peer,
                                  void *comm, void *stream);
    hpct_device_result (*finalize)(void *comm); /* collective; then destroy */
    void (*destroy)(void *comm);
    void (*abort)(void *comm); /* from any thread; may itself block */
} hpct_device_calls;

/* Name of the module's symbol, a const hpct_device_calls. */
#define HPCT_DEVICE_CALLS_SYMBOL "hpct_cuda_device_calls"

#endif
