/* Convolutions of small windows by the GPU's own kernels, on the host, beside the reference. */
#include "tests/gpu_without/kernels/cuda_backend.h"
#include "tests/unit/nn/nn_case.h"
#include "tests/unit/unit.h"

#include "nn/backend/cuda/ops.h"
#include "nn/backend/cuda/transpose.h"
#include "nn/backend/cuda/window.h"
#include "nn/backend/ref/kernels.h"
#include "nn/graph/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t draws;

static int pick(int low, int high)
{
    return low + (int) (hpct_graph_uniform(11, 1, draws++) * (float) (high - low + 1));
}

static void *room(size_t count)
{
    void *memory = aligned_alloc(64, (count * sizeof(float) + 63) / 64 * 64);
    assert_non_null(memory);
    memset(memory, 0xff, count * sizeof(float)); /* not a number in any type */
    return memory;
}

/* Of fp32, and as they lie in memory: rounded, both the same. */
typedef struct numbers {
    size_t count;
    float *value;
    void *low;
} numbers;

static void read_back(const numbers *x, hpct_precision type)
{
    assert_int_equal(hpct_cuda_launch_cast(NULL, x->count, type, x->low, HPCT_FP32, x->value),
                     cudaSuccess);
}

static numbers drawn(size_t count, hpct_precision type)
{
    numbers x = {count, room(count), room(count)};
    for (size_t i = 0; i < count; i++)
        x.value[i] = 2 * hpct_graph_uniform(11, 2, draws++) - 1;
    assert_int_equal(hpct_cuda_launch_cast(NULL, count, HPCT_FP32, x.value, type, x.low),
                     cudaSuccess);
    read_back(&x, type);
    return x;
}

static void free_numbers(numbers *x)
{
    free(x->value);
    free(x->low);
}

static void check(const hpct_graph_window *w, int n, hpct_precision type, bool relu, bool has_bias)
{
    const hpct_cuda_direct d = hpct_cuda_window_direct(w, n);
    const size_t outs = (size_t) w->out_c, taps = (size_t) (w->kernel_h * w->kernel_w * w->in_c);
    const size_t cells = (size_t) n * (size_t) d.cells;
    const double bound = type == HPCT_FP32 ? 1e-5 : 1e-2;
    numbers src = drawn((size_t) n * (size_t) (w->in_h * w->in_w * w->in_c), type),
            diff = drawn(cells * outs, type), dst = drawn(cells * outs, type),
            keras = drawn(taps * outs, HPCT_FP32), bias = drawn(outs, HPCT_FP32);
    float *kernel = room(taps * outs), *expected = room(cells * outs), *masked = room(cells * outs);
    float *keras_grad = room(taps * outs), *kernel_grad = room(taps * outs),
          *bias_grad = room(outs), *grad = room(taps * outs), *own_bias = room(outs);
    void *before = room(cells * outs);
    const size_t bytes = hpct_cuda_small_scratch_bytes(&d);
    float *scratch = room(bytes / sizeof(float) + 16);
    assert_true(hpct_cuda_small_fits(&d));

    hpct_cuda_transpose(taps, outs, keras.value, kernel);
    hpct_ref_conv2d_forward(w, n, src.value, keras.value, has_bias ? bias.value : NULL, expected);
    for (size_t i = 0; i < cells * outs; i++)
        expected[i] = relu && !(expected[i] > 0) ? 0 : expected[i];
    assert_int_equal(hpct_cuda_launch_small_forward(type, &d, src.low, kernel,
                                                    has_bias ? bias.value : NULL, relu, dst.low),
                     cudaSuccess);
    read_back(&dst, type);
    assert_true(nn_difference(dst.value, expected, cells * outs) < bound);

    for (size_t i = 0; i < cells * outs; i++)
        masked[i] = relu && !(dst.value[i] > 0) ? 0 : diff.value[i];
    hpct_ref_conv2d_backward_weights(w, n, src.value, masked, keras_grad, bias_grad);
    hpct_cuda_transpose(taps, outs, keras_grad, kernel_grad);
    memcpy(before, diff.low, cells * outs * (type == HPCT_FP32 ? 4 : 2));
    assert_int_equal(hpct_cuda_launch_small_backward(type, &d, src.low, relu ? dst.low : NULL,
                                                     diff.low, grad, has_bias ? own_bias : NULL,
                                                     scratch),
                     cudaSuccess);
    assert_true(nn_difference(grad, kernel_grad, taps * outs) < 1e-5);
    if (has_bias)
        assert_true(nn_difference(own_bias, bias_grad, outs) < 1e-5);
    else
        assert_true(isnan(own_bias[0]));
    assert_memory_equal(before, diff.low, cells * outs * (type == HPCT_FP32 ? 4 : 2));
    for (size_t i = bytes / sizeof(float); i < bytes / sizeof(float) + 16; i++)
        assert_true(isnan(scratch[i]));

    numbers *all[] = {&src, &diff, &dst, &keras, &bias};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free_numbers(all[i]);
    void *others[] = {kernel,    expected, masked,   keras_grad, kernel_grad,
                      bias_grad, grad,     own_bias, before,     scratch};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        free(others[i]);
}

TEST(drawn_windows_match)
{
    for (int i = 0; i < unit_cases(120); i++) {
        int in[] = {pick(1, 12), pick(1, 12), pick(1, 3)};
        int kernel[] = {pick(1, 4), pick(1, HPCT_CUDA_SMALL_TAPS / in[2] / 4)};
        kernel[1] = kernel[1] < 1 ? 1 : kernel[1];
        int strides[] = {pick(1, 3), pick(1, 3)}, dilation[] = {pick(1, 2), pick(1, 2)};
        bool fits = hpct_graph_window_reach(kernel[0], dilation[0]) <= in[0] &&
                    hpct_graph_window_reach(kernel[1], dilation[1]) <= in[1];
        int most = HPCT_CUDA_SMALL_NUMBERS / (kernel[0] * kernel[1] * in[2]);
        hpct_graph_window w =
            nn_dilated_window(in, pick(0, 3) == 0 ? 8 * pick(1, 5) : pick(1, most < 80 ? most : 80),
                              kernel, strides, dilation, 1, !fits || pick(0, 1) == 0);
        check(&w, pick(1, 5), (hpct_precision) pick(0, 2), pick(0, 1) == 0, pick(0, 2) > 0);
    }
}

/* The first layers of the two MNIST models, with more parts than one, and of one on CIFAR-10. */
TEST(first_layers_match)
{
    int one[] = {1, 1}, three[] = {3, 3}, five[] = {5, 5};
    hpct_graph_window first = nn_window((int[]){28, 28, 1}, 32, three, one, false),
                      second = nn_window((int[]){28, 28, 1}, 32, five, one, false),
                      third = nn_window((int[]){32, 32, 3}, 32, three, one, true);
    check(&first, 3, HPCT_BF16, true, true);
    check(&second, 2, HPCT_FP32, true, true);
    check(&third, 1, HPCT_FP16, false, false);
}

TEST(others_do_not_fit)
{
    int one[] = {1, 1}, three[] = {3, 3}, seven[] = {7, 7};
    hpct_graph_window large = nn_window((int[]){28, 28, 3}, 32, seven, one, false),
                      many = nn_window((int[]){28, 28, 1}, 512, three, one, false),
                      grouped = nn_dilated_window((int[]){28, 28, 2}, 8, three, one, one, 2, false);
    hpct_cuda_direct shapes[] = {
        hpct_cuda_window_direct(&large, 1), hpct_cuda_window_direct(&many, 1),
        hpct_cuda_window_direct(&grouped, 1), hpct_cuda_window_direct(&many, 1),
        hpct_cuda_window_direct(&many, 1)};
    shapes[3].out_c = shapes[4].out_c = 8;
    assert_true(hpct_cuda_small_fits(&shapes[3]));
    shapes[3].cells--; /* a part of them */
    shapes[4].n = 1 << 20;
    for (int i = 0; i < 5; i++)
        assert_false(hpct_cuda_small_fits(&shapes[i]));
}
