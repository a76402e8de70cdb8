/* nn/file/keras/keras.h - models in Keras' JSON (model.to_json()): reading a layer's config, and
 * the table of supported layers. Private to nn/file/keras/.
 *
 * Reading a setting removes it from the config. A setting left over at the end is unknown: unless
 * it is null, the layer is an error, so that nothing is ignored silently. */
#ifndef HPCT_NN_FILE_KERAS_KERAS_H
#define HPCT_NN_FILE_KERAS_KERAS_H

#include "nn/graph/graph.h"

#include <jansson.h>

#define HPCT_KERAS_MAX_INPUTS HPCT_GRAPH_NODE_MAX_INPUTS

typedef struct hpct_keras_layer {
    const char *class_name, *name;
    char whole_name[4 * HPCT_GRAPH_NAME_SIZE]; /* the model's name for it: with those of nested
                                                  models */
    json_t *settings;                          /* settings not read yet */
    hpct_status status;                        /* of the first error; later calls have no effect */
    hpct_model *model;
    hpct_precision precision; /* of its dtype policy */
    bool frozen;              /* trainable false */
    bool inference;           /* called with training=False: works as in inference */
    int generation; /* of Keras that wrote it: 2 (and before), 3 (and later), 0: unknown */
    int num_inputs, inputs[HPCT_KERAS_MAX_INPUTS]; /* tensors */
    int numbers;                                   /* 1: an operation of one tensor and a number, */
    double number;                                 /* this one */
    bool number_first;
} hpct_keras_layer;

/* Records `layer "NAME" (CLASS): ...` as the layer's error, unless it has one. */
void hpct_keras_fail(hpct_keras_layer *layer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Each reads and removes one setting; `fallback` if absent. null is not the default: it is Keras'
 * None, false for a bool, and an error otherwise. Integers are sizes, from 1 to INT_MAX; a pair may
 * be one number for both. */
int hpct_keras_int(hpct_keras_layer *layer, const char *key, int fallback);
double hpct_keras_number(hpct_keras_layer *layer, const char *key, double fallback);
bool hpct_keras_bool(hpct_keras_layer *layer, const char *key, bool fallback);
void hpct_keras_pair(hpct_keras_layer *layer, const char *key, int pair[2]);
hpct_shape hpct_keras_shape(hpct_keras_layer *layer, const char *key);
hpct_activation hpct_keras_activation(hpct_keras_layer *layer);
/* Index of the setting in `words`, which ends with NULL. Default: the first. */
int hpct_keras_word(hpct_keras_layer *layer, const char *key, const char *const *words);
/* Removes a setting without a meaning here (each call has a comment why). */
void hpct_keras_drop(hpct_keras_layer *layer, const char *key);
/* Removes and returns the setting, a new reference; NULL if absent or null, which for take is an
 * error of the layer. */
json_t *hpct_keras_take(hpct_keras_layer *layer, const char *key);
json_t *hpct_keras_take_or_null(hpct_keras_layer *layer, const char *key);
/* has: whether it is present and not null. need: an error of the layer if it is absent. */
bool hpct_keras_has(const hpct_keras_layer *layer, const char *key);
void hpct_keras_need(hpct_keras_layer *layer, const char *key);

/* Whether an object is Keras' own: a user's class or function may have the same name. */
bool hpct_keras_is_own(const json_t *object);

/* Whether all settings were read without error: the layer may be added. */
bool hpct_keras_taken(hpct_keras_layer *layer);

/* "relu"; NULL for an invalid value. */
const char *hpct_keras_activation_name(hpct_activation activation);

/* ---- the table ---- */

typedef struct hpct_keras_class {
    const char *class_name;
    int min_inputs, max_inputs;
    void (*add)(hpct_keras_layer *layer, const hpct_layer_config *config); /* to the model */
    const struct hpct_keras_field *fields; /* its settings (nn/file/keras/fields.h) */
    const char *module;                    /* that Keras has it in; NULL: keras.layers */
    const char *rate; /* setting that is 0 if it does nothing in training; NULL: none */
} hpct_keras_class;

/* NULL if unknown. */
const hpct_keras_class *hpct_keras_find(const char *class_name);
/* Reads the settings and adds the layer to the model. */
void hpct_keras_add(const hpct_keras_class *class, hpct_keras_layer *layer);
/* The settings of a layer, without its initializers. A new reference, NULL if out of memory or of
 * an unknown class. */
json_t *hpct_keras_settings(const hpct_layer *layer);
/* All supported classes: "InputLayer, Conv2D, ...". */
void hpct_keras_list(char *text, size_t size);

/* The model as Keras 3's JSON; the caller frees *text. */
hpct_status hpct_keras_write(char **text, const hpct_model *model);

#endif
