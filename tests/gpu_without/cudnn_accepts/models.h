/* tests/gpu_without/cudnn_accepts/models.h - the models whose graphs cuDNN is asked about. */
#ifndef HPCT_TESTS_GPU_WITHOUT_CUDNN_ACCEPTS_MODELS_H
#define HPCT_TESTS_GPU_WITHOUT_CUDNN_ACCEPTS_MODELS_H

#include <hpctrain/model.h>

/* Names, NULL-terminated: the built-in ones, and two with depthwise convolutions. */
#define MODELS_ALL 7
extern const char *const accepts_models[MODELS_ALL + 1];

/* Compiled for training in this precision; the caller frees it. */
hpct_status accepts_model(hpct_model **out, const char *name, hpct_precision precision);

#endif
