/* nn/file/onnx/rows.h - rows of the table in nodes.c whose nodes are made elsewhere: activations
 * (activations.c), operations with numbers per channel (channels.c). */
#ifndef HPCT_NN_FILE_ONNX_ROWS_H
#define HPCT_NN_FILE_ONNX_ROWS_H

#include "nn/file/onnx/builder.h"

/* Adds the nodes of one operation. type: its name in nn/graph/kinds.c. */
typedef void hpct_onnx_row(hpct_onnx *b, const hpct_graph_node *node, const char *type);

hpct_onnx_row hpct_onnx_add_element, hpct_onnx_add_relu6, hpct_onnx_add_gelu, hpct_onnx_add_silu,
    hpct_onnx_add_hard_sigmoid, hpct_onnx_add_leaky_relu, hpct_onnx_add_elu;
hpct_onnx_row hpct_onnx_add_prelu, hpct_onnx_add_normalization, hpct_onnx_add_group_norm;

/* LayerScale: a product with a number per channel; the name of what it makes. */
void hpct_onnx_add_scale(hpct_onnx *b, const hpct_graph_node *node, const char *name);

#endif
