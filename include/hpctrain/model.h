/* hpctrain/model.h - models, layer by layer as in Keras; weights and models in files.
 *
 * Images are [height][width][channels], batches have the sample first. Weights have Keras' shapes:
 * Conv2D kernels [kh][kw][in / groups][out], Dense kernels [in][out].
 *
 * The hpct_model_add_…() functions return nothing: the first error is kept in the model, with the
 * layer's name, and returned by hpct_model_compile().
 *
 * Each layer reads the head, the output of the layer before. Branches store heads and join them:
 *
 *     int shortcut = hpct_model_head(model);
 *     hpct_model_add_conv2d(model, …);
 *     hpct_model_add_add(model, (int[]){shortcut, hpct_model_head(model)}, 2);
 *
 * The head at hpct_model_compile() is the output; every other tensor must be read by a layer. */
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
    HPCT_GELU,         /* x (1 + erf(x / sqrt 2)) / 2, exact form */
    HPCT_SILU,         /* x sigmoid(x), also called swish */
    HPCT_HARD_SIGMOID, /* relu6(x + 3) / 6 */
    HPCT_HARD_SILU,    /* x relu6(x + 3) / 6, also called hard swish */
    HPCT_LEAKY_RELU,   /* x, or 0.2 x below 0 */
    HPCT_ELU,          /* x, or exp(x) - 1 below 0 */
    HPCT_SELU,         /* ELU with the two constants of Klambauer and others, 2017 */
    HPCT_MISH,         /* x tanh(log(1 + exp(x))) */
} hpct_activation;
typedef enum hpct_padding { HPCT_VALID, HPCT_SAME } hpct_padding;

typedef struct hpct_conv2d {
    int filters;
    int kernel[2];   /* height, width */
    int strides[2];  /* height, width; 0 means 1 */
    int dilation[2]; /* height, width; 0 means 1; not together with strides above 1 */
    int groups;      /* 0 means 1; must divide input channels and filters */
    hpct_padding padding;
    bool no_bias;
    hpct_activation activation;
} hpct_conv2d;

/* `multiplier` filters per input channel; kernel [kh][kw][in][multiplier]. */
typedef struct hpct_depthwise_conv2d {
    int kernel[2];
    int strides[2];
    int dilation[2];
    int multiplier; /* 0 means 1 */
    hpct_padding padding;
    bool no_bias;
    hpct_activation activation;
} hpct_depthwise_conv2d;

/* A depthwise convolution without bias, then a 1x1 convolution with bias and activation. Parameters
 * as in Keras: depthwise_kernel [kh][kw][in][multiplier], pointwise_kernel [1][1][in *
 * multiplier][filters], bias. */
typedef struct hpct_separable_conv2d {
    int filters;
    int kernel[2];
    int strides[2];
    int dilation[2];
    int multiplier; /* 0 means 1 */
    hpct_padding padding;
    bool no_bias;
    hpct_activation activation;
} hpct_separable_conv2d;

/* The reverse of a convolution's mapping of cells: height and width are multiplied by the strides.
 * Kernel [kh][kw][filters][in]. */
typedef struct hpct_conv2d_transpose {
    int filters;
    int kernel[2];
    int strides[2]; /* height, width; 0 means 1 */
    hpct_padding padding;
    bool no_bias;
    hpct_activation activation;
} hpct_conv2d_transpose;

typedef struct hpct_pool2d {
    int pool[2];    /* height, width */
    int strides[2]; /* 0 means the pool size */
    hpct_padding padding;
} hpct_pool2d;
typedef hpct_pool2d hpct_max_pool2d;
/* Per channel, over samples and all axes but the last: gamma (x - mean) / sqrt(variance + epsilon)
 * + beta. Training uses mean and biased variance of the batch of this replica, or of all ranks if
 * synchronized, and updates the moving statistics; inference uses the moving statistics.
 * Parameters: gamma, beta; states: moving_mean, moving_variance. */
typedef struct hpct_batch_normalization {
    double momentum; /* moving = momentum * moving + (1 - momentum) * batch; 0 means 0.99 */
    double epsilon;  /* 0 means 1e-3 */
    bool no_center, no_scale; /* no beta, no gamma */
    bool synchronized;
} hpct_batch_normalization;

/* Along the last axis of each sample by itself: gamma (x - mean) / sqrt(variance + epsilon) + beta,
 * in training and inference. */
typedef struct hpct_layer_normalization {
    double epsilon; /* 0 means 1e-3 */
    bool no_center, no_scale;
} hpct_layer_normalization;

/* The same over all axes but the first of a sample and a group of channels; gamma and beta are per
 * channel. */
typedef struct hpct_group_normalization {
    int groups;     /* divides the channels; 0 means 32, -1 one channel each */
    double epsilon; /* 0 means 1e-3 */
    bool no_center, no_scale;
} hpct_group_normalization;

typedef struct hpct_zero_padding2d {
    int padding[2][2]; /* rows above, below; columns left, right */
} hpct_zero_padding2d;

typedef struct hpct_cropping2d {
    int cropping[2][2]; /* rows above, below; columns left, right */
} hpct_cropping2d;

typedef struct hpct_up_sampling2d {
    int size[2];   /* factors of height and width */
    bool bilinear; /* default: nearest */
} hpct_up_sampling2d;

typedef hpct_pool2d hpct_average_pool2d; /* padding is not counted */

typedef enum hpct_flip { HPCT_FLIP_BOTH, HPCT_FLIP_HORIZONTAL, HPCT_FLIP_VERTICAL } hpct_flip;

/* What lies outside of an image: d c b a | a b c d | d c b a; one value; a a a | a b c d | d d d;
 * a b c d | a b c d | a b c d. */
typedef enum hpct_fill_mode {
    HPCT_FILL_REFLECT,
    HPCT_FILL_CONSTANT,
    HPCT_FILL_NEAREST,
    HPCT_FILL_WRAP
} hpct_fill_mode;

/* Keras' RandomRotation, RandomZoom and RandomTranslation. */
typedef struct hpct_random_affine {
    double height[2]; /* lowest and highest factor, -1 to 1: of the height; RandomRotation: of a
                         full turn */
    double width[2];  /* of the width; not RandomRotation's */
    bool square;      /* RandomZoom: the width's factor is the height's */
    hpct_fill_mode fill_mode;
    double fill_value; /* of HPCT_FILL_CONSTANT */
    bool nearest;      /* the nearest cell instead of a bilinear mean */
} hpct_random_affine;

/* Keras' RandomContrast and RandomBrightness. */
typedef struct hpct_random_tone {
    double factor[2]; /* contrast: 0 to 1, in order, multiplies by 1 - factor[0] to 1 + factor[1];
                         brightness: -1 to 1, the lowest and highest part of the range that is
                         added */
    double value_range[2]; /* bounds of the result; both 0: 0 to 255 */
} hpct_random_tone;

/* Keras' ReLU: min(x, max_value) above the threshold, else negative_slope (x - threshold). */
typedef struct hpct_relu {
    double max_value; /* INFINITY: none */
    double negative_slope, threshold;
} hpct_relu;

/* Numbers per channel of Normalization and Rescaling, for at most HPCT_MAX_GIVEN channels. */
#define HPCT_MAX_GIVEN 8
typedef struct hpct_per_channel {
    int channels;
    double first[HPCT_MAX_GIVEN];  /* mean; scale */
    double second[HPCT_MAX_GIVEN]; /* variance; offset */
} hpct_per_channel;

typedef struct hpct_dense {
    int units;
    bool no_bias;
    hpct_activation activation;
} hpct_dense;

/* Creates a model without layers. Returns NULL if out of memory. The caller owns it and frees it
 * with hpct_model_free(). */
HPCT_API hpct_model *hpct_model_new(const char *name, hpct_shape input);
HPCT_API void hpct_model_free(hpct_model *model);

HPCT_API void hpct_model_add_conv2d(hpct_model *model, const hpct_conv2d *conv);
HPCT_API void hpct_model_add_depthwise_conv2d(hpct_model *model, const hpct_depthwise_conv2d *conv);
HPCT_API void hpct_model_add_conv2d_transpose(hpct_model *model, const hpct_conv2d_transpose *conv);
HPCT_API void hpct_model_add_separable_conv2d(hpct_model *model, const hpct_separable_conv2d *conv);
HPCT_API void hpct_model_add_max_pool2d(hpct_model *model, const hpct_max_pool2d *pool);
HPCT_API void hpct_model_add_average_pool2d(hpct_model *model, const hpct_average_pool2d *pool);
/* Over the whole image: [height][width][channels] becomes [channels]. */
HPCT_API void hpct_model_add_global_average_pool2d(hpct_model *model);
HPCT_API void hpct_model_add_global_max_pool2d(hpct_model *model);
/* The same with keepdims: becomes [1][1][channels]. */
HPCT_API void hpct_model_add_global_average_pool2d_keepdims(hpct_model *model);
HPCT_API void hpct_model_add_global_max_pool2d_keepdims(hpct_model *model);
HPCT_API void hpct_model_add_batch_normalization(hpct_model *model,
                                                 const hpct_batch_normalization *norm);
/* Sets `synchronized` for all BatchNormalizations of the model, before training. */
HPCT_API void hpct_model_synchronize_batch_normalization(hpct_model *model);
HPCT_API void hpct_model_add_layer_normalization(hpct_model *model,
                                                 const hpct_layer_normalization *norm);
HPCT_API void hpct_model_add_group_normalization(hpct_model *model,
                                                 const hpct_group_normalization *norm);
/* Multiplies each channel with a trained gamma, which starts as `initial`. */
HPCT_API void hpct_model_add_layer_scale(hpct_model *model, double initial);
HPCT_API void hpct_model_add_zero_padding2d(hpct_model *model, const hpct_zero_padding2d *padding);
HPCT_API void hpct_model_add_cropping2d(hpct_model *model, const hpct_cropping2d *cropping);
HPCT_API void hpct_model_add_up_sampling2d(hpct_model *model, const hpct_up_sampling2d *sampling);
HPCT_API void hpct_model_add_dense(hpct_model *model, const hpct_dense *dense);
HPCT_API void hpct_model_add_flatten(hpct_model *model);
/* One size may be -1: inferred. */
HPCT_API void hpct_model_add_reshape(hpct_model *model, hpct_shape shape);
/* Transposes: axis i of the result is axis axes[i] of the input. They are counted from 1, as in
 * Keras, and there are as many as the input has. */
HPCT_API void hpct_model_add_permute(hpct_model *model, const int *axes);
HPCT_API void hpct_model_add_activation(hpct_model *model, hpct_activation activation);
/* Activations with settings. */
HPCT_API void hpct_model_add_relu(hpct_model *model, const hpct_relu *relu);
HPCT_API void hpct_model_add_leaky_relu(hpct_model *model, double negative_slope);
HPCT_API void hpct_model_add_elu(hpct_model *model, double alpha); /* alpha (exp(x) - 1) below 0 */
/* x, or alpha x below 0, with a trained alpha per element; per channel if `shared`, as Keras'
 * PReLU with all axes shared but the last. */
HPCT_API void hpct_model_add_prelu(hpct_model *model, bool shared);

/* Training: each element becomes 0 with probability `rate`, 0 to 1, others are scaled by
 * 1 / (1 - rate). Inference: identity. Random layers depend on seed, step and the sample's position
 * in the global batch, not on ranks and threads. */
HPCT_API void hpct_model_add_dropout(hpct_model *model, double rate);
/* The same with one draw per sample: Keras' noise_shape (None, 1, 1, 1). */
HPCT_API void hpct_model_add_sample_dropout(hpct_model *model, double rate);
/* The same for whole channels of an image, and for whole samples (drop path). */
HPCT_API void hpct_model_add_spatial_dropout2d(hpct_model *model, double rate);
HPCT_API void hpct_model_add_stochastic_depth(hpct_model *model, double rate);
/* Training: adds normally distributed numbers. Inference: identity. */
HPCT_API void hpct_model_add_gaussian_noise(hpct_model *model, double stddev);

/* Image layers. Rescaling, of any shape: x * scale + offset. Resizing: bilinear, half-pixel
 * centres, no antialiasing. */
HPCT_API void hpct_model_add_rescaling(hpct_model *model, double scale, double offset);
/* Each channel with its own scale (first) and offset (second). */
HPCT_API void hpct_model_add_rescaling_by(hpct_model *model, const hpct_per_channel *each);
/* Per channel (x - mean) / max(sqrt(variance), 1e-7), with states mean, variance and count, which
 * training does not change: they come from the weights, and are 0, 1 and 0 at first. */
HPCT_API void hpct_model_add_normalization(hpct_model *model);
/* The same with given means (first) and variances (second), without states. */
HPCT_API void hpct_model_add_normalization_by(hpct_model *model, const hpct_per_channel *each);
HPCT_API void hpct_model_add_resizing(hpct_model *model, int height, int width);
/* The random layers of images compute no gradient, and must come before all layers with trained
 * weights. Training: flips each image with probability 1/2, horizontally, vertically, or both at
 * once. Inference: identity. */
HPCT_API void hpct_model_add_random_flip(hpct_model *model, hpct_flip mode);
/* Training: a crop of this size at a random position. Inference, or an input that is not larger in
 * both directions: the largest centred crop of these proportions, resized. */
HPCT_API void hpct_model_add_random_crop(hpct_model *model, int height, int width);
/* Training: each image is rotated, zoomed, or shifted by factors of its own, which are uniformly
 * distributed; has its contrast (by channel) or brightness changed. Inference: identity. */
HPCT_API void hpct_model_add_random_rotation(hpct_model *model, const hpct_random_affine *affine);
HPCT_API void hpct_model_add_random_zoom(hpct_model *model, const hpct_random_affine *affine);
HPCT_API void hpct_model_add_random_translation(hpct_model *model,
                                                const hpct_random_affine *affine);
HPCT_API void hpct_model_add_random_contrast(hpct_model *model, const hpct_random_tone *tone);
HPCT_API void hpct_model_add_random_brightness(hpct_model *model, const hpct_random_tone *tone);

/* Number of the tensor the next layer reads: the last layer's output, or that of set_head; 0 is the
 * model's input. */
HPCT_API int hpct_model_head(const hpct_model *model);
/* Continues from an earlier tensor. */
HPCT_API void hpct_model_set_head(hpct_model *model, int tensor);

/* Names the next layer. Default as in Keras: dense, dense_1, dense_2. Names must be unique. */
HPCT_API void hpct_model_name_layer(hpct_model *model, const char *name);

/* Join 2 to 8 tensors, independently of the head. Add: tensors of one shape. Multiply: the same, or
 * of 1x1xC, which is then repeated over height and width. Concatenate: along the last axis; other
 * axes must match. */
HPCT_API void hpct_model_add_add(hpct_model *model, const int *tensors, int count);
HPCT_API void hpct_model_add_multiply(hpct_model *model, const int *tensors, int count);
HPCT_API void hpct_model_add_concatenate(hpct_model *model, const int *tensors, int count);
/* tensors[0] + scale * tensors[1], of one shape. */
HPCT_API void hpct_model_add_scaled_add(hpct_model *model, const int tensors[2], double scale);

/* Creates a built-in model:
 *   mnist-cnn      Conv 32 3x3, Dense 128, Dense: logits; 28 x 28, 10 classes; 2,770,634 parameters
 *   mnist-convnet  Conv 32 5x5, pool, Conv 64 5x5, pool, Dense: probabilities; 62,346 parameters
 *   resnet50v2, resnet101v2, resnet152v2
 *                  keras.applications' ResNet50V2 (25,613,800 parameters with 1000 classes),
 *                  ResNet101V2 (44,675,560), ResNet152V2 (60,380,648): same layers, names and
 *                  weights, without preprocess_input; probabilities
 *   resnet50       v1.5: keras.applications' ResNet50 (25,636,712) with the stride in the 3x3
 *                  convolution ("_2_conv" after "_2_pad", as in torchvision's resnet50) instead of
 *                  "_1_conv"
 *   vgg16, vgg19, densenet121, mobilenet, mobilenetv2, mobilenetv3small, efficientnetb0,
 *   inceptionv3, xception
 *                  as keras.applications with weights=None: same names, order and initial
 *                  distributions of weights; mobilenetv3small and efficientnetb0 rescale pixels of
 *                  0 to 255 themselves
 *   efficientnetb0-imagenet
 *                  with the Rescaling that Keras adds with weights="imagenet"
 *   resnet18-torchvision, resnet34-…, resnet50-…, resnet101-…, resnet152-…, vgg16-…, vgg19-…,
 *   densenet121-…, mobilenetv2-…, mobilenetv3small-…, efficientnetb0-…, inceptionv3-torchvision
 *                  as torchvision.models, whose weights they take, with the names of its modules:
 *                  its padding, epsilons, momentum and dropout; they normalize pixels of 0 to 255
 *                  themselves, as its weights for ImageNet expect it. Initial weights as Keras'
 *                  layers
 * All but mnist-… take images of any size (Keras: from 32 x 32; inceptionv3 from 75 x 75, xception
 * from 71 x 71), default 224 x 224 x 3, inceptionv3 (also torchvision's) and xception 299 x 299 x
 * 3, and any number of classes, default 1000. Returns HPCT_ERR_USAGE, listing the names, for any
 * other. The caller owns *out and frees it with hpct_model_free(). */
typedef struct hpct_builtin_options {
    const char *name;
    hpct_shape input; /* rank 0: the model's default */
    int classes;      /* 0: the model's default */
} hpct_builtin_options;
HPCT_API hpct_status hpct_model_builtin_with(hpct_model **out, const hpct_builtin_options *options);
/* hpct_model_builtin_with() with defaults. */
HPCT_API hpct_status hpct_model_builtin(hpct_model **out, const char *name);

/* Loss per sample. Where Keras expects target rows, labels are one-hot encoded; with one output the
 * label is the target. Outputs are probabilities unless the name says logits. */
typedef enum hpct_loss {
    HPCT_SPARSE_CATEGORICAL_CROSSENTROPY,
    HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
    HPCT_CATEGORICAL_CROSSENTROPY,
    HPCT_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
    HPCT_BINARY_CROSSENTROPY,
    HPCT_BINARY_CROSSENTROPY_FROM_LOGITS,
    HPCT_MEAN_SQUARED_ERROR,
    HPCT_BINARY_FOCAL_CROSSENTROPY,
    HPCT_BINARY_FOCAL_CROSSENTROPY_FROM_LOGITS,
    HPCT_CATEGORICAL_FOCAL_CROSSENTROPY,
    HPCT_CATEGORICAL_FOCAL_CROSSENTROPY_FROM_LOGITS,
    HPCT_HUBER,
    HPCT_KL_DIVERGENCE,
    HPCT_LOSSES
} hpct_loss;

/* What a loss compares a sample's outputs with. */
typedef enum hpct_target_kind {
    HPCT_TARGETS_CLASS,   /* a label: one class of several */
    HPCT_TARGETS_BINARY,  /* a number from 0 to 1 per output: each is a class of its own */
    HPCT_TARGETS_NUMBERS, /* any number per output: regression */
} hpct_target_kind;
/* Of files of labels (hpct_dataset_read_labels()): binary losses take BINARY, mean squared error
 * and Huber NUMBERS, all others CLASS. After compile. */
HPCT_API hpct_target_kind hpct_model_target_kind(const hpct_model *model);

/* Keras' name of its function: "huber"; "…_from_logits". */
HPCT_API const char *hpct_loss_name(hpct_loss loss);

/* Freezes (`trainable` false: Keras' layer.trainable = False) or unfreezes the layers whose names
 * match a pattern of fnmatch(3), such as "conv*"; several are separated by commas. A frozen layer
 * keeps its weights, and a frozen BatchNormalization normalizes by its moving statistics, which it
 * keeps, too. Neither gradients nor optimizer slots of frozen layers exist. In effect from the next
 * build on: before training or between two runs.
 *
 * Returns HPCT_ERR_USAGE, with names of some layers, if a pattern matches none. */
HPCT_API hpct_status hpct_model_set_trainable(hpct_model *model, const char *patterns,
                                              bool trainable);
/* Names of the frozen layers with weights: a comma-separated list, "" if there are none; owned by
 * the caller, freed with free(). NULL if out of memory. */
HPCT_API char *hpct_model_frozen_layers(const hpct_model *model);
/* Multiplies the learning rate of the layers that match, likewise, by `factor`, which replaces that
 * of an earlier call. Returns HPCT_ERR_USAGE also for a factor that is not positive and finite. */
HPCT_API hpct_status hpct_model_set_rate_factor(hpct_model *model, const char *patterns,
                                                double factor);

/* Type in which convolutions and dense layers compute. Weights, gradients, optimizer, statistics
 * and loss are always fp32. */
typedef enum hpct_precision {
    HPCT_FP32,
    HPCT_BF16, /* inputs rounded to bfloat16, sums in fp32; close to Keras' mixed_bfloat16. Needs
                  AVX512_BF16 or AMX, or a GPU of compute capability 8.0. */
    HPCT_FP16, /* the same in IEEE half precision with dynamic loss scaling, as Keras'
                  mixed_float16: the scale starts at 2^15, is halved and the step skipped if
                  gradients are not finite, and doubled after 2000 finite steps. The learning rate
                  schedule counts all steps. Needs a GPU. */
    HPCT_PRECISIONS
} hpct_precision;

/* Finds a precision by name: "fp32", "bf16", "fp16". Returns HPCT_ERR_USAGE, listing the names, for
 * any other. */
HPCT_API hpct_status hpct_precision_find(hpct_precision *precision, const char *name);
HPCT_API const char *hpct_precision_name(hpct_precision precision);
/* Keras' dtype policy: "float32", "mixed_bfloat16", "mixed_float16"; and the reverse, false for any
 * other. */
HPCT_API const char *hpct_precision_policy(hpct_precision precision);
HPCT_API bool hpct_precision_of_policy(hpct_precision *precision, const char *policy);
/* Returns HPCT_ERR_CONFIG, saying what is missing, if this machine's processor lacks the precision.
 * Otherwise checked when a model is built, in hpct_fit(), hpct_evaluate() and others. */
HPCT_API hpct_status hpct_precision_check(hpct_precision precision);

/* Sets the device of this model: "cpu" (default), "cuda" (the GPU of this process), or "auto" (a
 * usable GPU, else the CPU). Returns HPCT_ERR_USAGE for any other name, HPCT_ERR_CONFIG if not
 * available. */
HPCT_API hpct_status hpct_model_set_device(hpct_model *model, const char *device);
HPCT_API const char *hpct_model_device(const hpct_model *model); /* "cpu" or "cuda" */
/* Returns HPCT_ERR_CONFIG, saying what is missing, if the device lacks the model's precision. */
HPCT_API hpct_status hpct_model_check_device(const hpct_model *model);

typedef struct hpct_compile_options {
    hpct_loss loss;
    hpct_precision precision; /* default HPCT_FP32 */
    double label_smoothing;   /* 0 to 1; categorical (not sparse) and binary losses */
    double focal_gamma;       /* focal losses; default 2 */
    double focal_alpha;       /* 0 to 1; categorical focal loss: default 0.25; binary: weight of
                                 class 1, 1 - alpha that of class 0, default: both are 1 */
    double huber_delta;       /* from which error on HPCT_HUBER is linear; default 1 */
    /* Factors of the training samples' losses by label, as Keras' class_weight; evaluation has
     * none. [num_class_weights], copied; as many as hpct_model_count_labels(). NULL: all 1. */
    const double *class_weights;
    int num_class_weights;
    int top_k; /* also report top-k accuracy; default: no */
    hpct_optimizer optimizer;
} hpct_compile_options;

/* Checks the layers and sets loss and optimizer; optimizer slots start anew, the precision is kept.
 * No layer can be added afterwards. Returns HPCT_ERR_USAGE for the first error of the
 * hpct_model_add_…() calls. */
HPCT_API hpct_status hpct_model_compile(hpct_model *model, hpct_loss loss,
                                        const hpct_optimizer *optimizer);

/* hpct_model_compile() with all options. Returns HPCT_ERR_USAGE also for label smoothing of a loss
 * without it. */
HPCT_API hpct_status hpct_model_compile_with(hpct_model *model,
                                             const hpct_compile_options *options);

/* Before compile HPCT_FP32, or what hpct_model_load_json() read. */
HPCT_API hpct_precision hpct_model_precision(const hpct_model *model);

/* Learning rate of the next step. */
HPCT_API double hpct_model_learning_rate(const hpct_model *model);

/* Draws all weights, with Keras' defaults: Glorot uniform kernels, zero biases. Values depend only
 * on `seed` and the layer's position. */
HPCT_API hpct_status hpct_model_initialize(hpct_model *model, uint64_t seed);

HPCT_API const char *hpct_model_name(const hpct_model *model);
HPCT_API size_t hpct_model_count_parameters(const hpct_model *model); /* all */
/* Trained parameters; the others are moving statistics, and those of frozen layers. */
HPCT_API size_t hpct_model_count_trainable(const hpct_model *model);
HPCT_API hpct_shape hpct_model_input_shape(const hpct_model *model);
HPCT_API hpct_shape hpct_model_output_shape(const hpct_model *model);

/* Prints layers, output shapes and parameters in the form of Keras' model.summary(). */
HPCT_API hpct_status hpct_model_summary(const hpct_model *model, FILE *stream);

/* Prints per layer the FLOPs of forward for one sample (a multiply-add is two; backward takes about
 * twice as many) and the size of its output; then the planned memory of training on the CPU with
 * `batch_size`, without allocating it. After compile. */
HPCT_API hpct_status hpct_model_print_costs(const hpct_model *model, int batch_size, FILE *stream);

/* Prints what a training step with `batch_size` runs: the operation of each node, what its forward
 * is fused into, the offsets in bytes of its output and of the gradient of that in one block of
 * memory, how it writes the gradients of its inputs; then the fusions. Allocates nothing. After
 * compile. HPC_TRAIN_DEBUG=plan prints it for each model that is built. */
HPCT_API hpct_status hpct_model_print_plan(const hpct_model *model, int batch_size, FILE *stream);

/* Save and load weights and states, without optimizer slots. A path that ends in .weights.h5 gives
 * Keras 3's HDF5 format, any other safetensors with Keras' names and shapes ("conv2d/kernel").
 * Saving writes a temporary file beside the path (or its link target), syncs and renames it: the
 * path is never half written and keeps its mode. Loading detects safetensors and HDF5 of Keras 2
 * and 3 by content, and checks everything before it changes the model.
 *
 * Returns HPCT_ERR_DATA if a weight is missing, unknown, of another type or shape, NaN or infinite;
 * HPCT_ERR_CONFIG for .h5 without HDF5. */
HPCT_API hpct_status hpct_model_save_weights(const hpct_model *model, const char *path);
HPCT_API hpct_status hpct_model_load_weights(hpct_model *model, const char *path);
/* Class names by label, saved with the weights ("class_names" in safetensors' __metadata__, a root
 * attribute in HDF5, both a JSON list), for hpct_dataset_number_for(). hpct_fit() sets those of its
 * training data, loading those of the file or none. count 0: none. If a name is not UTF-8, none are
 * kept. */
HPCT_API hpct_status hpct_model_set_class_names(hpct_model *model, const char *const *names,
                                                int count);
/* *names: NULL-terminated list in one allocation, owned by the caller, freed with free(); NULL and
 * *count 0 if the model has none. */
HPCT_API hpct_status hpct_model_class_names(const hpct_model *model, char ***names, int *count);
/* Names of outputs instead of classes, for a model trained with targets: saved in the same places
 * as an object of "outputs" and the loss with its factors, as compiled. */
HPCT_API hpct_status hpct_model_set_output_names(hpct_model *model, const char *const *names,
                                                 int count);
/* *names: as of hpct_model_class_names(); NULL and *count 0 if the model has none. `loss`, unless
 * NULL: gets the saved loss and its factors, for hpct_model_compile_with(); nothing else is set. */
HPCT_API hpct_status hpct_model_output_names(const hpct_model *model, char ***names, int *count,
                                             hpct_compile_options *loss);
typedef struct hpct_load_options {
    bool allow_nan;     /* accept NaN and infinity */
    bool skip_mismatch; /* load what fits; what is missing or has another shape keeps its values */
    char **skipped; /* receives what was not loaded, and why, in one line ("": all was), owned by
                       the caller, freed with free(); may be NULL */
} hpct_load_options;
/* hpct_model_load_weights() with options. With skip_mismatch a weight that is missing, unknown or
 * of another shape is not an error; HPCT_ERR_DATA if none fits. */
HPCT_API hpct_status hpct_model_load_weights_with(hpct_model *model, const char *path,
                                                  const hpct_load_options *options);
/* hpct_model_load_weights() that accepts NaN and infinity. */
HPCT_API hpct_status hpct_model_load_any_weights(hpct_model *model, const char *path);
/* Checks a path for hpct_model_save_weights() in advance. Returns HPCT_ERR_USAGE for .h5 other than
 * .weights.h5 and for extensions of other formats (.keras, .npz, .pt and others), HPCT_ERR_CONFIG
 * without HDF5. */
HPCT_API hpct_status hpct_model_check_weights_name(const char *path);

/* Read the output of model.to_json() of Keras 2 or 3: Sequential or Functional, one input, one
 * output. Unsupported layers and settings (activity regularizers, constraints, other dtype policies
 * than float32, mixed_bfloat16 and mixed_float16) are errors; only seeds and the compiled loss and
 * optimizer are ignored. Regularizers of weights (L1, L2, L1L2) add their penalty to the loss and,
 * once, to the gradients of an update. Layers with trainable false are frozen. Mixed policies set
 * the model's precision, which hpct_model_compile() keeps, except for layers with float32;
 * HPCT_FP32 in hpct_model_compile_with() overrides it.
 *
 * Returns HPCT_ERR_DATA, naming layer and setting, or all layers of unsupported classes;
 * HPCT_ERR_NO_INPUT if the file cannot be read. The caller owns *out, not yet compiled, and frees
 * it with hpct_model_free(). */
HPCT_API hpct_status hpct_model_load_json(hpct_model **out, const char *path);
HPCT_API hpct_status hpct_model_from_json(hpct_model **out, const char *text, size_t length);
/* The same; height and width that the file leaves open (null) are those given, unless 0. */
HPCT_API hpct_status hpct_model_load_json_sized(hpct_model **out, const char *path, int height,
                                                int width);
HPCT_API hpct_status hpct_model_from_json_sized(hpct_model **out, const char *text, size_t length,
                                                int height, int width);

/* Writes the model for keras.models.model_from_json of Keras 3, atomically. */
HPCT_API hpct_status hpct_model_save_json(const hpct_model *model, const char *path);

/* Whether the model ends in a softmax. */
HPCT_API bool hpct_model_ends_in_softmax(const hpct_model *model);
/* The loss for labels that fits the outputs: several: sparse categorical cross-entropy, of
 * probabilities after softmax or sigmoid, else of logits; one: binary cross-entropy, of a
 * probability after sigmoid, of a logit without activation. Returns HPCT_ERR_DATA for one output
 * with another activation. */
HPCT_API hpct_status hpct_model_own_loss(const hpct_model *model, hpct_loss *loss);
/* Number of valid labels, from 0: the number of outputs; with one output 2 for binary losses,
 * INT_MAX for mean squared error. After compile. */
HPCT_API int hpct_model_count_labels(const hpct_model *model);
/* Whether the model begins with a Rescaling by at most 1/64 (one for each channel: 1/32), as for
 * pixels of 0 to 255, or with a RandomContrast or RandomBrightness for such values; other image
 * layers may come before. */
HPCT_API bool hpct_model_rescales_pixels(const hpct_model *model);

/* Whether it has the weights of keras.applications.EfficientNetB0(weights="imagenet"), by the means
 * of its Normalization, but not the Rescaling that Keras then has behind it. */
HPCT_API bool hpct_model_lacks_rescaling(const hpct_model *model);
/* If the weights loaded last are a state_dict of torchvision, and the model is the same network
 * without the normalization of pixels that they are made for: the built-in model that has it, else
 * NULL. */
HPCT_API const char *hpct_model_lacks_normalization(const hpct_model *model);

/* Inference: outputs [n][output shape] of n samples [n][input shape]. Rebuilds the model, for
 * inference only, unless it is built for batches of n. */
HPCT_API hpct_status hpct_model_predict(hpct_model *model, const float *input, int n,
                                        float *output);

#ifdef __cplusplus
}
#endif
#endif
