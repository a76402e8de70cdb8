/* The reference's gradients against central differences, everything in double precision. */
#define HPCT_REF_REAL double
#include "nn/backend/ref/kernels.h"
#include "tests/unit/nn/nn_case.h"
#include "tests/unit/unit.h"

#include "nn/graph/rng.h"

#include <math.h>

#define STEP 1e-5
#define TOLERANCE 1e-7

static uint64_t draws;

static int pick(int low, int high)
{
    return low + (int) (hpct_graph_uniform(11, 1, draws++) * (float) (high - low + 1));
}

static double *random_doubles(size_t count)
{
    double *memory = malloc(count * sizeof *memory);
    assert_non_null(memory);
    for (size_t i = 0; i < count; i++)
        memory[i] = 2 * (double) hpct_graph_uniform(11, 2, draws++) - 1;
    return memory;
}

/* An operation under test: forward into `dst`, and how many numbers there are. The scalar that is
 * differentiated is sum(weight * dst). */
typedef struct probe {
    void (*forward)(const struct probe *p);
    const hpct_op_spec *spec;
    int n;
    size_t src_count, kernel_count, bias_count, dst_count;
    double *src, *kernel, *bias, *dst, *weight;
    double *diff_src, *diff_kernel, *diff_bias; /* of the reference's backward */
} probe;

static probe new_probe(void (*forward)(const probe *p), const hpct_op_spec *spec, int n, size_t src,
                       size_t kernel, size_t bias, size_t dst)
{
    return (probe){.forward = forward,
                   .spec = spec,
                   .n = n,
                   .src_count = src,
                   .kernel_count = kernel,
                   .bias_count = bias,
                   .dst_count = dst,
                   .src = random_doubles(src),
                   .kernel = random_doubles(kernel),
                   .bias = random_doubles(bias),
                   .dst = random_doubles(dst),
                   .weight = random_doubles(dst),
                   .diff_src = random_doubles(src),
                   .diff_kernel = random_doubles(kernel),
                   .diff_bias = random_doubles(bias)};
}

static double scalar(const probe *p)
{
    double sum = 0;
    p->forward(p);
    for (size_t i = 0; i < p->dst_count; i++)
        sum += p->weight[i] * p->dst[i];
    return sum;
}

static void check(const probe *p, const char *what, double *at, const double *gradient,
                  size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double kept = at[i];
        at[i] = kept + STEP;
        double above = scalar(p);
        at[i] = kept - STEP;
        double below = scalar(p);
        at[i] = kept;
        double numerical = (above - below) / (2 * STEP);
        if (fabs(numerical - gradient[i]) > TOLERANCE * (1 + fabs(numerical)))
            fail_msg("%s[%zu]: %.12g, numerically %.12g", what, i, gradient[i], numerical);
    }
}

/* Then frees the probe. */
static void check_source(probe *p, const char *what)
{
    check(p, what, p->src, p->diff_src, p->src_count);
    free(p->src), free(p->kernel), free(p->bias), free(p->dst), free(p->weight);
    free(p->diff_src), free(p->diff_kernel), free(p->diff_bias);
}

static void check_kernel(const probe *p, const char *what)
{
    check(p, what, p->kernel, p->diff_kernel, p->kernel_count);
}

static void check_bias(const probe *p, const char *what)
{
    check(p, what, p->bias, p->diff_bias, p->bias_count);
}

static void conv2d(const probe *p)
{
    hpct_ref64_conv2d_forward(&p->spec->window, p->n, p->src, p->kernel, p->bias, p->dst);
}

static void max_pool2d(const probe *p)
{
    hpct_ref64_max_pool2d_forward(&p->spec->window, p->n, p->src, p->dst);
}

static void average_pool2d(const probe *p)
{
    hpct_ref64_average_pool2d_forward(&p->spec->window, p->n, p->src, p->dst);
}

static void dense(const probe *p)
{
    hpct_ref64_dense_forward(p->n * p->spec->dense.rows, p->spec->dense.in, p->spec->dense.out,
                             p->src, p->kernel, p->bias, p->dst);
}

static void softmax(const probe *p)
{
    hpct_ref64_softmax_forward(p->n * p->spec->dense.rows, p->spec->dense.out, p->src, p->dst);
}

TEST(elements_agree)
{
    static const hpct_op_kind kinds[] = {HPCT_GRAPH_ELEMENT_ROWS(HPCT_OP_OF_ELEMENT)};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const hpct_op_spec spec = {
            .kind = kinds[k], .slope = 0.3F, .threshold = 0.5F, .most = 2.5F};
        for (int i = 0; i < 200; i++) {
            double x[3], y[3], slope, one = 1;
            x[1] = 9 * (2 * (double) hpct_graph_uniform(11, 3, draws++) - 1);
            x[0] = x[1] - STEP;
            x[2] = x[1] + STEP;
            hpct_ref64_element_forward(&spec, 3, x, y);
            hpct_ref64_element_backward(
                &spec, 1, hpct_op_gradient_from_src(kinds[k]) ? &x[1] : &y[1], &one, &slope);
            double numerical = (y[2] - y[0]) / (2 * STEP);
            if (fabs(numerical - slope) > TOLERANCE)
                fail_msg("%s at %g: %.12g, numerically %.12g", hpct_op_kind_name(kinds[k]), x[1],
                         slope, numerical);
        }
    }
}

/* Numbers that Keras gives: keras.activations.f([-7, -1, -0.5, 0, 0.5, 1, 7]). */
TEST(activations_have_keras_values)
{
    static const double x[7] = {-7, -1, -0.5, 0, 0.5, 1, 7};
    static const struct {
        hpct_op_kind kind;
        double y[7];
    } kinds[] = {
        {HPCT_OP_RELU6, {0, 0, 0, 0, 0.5, 1, 6}},
        {HPCT_OP_SIGMOID,
         {0.000911051, 0.268941421, 0.377540669, 0.5, 0.622459331, 0.731058579, 0.999088949}},
        {HPCT_OP_TANH,
         {-0.999998337, -0.761594156, -0.462117157, 0, 0.462117157, 0.761594156, 0.999998337}},
        {HPCT_OP_GELU, {-8.96e-12, -0.158655254, -0.154268770, 0, 0.345731230, 0.841344746, 7}},
        {HPCT_OP_SILU,
         {-0.006377358, -0.268941421, -0.188770334, 0, 0.311229666, 0.731058579, 6.993622642}},
        {HPCT_OP_MISH,
         {-0.006380263, -0.303401461, -0.220743775, 0, 0.375245211, 0.865098388, 6.999988380}},
        {HPCT_OP_HARD_SIGMOID, {0, 2 / 6.0, 2.5 / 6, 0.5, 3.5 / 6, 4 / 6.0, 1}},
        {HPCT_OP_HARD_SILU, {0, -2 / 6.0, -1.25 / 6, 0, 1.75 / 6, 4 / 6.0, 7}},
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const hpct_op_spec spec = {.kind = kinds[k].kind};
        double y[7];
        hpct_ref64_element_forward(&spec, 7, x, y);
        for (int i = 0; i < 7; i++)
            assert_true(fabs(y[i] - kinds[k].y[i]) < 1e-9);
    }
}

static hpct_op_spec random_window(hpct_op_kind kind)
{
    int kernel[2] = {pick(1, 3), pick(1, 3)}, strides[2] = {pick(1, 3), pick(1, 3)};
    int dilation[2] = {1, 1}, groups = kind == HPCT_OP_CONV2D ? pick(1, 3) : 1;
    for (int k = 0; k < 2 && kind == HPCT_OP_CONV2D; k++)
        dilation[k] = pick(1, 2); /* together with strides: not in Keras, but defined */
    int in[3] = {pick(hpct_graph_window_reach(kernel[0], dilation[0]), 6),
                 pick(hpct_graph_window_reach(kernel[1], dilation[1]), 6), groups * pick(1, 3)};
    hpct_op_spec spec = {.kind = kind};
    spec.window = nn_dilated_window(in, kind == HPCT_OP_CONV2D ? groups * pick(1, 3) : in[2],
                                    kernel, strides, dilation, groups, pick(0, 1) == 1);
    return spec;
}

TEST(windows_agree)
{
    for (int i = 0; i < 80; i++) {
        static const struct {
            hpct_op_kind kind;
            void (*forward)(const probe *);
            const char *source;
        } kinds[] = {{HPCT_OP_CONV2D, conv2d, "conv2d source"},
                     {HPCT_OP_MAX_POOL2D, max_pool2d, "max_pool2d source"},
                     {HPCT_OP_CONV2D, conv2d, "conv2d source"},
                     {HPCT_OP_AVERAGE_POOL2D, average_pool2d, "average_pool2d source"}};
        hpct_op_kind kind = kinds[i % 4].kind;
        hpct_op_spec spec = random_window(kind);
        const hpct_graph_window *w = &spec.window;
        int n = pick(1, 3);
        size_t src = (size_t) (n * w->in_h * w->in_w * w->in_c),
               dst = (size_t) (n * w->out_h * w->out_w * w->out_c),
               kernel = (size_t) (w->kernel_h * w->kernel_w * w->in_c / w->groups * w->out_c),
               bias = (size_t) w->out_c;
        probe p = new_probe(kinds[i % 4].forward, &spec, n, src, kernel, bias, dst);
        if (kind == HPCT_OP_CONV2D) {
            hpct_ref64_conv2d_backward_data(w, n, p.weight, p.kernel, p.diff_src);
            hpct_ref64_conv2d_backward_weights(w, n, p.src, p.weight, p.diff_kernel, p.diff_bias);
            check_kernel(&p, "conv2d kernel");
            check_bias(&p, "conv2d bias");
        } else if (kind == HPCT_OP_MAX_POOL2D) {
            hpct_ref64_max_pool2d_backward(w, n, p.src, p.weight, p.diff_src);
        } else {
            hpct_ref64_average_pool2d_backward(w, n, p.weight, p.diff_src);
        }
        check_source(&p, kinds[i % 4].source);
    }
}

TEST(rows_agree)
{
    for (int i = 0; i < 60; i++) {
        int n = pick(1, 4);
        bool is_dense = i % 2 == 0;
        hpct_op_spec spec = {.dense = {.rows = pick(1, 3), .in = pick(1, 6)}};
        spec.dense.out = is_dense ? pick(1, 6) : spec.dense.in;
        int rows = n * spec.dense.rows, in = spec.dense.in, out = spec.dense.out;
        size_t src = (size_t) (rows * in), dst = (size_t) (rows * out),
               kernel = (size_t) (in * out);
        probe p = new_probe(is_dense ? dense : softmax, &spec, n, src, kernel, (size_t) out, dst);
        p.forward(&p);
        if (is_dense) {
            hpct_ref64_dense_backward_data(rows, in, out, p.weight, p.kernel, p.diff_src);
            hpct_ref64_dense_backward_weights(rows, in, out, p.src, p.weight, p.diff_kernel,
                                              p.diff_bias);
            check_kernel(&p, "dense kernel");
            check_bias(&p, "dense bias");
        } else {
            hpct_ref64_softmax_backward(rows, out, p.dst, p.weight, p.diff_src);
        }
        check_source(&p, "source");
    }
}

static void multiply(const probe *p)
{
    hpct_ref64_multiply_forward(p->spec, p->n, p->src, p->kernel, p->dst);
}

TEST(products_agree)
{
    for (int i = 0; i < 40; i++) {
        hpct_op_spec spec = {.kind = HPCT_OP_MULTIPLY,
                             .join = {.rows = pick(1, 5), .count = 2, .broadcasts = i % 2 == 0}};
        spec.join.size[0] = spec.join.size[1] = pick(1, 4);
        int n = pick(1, 3);
        size_t count = (size_t) n * hpct_op_src_floats(&spec, 0),
               other = (size_t) n * hpct_op_src_floats(&spec, 1);
        probe p = new_probe(multiply, &spec, n, count, other, 0, count);
        hpct_ref64_multiply_backward(&spec, n, 0, p.kernel, p.weight, false, p.diff_src);
        hpct_ref64_multiply_backward(&spec, n, 1, p.src, p.weight, false, p.diff_kernel);
        check_kernel(&p, "second factor");
        check_source(&p, "first factor");
    }
}

#define LINE_ROWS 6
#define LINE_SIZE 12

static void prelu(const probe *p)
{
    hpct_ref64_prelu_forward(LINE_ROWS, LINE_SIZE, (size_t) p->n, p->src, p->kernel, p->dst);
}

static void normalization(const probe *p)
{
    hpct_ref64_normalization_forward((size_t) LINE_ROWS * LINE_SIZE / (size_t) p->n, (size_t) p->n,
                                     p->kernel, p->src, p->dst);
}

/* probe.n: number of slopes, or of channels. */
TEST(lines_agree)
{
    const size_t count = (size_t) LINE_ROWS * LINE_SIZE;
    static const int periods[] = {LINE_SIZE, 3, 1};
    for (int i = 0; i < 6; i++) {
        bool slopes = i % 2 == 0;
        size_t period = (size_t) periods[i / 2], numbers = slopes ? period : 3 * period;
        probe p =
            new_probe(slopes ? prelu : normalization, NULL, (int) period, count, numbers, 0, count);
        if (slopes) {
            hpct_ref64_prelu_backward(LINE_ROWS, LINE_SIZE, period, p.src, p.kernel, p.weight,
                                      p.diff_src, p.diff_kernel);
            check_kernel(&p, "alpha");
        } else {
            hpct_ref64_normalization_backward(count / period, period, p.kernel, p.weight,
                                              p.diff_src);
        }
        check_source(&p, "source");
    }
}

static void batch_norm(const probe *p)
{
    size_t rows = (size_t) (p->n * p->spec->norm.rows), channels = (size_t) p->spec->norm.channels;
    double mean[8], variance[8];
    hpct_ref64_batch_norm_statistics(rows, channels, p->src, mean, variance);
    hpct_ref64_batch_norm_forward(rows, channels, 1e-3, p->src, mean, variance, p->kernel, p->bias,
                                  p->dst);
}

/* Through the batch's own mean and variance. */
TEST(batch_norm_agrees)
{
    for (int i = 0; i < 40; i++) {
        hpct_op_spec spec = {.norm = {.rows = pick(2, 5), .channels = pick(1, 8)}};
        int n = pick(2, 4);
        size_t rows = (size_t) (n * spec.norm.rows), channels = (size_t) spec.norm.channels,
               count = rows * channels;
        probe p = new_probe(batch_norm, &spec, n, count, channels, channels, count);
        double mean[8], variance[8];
        hpct_ref64_batch_norm_statistics(rows, channels, p.src, mean, variance);
        hpct_ref64_batch_norm_backward(rows, channels, 1e-3, p.src, mean, variance, p.kernel,
                                       p.weight, false, p.diff_src, p.diff_kernel, p.diff_bias);
        check_kernel(&p, "gamma");
        check_bias(&p, "beta");
        check_source(&p, "source");
    }
}

static void group_norm(const probe *p)
{
    double mean[64], variance[64];
    hpct_ref64_group_norm_statistics(p->spec, p->n, p->src, mean, variance);
    hpct_ref64_group_norm_forward(p->spec, p->n, p->src, mean, variance, p->kernel, p->bias,
                                  p->dst);
}

/* Through the statistics; layer normalization has rows, the others have cells. */
TEST(group_norm_agrees)
{
    for (int i = 0; i < 40; i++) {
        bool layer = i % 2 == 0;
        hpct_op_spec spec = {.group = {.rows = layer ? pick(1, 4) : 1,
                                       .cells = layer ? 1 : pick(2, 5),
                                       .groups = layer ? 1 : pick(1, 3),
                                       .epsilon = 1e-3f}};
        spec.group.channels = spec.group.groups * pick(2, 4);
        int n = pick(1, 4);
        size_t channels = (size_t) spec.group.channels,
               count = (size_t) (n * spec.group.rows * spec.group.cells) * channels;
        probe p = new_probe(group_norm, &spec, n, count, channels, channels, count);
        double mean[64], variance[64];
        hpct_ref64_group_norm_statistics(&spec, n, p.src, mean, variance);
        hpct_ref64_group_norm_backward(&spec, n, p.src, mean, variance, p.kernel, p.weight, false,
                                       p.diff_src, p.diff_kernel, p.diff_bias);
        check_kernel(&p, "gamma");
        check_bias(&p, "beta");
        check_source(&p, "source");
    }
}

/* Linear operations: backward is forward's transpose, <forward(x), y> = <x, backward(y)>. */
static void compare_products(const char *what, const double *x, const double *back, size_t in,
                             const double *forth, const double *y, size_t out)
{
    double left = 0, right = 0;
    for (size_t i = 0; i < out; i++)
        left += forth[i] * y[i];
    for (size_t i = 0; i < in; i++)
        right += x[i] * back[i];
    if (fabs(left - right) > 1e-12 * (double) (in + out))
        fail_msg("%s: %.15g forward, %.15g backward", what, left, right);
}

TEST(resizing_agrees)
{
    for (int i = 0; i < 100; i++) {
        hpct_graph_picture p = {.in_h = pick(1, 7),
                                .in_w = pick(1, 7),
                                .out_h = pick(1, 7),
                                .out_w = pick(1, 7),
                                .channels = pick(1, 3),
                                .nearest = pick(0, 2) == 0};
        size_t in = (size_t) (p.in_h * p.in_w * p.channels),
               out = (size_t) (p.out_h * p.out_w * p.channels);
        double *x = random_doubles(in), *y = random_doubles(out), *forth = random_doubles(out),
               *back = random_doubles(in);
        hpct_backend_box whole = hpct_backend_box_whole(&p);
        hpct_ref64_resize_forward(&p, &whole, x, forth);
        hpct_ref64_resize_backward(&p, y, back);
        compare_products("resize", x, back, in, forth, y, out);
        free(x), free(y), free(forth), free(back);
    }
}

TEST(dropout_agrees)
{
    const hpct_graph_draw draw = {.seed = 9, .stream = 2, .step = 4};
    const hpct_backend_dropout dropout = hpct_backend_dropout_make(&draw, 0.4);
    double *x = random_doubles(300), *y = random_doubles(300), *forth = random_doubles(300),
           *back = random_doubles(300);
    hpct_ref64_dropout(&dropout, 3, 3, 1, 100, x, forth);
    hpct_ref64_dropout(&dropout, 3, 3, 1, 100, y, back);
    compare_products("dropout", x, back, 300, forth, y, 300);
    free(x), free(y), free(forth), free(back);
}

/* Rows of a sample lose the same elements, but not rows of another. */
TEST(dropout_of_rows_agrees)
{
    const hpct_graph_draw draw = {.seed = 9, .stream = 2, .step = 4};
    const hpct_backend_dropout dropout = hpct_backend_dropout_make(&draw, 0.4);
    double ones[240], kept[240];
    int differ = 0;
    for (int i = 0; i < 240; i++)
        ones[i] = 1;
    hpct_ref64_dropout(&dropout, 3, 2, 4, 30, ones, kept);
    for (int i = 0; i < 240; i++)
        assert_true(kept[i] == kept[i / 120 * 120 + i % 30]);
    for (int i = 0; i < 30; i++)
        differ += kept[i] != kept[120 + i];
    assert_true(differ > 0);
}

/* Mean 0 and the standard deviation, over many; each sample and step has its own. */
TEST(noise_is_normal)
{
    enum { COUNT = 40000 };
    hpct_graph_draw draw = {.seed = 9, .stream = 2, .step = 4};
    double *zeros = calloc(COUNT, sizeof *zeros), *noise = random_doubles(COUNT),
           *next = random_doubles(COUNT), sum = 0, squares = 0, inside = 0;
    hpct_ref64_gaussian_noise(&draw, 0.5, 3, 2, COUNT / 2, zeros, noise);
    for (int i = 0; i < COUNT; i++) {
        sum += noise[i];
        squares += noise[i] * noise[i];
        inside += fabs(noise[i]) < 0.5;
    }
    assert_true(fabs(sum / COUNT) < 0.01 && fabs(sqrt(squares / COUNT) - 0.5) < 0.01);
    assert_true(fabs(inside / COUNT - 0.6827) < 0.01);
    assert_true(noise[0] != noise[COUNT / 2]);
    draw.step++;
    hpct_ref64_gaussian_noise(&draw, 0.5, 3, 2, COUNT / 2, zeros, next);
    assert_true(next[0] != noise[0]);
    free(zeros), free(noise), free(next);
}

/* numpy.transpose of a 2 x 3 x 4 sample, and back; the second of two samples. */
TEST(permute_agrees)
{
    const hpct_op_spec spec = {.permute = {.rank = 3, .size = {2, 3, 4}, .axes = {2, 0, 1}}};
    hpct_backend_permute there = hpct_backend_permute_make(&spec, false),
                         back = hpct_backend_permute_make(&spec, true);
    double x[48], y[48], z[48];
    for (int i = 0; i < 48; i++)
        x[i] = i;
    hpct_ref64_permute(&there, 48, x, false, y);
    hpct_ref64_permute(&back, 48, y, false, z);
    for (int i = 0; i < 48; i++) {
        int c = i % 24 / 6, h = i % 6 / 3, w = i % 3;
        assert_true(y[i] == 24 * (i / 24) + 12 * h + 4 * w + c);
        assert_true(z[i] == i);
    }
}

/* tf.image.resize of [[1, 2], [3, 4]] to 4 x 4, and of five cells to two and to three. */
TEST(resizing_has_tensorflow_values)
{
    static const double square[] = {1, 2, 3, 4}, row[] = {1, 2, 4, 8, 16};
    static const double large[] = {1,   1.25, 1.75, 2,   1.5, 1.75, 2.25, 2.5,
                                   2.5, 2.75, 3.25, 3.5, 3,   3.25, 3.75, 4};
    static const double two[] = {1.75, 10}, three[] = {4.0 / 3, 4, 40.0 / 3};
    double got[16];
    hpct_graph_picture p = {.in_h = 2, .in_w = 2, .out_h = 4, .out_w = 4, .channels = 1};
    hpct_backend_box box = hpct_backend_box_whole(&p);
    hpct_ref64_resize_forward(&p, &box, square, got);
    for (int i = 0; i < 16; i++)
        assert_true(fabs(got[i] - large[i]) < 1e-12);
    p = (hpct_graph_picture){.in_h = 1, .in_w = 5, .out_h = 1, .out_w = 2, .channels = 1};
    box = hpct_backend_box_whole(&p);
    hpct_ref64_resize_forward(&p, &box, row, got);
    assert_true(fabs(got[0] - two[0]) < 1e-12 && fabs(got[1] - two[1]) < 1e-12);
    p.nearest = true; /* the second and the fourth cell */
    hpct_ref64_resize_forward(&p, &box, row, got);
    assert_true(got[0] == 2 && got[1] == 8);
    p.nearest = false;
    p.out_w = 3;
    hpct_ref64_resize_forward(&p, &box, row, got);
    for (int i = 0; i < 3; i++)
        assert_true(fabs(got[i] - three[i]) < 1e-12);
}

static double loss_of(hpct_backend_loss_call call, const double *x, double *diff)
{
    hpct_backend_batch_sums sums;
    call.sums = &sums;
    hpct_ref64_loss_rows(&call, x, diff);
    return sums.loss;
}

/* Every form, from labels and from rows of targets, smoothed and not. */
TEST(losses_agree)
{
    for (int i = 0; i < 240; i++) {
        hpct_backend_loss_form form = (hpct_backend_loss_form) (i % HPCT_BACKEND_LOSS_FORMS);
        bool probabilities =
            form == HPCT_BACKEND_LOSS_PROBABILITIES || form == HPCT_BACKEND_LOSS_DISTRIBUTION ||
            form == HPCT_BACKEND_LOSS_BINARY || form == HPCT_BACKEND_LOSS_BINARY_FOCAL ||
            form == HPCT_BACKEND_LOSS_FOCAL || form == HPCT_BACKEND_LOSS_DIVERGENCE;
        bool binary = form == HPCT_BACKEND_LOSS_BINARY || form == HPCT_BACKEND_LOSS_BINARY_LOGITS ||
                      form == HPCT_BACKEND_LOSS_BINARY_FOCAL ||
                      form == HPCT_BACKEND_LOSS_BINARY_FOCAL_LOGITS;
        int n = pick(1, 4), classes = pick(binary ? 1 : 2, 6);
        size_t count = (size_t) (n * classes);
        double *x = random_doubles(count), *diff = random_doubles(count);
        float targets[24];
        int32_t labels[4];
        const float weights[6] = {0.5F, 3, 1, 0, 2, 1.5F};
        for (int s = 0; s < n; s++)
            labels[s] = pick(0, classes == 1 ? 1 : classes - 1);
        for (size_t k = 0; k < count; k++) {
            targets[k] = hpct_graph_uniform(11, 3, draws++);
            if (probabilities)
                x[k] = 0.01 + 0.49 * (x[k] + 1); /* inside the clipping */
        }
        bool smooth = form != HPCT_BACKEND_LOSS_PROBABILITIES && form != HPCT_BACKEND_LOSS_SQUARED;
        hpct_backend_loss_call call = {
            .form = form,
            .n = n,
            .classes = classes,
            .labels = labels,
            .targets = form != HPCT_BACKEND_LOSS_PROBABILITIES && pick(0, 1) == 1 ? targets : NULL,
            .label_smoothing = smooth && pick(0, 1) == 1 ? 0.1f : 0,
            .scale = 0.25f,
            .alpha = pick(0, 1) == 1 || form >= HPCT_BACKEND_LOSS_FOCAL_LOGITS ? 0.3f : 0,
            .gamma = pick(0, 1) == 1 ? 2 : 1.5f,
            .delta = 0.7f,
            .class_weights = pick(0, 1) == 1 ? weights : NULL};
        loss_of(call, x, diff);
        for (size_t k = 0; k < count; k++) {
            double kept = x[k];
            x[k] = kept + STEP;
            double above = loss_of(call, x, NULL);
            x[k] = kept - STEP;
            double below = loss_of(call, x, NULL);
            x[k] = kept;
            double numerical = 0.25 * (above - below) / (2 * STEP);
            if (fabs(numerical - diff[k]) > 1e-6 * (1 + fabs(numerical)))
                fail_msg("form %d: %g, numerically %g", (int) form, diff[k], numerical);
        }
        free(x);
        free(diff);
    }
}

/* Examples of Keras' documentation, and what clipping makes of certainty. */
TEST(losses_have_keras_values)
{
    const double p[] = {0.05, 0.95, 0, 0.1, 0.8, 0.1}, sure[] = {1, 0, 0}, logits[] = {2, 1, 0.1},
                 huge[] = {1e4, 0, -1e4};
    double diff[3];
    hpct_backend_batch_sums sums;
    hpct_backend_loss_call call = {.form = HPCT_BACKEND_LOSS_PROBABILITIES,
                                   .n = 2,
                                   .classes = 3,
                                   .labels = (int32_t[]){1, 2},
                                   .scale = 1,
                                   .sums = &sums};
    hpct_ref64_loss_rows(&call, p, NULL);
    assert_true(fabs(sums.loss - (0.05129329 + 2.30258509)) < 1e-5);
    assert_int_equal(sums.correct, 1);
    call.form = HPCT_BACKEND_LOSS_DISTRIBUTION;
    hpct_ref64_loss_rows(&call, p, NULL);
    assert_true(fabs(sums.loss - (0.05129329 + 2.30258509)) < 1e-5);
    call.n = 1;
    call.form = HPCT_BACKEND_LOSS_PROBABILITIES;
    assert_true(fabs(loss_of(call, sure, diff) - 16.118096) < 1e-5);
    assert_true(diff[0] == 0 && diff[1] == 0 && diff[2] == 0);
    call.form = HPCT_BACKEND_LOSS_LOGITS;
    call.labels = (int32_t[]){0};
    assert_true(fabs(loss_of(call, logits, NULL) - 0.41703) < 1e-5);
    call.labels = (int32_t[]){2};
    assert_true(loss_of(call, huge, diff) == 2e4 && diff[0] == 1 && diff[2] == -1);
    /* keras.losses.BinaryCrossentropy: 0.865 from logits, 0.714 of the second */
    const double binary[] = {-18.6, 0.51, 2.94, -12.8}, chances[] = {0.6, 0.3, 0.2, 0.8};
    call = (hpct_backend_loss_call){.form = HPCT_BACKEND_LOSS_BINARY_LOGITS,
                                    .n = 1,
                                    .classes = 4,
                                    .targets = (float[]){0, 1, 0, 0},
                                    .sums = &sums};
    assert_true(fabs(loss_of(call, binary, NULL) - 0.865) < 1e-3);
    call.form = HPCT_BACKEND_LOSS_BINARY;
    assert_true(fabs(loss_of(call, chances, NULL) -
                     (0.916291 + 1.203973 + 0.223144 + 1.609438) / 4) < 1e-5);
    call.form = HPCT_BACKEND_LOSS_SQUARED;
    assert_true(fabs(loss_of(call, chances, NULL) - (0.36 + 0.49 + 0.04 + 0.64) / 4) < 1e-12);
}

/* A factor of all that a sample has, and of nothing that is counted. */
TEST(classes_have_weights)
{
    const float weights[3] = {2, 0.5F, 0};
    double x[9] = {1, 0, 2, 0, 1, 0, 3, 1, 1}, diff[9], weighted[9], sum = 0;
    for (int s = 0; s < 3; s++) {
        int32_t label = s;
        hpct_backend_loss_call call = {
            .form = HPCT_BACKEND_LOSS_LOGITS, .n = 1, .classes = 3, .labels = &label, .scale = 1};
        double loss = loss_of(call, x + 3 * s, diff + 3 * s);
        call.class_weights = weights;
        assert_true(loss_of(call, x + 3 * s, weighted + 3 * s) == (double) weights[s] * loss);
        for (int i = 3 * s; i < 3 * s + 3; i++)
            assert_true(fabs(weighted[i] - (double) weights[s] * diff[i]) < 1e-15);
        sum += (double) weights[s] * loss;
    }
    const int32_t labels[3] = {0, 1, 2};
    hpct_backend_loss_call call = {.form = HPCT_BACKEND_LOSS_LOGITS,
                                   .n = 3,
                                   .classes = 3,
                                   .labels = labels,
                                   .class_weights = weights,
                                   .scale = 1};
    hpct_backend_batch_sums sums;
    call.sums = &sums;
    hpct_ref64_loss_rows(&call, x, NULL);
    assert_true(fabs(sums.loss - sum) < 1e-12);
    assert_int_equal(sums.correct, 1);
    /* one output: 0.5 is the weight of target 1 */
    const int32_t one = 1;
    hpct_backend_loss_call single = {.form = HPCT_BACKEND_LOSS_BINARY_LOGITS,
                                     .n = 1,
                                     .classes = 1,
                                     .labels = &one,
                                     .class_weights = weights,
                                     .scale = 1};
    assert_true(fabs(loss_of(single, x, diff) - 0.5 * log1p(exp(-1))) < 1e-12);
}

static hpct_backend_batch_sums metrics_of(hpct_backend_loss_call call, const double *x)
{
    hpct_backend_batch_sums sums;
    call.sums = &sums;
    hpct_ref64_loss_rows(&call, x, NULL);
    return sums;
}

/* Of equal outputs the first is the largest, and all are in the top k (tf.math.in_top_k). */
TEST(metrics_are_keras)
{
    const double x[] = {3, 1, 2, 1, /**/ 1, 3, 3, 0, /**/ 0, NAN, 1, 2};
    hpct_backend_loss_call call = {
        .form = HPCT_BACKEND_LOSS_SQUARED, .n = 3, .classes = 4, .top_k = 2};
    const struct {
        int32_t labels[3];
        int64_t correct, in_top_k;
    } cases[] = {{{0, 1, 3}, 3, 3}, {{2, 2, 2}, 0, 3}, {{1, 0, 1}, 0, 0}, {{3, 3, 0}, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float targets[12] = {0};
        for (int s = 0; s < 3; s++)
            targets[s * 4 + cases[i].labels[s]] = 1;
        for (int dense = 0; dense < 2; dense++) {
            call.labels = cases[i].labels;
            call.targets = dense ? targets : NULL;
            hpct_backend_batch_sums sums = metrics_of(call, x);
            assert_int_equal(sums.correct, cases[i].correct);
            assert_int_equal(sums.in_top_k, cases[i].in_top_k);
        }
    }
    const double single[] = {0.2, 0.7, 0.5, 0.9};
    call = (hpct_backend_loss_call){.form = HPCT_BACKEND_LOSS_BINARY,
                                    .n = 4,
                                    .classes = 1,
                                    .threshold = 0.5f,
                                    .labels = (int32_t[]){0, 1, 1, 0}};
    assert_int_equal(metrics_of(call, single).correct, 2);
    call.threshold = 0.8f;
    assert_int_equal(metrics_of(call, single).correct, 1);
    call.targets = (float[]){0.2f, 0.7f, 0.5f, 0.9f}; /* no number that 0 or 1 is equal to */
    assert_int_equal(metrics_of(call, single).correct, 0);
}

/* binary_accuracy is a mean over outputs; mean absolute and squared errors are, too. */
TEST(metrics_of_rows_are_keras)
{
    const double x[] = {0.9, 0.5, 0.2, 0.7, /**/ 0.1, 0.6, 0.6, 0.4};
    hpct_backend_loss_call call = {.form = HPCT_BACKEND_LOSS_BINARY,
                                   .n = 2,
                                   .classes = 4,
                                   .threshold = 0.5f,
                                   .judged = HPCT_TARGETS_BINARY,
                                   .targets = (float[]){1, 0, 0, 0, /**/ 0, 0, 1, 0.4f}};
    hpct_backend_batch_sums sums = metrics_of(call, x);
    assert_true(sums.correct == 0.75 + 0.5 && sums.in_top_k == 0);
    call.form = HPCT_BACKEND_LOSS_HUBER;
    call.delta = 0.01f;
    call.judged = HPCT_TARGETS_NUMBERS;
    call.targets = (float[]){1, 0, 0, -1, /**/ 0, 0, 2, 0};
    sums = metrics_of(call, x);
    assert_true(fabs(sums.correct - (2.5 + 2.5) / 4) < 1e-12);
    assert_true(fabs(sums.in_top_k - (0.01 + 0.25 + 0.04 + 2.89 + 0.01 + 0.36 + 1.96 + 0.16) / 4) <
                1e-12);
}
