/* Field numbers are those of onnx/onnx.proto. */
#include "nn/file/onnx/tensors.h"

#include "base/status.h"
#include "nn/run/run.h"

#include <stdlib.h>
#include <string.h>

enum { TENSOR_DIMS = 1, TENSOR_TYPE = 2, TENSOR_NAME = 8, TENSOR_RAW = 9 };
enum { TYPE_FLOAT = 1, TYPE_INT64 = 7 };
enum { WIRE_LENGTH = 2 }; /* what follows has a length */

size_t hpct_onnx_tensor_bytes(const hpct_onnx_tensor *tensor)
{
    size_t bytes = tensor->integers ? sizeof(int64_t) : sizeof(float);
    for (int i = 0; i < tensor->rank; i++)
        bytes *= (size_t) tensor->sizes[i];
    return bytes;
}

void hpct_onnx_tensor_head(const hpct_onnx_tensor *tensor, hpct_protobuf *to)
{
    for (int i = 0; i < tensor->rank; i++)
        hpct_protobuf_integer(to, TENSOR_DIMS, tensor->sizes[i]);
    hpct_protobuf_integer(to, TENSOR_TYPE, tensor->integers ? TYPE_INT64 : TYPE_FLOAT);
    hpct_protobuf_text(to, TENSOR_NAME, tensor->name);
    hpct_protobuf_put_varint(to, TENSOR_RAW << 3 | WIRE_LENGTH);
    hpct_protobuf_put_varint(to, hpct_onnx_tensor_bytes(tensor));
}

/* Copies `from` so that axis i of the result is axis order[i]. */
static void permute(const hpct_onnx_tensor *tensor, const float *from, float *to)
{
    size_t steps[HPCT_MAX_RANK], step = 1, at[HPCT_MAX_RANK] = {0};
    size_t count = hpct_graph_shape_count(&tensor->from);
    for (int i = tensor->from.rank - 1; i >= 0; i--) {
        steps[i] = step;
        step *= (size_t) tensor->from.size[i];
    }
    for (size_t i = 0; i < count; i++) {
        size_t source = 0;
        for (int k = 0; k < tensor->rank; k++)
            source += at[k] * steps[tensor->order.axes[k]];
        to[i] = from[source];
        for (int k = tensor->rank - 1; k >= 0 && ++at[k] == (size_t) tensor->sizes[k]; k--)
            at[k] = 0;
    }
}

static bool keeps_order(const hpct_onnx_tensor *tensor)
{
    for (int i = 0; i < tensor->rank; i++) {
        if (tensor->order.axes[i] != i)
            return false;
    }
    return true;
}

static hpct_status read_weight(const hpct_onnx_tensor *tensor, const hpct_model *model, float *out)
{
    if (keeps_order(tensor))
        return hpct_run_param_get(model, tensor->param, out);
    float *keras = malloc(hpct_onnx_tensor_bytes(tensor));
    if (keras == NULL)
        return hpct_fail_memory(hpct_onnx_tensor_bytes(tensor));
    hpct_status status = hpct_run_param_get(model, tensor->param, keras);
    if (status == HPCT_OK)
        permute(tensor, keras, out);
    free(keras);
    return status;
}

hpct_status hpct_onnx_tensor_data(const hpct_onnx_tensor *tensor, const hpct_model *model,
                                  void **out)
{
    size_t bytes = hpct_onnx_tensor_bytes(tensor);
    void *data = malloc(bytes + 1);
    if (data == NULL)
        return hpct_fail_memory(bytes + 1);
    hpct_status status = HPCT_OK;
    if (tensor->param < 0)
        memcpy(data, tensor->data, bytes);
    else
        status = read_weight(tensor, model, data);
    if (status == HPCT_OK)
        *out = data;
    else
        free(data);
    return status;
}
