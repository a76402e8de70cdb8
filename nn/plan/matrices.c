/* The trained parameters as matrices in the arena, and the padding in their layouts. */
#include "nn/plan/run.h"

#include "base/status.h"

#include <stdlib.h>

static hpct_run_arena_matrix matrix_of(const hpct_model *model, int index)
{
    const hpct_graph_param *param = &model->params[index];
    const hpct_op *op = model->run->nodes[param->node].op;
    size_t floats = op->param_floats[param->index], rows = op->param_rows[param->index];
    int rank = param->shape.rank;
    size_t last = rank > 1 ? (size_t) param->shape.size[rank - 1] : floats;
    if (rows == 0)
        rows = last > 1 && floats % last == 0 ? floats / last : 1;
    return (hpct_run_arena_matrix){model->run->arenas.param_offsets[index], rows, floats / rows};
}

int hpct_model_matrices(const hpct_model *model, hpct_run_arena_matrix *out)
{
    int count = 0;
    if (model->run == NULL)
        return 0;
    for (int i = model->num_nodes - 1; i >= 0; i--) {
        const hpct_graph_node *node = &model->nodes[i];
        for (int k = 0; k < node->num_params; k++) {
            if (model->params[node->first_param + k].state)
                continue;
            if (out != NULL)
                out[count] = matrix_of(model, node->first_param + k);
            count++;
        }
    }
    return count;
}

/* ---- padding ---- */

/* Imports ones: what is 0 then holds no value. */
static hpct_status mark_in(const hpct_model *model, int index, uint32_t *bits)
{
    const hpct_graph_param *param = &model->params[index];
    hpct_op *op = model->run->nodes[param->node].op;
    size_t count = hpct_graph_shape_count(&param->shape), floats = op->param_floats[param->index];
    size_t offset = model->run->arenas.param_offsets[index];
    float *ones = malloc(count * sizeof *ones), *laid = calloc(floats, sizeof *laid);
    hpct_status status =
        ones != NULL && laid != NULL ? HPCT_OK : hpct_fail_memory((count + floats) * sizeof *ones);
    for (size_t i = 0; i < count && status == HPCT_OK; i++)
        ones[i] = 1;
    if (status == HPCT_OK)
        status = hpct_op_import(op, param->index, ones, laid);
    for (size_t i = 0; i < floats && status == HPCT_OK; i++) {
        if (!(laid[i] > 0))
            bits[(offset + i) / 32] |= UINT32_C(1) << (offset + i) % 32;
    }
    free(ones);
    free(laid);
    return status;
}

hpct_status hpct_model_mark_padding(const hpct_model *model, uint32_t *bits, bool *any)
{
    *any = false;
    for (int i = 0; i < model->num_params; i++) {
        const hpct_graph_param *param = &model->params[i];
        const hpct_op *op = model->run->nodes[param->node].op;
        if (param->state || op->param_floats[param->index] == hpct_graph_shape_count(&param->shape))
            continue;
        HPCT_TRY(mark_in(model, i, bits));
        *any = true;
    }
    return HPCT_OK;
}
