/* nn/file/onnx/nodes.h - the ONNX operations of each operation of a model. */
#ifndef HPCT_NN_FILE_ONNX_NODES_H
#define HPCT_NN_FILE_ONNX_NODES_H

#include "nn/file/onnx/builder.h"

#define HPCT_ONNX_OPSET 18 /* the first in which Resize takes axes: any number of samples */
#define HPCT_ONNX_IR 8     /* its version of the format */

bool hpct_onnx_has_row(hpct_op_kind kind);

/* Adds the nodes for one of the model. Returns HPCT_ERR_USAGE, naming the layer, for one that
 * cannot be written. */
hpct_status hpct_onnx_add_node(hpct_onnx *b, const hpct_graph_node *node);

#endif
