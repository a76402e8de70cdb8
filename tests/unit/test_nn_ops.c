/* Every operation of every backend against the reference: forward, both gradients, fused updates,
 * over random shapes. */
#include "tests/unit/nn_case.h"
#include "tests/unit/unit.h"

#include "nn/rng.h"

#include <math.h>

#define TOLERANCE 2e-5

static uint64_t draws;

static int pick(int low, int high)
{
    return low + (int) (hpct_uniform(42, 7, draws++) * (float) (high - low + 1));
}

static void describe(const nn_case *c)
{
    const hpct_window *w = &c->spec.window;
    if (c->spec.kind == HPCT_OP_CONV2D || c->spec.kind == HPCT_OP_MAX_POOL2D ||
        c->spec.kind == HPCT_OP_AVERAGE_POOL2D)
        print_error("%s n %d/%d in %dx%dx%d kernel %dx%d stride %dx%d dilation %dx%d pad %d,%d "
                    "out %dx%dx%d groups %d relu %d no bias %d diff %d plain %d\n",
                    hpct_op_kind_name(c->spec.kind), c->n, c->other_n, w->in_h, w->in_w, w->in_c,
                    w->kernel_h, w->kernel_w, w->stride_h, w->stride_w, w->dilation_h,
                    w->dilation_w, w->pad_top, w->pad_left, w->out_h, w->out_w, w->out_c, w->groups,
                    c->spec.relu, c->spec.no_bias, c->needs_diff_src, c->plain_layout);
    else if (c->spec.kind == HPCT_OP_ADD || c->spec.kind == HPCT_OP_CONCATENATE)
        print_error("%s n %d rows %d of %d inputs, first size %d, relu %d add %d\n",
                    hpct_op_kind_name(c->spec.kind), c->n, c->spec.join.rows, c->spec.join.count,
                    c->spec.join.size[0], c->spec.relu, c->add);
    else
        print_error("%s n %d/%d rows %d in %d out %d relu %d diff %d fuse %d\n",
                    hpct_op_kind_name(c->spec.kind), c->n, c->other_n, c->spec.dense.rows,
                    c->spec.dense.in, c->spec.dense.out, c->spec.relu, c->needs_diff_src,
                    c->fuse_update);
}

static void compare(const nn_case *c, const char *what, const float *got, const float *expected,
                    size_t count)
{
    double difference = nn_difference(got, expected, count);
    if (difference > TOLERANCE) {
        describe(c);
        fail_msg("%s differs by %g of its largest value", what, difference);
    }
}

/* With a fused update the kernel has moved by -rate * gradient instead. */
static void compare_params(const nn_case *c, const nn_result *got, const nn_result *expected)
{
    for (int i = 0; i < expected->num_params; i++) {
        size_t count = expected->param_count[i];
        bool fused = c->fuse_update && i == HPCT_OP_KERNEL && isnan(got->grad[i][0]);
        if (!fused) {
            compare(c, i == HPCT_OP_KERNEL ? "kernel gradient" : "bias gradient", got->grad[i],
                    expected->grad[i], count);
            compare(c, "parameter", got->param[i], expected->param[i], count);
            continue;
        }
        for (size_t k = 0; k < count; k++)
            expected->param[i][k] -= 0.5f * expected->grad[i][k];
        compare(c, "updated kernel", got->param[i], expected->param[i], count);
    }
}

static void check_case(const nn_case *c)
{
    uint64_t seed = draws;
    nn_result *expected = nn_case_run(c, &hpct_backend_ref, seed, NULL, 1);
    assert_non_null(expected);
    for (int b = 0; hpct_backends[b] != NULL; b++) {
        if (hpct_backends[b] == &hpct_backend_ref)
            continue;
        nn_result *got = nn_case_run(c, hpct_backends[b], seed, expected->dst, 1);
        if (got == NULL) {
            describe(c);
            fail_msg("%s: %s", hpct_backends[b]->name, hpct_last_error());
        }
        compare(c, "forward", got->dst, expected->dst, expected->dst_count);
        for (int k = 0; k < expected->num_inputs && c->needs_diff_src; k++)
            compare(c, "source gradient", got->diff_src[k], expected->diff_src[k],
                    expected->src_count[k]);
        if (got->broke_promise || expected->broke_promise) {
            describe(c);
            fail_msg("diff_dst is not kept");
        }
        compare_params(c, got, expected);
        if (got->bad_padding > 0) {
            describe(c);
            fail_msg("%zu numbers in the padding", got->bad_padding);
        }
        nn_result_free(got);
    }
    nn_result_free(expected);
}

static nn_case random_window_case(hpct_op_kind kind, int max_in_c, int max_out_c)
{
    bool conv = kind == HPCT_OP_CONV2D, same = pick(0, 1) == 1;
    int kernel[2] = {pick(1, 5), pick(1, 5)}, strides[2] = {pick(1, 3), pick(1, 3)};
    int in[3] = {pick(kernel[0], 12), pick(kernel[1], 12), pick(1, max_in_c)};
    nn_case c = {.n = pick(1, 5)};
    c.spec.kind = kind;
    c.spec.window = nn_window(in, conv ? pick(1, max_out_c) : in[2], kernel, strides, same);
    c.spec.relu = conv && pick(0, 1) == 1;
    c.spec.no_bias = conv && pick(0, 3) == 0;
    c.needs_diff_src = !conv || pick(0, 1) == 1;
    c.other_n = pick(0, 2) == 0 ? pick(1, 9) : 0;
    c.plain_layout = pick(0, 3) == 0;
    return c;
}

static void conv2d_matches(void **state)
{
    (void) state;
    for (int i = 0; i < unit_cases(150); i++) {
        nn_case c = random_window_case(HPCT_OP_CONV2D, 20, 40);
        check_case(&c);
    }
}

/* Multiples of 16, where oneDNN's blocked kernels work. */
static void conv2d_of_round_channels_matches(void **state)
{
    (void) state;
    for (int i = 0; i < unit_cases(40); i++) {
        nn_case c = random_window_case(HPCT_OP_CONV2D, 1, 1);
        int in[3] = {c.spec.window.in_h, c.spec.window.in_w, 16 * pick(1, 3)};
        int kernel[2] = {c.spec.window.kernel_h, c.spec.window.kernel_w};
        int strides[2] = {c.spec.window.stride_h, c.spec.window.stride_w};
        c.spec.window = nn_window(in, 16 * pick(1, 4), kernel, strides, pick(0, 1) == 1);
        check_case(&c);
    }
}

/* Dilated and grouped ones, and depthwise ones, whose groups have one channel. */
static void conv2d_of_groups_and_holes_matches(void **state)
{
    (void) state;
    for (int i = 0; i < unit_cases(60); i++) {
        nn_case c = {.n = pick(1, 5), .other_n = pick(0, 2) == 0 ? pick(1, 9) : 0};
        int kernel[2] = {pick(1, 4), pick(1, 4)}, strides[2] = {1, 1}, dilation[2] = {1, 1};
        int *apart = pick(0, 2) == 0 ? strides : dilation;
        apart[0] = pick(1, 3);
        apart[1] = pick(1, 3);
        int groups = pick(1, 3) == 1 ? 1 : pick(2, 20), each = pick(0, 2) == 0 ? 1 : pick(1, 17);
        int in[3] = {pick(hpct_window_reach(kernel[0], dilation[0]), 14),
                     pick(hpct_window_reach(kernel[1], dilation[1]), 14), groups * each};
        c.spec.kind = HPCT_OP_CONV2D;
        c.spec.window = nn_dilated_window(in, groups * pick(1, 4), kernel, strides, dilation,
                                          groups, pick(0, 1) == 1);
        c.spec.relu = pick(0, 1) == 1;
        c.spec.no_bias = pick(0, 1) == 1;
        c.needs_diff_src = pick(0, 1) == 1;
        c.plain_layout = pick(0, 3) == 0;
        check_case(&c);
    }
}

/* First layers: few input channels, nothing to pass back. */
static void conv2d_of_pictures_matches(void **state)
{
    (void) state;
    for (int i = 0; i < unit_cases(60); i++) {
        int kernel[2] = {pick(1, 7), pick(1, 7)}, strides[2] = {pick(1, 2), pick(1, 2)};
        int in[3] = {pick(kernel[0], 20), pick(kernel[1], 30), pick(1, 4)};
        nn_case c = {.n = pick(1, 9), .other_n = pick(0, 1) * pick(1, 12)};
        c.spec.kind = HPCT_OP_CONV2D;
        c.spec.window = nn_window(in, 16 * pick(1, 5), kernel, strides, false);
        c.spec.relu = pick(0, 1) == 1;
        c.spec.no_bias = pick(0, 1) == 1;
        check_case(&c);
    }
}

static void max_pool2d_matches(void **state)
{
    (void) state;
    for (int i = 0; i < unit_cases(120); i++) {
        nn_case c = random_window_case(HPCT_OP_MAX_POOL2D, 40, 0);
        check_case(&c);
    }
}

static void average_pool2d_matches(void **state)
{
    (void) state;
    for (int i = 0; i < unit_cases(80); i++) {
        nn_case c = random_window_case(HPCT_OP_AVERAGE_POOL2D, 40, 0);
        check_case(&c);
    }
}

static void max_pool2d_gives_ties_to_the_first(void **state)
{
    (void) state;
    for (int i = 0; i < unit_cases(40); i++) {
        nn_case c = random_window_case(HPCT_OP_MAX_POOL2D, 40, 0);
        c.small_integers = 2;
        check_case(&c);
    }
}

static void dense_matches(void **state)
{
    (void) state;
    for (int i = 0; i < unit_cases(120); i++) {
        nn_case c = {.n = pick(1, 70), .other_n = pick(0, 1) * pick(1, 70)};
        c.spec.kind = HPCT_OP_DENSE;
        c.spec.relu = pick(0, 1) == 1;
        c.spec.no_bias = pick(0, 3) == 0;
        c.spec.dense.rows = pick(0, 3) == 0 ? pick(2, 4) : 1;
        c.spec.dense.in = pick(1, 300);
        c.spec.dense.out = pick(1, 70);
        c.needs_diff_src = pick(0, 1) == 1;
        c.fuse_update = pick(0, 1) == 1;
        check_case(&c);
    }
}

static void activations_match(void **state)
{
    (void) state;
    static const hpct_op_kind kinds[] = {HPCT_OP_RELU,    HPCT_OP_SOFTMAX, HPCT_OP_RELU6,
                                         HPCT_OP_SIGMOID, HPCT_OP_TANH,    HPCT_OP_GELU};
    for (int i = 0; i < unit_cases(120); i++) {
        nn_case c = {.n = pick(1, 30),
                     .other_n = pick(0, 1) * pick(1, 30),
                     .needs_diff_src = true,
                     .small_integers = pick(0, 1) * 9}; /* 0 and 6 among them: ReLU6 bends there */
        c.spec.kind = kinds[i % 6];
        c.spec.dense.rows = pick(1, 40);
        c.spec.dense.in = c.spec.dense.out = pick(1, 100);
        check_case(&c);
    }
}

static void joins_match(void **state)
{
    (void) state;
    for (int i = 0; i < unit_cases(80); i++) {
        nn_case c = {.n = pick(1, 30), .needs_diff_src = true, .add = pick(0, 1) == 1};
        c.spec.kind = i % 2 == 0 ? HPCT_OP_ADD : HPCT_OP_CONCATENATE;
        c.spec.relu = i % 2 == 0 && pick(0, 1) == 1;
        c.spec.join.rows = pick(1, 60);
        c.spec.join.count = pick(2, HPCT_NODE_MAX_INPUTS);
        for (int k = 0; k < c.spec.join.count; k++)
            c.spec.join.size[k] = i % 2 == 0 && k > 0 ? c.spec.join.size[0] : pick(1, 50);
        check_case(&c);
    }
}

static void vectors_match(void **state)
{
    (void) state;
    for (int i = 0; i < unit_cases(20); i++) {
        size_t count = (size_t) pick(1, 70000);
        float *a[2], *b = hpct_host_allocate(count * sizeof(float));
        for (int k = 0; k < 2; k++) {
            a[k] = hpct_host_allocate(count * sizeof(float));
            for (size_t j = 0; j < count; j++) {
                a[k][j] = hpct_uniform(draws, 0, j) - 0.5f;
                b[j] = hpct_uniform(draws, 1, j) - 0.5f;
            }
            const hpct_backend *backend = k == 0 ? &hpct_backend_ref : hpct_backends[0];
            assert_int_equal(backend->add(count, b, a[k]), HPCT_OK);
            assert_int_equal(backend->scale(count, 0.3f, a[k]), HPCT_OK);
        }
        assert_true(nn_difference(a[1], a[0], count) < 1e-6);
        hpct_host_release(a[0]);
        hpct_host_release(a[1]);
        hpct_host_release(b);
    }
}

static void sgd_matches(void **state)
{
    (void) state;
    for (int i = 0; i < unit_cases(40); i++) {
        size_t count = (size_t) pick(1, 70000);
        float *arrays[3], *expected[3];
        for (int k = 0; k < 3; k++) {
            arrays[k] = hpct_host_allocate(count * sizeof(float));
            expected[k] = hpct_host_allocate(count * sizeof(float));
            for (size_t j = 0; j < count; j++)
                arrays[k][j] = expected[k][j] = hpct_uniform(draws, (uint32_t) k, j) - 0.5f;
        }
        hpct_sgd_call call = {
            .learning_rate = 0.1f, .momentum = i % 2 == 0 ? 0.9f : 0.0f, .count = count};
        for (int b = 0; hpct_backends[b] != NULL; b++) {
            bool ref = hpct_backends[b] == &hpct_backend_ref;
            call.param = ref ? expected[0] : arrays[0];
            call.grad = ref ? expected[1] : arrays[1];
            call.velocity = i % 2 != 0 ? NULL : ref ? expected[2] : arrays[2];
            assert_int_equal(hpct_backends[b]->sgd(&call), HPCT_OK);
        }
        for (int k = 0; k < 3; k++) {
            assert_true(nn_difference(arrays[k], expected[k], count) < 1e-6);
            hpct_host_release(arrays[k]);
            hpct_host_release(expected[k]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conv2d_matches),
        cmocka_unit_test(conv2d_of_round_channels_matches),
        cmocka_unit_test(conv2d_of_groups_and_holes_matches),
        cmocka_unit_test(conv2d_of_pictures_matches),
        cmocka_unit_test(max_pool2d_matches),
        cmocka_unit_test(average_pool2d_matches),
        cmocka_unit_test(max_pool2d_gives_ties_to_the_first),
        cmocka_unit_test(dense_matches),
        cmocka_unit_test(activations_match),
        cmocka_unit_test(joins_match),
        cmocka_unit_test(vectors_match),
        cmocka_unit_test(sgd_matches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
