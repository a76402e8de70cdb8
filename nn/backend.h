/* nn/backend.h - the table that a backend fills: memory, operations, loss, optimizer.
 * Adding a backend means one more such table; layers, models and trainer stay as they are. */
#ifndef HPCT_NN_BACKEND_H
#define HPCT_NN_BACKEND_H

#include "nn/loss_scaling.h"
#include "nn/op.h"
#include "nn/optimizer.h"
#include "nn/profile.h"
#include "nn/resident.h"
#include "nn/step.h"

/* y: the target row, smoothed where label_smoothing says so. */
typedef enum hpct_loss_form {
    HPCT_LOSS_LOGITS,        /* -sum y log softmax(x), through the log-sum-exp */
    HPCT_LOSS_PROBABILITIES, /* -log (q[label] / sum q), q = x clipped to [1e-7, 1 - 1e-7] */
    HPCT_LOSS_DISTRIBUTION,  /* -sum y log q, q = x / sum x clipped */
    HPCT_LOSS_BINARY_LOGITS, /* mean of -y log p - (1 - y) log(1 - p), p = sigmoid(x) */
    HPCT_LOSS_BINARY,        /* the same with p = x clipped */
    HPCT_LOSS_SQUARED,       /* mean of (x - y)^2 */
    HPCT_LOSS_FORMS
} hpct_loss_form;

/* Bytes of a number. */
static inline size_t hpct_precision_bytes(hpct_precision precision)
{
    return precision == HPCT_FP32 ? 4 : 2;
}

typedef struct hpct_loss_call {
    hpct_loss_form form;
    int n, classes;
    const float *src; /* [n][classes] */
    const int32_t
        *labels; /* [n]; y is 1 at the label and 0 elsewhere, or with one output it itself */
    const float *targets;  /* [n][classes], taken for y instead of the labels unless NULL */
    float label_smoothing; /* y (1 - s) + s / classes, or s / 2 of the binary ones */
    float threshold;       /* of a single output: above it means 1 */
    int top_k;
    float scale;                      /* of diff_src */
    const hpct_loss_scaling *scaling; /* and that; NULL: there is none */
    float *diff_src;                  /* [n][classes], or NULL */
    hpct_precision values;            /* of src and diff_src, as they lie in memory */
    /* Overwritten; in the backend's memory, as everything here: who asks for them copies them. */
    hpct_batch_sums *sums;
    /* Where hpct_device.leaves_sums, unless NULL: they come to left[*turns % 2] as well, which is
     * the host's memory and theirs alone, and *turns, of the backend's, counts them. */
    hpct_batch_sums *left;
    uint32_t *turns;
} hpct_loss_call;

/* The end of a classifier: forward of a DENSE that takes_loss, the loss of its result, and its
 * backward. dst, sums and gradients come of it as they would of the three, but that less may be
 * rounded on the way; diff_dst and loss->diff_src may be left as they are. */
typedef struct hpct_head_call {
    const hpct_op *op;
    const hpct_op_call *call;
    const hpct_loss_call *loss;
    /* A DENSE that alone makes the source: of its backward the mask of its ReLU, over diff_src, and
     * the gradient of its bias come of it, too (hpct_op_call.begun). NULL: there is none. */
    const hpct_op *before;
    const hpct_op_call *call_before;
} hpct_head_call;

#define HPCT_ARENA_ALIGN 16 /* floats: every parameter begins at a multiple of 64 bytes */

/* A part of the arenas that is updated: one parameter with its padding where the optimizer works by
 * parameter, else as many as lie side by side. */
typedef struct hpct_update_range {
    size_t offset, count; /* floats, multiples of HPCT_ARENA_ALIGN */
    bool adapt;           /* LARS: trust ratio and weight decay apply */
    bool split;           /* other replicas have other parts of the parameter (nn/shard.h) */
} hpct_update_range;

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
 * With `scaling` g is divided by its scale before all else and t counts the updates that were made;
 * where some g is not finite none is.
 *
 * Zeros in the padding of w, g and slots stay zeros. */
typedef struct hpct_update_call {
    hpct_optimizer_kind kind;
    bool nesterov;
    float learning_rate, weight_decay, momentum, epsilon, trust_coefficient;
    float mix_1, mix_2;   /* 1 - beta_1, 1 - beta_2 (RMSprop: 1 - rho) */
    float bias_1, bias_2; /* 1 - beta_1^t, 1 - beta_2^t */
    float grad_scale;
    hpct_loss_scaling *scaling;                 /* of the gradients; moves. NULL: there is none */
    float clipvalue, clipnorm, global_clipnorm; /* 0 for none */
    float *param;
    const float *grad;
    float *slot[HPCT_MAX_SLOTS]; /* m, v, a; NULL where the optimizer has none */
    const hpct_update_range *ranges;
    int num_ranges;
    /* Makes sums over a split range those over all of its parts; calls are in the order of the
     * ranges. NULL: none is split. */
    hpct_status (*add_up)(void *argument, float *sums, size_t count);
    /* Adds up who has gradients that are not finite, with `scaling`; each
     * update calls it once, with ranges or without. NULL: all have the same, or each goes by its
     * own. */
    hpct_status (*judge)(void *argument, float *flags, size_t count);
    void *argument;
} hpct_update_call;

/* A copy of a parameter; both begin at multiples of 64 bytes. */
typedef struct hpct_param_copy {
    const float *from;
    void *to;
    size_t count;
} hpct_param_copy;

/* What an operation can do with pictures in blocks of channels (nn/blocks.h). */
typedef enum hpct_blocking {
    HPCT_BLOCKS_NEVER,
    HPCT_BLOCKS_ALL,  /* all of its pictures, or none */
    HPCT_BLOCKS_EACH, /* what it reads and what it writes independently */
} hpct_blocking;

/* A batch of pictures that lie there (nn/resident.h); all memory is the device's. */
typedef struct hpct_gather_call {
    const hpct_pictures *pictures; /* itself the host's */
    int n;
    const hpct_drawn *drawn; /* [n] */
    hpct_precision values;   /* of dst */
    float *dst;              /* [n][to_height][to_width][channels] */
    int32_t *labels;         /* [n] */
} hpct_gather_call;

/* Places in a device's work that the host waits for without waiting for all. */
typedef enum hpct_mark {
    HPCT_MARK_INPUT, /* among what is sent beside; the others among the rest */
    HPCT_MARK_DRAWN,
    HPCT_MARK_FETCH,
    HPCT_MARKS = HPCT_MARK_FETCH + 2
} hpct_mark;

/* What a backend has whose memory is a device's: the host's pointers do not reach there. Work goes
 * in the order of the calls, and a call does not wait for it unless it says so. */
typedef struct hpct_device {
    /* Once, before all else; repeats the first answer. HPCT_ERR_CONFIG, in one line, where there is
     * no driver or no device. */
    hpct_status (*open)(void);
    /* From now on the calling thread computes on the GPU of this replica of the process, from 0,
     * which is where other threads are; opens it. HPCT_ERR_CONFIG where there are not so many. */
    hpct_status (*enter)(int replica);
    /* One line of the device with this number, from 0: name, memory, what it can do; false when
     * there is none. Versions of libraries and driver in another. Without `open`. */
    bool (*describe)(int number, char *text, size_t size);
    /* What lies between it and the others: "1 by peer access, 2 through the host"; false when there
     * are no others. Without `open`. */
    bool (*links)(int number, char *text, size_t size);
    void (*versions)(char *text, size_t size);
    hpct_status (*memory)(size_t *left, size_t *all); /* bytes of the device */
    /* Zeroed memory of the host that the device can reach; NULL when there is none left. */
    void *(*allocate_host)(size_t bytes);
    void (*release_host)(void *memory);
    /* Wait until it is done, and all that was called before. */
    hpct_status (*to_host)(void *host, const void *memory, size_t bytes);
    hpct_status (*from_host)(void *memory, const void *host, size_t bytes);
    /* From allocate_host's memory, which must stay as it is until a call that waits. */
    hpct_status (*send)(void *memory, const void *host, size_t bytes);
    /* The same beside what was called before, to memory that is nobody else's: `take` makes what is
     * called next wait for what was sent so, and after `taken` it may be overwritten when all that
     * had been called then has ended. */
    hpct_status (*send_beside)(void *memory, const void *host, size_t bytes);
    hpct_status (*take)(void);
    hpct_status (*taken)(void);
    /* Into allocate_host's memory, which has it after a call that waits. */
    hpct_status (*fetch)(void *host, const void *memory, size_t bytes);
    hpct_status (*copy)(void *to, const void *from, size_t bytes); /* both there */
    hpct_status (*zero)(void *memory, size_t bytes);
    hpct_status (*wait)(void);
    /* What is called next comes behind what goes on beside it: what operations left that linger
     * (nn/op.h), and copies of parameters; all of it, or all but what was left last. NULL: nothing
     * does. */
    hpct_status (*join)(bool but_last);
    /* Waits for what had been called when the same mark was set last; nothing where it was not. */
    hpct_status (*mark)(hpct_mark mark);
    hpct_status (*await)(hpct_mark mark);
    bool leaves_sums; /* hpct_loss_call.left */
    /* to[3]: loss, correct, in_top_k, as floats. */
    hpct_status (*put_sums)(const hpct_batch_sums *sums, float *to);
    /* fp32 to numbers in `values`, which are not fp32, and back; of the device both. */
    hpct_status (*to_values)(hpct_precision values, size_t count, const float *from, float *to);
    hpct_status (*from_values)(hpct_precision values, size_t count, const float *from, float *to);
    hpct_status (*gather)(const hpct_gather_call *call); /* NULL: it has none */

    /* Parts of a step that are made again (nn/replay.h); NULL: it has none. After `record` calls
     * are noted, and not made, until `end_record`, from which on `replay` makes them all, in their
     * order, as often as it is called. A call that cannot be noted fails there at the latest. */
    hpct_status (*record)(void);
    hpct_status (*end_record)(void **recording);
    hpct_status (*replay)(void *recording);
    void (*drop_recording)(void *recording);
    /* What noted calls take instead of what they were noted with: of operations seed, step and
     * first sample; of an update, and of those that backward makes by itself, the learning rate and
     * bias_1 and bias_2, the rest being alike. */
    hpct_status (*set_draws)(uint64_t seed, int64_t step, int64_t first_sample);
    hpct_status (*set_rates)(const hpct_update_call *call);
} hpct_device;

typedef struct hpct_backend {
    const char *name;
    const hpct_device *device; /* NULL: its memory is the host's */
    bool low_values; /* activations lie in memory in the model's precision; else as fp32 */
    /* Zeroed memory, 64-byte aligned; NULL when there is none left. release allows NULL. */
    void *(*allocate)(size_t bytes);
    void (*release)(void *memory);
    /* HPCT_ERR_CONFIG, saying what is missing, where it cannot compute in it on this machine. */
    hpct_status (*check_precision)(hpct_precision precision);
    /* The caller owns *out and ends it with op->class->destroy. */
    hpct_status (*make_op)(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build);
    /* Whether make_op(spec, build) can do `next` as well, a maximum pooling of its result, which
     * nobody else reads: that result then needs no memory. NULL: never. */
    bool (*merges)(const hpct_op_spec *spec, const hpct_op_build *build, const hpct_op_spec *next);
    bool makes_sums;     /* a CONV2D does an ADD of two as well, which alone reads its result */
    bool leaves_moments; /* a CONV2D may (hpct_op_build.moments) */
    bool leaves_biases;  /* a CONV2D, where hpct_op_build.leaves_bias says so */
    bool defers_norms;   /* an ADD of two works out what it reads of a deferred BATCH_NORM */
    /* Whether make_op(spec, build) does better to work out the result of build->norm, for training:
     * a CONV2D behind which there is another BATCH_NORM, which takes its moments. NULL: never. */
    bool (*takes_norm)(const hpct_op_spec *spec, const hpct_op_build *build);
    /* NULL: it has channels last everywhere. */
    hpct_blocking (*blocking)(const hpct_op_spec *spec, hpct_precision precision);
    /* The operations of a model have been made: what was learnt meanwhile may be kept. NULL:
     * nothing.
     */
    void (*made_ops)(void);
    hpct_status (*loss)(const hpct_loss_call *call);
    hpct_status (*head)(const hpct_head_call *call); /* NULL: no operation takes_loss */
    hpct_status (*update)(const hpct_update_call *call);
    /* dst += src, or dst = src when it is the first; in fp32. */
    hpct_status (*accumulate)(size_t count, const float *src, float *dst, bool first);
    /* dst += src, of activations or their gradients. NULL: they are fp32, as accumulate has them.
     */
    hpct_status (*add_values)(hpct_precision values, size_t count, const float *src, float *dst);
    hpct_status (*scale)(size_t count, float factor, float *dst); /* dst *= factor */
    /* Parameters in `values`, which are not fp32; of a device perhaps beside what is called next,
     * until it joins. NULL: no operation asks for it (param_copied). */
    hpct_status (*copy_params)(hpct_precision values, const hpct_param_copy *copies, int num);
    /* NULL: it has no rates to compare with. */
    hpct_status (*measure)(hpct_precision precision, hpct_rates *rates);
} hpct_backend;

extern const hpct_backend hpct_backend_ref;
extern const hpct_backend hpct_backend_cpu;

/* All backends built in, ended by NULL. */
extern const hpct_backend *const hpct_backends[];

/* By name, and ready to be used. "cuda" is loaded when it is asked for first (nn/module.h).
 * HPCT_ERR_USAGE, listing the names, when there is none such; HPCT_ERR_CONFIG, in one line, where
 * its module is not installed, lacks a library, or finds no device. */
hpct_status hpct_backend_find(const hpct_backend **out, const char *name);

/* The device of a backend, its module loaded but nothing opened: for who only wants to know. */
hpct_status hpct_backend_device(const hpct_device **out, const char *name);

/* "auto": the cuda backend where it can be had, else the cpu backend; or by name. */
hpct_status hpct_backend_choose(const hpct_backend **out, const char *name);

/* Between the host and the backend's memory, which may be the host's; device->to_host and so on.
 * memory_wait returns when all that was called has ended. */
hpct_status hpct_memory_to_host(const hpct_backend *backend, void *host, const void *memory,
                                size_t bytes);
hpct_status hpct_memory_from_host(const hpct_backend *backend, void *memory, const void *host,
                                  size_t bytes);
hpct_status hpct_memory_zero(const hpct_backend *backend, void *memory, size_t bytes);
hpct_status hpct_memory_wait(const hpct_backend *backend);

/* The failure of an allocation of so many bytes: for what, by the format. */
hpct_status hpct_memory_fail(const hpct_backend *backend, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* allocate/release of every backend that computes in host memory. */
void *hpct_host_allocate(size_t bytes);
void hpct_host_release(void *memory);

#endif
