/* Builds operation graphs from cuDNN's backend descriptors, together with a text key that describes
 * them: graphs with equal keys are equal. */
#include "nn/backend/cuda/dnn_parts.h"

#include "base/status.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef hpct_dnn_descriptor descriptor;

static void append(hpct_dnn_graph *graph, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void append(hpct_dnn_graph *graph, const char *format, ...)
{
    va_list args;
    size_t room = sizeof graph->key - graph->key_length;
    va_start(args, format);
    int length = vsnprintf(graph->key + graph->key_length, room, format, args);
    va_end(args);
    if (length < 0 || (size_t) length >= room) {
        if (graph->status == HPCT_OK)
            graph->status = hpct_fail(HPCT_ERR_INTERNAL, "cuDNN: a graph of too many operations");
        return;
    }
    graph->key_length += (size_t) length;
}

static void check(hpct_dnn_graph *graph, cudnnStatus_t error, const char *call)
{
    if (graph->status != HPCT_OK)
        return;
    graph->status = hpct_cuda_check_dnn(error, call);
    int category = CUDNN_STATUS_CATEGORY((int) error);
    graph->refused = category == CUDNN_STATUS_BAD_PARAM || category == CUDNN_STATUS_NOT_SUPPORTED;
}

/* Creates a descriptor owned by the graph; NULL after an error. */
static descriptor make(hpct_dnn_graph *graph, cudnnBackendDescriptorType_t type)
{
    descriptor made = NULL;
    if (graph->status == HPCT_OK && graph->num_made == HPCT_DNN_MOST_DESCRIPTORS)
        graph->status = hpct_fail(HPCT_ERR_INTERNAL, "cuDNN: a graph of too many descriptors");
    if (graph->status != HPCT_OK)
        return NULL;
    check(graph, cudnnBackendCreateDescriptor(type, &made), "cudnnBackendCreateDescriptor");
    if (graph->status == HPCT_OK)
        graph->made[graph->num_made++] = made;
    return made;
}

static void set(hpct_dnn_graph *graph, descriptor of, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    char call[64];
    if (graph->status != HPCT_OK)
        return;
    snprintf(call, sizeof call, "cudnnBackendSetAttribute %d", (int) name);
    check(graph, cudnnBackendSetAttribute(of, name, type, count, values), call);
}

static void finalize(hpct_dnn_graph *graph, descriptor of, const char *what)
{
    char call[64];
    if (graph->status != HPCT_OK)
        return;
    snprintf(call, sizeof call, "cudnnBackendFinalize of %s", what);
    check(graph, cudnnBackendFinalize(of), call);
}

hpct_status hpct_dnn_graph_new(hpct_dnn_graph **out)
{
    *out = calloc(1, sizeof **out);
    return *out == NULL ? hpct_fail_memory(sizeof **out) : HPCT_OK;
}

void hpct_dnn_graph_free(hpct_dnn_graph *graph)
{
    while (graph != NULL && graph->num_made > 0)
        cudnnBackendDestroyDescriptor(graph->made[--graph->num_made]);
    free(graph);
}

static size_t bytes_of(cudnnDataType_t type)
{
    return type == CUDNN_DATA_FLOAT ? 4 : 2;
}

int hpct_dnn_tensor(hpct_dnn_graph *graph, cudnnDataType_t type, const int64_t size[4], bool inside)
{
    if (graph->num_tensors == HPCT_DNN_MOST_TENSORS) {
        if (graph->status == HPCT_OK)
            graph->status = hpct_fail(HPCT_ERR_INTERNAL, "cuDNN: a graph of too many tensors");
        return 0;
    }
    int index = graph->num_tensors++;
    int64_t number = index + 1, alignment = HPCT_DNN_ALIGNMENT;
    int64_t strides[4] = {size[1] * size[2] * size[3], 1, size[3] * size[1], size[1]};
    descriptor t = make(graph, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set(graph, t, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(graph, t, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, size);
    set(graph, t, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
    set(graph, t, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &number);
    set(graph, t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    if (inside)
        set(graph, t, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &inside);
    finalize(graph, t, "a tensor");
    graph->tensors[index] = t;
    graph->type[index] = type;
    memcpy(graph->size[index], size, sizeof graph->size[index]);
    graph->inside[index] = inside;
    graph->bytes[index] = (size_t) (size[0] * strides[0]) * bytes_of(type);
    append(graph, "%st%d %s%d %" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64, index > 0 ? "; " : "",
           index, inside ? "inside " : "", (int) type, size[0], size[1], size[2], size[3]);
    return index;
}

static void add_operation(hpct_dnn_graph *graph, descriptor operation)
{
    if (graph->status == HPCT_OK && graph->num_operations == HPCT_DNN_MOST_OPERATIONS)
        graph->status = hpct_fail(HPCT_ERR_INTERNAL, "cuDNN: a graph of too many operations");
    if (graph->status == HPCT_OK)
        graph->operations[graph->num_operations++] = operation;
}

/* The first operation, of images and a kernel in memory. */
static void claim_convolution(hpct_dnn_graph *graph, const hpct_dnn_claim *claim)
{
    graph->claim = *claim;
    graph->claim.result = claim->way == HPCT_DNN_FORWARD ? claim->dst
                          : claim->way == HPCT_DNN_DATA  ? claim->src
                                                         : claim->kernel;
    graph->claim.other = graph->claim.bias = -1;
    graph->claim.whole = graph->num_operations == 0;
    for (int i = 0; i < graph->num_tensors; i++)
        graph->claim.whole = graph->claim.whole && (i == graph->claim.result || !graph->inside[i]);
}

static bool is_vector(const hpct_dnn_graph *graph, int tensor)
{
    const int64_t *size = graph->size[tensor];
    return size[0] == 1 && size[2] == 1 && size[3] == 1;
}

/* dst = what is claimed so far + other. One image of one cell is a vector, too: then the sum of two
 * images and a bias has two of them. */
static void claim_sum(hpct_dnn_graph *graph, int src, int other, int dst)
{
    hpct_dnn_claim *claim = &graph->claim;
    bool cell = is_vector(graph, dst),
         bias = is_vector(graph, other) && (!cell || claim->other >= 0);
    int *place = bias ? &claim->bias : &claim->other;
    claim->whole = claim->whole && src == claim->result && *place < 0 && !claim->relu;
    *place = other;
    claim->result = dst;
}

static void claim_relu(hpct_dnn_graph *graph, int src, int dst)
{
    hpct_dnn_claim *claim = &graph->claim;
    claim->whole = claim->whole && src == claim->result && !claim->relu;
    claim->relu = true;
    claim->result = dst;
}

static void convolve(hpct_dnn_graph *graph, hpct_dnn_way way, const hpct_dnn_window *window,
                     int src, int kernel, int dst, bool added)
{
    static const struct {
        const char *name;
        cudnnBackendDescriptorType_t type;
        cudnnBackendAttributeName_t alpha, beta, conv, src, kernel, dst;
    } ways[] = {
#define WAY(name, KIND, ATTRIBUTE, SRC, WEIGHTS, DST)                                              \
    {name,                                                                                         \
     CUDNN_BACKEND_OPERATION_CONVOLUTION_##KIND##_DESCRIPTOR,                                      \
     CUDNN_ATTR_OPERATION_CONVOLUTION_##ATTRIBUTE##_ALPHA,                                         \
     CUDNN_ATTR_OPERATION_CONVOLUTION_##ATTRIBUTE##_BETA,                                          \
     CUDNN_ATTR_OPERATION_CONVOLUTION_##ATTRIBUTE##_CONV_DESC,                                     \
     CUDNN_ATTR_OPERATION_CONVOLUTION_##ATTRIBUTE##_##SRC,                                         \
     CUDNN_ATTR_OPERATION_CONVOLUTION_##ATTRIBUTE##_##WEIGHTS,                                     \
     CUDNN_ATTR_OPERATION_CONVOLUTION_##ATTRIBUTE##_##DST}
        [HPCT_DNN_FORWARD] = WAY("forward", FORWARD, FORWARD, X, W, Y),
        [HPCT_DNN_DATA] = WAY("data", BACKWARD_DATA, BWD_DATA, DX, W, DY),
        [HPCT_DNN_WEIGHTS] = WAY("weights", BACKWARD_FILTER, BWD_FILTER, X, DW, DY),
    };
    claim_convolution(graph, &(hpct_dnn_claim){.way = way,
                                               .window = *window,
                                               .src = src,
                                               .kernel = kernel,
                                               .dst = dst,
                                               .added = added});
    const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const int64_t axes = 2;
    const float one = 1, beta = added ? 1 : 0;
    descriptor conv = make(graph, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set(graph, conv, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    set(graph, conv, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(graph, conv, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &axes);
    set(graph, conv, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, window->dilation);
    set(graph, conv, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, window->stride);
    set(graph, conv, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, window->pad_before);
    set(graph, conv, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, window->pad_after);
    finalize(graph, conv, "a convolution");
    descriptor op = make(graph, ways[way].type);
    set(graph, op, ways[way].conv, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &conv);
    set(graph, op, ways[way].src, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph->tensors[src]);
    set(graph, op, ways[way].kernel, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph->tensors[kernel]);
    set(graph, op, ways[way].dst, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph->tensors[dst]);
    set(graph, op, ways[way].alpha, CUDNN_TYPE_FLOAT, 1, &one);
    set(graph, op, ways[way].beta, CUDNN_TYPE_FLOAT, 1, &beta);
    finalize(graph, op, "a convolution's operation");
    add_operation(graph, op);
    append(graph, "; convolution %s t%d t%d t%d%s", ways[way].name, src, kernel, dst,
           added ? " added" : "");
    for (int axis = 0; axis < 2; axis++)
        append(graph, " %" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64, window->stride[axis],
               window->dilation[axis], window->pad_before[axis], window->pad_after[axis]);
}

void hpct_dnn_convolution(hpct_dnn_graph *graph, hpct_dnn_way way, const hpct_dnn_window *window,
                          int src, int kernel, int dst)
{
    convolve(graph, way, window, src, kernel, dst, false);
}

void hpct_dnn_convolution_added(hpct_dnn_graph *graph, const hpct_dnn_window *window, int src,
                                int kernel, int dst)
{
    convolve(graph, HPCT_DNN_DATA, window, src, kernel, dst, true);
}

typedef struct operand {
    cudnnBackendAttributeName_t name;
    int tensor;
} operand;

/* dst is the last operand. */
static void add_pointwise(hpct_dnn_graph *graph, cudnnPointwiseMode_t mode, const operand *operands,
                          int count)
{
    const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    descriptor pointwise = make(graph, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set(graph, pointwise, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set(graph, pointwise, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    finalize(graph, pointwise, "a pointwise operation");
    descriptor op = make(graph, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set(graph, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
        &pointwise);
    append(graph, "; pointwise %d", (int) mode);
    for (int i = 0; i < count; i++) {
        set(graph, op, operands[i].name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
            &graph->tensors[operands[i].tensor]);
        append(graph, " t%d", operands[i].tensor);
    }
    finalize(graph, op, "a pointwise operation's node");
    add_operation(graph, op);
}

static void add_binary(hpct_dnn_graph *graph, cudnnPointwiseMode_t mode, int src, int other,
                       int dst)
{
    add_pointwise(graph, mode,
                  (operand[]){{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, src},
                              {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, other},
                              {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, dst}},
                  3);
}

void hpct_dnn_add(hpct_dnn_graph *graph, int src, int other, int dst)
{
    claim_sum(graph, src, other, dst);
    add_binary(graph, CUDNN_POINTWISE_ADD, src, other, dst);
}

void hpct_dnn_relu(hpct_dnn_graph *graph, int src, int dst)
{
    claim_relu(graph, src, dst);
    add_pointwise(graph, CUDNN_POINTWISE_RELU_FWD,
                  (operand[]){{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, src},
                              {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, dst}},
                  2);
}

void hpct_dnn_graph_finish(hpct_dnn_graph *graph)
{
    if (graph->status == HPCT_OK && !(graph->claim.whole && !graph->inside[graph->claim.result]))
        graph->status =
            hpct_fail(HPCT_ERR_INTERNAL, "cuDNN: a graph of which nothing can be shown");
    graph->graph = make(graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(graph, graph->graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1,
        &hpct_cuda_gpu.dnn);
    set(graph, graph->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
        graph->num_operations, graph->operations);
    finalize(graph, graph->graph, "a graph");
}

int hpct_dnn_graph_numbers(const hpct_dnn_graph *graph, int64_t *numbers)
{
    int count = 0;
    for (int i = 0; i < graph->num_tensors; i++) {
        if (!graph->inside[i])
            numbers[count++] = i + 1;
    }
    return count;
}
