/* The reference's gradients against central differences, everything in double precision. */
#define HPCT_REF_REAL double
#include "nn/ref/kernels.h"
#include "tests/unit/nn_case.h"
#include "tests/unit/unit.h"

#include "nn/rng.h"

#include <math.h>

#define STEP 1e-5
#define TOLERANCE 1e-7

static uint64_t draws;

static int pick(int low, int high)
{
    return low + (int) (hpct_uniform(11, 1, draws++) * (float) (high - low + 1));
}

static double *random_doubles(size_t count)
{
    double *memory = malloc(count * sizeof *memory);
    assert_non_null(memory);
    for (size_t i = 0; i < count; i++)
        memory[i] = 2 * (double) hpct_uniform(11, 2, draws++) - 1;
    return memory;
}

/* An operation under test: forward into `dst`, and how many numbers there are. The scalar that is
 * differentiated is sum(weight * dst). */
typedef struct probe {
    void (*forward)(const struct probe *p);
    const hpct_op_spec *spec;
    int n;
    double *src, *kernel, *bias, *dst, *weight;
    size_t dst_count;
} probe;

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

/* Activations of single elements. */
typedef void element_forward(size_t count, const double *src, double *dst);
typedef void element_backward(size_t count, const double *data, const double *diff_dst,
                              double *diff_src);

static void elements_agree(void **state)
{
    (void) state;
    static const struct {
        const char *name;
        element_forward *forward;
        element_backward *backward;
        bool from_src;
    } kinds[] = {
        {"relu", hpct_ref64_relu_forward, hpct_ref64_relu_backward, false},
        {"relu6", hpct_ref64_relu6_forward, hpct_ref64_relu6_backward, false},
        {"sigmoid", hpct_ref64_sigmoid_forward, hpct_ref64_sigmoid_backward, false},
        {"tanh", hpct_ref64_tanh_forward, hpct_ref64_tanh_backward, false},
        {"gelu", hpct_ref64_gelu_forward, hpct_ref64_gelu_backward, true},
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (int i = 0; i < 200; i++) {
            double x[3], y[3], slope, one = 1;
            x[1] = 9 * (2 * (double) hpct_uniform(11, 3, draws++) - 1);
            x[0] = x[1] - STEP;
            x[2] = x[1] + STEP;
            kinds[k].forward(3, x, y);
            kinds[k].backward(1, kinds[k].from_src ? &x[1] : &y[1], &one, &slope);
            double numerical = (y[2] - y[0]) / (2 * STEP);
            if (fabs(numerical - slope) > TOLERANCE)
                fail_msg("%s at %g: %.12g, numerically %.12g", kinds[k].name, x[1], slope,
                         numerical);
        }
    }
}

/* Numbers that Keras gives: keras.activations.f([-7, -1, -0.5, 0, 0.5, 1, 7]). */
static void activations_have_keras_values(void **state)
{
    (void) state;
    static const double x[7] = {-7, -1, -0.5, 0, 0.5, 1, 7};
    static const struct {
        element_forward *forward;
        double y[7];
    } kinds[] = {
        {hpct_ref64_relu6_forward, {0, 0, 0, 0, 0.5, 1, 6}},
        {hpct_ref64_sigmoid_forward,
         {0.000911051, 0.268941421, 0.377540669, 0.5, 0.622459331, 0.731058579, 0.999088949}},
        {hpct_ref64_tanh_forward,
         {-0.999998337, -0.761594156, -0.462117157, 0, 0.462117157, 0.761594156, 0.999998337}},
        {hpct_ref64_gelu_forward,
         {-8.96e-12, -0.158655254, -0.154268770, 0, 0.345731230, 0.841344746, 7}},
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        double y[7];
        kinds[k].forward(7, x, y);
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
    int in[3] = {pick(hpct_window_reach(kernel[0], dilation[0]), 6),
                 pick(hpct_window_reach(kernel[1], dilation[1]), 6), groups * pick(1, 3)};
    hpct_op_spec spec = {.kind = kind};
    spec.window = nn_dilated_window(in, kind == HPCT_OP_CONV2D ? groups * pick(1, 3) : in[2],
                                    kernel, strides, dilation, groups, pick(0, 1) == 1);
    return spec;
}

static void windows_agree(void **state)
{
    (void) state;
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
        const hpct_window *w = &spec.window;
        int n = pick(1, 3);
        size_t src = (size_t) (n * w->in_h * w->in_w * w->in_c),
               dst = (size_t) (n * w->out_h * w->out_w * w->out_c),
               kernel = (size_t) (w->kernel_h * w->kernel_w * w->in_c / w->groups * w->out_c),
               bias = (size_t) w->out_c;
        probe p = {.forward = kinds[i % 4].forward,
                   .spec = &spec,
                   .n = n,
                   .src = random_doubles(src),
                   .kernel = random_doubles(kernel),
                   .bias = random_doubles(bias),
                   .dst = random_doubles(dst),
                   .weight = random_doubles(dst),
                   .dst_count = dst};
        double *diff_src = random_doubles(src), *diff_kernel = random_doubles(kernel),
               *diff_bias = random_doubles(bias);
        if (kind == HPCT_OP_CONV2D) {
            hpct_ref64_conv2d_backward_data(w, n, p.weight, p.kernel, diff_src);
            hpct_ref64_conv2d_backward_weights(w, n, p.src, p.weight, diff_kernel, diff_bias);
            check(&p, "conv2d kernel", p.kernel, diff_kernel, kernel);
            check(&p, "conv2d bias", p.bias, diff_bias, bias);
        } else if (kind == HPCT_OP_MAX_POOL2D) {
            hpct_ref64_max_pool2d_backward(w, n, p.src, p.weight, diff_src);
        } else {
            hpct_ref64_average_pool2d_backward(w, n, p.weight, diff_src);
        }
        check(&p, kinds[i % 4].source, p.src, diff_src, src);
        free(p.src), free(p.kernel), free(p.bias), free(p.dst), free(p.weight);
        free(diff_src), free(diff_kernel), free(diff_bias);
    }
}

static void rows_agree(void **state)
{
    (void) state;
    for (int i = 0; i < 60; i++) {
        int n = pick(1, 4);
        bool is_dense = i % 2 == 0;
        hpct_op_spec spec = {.dense = {.rows = pick(1, 3), .in = pick(1, 6)}};
        spec.dense.out = is_dense ? pick(1, 6) : spec.dense.in;
        int rows = n * spec.dense.rows, in = spec.dense.in, out = spec.dense.out;
        size_t src = (size_t) (rows * in), dst = (size_t) (rows * out),
               kernel = (size_t) (in * out);
        probe p = {.forward = is_dense ? dense : softmax,
                   .spec = &spec,
                   .n = n,
                   .src = random_doubles(src),
                   .kernel = random_doubles(kernel),
                   .bias = random_doubles((size_t) out),
                   .dst = random_doubles(dst),
                   .weight = random_doubles(dst),
                   .dst_count = dst};
        double *diff_src = random_doubles(src), *diff_kernel = random_doubles(kernel),
               *diff_bias = random_doubles((size_t) out);
        p.forward(&p);
        if (is_dense) {
            hpct_ref64_dense_backward_data(rows, in, out, p.weight, p.kernel, diff_src);
            hpct_ref64_dense_backward_weights(rows, in, out, p.src, p.weight, diff_kernel,
                                              diff_bias);
            check(&p, "dense kernel", p.kernel, diff_kernel, kernel);
            check(&p, "dense bias", p.bias, diff_bias, (size_t) out);
        } else {
            hpct_ref64_softmax_backward(rows, out, p.dst, p.weight, diff_src);
        }
        check(&p, "source", p.src, diff_src, src);
        free(p.src), free(p.kernel), free(p.bias), free(p.dst), free(p.weight);
        free(diff_src), free(diff_kernel), free(diff_bias);
    }
}

static void losses_agree(void **state)
{
    (void) state;
    for (int i = 0; i < 60; i++) {
        hpct_loss_form form = i % 2 == 0 ? HPCT_LOSS_LOGITS : HPCT_LOSS_PROBABILITIES;
        int n = pick(1, 4), classes = pick(2, 6);
        size_t count = (size_t) (n * classes);
        double scale = 0.25, *x = random_doubles(count), *diff = random_doubles(count);
        int32_t labels[4];
        for (int s = 0; s < n; s++)
            labels[s] = pick(0, classes - 1);
        for (size_t k = 0; form == HPCT_LOSS_PROBABILITIES && k < count; k++)
            x[k] = 0.01 + 0.49 * (x[k] + 1); /* inside the clipping */
        hpct_batch_sums sums;
        hpct_ref64_cross_entropy(form, n, classes, x, labels, scale, diff, &sums);
        for (size_t k = 0; k < count; k++) {
            hpct_batch_sums above, below;
            double kept = x[k];
            x[k] = kept + STEP;
            hpct_ref64_cross_entropy(form, n, classes, x, labels, 0, NULL, &above);
            x[k] = kept - STEP;
            hpct_ref64_cross_entropy(form, n, classes, x, labels, 0, NULL, &below);
            x[k] = kept;
            double numerical = scale * (above.loss - below.loss) / (2 * STEP);
            assert_true(fabs(numerical - diff[k]) < 1e-6 * (1 + fabs(numerical)));
        }
        free(x);
        free(diff);
    }
}

/* The two examples of Keras' documentation, and what clipping makes of certainty. */
static void losses_have_keras_values(void **state)
{
    (void) state;
    const double p[] = {0.05, 0.95, 0, 0.1, 0.8, 0.1}, sure[] = {1, 0, 0}, logits[] = {2, 1, 0.1},
                 huge[] = {1e4, 0, -1e4};
    double diff[3];
    hpct_batch_sums sums;
    hpct_ref64_cross_entropy(HPCT_LOSS_PROBABILITIES, 2, 3, p, (int32_t[]){1, 2}, 0, NULL, &sums);
    assert_true(fabs(sums.loss - (0.05129329 + 2.30258509)) < 1e-5);
    assert_int_equal(sums.correct, 1);
    hpct_ref64_cross_entropy(HPCT_LOSS_PROBABILITIES, 1, 3, sure, (int32_t[]){1}, 1, diff, &sums);
    assert_true(fabs(sums.loss - 16.118096) < 1e-5);
    assert_true(diff[0] == 0 && diff[1] == 0 && diff[2] == 0);
    hpct_ref64_cross_entropy(HPCT_LOSS_LOGITS, 1, 3, logits, (int32_t[]){0}, 0, NULL, &sums);
    assert_true(fabs(sums.loss - 0.41703) < 1e-5);
    hpct_ref64_cross_entropy(HPCT_LOSS_LOGITS, 1, 3, huge, (int32_t[]){2}, 1, diff, &sums);
    assert_true(sums.loss == 2e4 && diff[0] == 1 && diff[2] == -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_agree),  cmocka_unit_test(rows_agree),
        cmocka_unit_test(elements_agree), cmocka_unit_test(activations_have_keras_values),
        cmocka_unit_test(losses_agree),   cmocka_unit_test(losses_have_keras_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
