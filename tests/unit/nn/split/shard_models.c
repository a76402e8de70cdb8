/* Models drawn from a seed, and others. */
#include "tests/unit/nn/split/shard_models.h"

#include "nn/plan/run.h"
#include "nn/run/step.h"
#include "tests/unit/unit.h"

static uint32_t draw_bits(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407); /* Knuth's */
    return (uint32_t) (*state >> 33);
}

int shard_draw(uint64_t *state, int low, int high)
{
    return low + (int) (draw_bits(state) % (uint32_t) (high - low + 1));
}

static int channels_of(hpct_model *model)
{
    return hpct_model_output_shape(model).size[2];
}

void shard_draw_convolution(hpct_model *model, uint64_t *state, int filters)
{
    static const hpct_activation activations[] = {HPCT_LINEAR, HPCT_RELU, HPCT_TANH};
    int side = 1 + 2 * shard_draw(state, 0, 1);
    hpct_model_add_conv2d(model,
                          &(hpct_conv2d){.filters = filters,
                                         .kernel = {side, side},
                                         .padding = HPCT_SAME,
                                         .no_bias = shard_draw(state, 0, 1) == 1,
                                         .activation = activations[shard_draw(state, 0, 2)]});
}

int shard_most_vectors;

static int draw_filters(uint64_t *state, int low, int high)
{
    int filters = shard_draw(state, low, high);
    return shard_most_vectors > 0 ? 16 * (1 + filters % shard_most_vectors) : filters;
}

static void draw_block(hpct_model *model, uint64_t *state, bool synchronized)
{
    int shortcut = hpct_model_head(model), channels = channels_of(model);
    switch (shard_draw(state, 0, 9)) {
    case 0:
        shard_draw_convolution(model, state, draw_filters(state, 4, 9));
        break;
    case 1:
        shard_draw_convolution(model, state, draw_filters(state, 4, 9));
        hpct_model_add_batch_normalization(
            model, &(hpct_batch_normalization){.no_scale = shard_draw(state, 0, 1) == 1,
                                               .synchronized = synchronized});
        hpct_model_add_activation(model, HPCT_RELU);
        break;
    case 2:
        hpct_model_add_depthwise_conv2d(
            model, &(hpct_depthwise_conv2d){.kernel = {3, 3},
                                            .padding = HPCT_SAME,
                                            .multiplier = shard_draw(state, 1, 2)});
        break;
    case 3:
        hpct_model_add_max_pool2d(
            model, &(hpct_max_pool2d){.pool = {2, 2}, .strides = {1, 1}, .padding = HPCT_SAME});
        break;
    case 4:
        hpct_model_add_average_pool2d(model,
                                      &(hpct_average_pool2d){.pool = {2, 2}, .strides = {1, 1}});
        break;
    case 5:
        shard_draw_convolution(model, state, channels);
        hpct_model_add_add(model, (int[]){shortcut, hpct_model_head(model)}, 2);
        break;
    case 6:
        shard_draw_convolution(model, state, draw_filters(state, 4, 6));
        hpct_model_add_concatenate(model, (int[]){shortcut, hpct_model_head(model)}, 2);
        break;
    case 7:
        hpct_model_add_zero_padding2d(model, &(hpct_zero_padding2d){.padding = {{1, 0}, {0, 1}}});
        break;
    case 8: /* squeeze and excitation */
        hpct_model_add_global_average_pool2d_keepdims(model);
        hpct_model_add_conv2d(
            model,
            &(hpct_conv2d){.filters = channels, .kernel = {1, 1}, .activation = HPCT_HARD_SIGMOID});
        hpct_model_add_multiply(model, (int[]){shortcut, hpct_model_head(model)}, 2);
        break;
    case 9:
        shard_draw_convolution(model, state, channels);
        hpct_model_add_prelu(model, shard_draw(state, 0, 1) == 1);
        hpct_model_add_multiply(model, (int[]){shortcut, hpct_model_head(model)}, 2);
        hpct_model_add_leaky_relu(model, 0.25);
        hpct_model_add_elu(model, 0.5);
        break;
    }
}

double shard_clipnorm, shard_global_clipnorm;

static hpct_model *finish(hpct_model *model, bool softmax, uint64_t seed)
{
    hpct_model_add_dense(model, &(hpct_dense){.units = SHARD_CLASSES,
                                              .activation = softmax ? HPCT_SOFTMAX : HPCT_LINEAR});
    hpct_status status =
        hpct_model_compile(model,
                           softmax ? HPCT_SPARSE_CATEGORICAL_CROSSENTROPY
                                   : HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
                           &(hpct_optimizer){.learning_rate = 0.5,
                                             .clipnorm = shard_clipnorm,
                                             .global_clipnorm = shard_global_clipnorm});
    if (status != HPCT_OK)
        fail_msg("seed %d: %s", (int) seed, hpct_last_error());
    assert_int_equal(hpct_model_initialize(model, seed), HPCT_OK);
    return model;
}

hpct_model *shard_draw_model(uint64_t seed)
{
    static const hpct_activation activations[] = {HPCT_RELU, HPCT_TANH, HPCT_GELU, HPCT_SILU,
                                                  HPCT_HARD_SILU};
    uint64_t state = seed * 7919 + 1;
    int side = shard_draw(&state, 5, 8);
    bool synchronized = seed % 2 == 0;
    hpct_model *model = hpct_model_new("drawn", HPCT_SHAPE(side, side, shard_draw(&state, 1, 3)));
    shard_draw_convolution(model, &state, draw_filters(&state, 4, 9));
    for (int blocks = shard_draw(&state, 0, 3); blocks > 0; blocks--)
        draw_block(model, &state, synchronized);
    hpct_model_add_flatten(model);
    for (int hidden = shard_draw(&state, 0, 3); hidden > 0; hidden--) {
        hpct_model_add_dense(model,
                             &(hpct_dense){.units = shard_draw(&state, 8, 40),
                                           .activation = activations[shard_draw(&state, 0, 4)],
                                           .no_bias = shard_draw(&state, 0, 3) == 0});
        if (shard_draw(&state, 0, 3) == 0)
            hpct_model_add_dropout(model, 0.25);
    }
    return finish(model, shard_draw(&state, 0, 1) == 1, seed);
}

static hpct_model *dense_model(const int *units, uint64_t seed)
{
    hpct_model *model = hpct_model_new("dense", HPCT_SHAPE(24));
    for (; *units > 0; units++)
        hpct_model_add_dense(model, &(hpct_dense){.units = *units, .activation = HPCT_TANH});
    return finish(model, false, seed);
}

/* Two splits, one behind the other, where steps are large: the sum at the end of the first has to
 * add up a gradient. */
hpct_model *shard_deep_model(uint64_t seed)
{
    return dense_model((int[]){1600, 1600, 1600, 1600, 0}, seed);
}

/* The first Dense is computed by all, and its gradient is in parts. */
hpct_model *shard_narrow_model(uint64_t seed)
{
    return dense_model((int[]){8, 600, 0}, seed);
}

/* A convolution whose cells can be split, with an activation of its own or one behind it. */
hpct_model *shard_picture_model(uint64_t seed)
{
    hpct_model *model = hpct_model_new("picture", HPCT_SHAPE(9, 8, 2));
    hpct_model_add_conv2d(model,
                          &(hpct_conv2d){.filters = 16,
                                         .kernel = {3, 3},
                                         .activation = seed % 2 == 0 ? HPCT_RELU : HPCT_LINEAR});
    if (seed % 2 == 1)
        hpct_model_add_activation(model, HPCT_TANH);
    hpct_model_add_flatten(model);
    hpct_model_add_dense(model, &(hpct_dense){.units = 30, .activation = HPCT_RELU});
    return finish(model, false, seed);
}

/* Convolutions of few cells and many channels, which some processors want in blocks, at the end. */
hpct_model *shard_deep_convolutions(uint64_t seed)
{
    hpct_model *model = hpct_model_new("deep", HPCT_SHAPE(8, 8, 3));
    hpct_model_add_conv2d(model,
                          &(hpct_conv2d){.filters = 16, .kernel = {3, 3}, .padding = HPCT_SAME});
    hpct_model_add_average_pool2d(model, &(hpct_average_pool2d){.pool = {4, 4}});
    hpct_model_add_batch_normalization(model,
                                       &(hpct_batch_normalization){.synchronized = seed % 2 == 0});
    for (int i = 0; i < 3; i++) {
        int shortcut;
        hpct_model_add_conv2d(model, &(hpct_conv2d){.filters = 128, .kernel = {1, 1}});
        shortcut = hpct_model_head(model);
        hpct_model_add_conv2d(
            model, &(hpct_conv2d){.filters = 128, .kernel = {1, 1}, .activation = HPCT_RELU});
        hpct_model_add_add(model, (int[]){shortcut, hpct_model_head(model)}, 2);
        hpct_model_add_batch_normalization(
            model, &(hpct_batch_normalization){.synchronized = seed % 2 == 0});
    }
    hpct_model_add_flatten(model);
    return finish(model, true, seed);
}

/* Layers that follow a split, and others that do not. */
hpct_model *shard_separable_model(uint64_t seed)
{
    hpct_model *model = hpct_model_new("separable", HPCT_SHAPE(6, 7, 3));
    hpct_model_add_conv2d(model, &(hpct_conv2d){.filters = 8, .kernel = {1, 1}});
    int shortcut = hpct_model_head(model);
    hpct_model_add_separable_conv2d(model, &(hpct_separable_conv2d){.filters = 8,
                                                                    .kernel = {3, 3},
                                                                    .multiplier = 1 + seed % 2,
                                                                    .padding = HPCT_SAME,
                                                                    .activation = HPCT_TANH});
    hpct_model_add_layer_scale(model, 0.5);
    if (seed % 5 == 0)
        hpct_model_add_layer_normalization(model, &(hpct_layer_normalization){0});
    if (seed % 5 == 1)
        hpct_model_add_stochastic_depth(model, 0.25);
    hpct_model_add_scaled_add(model, (int[]){shortcut, hpct_model_head(model)}, 0.25);
    hpct_model_add_up_sampling2d(model, &(hpct_up_sampling2d){.size = {2, 1}});
    hpct_model_add_cropping2d(model, &(hpct_cropping2d){.cropping = {{1, 2}, {0, 1}}});
    if (seed % 6 == 0)
        hpct_model_add_group_normalization(model, &(hpct_group_normalization){.groups = 4});
    if (seed % 6 == 1)
        hpct_model_add_spatial_dropout2d(model, 0.25);
    if (seed % 6 == 2)
        hpct_model_add_gaussian_noise(model, 0.25);
    if (seed % 6 == 3)
        hpct_model_add_permute(model, (int[]){3, 1, 2});
    if (seed % 6 == 4)
        hpct_model_add_conv2d_transpose(
            model, &(hpct_conv2d_transpose){.filters = 4, .kernel = {2, 2}, .strides = {2, 1}});
    hpct_model_add_flatten(model);
    hpct_model_add_dense(model, &(hpct_dense){.units = 30, .activation = HPCT_TANH});
    return finish(model, false, seed);
}

void shard_fill(hpct_model *model, uint64_t seed)
{
    hpct_shape shape = hpct_model_input_shape(model);
    size_t count = hpct_graph_shape_count(&shape) * SHARD_SAMPLES;
    float *input = hpct_model_input(model);
    int32_t *labels = hpct_model_labels(model);
    uint64_t state = seed + 99;
    for (size_t i = 0; i < count; i++)
        input[i] = (float) shard_draw(&state, -1000, 1000) / 1000;
    for (int i = 0; i < SHARD_SAMPLES; i++)
        labels[i] = shard_draw(&state, 0, SHARD_CLASSES - 1);
    hpct_model_set_position(model, seed, 3, 0);
}
