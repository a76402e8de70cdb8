/* Decides which feature maps are stored in channel blocks (HPCT_GRAPH_CHANNEL_BLOCK in
 * nn/graph/op.h): as many as possible, reduced until every operation supports the layouts of its
 * inputs and output. Convolutions of some processors are faster on blocks. The model's input, its
 * output, tensors passed between pipeline stages (nn/split/stage.h) and those of operations that
 * the backend supports only channels-last stay channels-last. There are no reorder operations: the
 * layout changes where an operation reads one layout and writes the other. */
#include "nn/plan/run.h"

#include "base/status.h"

#include <stdlib.h>

static int root_of(const hpct_model *model, int tensor)
{
    return model->tensors[tensor].root;
}

/* With one cell (1 x 1) both layouts are the same. */
static bool has_one_cell(const hpct_shape *shape)
{
    size_t channels = shape->rank > 0 ? (size_t) shape->size[shape->rank - 1] : 1;
    return hpct_graph_shape_count(shape) == channels;
}

/* A rank-3 tensor that every view of its memory sees with the same shape. */
static bool can_be_blocks(const hpct_model *model, int root)
{
    const hpct_shape *shape = &model->tensors[root].shape;
    if (shape->rank != 3 || shape->size[2] % HPCT_GRAPH_CHANNEL_BLOCK != 0 || has_one_cell(shape))
        return false;
    for (int t = 0; t < model->num_tensors; t++) {
        if (root_of(model, t) == root && !hpct_graph_shape_equal(&model->tensors[t].shape, shape))
            return false;
    }
    return true;
}

/* Makes all tensors of an operation channels-last; returns whether one was blocked. */
static bool clear(const hpct_model *model, const hpct_graph_node *node, bool *blocks)
{
    bool any = blocks[root_of(model, node->output)];
    blocks[root_of(model, node->output)] = false;
    for (int k = 0; k < node->num_inputs; k++) {
        any = any || blocks[root_of(model, node->inputs[k])];
        blocks[root_of(model, node->inputs[k])] = false;
    }
    return any;
}

/* Whether all its tensors are blocked, ignoring those of one cell. */
static bool all_blocks(const hpct_model *model, const hpct_graph_node *node, const bool *blocks)
{
    int root = root_of(model, node->output);
    bool all = blocks[root] || has_one_cell(&model->tensors[root].shape);
    for (int k = 0; k < node->num_inputs; k++) {
        root = root_of(model, node->inputs[k]);
        all = all && (blocks[root] || has_one_cell(&model->tensors[root].shape));
    }
    return all;
}

hpct_status hpct_run_find_blocks(const hpct_model *model, const hpct_run *run, bool plain,
                                 bool **out)
{
    bool *blocks = *out = calloc((size_t) model->num_tensors, sizeof *blocks);
    if (blocks == NULL)
        return hpct_fail_memory((size_t) model->num_tensors * sizeof *blocks);
    if (run->backend->blocking == NULL || plain)
        return HPCT_OK;
    for (int t = 0; t < model->num_tensors; t++)
        blocks[t] = root_of(model, t) == t && can_be_blocks(model, t) &&
                    !model->tensors[t].stage_input && !model->tensors[t].stage_output;
    blocks[root_of(model, 0)] = false;
    blocks[root_of(model, model->output)] = false;
    blocks[root_of(model, run->loss.tensor)] = false;
    bool changed = true;
    while (changed) {
        changed = false;
        for (int i = 0; i < model->num_nodes; i++) {
            const hpct_graph_node *node = &model->nodes[i];
            hpct_backend_blocking blocking =
                run->backend->blocking(&node->spec, hpct_graph_node_precision(model, node));
            if (blocking == HPCT_BACKEND_BLOCKS_NEVER ||
                (blocking == HPCT_BACKEND_BLOCKS_ALL && !all_blocks(model, node, blocks)))
                changed = clear(model, node, blocks) || changed;
        }
    }
    return HPCT_OK;
}
