/* nn/file/keras/fields.h - settings of layers as tables: a row says how a member of the layer's
 * configuration stands in Keras' JSON. The same table reads and writes. Private to nn/file/keras/.
 */
#ifndef HPCT_NN_FILE_KERAS_FIELDS_H
#define HPCT_NN_FILE_KERAS_FIELDS_H

#include "nn/file/keras/keras.h"

typedef struct hpct_keras_field hpct_keras_field;

/* `write` adds to the settings; 0, or -1 if out of memory. */
typedef struct hpct_keras_special {
    void (*read)(hpct_keras_layer *layer, const hpct_keras_field *field, void *member);
    int (*write)(json_t *settings, const hpct_keras_field *field, const hpct_layer *layer,
                 const void *member);
} hpct_keras_special;

typedef enum hpct_keras_form {
    HPCT_KERAS_SIZE,     /* int, from 1 on; 0 is written as 1 */
    HPCT_KERAS_PAIR,     /* int[2] of the same */
    HPCT_KERAS_SHAPE,    /* hpct_shape */
    HPCT_KERAS_NUMBER,   /* double; INFINITY is written as null */
    HPCT_KERAS_POSITIVE, /* double, 0 if absent */
    HPCT_KERAS_FLAG,     /* bool */
    HPCT_KERAS_NOT,      /* bool, the reverse of the setting; true if absent */
    HPCT_KERAS_WORD,     /* int or enum, index in `words` */
    HPCT_KERAS_CHOICE,   /* bool, index in `words` */
    HPCT_KERAS_ACTIVATION,
    /* Without a member: */
    HPCT_KERAS_ONLY,      /* the first of `words`, no other */
    HPCT_KERAS_FALSE,     /* false, not true */
    HPCT_KERAS_ONE,       /* a size of 1 */
    HPCT_KERAS_ONES,      /* a pair of 1 */
    HPCT_KERAS_LAST_AXIS, /* -1, its index, or a list of it */
    HPCT_KERAS_DROPPED,   /* any value: it has no meaning here */
    HPCT_KERAS_SPECIAL    /* by functions of its own */
} hpct_keras_form;

struct hpct_keras_field {
    const char *key; /* NULL ends a table */
    hpct_keras_form form;
    size_t at;       /* of the member in hpct_layer_config */
    double fallback; /* sizes, numbers: if absent */
    const char *const *words;
    bool required;
    bool nullable;  /* null is as absent */
    bool read_only; /* not written */
    const hpct_keras_special *special;
};

/* Reads and removes the settings; the layer fails for a wrong or missing one. */
void hpct_keras_read_fields(hpct_keras_layer *layer, const hpct_keras_field *fields,
                            hpct_layer_config *config);
/* The settings of a layer, a new reference; NULL if out of memory. */
json_t *hpct_keras_write_fields(const hpct_keras_field *fields, const hpct_layer *layer);

#endif
