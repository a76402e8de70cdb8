/* Simplifies the nodes of a model before it is built, for every backend: a ReLU is fused to the
 * operation before it if it is its only reader; a ZeroPadding2D becomes the padding of the
 * convolution or pooling that is its only reader. Layers, tensors and parameters stay. */
#include "nn/graph/graph.h"

#include <string.h>

static int root_of(const hpct_model *model, int tensor)
{
    return model->tensors[tensor].root;
}

/* Number of nodes that read this memory; *reader: one of them. */
static int count_readers(const hpct_model *model, int root, int *reader)
{
    int count = 0;
    for (int i = 0; i < model->num_nodes; i++) {
        for (int k = 0; k < model->nodes[i].num_inputs; k++) {
            if (root_of(model, model->nodes[i].inputs[k]) == root) {
                *reader = i;
                count++;
            }
        }
    }
    return count;
}

static int find_producer(const hpct_model *model, int root)
{
    for (int i = 0; i < model->num_nodes; i++) {
        if (model->nodes[i].output == root)
            return i;
    }
    return -1;
}

static void remove_node(hpct_model *model, int node)
{
    memmove(&model->nodes[node], &model->nodes[node + 1],
            (size_t) (model->num_nodes - node - 1) * sizeof *model->nodes);
    model->num_nodes--;
    for (int i = 0; i < model->num_params; i++)
        model->params[i].node -= model->params[i].node > node;
}

static bool takes_relu(const hpct_op_spec *spec)
{
    bool can = spec->kind == HPCT_OP_CONV2D || spec->kind == HPCT_OP_DENSE ||
               spec->kind == HPCT_OP_ADD || spec->kind == HPCT_OP_BATCH_NORM;
    return can && !spec->relu;
}

/* Makes the operation before a ReLU write the ReLU's output. */
static bool fuse_relu(hpct_model *model, int relu)
{
    const hpct_graph_node *node = &model->nodes[relu];
    if (node->spec.kind != HPCT_OP_RELU)
        return false;
    int root = root_of(model, node->inputs[0]), reader;
    int before = find_producer(model, root);
    if (before < 0 || !takes_relu(&model->nodes[before].spec) ||
        count_readers(model, root, &reader) != 1)
        return false;
    model->nodes[before].spec.relu = true;
    model->nodes[before].output = node->output;
    remove_node(model, relu);
    return true;
}

/* Whether the zeros can become the window's padding: less than one window's reach on each side, and
 * for max pooling, which ignores its own padding, no other padding. LayerScale's window has all
 * cells in one column: it is not over the padded image. */
static bool takes_padding(const hpct_op_spec *spec, const hpct_graph_window *pad)
{
    const hpct_graph_window *w = &spec->window;
    int far_h = pad->out_h - pad->in_h - pad->pad_top,
        far_w = pad->out_w - pad->in_w - pad->pad_left;
    int reach_h = hpct_graph_window_reach(w->kernel_h, w->dilation_h),
        reach_w = hpct_graph_window_reach(w->kernel_w, w->dilation_w);
    bool inside = w->pad_top + pad->pad_top < reach_h && w->pad_left + pad->pad_left < reach_w &&
                  far_h < reach_h && far_w < reach_w;
    bool crops = pad->pad_top < 0 || pad->pad_left < 0 || far_h < 0 || far_w < 0,
         over = w->in_h == pad->out_h && w->in_w == pad->out_w && w->in_c == pad->out_c;
    bool own = w->pad_top > 0 || w->pad_left > 0 ||
               (w->out_h - 1) * w->stride_h + reach_h > w->in_h ||
               (w->out_w - 1) * w->stride_w + reach_w > w->in_w;
    return inside && !crops && over &&
           (spec->kind == HPCT_OP_CONV2D || (spec->kind == HPCT_OP_MAX_POOL2D && !own));
}

static bool fuse_padding(hpct_model *model, int padding)
{
    const hpct_graph_node *node = &model->nodes[padding];
    int reader;
    if (node->spec.kind != HPCT_OP_PAD2D ||
        count_readers(model, root_of(model, node->output), &reader) != 1)
        return false;
    hpct_graph_node *next = &model->nodes[reader];
    const hpct_graph_window *pad = &node->spec.window;
    /* through a reshape the zeros are no longer at the border */
    if (next->inputs[0] != node->output || !takes_padding(&next->spec, pad))
        return false;
    next->spec.window.pad_zeros = next->spec.kind == HPCT_OP_MAX_POOL2D;
    next->spec.window.in_h = pad->in_h;
    next->spec.window.in_w = pad->in_w;
    next->spec.window.pad_top += pad->pad_top;
    next->spec.window.pad_left += pad->pad_left;
    next->inputs[0] = node->inputs[0];
    remove_node(model, padding);
    return true;
}

void hpct_model_fuse(hpct_model *model)
{
    for (int i = 0; i < model->num_nodes;) {
        if (!fuse_relu(model, i) && !fuse_padding(model, i))
            i++;
    }
}
