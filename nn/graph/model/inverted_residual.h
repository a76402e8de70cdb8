/* nn/graph/model/inverted_residual.h - the block of MobileNetV2, MobileNetV3 and EfficientNet:
 * more channels by a 1x1 convolution, a depthwise convolution, perhaps squeeze-and-excitation, and
 * fewer channels by a 1x1 convolution, beside a shortcut where the sizes allow it. */
#ifndef HPCT_NN_GRAPH_MODEL_INVERTED_RESIDUAL_H
#define HPCT_NN_GRAPH_MODEL_INVERTED_RESIDUAL_H

#include "nn/graph/model/parts.h"

/* What a family calls the parts, after the block's name, and how it normalizes and gates. A name
 * that is NULL is Keras' default. */
typedef struct hpct_builtin_inverted_style {
    double momentum; /* of BatchNormalization; 0: the default */
    struct {
        const char *conv, *norm, *activation;
    } expand, depthwise, project;
    struct {
        const char *pool, *reduce, *expand, *multiply;
        hpct_activation activation, gate;
    } squeeze;
    const char *pad, *drop, *add;
    double epsilon; /* of BatchNormalization; 0: the default */
    bool symmetric; /* before a stride the padding is the same on all sides, as in torch */
} hpct_builtin_inverted_style;

typedef struct hpct_builtin_inverted_residual {
    const char *name;
    double expansion; /* factor of the channels; 1: no convolution for that */
    int filters, kernel, stride;
    int squeezed; /* channels of squeeze-and-excitation; 0: none */
    hpct_activation activation;
    double drop; /* rate at which the block is left out of a sample */
} hpct_builtin_inverted_residual;

void hpct_builtin_part_inverted(hpct_model *model, const hpct_builtin_inverted_style *style,
                                const hpct_builtin_inverted_residual *block);

#endif
