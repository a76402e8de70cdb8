/* Normalization: by the mean and variance of each channel, which are given or come with the
 * weights. */
#include "nn/graph/layer/line.h"

#include <math.h>

static bool fits(hpct_model *model, const hpct_per_channel *each, int channels)
{
    if (each->channels >= 1 && each->channels <= HPCT_MAX_GIVEN && each->channels == channels)
        return true;
    if (channels > HPCT_MAX_GIVEN)
        hpct_layer_fail(model, "numbers for %d channels: at most %d are supported", channels,
                        HPCT_MAX_GIVEN);
    else
        hpct_layer_fail(model, "%d numbers do not fit %d channels", each->channels, channels);
    return false;
}

void hpct_layer_line_add(hpct_model *model, const hpct_shape *input, const hpct_per_channel *each,
                         hpct_layer_given_line (*make)(double first, double second))
{
    int channels = input->size[input->rank - 1];
    hpct_op_spec spec = {.kind = HPCT_OP_NORMALIZATION,
                         .line = {.rows = (int) hpct_graph_shape_count(input) / channels,
                                  .channels = channels,
                                  .given = true}};
    if (!fits(model, each, channels))
        return;
    for (int c = 0; c < channels; c++) {
        hpct_layer_given_line line = make(each->first[c], each->second[c]);
        spec.line.mean[c] = (float) line.mean;
        spec.line.scale[c] = (float) line.scale;
        spec.line.offset[c] = (float) line.offset;
        if (!isfinite(spec.line.mean[c]) || !isfinite(spec.line.scale[c]) ||
            !isfinite(spec.line.offset[c])) {
            hpct_layer_fail(model, "the numbers of channel %d, %g and %g, cannot be used", c,
                            each->first[c], each->second[c]);
            return;
        }
    }
    hpct_layer_add_node(model, &spec, input);
}

/* Not a number for a negative variance. */
static hpct_layer_given_line by_variance(double mean, double variance)
{
    double deviation = sqrt(variance);
    return (hpct_layer_given_line){.mean = mean,
                                   .scale = deviation < (double) HPCT_GRAPH_LINE_EPSILON
                                                ? 1 / (double) HPCT_GRAPH_LINE_EPSILON
                                                : 1 / deviation};
}

void hpct_model_add_normalization_by(hpct_model *model, const hpct_per_channel *each)
{
    hpct_shape input;
    if (!hpct_layer_begin(model, "Normalization", "normalization", &input))
        return;
    hpct_layer_config_of(model)->normalization = *each;
    hpct_layer_line_add(model, &input, each, by_variance);
}

void hpct_model_add_normalization(hpct_model *model)
{
    hpct_shape input;
    if (!hpct_layer_begin(model, "Normalization", "normalization", &input))
        return;
    hpct_layer_config_of(model)->normalization.channels = 0;
    int channels = input.size[input.rank - 1];
    hpct_op_spec spec = {
        .kind = HPCT_OP_NORMALIZATION,
        .line = {.rows = (int) hpct_graph_shape_count(&input) / channels, .channels = channels}};
    hpct_shape each = HPCT_SHAPE(channels), one = {.rank = 0};
    if (!hpct_layer_add_node(model, &spec, &input))
        return;
    hpct_layer_add_param(model, "mean", &each, HPCT_GRAPH_INIT_ZEROS, 0, 0);
    hpct_layer_add_param(model, "variance", &each, HPCT_GRAPH_INIT_ONES, 0, 0);
    hpct_layer_add_param(model, "count", &one, HPCT_GRAPH_INIT_ZEROS, 0, 0);
}
