/* Permute: the axes of a sample in another order. */
#include "nn/graph/graph.h"

/* Whether every axis from 1 to `rank` is there once. */
static bool is_permutation(const int *axes, int rank)
{
    int seen = 0;
    for (int i = 0; i < rank; i++)
        seen |= axes[i] >= 1 && axes[i] <= rank ? 1 << axes[i] : 0;
    return seen == (1 << (rank + 1)) - 2;
}

void hpct_model_add_permute(hpct_model *model, const int *axes)
{
    hpct_shape input;
    if (!hpct_layer_begin(model, "Permute", "permute", &input))
        return;
    if (!is_permutation(axes, input.rank)) {
        hpct_layer_fail(model, "the axes must be 1 to %d, each once", input.rank);
        return;
    }
    hpct_shape output = input, *dims = &hpct_layer_config_of(model)->shape;
    dims->rank = input.rank;
    hpct_op_spec spec = {.kind = HPCT_OP_PERMUTE, .permute.rank = input.rank};
    for (int i = 0; i < input.rank; i++) {
        dims->size[i] = axes[i];
        spec.permute.size[i] = input.size[i];
        spec.permute.axes[i] = axes[i] - 1;
        output.size[i] = input.size[axes[i] - 1];
    }
    hpct_layer_add_node(model, &spec, &output);
}
