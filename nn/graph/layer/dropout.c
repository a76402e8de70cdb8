/* Dropout (Srivastava, Hinton, Krizhevsky, Sutskever, Salakhutdinov, 2014), inverted: in training a
 * fraction of the elements becomes zero and the others are scaled up, so that inference is the
 * identity. SpatialDropout2D drops whole channels (Tompson et al., Efficient Object Localization
 * Using Convolutional Networks, 2015), StochasticDepth whole samples (Huang et al., Deep Networks
 * with Stochastic Depth, 2016). GaussianNoise adds random numbers instead. */
#include "nn/graph/layer/window.h"

#include <math.h>

/* rows of the sample lose the same elements. */
static void add_drop(hpct_model *model, const hpct_shape *input, double rate, int rows)
{
    if (!(rate >= 0 && rate <= 1)) {
        hpct_layer_fail(model, "the rate must lie between 0 and 1, but it is %g", rate);
        return;
    }
    hpct_layer_config_of(model)->dropout.rate = rate;
    if (rate == 0) {
        hpct_layer_add_view(model, input);
        return;
    }
    int each = (int) hpct_graph_shape_count(input) / rows;
    hpct_op_spec spec = {
        .kind = HPCT_OP_DROPOUT, .rate = rate, .dense = {.rows = rows, .in = each, .out = each}};
    hpct_layer_add_node(model, &spec, input);
}

void hpct_model_add_dropout(hpct_model *model, double rate)
{
    hpct_shape input;
    if (hpct_layer_begin(model, "Dropout", "dropout", &input))
        add_drop(model, &input, rate, 1);
}

void hpct_model_add_sample_dropout(hpct_model *model, double rate)
{
    hpct_shape input;
    if (!hpct_layer_begin(model, "Dropout", "dropout", &input))
        return;
    hpct_layer_config_of(model)->dropout.per_sample = true;
    add_drop(model, &input, rate, (int) hpct_graph_shape_count(&input));
}

void hpct_model_add_spatial_dropout2d(hpct_model *model, double rate)
{
    hpct_shape input;
    if (hpct_layer_begin(model, "SpatialDropout2D", "spatial_dropout2d", &input) &&
        hpct_layer_window_takes(model, &input))
        add_drop(model, &input, rate, input.size[0] * input.size[1]);
}

void hpct_model_add_stochastic_depth(hpct_model *model, double rate)
{
    hpct_shape input;
    if (hpct_layer_begin(model, "StochasticDepth", "stochastic_depth", &input))
        add_drop(model, &input, rate, (int) hpct_graph_shape_count(&input));
}

void hpct_model_add_gaussian_noise(hpct_model *model, double stddev)
{
    hpct_shape input;
    if (!hpct_layer_begin(model, "GaussianNoise", "gaussian_noise", &input))
        return;
    if (!(stddev >= 0 && isfinite(stddev))) {
        hpct_layer_fail(model, "the standard deviation must be 0 or more, but it is %g", stddev);
        return;
    }
    hpct_layer_config_of(model)->gaussian_noise = stddev;
    if (stddev == 0) {
        hpct_layer_add_view(model, &input);
        return;
    }
    int count = (int) hpct_graph_shape_count(&input);
    hpct_op_spec spec = {.kind = HPCT_OP_GAUSSIAN_NOISE,
                         .rate = stddev,
                         .dense = {.rows = 1, .in = count, .out = count}};
    hpct_layer_add_node(model, &spec, &input);
}
