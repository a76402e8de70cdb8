/* LayerNormalization (Ba, Kiros and Hinton, 2016) and GroupNormalization (Wu and He, 2018), in
 * Keras' form: statistics of each sample by itself, the same in training and inference. */
#include "nn/graph/graph.h"

#define DEFAULT_EPSILON 1e-3
#define DEFAULT_GROUPS 32

/* Adds the operation and its parameters; false if epsilon is wrong. */
static void add_norm(hpct_model *model, const hpct_shape *input, hpct_op_spec *spec, double epsilon)
{
    if (!(epsilon > 0)) {
        hpct_layer_fail(model, "epsilon %g must be above 0", epsilon);
        return;
    }
    spec->group.epsilon = (float) epsilon;
    hpct_shape each = HPCT_SHAPE(spec->group.channels);
    if (!hpct_layer_add_node(model, spec, input))
        return;
    if (!spec->group.no_scale)
        hpct_layer_add_param(model, "gamma", &each, HPCT_GRAPH_INIT_ONES, 0, 0);
    if (!spec->group.no_center)
        hpct_layer_add_param(model, "beta", &each, HPCT_GRAPH_INIT_ZEROS, 0, 0);
}

void hpct_model_add_layer_normalization(hpct_model *model, const hpct_layer_normalization *norm)
{
    hpct_shape input;
    if (!hpct_layer_begin(model, "LayerNormalization", "layer_normalization", &input))
        return;
    hpct_layer_normalization own = *norm;
    own.epsilon = norm->epsilon == 0 ? DEFAULT_EPSILON : norm->epsilon;
    hpct_layer_config_of(model)->layer_normalization = own;
    int channels = input.size[input.rank - 1];
    hpct_op_spec spec = {.kind = HPCT_OP_GROUP_NORM,
                         .group = {.rows = (int) hpct_graph_shape_count(&input) / channels,
                                   .cells = 1,
                                   .channels = channels,
                                   .groups = 1,
                                   .no_scale = norm->no_scale,
                                   .no_center = norm->no_center}};
    add_norm(model, &input, &spec, own.epsilon);
}

void hpct_model_add_group_normalization(hpct_model *model, const hpct_group_normalization *norm)
{
    hpct_shape input;
    if (!hpct_layer_begin(model, "GroupNormalization", "group_normalization", &input))
        return;
    int channels = input.size[input.rank - 1];
    hpct_group_normalization own = *norm;
    own.epsilon = norm->epsilon == 0 ? DEFAULT_EPSILON : norm->epsilon;
    own.groups = norm->groups == 0 ? DEFAULT_GROUPS : norm->groups;
    hpct_layer_config_of(model)->group_normalization = own;
    int groups = own.groups == -1 ? channels : own.groups;
    if (groups < 1 || channels % groups != 0) {
        hpct_layer_fail(model, "%d groups do not divide %d channels", groups, channels);
        return;
    }
    hpct_op_spec spec = {.kind = HPCT_OP_GROUP_NORM,
                         .group = {.rows = 1,
                                   .cells = (int) hpct_graph_shape_count(&input) / channels,
                                   .channels = channels,
                                   .groups = groups,
                                   .no_scale = norm->no_scale,
                                   .no_center = norm->no_center}};
    add_norm(model, &input, &spec, own.epsilon);
}
