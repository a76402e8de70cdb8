/* BatchNormalization along the last axis (Ioffe and Szegedy, Batch Normalization: Accelerating Deep
 * Network Training by Reducing Internal Covariate Shift, 2015), in Keras' form. */
#include "nn/graph/graph.h"

#define DEFAULT_MOMENTUM 0.99
#define DEFAULT_EPSILON 1e-3

void hpct_model_add_batch_normalization(hpct_model *model, const hpct_batch_normalization *norm)
{
    hpct_shape input;
    if (!hpct_layer_begin(model, "BatchNormalization", "batch_normalization", &input))
        return;
    double momentum = norm->momentum == 0 ? DEFAULT_MOMENTUM : norm->momentum;
    double epsilon = norm->epsilon == 0 ? DEFAULT_EPSILON : norm->epsilon;
    if (!(momentum >= 0 && momentum < 1) || !(epsilon > 0)) {
        hpct_layer_fail(model, "momentum %g must lie in [0, 1) and epsilon %g above 0", momentum,
                        epsilon);
        return;
    }
    *hpct_layer_config_of(model) =
        (hpct_layer_config){.batch_normalization = {momentum, epsilon, norm->no_center,
                                                    norm->no_scale, norm->synchronized}};
    int channels = input.size[input.rank - 1];
    hpct_op_spec spec = {
        .kind = HPCT_OP_BATCH_NORM,
        .norm = {.rows = (int) hpct_graph_shape_count(&input) / channels,
                 .channels = channels,
                 .no_scale = norm->no_scale,
                 .no_center = norm->no_center,
                 .synchronized = norm->synchronized,
                 .momentum = (float) momentum,
                 .epsilon = (float) epsilon},
    };
    hpct_shape each = HPCT_SHAPE(channels);
    if (!hpct_layer_add_node(model, &spec, &input))
        return;
    if (!norm->no_scale)
        hpct_layer_add_param(model, "gamma", &each, HPCT_GRAPH_INIT_ONES, 0, 0);
    if (!norm->no_center)
        hpct_layer_add_param(model, "beta", &each, HPCT_GRAPH_INIT_ZEROS, 0, 0);
    hpct_layer_add_param(model, "moving_mean", &each, HPCT_GRAPH_INIT_ZEROS, 0, 0);
    hpct_layer_add_param(model, "moving_variance", &each, HPCT_GRAPH_INIT_ONES, 0, 0);
}
