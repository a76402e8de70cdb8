/* hpctrain/model.h - describing a model, layer by layer, as Keras users do.
 *
 * Pictures are [height][width][channels] (channels last), batches have the sample first. Weights
 * have Keras' shapes: Conv2D kernels [kh][kw][in / groups][out], Dense kernels [in][out].
 *
 * The hpct_model_add_… functions return nothing: the first thing that is wrong is kept in the model
 * (with the layer's name) and returned by hpct_model_compile, so that a model reads as a list.
 *
 * Layers follow each other: each reads the model's head, the output of the layer before it. A model
 * with branches remembers heads and goes on from them, and joins them again:
 *
 *     int shortcut = hpct_model_head(model);
 *     hpct_model_add_conv2d(model, …);
 *     hpct_model_add_add(model, (int[]){shortcut, hpct_model_head(model)}, 2);
 *
 * The head at hpct_model_compile is the model's output; every other tensor must have a reader. */
#ifndef HPCTRAIN_MODEL_H
#define HPCTRAIN_MODEL_H

#include <hpctrain/optimizer.h>
#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HPCT_MAX_RANK 4 /* dimensions of one sample, without the batch */

typedef struct hpct_model hpct_model;

/* The shape of one sample, for example HPCT_SHAPE(28, 28, 1). */
typedef struct hpct_shape {
    int rank;
    int size[HPCT_MAX_RANK];
} hpct_shape;
#define HPCT_SHAPE(...)                                                                            \
    ((hpct_shape){.rank = (int) (sizeof((int[]){__VA_ARGS__}) / sizeof(int)),                      \
                  .size = {__VA_ARGS__}})

typedef enum hpct_activation {
    HPCT_LINEAR,
    HPCT_RELU,    /* max(0, x) */
    HPCT_SOFTMAX, /* along the last axis */
    HPCT_RELU6,   /* min(max(0, x), 6) */
    HPCT_SIGMOID,
    HPCT_TANH,
    HPCT_GELU, /* x (1 + erf(x / sqrt 2)) / 2, not the approximation */
} hpct_activation;
typedef enum hpct_padding { HPCT_VALID, HPCT_SAME } hpct_padding;

typedef struct hpct_conv2d {
    int filters;
    int kernel[2];   /* height, width */
    int strides[2];  /* height, width; 0 means 1 */
    int dilation[2]; /* height, width; 0 means 1; not above 1 together with strides above 1 */
    int groups;      /* 0 means 1; divides the input's channels and the filters */
    hpct_padding padding;
    bool no_bias;
    hpct_activation activation;
} hpct_conv2d;

/* Each input channel has `multiplier` filters of its own; kernel [kh][kw][in][multiplier]. */
typedef struct hpct_depthwise_conv2d {
    int kernel[2];
    int strides[2];
    int dilation[2];
    int multiplier; /* 0 means 1 */
    hpct_padding padding;
    bool no_bias;
    hpct_activation activation;
} hpct_depthwise_conv2d;

typedef struct hpct_pool2d {
    int pool[2];    /* height, width */
    int strides[2]; /* 0 means the pool's own size */
    hpct_padding padding;
} hpct_pool2d;
typedef hpct_pool2d hpct_max_pool2d;
/* Over samples and all axes but the last, per channel: gamma (x - mean) / sqrt(variance + epsilon)
 * + beta. Training takes mean and (biased) variance from the batch, of this replica alone or, where
 * they are synchronized, of all ranks (their losses are then those of one rank), and moves the
 * moving statistics towards them; otherwise the moving statistics are taken. Parameters gamma and
 * beta, state moving_mean and moving_variance. */
typedef struct hpct_batch_normalization {
    double momentum; /* moving = momentum * moving + (1 - momentum) * batch; 0 means 0.99 */
    double epsilon;  /* 0 means 1e-3 */
    bool no_center, no_scale; /* without beta, without gamma */
    bool synchronized;
} hpct_batch_normalization;

typedef struct hpct_zero_padding2d {
    int padding[2][2]; /* rows of zeros above and below, columns of zeros left and right */
} hpct_zero_padding2d;

typedef hpct_pool2d hpct_average_pool2d; /* cells of the padding are not counted */

typedef enum hpct_flip { HPCT_FLIP_BOTH, HPCT_FLIP_HORIZONTAL, HPCT_FLIP_VERTICAL } hpct_flip;

typedef struct hpct_dense {
    int units;
    bool no_bias;
    hpct_activation activation;
} hpct_dense;

/* A new model without layers; `name` and `input` are copied. NULL only when out of memory.
 * The caller owns the model and frees it with hpct_model_free (NULL is allowed there). */
HPCT_API hpct_model *hpct_model_new(const char *name, hpct_shape input);
HPCT_API void hpct_model_free(hpct_model *model);

HPCT_API void hpct_model_add_conv2d(hpct_model *model, const hpct_conv2d *conv);
HPCT_API void hpct_model_add_depthwise_conv2d(hpct_model *model, const hpct_depthwise_conv2d *conv);
HPCT_API void hpct_model_add_max_pool2d(hpct_model *model, const hpct_max_pool2d *pool);
HPCT_API void hpct_model_add_average_pool2d(hpct_model *model, const hpct_average_pool2d *pool);
/* Over the whole picture: height x width x channels becomes channels. */
HPCT_API void hpct_model_add_global_average_pool2d(hpct_model *model);
HPCT_API void hpct_model_add_global_max_pool2d(hpct_model *model);
HPCT_API void hpct_model_add_batch_normalization(hpct_model *model,
                                                 const hpct_batch_normalization *norm);
/* Makes all of them in the model synchronized, before it is trained. */
HPCT_API void hpct_model_synchronize_batch_normalization(hpct_model *model);
HPCT_API void hpct_model_add_zero_padding2d(hpct_model *model, const hpct_zero_padding2d *padding);
HPCT_API void hpct_model_add_dense(hpct_model *model, const hpct_dense *dense);
HPCT_API void hpct_model_add_flatten(hpct_model *model);
/* One size may be -1 and is then worked out. */
HPCT_API void hpct_model_add_reshape(hpct_model *model, hpct_shape shape);
HPCT_API void hpct_model_add_activation(hpct_model *model, hpct_activation activation);

/* In training each element becomes 0 with probability `rate`, within [0, 1], and the others grow by
 * 1 / (1 - rate); in inference nothing happens. What random layers draw is a function of the seed,
 * the step and the sample's place in the global batch: not of ranks and threads. */
HPCT_API void hpct_model_add_dropout(hpct_model *model, double rate);

/* Layers on pictures, mostly the first of a model. Rescaling, on any shape: x * scale + offset.
 * Resizing: bilinear, cell centres at halves, no antialiasing. */
HPCT_API void hpct_model_add_rescaling(hpct_model *model, double scale, double offset);
HPCT_API void hpct_model_add_resizing(hpct_model *model, int height, int width);
/* In training each picture is turned with probability 1/2: left to right, upside down, or
 * (HPCT_FLIP_BOTH) both at once; in inference none is. */
HPCT_API void hpct_model_add_random_flip(hpct_model *model, hpct_flip mode);
/* In training a part of this size from a random place of each picture. In inference, and when the
 * input is not larger than that both ways: the largest part of these proportions from the middle,
 * resized. */
HPCT_API void hpct_model_add_random_crop(hpct_model *model, int height, int width);

/* The tensor that the next layer reads: the output of the layer added last, or what set_head named.
 * A number for set_head, add and concatenate; 0 is the model's input. */
HPCT_API int hpct_model_head(const hpct_model *model);
/* Goes on from an earlier tensor of this model. */
HPCT_API void hpct_model_set_head(hpct_model *model, int tensor);

/* Names the next layer added; `name` is copied. Else layers are numbered by kind as Keras does:
 * dense, dense_1, dense_2. Names are unique in a model. */
HPCT_API void hpct_model_name_layer(hpct_model *model, const char *name);

/* Join 2 to 8 tensors, whatever the head is. Add: the sum of tensors of one shape. Concatenate: one
 * behind the other along the last axis; the other axes are the same. */
HPCT_API void hpct_model_add_add(hpct_model *model, const int *tensors, int count);
HPCT_API void hpct_model_add_concatenate(hpct_model *model, const int *tensors, int count);

/* A built-in model, by name:
 *   mnist-cnn      Conv 32 3x3, Dense 128, Dense: logits; 28 x 28, 10 classes; 2,770,634 parameters
 *   mnist-convnet  Conv 32 5x5, pool, Conv 64 5x5, pool, Dense: probabilities; 62,346 parameters
 *   resnet50v2, resnet101v2, resnet152v2
 *                  keras.applications' ResNet50V2 (25,613,800 parameters with 1000 classes),
 *                  ResNet101V2 (44,675,560), ResNet152V2 (60,380,648): the same layers, names and
 *                  weights, without the "preprocess_input" before them; probabilities
 *   resnet50       v1.5: keras.applications' ResNet50 (25,636,712), but a block that halves the
 *                  picture does so in its 3x3 convolution ("_2_conv", behind a "_2_pad" of 1, as in
 *                  torchvision's resnet50), not in "_1_conv"
 * The residual networks take pictures of any size (Keras: from 32 x 32 on), by default 224 x 224 x
 * 3, and any number of classes, by default 1000. HPCT_ERR_USAGE, listing the names, for any other.
 */
typedef struct hpct_builtin_options {
    const char *name;
    hpct_shape input; /* rank 0: the model's default */
    int classes;      /* 0: the model's default */
} hpct_builtin_options;
HPCT_API hpct_status hpct_model_builtin_with(hpct_model **out, const hpct_builtin_options *options);
/* With its defaults. */
HPCT_API hpct_status hpct_model_builtin(hpct_model **out, const char *name);

/* Each sample's loss; where Keras wants target rows and labels are given, the row is 1 at the label
 * and 0 elsewhere, and with one output it is the label itself. Outputs are probabilities unless the
 * name says logits. */
typedef enum hpct_loss {
    HPCT_SPARSE_CATEGORICAL_CROSSENTROPY,
    HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
    HPCT_CATEGORICAL_CROSSENTROPY,
    HPCT_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
    HPCT_BINARY_CROSSENTROPY,
    HPCT_BINARY_CROSSENTROPY_FROM_LOGITS,
    HPCT_MEAN_SQUARED_ERROR,
    HPCT_LOSSES
} hpct_loss;

/* What convolutions and dense layers compute in. Weights, gradients, optimizer, statistics and loss
 * are fp32 with both. */
typedef enum hpct_precision {
    HPCT_FP32,
    HPCT_BF16, /* their inputs are rounded to bfloat16, sums are fp32; near to what Keras' policy
                  mixed_bfloat16 does. Wants AVX512_BF16 or AMX, or a GPU of compute capability 8.0.
                */
    HPCT_FP16, /* the same in IEEE's half precision, and with dynamic loss scaling, as Keras'
                  policy mixed_float16: the scale begins at 2^15, is halved, and the step left out,
                  where gradients are not finite, and is doubled after 2000 steps without that. The
                  learning rate's schedule counts all steps. Wants a GPU. */
    HPCT_PRECISIONS
} hpct_precision;

/* "fp32", "bf16", "fp16"; HPCT_ERR_USAGE, with the names there are, for any other. */
HPCT_API hpct_status hpct_precision_find(hpct_precision *precision, const char *name);
HPCT_API const char *hpct_precision_name(hpct_precision precision);
/* Keras' dtype policy that is the same: "float32", "mixed_bfloat16", "mixed_float16"; and back,
 * false where there is none. */
HPCT_API const char *hpct_precision_policy(hpct_precision precision);
HPCT_API bool hpct_precision_of_policy(hpct_precision *precision, const char *policy);
/* HPCT_ERR_CONFIG, saying what is missing, where this machine's processor cannot. Else that comes
 * when a model is built: in hpct_fit, hpct_evaluate and others. */
HPCT_API hpct_status hpct_precision_check(hpct_precision precision);

/* Where fit, evaluate, bench and the others compute with this model from now on: "cpu" (the
 * default), "cuda", the GPU of this process, or "auto", the GPU where there is one that can be used
 * and else the CPU. HPCT_ERR_USAGE for any other name, HPCT_ERR_CONFIG, in one line, when it cannot
 * be had. */
HPCT_API hpct_status hpct_model_set_device(hpct_model *model, const char *device);
HPCT_API const char *hpct_model_device(const hpct_model *model); /* "cpu" or "cuda" */
/* HPCT_ERR_CONFIG, saying what is missing, where it cannot compute in the model's precision. */
HPCT_API hpct_status hpct_model_check_device(const hpct_model *model);

typedef struct hpct_compile_options {
    hpct_loss loss;
    hpct_precision precision; /* default HPCT_FP32 */
    double label_smoothing;   /* of the (not sparse) categorical and the binary losses; 0 to 1 */
    int top_k; /* counts samples whose label is among the k largest outputs; default: does not */
    hpct_optimizer optimizer;
} hpct_compile_options;

/* Checks the layers (the first fault of the hpct_model_add_… calls is returned here,
 * HPCT_ERR_USAGE) and fixes loss and optimizer, which begins anew; the precision stays. After it no
 * layer can be added. */
HPCT_API hpct_status hpct_model_compile(hpct_model *model, hpct_loss loss,
                                        const hpct_optimizer *optimizer);

/* The same with everything there is to say. HPCT_ERR_USAGE also for smoothing of a loss that has
 * none. */
HPCT_API hpct_status hpct_model_compile_with(hpct_model *model,
                                             const hpct_compile_options *options);

/* HPCT_FP32 before the model is compiled, unless hpct_model_load_json read another. */
HPCT_API hpct_precision hpct_model_precision(const hpct_model *model);

/* The learning rate of the next step. */
HPCT_API double hpct_model_learning_rate(const hpct_model *model);

/* Draws all weights anew: Glorot uniform for kernels, zeros for biases, as Keras' defaults.
 * The values depend on `seed`, the layer's position and nothing else. */
HPCT_API hpct_status hpct_model_initialize(hpct_model *model, uint64_t seed);

HPCT_API const char *hpct_model_name(const hpct_model *model);
HPCT_API size_t hpct_model_count_parameters(const hpct_model *model); /* of all kinds */
/* Those that the optimizer changes; the others are state, such as moving statistics. */
HPCT_API size_t hpct_model_count_trainable(const hpct_model *model);
HPCT_API hpct_shape hpct_model_input_shape(const hpct_model *model);
HPCT_API hpct_shape hpct_model_output_shape(const hpct_model *model);

/* Prints layers, output shapes and parameters in the form of Keras' model.summary(). */
HPCT_API hpct_status hpct_model_summary(const hpct_model *model, FILE *stream);

/* Prints what each layer costs forward for one sample: arithmetic (a multiplication and an addition
 * are two; backward does about twice as many) and the size of its result; then the memory that
 * training with batches of `batch_size` takes on the CPU, as planned: nothing is taken. After
 * compile. */
HPCT_API hpct_status hpct_model_print_costs(const hpct_model *model, int batch_size, FILE *stream);

/* Weights in files. PATH's end says the format: .weights.h5 is Keras 3's HDF5 file, which its
 * load_weights opens in a model of the same layers; any other is safetensors, with Keras' layer
 * names and shapes ("conv2d/kernel"). State (moving statistics) is saved with them, optimizer slots
 * are not. Saving writes a temporary file beside PATH (or what it links to), syncs it and renames
 * it: PATH is never half written, and keeps its mode. Loading goes by what the file is, not by its name: safetensors, or HDF5 of Keras 3 or
 * 2. It checks names, types and shapes of all weights before it changes anything: a missing weight,
 * one that the model does not have, and numbers that are NaN or infinite are refused
 * (HPCT_ERR_DATA). HPCT_ERR_CONFIG for .h5 where there is no HDF5. */
HPCT_API hpct_status hpct_model_save_weights(const hpct_model *model, const char *path);
HPCT_API hpct_status hpct_model_load_weights(hpct_model *model, const char *path);
/* The same, with NaN and infinity as they are. */
HPCT_API hpct_status hpct_model_load_any_weights(hpct_model *model, const char *path);
/* Whether weights can be saved under a name like this, for asking before a long training:
 * HPCT_ERR_USAGE for an .h5 that is no .weights.h5 and for the ends of other formats' names
 * (.keras, .npz, .pt and others), HPCT_ERR_CONFIG where there is no HDF5. */
HPCT_API hpct_status hpct_model_check_weights_name(const char *path);

/* A model as Keras writes it down (model.to_json()), Sequential or Functional, of Keras 2 or 3,
 * with one input and one output, made of layers that are here. What is not supported is refused
 * with the layer's name and the setting; nothing is left out silently but this: seeds (--seed and
 * hpct_model_initialize decide), and what a compiled model says of its loss and optimizer, which
 * hpct_model_compile is told. Initializers are heeded; regularizers, constraints, layers that are
 * not trainable and dtype policies other than float32, mixed_bfloat16 and mixed_float16 are
 * refused. The latter two, of any layer, give the model the precision HPCT_BF16 or HPCT_FP16, which
 * hpct_model_compile keeps, while layers of float32 beside it stay fp32; with HPCT_FP32 in
 * hpct_model_compile_with all do. HPCT_ERR_DATA, or HPCT_ERR_NO_INPUT for a file that cannot be
 * read. The caller owns *out, which is not compiled yet. */
HPCT_API hpct_status hpct_model_load_json(hpct_model **out, const char *path);
HPCT_API hpct_status hpct_model_from_json(hpct_model **out, const char *text, size_t length);

/* Writes the model down as keras.models.model_from_json of Keras 3 reads it, as a whole file or not
 * at all. */
HPCT_API hpct_status hpct_model_save_json(const hpct_model *model, const char *path);

/* Whether the last layer ends in a softmax. */
HPCT_API bool hpct_model_ends_in_softmax(const hpct_model *model);
/* The loss that the outputs ask for, with labels: sparse categorical cross-entropy of several, of
 * probabilities after softmax or sigmoid, else of logits; of a single one binary cross-entropy, of
 * a probability after sigmoid, of a logit where there is no activation. HPCT_ERR_DATA for a single
 * one of another activation, which tells no classes apart. */
HPCT_API hpct_status hpct_model_own_loss(const hpct_model *model, hpct_loss *loss);
/* How many labels there can be, from 0 on: as many as outputs; with one output 2 for the binary
 * losses, INT_MAX for mean squared error. After compile. */
HPCT_API int hpct_model_count_labels(const hpct_model *model);

/* The outputs, [n][output shape], for n samples, [n][input shape], as in inference. Unless the
 * model is built for batches of n already it is built anew, for inference alone. */
HPCT_API hpct_status hpct_model_predict(hpct_model *model, const float *input, int n,
                                        float *output);

#ifdef __cplusplus
}
#endif
#endif
