/* The trained parameters as matrices in the arena. */
#include "nn/plan/run.h"

static hpct_arena_matrix matrix_of(const hpct_model *model, int index)
{
    const hpct_param *param = &model->params[index];
    const hpct_op *op = model->run->nodes[param->node].op;
    size_t floats = op->param_floats[param->index], rows = op->param_rows[param->index];
    int rank = param->shape.rank;
    size_t last = rank > 1 ? (size_t) param->shape.size[rank - 1] : floats;
    if (rows == 0)
        rows = last > 1 && floats % last == 0 ? floats / last : 1;
    return (hpct_arena_matrix){model->run->arenas.param_offsets[index], rows, floats / rows};
}

int hpct_model_matrices(const hpct_model *model, hpct_arena_matrix *out)
{
    int count = 0;
    if (model->run == NULL)
        return 0;
    for (int i = model->num_nodes - 1; i >= 0; i--) {
        const hpct_node *node = &model->nodes[i];
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
