/* Activation as a layer, activations after Conv2D and Dense that are not fused into them, and those
 * with settings of their own: ReLU, LeakyReLU, ELU, PReLU. */
#include "nn/graph/layer/activation.h"

#include <float.h>
#include <math.h>

/* Klambauer, Unterthiner, Mayr, Hochreiter, Self-Normalizing Neural Networks, 2017. */
#define SELU_ALPHA 1.6732632423543772
#define SELU_SCALE 1.0507009873554805

#define ROW(kind, ...) [HPCT_##kind] = HPCT_OP_##kind

/* The operation of each activation; linear has none. SELU is an ELU, then scaled. */
static const hpct_op_kind kinds[] = {
    [HPCT_LINEAR] = HPCT_OP_KINDS,
    [HPCT_SOFTMAX] = HPCT_OP_SOFTMAX,
    [HPCT_SELU] = HPCT_OP_ELU,
    HPCT_GRAPH_ELEMENT_ROWS(ROW),
};

static const double slopes[sizeof kinds / sizeof *kinds] = {
    [HPCT_LEAKY_RELU] = 0.2, [HPCT_ELU] = 1, [HPCT_SELU] = SELU_ALPHA};

bool hpct_layer_activation_check(hpct_model *model, hpct_activation activation)
{
    if ((unsigned) activation < sizeof kinds / sizeof *kinds)
        return true;
    hpct_layer_fail(model, "there is no activation %d", (int) activation);
    return false;
}

/* Softmax works along the last axis, the others on each element. */
static bool add_element(hpct_model *model, hpct_op_spec spec, const hpct_shape *shape)
{
    int last = shape->size[shape->rank - 1];
    spec.dense.rows = (int) hpct_graph_shape_count(shape) / last;
    spec.dense.in = spec.dense.out = last;
    return hpct_layer_add_node(model, &spec, shape);
}

static bool add_node(hpct_model *model, hpct_activation activation, const hpct_shape *shape)
{
    hpct_op_spec spec = {
        .kind = kinds[activation], .slope = (float) slopes[activation], .most = INFINITY};
    hpct_op_spec scaled = {.kind = HPCT_OP_RESCALING, .scale = (float) SELU_SCALE};
    return add_element(model, spec, shape) &&
           (activation != HPCT_SELU || add_element(model, scaled, shape));
}

bool hpct_layer_activation_finish(hpct_model *model, hpct_activation activation,
                                  const hpct_shape *shape)
{
    bool done = activation == HPCT_LINEAR || activation == HPCT_RELU;
    return done || add_node(model, activation, shape);
}

void hpct_model_add_activation(hpct_model *model, hpct_activation activation)
{
    hpct_shape input;
    if (!hpct_layer_begin(model, "Activation", "activation", &input) ||
        !hpct_layer_activation_check(model, activation))
        return;
    hpct_layer_config_of(model)->activation = activation;
    if (activation == HPCT_LINEAR)
        hpct_layer_add_view(model, &input);
    else
        add_node(model, activation, &input);
}

/* ---- with settings ---- */

static bool is_number(hpct_model *model, const char *what, double number)
{
    if (fabs(number) <= (double) FLT_MAX)
        return true;
    hpct_layer_fail(model, "%s must be a number that a float can hold, not %g", what, number);
    return false;
}

void hpct_model_add_relu(hpct_model *model, const hpct_relu *relu)
{
    hpct_shape input;
    if (!hpct_layer_begin(model, "ReLU", "re_lu", &input))
        return;
    hpct_layer_config_of(model)->relu = *relu;
    if (!(relu->max_value >= 0) || !(relu->threshold >= 0) || !(relu->negative_slope >= 0)) {
        hpct_layer_fail(model,
                        "max_value %g, negative_slope %g and threshold %g must not be negative",
                        relu->max_value, relu->negative_slope, relu->threshold);
        return;
    }
    bool bounded = relu->max_value <= (double) FLT_MAX;
    bool plain =
        relu->negative_slope == 0 && relu->threshold == 0 && (!bounded || relu->max_value == 6);
    hpct_op_spec spec = {.kind = !plain    ? HPCT_OP_LEAKY_RELU
                                 : bounded ? HPCT_OP_RELU6
                                           : HPCT_OP_RELU,
                         .slope = (float) relu->negative_slope,
                         .threshold = (float) relu->threshold,
                         .most = bounded ? (float) relu->max_value : INFINITY};
    if (is_number(model, "the negative slope", relu->negative_slope) &&
        is_number(model, "the threshold", relu->threshold))
        add_element(model, spec, &input);
}

static void add_sloped(hpct_model *model, hpct_op_kind kind, const char *type, const char *stem,
                       const char *what, double slope)
{
    hpct_shape input;
    hpct_op_spec spec = {.kind = kind, .slope = (float) slope, .most = INFINITY};
    if (!hpct_layer_begin(model, type, stem, &input) || !is_number(model, what, slope))
        return;
    hpct_layer_config_of(model)->slope = slope;
    add_element(model, spec, &input);
}

void hpct_model_add_leaky_relu(hpct_model *model, double negative_slope)
{
    add_sloped(model, HPCT_OP_LEAKY_RELU, "LeakyReLU", "leaky_re_lu", "the negative slope",
               negative_slope);
}

void hpct_model_add_elu(hpct_model *model, double alpha)
{
    add_sloped(model, HPCT_OP_ELU, "ELU", "elu", "alpha", alpha);
}

/* He, Zhang, Ren, Sun, Delving Deep into Rectifiers, 2015. */
void hpct_model_add_prelu(hpct_model *model, bool shared)
{
    hpct_shape input;
    if (!hpct_layer_begin(model, "PReLU", "p_re_lu", &input))
        return;
    hpct_layer_config_of(model)->shared = shared;
    int last = input.size[input.rank - 1];
    hpct_op_spec spec = {.kind = HPCT_OP_PRELU,
                         .line = {.rows = (int) hpct_graph_shape_count(&input) / last,
                                  .channels = last,
                                  .shared = shared}};
    if (!hpct_layer_add_node(model, &spec, &input))
        return;
    hpct_shape alpha = input;
    for (int i = 0; shared && i < alpha.rank - 1; i++)
        alpha.size[i] = 1;
    hpct_layer_add_param(model, "alpha", &alpha, HPCT_GRAPH_INIT_ZEROS, 0, 0);
}
