/* nn/graph/op.h - an operation of the graph: its specification (hpct_op_spec), its build options,
 * the built operation (hpct_op), and a call (hpct_op_call). The interface between graph and
 * backends.
 *
 * Activations are fp32 in every precision (in hpct_op_build.values if the backend has `low_values`:
 * pointers to them are float * all the same), channels last ([n][h][w][c]), except where a backend
 * asks for channel blocks (nn/plan/blocks.c). Parameters are fp32, in the arenas, in a layout of
 * the backend's own; hpct_op_import and hpct_op_export convert it. */
#ifndef HPCT_NN_GRAPH_OP_H
#define HPCT_NN_GRAPH_OP_H

#include "nn/graph/elements.h"
#include "nn/graph/peers.h"
#include "nn/graph/rng.h"
#include "nn/graph/variation.h"

#include <hpctrain/model.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HPCT_GRAPH_NODE_MAX_INPUTS 8
#define HPCT_OP_MAX_PARAMS 4
#define HPCT_OP_KERNEL 0 /* index of a Conv2D's or Dense's kernel among its parameters */
#define HPCT_OP_BIAS 1

#define HPCT_OP_OF_ELEMENT(kind, ...) HPCT_OP_##kind

typedef enum hpct_op_kind {
    HPCT_OP_CONV2D,
    HPCT_OP_MAX_POOL2D,
    HPCT_OP_AVERAGE_POOL2D,
    HPCT_OP_DENSE,
    HPCT_OP_SOFTMAX,
    HPCT_OP_ADD,
    HPCT_OP_CONCATENATE,
    HPCT_GRAPH_ELEMENT_ROWS(
        HPCT_OP_OF_ELEMENT), /* HPCT_OP_RELU, …: activations of single elements */
    HPCT_OP_PRELU,
    HPCT_OP_MULTIPLY,
    HPCT_OP_NORMALIZATION,
    HPCT_OP_BATCH_NORM,
    HPCT_OP_PAD2D,
    HPCT_OP_DROPOUT,
    HPCT_OP_RESCALING,
    HPCT_OP_RESIZING,
    HPCT_OP_RANDOM_CROP,
    HPCT_OP_RANDOM_FLIP,
    HPCT_OP_RANDOM_AFFINE, /* RandomRotation, RandomZoom, RandomTranslation */
    HPCT_OP_RANDOM_TONE,   /* RandomContrast, RandomBrightness */
    HPCT_OP_GROUP_NORM,
    HPCT_OP_PERMUTE,
    HPCT_OP_GAUSSIAN_NOISE,
    HPCT_OP_CONV2D_TRANSPOSE,
    HPCT_OP_SUM_PARTS,      /* of a sharded model (nn/split/shard.h): sums partial results */
    HPCT_OP_GATHER_PARTS,   /* concatenates shards of the last axis */
    HPCT_OP_GATHER_SAMPLES, /* concatenates the local batches of all shards */
    HPCT_OP_KINDS
} hpct_op_kind;

/* A sliding window. Padding counts as zeros in convolutions, and is ignored in maxima and means.
 * Padding at the bottom and right follows from the other numbers. */
typedef struct hpct_graph_window {
    int in_h, in_w, in_c;
    int out_h, out_w, out_c;
    int kernel_h, kernel_w;
    int stride_h, stride_w;
    int dilation_h, dilation_w; /* distance between adjacent cells of the kernel, 1 or more */
    int pad_top, pad_left;
    int groups; /* CONV2D: number of groups */
    /* CONV2D: not 0: only these output cells, in row order, as [cells][out_c]; requires
     * hpct_graph_window_is_small */
    int first_cell, cells;
    bool pad_zeros; /* MAX_POOL2D: padding counts as zeros */
} hpct_graph_window;

/* A last axis split among shards: shard p has channels [first(p), first(p + 1)), at least `unit`,
 * differing by at most one `unit`. */
typedef struct hpct_graph_channel_split {
    int channels; /* total; 0: not split */
    int unit;     /* channels that stay together; divides the total */
    int part, parts;
} hpct_graph_channel_split;

static inline int hpct_graph_channel_split_first(const hpct_graph_channel_split *split, int part)
{
    return (int) ((int64_t) (split->channels / split->unit) * part / split->parts) * split->unit;
}

static inline int hpct_graph_channel_split_count(const hpct_graph_channel_split *split, int part)
{
    return hpct_graph_channel_split_first(split, part + 1) -
           hpct_graph_channel_split_first(split, part);
}

/* n samples divided among shards: shard p has [first(p), first(p + 1)), the first ones one more if
 * n is not divisible. As data-parallel ranks divide a batch. */
static inline int hpct_graph_samples_first(int n, int part, int parts)
{
    return n / parts * part + (part < n % parts ? part : n % parts);
}

static inline int hpct_graph_samples_count(int n, int part, int parts)
{
    return hpct_graph_samples_first(n, part + 1, parts) - hpct_graph_samples_first(n, part, parts);
}

/* Input cells that a window spans. */
static inline int hpct_graph_window_reach(int kernel, int dilation)
{
    return (kernel - 1) * dilation + 1;
}

static inline int hpct_graph_window_cells(const hpct_graph_window *w)
{
    return w->cells > 0 ? w->cells : w->out_h * w->out_w;
}

/* A convolution with few unpadded inputs per output cell and vectorizable output channels. */
#define HPCT_GRAPH_SMALL_WINDOW 256 /* inputs of a cell; beyond, general kernels win */
bool hpct_graph_window_is_small(const hpct_graph_window *w);

/* With src_blocks or dst_blocks, images and gradients on that side are [n][c / 16][h][w][16]
 * instead of [n][h][w][c]. */
#define HPCT_GRAPH_CHANNEL_BLOCK 16

typedef struct hpct_op_spec {
    hpct_op_kind kind;
    bool src_blocks, dst_blocks; /* set when the model is built */
    bool relu;             /* CONV2D, DENSE, ADD, BATCH_NORM, SUM_PARTS: followed by max(0, x) */
    bool no_bias;          /* CONV2D, DENSE: no bias; SUM_PARTS: none */
    double rate;           /* DROPOUT: fraction of elements that become zero; GAUSSIAN_NOISE: the
                              standard deviation */
    float scale, offset;   /* RESCALING */
    float slope;           /* LEAKY_RELU: below `threshold` slope (x - threshold); ELU: alpha */
    float threshold, most; /* LEAKY_RELU: min(x, most) above the threshold */
    union {
        hpct_graph_window window; /* CONV2D, MAX_POOL2D, AVERAGE_POOL2D; PAD2D: sizes and padding,
                               which is negative where it crops. CONV2D_TRANSPOSE: the
                               convolution from its result to its source, which it reverses */
        struct {
            int rows; /* per sample; DENSE and SOFTMAX work on the last axis */
            int in, out;
        } dense; /* DENSE; the activations, RESCALING, GAUSSIAN_NOISE (in == out);
                    DROPOUT, whose rows of a sample all lose the same elements */
        hpct_graph_picture picture; /* RESIZING, RANDOM_… */
        struct {
            int rows; /* per sample: all axes but the last */
            int count;
            int size[HPCT_GRAPH_NODE_MAX_INPUTS]; /* each input's last axis; ADD: all the same */
            bool broadcasts; /* MULTIPLY, of two inputs: the second has one row per sample */
        } join;              /* ADD, CONCATENATE, MULTIPLY */
        struct {
            int rows; /* per sample: all axes but the last */
            int channels;
            bool shared; /* PRELU: a slope per channel, else per element */
            bool given;  /* NORMALIZATION: (x - mean) scale + offset; else by its states */
            float mean[HPCT_MAX_GIVEN], scale[HPCT_MAX_GIVEN], offset[HPCT_MAX_GIVEN];
        } line; /* NORMALIZATION, PRELU */
        struct {
            int rows; /* per sample: all axes but the last */
            int channels;
            bool no_scale, no_center, synchronized;
            bool frozen; /* its layer is: training uses the moving statistics, and keeps them */
            float momentum, epsilon;
            int groups; /* 2 or more: separate statistics for this many groups of the samples
                           (hpct_graph_samples_first), as if on different replicas */
        } norm;         /* BATCH_NORM */
        struct {
            int rows;  /* per sample, each [cells][channels] */
            int cells; /* 1: every row has statistics of its own, as in LayerNormalization */
            int channels;
            int groups; /* of channels that share statistics; divides them */
            bool no_scale, no_center;
            float epsilon;
        } group; /* GROUP_NORM */
        struct {
            int rank;
            int size[HPCT_MAX_RANK]; /* of the source */
            int axes[HPCT_MAX_RANK]; /* of the source, in the order of the result */
        } permute;                   /* PERMUTE */
        struct {
            int rows; /* per sample */
            hpct_graph_channel_split split;
            bool sum_diff; /* diff_dst is a partial sum in each part: backward sums it */
            bool carries;  /* forward carries hpct_graph_step_peers.piggyback */
        } parts;           /* SUM_PARTS, GATHER_PARTS; GATHER_SAMPLES: all channels; split.part and
                              parts divide the samples */
    };
} hpct_op_spec;

/* States of a NORMALIZATION that is not given. COUNT, one number, is only stored. */
typedef enum hpct_graph_line_param {
    HPCT_GRAPH_LINE_MEAN,
    HPCT_GRAPH_LINE_VARIANCE,
    HPCT_GRAPH_LINE_COUNT
} hpct_graph_line_param;
#define HPCT_GRAPH_LINE_EPSILON 1e-7f /* least standard deviation: keras.config.epsilon() */

/* Parameters of BATCH_NORM by meaning, before removing absent ones. */
typedef enum hpct_graph_norm_param {
    HPCT_GRAPH_NORM_GAMMA,
    HPCT_GRAPH_NORM_BETA,
    HPCT_GRAPH_NORM_MEAN, /* moving */
    HPCT_GRAPH_NORM_VARIANCE,
} hpct_graph_norm_param;
/* Its index among the op's parameters, -1 if absent. GROUP_NORM has gamma and beta only. */
int hpct_op_norm_param(const hpct_op_spec *spec, hpct_graph_norm_param which);

/* Derived from a spec. Floats of one sample; of a parameter in Keras' layout. */
const char *hpct_op_kind_name(hpct_op_kind kind); /* "conv2d" */
/* An activation of single elements, as RELU: rows and last axis do not matter. Not SOFTMAX. */
bool hpct_op_is_activation(hpct_op_kind kind);
/* Such a one whose gradient is computed from its source, as GELU's, not from its result. */
bool hpct_op_gradient_from_src(hpct_op_kind kind);
static inline bool hpct_op_is_collective(const hpct_op_spec *spec)
{
    return spec->kind == HPCT_OP_SUM_PARTS || spec->kind == HPCT_OP_GATHER_PARTS ||
           spec->kind == HPCT_OP_GATHER_SAMPLES;
}
/* A BATCH_NORM whose statistics are those of all replicas. */
static inline bool hpct_op_is_synced_norm(const hpct_op_spec *spec)
{
    return spec->kind == HPCT_OP_BATCH_NORM && spec->norm.synchronized && !spec->norm.frozen;
}
int hpct_op_num_inputs(const hpct_op_spec *spec);
size_t hpct_op_src_floats(const hpct_op_spec *spec, int input);
size_t hpct_op_dst_floats(const hpct_op_spec *spec);
int hpct_op_num_params(const hpct_op_spec *spec);
size_t hpct_op_param_floats(const hpct_op_spec *spec, int which);
bool hpct_op_param_is_state(const hpct_op_spec *spec, int which); /* not trained: no gradient */

typedef struct hpct_op_build {
    hpct_precision precision; /* at least: an operation may use fp32 if faster */
    hpct_precision values;    /* type of activations and gradients in memory */
    const int *batch_sizes;
    int num_batch_sizes;
    bool training;       /* backward will be called */
    bool needs_diff_src; /* backward must compute the gradient of a source */
    bool fuse_update;    /* backward may apply SGD to a parameter instead of storing its gradient */
    bool plain_layout;   /* parameters in the same layout on every processor */
    bool frozen;         /* parameter gradients are not wanted: see hpct_op.omits_grads */
    const hpct_graph_window *pool; /* fused max pooling (HPCT_BACKEND_FUSION_POOL): result and
                                dst_blocks are the pooling's; NULL: none */
    bool adds;                     /* CONV2D: adds src[1], of the result's shape, to the result, */
    bool adds_relu;                /* and then applies max(0, x): the fused ADD */
    /* CONV2D: adds no bias. The BATCH_NORM, the only reader of the result, would subtract it with
     * the mean, and adds it to the mean for the moving statistics instead (call.bias). The bias'
     * gradient is set to zero, without rounding errors. */
    bool leaves_bias;
    bool fused_downstream; /* BATCH_NORM: forward writes no dst, only the coefficients
                      (nn/backend/norm_line.h) from which its only reader, an ADD,
                      computes the result. diff_dst is then the gradient before its ReLU */
    bool normed;           /* ADD: a source is a BATCH_NORM fused downstream (call.norms) */
    /* CONV2D with needs_diff_src: other readers of the source have written its gradient before. If
     * backward can accumulate (adds_diff_src), no extra pass is needed. */
    bool shares_src;
    uint32_t stream; /* random stream: distinct for each node */
} hpct_op_build;

/* One call. Arrays over inputs have one entry per input. */
typedef struct hpct_op_call {
    int batch; /* index into hpct_op_build.batch_sizes */
    int n;     /* batch size */
    const float *const *src;
    const void *const *norms; /* ADD: not NULL if src[k] is the source of a BATCH_NORM fused
                                 downstream: its workspace. NULL: none */
    const float *bias;        /* BATCH_NORM: bias left out of src[0]; else NULL */
    const float *norm_sums;   /* backward of BATCH_NORM: sums from the producer of diff_dst */
    float *dst;
    float *diff_dst;        /* backward may overwrite it unless backward_keeps_diff_dst */
    float *const *diff_src; /* NULL entries: no gradient wanted */
    const bool *add;        /* accumulate into this diff_src; only with adds_diff_src */
    float *const *param;    /* [num_params] */
    float *const *grad;     /* [num_params], overwritten; NULL for state, and omits_grads; of
                               CONV2D's kernel: only diff_src is wanted */
    void *copies;           /* of the parameters, 64-byte aligned; see refresh */
    void *workspace;        /* what forward saves for backward, 64-byte aligned */
    void *scratch;          /* temporary memory of the call, 64-byte aligned */
    float learning_rate;    /* of a fused update */
    bool shows_gradients;   /* kernel_fused: also stores the gradient it applies (host) */
    const hpct_graph_step_peers *replicas; /* NULL: none */
    bool training;        /* backward may follow; state may be updated. Backward: as in forward */
    uint64_t seed;        /* random numbers depend on these and hpct_op_build.stream: */
    int64_t step;         /* steps since training began, and */
    int64_t first_sample; /* index of this call's first sample in the global batch */
} hpct_op_call;

typedef struct hpct_op hpct_op;

typedef struct hpct_op_class {
    hpct_status (*forward)(hpct_op *op, const hpct_op_call *call);
    /* NULL: it stands before all trained parameters. */
    hpct_status (*backward)(hpct_op *op, const hpct_op_call *call);
    /* Makes call->copies from call->param before the first forward after a change. NULL: no copies,
     * or only those of param_copied. */
    hpct_status (*refresh)(hpct_op *op, const hpct_op_call *call);
    /* Converts between Keras' layout on the host and the arena's; call hpct_op_import and _export.
     * Import zeroes padding. NULL: the arena is the host's, in Keras' layout. */
    hpct_status (*import_param)(hpct_op *op, int which, const float *keras, float *arena);
    hpct_status (*export_param)(hpct_op *op, int which, const float *arena, float *keras);
    void (*destroy)(hpct_op *op);
    /* The kernels that it was built with for a batch size, for people. NULL: it does not say. */
    void (*describe)(const hpct_op *op, int batch, char *text, size_t size);
} hpct_op_class;

/* Head of every backend's operation structs. */
struct hpct_op {
#ifdef __cplusplus /* kernels, to which `class` is a keyword */
    const hpct_op_class *methods;
#else
    const hpct_op_class *class;
#endif
    hpct_op_spec spec;
    hpct_op_build build;      /* batch_sizes and pool are the model's and outlive the op */
    hpct_precision precision; /* precision used */
    int num_params;
    size_t param_floats[HPCT_OP_MAX_PARAMS];   /* in the arena, padding included */
    uint64_t param_layout[HPCT_OP_MAX_PARAMS]; /* equal values mean equal layouts; 0: Keras' */
    size_t param_rows[HPCT_OP_MAX_PARAMS];     /* rows of the matrix in the arena; 0: as in Keras */
    bool kernel_fused;                         /* backward updates HPCT_OP_KERNEL itself */
    size_t workspace_bytes;
    size_t scratch_bytes;
    size_t copies_bytes; /* copies of parameters in another type or layout: see refresh */
    /* Parameters copied by hpct_backend.copy_params: in build.values, at an offset that is a
     * multiple of 64. */
    bool param_copied[HPCT_OP_MAX_PARAMS];
    size_t copy_offset[HPCT_OP_MAX_PARAMS];
    /* ADD with build.normed: backward stores sums of the g it writes to
     * diff_src[k] of a BATCH_NORM fused downstream, in its workspace at norm_sums[k]:
     * [2][hpct_backend_norm_line_step(channels)], of g and of g (src - mean) inverse. */
    bool leaves_norm_sums;
    size_t norm_sums[2];
    /* With build.frozen: backward computes no parameter gradients, entries of call.grad are NULL.
     * Otherwise they are written to memory that nothing reads. */
    bool omits_grads;
    bool backward_reads_src, backward_reads_dst;
    bool backward_keeps_diff_dst; /* backward leaves diff_dst as it was */
    hpct_op *layout_of; /* the inner operation that converts its parameters; NULL: itself */
    /* Which slower way is taken than others of its kind take, why, and what it costs; NULL: none.
     * The operation's. */
    const char *slow;
    /* Backward can accumulate into diff_src; desirable for operations with several inputs.
     * Otherwise the step adds, using its own memory. */
    bool adds_diff_src;
    /* diff_src may be diff_dst itself: no copy (ADD). */
    bool passes_diff_dst;
};

/* Creates an operation of `bytes` that begins with hpct_op, with what follows from its kind
 * (nn/graph/kinds.h): parameters in Keras' layout, what backward reads and keeps. The caller sets
 * what differs. */
hpct_status hpct_op_new(hpct_op **out, size_t bytes, const hpct_op_class *methods,
                        const hpct_op_spec *spec, const hpct_op_build *build);
hpct_status hpct_op_import(hpct_op *op, int which, const float *keras, float *arena);
hpct_status hpct_op_export(hpct_op *op, int which, const float *arena, float *keras);
/* hpct_op_class.destroy of operations that have nothing else. */
void hpct_op_free(hpct_op *op);

static inline int hpct_op_largest_batch(const hpct_op_build *build)
{
    int largest = 0;
    for (int i = 0; i < build->num_batch_sizes; i++)
        largest = build->batch_sizes[i] > largest ? build->batch_sizes[i] : largest;
    return largest;
}

/* Random state of this call. */
static inline hpct_graph_draw hpct_op_draw(const hpct_op *op, const hpct_op_call *call)
{
    return (hpct_graph_draw){
        .seed = call->seed, .stream = op->build.stream, .step = (uint32_t) call->step};
}

/* Block 0 of the random words of a sample of this call. */
static inline void hpct_op_draw_words(const hpct_op *op, const hpct_op_call *call, size_t sample,
                                      uint32_t words[4])
{
    hpct_graph_draw draw = hpct_op_draw(op, call);
    hpct_graph_draw_words(&draw, (uint32_t) call->first_sample + (uint32_t) sample, 0, words);
}

#endif
