/* nn/file/keras/reader.h - the state while a model is read, and its parts: layers, calls, levels.
 * Private to nn/file/keras/. */
#ifndef HPCT_NN_FILE_KERAS_READER_H
#define HPCT_NN_FILE_KERAS_READER_H

#include "nn/file/keras/keras.h"

#include <string.h>

typedef struct hpct_keras_reader {
    hpct_model *model;
    json_t *names;     /* of the document's layers: how many have each */
    int height, width; /* of an input whose size is open; 0: none */
    int generation;    /* of Keras that wrote it: 2 (and before), 3 (and later), 0: unknown */
} hpct_keras_reader;

/* The output of a layer. */
typedef struct hpct_keras_output {
    const char *name;
    int tensor; /* -1 until the layer is added */
    bool read;
} hpct_keras_output;

/* The model, or one nested in it: a list of layers. */
typedef struct hpct_keras_level {
    hpct_keras_reader *reader;
    const struct hpct_keras_level *outer; /* NULL: it is the model */
    const json_t *config, *layers;
    size_t num_layers;
    hpct_keras_output *outputs; /* [num_layers], of a functional model */
    int nest;                   /* number of the nested model; 0: none */
    bool inference;             /* called with training=False */
} hpct_keras_level;

/* What a layer of a functional model is called with. */
typedef struct hpct_keras_call {
    hpct_keras_output *inputs[HPCT_KERAS_MAX_INPUTS];
    int count;
    bool operation; /* takes a number, too */
    int numbers;
    double number;
    bool number_first;
    bool inference; /* training=False */
} hpct_keras_call;

/* ---- parts of an entry of a list of layers ---- */

static inline const char *hpct_keras_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static inline const char *hpct_keras_class_of(const json_t *entry)
{
    const char *name = hpct_keras_text(entry, "class_name");
    return name != NULL ? name : "";
}

/* Keras 2 writes the name also beside the config, for functional models only. */
static inline const char *hpct_keras_name_of(const json_t *entry)
{
    const char *name = hpct_keras_text(json_object_get(entry, "config"), "name");
    return name != NULL ? name : "";
}

/* Whether the entry is a model: Sequential, or Functional, which was Model once. */
bool hpct_keras_is_model(const json_t *entry);
static inline bool hpct_keras_is_sequential(const json_t *entry)
{
    return strcmp(hpct_keras_class_of(entry), "Sequential") == 0;
}

/* The list of layers of a model's config. */
const json_t *hpct_keras_layers_of(const json_t *config);

/* ---- layers ---- */

hpct_status hpct_keras_open_layer(hpct_keras_layer *layer, const json_t *entry, hpct_model *model);
void hpct_keras_close_layer(hpct_keras_layer *layer);
/* Settings of every layer. Shapes that Keras 2 repeats in the first layer were read before. */
void hpct_keras_take_common(hpct_keras_layer *layer);
/* The model's error. It is that of the layer just added, which its message names. */
hpct_status hpct_keras_model_status(const hpct_model *model);
/* `c`: NULL for a layer that is called with its inputs only. */
hpct_status hpct_keras_add_layer(const hpct_keras_level *level, const json_t *entry,
                                 const int *inputs, int num_inputs, const hpct_keras_call *c);

/* ---- calls ---- */

hpct_keras_output *hpct_keras_find_output(const hpct_keras_level *level, const char *name);
/* A tensor, [name, node, tensor], possibly with further elements. Each layer is called once and has
 * one output. */
hpct_status hpct_keras_find_tensor(const hpct_keras_level *level, hpct_keras_output **found,
                                   const json_t *history);
hpct_status hpct_keras_read_call(const hpct_keras_level *level, const json_t *entry,
                                 hpct_keras_call *c);

#endif
