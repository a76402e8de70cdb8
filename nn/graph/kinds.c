/* The table of kinds of operations. */
#include "nn/graph/kinds.h"

#include "nn/graph/parallel.h"

#define NONE HPCT_GRAPH_PARALLEL_NONE
#define BEGINS HPCT_GRAPH_PARALLEL_BEGINS
#define FOLLOWS HPCT_GRAPH_PARALLEL_FOLLOWS
#define SUMS HPCT_GRAPH_PARALLEL_SUMS

#define ELEMENT(kind, kind_name, reads, type, forward, gradient, algorithm, alpha, beta, function, \
                onnx_name)                                                                         \
    [HPCT_OP_##kind] = {.name = #kind_name,                                                        \
                        .sizes = HPCT_GRAPH_SIZES_DENSE,                                           \
                        .parallel = FOLLOWS,                                                       \
                        .predicted_split = true,                                                   \
                        .activation = true,                                                        \
                        .elementwise = true,                                                       \
                        .onnx = onnx_name,                                                         \
                        .reads_src = HPCT_GRAPH_ELEMENT_READS_SRC_##reads,                         \
                        .reads_dst = !HPCT_GRAPH_ELEMENT_READS_SRC_##reads}

/* Dropout and GaussianNoise do not follow a split: their random numbers count the elements of a
 * sample. GROUP_NORM's statistics are over channels. */
static const hpct_op_facts kinds[HPCT_OP_KINDS] = {
    HPCT_GRAPH_ELEMENT_ROWS(ELEMENT),
    [HPCT_OP_CONV2D] = {"conv2d", HPCT_GRAPH_SIZES_WINDOW, NONE, .kernel = true, .reads_src = true,
                        .omits_grads = true, .onnx = "Conv"},
    [HPCT_OP_CONV2D_TRANSPOSE] = {"conv2d_transpose", HPCT_GRAPH_SIZES_TRANSPOSED, NONE,
                                  .kernel = true, .reads_src = true, .onnx = "ConvTranspose"},
    [HPCT_OP_DENSE] = {"dense", HPCT_GRAPH_SIZES_DENSE, BEGINS | SUMS, .kernel = true,
                       .reads_src = true, .omits_grads = true, .onnx = "Gemm"},
    [HPCT_OP_MAX_POOL2D] = {"max_pool2d", HPCT_GRAPH_SIZES_WINDOW, FOLLOWS, .predicted_split = true,
                            .onnx = "MaxPool"},
    [HPCT_OP_AVERAGE_POOL2D] = {"average_pool2d", HPCT_GRAPH_SIZES_WINDOW, FOLLOWS,
                                .predicted_split = true, .onnx = "AveragePool"},
    [HPCT_OP_PAD2D] = {"pad2d", HPCT_GRAPH_SIZES_WINDOW, FOLLOWS, .predicted_split = true,
                       .adds_diff_src = true, .onnx = "Pad"},
    [HPCT_OP_SOFTMAX] = {"softmax", HPCT_GRAPH_SIZES_DENSE, NONE, .reads_dst = true,
                         .onnx = "Softmax"},
    [HPCT_OP_PRELU] = {"prelu", HPCT_GRAPH_SIZES_LINE, FOLLOWS, .predicted_split = true,
                       .reads_src = true, .onnx = "PRelu"},
    [HPCT_OP_NORMALIZATION] = {"normalization", HPCT_GRAPH_SIZES_LINE, NONE, .onnx = "Div"},
    [HPCT_OP_RESCALING] = {"rescaling", HPCT_GRAPH_SIZES_DENSE, FOLLOWS, .predicted_split = true,
                           .elementwise = true, .onnx = "Mul"},
    [HPCT_OP_ADD] = {"add", HPCT_GRAPH_SIZES_JOIN, FOLLOWS, .adds_diff_src = true,
                     .passes_diff_dst = true, .onnx = "Sum"},
    [HPCT_OP_MULTIPLY] = {"multiply", HPCT_GRAPH_SIZES_JOIN, FOLLOWS, .reads_src = true,
                          .adds_diff_src = true, .onnx = "Mul"},
    [HPCT_OP_CONCATENATE] = {"concatenate", HPCT_GRAPH_SIZES_JOIN, NONE, .adds_diff_src = true,
                             .onnx = "Concat"},
    [HPCT_OP_BATCH_NORM] = {"batch_norm", HPCT_GRAPH_SIZES_NORM, FOLLOWS, .predicted_split = true,
                            .reads_src = true, .adds_diff_src = true, .onnx = "BatchNormalization"},
    [HPCT_OP_GROUP_NORM] = {"group_norm", HPCT_GRAPH_SIZES_GROUP, NONE, .reads_src = true,
                            .adds_diff_src = true, .onnx = "LayerNormalization"},
    [HPCT_OP_DROPOUT] = {"dropout", HPCT_GRAPH_SIZES_DENSE, NONE, .predicted_split = true},
    [HPCT_OP_GAUSSIAN_NOISE] = {"gaussian_noise", HPCT_GRAPH_SIZES_DENSE, NONE,
                                .predicted_split = true, .adds_diff_src = true,
                                .passes_diff_dst = true},
    [HPCT_OP_PERMUTE] = {"permute", HPCT_GRAPH_SIZES_PERMUTE, NONE, .adds_diff_src = true,
                         .onnx = "Transpose"},
    [HPCT_OP_RESIZING] = {"resizing", HPCT_GRAPH_SIZES_PICTURE, FOLLOWS, .onnx = "Resize"},
    [HPCT_OP_RANDOM_CROP] = {"random_crop", HPCT_GRAPH_SIZES_PICTURE, FOLLOWS, .onnx = "Slice"},
    [HPCT_OP_RANDOM_FLIP] = {"random_flip", HPCT_GRAPH_SIZES_PICTURE, FOLLOWS},
    [HPCT_OP_RANDOM_AFFINE] = {"random_affine", HPCT_GRAPH_SIZES_PICTURE, NONE},
    [HPCT_OP_RANDOM_TONE] = {"random_tone", HPCT_GRAPH_SIZES_PICTURE, NONE},
    [HPCT_OP_SUM_PARTS] = {"sum_parts", HPCT_GRAPH_SIZES_PARTS, NONE, .passes_diff_dst = true,
                           .omits_grads = true},
    [HPCT_OP_GATHER_PARTS] = {"gather_parts", HPCT_GRAPH_SIZES_PARTS, NONE, .omits_grads = true},
    [HPCT_OP_GATHER_SAMPLES] = {"gather_samples", HPCT_GRAPH_SIZES_PARTS, NONE,
                                .adds_diff_src = true, .omits_grads = true},
};

const hpct_op_facts *hpct_op_facts_of(const hpct_op_spec *spec)
{
    return &kinds[spec->kind];
}

const char *hpct_op_kind_name(hpct_op_kind kind)
{
    return kinds[kind].name;
}

bool hpct_op_is_activation(hpct_op_kind kind)
{
    return kinds[kind].activation;
}

bool hpct_op_gradient_from_src(hpct_op_kind kind)
{
    return kinds[kind].reads_src;
}
