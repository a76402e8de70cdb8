#include "nn/backend/cuda/self_test.h"

#include "base/status.h"
#include "nn/backend/cuda/buffers.h"
#include "nn/backend/cuda/ops.h"

#include <math.h>

#define SAMPLES 2048
#define SAMPLES_OF_KERNEL 256 /* each is a sum over all images */

/* Numbers drawn from [-1, 1): a sum of K products is of the order of sqrt(K) / 3. What is wrong is
 * so by about as much; roundings of the operands (TF32: 2^-11) and of partial sums by far less. */
#define TOLERANCE 0x1p-6

static hpct_precision number_of(cudnnDataType_t type)
{
    return type == CUDNN_DATA_FLOAT      ? HPCT_FP32
           : type == CUDNN_DATA_BFLOAT16 ? HPCT_BF16
                                         : HPCT_FP16;
}

/* Twice the rounding of a result. */
static double relative_of(cudnnDataType_t type)
{
    return type == CUDNN_DATA_FLOAT ? 1e-3 : type == CUDNN_DATA_BFLOAT16 ? 0x1p-8 : 0x1p-10;
}

static size_t count_of(const hpct_dnn_graph *graph, int tensor)
{
    const int64_t *size = graph->size[tensor];
    return (size_t) (size[0] * size[1] * size[2] * size[3]);
}

static hpct_cuda_direct direct_of(const hpct_dnn_graph *graph)
{
    const hpct_dnn_claim *claim = &graph->claim;
    const int64_t *src = graph->size[claim->src], *kernel = graph->size[claim->kernel],
                  *dst = graph->size[claim->dst];
    return (hpct_cuda_direct){.n = (int) src[0],
                              .in_h = (int) src[2],
                              .in_w = (int) src[3],
                              .in_c = (int) src[1],
                              .out_h = (int) dst[2],
                              .out_w = (int) dst[3],
                              .out_c = (int) dst[1],
                              .kernel_h = (int) kernel[2],
                              .kernel_w = (int) kernel[3],
                              .stride_h = (int) claim->window.stride[0],
                              .stride_w = (int) claim->window.stride[1],
                              .dilation_h = (int) claim->window.dilation[0],
                              .dilation_w = (int) claim->window.dilation[1],
                              .pad_top = (int) claim->window.pad_before[0],
                              .pad_left = (int) claim->window.pad_before[1],
                              .groups = (int) (src[1] / kernel[1]),
                              .cells = (int) (dst[2] * dst[3])};
}

/* Products in an element of the result. */
static double products_of(const hpct_dnn_claim *claim, const hpct_cuda_direct *d)
{
    double window = (double) d->kernel_h * d->kernel_w;
    return claim->way == HPCT_DNN_FORWARD ? window * d->in_c / d->groups
           : claim->way == HPCT_DNN_DATA  ? window * d->out_c / d->groups
                                          : (double) d->n * d->cells;
}

static size_t offsets_bytes(void)
{
    return hpct_cuda_align_up(SAMPLES * sizeof(size_t)) +
           hpct_cuda_align_up((SAMPLES + 1) * sizeof(float));
}

size_t hpct_cuda_self_test_bytes(const hpct_dnn_graph *graph)
{
    return offsets_bytes() +
           hpct_cuda_align_up(count_of(graph, graph->claim.kernel) * sizeof(float));
}

static hpct_status draw(const hpct_dnn_graph *graph, int tensor, void *to)
{
    return hpct_cuda_check(hpct_cuda_launch_uniform(number_of(graph->type[tensor]),
                                                    count_of(graph, tensor), (uint64_t) tensor + 1,
                                                    to),
                           "uniform");
}

hpct_status hpct_cuda_self_test_open(hpct_cuda_self_test *test, const hpct_dnn_graph *graph,
                                     void *const *pointers, void *memory)
{
    const hpct_dnn_claim *claim = &graph->claim;
    void *at[HPCT_DNN_MOST_TENSORS] = {NULL};
    int next = 0;
    *test = (hpct_cuda_self_test){0};
    for (int i = 0; i < graph->num_tensors; i++) {
        if (graph->inside[i])
            continue;
        at[i] = pointers[next++];
        HPCT_TRY(draw(graph, i, at[i]));
    }
    float *kernel = (float *) (void *) ((char *) memory + offsets_bytes());
    *test = (hpct_cuda_self_test){.graph = graph,
                                  .result = at[claim->result],
                                  .offset = memory,
                                  .samples =
                                      claim->way == HPCT_DNN_WEIGHTS ? SAMPLES_OF_KERNEL : SAMPLES};
    test->worst =
        (float *) (void *) ((char *) memory + hpct_cuda_align_up(SAMPLES * sizeof(size_t)));
    test->expected = test->worst + 1;
    HPCT_TRY(
        hpct_cuda_check(hpct_cuda_launch_cast(hpct_cuda_gpu.stream, count_of(graph, claim->kernel),
                                              number_of(graph->type[claim->kernel]),
                                              at[claim->kernel], HPCT_FP32, kernel),
                        "cast"));
    hpct_cuda_self_test_case c = {.way = claim->way == HPCT_DNN_FORWARD
                                             ? HPCT_CUDA_SELF_TEST_FORWARD
                                         : claim->way == HPCT_DNN_DATA ? HPCT_CUDA_SELF_TEST_DATA
                                                                       : HPCT_CUDA_SELF_TEST_KERNEL,
                                  .conv = direct_of(graph),
                                  .type = number_of(graph->type[claim->src]),
                                  .src = at[claim->src],
                                  .dst = at[claim->dst],
                                  .kernel = kernel,
                                  .initial = claim->added ? test->result : NULL,
                                  .other = claim->other >= 0 ? at[claim->other] : NULL,
                                  .bias = claim->bias >= 0 ? at[claim->bias] : NULL,
                                  .relu = claim->relu};
    return hpct_cuda_check(
        hpct_cuda_launch_self_test_expect(&c, test->samples, test->offset, test->expected),
        "proof");
}

hpct_status hpct_cuda_self_test_run(const hpct_cuda_self_test *test,
                                    hpct_status (*run)(void *argument), void *argument, bool *right)
{
    const hpct_dnn_graph *graph = test->graph;
    float worst = 0;
    *right = false;
    const hpct_dnn_claim *claim = &graph->claim;
    hpct_cuda_direct conv = direct_of(graph);
    cudnnDataType_t type = graph->type[claim->result];
    double tolerance = TOLERANCE * fmax(1, sqrt(products_of(claim, &conv)) / 3);
    if (claim->added)
        HPCT_TRY(draw(graph, claim->result, test->result));
    else /* not a number in any type */
        HPCT_TRY(HPCT_CUDA(cudaMemsetAsync(test->result, 0xff, graph->bytes[claim->result],
                                           hpct_cuda_gpu.stream)));
    HPCT_TRY(run(argument));
    HPCT_TRY(hpct_cuda_check(
        hpct_cuda_launch_self_test_deviation(number_of(type), test->samples, test->offset,
                                             test->expected, test->result, (float) tolerance,
                                             (float) relative_of(type), test->worst),
        "proof"));
    HPCT_TRY(hpct_cuda_to_host(&worst, test->worst, sizeof worst));
    *right = worst <= 1;
    return HPCT_OK;
}
