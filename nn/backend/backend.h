/* nn/backend/backend.h - the function table of a backend: memory, operations, loss, optimizer. A
 * new backend is one more such table; layers, models and trainer are unchanged. */
#ifndef HPCT_NN_BACKEND_BACKEND_H
#define HPCT_NN_BACKEND_BACKEND_H

#include "base/drawn.h"
#include "nn/backend/types.h"
#include "nn/graph/loss_scaling.h"
#include "nn/graph/op.h"
#include "nn/graph/optimizer.h"

/* y: target row, smoothed by label_smoothing. */
typedef enum hpct_backend_loss_form {
    HPCT_BACKEND_LOSS_LOGITS,        /* -sum y log softmax(x), through the log-sum-exp */
    HPCT_BACKEND_LOSS_PROBABILITIES, /* -log (q[label] / sum q), q = x clipped to [1e-7, 1 - 1e-7]
                                      */
    HPCT_BACKEND_LOSS_DISTRIBUTION,  /* -sum y log q, q = x / sum x clipped */
    HPCT_BACKEND_LOSS_BINARY_LOGITS, /* mean of -y log p - (1 - y) log(1 - p), p = sigmoid(x) */
    HPCT_BACKEND_LOSS_BINARY,        /* the same with p = x clipped */
    HPCT_BACKEND_LOSS_SQUARED,       /* mean of (x - y)^2 */
    /* focal: with m the probability that is missing, the cross-entropy times m^gamma */
    HPCT_BACKEND_LOSS_BINARY_FOCAL_LOGITS, /* mean of a m^gamma BINARY_LOGITS, m = y (1 - p) + (1 -
                                      y) p, a = 1, or with alpha > 0 y alpha + (1 - y)(1 - alpha) */
    HPCT_BACKEND_LOSS_BINARY_FOCAL,        /* the same with p = x, BINARY */
    HPCT_BACKEND_LOSS_FOCAL_LOGITS, /* -sum alpha (1 - q)^gamma y log q, q = softmax(x) clipped */
    HPCT_BACKEND_LOSS_FOCAL,        /* the same with q = x / sum x clipped */
    HPCT_BACKEND_LOSS_HUBER,        /* mean of e^2 / 2, e = |x - y|; delta (e - delta / 2) beyond */
    HPCT_BACKEND_LOSS_DIVERGENCE,   /* sum y log(y / q), y and q = x clipped to [1e-7, 1] */
    HPCT_BACKEND_LOSS_FORMS
} hpct_backend_loss_form;

/* Bytes of a value. */
static inline size_t hpct_backend_precision_bytes(hpct_precision precision)
{
    return precision == HPCT_FP32 ? 4 : 2;
}

typedef struct hpct_backend_loss_call {
    hpct_backend_loss_form form;
    int n, classes;
    const float *src;      /* [n][classes] */
    const int32_t *labels; /* [n]; one-hot y, or with one output the label itself */
    const float *targets;  /* [n][classes], y instead of the labels, or NULL */
    hpct_target_kind
        judged; /* what the other sums are of (hpct_backend_batch_sums); CLASS: classes */
    float label_smoothing;      /* y (1 - s) + s / classes, or s / 2 of the binary ones */
    float alpha, gamma, delta;  /* of focal losses, and HUBER */
    const float *class_weights; /* factor of a sample's loss, by class; NULL: 1 */
    float threshold;            /* for a single output: larger means class 1 */
    int top_k;
    const float *penalty; /* [2]: both are added to each sample's loss, and have no part
                             in diff_src; NULL: none */
    float scale;          /* factor of diff_src */
    const hpct_graph_loss_scaling *scaling; /* its scale is a factor, too; NULL: none */
    float *diff_src;                        /* [n][classes], or NULL */
    hpct_precision values;                  /* type of src and diff_src in memory */
    /* Overwritten; in the backend's memory like all else here; read on request. */
    hpct_backend_batch_sums *sums;
    /* With hpct_backend_device.leaves_sums, unless NULL: sums also go to left[*turns % 2] in host
     * memory, and *turns, in the backend's memory, counts them. */
    hpct_backend_batch_sums *left;
    uint32_t *turns;
} hpct_backend_loss_call;

#define HPCT_BACKEND_ARENA_ALIGN 16 /* floats: every parameter begins at a multiple of 64 bytes */

/* A range of the arenas to update: one parameter with padding if the optimizer works by parameter,
 * else consecutive ones. */
typedef struct hpct_backend_update_range {
    size_t offset, count; /* floats, multiples of HPCT_BACKEND_ARENA_ALIGN */
    float rate_factor;    /* of learning_rate; 0: none */
    bool adapt;           /* LARS: trust ratio and weight decay apply */
    bool split;           /* other replicas have other shards of the parameter (nn/split/shard.h) */
} hpct_backend_update_range;

/* One optimizer step over all ranges, on arenas of one layout. With g the gradient times
 * grad_scale, then clipped, t the number of this update from 1, and every sum over one range:
 *
 *   SGD         w *= 1 - rate decay; m = momentum m - rate g (-rate g without a slot);
 *               w += nesterov ? momentum m - rate g : m
 *   Adam(W)     w *= 1 - rate decay; m += (g - m)(1 - beta_1); v += (g^2 - v)(1 - beta_2);
 *               w -= rate sqrt(1 - beta_2^t) / (1 - beta_1^t) m / (sqrt(v) + epsilon)
 *   LAMB        w, m, v as Adam; u = m / (1 - beta_1^t) / (sqrt(v / (1 - beta_2^t)) + epsilon);
 *               w -= rate ratio u, ratio = |w| / |u|, or 1 where one of them is 0
 *   LARS        m = momentum m - rate ratio (g + decay w); w += m;
 *               ratio = trust |w| / (|g| + decay |w|), or 1 where |w| or |g| is 0;
 *               without adapt ratio = 1 and decay = 0
 *   RMSprop     w *= 1 - rate decay; v += (g^2 - v)(1 - rho); with a third slot a += (g - a)(1 -
 *               rho), else a = 0; u = rate g / sqrt(max(0, v - a^2) + epsilon); with a first slot
 *               m = momentum m + u, else m = u; w -= m
 *
 * With `scaling` g is first divided by its scale, and t counts the updates that were made; if some
 * g is not finite, the update is skipped.
 *
 * `rate` is learning_rate times the range's factor.
 *
 * Zeros in the padding of w, g and slots stay zeros. */
typedef struct hpct_backend_update_call {
    hpct_optimizer_kind kind;
    bool nesterov;
    float learning_rate, weight_decay, momentum, epsilon, trust_coefficient;
    float mix_1, mix_2;   /* 1 - beta_1, 1 - beta_2 (RMSprop: 1 - rho) */
    float bias_1, bias_2; /* 1 - beta_1^t, 1 - beta_2^t */
    float grad_scale;
    hpct_graph_loss_scaling *scaling;           /* of the gradients; updated. NULL: none */
    float clipvalue, clipnorm, global_clipnorm; /* 0 for none */
    float *param;
    const float *grad;
    float *slot[HPCT_GRAPH_MAX_SLOTS]; /* m, v, a; NULL where the optimizer has none */
    const hpct_backend_update_range *ranges;
    int num_ranges;
    /* All-reduce over shards of the sums over a split range; called in the order of ranges. NULL:
     * no range is split. */
    hpct_status (*add_up)(void *argument, float *sums, size_t count);
    /* Sums the number of replicas with non-finite gradients, with `scaling`; called once per
     * update, also without ranges. NULL: all have the same gradients, or each decides
     * independently. */
    hpct_status (*judge)(void *argument, float *flags, size_t count);
    void *argument;
} hpct_backend_update_call;

static inline float hpct_backend_update_rate(const hpct_backend_update_call *call,
                                             const hpct_backend_update_range *range)
{
    return range->rate_factor > 0 ? call->learning_rate * range->rate_factor : call->learning_rate;
}

/* A parameter with a regularizer: the loss has a penalty of l1 sum |w| + l2 sum w^2. */
typedef struct hpct_backend_penalty {
    size_t offset, count; /* as in hpct_backend_update_range, padding included */
    float l1, l2;
    bool split; /* other replicas have other shards of the parameter */
} hpct_backend_penalty;

typedef struct hpct_backend_penalty_call {
    const hpct_backend_penalty *penalties;
    int num;
    const float *param;
    /* grad += factor (l1 sign(w) + 2 l2 w), with `scaling` times its scale; NULL: none. */
    float *grad;
    float factor;
    const hpct_graph_loss_scaling *scaling;
    /* If not NULL, [2] overwritten: the penalties of split parameters, and of all others. */
    float *sums;
} hpct_backend_penalty_call;

/* Copy of a parameter; source and copy begin at multiples of 64 bytes. */
typedef struct hpct_backend_param_copy {
    const float *from;
    void *to;
    size_t count;
} hpct_backend_param_copy;

/* Fusions that a backend may support; nn/plan/fusions.c has the rules. */
typedef enum hpct_backend_fusion {
    HPCT_BACKEND_FUSION_POOL,     /* CONV2D computes the MAX_POOL2D after it (hpct_op_build.pool) */
    HPCT_BACKEND_FUSION_BIAS,     /* CONV2D omits its bias, before BATCH_NORM (leaves_bias) */
    HPCT_BACKEND_FUSION_ADD_NORM, /* ADD computes the BATCH_NORM before it (normed) */
    HPCT_BACKEND_FUSION_SUM,      /* CONV2D computes the ADD of two after it (adds) */
} hpct_backend_fusion;

/* Support of an operation for channel blocks (nn/plan/blocks.c). */
typedef enum hpct_backend_blocking {
    HPCT_BACKEND_BLOCKS_NEVER,
    HPCT_BACKEND_BLOCKS_ALL,  /* inputs and output, or none */
    HPCT_BACKEND_BLOCKS_EACH, /* inputs and output independently */
} hpct_backend_blocking;

/* A batch from a data set in device memory (nn/run/resident.h); all pointers are to device
 * memory. */
typedef struct hpct_backend_gather_call {
    const hpct_backend_pictures *pictures; /* the struct itself is in host memory */
    int n;
    const hpct_drawn *drawn; /* [n] */
    hpct_precision values;   /* of dst */
    float *dst;              /* [n][to_height][to_width][channels] */
    int32_t *labels;         /* [n] */
} hpct_backend_gather_call;

/* Events in a device's streams that the host can wait for. */
typedef enum hpct_backend_mark {
    HPCT_BACKEND_MARK_INPUT, /* in the copy stream; the others in the compute stream */
    HPCT_BACKEND_MARK_DRAWN,
    HPCT_BACKEND_MARK_FETCH,
    HPCT_BACKEND_MARKS = HPCT_BACKEND_MARK_FETCH + 2
} hpct_backend_mark;

/* A device backend: memory not accessible to the host. Work is executed in the order of calls,
 * asynchronously unless said otherwise. */
typedef struct hpct_backend_device {
    /* First call; repeated calls return the first result. Returns HPCT_ERR_CONFIG, in one line,
     * without driver or device. */
    hpct_status (*open)(void);
    /* Makes the calling thread use the GPU of this replica of the process, from 0, which is the
     * default for threads; opens it. Returns HPCT_ERR_CONFIG if there are fewer GPUs. */
    hpct_status (*enter)(int replica);
    /* One line about device `number`, from 0: name, memory, capabilities; false if there is none.
     * `versions`: libraries and driver. Both work without `open`. */
    bool (*describe)(int number, char *text, size_t size);
    /* Its links to the other devices: "1 by peer access, 2 through the host"; false without others.
     * Works without `open`. */
    bool (*links)(int number, char *text, size_t size);
    void (*versions)(char *text, size_t size);
    hpct_status (*memory)(size_t *left, size_t *all); /* free and total bytes */
    /* Share of about the last second in which this thread's GPU computed, for whichever process;
     * NaN if the driver does not say it. NULL: never. */
    double (*busy)(void);
    /* Zeroed pinned host memory; NULL if out of memory. */
    void *(*allocate_host)(size_t bytes);
    void (*release_host)(void *memory);
    /* Synchronous, after all work called before. */
    hpct_status (*to_host)(void *host, const void *memory, size_t bytes);
    hpct_status (*from_host)(void *memory, const void *host, size_t bytes);
    /* Asynchronous, from allocate_host's memory, which must not change until a call that waits. */
    hpct_status (*send)(void *memory, const void *host, size_t bytes);
    /* The same in the copy stream, to memory that other work does not use: `take` makes later work
     * wait for the copy; `taken` makes later copies wait for the work called before. */
    hpct_status (*send_beside)(void *memory, const void *host, size_t bytes);
    hpct_status (*take)(void);
    hpct_status (*taken)(void);
    /* Asynchronous, into allocate_host's memory; valid after a call that waits. */
    hpct_status (*fetch)(void *host, const void *memory, size_t bytes);
    hpct_status (*copy)(void *to, const void *from, size_t bytes); /* device to device */
    hpct_status (*zero)(void *memory, size_t bytes);
    hpct_status (*wait)(void);
    /* Makes later work wait for the side stream, which makes copies of parameters. NULL: no side
     * stream. */
    hpct_status (*join)(void);
    /* mark records an event after the work called so far; await waits for it, returning at once if
     * it was never recorded. */
    hpct_status (*mark)(hpct_backend_mark mark);
    hpct_status (*await)(hpct_backend_mark mark);
    bool leaves_sums; /* hpct_backend_loss_call.left */
    /* to[3]: loss, correct, in_top_k, as floats. */
    hpct_status (*put_sums)(const hpct_backend_batch_sums *sums, float *to);
    /* Converts fp32 to the 16-bit type `values` and back, on the device. */
    hpct_status (*to_values)(hpct_precision values, size_t count, const float *from, float *to);
    hpct_status (*from_values)(hpct_precision values, size_t count, const float *from, float *to);
    hpct_status (*gather)(const hpct_backend_gather_call *call); /* NULL: not supported */

    /* Recordings (nn/run/replay.h); NULL: not supported. Between `record` and `end_record` calls
     * are recorded, not executed; `replay` executes them in order, any number of times. A call that
     * cannot be recorded fails at the latest in end_record. */
    hpct_status (*record)(void);
    hpct_status (*end_record)(void **recording);
    hpct_status (*replay)(void *recording);
    void (*drop_recording)(void *recording);
    /* Values that replace recorded ones: seed, step and first sample of operations; learning rate,
     * bias_1 and bias_2 of updates, including fused ones. */
    hpct_status (*set_draws)(uint64_t seed, int64_t step, int64_t first_sample);
    hpct_status (*set_rates)(const hpct_backend_update_call *call);
} hpct_backend_device;

typedef struct hpct_backend {
    const char *name;
    const hpct_backend_device *device; /* NULL: host memory */
    bool low_values; /* activations are stored in the model's precision; else as fp32 */
    /* Zeroed memory, 64-byte aligned; NULL if out of memory. release accepts NULL. */
    void *(*allocate)(size_t bytes);
    void (*release)(void *memory);
    /* Returns HPCT_ERR_CONFIG, saying what is missing, if this machine lacks the precision. */
    hpct_status (*check_precision)(hpct_precision precision);
    /* The caller owns *out and frees it with op->class->destroy. */
    hpct_status (*make_op)(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build);
    /* Whether make_op supports the fusion and is not slower with it. `spec` and `build` are those
     * of the CONV2D or, for ADD_NORM, of the BATCH_NORM; `other` is the other operation. NULL: no
     * fusions. */
    bool (*fuses)(hpct_backend_fusion fusion, const hpct_op_spec *spec, const hpct_op_build *build,
                  const hpct_op_spec *other);
    /* NULL: channels last only. */
    hpct_backend_blocking (*blocking)(const hpct_op_spec *spec, hpct_precision precision);
    /* Called after all operations of a model have been created: tuning results may be saved. NULL:
     * no effect. */
    void (*made_ops)(void);
    hpct_status (*loss)(const hpct_backend_loss_call *call);
    hpct_status (*update)(const hpct_backend_update_call *call);
    hpct_status (*penalize)(const hpct_backend_penalty_call *call);
    /* dst += src; dst = src if `first`. fp32. */
    hpct_status (*accumulate)(size_t count, const float *src, float *dst, bool first);
    /* dst += src, for activations and gradients. NULL: fp32, as accumulate. */
    hpct_status (*add_values)(hpct_precision values, size_t count, const float *src, float *dst);
    hpct_status (*scale)(size_t count, float factor, float *dst); /* dst *= factor */
    /* Copies parameters to the 16-bit type `values`; on a device possibly in the side stream. NULL:
     * no operation needs it (param_copied). */
    hpct_status (*copy_params)(hpct_precision values, const hpct_backend_param_copy *copies,
                               int num);
    /* NULL: unknown */
    hpct_status (*measure)(hpct_precision precision, hpct_backend_rates *rates);
} hpct_backend;

/* Composite operations, for every backend.
 *
 * BatchNormalization with separate statistics for groups of the samples (spec.norm.groups):
 * computes on one replica with all samples what data-parallel replicas without synchronization
 * compute. Moving statistics become the mean over the groups of what each replica's would be;
 * a group without samples contributes the old ones. */
hpct_status hpct_backend_make_grouped_norm(hpct_op **out, const hpct_backend *backend,
                                           const hpct_op_spec *spec, const hpct_op_build *build);
/* BatchNormalization of a frozen layer (spec.norm.frozen): normalizes by the moving statistics also
 * in training, and does not change them; backward multiplies by the same factors. */
hpct_status hpct_backend_make_frozen_norm(hpct_op **out, const hpct_backend *backend,
                                          const hpct_op_spec *spec, const hpct_op_build *build);
/* Host fallback for an operation that a device lacks: the collectives of split models
 * (nn/backend/collective.h). Copies inputs D2H and outputs H2D, synchronously: for small
 * tensors. */
hpct_status hpct_backend_make_host_fallback(hpct_op **out, const hpct_backend *backend,
                                            const hpct_op_spec *spec, const hpct_op_build *build);

/* Copies between the host and the backend's memory (which may be host memory), as device->to_host
 * etc. memory_wait returns when all work is complete. */
hpct_status hpct_backend_memory_to_host(const hpct_backend *backend, void *host, const void *memory,
                                        size_t bytes);
hpct_status hpct_backend_memory_from_host(const hpct_backend *backend, void *memory,
                                          const void *host, size_t bytes);
hpct_status hpct_backend_memory_zero(const hpct_backend *backend, void *memory, size_t bytes);
hpct_status hpct_backend_memory_wait(const hpct_backend *backend);

/* Zeroed host memory, pinned if there is a device. return_host accepts NULL. */
void *hpct_backend_memory_take_host(const hpct_backend *backend, size_t bytes);
void hpct_backend_memory_return_host(const hpct_backend *backend, void *memory);

/* Error of a failed allocation of `bytes`; the format says what for. */
hpct_status hpct_backend_memory_fail(const hpct_backend *backend, size_t bytes, const char *format,
                                     ...) __attribute__((format(printf, 3, 4)));

/* allocate and release of backends that compute in host memory. */
void *hpct_backend_host_allocate(size_t bytes);
void hpct_backend_host_release(void *memory);

#endif
