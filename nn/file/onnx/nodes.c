/* One row per kind of operation. Source: onnx/docs/Operators.md, opset 18. */
#include "nn/file/onnx/nodes.h"

#include "base/status.h"
#include "nn/backend/picture.h"
#include "nn/file/onnx/rows.h"
#include "nn/graph/kinds.h"

#include <math.h>

#define INPUTS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* ---- results ---- */

static const hpct_onnx_order as_it_is = {{0, 1, 2, 3}};

/* The name for what an operation computes before its ReLU, if it has one. */
static const char *before_relu(hpct_onnx *b, const hpct_graph_node *node)
{
    const char *result = hpct_onnx_result(b, node);
    return node->spec.relu ? hpct_onnx_name(b, result, "linear") : result;
}

static void finish(hpct_onnx *b, const hpct_graph_node *node, hpct_onnx_layout layout,
                   const char *name)
{
    if (node->spec.relu) {
        const char *result = hpct_onnx_result(b, node);
        hpct_onnx_add(b, "Relu", name, NULL, result);
        name = result;
    }
    hpct_onnx_set(b, node->output, layout, name);
}

/* ---- windows ---- */

/* Cells that the windows reach beyond the end; negative: that they do not reach. */
static int beyond(int in, int out, int kernel, int stride, int dilation, int pad)
{
    return (out - 1) * stride + hpct_graph_window_reach(kernel, dilation) - in - pad;
}

/* Padding at the end, that the output's size asks for. */
static int far_pad(int in, int out, int kernel, int stride, int dilation, int pad)
{
    int missing = beyond(in, out, kernel, stride, dilation, pad);
    return missing > 0 ? missing : 0;
}

typedef struct pads {
    int64_t sides[4]; /* top, left, bottom, right */
} pads;

static pads pads_of(const hpct_graph_window *w)
{
    return (pads){
        {w->pad_top, w->pad_left,
         far_pad(w->in_h, w->out_h, w->kernel_h, w->stride_h, w->dilation_h, w->pad_top),
         far_pad(w->in_w, w->out_w, w->kernel_w, w->stride_w, w->dilation_w, w->pad_left)}};
}

static void put_window(hpct_onnx *b, const hpct_graph_window *w, const pads *p)
{
    hpct_onnx_ints(b, "kernel_shape", (const int64_t[]){w->kernel_h, w->kernel_w}, 2);
    hpct_onnx_ints(b, "strides", (const int64_t[]){w->stride_h, w->stride_w}, 2);
    hpct_onnx_ints(b, "pads", p->sides, 4);
}

/* [out][in / groups][kh][kw] of [kh][kw][in / groups][out]. A depthwise kernel
 * [kh][kw][in][multiplier] is such a one with 1 and in * multiplier, element by element. */
static const char *add_kernel(hpct_onnx *b, const hpct_graph_node *node)
{
    const hpct_graph_window *w = &node->spec.window;
    const char *name = hpct_onnx_weight(b, node, HPCT_OP_KERNEL, &as_it_is);
    if (b->status != HPCT_OK)
        return name;
    hpct_onnx_tensor *kernel = &b->tensors[b->num_tensors - 1];
    kernel->from = HPCT_SHAPE(w->kernel_h, w->kernel_w, w->in_c / w->groups, w->out_c);
    kernel->order = (hpct_onnx_order){{3, 2, 0, 1}};
    kernel->rank = kernel->from.rank;
    for (int i = 0; i < kernel->rank; i++)
        kernel->sizes[i] = kernel->from.size[kernel->order.axes[i]];
    return name;
}

/* NULL: it has none. */
static const char *add_bias(hpct_onnx *b, const hpct_graph_node *node)
{
    return node->spec.no_bias ? NULL : hpct_onnx_weight(b, node, HPCT_OP_BIAS, &as_it_is);
}

/* LayerScale's kernel has one axis, and its cells any. */
static bool is_scale(const hpct_onnx *b, const hpct_graph_node *node)
{
    return b->model->params[node->first_param + HPCT_OP_KERNEL].shape.rank == 1;
}

static void add_conv2d(hpct_onnx *b, const hpct_graph_node *node, const char *type)
{
    const hpct_graph_window *w = &node->spec.window;
    const char *name = before_relu(b, node);
    if (is_scale(b, node)) {
        hpct_onnx_layout layout = hpct_onnx_layout_of(b, node->inputs[0]);
        hpct_onnx_add_scale(b, node, name);
        finish(b, node, layout, name);
        return;
    }
    const char *input = hpct_onnx_value_of(b, node->inputs[0], HPCT_ONNX_FIRST),
               *kernel = add_kernel(b, node), *bias = add_bias(b, node);
    pads p = pads_of(w);
    hpct_onnx_begin(b, type, INPUTS(input, kernel, bias), name);
    hpct_onnx_ints(b, "dilations", (const int64_t[]){w->dilation_h, w->dilation_w}, 2);
    hpct_onnx_int(b, "group", w->groups);
    put_window(b, w, &p);
    hpct_onnx_end(b);
    finish(b, node, HPCT_ONNX_FIRST, name);
}

/* The convolution from its result to its source, reversed. What that does not reach at the end has
 * the bias only. */
static void add_conv2d_transpose(hpct_onnx *b, const hpct_graph_node *node, const char *type)
{
    static const hpct_onnx_order order = {
        {3, 2, 0, 1}}; /* [in][out][kh][kw] of [kh][kw][out][in] */
    const hpct_graph_window *w = &node->spec.window;
    const char *name = before_relu(b, node),
               *input = hpct_onnx_value_of(b, node->inputs[0], HPCT_ONNX_FIRST),
               *kernel = hpct_onnx_weight(b, node, HPCT_OP_KERNEL, &order),
               *bias = add_bias(b, node);
    pads p = pads_of(w);
    int h = beyond(w->in_h, w->out_h, w->kernel_h, w->stride_h, w->dilation_h, w->pad_top),
        v = beyond(w->in_w, w->out_w, w->kernel_w, w->stride_w, w->dilation_w, w->pad_left);
    hpct_onnx_begin(b, type, INPUTS(input, kernel, bias), name);
    hpct_onnx_ints(b, "output_padding", (const int64_t[]){h < 0 ? -h : 0, v < 0 ? -v : 0}, 2);
    put_window(b, w, &p);
    hpct_onnx_end(b);
    finish(b, node, HPCT_ONNX_FIRST, name);
}

/* Pads with zeros, or crops; the name of what it makes. */
static const char *add_padding(hpct_onnx *b, const char *input, const pads *p, const char *name)
{
    const int64_t all[] = {0, 0, p->sides[0], p->sides[1], 0, 0, p->sides[2], p->sides[3]};
    hpct_onnx_add(b, "Pad", input, hpct_onnx_integers(b, all, 8), name);
    return name;
}

static void add_pad2d(hpct_onnx *b, const hpct_graph_node *node, const char *type)
{
    (void) type;
    const hpct_graph_window *w = &node->spec.window;
    const char *name = hpct_onnx_result(b, node);
    pads p = {{w->pad_top, w->pad_left, w->out_h - w->in_h - w->pad_top,
               w->out_w - w->in_w - w->pad_left}};
    add_padding(b, hpct_onnx_value_of(b, node->inputs[0], HPCT_ONNX_FIRST), &p, name);
    finish(b, node, HPCT_ONNX_FIRST, name);
}

static bool covers_all(const hpct_graph_window *w)
{
    return w->kernel_h == w->in_h && w->kernel_w == w->in_w && w->out_h == 1 && w->out_w == 1 &&
           w->pad_top == 0 && w->pad_left == 0;
}

static void add_pool(hpct_onnx *b, const hpct_graph_node *node, const char *type)
{
    const hpct_graph_window *w = &node->spec.window;
    bool mean = node->spec.kind == HPCT_OP_AVERAGE_POOL2D;
    const char *name = hpct_onnx_result(b, node),
               *input = hpct_onnx_value_of(b, node->inputs[0], HPCT_ONNX_FIRST);
    pads p = pads_of(w);
    if (covers_all(w)) {
        hpct_onnx_add(b, mean ? "GlobalAveragePool" : "GlobalMaxPool", input, NULL, name);
    } else {
        if (w->pad_zeros) {
            input = add_padding(b, input, &p, hpct_onnx_name(b, name, "padded"));
            p = (pads){{0}};
        }
        hpct_onnx_begin(b, type, INPUTS(input), name);
        if (mean)
            hpct_onnx_int(b, "count_include_pad", 0);
        put_window(b, w, &p);
        hpct_onnx_end(b);
    }
    finish(b, node, HPCT_ONNX_FIRST, name);
}

/* ---- products and normalization ---- */

static void add_dense(hpct_onnx *b, const hpct_graph_node *node, const char *type)
{
    const char *name = before_relu(b, node),
               *input = hpct_onnx_value_of(b, node->inputs[0], HPCT_ONNX_LAST),
               *kernel = hpct_onnx_weight(b, node, HPCT_OP_KERNEL, &as_it_is),
               *bias = add_bias(b, node);
    if (b->model->tensors[node->output].shape.rank == 1) {
        hpct_onnx_begin(b, type, INPUTS(input, kernel, bias), name);
        hpct_onnx_end(b);
    } else {
        const char *product = bias == NULL ? name : hpct_onnx_name(b, name, "product");
        hpct_onnx_add(b, "MatMul", input, kernel, product);
        if (bias != NULL)
            hpct_onnx_add(b, "Add", product, bias, name);
    }
    finish(b, node, HPCT_ONNX_LAST, name);
}

/* One that the layer does not have is `value` everywhere. */
static const char *norm_param(hpct_onnx *b, const hpct_graph_node *node,
                              hpct_graph_norm_param which, float value)
{
    int index = hpct_op_norm_param(&node->spec, which);
    return index >= 0 ? hpct_onnx_weight(b, node, index, &as_it_is)
                      : hpct_onnx_floats(b, node->spec.norm.channels, value);
}

static void add_batch_norm(hpct_onnx *b, const hpct_graph_node *node, const char *type)
{
    const char *name = before_relu(b, node),
               *input = hpct_onnx_value_of(b, node->inputs[0], HPCT_ONNX_FIRST),
               *gamma = norm_param(b, node, HPCT_GRAPH_NORM_GAMMA, 1),
               *beta = norm_param(b, node, HPCT_GRAPH_NORM_BETA, 0),
               *mean = norm_param(b, node, HPCT_GRAPH_NORM_MEAN, 0),
               *variance = norm_param(b, node, HPCT_GRAPH_NORM_VARIANCE, 1);
    hpct_onnx_begin(b, type, INPUTS(input, gamma, beta, mean, variance), name);
    hpct_onnx_float(b, "epsilon", node->spec.norm.epsilon);
    hpct_onnx_end(b);
    finish(b, node, HPCT_ONNX_FIRST, name);
}

/* ---- elements ---- */

static void add_softmax(hpct_onnx *b, const hpct_graph_node *node, const char *type)
{
    int input = node->inputs[0];
    hpct_onnx_layout layout = hpct_onnx_layout_of(b, input);
    const char *name = hpct_onnx_result(b, node);
    hpct_onnx_begin(b, type, INPUTS(hpct_onnx_value_of(b, input, layout)), name);
    hpct_onnx_int(b, "axis", hpct_onnx_channel_axis(b, input, layout));
    hpct_onnx_end(b);
    finish(b, node, layout, name);
}

static void add_rescaling(hpct_onnx *b, const hpct_graph_node *node, const char *type)
{
    hpct_onnx_layout layout = hpct_onnx_layout_of(b, node->inputs[0]);
    const char *name = hpct_onnx_result(b, node), *scaled = hpct_onnx_name(b, name, "scaled");
    hpct_onnx_add(b, type, hpct_onnx_value_of(b, node->inputs[0], layout),
                  hpct_onnx_scalar(b, node->spec.scale), scaled);
    hpct_onnx_add(b, "Add", scaled, hpct_onnx_scalar(b, node->spec.offset), name);
    finish(b, node, layout, name);
}

/* Random layers do nothing in inference. */
static void add_nothing(hpct_onnx *b, const hpct_graph_node *node, const char *type)
{
    (void) type;
    hpct_onnx_alias(b, node->output, node->inputs[0]);
}

/* ---- joins ---- */

/* All in the layout of the first. */
static hpct_onnx_layout collect(hpct_onnx *b, const hpct_graph_node *node, const char **inputs)
{
    hpct_onnx_layout layout = hpct_onnx_layout_of(b, node->inputs[0]);
    for (int i = 0; i < node->num_inputs; i++)
        inputs[i] = hpct_onnx_value_of(b, node->inputs[i], layout);
    inputs[node->num_inputs] = NULL;
    return layout;
}

/* A Multiply's second input may have one cell, which is broadcast. */
static void add_join(hpct_onnx *b, const hpct_graph_node *node, const char *type)
{
    const char *inputs[HPCT_GRAPH_NODE_MAX_INPUTS + 1], *name = before_relu(b, node);
    hpct_onnx_layout layout = collect(b, node, inputs);
    bool two = node->spec.kind == HPCT_OP_ADD && node->num_inputs == 2;
    hpct_onnx_begin(b, two ? "Add" : type, inputs, name);
    if (node->spec.kind == HPCT_OP_CONCATENATE)
        hpct_onnx_int(b, "axis", hpct_onnx_channel_axis(b, node->output, layout));
    hpct_onnx_end(b);
    finish(b, node, layout, name);
}

/* ---- images ---- */

/* [samples, channels, height, width]. Not the attribute "axes": onnxruntime (1.32) moves transposes
 * over a Resize, and takes its sizes for those of all axes then. */
static const char *add_sizes(hpct_onnx *b, const char *input, const hpct_graph_picture *picture,
                             const char *name)
{
    const char *kept = hpct_onnx_name(b, name, "kept"), *sizes = hpct_onnx_name(b, name, "sizes"),
               *set = hpct_onnx_integers(b, (const int64_t[]){picture->out_h, picture->out_w}, 2);
    hpct_onnx_begin(b, "Shape", INPUTS(input), kept);
    hpct_onnx_int(b, "end", 2);
    hpct_onnx_end(b);
    hpct_onnx_begin(b, "Concat", INPUTS(kept, set), sizes);
    hpct_onnx_int(b, "axis", 0);
    hpct_onnx_end(b);
    return sizes;
}

/* Bilinear or the nearest cell, with the centres of cells at halves, as tf.image.resize. */
static void add_resize(hpct_onnx *b, const char *input, const hpct_graph_picture *picture,
                       const char *name)
{
    const char *sizes = add_sizes(b, input, picture, name);
    hpct_onnx_begin(b, "Resize", INPUTS(input, "", "", sizes), name);
    hpct_onnx_text(b, "coordinate_transformation_mode", "half_pixel");
    hpct_onnx_text(b, "mode", picture->nearest ? "nearest" : "linear");
    if (picture->nearest)
        hpct_onnx_text(b, "nearest_mode", "round_prefer_ceil");
    hpct_onnx_end(b);
}

static void add_resizing(hpct_onnx *b, const hpct_graph_node *node, const char *type)
{
    (void) type;
    const char *name = hpct_onnx_result(b, node);
    add_resize(b, hpct_onnx_value_of(b, node->inputs[0], HPCT_ONNX_FIRST), &node->spec.picture,
               name);
    finish(b, node, HPCT_ONNX_FIRST, name);
}

/* Axes of a sample, behind that of the samples. */
static void add_permute(hpct_onnx *b, const hpct_graph_node *node, const char *type)
{
    const hpct_op_spec *spec = &node->spec;
    const char *name = hpct_onnx_result(b, node),
               *input = hpct_onnx_value_of(b, node->inputs[0], HPCT_ONNX_LAST);
    int64_t axes[HPCT_MAX_RANK + 1] = {0};
    for (int i = 0; i < spec->permute.rank; i++)
        axes[i + 1] = spec->permute.axes[i] + 1;
    hpct_onnx_begin(b, type, INPUTS(input), name);
    hpct_onnx_ints(b, "perm", axes, spec->permute.rank + 1);
    hpct_onnx_end(b);
    finish(b, node, HPCT_ONNX_LAST, name);
}

/* In inference the centre, resized. */
static void add_crop(hpct_onnx *b, const hpct_graph_node *node, const char *type)
{
    const hpct_graph_picture *picture = &node->spec.picture;
    hpct_backend_box box = hpct_backend_box_centre(picture);
    const char *name = hpct_onnx_result(b, node), *cut = hpct_onnx_name(b, name, "cut"),
               *input = hpct_onnx_value_of(b, node->inputs[0], HPCT_ONNX_FIRST);
    const int64_t begin[] = {box.top, box.left},
                  end[] = {box.top + box.height, box.left + box.width}, axes[] = {2, 3};
    const char *from = hpct_onnx_integers(b, begin, 2), *to = hpct_onnx_integers(b, end, 2),
               *of = hpct_onnx_integers(b, axes, 2);
    hpct_onnx_begin(b, type, INPUTS(input, from, to, of), cut);
    hpct_onnx_end(b);
    add_resize(b, cut, picture, name);
    finish(b, node, HPCT_ONNX_FIRST, name);
}

/* ---- the table ---- */

#define ELEMENT(kind, name, reads, type, forward, gradient, algorithm, alpha, beta, onnx,          \
                onnx_type)                                                                         \
    [HPCT_OP_##kind] = hpct_onnx_add_##onnx

static hpct_onnx_row *const rows[HPCT_OP_KINDS] = {
    [HPCT_OP_CONV2D] = add_conv2d,
    [HPCT_OP_MAX_POOL2D] = add_pool,
    [HPCT_OP_AVERAGE_POOL2D] = add_pool,
    [HPCT_OP_PAD2D] = add_pad2d,
    [HPCT_OP_CONV2D_TRANSPOSE] = add_conv2d_transpose,
    [HPCT_OP_DENSE] = add_dense,
    [HPCT_OP_BATCH_NORM] = add_batch_norm,
    [HPCT_OP_NORMALIZATION] = hpct_onnx_add_normalization,
    [HPCT_OP_GROUP_NORM] = hpct_onnx_add_group_norm,
    [HPCT_OP_PRELU] = hpct_onnx_add_prelu,
    [HPCT_OP_SOFTMAX] = add_softmax,
    [HPCT_OP_ADD] = add_join,
    [HPCT_OP_MULTIPLY] = add_join,
    [HPCT_OP_CONCATENATE] = add_join,
    [HPCT_OP_RESCALING] = add_rescaling,
    [HPCT_OP_RESIZING] = add_resizing,
    [HPCT_OP_RANDOM_CROP] = add_crop,
    [HPCT_OP_PERMUTE] = add_permute,
    [HPCT_OP_DROPOUT] = add_nothing,
    [HPCT_OP_GAUSSIAN_NOISE] = add_nothing,
    [HPCT_OP_RANDOM_FLIP] = add_nothing,
    [HPCT_OP_RANDOM_AFFINE] = add_nothing,
    [HPCT_OP_RANDOM_TONE] = add_nothing,
    HPCT_GRAPH_ELEMENT_ROWS(ELEMENT),
};

bool hpct_onnx_has_row(hpct_op_kind kind)
{
    return rows[kind] != NULL;
}

hpct_status hpct_onnx_add_node(hpct_onnx *b, const hpct_graph_node *node)
{
    const hpct_layer *layer = &b->model->layers[node->layer];
    if (!hpct_onnx_has_row(node->spec.kind))
        return hpct_fail(HPCT_ERR_USAGE, "layer %s (%s) cannot be written as ONNX", layer->name,
                         layer->type);
    rows[node->spec.kind](b, node, hpct_op_facts_of(&node->spec)->onnx);
    return b->status;
}
