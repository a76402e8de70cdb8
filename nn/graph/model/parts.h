/* nn/graph/model/parts.h - what the built-in image networks have in common. Each call adds to the
 * model's head. */
#ifndef HPCT_NN_GRAPH_MODEL_PARTS_H
#define HPCT_NN_GRAPH_MODEL_PARTS_H

#include "nn/graph/graph.h"
#include "nn/graph/model/builtin.h"

/* Names the next layer, as printf. */
void hpct_builtin_part_name(hpct_model *model, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Size of the head along an axis: height, width, channels. */
static inline int hpct_builtin_part_size(const hpct_model *model, int axis)
{
    return model->tensors[model->output].shape.size[axis];
}

/* The width with a factor, as a multiple of 8 (Keras' _make_divisible). */
int hpct_builtin_part_width(double channels);

/* Square convolutions without bias; a depthwise one with a stride is of a padded picture. */
void hpct_builtin_part_conv(hpct_model *model, int filters, int kernel, int stride,
                            hpct_padding padding);
void hpct_builtin_part_depthwise(hpct_model *model, int kernel, int stride);

/* Zeros around a picture, so that a kernel with stride 2 has the windows of TensorFlow's SAME at
 * any size (imagenet_utils.correct_pad). */
void hpct_builtin_part_pad(hpct_model *model, int kernel);

/* Dense "predictions" with softmax, after a mean over the picture, "avg_pool". */
void hpct_builtin_part_predictions(hpct_model *model, int classes);
void hpct_builtin_part_head(hpct_model *model, int classes);

/* A classifier of ImageNet's pictures, SIDE x SIDE by default. */
#define HPCT_BUILTIN_IMAGENET(NAME, SIDE, DESCRIBE)                                                \
    {                                                                                              \
        .name = NAME, .input = {.rank = 3, .size = {SIDE, SIDE, 3}}, .classes = 1000,              \
        .describe = DESCRIBE,                                                                      \
    }
/* The same network as torchvision's of that name. */
#define HPCT_BUILTIN_IMAGENET_AS_TORCHVISION(NAME, SIDE, DESCRIBE)                                 \
    {                                                                                              \
        .name = NAME, .input = {.rank = 3, .size = {SIDE, SIDE, 3}}, .classes = 1000,              \
        .describe = DESCRIBE, .torchvision = NAME "-torchvision",                                  \
    }

#endif
