/* nn/keras/keras.h - models as Keras writes them down (model.to_json()): reading one layer's
 * config, and the table of the layers there are. Private to nn/keras/.
 *
 * A config is read by taking each setting out of it. What is left in the end is a setting that
 * nobody read: unless it is null, the layer is refused, so that nothing is silently ignored. */
#ifndef HPCT_NN_KERAS_KERAS_H
#define HPCT_NN_KERAS_KERAS_H

#include "nn/graph.h"

#include <jansson.h>

#define HPCT_KERAS_MAX_INPUTS HPCT_NODE_MAX_INPUTS

typedef struct hpct_keras_layer {
    const char *class_name, *name;
    json_t *settings;   /* those not taken yet */
    hpct_status status; /* of the first thing that was wrong; the others then do nothing */
    hpct_model *model;
    hpct_precision precision;                      /* of its dtype policy */
    int num_inputs, inputs[HPCT_KERAS_MAX_INPUTS]; /* tensors */
} hpct_keras_layer;

/* Keeps `layer "NAME" (CLASS): …` as the layer's failure, unless it has failed already. */
void hpct_keras_fail(hpct_keras_layer *layer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Each takes one setting; `fallback` where it is absent or null. Numbers that mean sizes lie within
 * int; a pair may be written as one number for both. */
int hpct_keras_int(hpct_keras_layer *layer, const char *key, int fallback);
double hpct_keras_number(hpct_keras_layer *layer, const char *key, double fallback);
bool hpct_keras_bool(hpct_keras_layer *layer, const char *key, bool fallback);
void hpct_keras_pair(hpct_keras_layer *layer, const char *key, int pair[2]);
hpct_shape hpct_keras_shape(hpct_keras_layer *layer, const char *key);
hpct_padding hpct_keras_padding(hpct_keras_layer *layer);
hpct_activation hpct_keras_activation(hpct_keras_layer *layer);
/* One of `words`, which ends with NULL; its index. The first one is the fallback. */
int hpct_keras_word(hpct_keras_layer *layer, const char *key, const char *const *words);
/* Whatever it is: a setting without a meaning here (each use says why). */
void hpct_keras_drop(hpct_keras_layer *layer, const char *key);
/* The setting itself, a new reference; NULL where it is absent or null. */
json_t *hpct_keras_take(hpct_keras_layer *layer, const char *key);

/* Whether every setting was taken and none was wrong: the layer may be added. */
bool hpct_keras_taken(hpct_keras_layer *layer);

/* "relu"; NULL for a number that names no activation. */
const char *hpct_keras_activation_name(hpct_activation activation);

/* ---- the table ---- */

typedef struct hpct_keras_class {
    const char *class_name;
    int min_inputs, max_inputs;
    void (*add)(hpct_keras_layer *layer); /* takes the settings and adds the layer to the model */
    /* The settings of a layer of this class, besides its initializers; NULL for one that is written
     * as another class. A new reference, NULL when out of memory. */
    json_t *(*settings)(const hpct_layer *layer);
} hpct_keras_class;

/* NULL when there is none of this name. */
const hpct_keras_class *hpct_keras_find(const char *class_name);
/* "InputLayer, Conv2D, …": all there are. */
void hpct_keras_list(char *text, size_t size);

/* The model as Keras 3's JSON; the caller frees *text. */
hpct_status hpct_keras_write(char **text, const hpct_model *model);

#endif
