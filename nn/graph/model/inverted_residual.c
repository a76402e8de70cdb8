/* Inverted residuals: Sandler, Howard, Zhu, Zhmoginov and Chen, MobileNetV2: Inverted Residuals and
 * Linear Bottlenecks, 2018; squeeze-and-excitation: Hu, Shen, Albanie, Sun and Wu, 2017. */
#include "nn/graph/model/inverted_residual.h"

typedef hpct_builtin_inverted_residual residual;

static void name(hpct_model *model, const residual *b, const char *part)
{
    if (part != NULL)
        hpct_builtin_part_name(model, "%s%s", b->name, part);
}

static void add_norm(hpct_model *model, const hpct_builtin_inverted_style *s, const residual *b,
                     const char *part)
{
    name(model, b, part);
    hpct_model_add_batch_normalization(
        model, &(hpct_batch_normalization){.momentum = s->momentum, .epsilon = s->epsilon});
}

static void add_padding(hpct_model *model, const hpct_builtin_inverted_style *s, const residual *b)
{
    int half = b->kernel / 2;
    name(model, b, s->pad);
    if (s->symmetric)
        hpct_model_add_zero_padding2d(model, &(hpct_zero_padding2d){{{half, half}, {half, half}}});
    else
        hpct_builtin_part_pad(model, b->kernel);
}

static void add_activation(hpct_model *model, const residual *b, const char *part)
{
    name(model, b, part);
    hpct_model_add_activation(model, b->activation);
}

static void add_pointwise(hpct_model *model, const residual *b, const char *part, int filters)
{
    name(model, b, part);
    hpct_builtin_part_conv(model, filters, 1, 1, HPCT_SAME);
}

/* A 1x1 convolution of one cell, with bias. */
static void add_gate(hpct_model *model, const residual *b, const char *part, int filters,
                     hpct_activation activation)
{
    name(model, b, part);
    hpct_model_add_conv2d(model, &(hpct_conv2d){.filters = filters,
                                                .kernel = {1, 1},
                                                .padding = HPCT_SAME,
                                                .activation = activation});
}

static void add_squeeze(hpct_model *model, const hpct_builtin_inverted_style *s, const residual *b)
{
    int whole = hpct_model_head(model), channels = hpct_builtin_part_size(model, 2);
    name(model, b, s->squeeze.pool);
    hpct_model_add_global_average_pool2d_keepdims(model);
    add_gate(model, b, s->squeeze.reduce, b->squeezed, s->squeeze.activation);
    add_gate(model, b, s->squeeze.expand, channels, s->squeeze.gate);
    name(model, b, s->squeeze.multiply);
    hpct_model_add_multiply(model, (int[]){whole, hpct_model_head(model)}, 2);
}

static void add_shortcut(hpct_model *model, const hpct_builtin_inverted_style *s, const residual *b,
                         int input)
{
    if (b->drop > 0) {
        name(model, b, s->drop);
        hpct_model_add_sample_dropout(model, b->drop);
    }
    name(model, b, s->add);
    hpct_model_add_add(model, (int[]){input, hpct_model_head(model)}, 2);
}

void hpct_builtin_part_inverted(hpct_model *model, const hpct_builtin_inverted_style *s,
                                const residual *b)
{
    int input = hpct_model_head(model), channels = hpct_builtin_part_size(model, 2);
    if (b->expansion > 1) {
        add_pointwise(model, b, s->expand.conv, hpct_builtin_part_width(channels * b->expansion));
        add_norm(model, s, b, s->expand.norm);
        add_activation(model, b, s->expand.activation);
    }
    if (b->stride > 1)
        add_padding(model, s, b);
    name(model, b, s->depthwise.conv);
    hpct_builtin_part_depthwise(model, b->kernel, b->stride);
    add_norm(model, s, b, s->depthwise.norm);
    add_activation(model, b, s->depthwise.activation);
    if (b->squeezed > 0)
        add_squeeze(model, s, b);
    add_pointwise(model, b, s->project.conv, b->filters);
    add_norm(model, s, b, s->project.norm);
    if (b->stride == 1 && channels == b->filters)
        add_shortcut(model, s, b, input);
}
