/* nn/op.h - one operation of the graph as a backend carries it out: what it is (hpct_op_spec), how
 * it was built (hpct_op), and one call of it (hpct_op_call). The border between the graph and the
 * backends; neither layers nor the trainer see behind it.
 *
 * Activations are fp32 in every precision (in hpct_op_build.values where the backend has
 * `low_values`: pointers to them are float * all the same), sample first and channels last, except
 * where a backend asks for its channels in blocks (nn/blocks.h). Parameters lie in the arenas,
 * fp32, in a layout of the backend's own, which import_param and export_param translate. */
#ifndef HPCT_NN_OP_H
#define HPCT_NN_OP_H

#include "nn/replicas.h"
#include "nn/rng.h"

#include <hpctrain/model.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HPCT_NODE_MAX_INPUTS 8
#define HPCT_OP_MAX_PARAMS 4
#define HPCT_OP_KERNEL 0 /* index of a Conv2D's or Dense's kernel among its parameters */
#define HPCT_OP_BIAS 1

typedef enum hpct_op_kind {
    HPCT_OP_CONV2D,
    HPCT_OP_MAX_POOL2D,
    HPCT_OP_AVERAGE_POOL2D,
    HPCT_OP_DENSE,
    HPCT_OP_RELU,
    HPCT_OP_SOFTMAX,
    HPCT_OP_ADD,
    HPCT_OP_CONCATENATE,
    HPCT_OP_RELU6,
    HPCT_OP_SIGMOID,
    HPCT_OP_TANH,
    HPCT_OP_GELU,
    HPCT_OP_BATCH_NORM,
    HPCT_OP_PAD2D,
    HPCT_OP_DROPOUT,
    HPCT_OP_RESCALING,
    HPCT_OP_RESIZING,
    HPCT_OP_RANDOM_CROP,
    HPCT_OP_RANDOM_FLIP,
    HPCT_OP_SUM_PARTS,      /* of a split model (nn/shard.h): the parts of a sum, added up */
    HPCT_OP_GATHER_PARTS,   /* the parts of the last axis, put together */
    HPCT_OP_GATHER_SAMPLES, /* the samples of all parts, from those that each has */
    HPCT_OP_KINDS
} hpct_op_kind;

/* A window that slides over one sample. Cells outside the input are zeros to a convolution and are
 * not there for a maximum or a mean. The padding at the far ends follows from the other numbers. */
typedef struct hpct_window {
    int in_h, in_w, in_c;
    int out_h, out_w, out_c;
    int kernel_h, kernel_w;
    int stride_h, stride_w;
    int dilation_h, dilation_w; /* distance between neighbouring cells of the kernel, 1 or more */
    int pad_top, pad_left;
    int groups; /* CONV2D: so many convolutions side by side, each of its share of the channels */
    /* CONV2D: not 0: only these of the output's cells, counted by rows, as [cells][out_c]; where
     * hpct_window_is_small */
    int first_cell, cells;
    bool pad_zeros; /* MAX_POOL2D: cells outside the input are zeros after all */
} hpct_window;

/* A picture in and one out; which part of the first the second shows is nn/picture.h's. */
typedef struct hpct_picture {
    int in_h, in_w, out_h, out_w, channels;
    bool horizontal, vertical; /* RANDOM_FLIP: the ways it may be turned */
} hpct_picture;

/* A last axis that the parts of a split model share among themselves: part p has the channels
 * [first(p), first(p + 1)), none fewer than `unit`, counts that differ by one `unit` at most. */
typedef struct hpct_channel_split {
    int channels; /* of all parts; 0: not split */
    int unit;     /* channels that stay together; divides them */
    int part, parts;
} hpct_channel_split;

static inline int hpct_channel_split_first(const hpct_channel_split *split, int part)
{
    return (int) ((int64_t) (split->channels / split->unit) * part / split->parts) * split->unit;
}

static inline int hpct_channel_split_count(const hpct_channel_split *split, int part)
{
    return hpct_channel_split_first(split, part + 1) - hpct_channel_split_first(split, part);
}

/* Of n samples that parts share among themselves: part p has [first(p), first(p + 1)), the first
 * parts one more where they do not divide n. As data parallel ranks share a batch. */
static inline int hpct_samples_first(int n, int part, int parts)
{
    return n / parts * part + (part < n % parts ? part : n % parts);
}

static inline int hpct_samples_count(int n, int part, int parts)
{
    return hpct_samples_first(n, part + 1, parts) - hpct_samples_first(n, part, parts);
}

/* Input cells that a window reaches over. */
static inline int hpct_window_reach(int kernel, int dilation)
{
    return (kernel - 1) * dilation + 1;
}

static inline int hpct_window_cells(const hpct_window *w)
{
    return w->cells > 0 ? w->cells : w->out_h * w->out_w;
}

/* A convolution whose output cell is a dot product of few inputs, all of them there, and whose
 * output channels fill vectors. */
#define HPCT_SMALL_WINDOW 256 /* inputs of a cell; beyond, general kernels win */
bool hpct_window_is_small(const hpct_window *w);

/* With src_blocks or dst_blocks, the pictures on that side lie not as [n][h][w][c] but as
 * [n][c / 16][h][w][16], and their gradients with them. */
#define HPCT_CHANNEL_BLOCK 16

typedef struct hpct_op_spec {
    hpct_op_kind kind;
    bool src_blocks, dst_blocks; /* decided when the model is built */
    bool relu;    /* CONV2D, DENSE, ADD, BATCH_NORM, SUM_PARTS: the result goes through max(0, x) */
    bool no_bias; /* CONV2D, DENSE: the kernel is the only parameter; SUM_PARTS: none */
    double rate;  /* DROPOUT: the share of elements that becomes zero */
    float scale, offset; /* RESCALING */
    union {
        hpct_window window; /* CONV2D, MAX_POOL2D, AVERAGE_POOL2D; PAD2D: sizes and padding */
        struct {
            int rows; /* per sample; DENSE and SOFTMAX work on the last axis */
            int in, out;
        } dense;              /* DENSE; the activations, DROPOUT and RESCALING (in == out) */
        hpct_picture picture; /* RESIZING, RANDOM_CROP, RANDOM_FLIP */
        struct {
            int rows; /* per sample: all axes but the last */
            int count;
            int size[HPCT_NODE_MAX_INPUTS]; /* each input's last axis; ADD: all the same */
        } join;                             /* ADD, CONCATENATE */
        struct {
            int rows; /* per sample: all axes but the last */
            int channels;
            bool no_scale, no_center, synchronized;
            float momentum, epsilon;
            int groups; /* 2 or more: statistics are of so many slices of the samples, each its own
                           (hpct_samples_first), as if each were another replica's */
        } norm;         /* BATCH_NORM */
        struct {
            int rows; /* per sample */
            hpct_channel_split split;
            bool sum_diff; /* each part has only its part of diff_dst */
            bool carries;  /* forward takes hpct_replicas.riders along */
        } parts;           /* SUM_PARTS, GATHER_PARTS; GATHER_SAMPLES: all of its channels, and
                              by split.part and parts whose samples are whose */
    };
} hpct_op_spec;

/* The parameters of BATCH_NORM by meaning, before those left out are taken away. */
typedef enum hpct_norm_param {
    HPCT_NORM_GAMMA,
    HPCT_NORM_BETA,
    HPCT_NORM_MEAN, /* moving */
    HPCT_NORM_VARIANCE,
} hpct_norm_param;
/* Its index among the op's parameters, -1 when there is none. */
int hpct_op_norm_param(const hpct_op_spec *spec, hpct_norm_param which);

/* What follows from a spec alone. Floats of one sample; of a parameter in Keras' layout. */
const char *hpct_op_kind_name(hpct_op_kind kind); /* "conv2d" */
static inline bool hpct_op_is_collective(const hpct_op_spec *spec)
{
    return spec->kind == HPCT_OP_SUM_PARTS || spec->kind == HPCT_OP_GATHER_PARTS ||
           spec->kind == HPCT_OP_GATHER_SAMPLES;
}
int hpct_op_num_inputs(const hpct_op_spec *spec);
size_t hpct_op_src_floats(const hpct_op_spec *spec, int input);
size_t hpct_op_dst_floats(const hpct_op_spec *spec);
int hpct_op_num_params(const hpct_op_spec *spec);
size_t hpct_op_param_floats(const hpct_op_spec *spec, int which);
bool hpct_op_param_is_state(const hpct_op_spec *spec, int which); /* not trained: no gradient */

typedef struct hpct_op_build {
    hpct_precision precision; /* at least: an operation may find fp32 faster */
    hpct_precision values;    /* of the activations and their gradients, as they lie in memory */
    const int *batch_sizes;
    int num_batch_sizes;
    bool training;       /* backward will be called */
    bool needs_diff_src; /* backward has to deliver the gradient of a source */
    bool fuse_update;    /* backward may apply SGD to a parameter instead of storing its gradient */
    bool plain_layout;   /* parameters in a layout that is the same on every processor */
    const hpct_window
        *pool;      /* of the maximum pooling that it does as well (the backend's `merges`):
                       its result and dst_blocks are the pooling's; NULL: none */
    bool adds;      /* CONV2D: src[1], which is like the result, is added to it, */
    bool adds_relu; /* and that goes through max(0, x): what the ADD of both would do */
    bool moments;   /* CONV2D: forward may leave the sums of its result and of the squares of that,
                       [2][channels], at the beginning of its workspace (leaves_moments) */
    /* CONV2D: its bias is left to the BATCH_NORM that alone reads its result: that takes the mean
     * away again, and adds the bias to what it says of the mean (call.bias). Its gradient is zero,
     * which rounding would hide. */
    bool leaves_bias;
    bool deferred; /* BATCH_NORM: forward writes no dst, but leaves what it takes to work it out
                      (nn/norm_line.h), as the ADD or CONV2D does that alone reads it. Then
                      diff_dst is of what is there before its ReLU */
    /* CONV2D: the deferred BATCH_NORM whose result is its source (call.norms[0]), which forward
     * works out, ReLU included, and backward too; diff_src is then of what is there before the
     * ReLU. Where the backend's takes_norm said so; NULL: none. */
    const hpct_op_spec *norm;
    bool normed; /* ADD: some source is that of a deferred BATCH_NORM (call.norms) */
    /* CONV2D with needs_diff_src: others read its source, too, and have made their parts of its
     * gradient before. Where backward can add to them (adds_diff_src), no pass over memory is
     * wanted for that. */
    bool shares_src;
    uint32_t stream; /* of random numbers: another one for each node of a model */
} hpct_op_build;

/* One call. Arrays over inputs have one entry for each of the node's inputs. */
typedef struct hpct_op_call {
    int batch; /* index into hpct_op_build.batch_sizes */
    int n;     /* that batch size */
    const float *const *src;
    const void *const *norms; /* ADD, CONV2D: not NULL where src[k] is what a deferred BATCH_NORM
                                 reads: its workspace. NULL: no input is such a one */
    const float *moments; /* BATCH_NORM: of src[0], where who made that has left them; else NULL */
    const float *bias;    /* BATCH_NORM: that belongs to src[0] and is not in it; else NULL */
    const float *norm_sums; /* backward of BATCH_NORM: where who made diff_dst has left them */
    float *dst;
    float *diff_dst;        /* backward may overwrite it unless backward_keeps_diff_dst */
    float *const *diff_src; /* entries are NULL where no gradient is wanted */
    const bool *add;        /* backward adds to this diff_src; only set with adds_diff_src */
    float *const *param;    /* [num_params] */
    float *const *grad;     /* [num_params], overwritten; entries of state are NULL */
    void *copies;           /* of the parameters, 64-byte aligned; see refresh */
    void *workspace;        /* forward's notes for backward, 64-byte aligned */
    void *scratch;          /* free to use within the call, 64-byte aligned */
    void *scratch_aside;    /* another one like it, for what lingers */
    bool begun;             /* backward of DENSE: diff_dst is of what is there before the ReLU,
                               and the bias' gradient is made */
    float learning_rate;    /* of a fused update */
    const hpct_replicas *replicas; /* NULL: none */
    bool training;        /* backward may follow; state may be updated. Backward: as in forward */
    uint64_t seed;        /* what random numbers depend on, besides hpct_op_build.stream: */
    int64_t step;         /* steps since training began, and */
    int64_t first_sample; /* where in the global batch this call's samples begin */
} hpct_op_call;

typedef struct hpct_op hpct_op;

typedef struct hpct_op_class {
    hpct_status (*forward)(hpct_op *op, const hpct_op_call *call);
    hpct_status (*backward)(hpct_op *op, const hpct_op_call *call);
    /* Makes call->copies of call->param; before the first forward after they have changed. NULL:
     * it has no copies, or those of param_copied. */
    hpct_status (*refresh)(hpct_op *op, const hpct_op_call *call);
    /* Between Keras' layout on the host and the arena's. Import sets padding to zero. */
    hpct_status (*import_param)(hpct_op *op, int which, const float *keras, float *arena);
    hpct_status (*export_param)(hpct_op *op, int which, const float *arena, float *keras);
    void (*destroy)(hpct_op *op);
} hpct_op_class;

/* Nodes whose backward may be called before what lingers has ended. */
#define HPCT_LINGERS 1

/* The head of every backend's own operation structs. */
struct hpct_op {
    const hpct_op_class *class;
    hpct_op_spec spec;
    hpct_op_build build;      /* batch_sizes and pool belong to the model and outlive the op */
    hpct_precision precision; /* that it computes in */
    int num_params;
    size_t param_floats[HPCT_OP_MAX_PARAMS];   /* in the arena, padding included */
    uint64_t param_layout[HPCT_OP_MAX_PARAMS]; /* equal numbers, equal layouts; 0: Keras' */
    size_t param_rows[HPCT_OP_MAX_PARAMS];     /* as a matrix in the arena; 0: as Keras has it */
    bool param_fused[HPCT_OP_MAX_PARAMS];      /* backward updates this one itself */
    size_t workspace_bytes;
    size_t scratch_bytes;
    size_t copies_bytes; /* of parameters, in another type or layout: see refresh */
    /* Those that hpct_backend.copy_params makes: of this parameter, in build.values, so many bytes
     * from the beginning, a multiple of 64. */
    bool param_copied[HPCT_OP_MAX_PARAMS];
    size_t copy_offset[HPCT_OP_MAX_PARAMS];
    bool leaves_moments; /* as hpct_op_build.moments says */
    /* CONV2D with build.norm, ADD with build.normed: backward leaves sums of the g that it writes
     * to diff_src[k], of a deferred BATCH_NORM, in its workspace, norm_sums[k] bytes from its
     * beginning: [2][hpct_norm_line_step(channels)], of g and of g (src - mean) inverse. */
    bool leaves_norm_sums;
    size_t norm_sums[2];
    bool backward_reads_src, backward_reads_dst;
    bool backward_keeps_diff_dst; /* backward leaves diff_dst as it was */
    bool takes_loss;              /* DENSE: hpct_backend.head does it with the loss of its result */
    /* Backward may leave gradients of parameters to be made beside what is called next, until
     * hpct_device.join, which comes HPCT_LINGERS nodes later at the latest: that long src and
     * diff_dst stay as they are, and scratch_aside is its. */
    bool lingers;
    /* Backward can add to a diff_src that has a part of the gradient already; wanted of all
     * operations with several inputs. For the others the step adds, through memory of its own. */
    bool adds_diff_src;
    /* A diff_src may be diff_dst itself, and is then complete without a copy (ADD). */
    bool passes_diff_dst;
};

/* What an operation draws from in this call. */
static inline hpct_draw hpct_op_draw(const hpct_op *op, const hpct_op_call *call)
{
    return (hpct_draw){
        .seed = call->seed, .stream = op->build.stream, .step = (uint32_t) call->step};
}

/* FNV-1a over `size` bytes, for layout fingerprints; start with HPCT_HASH_START. */
#define HPCT_HASH_START UINT64_C(0xcbf29ce484222325)
static inline uint64_t hpct_hash(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
