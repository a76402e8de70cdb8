/* nn/graph/model/builtin.h - the built-in models in the form of Keras; a file for each family.
 * Their table: nn/models/. */
#ifndef HPCT_NN_GRAPH_MODEL_BUILTIN_H
#define HPCT_NN_GRAPH_MODEL_BUILTIN_H

#include <hpctrain/model.h>
#include <stdbool.h>

typedef struct hpct_builtin {
    const char *name;
    hpct_shape input; /* defaults */
    int classes;
    void (*describe)(hpct_model *model, int classes);
    /* The model in torchvision's form with the same network, whose weights it takes; NULL: none. */
    const char *torchvision;
} hpct_builtin;

extern const hpct_builtin hpct_builtin_mnist_cnn;
extern const hpct_builtin hpct_builtin_mnist_convnet;
extern const hpct_builtin hpct_builtin_resnet50;
extern const hpct_builtin hpct_builtin_resnet50v2;
extern const hpct_builtin hpct_builtin_resnet101v2;
extern const hpct_builtin hpct_builtin_resnet152v2;
extern const hpct_builtin hpct_builtin_vgg16;
extern const hpct_builtin hpct_builtin_vgg19;
extern const hpct_builtin hpct_builtin_densenet121;
extern const hpct_builtin hpct_builtin_mobilenet;
extern const hpct_builtin hpct_builtin_mobilenetv2;
extern const hpct_builtin hpct_builtin_mobilenetv3small;
extern const hpct_builtin hpct_builtin_efficientnetb0;
extern const hpct_builtin hpct_builtin_efficientnetb0_imagenet;
extern const hpct_builtin hpct_builtin_inceptionv3;
extern const hpct_builtin hpct_builtin_xception;

#endif
