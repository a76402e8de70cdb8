/* nn/model/builtin.h - the built-in models; each file here describes one. */
#ifndef HPCT_NN_MODEL_BUILTIN_H
#define HPCT_NN_MODEL_BUILTIN_H

#include <hpctrain/model.h>

typedef struct hpct_builtin {
    const char *name;
    hpct_shape input;
    void (*describe)(hpct_model *model);
} hpct_builtin;

extern const hpct_builtin hpct_builtin_mnist_cnn;
extern const hpct_builtin hpct_builtin_mnist_convnet;

#endif
