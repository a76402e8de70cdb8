/* nn/graph/model/torchvision/parts.h - what networks of torchvision have in common. Layers have the
 * names of its modules, so that a parameter's name in a state_dict is that of its layer and
 * "weight", "bias", "running_mean" or "running_var". Each call adds to the model's head. */
#ifndef HPCT_NN_GRAPH_MODEL_TORCHVISION_PARTS_H
#define HPCT_NN_GRAPH_MODEL_TORCHVISION_PARTS_H

#include "nn/graph/model/parts.h"

/* The first layer: bytes as torchvision's weights for ImageNet expect them. */
void hpct_vision_normalize(hpct_model *model);

/* Zeros on all four sides. */
void hpct_vision_pad(hpct_model *model, int width);

/* A square convolution without bias of a picture that is padded by half the kernel on each side. */
void hpct_vision_conv(hpct_model *model, const char *name, int filters, int kernel, int stride);

/* BatchNorm2d(momentum=0.1) */
void hpct_vision_norm(hpct_model *model, const char *name, double epsilon);
#define HPCT_VISION_EPSILON 1e-5 /* torch's default */
#define HPCT_VISION_MOMENTUM 0.9 /* 1 - momentum of torch */

/* MaxPool2d(3, stride=2, padding=1) of numbers that are not negative. */
void hpct_vision_pool(hpct_model *model);

/* Dropout, then the last Linear, with softmax. */
void hpct_vision_classifier(hpct_model *model, const char *name, int classes, double dropout);

extern const hpct_builtin hpct_vision_resnet18;
extern const hpct_builtin hpct_vision_resnet34;
extern const hpct_builtin hpct_vision_resnet50;
extern const hpct_builtin hpct_vision_resnet101;
extern const hpct_builtin hpct_vision_resnet152;
extern const hpct_builtin hpct_vision_vgg16;
extern const hpct_builtin hpct_vision_vgg19;
extern const hpct_builtin hpct_vision_densenet121;
extern const hpct_builtin hpct_vision_mobilenetv2;
extern const hpct_builtin hpct_vision_mobilenetv3small;
extern const hpct_builtin hpct_vision_efficientnetb0;
extern const hpct_builtin hpct_vision_inceptionv3;

/* A row of the table of built-in models. */
#define HPCT_VISION(NAME, SIDE, DESCRIBE)                                                          \
    {                                                                                              \
        .name = NAME, .input = {.rank = 3, .size = {SIDE, SIDE, 3}}, .classes = 1000,              \
        .describe = DESCRIBE, .torchvision = NAME,                                                 \
    }

#endif
