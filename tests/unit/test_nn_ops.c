/* Every operation of every backend against the reference: forward, both gradients, fused updates,
 * over random shapes. */
#include "tests/unit/nn_case.h"
#include "tests/unit/unit.h"

#include "nn/norm_line.h"
#include "nn/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOLERANCE 2e-5
#define DEVICE_TOLERANCE 1e-4 /* other orders of sums, other exponentials */
#define TF32_TOLERANCE 3e-3   /* ten bits of products' operands */
#define BF16_TOLERANCE 1e-2   /* eight bits of results */
#define FP16_TOLERANCE 1.5e-3 /* eleven */

/* The backend that HPC_TRAIN_TEST_BACKEND names, instead of all that are built in; NULL: none. */
static const hpct_backend *wanted(void)
{
    const char *name = getenv("HPC_TRAIN_TEST_BACKEND");
    const hpct_backend *found = NULL;
    if (name != NULL && hpct_backend_find(&found, name) != HPCT_OK)
        fail_msg("%s", hpct_last_error());
    return found;
}

static double tolerance(const nn_case *c)
{
    if (c->values != HPCT_FP32)
        return c->values == HPCT_BF16 ? BF16_TOLERANCE : FP16_TOLERANCE;
    const hpct_backend *backend = wanted();
    const char *tf32 = getenv("NVIDIA_TF32_OVERRIDE");
    if (backend == NULL || backend->device == NULL)
        return TOLERANCE;
    return tf32 != NULL && strcmp(tf32, "0") == 0 ? DEVICE_TOLERANCE : TF32_TOLERANCE;
}

/* With NN_OPS_ON_HOST the GPU's own kernels, on the host: which Conv2D and Dense are not. */
#ifdef NN_OPS_ON_HOST
#include "tests/unit/cuda_backend.h"
#define BACKENDS cuda_backends_on_host
#define HAS(kind) ((kind) != HPCT_OP_CONV2D && (kind) != HPCT_OP_DENSE)
#else
#define BACKENDS hpct_backends
#define HAS(kind) true
#endif

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
                    "out %dx%dx%d groups %d relu %d no bias %d diff %d plain %d %s\n",
                    hpct_op_kind_name(c->spec.kind), c->n, c->other_n, w->in_h, w->in_w, w->in_c,
                    w->kernel_h, w->kernel_w, w->stride_h, w->stride_w, w->dilation_h,
                    w->dilation_w, w->pad_top, w->pad_left, w->out_h, w->out_w, w->out_c, w->groups,
                    c->spec.relu, c->spec.no_bias, c->needs_diff_src, c->plain_layout,
                    hpct_precision_name(c->precision));
    else if (c->spec.kind == HPCT_OP_BATCH_NORM)
        print_error("%s n %d rows %d channels %d relu %d diff %d add %d inference %d\n",
                    hpct_op_kind_name(c->spec.kind), c->n, c->spec.norm.rows, c->spec.norm.channels,
                    c->spec.relu, c->needs_diff_src, c->add, c->inference);
    else if (c->spec.kind == HPCT_OP_ADD || c->spec.kind == HPCT_OP_CONCATENATE)
        print_error("%s n %d rows %d of %d inputs, first size %d, relu %d add %d\n",
                    hpct_op_kind_name(c->spec.kind), c->n, c->spec.join.rows, c->spec.join.count,
                    c->spec.join.size[0], c->spec.relu, c->add);
    else
        print_error("%s n %d/%d rows %d in %d out %d relu %d diff %d fuse %d %s\n",
                    hpct_op_kind_name(c->spec.kind), c->n, c->other_n, c->spec.dense.rows,
                    c->spec.dense.in, c->spec.dense.out, c->spec.relu, c->needs_diff_src,
                    c->fuse_update, hpct_precision_name(c->precision));
}

static void compare_within(const nn_case *c, const char *what, const float *got,
                           const float *expected, size_t count, double most)
{
    double difference = nn_difference(got, expected, count);
    if (!(difference <= most)) {
        describe(c);
        print_error("numbers in %s\n", hpct_precision_name(c->values));
        fail_msg("%s differs by %g of its largest value", what, difference);
    }
}

static void compare(const nn_case *c, const char *what, const float *got, const float *expected,
                    size_t count)
{
    compare_within(c, what, got, expected, count, tolerance(c));
}

/* Where more is rounded on the way. */
static void compare_loosely(const nn_case *c, const char *what, const float *got,
                            const float *expected, size_t count)
{
    compare_within(c, what, got, expected, count, 4 * tolerance(c));
}

/* With a fused update a parameter has moved by -rate * gradient instead. */
static void compare_params(const nn_case *c, const nn_result *got, const nn_result *expected)
{
    for (int i = 0; i < expected->num_params; i++) {
        size_t count = expected->param_count[i];
        bool fused = c->fuse_update && !c->forward_only && isnan(got->grad[i][0]);
        if (!fused) {
            if (!c->forward_only && !hpct_op_param_is_state(&c->spec, i))
                compare(c, i == HPCT_OP_KERNEL ? "first gradient" : "second gradient", got->grad[i],
                        expected->grad[i], count);
            compare(c, "parameter", got->param[i], expected->param[i], count);
            continue;
        }
        for (size_t k = 0; k < count; k++)
            expected->param[i][k] -= 0.5f * expected->grad[i][k];
        compare(c, "updated parameter", got->param[i], expected->param[i], count);
    }
}

static int added; /* cases in which a backend did, but for the reference */

static void check_backend(const nn_case *c, const hpct_backend *backend, uint64_t seed,
                          const nn_result *expected)
{
    nn_result *got = nn_case_run(c, backend, seed, expected->dst, 1);
    if (got == NULL) {
        describe(c);
        fail_msg("%s: %s", backend->name, hpct_last_error());
    }
    added += got->added;
    compare(c, "forward", got->dst, expected->dst, expected->dst_count);
    for (int k = 0; k < expected->num_inputs && c->needs_diff_src && !c->forward_only; k++)
        compare(c, "source gradient", got->diff_src[k], expected->diff_src[k],
                expected->src_count[k]);
    if (got->broke_promise || expected->broke_promise) {
        describe(c);
        fail_msg("diff_dst is not kept");
    }
    if (got->wrote_behind || expected->wrote_behind) {
        describe(c);
        fail_msg("it wrote behind the memory that it had asked for");
    }
    compare_params(c, got, expected);
    if (got->bad_padding > 0) {
        describe(c);
        fail_msg("%zu numbers in the padding", got->bad_padding);
    }
    nn_result_free(got);
}

static int with_blocks; /* cases so far */

/* And with channels in blocks, where the backend knows them. */
static void check_blocks(const nn_case *c, const hpct_backend *backend, uint64_t seed,
                         const nn_result *expected)
{
    hpct_blocking blocking =
        backend->blocking != NULL ? backend->blocking(&c->spec, c->precision) : HPCT_BLOCKS_NEVER;
    for (int layout = 1; layout < 4; layout++) {
        nn_case blocks = *c;
        blocks.spec.src_blocks = (layout & 1) != 0;
        blocks.spec.dst_blocks = (layout & 2) != 0;
        if (blocking == HPCT_BLOCKS_NEVER || !nn_case_can_be_blocks(c) ||
            (blocking == HPCT_BLOCKS_ALL && layout != 3))
            continue;
        check_backend(&blocks, backend, seed, expected);
        with_blocks++;
    }
}

static int in_16_bits; /* cases so far */

/* And with numbers of 16 bits in memory, where the backend can have them: each type in turn. */
static void check_low(const nn_case *c, const hpct_backend *backend, uint64_t seed)
{
    nn_case low = *c;
    low.values = low.precision = in_16_bits % 2 == 0 ? HPCT_FP16 : HPCT_BF16;
    if (!backend->low_values || backend->check_precision(low.values) != HPCT_OK)
        return;
    nn_result *expected = nn_case_run(&low, &hpct_backend_ref, seed, NULL, 1);
    assert_non_null(expected);
    check_backend(&low, backend, seed, expected);
    nn_result_free(expected);
    in_16_bits++;
}

static void check_case(const nn_case *c)
{
    uint64_t seed = draws;
    nn_case as_done = *c;
    if (!HAS(c->spec.kind))
        return;
    if (c->precision != HPCT_FP32) {
        nn_result *first = nn_case_run(c, &hpct_backend_cpu, seed, NULL, 1);
        assert_non_null(first);
        as_done.precision = first->precision;
        nn_result_free(first);
    }
    nn_result *expected = nn_case_run(&as_done, &hpct_backend_ref, seed, NULL, 1);
    assert_non_null(expected);
    if (wanted() != NULL) {
        check_backend(c, wanted(), seed, expected);
        check_low(c, wanted(), seed);
    }
    for (int b = 0; BACKENDS[b] != NULL && wanted() == NULL; b++) {
        if (BACKENDS[b] == &hpct_backend_ref)
            continue;
        check_backend(c, BACKENDS[b], seed, expected);
        check_blocks(c, BACKENDS[b], seed, expected);
        check_low(c, BACKENDS[b], seed);
    }
    nn_result_free(expected);
}

/* bf16 in a third of the cases, where this machine has it. */
static hpct_precision pick_precision(void)
{
    bool low = pick(0, 2) == 0 && wanted() == NULL;
    return low && hpct_backend_cpu.check_precision(HPCT_BF16) == HPCT_OK ? HPCT_BF16 : HPCT_FP32;
}

/* Channels, often as many as make whole blocks. */
static int pick_channels(int most)
{
    return pick(0, 1) == 0 ? pick(1, most) : HPCT_CHANNEL_BLOCK * pick(1, 3);
}

/* Some of the picture becomes a frame of zeros around a smaller one. */
static void draw_frame(hpct_window *w)
{
    int top = pick(0, w->kernel_h - 1), left = pick(0, w->kernel_w - 1);
    w->pad_zeros = true;
    w->pad_top = top < w->in_h ? top : 0;
    w->pad_left = left < w->in_w ? left : 0;
    w->in_h -= w->pad_top;
    w->in_w -= w->pad_left;
    w->in_h -= w->in_h > 1 && w->kernel_h > 1 ? pick(0, 1) : 0;
    w->in_w -= w->in_w > 1 && w->kernel_w > 1 ? pick(0, 1) : 0;
}

static nn_case random_window_case(hpct_op_kind kind, int max_in_c, int max_out_c)
{
    bool conv = kind == HPCT_OP_CONV2D, same = pick(0, 1) == 1;
    int kernel[2] = {pick(1, 5), pick(1, 5)}, strides[2] = {pick(1, 3), pick(1, 3)};
    int in[3] = {pick(kernel[0], 12), pick(kernel[1], 12),
                 conv ? pick(1, max_in_c) : pick_channels(max_in_c)};
    nn_case c = {.n = pick(1, 5)};
    c.precision = pick_precision();
    c.spec.kind = kind;
    c.spec.window = nn_window(in, conv ? pick(1, max_out_c) : in[2], kernel, strides, same);
    if (kind == HPCT_OP_MAX_POOL2D && !same && pick(0, 1) == 1)
        draw_frame(&c.spec.window);
    c.spec.relu = conv && pick(0, 1) == 1;
    c.spec.no_bias = conv && pick(0, 3) == 0;
    c.needs_diff_src = !conv || pick(0, 1) == 1;
    c.add = !conv && pick(0, 1) == 1;
    c.other_n = pick(0, 2) == 0 ? pick(1, 9) : 0;
    c.plain_layout = pick(0, 3) == 0;
    return c;
}

static void conv2d_matches(void **state)
{
    (void) state;
    for (int i = 0; i < unit_cases(150); i++) {
        nn_case c = random_window_case(HPCT_OP_CONV2D, 20, 40);
        c.fuse_update = i % 3 == 0;
        check_case(&c);
    }
}

/* Whose source others read, too: its gradient is added to theirs, if they have any. */
static void conv2d_of_a_shared_source_matches(void **state)
{
    (void) state;
    int cases = unit_cases(120), asked = 0;
    added = 0;
    for (int i = 0; i < cases; i++) {
        nn_case c = random_window_case(HPCT_OP_CONV2D, 20, 40);
        c.needs_diff_src = c.shares_src = true;
        c.add = i % 2 == 0;
        asked += c.add;
        check_case(&c);
    }
    print_message("%d of %d convolutions added to gradients\n", added, asked);
}

/* And what another operation made. */
static void conv2d_that_adds_matches(void **state)
{
    (void) state;
    if (wanted() == NULL || !wanted()->makes_sums)
        skip();
    for (int i = 0; i < unit_cases(100); i++) {
        nn_case c = random_window_case(HPCT_OP_CONV2D, 20, 40);
        c.spec.relu = false;
        c.adds = true;
        c.adds_relu = pick(0, 1) == 1;
        check_case(&c);
    }
}

/* The sums of what it has written. */
static void compare_moments(const nn_case *c, const nn_result *r)
{
    size_t channels = (size_t) c->spec.window.out_c;
    for (size_t k = 0; k < channels; k++) {
        double sum = 0, squares = 0;
        for (size_t i = k; i < r->dst_count; i += channels) {
            sum += (double) r->dst[i];
            squares += (double) r->dst[i] * (double) r->dst[i];
        }
        double room = 1e-2 * sqrt(squares * (double) r->dst_count / (double) channels) + 1e-6;
        assert_true(fabs((double) r->moments[k] - sum) <= room);
        assert_true(fabs((double) r->moments[channels + k] - squares) <= 1e-2 * squares + 1e-6);
    }
}

static void bias_has_no_gradient(const nn_result *r)
{
    for (size_t k = 0; k < r->param_count[1] && r->num_params > 1; k++)
        assert_true(r->grad[1][k] == 0);
}

static void conv2d_leaves_moments(void **state)
{
    (void) state;
    const hpct_backend *backend = wanted();
    int left = 0, cases = unit_cases(60);
    if (backend == NULL || !backend->leaves_moments)
        skip();
    for (int i = 0; i < cases; i++) {
        nn_case c = random_window_case(HPCT_OP_CONV2D, 20, 40);
        c.spec.window.out_c = (c.spec.window.out_c + 7) / 8 * 8;
        c.spec.relu = false;
        c.leaves_bias = !c.spec.no_bias; /* as of what is normalized */
        c.moments = true;
        c.values = i % 2 == 0 ? HPCT_BF16 : HPCT_FP16;
        c.precision = c.values;
        nn_result *r = nn_case_run(&c, backend, (uint64_t) i, NULL, 1);
        if (r == NULL)
            fail_msg("%s", hpct_last_error());
        left += r->moments != NULL;
        if (r->moments != NULL)
            compare_moments(&c, r);
        bias_has_no_gradient(r);
        nn_result_free(r);
    }
    print_message("%d of %d convolutions left moments\n", left, cases);
}

/* Of what a normalization before it would have made. Scale and shift may be in 16 bits, too. */
static void conv2d_that_normalizes_matches(void **state)
{
    (void) state;
    const hpct_backend *backend = wanted();
    int taken = 0, cases = unit_cases(60);
    if (backend == NULL || backend->takes_norm == NULL)
        skip();
    for (int i = 0; i < cases; i++) {
        nn_case c = random_window_case(HPCT_OP_CONV2D, 40, 40);
        hpct_window *w = &c.spec.window;
        w->in_c = 32 * pick(1, 3);
        w->out_c = 32 * pick(1, 3);
        if (i == 0) { /* one of ResNet-50, for which libraries are made */
            *w = nn_window((int[]){14, 14, 64}, 64, (int[]){3, 3}, (int[]){1, 1}, true);
            c.n = 4;
        }
        hpct_op_spec norm = {.kind = HPCT_OP_BATCH_NORM,
                             .relu = true,
                             .norm = {.rows = w->in_h * w->in_w, .channels = w->in_c}};
        c.spec.relu = false;
        c.leaves_bias = !c.spec.no_bias;
        c.needs_diff_src = c.moments = true;
        c.small_integers = 3;
        c.norm = &norm;
        c.values = c.precision = HPCT_FP16;
        nn_result *r = nn_case_run(&c, backend, draws, NULL, 1);
        if (r == NULL && strstr(hpct_last_error(), "has no engine") != NULL)
            continue; /* others are right, whether they are worth it or not */
        nn_result *expected = nn_case_run(&c, &hpct_backend_ref, draws, NULL, 1);
        if (expected == NULL || r == NULL)
            fail_msg("%s", hpct_last_error());
        compare_moments(&c, r);
        compare_loosely(&c, "forward", r->dst, expected->dst, r->dst_count);
        compare_loosely(&c, "source gradient", r->diff_src[0], expected->diff_src[0],
                        r->src_count[0]);
        compare_loosely(&c, "kernel gradient", r->grad[0], expected->grad[0], r->param_count[0]);
        bias_has_no_gradient(r);
        size_t channels = (size_t) w->in_c, step = hpct_norm_line_step(channels);
        compare_loosely(&c, "sums of the gradient", r->norm_sums, expected->norm_sums, channels);
        compare_loosely(&c, "sums of the scaled gradient", r->norm_sums + step,
                        expected->norm_sums + step, channels);
        nn_result_free(expected);
        nn_result_free(r);
        taken++;
    }
    print_message("%d of %d convolutions took a normalization\n", taken, cases);
    assert_true(taken > 0 || getenv("HPC_TRAIN_TEST_ENGINES") != NULL); /* which leaves some out */
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
    for (int i = 0; i < unit_cases(40); i++) {
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
    for (int i = 0; i < unit_cases(40); i++) {
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
        c.precision = pick_precision();
        c.spec.kind = HPCT_OP_DENSE;
        c.spec.relu = pick(0, 1) == 1;
        c.spec.no_bias = pick(0, 3) == 0;
        c.spec.dense.rows = pick(0, 3) == 0 ? pick(2, 4) : 1;
        c.spec.dense.in = i % 20 == 0 ? pick(4000, 9000) : pick(1, 300); /* block by block */
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
    for (int i = 0; i < unit_cases(60); i++) {
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
        bool round = pick(0, 1) == 1;
        c.spec.kind = i % 2 == 0 ? HPCT_OP_ADD : HPCT_OP_CONCATENATE;
        c.spec.relu = i % 2 == 0 && pick(0, 1) == 1;
        c.spec.join.rows = pick(1, 60);
        c.spec.join.count = pick(2, HPCT_NODE_MAX_INPUTS);
        for (int k = 0; k < c.spec.join.count; k++)
            c.spec.join.size[k] = i % 2 == 0 && k > 0 ? c.spec.join.size[0]
                                  : round             ? HPCT_CHANNEL_BLOCK * pick(1, 3)
                                                      : pick(1, 50);
        check_case(&c);
    }
}

/* Random channels and rows, with and without gamma and beta. */
static void batch_norm_matches(void **state)
{
    (void) state;
    for (int i = 0; i < unit_cases(80); i++) {
        nn_case c = {.n = pick(1, 20), .needs_diff_src = pick(0, 3) > 0};
        c.add = c.needs_diff_src && pick(0, 1) == 1;
        c.spec.kind = HPCT_OP_BATCH_NORM;
        c.spec.relu = pick(0, 1) == 1;
        c.spec.norm.rows = pick(0, 3) == 0 ? pick(2, 400) : pick(2, 50);
        c.spec.norm.channels = pick(0, 1) == 0 ? pick(1, 100) : 16 * pick(1, 12);
        c.spec.norm.no_scale = pick(0, 3) == 0;
        c.spec.norm.no_center = pick(0, 3) == 0;
        c.spec.norm.momentum = 0.9f;
        c.spec.norm.epsilon = 1e-3f;
        c.inference = c.forward_only = pick(0, 4) == 0;
        check_case(&c);
    }
}

static void pad2d_matches(void **state)
{
    (void) state;
    for (int i = 0; i < unit_cases(40); i++) {
        nn_case c = {.n = pick(1, 9), .needs_diff_src = true, .add = pick(0, 1) == 1};
        hpct_window *w = &c.spec.window;
        c.spec.kind = HPCT_OP_PAD2D;
        *w = (hpct_window){.in_h = pick(1, 9),
                           .in_w = pick(1, 9),
                           .in_c = pick_channels(20),
                           .kernel_h = 1,
                           .kernel_w = 1,
                           .stride_h = 1,
                           .stride_w = 1,
                           .dilation_h = 1,
                           .dilation_w = 1,
                           .pad_top = pick(0, 3),
                           .pad_left = pick(0, 3),
                           .groups = 1};
        w->out_h = w->in_h + w->pad_top + pick(0, 3);
        w->out_w = w->in_w + w->pad_left + pick(0, 3);
        w->out_c = w->in_c;
        check_case(&c);
    }
}

static void dropout_and_rescaling_match(void **state)
{
    (void) state;
    for (int i = 0; i < unit_cases(40); i++) {
        nn_case c = {.n = pick(1, 30), .needs_diff_src = true, .inference = pick(0, 4) == 0};
        c.spec.kind = i % 2 == 0 ? HPCT_OP_DROPOUT : HPCT_OP_RESCALING;
        c.spec.rate = pick(0, 10) == 0 ? 1 : pick(1, 9) / 10.0;
        c.spec.scale = (float) pick(1, 5) / 3;
        c.spec.offset = (float) pick(-2, 2);
        c.spec.dense.rows = 1;
        c.spec.dense.in = c.spec.dense.out = pick(1, 2000);
        check_case(&c);
    }
}

static void pictures_match(void **state)
{
    (void) state;
    static const hpct_op_kind kinds[] = {HPCT_OP_RESIZING, HPCT_OP_RANDOM_CROP,
                                         HPCT_OP_RANDOM_FLIP};
    for (int i = 0; i < unit_cases(60); i++) {
        nn_case c = {.n = pick(1, 9), .needs_diff_src = true, .inference = pick(0, 2) == 0};
        hpct_picture *p = &c.spec.picture;
        c.spec.kind = kinds[i % 3];
        *p = (hpct_picture){.in_h = pick(1, 20),
                            .in_w = pick(1, 20),
                            .channels = pick(1, 5),
                            .horizontal = pick(0, 1) == 1,
                            .vertical = pick(0, 1) == 1};
        bool larger = pick(0, 1) == 1; /* only then a crop is drawn */
        p->out_h = i % 3 == 2 ? p->in_h : larger ? pick(1, p->in_h) : pick(1, 30);
        p->out_w = i % 3 == 2 ? p->in_w : larger ? pick(1, p->in_w) : pick(1, 30);
        check_case(&c);
    }
}

/* The cases above had some of each kind, unless this processor has no use for blocks. */
static void blocks_were_tried(void **state)
{
    (void) state;
    if (wanted() != NULL) /* channels last alone */
        skip();
    nn_case c = {.n = 1, .spec = {.kind = HPCT_OP_BATCH_NORM, .norm = {.rows = 2, .channels = 16}}};
    if (!HAS(HPCT_OP_CONV2D) ||
        hpct_backend_cpu.blocking(&c.spec, c.precision) == HPCT_BLOCKS_NEVER)
        skip();
    assert_true(with_blocks > unit_cases(150));
}

/* In both types, by every operation that may lie so. */
static void numbers_of_16_bits_were_tried(void **state)
{
    (void) state;
    const hpct_backend *backend = wanted() != NULL ? wanted() : BACKENDS[0];
    if (!backend->low_values)
        skip();
    assert_true(in_16_bits > unit_cases(400));
}

/* Some of the output's cells alone, from any cell of a row to any. */
/* One column of results from windows that leave columns out, and strides above 2: oneDNN 3's kernel
 * for AMX is wrong there. */
static void conv2d_of_one_column_matches(void **state)
{
    (void) state;
    for (int i = 0; i < unit_cases(60); i++) {
        nn_case c = {.n = pick(1, 5), .other_n = pick(0, 2) == 0 ? pick(1, 9) : 0};
        int kernel[2] = {pick(1, 5), pick(1, 5)}, strides[2] = {pick(1, 4), pick(2, 4)};
        int columns = pick(0, 1) == 0 ? 1 : pick(1, 9);
        int in[3] = {pick(kernel[0], 24), kernel[1] + (columns - 1) * strides[1], pick(5, 40)};
        c.spec.kind = HPCT_OP_CONV2D;
        c.spec.window = nn_window(in, pick(3, 40), kernel, strides, false);
        c.spec.relu = pick(0, 1) == 1;
        c.spec.no_bias = pick(0, 1) == 1;
        assert_true(c.spec.window.out_w == columns);
        check_case(&c);
    }
}

static void conv2d_of_some_cells_matches(void **state)
{
    (void) state;
    for (int i = 0; i < unit_cases(60); i++) {
        nn_case c = {.n = pick(1, 5), .other_n = pick(0, 2) == 0 ? pick(1, 9) : 0};
        int kernel[2] = {pick(1, 4), pick(1, 4)}, strides[2] = {pick(1, 2), pick(1, 2)};
        int in[3] = {pick(kernel[0], 14), pick(kernel[1], 30), pick(1, 4)};
        hpct_window *w = &c.spec.window;
        c.spec.kind = HPCT_OP_CONV2D;
        *w = nn_window(in, 16 * pick(1, 3), kernel, strides, false);
        w->first_cell = pick(0, w->out_h * w->out_w - 1);
        w->cells = pick(1, w->out_h * w->out_w - w->first_cell);
        c.spec.relu = pick(0, 1) == 1;
        c.spec.no_bias = pick(0, 1) == 1;
        assert_true(hpct_window_is_small(w));
        check_case(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conv2d_matches),
        cmocka_unit_test(conv2d_that_adds_matches),
        cmocka_unit_test(conv2d_of_a_shared_source_matches),
        cmocka_unit_test(conv2d_leaves_moments),
        cmocka_unit_test(conv2d_that_normalizes_matches),
        cmocka_unit_test(conv2d_of_round_channels_matches),
        cmocka_unit_test(conv2d_of_groups_and_holes_matches),
        cmocka_unit_test(conv2d_of_pictures_matches),
        cmocka_unit_test(conv2d_of_some_cells_matches),
        cmocka_unit_test(conv2d_of_one_column_matches),
        cmocka_unit_test(max_pool2d_matches),
        cmocka_unit_test(average_pool2d_matches),
        cmocka_unit_test(max_pool2d_gives_ties_to_the_first),
        cmocka_unit_test(dense_matches),
        cmocka_unit_test(activations_match),
        cmocka_unit_test(joins_match),
        cmocka_unit_test(batch_norm_matches),
        cmocka_unit_test(pad2d_matches),
        cmocka_unit_test(dropout_and_rescaling_match),
        cmocka_unit_test(pictures_match),
        cmocka_unit_test(blocks_were_tried),
        cmocka_unit_test(numbers_of_16_bits_were_tried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
