/* nn/graph/model/inception.h - InceptionV3, whose forms (Keras' and torchvision's) differ in names,
 * normalizations and means. */
#ifndef HPCT_NN_GRAPH_MODEL_INCEPTION_H
#define HPCT_NN_GRAPH_MODEL_INCEPTION_H

#include "nn/graph/model/parts.h"

/* With stride 2 the picture is not padded. filters 0: no more convolutions in a branch. */
typedef struct hpct_builtin_inception_conv {
    const char *module; /* torchvision's name for it, in its block */
    int filters, height, width, stride;
} hpct_builtin_inception_conv;

typedef struct hpct_builtin_inception_form {
    /* Names the next convolution, unless NULL. name: torchvision's, "Mixed_5b.branch1x1" */
    void (*name_conv)(hpct_model *model, const char *name);
    void (*add_norm)(hpct_model *model, const char *name); /* after it */
    void (*add_mean)(hpct_model *model); /* of 3x3 cells, without a change of size */
    bool names_joins;                    /* concatenations have Keras' names */
} hpct_builtin_inception_form;

/* Adds all up to the last concatenation. */
void hpct_builtin_inception(hpct_model *model, const hpct_builtin_inception_form *form);

#endif
