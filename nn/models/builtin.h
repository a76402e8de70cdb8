/* nn/models/builtin.h - the built-in models by name: hpct_model_builtin, and those in torchvision's
 * form. */
#ifndef HPCT_NN_MODELS_BUILTIN_H
#define HPCT_NN_MODELS_BUILTIN_H

/* Names of the models in torchvision's form; NULL after the last. */
const char *hpct_builtin_torchvision(int index);

#endif
