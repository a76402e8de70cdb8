#include "tests/unit/nn/backend/ops_check.h"
#include "nn/backend/cpu/backend.h"
#include "nn/backend/ref/ref.h"
#include "nn/backends/backends.h"
#include "tests/unit/unit.h"

#include "nn/graph/rng.h"

#include <math.h>

#define TOLERANCE 2e-5
#define DEVICE_TOLERANCE 1e-4 /* other orders of sums, other exponentials */
#define TF32_TOLERANCE 3e-3   /* ten bits of products' operands */
#define BF16_TOLERANCE 1e-2   /* eight bits of results */
#define FP16_TOLERANCE 1.5e-3 /* eleven */

const hpct_backend *wanted(void)
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
#include "tests/gpu_without/kernels/cuda_backend.h"
#define BACKENDS cuda_backends_on_host
#define HAS(kind)                                                                                  \
    ((kind) != HPCT_OP_CONV2D && (kind) != HPCT_OP_DENSE && (kind) != HPCT_OP_CONV2D_TRANSPOSE)
#else
#define BACKENDS hpct_backend_table
#define HAS(kind) true
#endif

uint64_t draws;

/* With HPC_TRAIN_TEST_SEED other numbers. */
static uint64_t seed_of_cases(void)
{
    const char *seed = getenv("HPC_TRAIN_TEST_SEED");
    return 42 + (seed != NULL ? strtoull(seed, NULL, 10) : 0);
}

int pick(int low, int high)
{
    return low + (int) (hpct_graph_uniform(seed_of_cases(), 7, draws++) * (float) (high - low + 1));
}

static void describe(const nn_case *c)
{
    const hpct_graph_window *w = &c->spec.window;
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
    else if (c->spec.kind == HPCT_OP_MULTIPLY)
        print_error("%s n %d rows %d of %d, broadcasts %d add %d\n",
                    hpct_op_kind_name(c->spec.kind), c->n, c->spec.join.rows, c->spec.join.size[0],
                    c->spec.join.broadcasts, c->add);
    else if (c->spec.kind == HPCT_OP_NORMALIZATION || c->spec.kind == HPCT_OP_PRELU)
        print_error("%s n %d rows %d of %d, given %d shared %d diff %d add %d\n",
                    hpct_op_kind_name(c->spec.kind), c->n, c->spec.line.rows, c->spec.line.channels,
                    c->spec.line.given, c->spec.line.shared, c->needs_diff_src, c->add);
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

void compare_loosely(const nn_case *c, const char *what, const float *got, const float *expected,
                     size_t count)
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

int added;

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
    hpct_backend_blocking blocking = backend->blocking != NULL
                                         ? backend->blocking(&c->spec, c->precision)
                                         : HPCT_BACKEND_BLOCKS_NEVER;
    for (int layout = 1; layout < 4; layout++) {
        nn_case blocks = *c;
        blocks.spec.src_blocks = (layout & 1) != 0;
        blocks.spec.dst_blocks = (layout & 2) != 0;
        if (blocking == HPCT_BACKEND_BLOCKS_NEVER || !nn_case_can_be_blocks(c) ||
            (blocking == HPCT_BACKEND_BLOCKS_ALL && layout != 3))
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
    nn_result *expected = nn_case_run(&low, &hpct_ref_backend, seed, NULL, 1);
    assert_non_null(expected);
    check_backend(&low, backend, seed, expected);
    nn_result_free(expected);
    in_16_bits++;
}

void check_case(const nn_case *c)
{
    uint64_t seed = draws;
    nn_case as_done = *c;
    if (!HAS(c->spec.kind))
        return;
    if (c->precision != HPCT_FP32) {
        nn_result *first = nn_case_run(c, &hpct_cpu_backend, seed, NULL, 1);
        assert_non_null(first);
        as_done.precision = first->precision;
        nn_result_free(first);
    }
    nn_result *expected = nn_case_run(&as_done, &hpct_ref_backend, seed, NULL, 1);
    assert_non_null(expected);
    if (wanted() != NULL) {
        check_backend(c, wanted(), seed, expected);
        check_low(c, wanted(), seed);
    }
    for (int b = 0; BACKENDS[b] != NULL && wanted() == NULL; b++) {
        if (BACKENDS[b] == &hpct_ref_backend)
            continue;
        check_backend(c, BACKENDS[b], seed, expected);
        check_blocks(c, BACKENDS[b], seed, expected);
        check_low(c, BACKENDS[b], seed);
    }
    nn_result_free(expected);
}

hpct_precision pick_precision(void)
{
    bool low = (pick(0, 2) == 0 || getenv("HPC_TRAIN_TEST_PRECISION") != NULL) && wanted() == NULL;
    return low && hpct_cpu_backend.check_precision(HPCT_BF16) == HPCT_OK ? HPCT_BF16 : HPCT_FP32;
}

int pick_channels(int most)
{
    return pick(0, 1) == 0 ? pick(1, most) : HPCT_GRAPH_CHANNEL_BLOCK * pick(1, 3);
}

/* Some of the picture becomes a frame of zeros around a smaller one. */
static void draw_frame(hpct_graph_window *w)
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

nn_case random_window_case(hpct_op_kind kind, int max_in_c, int max_out_c)
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

void blocks_were_tried(int least)
{
    if (wanted() != NULL) /* channels last alone */
        skip();
    nn_case c = {.n = 1, .spec = {.kind = HPCT_OP_BATCH_NORM, .norm = {.rows = 2, .channels = 16}}};
    if (!HAS(HPCT_OP_CONV2D) ||
        hpct_cpu_backend.blocking(&c.spec, c.precision) == HPCT_BACKEND_BLOCKS_NEVER)
        skip();
    assert_true(with_blocks > least);
}

void values_of_16_bits_were_tried(int least)
{
    const hpct_backend *backend = wanted() != NULL ? wanted() : BACKENDS[0];
    if (!backend->low_values)
        skip();
    assert_true(in_16_bits > least);
}
