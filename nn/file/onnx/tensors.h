/* nn/file/onnx/tensors.h - the constant tensors of an ONNX graph (TensorProto): weights, which are
 * read from the model when they are written, and small constants. */
#ifndef HPCT_NN_FILE_ONNX_TENSORS_H
#define HPCT_NN_FILE_ONNX_TENSORS_H

#include "base/protobuf.h"
#include "nn/graph/graph.h"

/* Axes of a weight in the file, by their number in Keras' shape. */
typedef struct hpct_onnx_order {
    int axes[HPCT_MAX_RANK];
} hpct_onnx_order;

typedef struct hpct_onnx_tensor {
    char *name;
    int param; /* index in the model; -1: a constant */
    int rank;  /* 0: a scalar */
    int64_t sizes[HPCT_MAX_RANK];
    hpct_shape from;       /* of a weight: its shape in Keras, */
    hpct_onnx_order order; /* and which axis comes from where */
    void *data;            /* of a constant: floats or 64-bit integers */
    bool integers;
} hpct_onnx_tensor;

size_t hpct_onnx_tensor_bytes(const hpct_onnx_tensor *tensor);

/* The message up to its data, which follow: raw bytes. */
void hpct_onnx_tensor_head(const hpct_onnx_tensor *tensor, hpct_protobuf *to);

/* The data; the caller frees *out. */
hpct_status hpct_onnx_tensor_data(const hpct_onnx_tensor *tensor, const hpct_model *model,
                                  void **out);

#endif
