/* nn/file/onnx/builder.h - an ONNX graph while it is made: nodes, constants, and the names of the
 * values that the model's tensors have in it. Errors (memory) are kept until the end.
 *
 * A tensor of a model has its channels last. ONNX's convolutions, poolings and normalizations want
 * them first, after the samples: a value may exist in both layouts, and a Transpose is added where
 * the other one is wanted. */
#ifndef HPCT_NN_FILE_ONNX_BUILDER_H
#define HPCT_NN_FILE_ONNX_BUILDER_H

#include "nn/file/onnx/tensors.h"

typedef enum hpct_onnx_layout {
    HPCT_ONNX_LAST,
    HPCT_ONNX_FIRST,
    HPCT_ONNX_LAYOUTS
} hpct_onnx_layout;

typedef struct hpct_onnx_value {
    const char *name[HPCT_ONNX_LAYOUTS]; /* NULL: not in the graph */
    bool is_alias;
    int of; /* an alias: of this tensor */
} hpct_onnx_value;

typedef struct hpct_onnx {
    const hpct_model *model;
    hpct_protobuf nodes;
    hpct_onnx_tensor *tensors;
    int num_tensors, room_tensors;
    hpct_onnx_value *values; /* [num_tensors of the model] */
    char **texts;            /* names, freed at the end */
    int num_texts, room_texts;
    size_t node; /* the node under way in `nodes` */
    hpct_status status;
} hpct_onnx;

hpct_status hpct_onnx_open(hpct_onnx *b, const hpct_model *model, const char *input);
void hpct_onnx_close(hpct_onnx *b);

/* A new name, "BASE" or "BASE/SUFFIX"; "" without memory. */
const char *hpct_onnx_name(hpct_onnx *b, const char *base, const char *suffix);

/* ---- values ---- */

/* The name of a tensor's value, which is added if it is not there in this layout. */
const char *hpct_onnx_value_of(hpct_onnx *b, int tensor, hpct_onnx_layout layout);
/* A layout in which it is there: without a Transpose. */
hpct_onnx_layout hpct_onnx_layout_of(hpct_onnx *b, int tensor);
/* Axis of the channels in a layout of this tensor, the samples included. */
int hpct_onnx_channel_axis(const hpct_onnx *b, int tensor, hpct_onnx_layout layout);
/* The name for an operation's result, and that it is there from now on. */
const char *hpct_onnx_result(hpct_onnx *b, const hpct_graph_node *node);
void hpct_onnx_set(hpct_onnx *b, int tensor, hpct_onnx_layout layout, const char *name);
/* Names of the source and the result of an operation of one input that works in either layout; the
 * result is there from now on. */
typedef struct hpct_onnx_ends {
    hpct_onnx_layout layout;
    const char *from, *to;
} hpct_onnx_ends;
hpct_onnx_ends hpct_onnx_ends_of(hpct_onnx *b, const hpct_graph_node *node);
/* A tensor that is another one of the same shape. */
void hpct_onnx_alias(hpct_onnx *b, int tensor, int of);

/* ---- constants ---- */

/* Parameter `which` of a node, with its axes in this order; "" if the node has none. */
const char *hpct_onnx_weight(hpct_onnx *b, const hpct_graph_node *node, int which,
                             const hpct_onnx_order *order);
/* The same, of one with a number per channel: broadcast over the node's result in this layout. */
const char *hpct_onnx_channel_weight(hpct_onnx *b, const hpct_graph_node *node, int which,
                                     hpct_onnx_layout layout);
/* A constant likewise: a value for each channel of the result. */
const char *hpct_onnx_channels(hpct_onnx *b, const hpct_graph_node *node, const float *values,
                               hpct_onnx_layout layout);
const char *hpct_onnx_scalar(hpct_onnx *b, float value);
const char *hpct_onnx_floats(hpct_onnx *b, int count, float value);
const char *hpct_onnx_integers(hpct_onnx *b, const int64_t *values, int count);

/* ---- nodes ---- */

/* Between begin and end come the attributes. inputs ends with NULL; "" is one left out. */
void hpct_onnx_begin(hpct_onnx *b, const char *type, const char *const *inputs, const char *output);
void hpct_onnx_int(hpct_onnx *b, const char *name, int64_t value);
void hpct_onnx_float(hpct_onnx *b, const char *name, float value);
void hpct_onnx_text(hpct_onnx *b, const char *name, const char *value);
void hpct_onnx_ints(hpct_onnx *b, const char *name, const int64_t *values, int count);
void hpct_onnx_end(hpct_onnx *b);

/* A node without attributes, of one or two inputs (the second may be NULL). */
void hpct_onnx_add(hpct_onnx *b, const char *type, const char *input, const char *second,
                   const char *output);

#endif
