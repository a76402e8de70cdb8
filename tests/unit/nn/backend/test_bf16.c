/* bf16: rounding, whole models beside the reference and beside fp32, copies that follow their
 * parameters. Single operations are in test_ops. */
#include "nn/backend/bf16.h"
#include "nn/backend/cpu/loops.h"
#include "nn/graph/rng.h"
#include "nn/run/run.h"
#include "tests/unit/nn/nn_small.h"

#include <math.h>

static const struct {
    float number, nearest;
} roundings[] = {
    {1, 1},
    {0x1.00fffep0f, 1},         /* just below half a step */
    {0x1.01p0f, 1},             /* half: to the even neighbour, below, */
    {0x1.03p0f, 0x1.04p0f},     /* and above */
    {0x1.010002p0f, 0x1.02p0f}, /* just above half */
    {-0x1.03p0f, -0x1.04p0f},
    {0x1.fffffep127f, INFINITY}, /* the largest fp32 */
    {0x1.fep127f, 0x1.fep127f},  /* the largest bf16 */
    {-INFINITY, -INFINITY},
    {0x1p-133f, 0x1p-133f}, /* the smallest bf16 */
    {0x1p-149f, 0},
};
#define NUM_ROUNDINGS (sizeof roundings / sizeof *roundings)

TEST(rounding_is_to_nearest_even)
{
    for (size_t i = 0; i < NUM_ROUNDINGS; i++)
        assert_true(hpct_backend_bf16_value(hpct_backend_bf16_of(roundings[i].number)) ==
                    roundings[i].nearest);
    assert_true(isnan(hpct_backend_bf16_value(hpct_backend_bf16_of(NAN))));
    union {
        uint32_t bits;
        float value;
    } low_nan = {.bits = 0x7f800001}; /* not in the upper half */
    assert_true(isnan(hpct_backend_bf16_value(hpct_backend_bf16_of(low_nan.value))));
}

TEST(loops_round_alike)
{
    enum { ROWS = 3, OUT = 37, COUNT = ROWS * OUT };
    float src[COUNT], dst[COUNT];
    for (int i = 0; i < COUNT; i++) {
        src[i] =
            i < (int) NUM_ROUNDINGS ? roundings[i].number : hpct_graph_uniform(5, 1, (uint64_t) i);
        dst[i] = i % 3 == 0 ? 0 : 1;
    }
    src[20] = NAN;
    for (int v = 0; hpct_cpu_loops_variants[v] != NULL; v++) {
        const hpct_cpu_loops *loops = hpct_cpu_loops_variants[v];
        hpct_backend_bf16 low[COUNT], masked[COUNT];
        float sums[OUT] = {0};
        if (!loops->supported())
            continue;
        loops->to_bf16(COUNT, src, low);
        for (int i = 0; i < COUNT; i++)
            assert_int_equal(low[i], hpct_backend_bf16_of(src[i]));
        loops->diff_to_bf16(ROWS, OUT, dst, src, -0.5f, masked, sums);
        for (int o = 0; o < OUT; o++) {
            float sum = 0;
            for (int r = 0; r < ROWS; r++) {
                int i = r * OUT + o;
                assert_int_equal(masked[i], dst[i] > 0 ? hpct_backend_bf16_of(-0.5f * src[i]) : 0);
                sum += hpct_backend_bf16_value(masked[i]);
            }
            assert_true(sum == sums[o] || (isnan(sum) && isnan(sums[o])));
        }
    }
}

/* Matrix products, a convolution of cells, one of windows, and a first one that stays fp32. */
static hpct_model *mixed_model(hpct_precision precision, double momentum)
{
    hpct_model *m = hpct_model_new("small", HPCT_SHAPE(10, 12, 3));
    hpct_conv2d conv = {.filters = 16, .kernel = {3, 3}, .activation = HPCT_RELU};
    hpct_model_add_conv2d(m, &conv);
    conv.kernel[0] = conv.kernel[1] = 1;
    hpct_model_add_conv2d(m, &conv);
    hpct_model_add_conv2d(
        m,
        &(hpct_conv2d){.filters = 20, .kernel = {3, 3}, .strides = {2, 1}, .padding = HPCT_SAME});
    hpct_model_add_batch_normalization(m, &(hpct_batch_normalization){0});
    hpct_model_add_activation(m, HPCT_RELU);
    hpct_model_add_flatten(m);
    hpct_model_add_dense(m, &(hpct_dense){.units = 13, .activation = HPCT_RELU});
    hpct_model_add_dense(m, &(hpct_dense){.units = 4, .activation = HPCT_SOFTMAX});
    hpct_compile_options options = {.loss = HPCT_SPARSE_CATEGORICAL_CROSSENTROPY,
                                    .precision = precision,
                                    .optimizer = {.learning_rate = 0.003, .momentum = momentum}};
    assert_int_equal(hpct_model_compile_with(m, &options), HPCT_OK);
    assert_int_equal(hpct_model_initialize(m, 3), HPCT_OK);
    return m;
}

static double forward(hpct_model *model, int n, uint32_t t)
{
    hpct_backend_batch_sums sums;
    small_fill(model, n, t);
    assert_int_equal(hpct_model_forward(model, n, false), HPCT_OK);
    assert_int_equal(hpct_model_loss(model, n, 0, &sums), HPCT_OK);
    return sums.loss / n;
}

static bool have_bf16(void)
{
    return hpct_precision_check(HPCT_BF16) == HPCT_OK;
}

/* The reference rounds the first convolution's operands too. */
TEST(backends_train_alike)
{
    hpct_model *ref = mixed_model(HPCT_BF16, 0.9), *wide = mixed_model(HPCT_FP32, 0.9);
    small_build(ref, (hpct_run_build_options){.backend = "ref"});
    small_build(wide, (hpct_run_build_options){.backend = "ref"});
    hpct_model *cpu = have_bf16() ? mixed_model(HPCT_BF16, 0.9) : NULL;
    if (cpu != NULL)
        small_build(cpu, (hpct_run_build_options){.backend = "cpu"});
    bool differs = false;
    double first = 0, last = 0;
    for (uint32_t t = 0; t < 12; t++) {
        int n = t % 3 == 2 ? 5 : 8;
        double exact = small_step(wide, n, t), rounded = small_step(ref, n, t);
        assert_true(fabs(rounded - exact) < 0.03 * exact);
        differs = differs || fabs(rounded - exact) > 1e-5 * exact;
        if (cpu != NULL) {
            double found = small_step(cpu, n, t);
            assert_true(fabs(found - rounded) < 0.03 * rounded);
        }
        first = t == 0 ? rounded : first;
        last = rounded;
    }
    assert_true(differs && last < first);
    hpct_model_free(ref);
    hpct_model_free(wide);
    hpct_model_free(cpu);
}

TEST(fused_update_is_the_update)
{
    if (!have_bf16())
        skip();
    hpct_model *fused = mixed_model(HPCT_BF16, 0), *plain = mixed_model(HPCT_BF16, 0);
    small_build(fused, (hpct_run_build_options){.backend = "cpu", .fuse_update = true});
    small_build(plain, (hpct_run_build_options){.backend = "cpu"});
    int num = 0;
    for (int i = 0; i < fused->num_nodes; i++)
        num += fused->run->nodes[i].op->kernel_fused;
    assert_int_equal(num, 2);
    for (uint32_t t = 0; t < 8; t++) {
        double a = small_step(fused, 8, t), b = small_step(plain, 8, t);
        assert_true(fabs(a - b) < 1e-2 * b);
    }
    hpct_model_free(fused);
    hpct_model_free(plain);
}

/* The fused model's gradients are the other's, where they are shown; its weights do not change. */
TEST(gradients_of_a_fused_update_are_shown)
{
    if (!have_bf16())
        skip();
    hpct_model *models[3];
    for (int i = 0; i < 3; i++) {
        models[i] = mixed_model(HPCT_BF16, 0);
        small_build(models[i], (hpct_run_build_options){.backend = "cpu", .fuse_update = i < 2});
    }
    expect_shown_gradients(models[0], models[1], models[2]);
}

/* However weights change, the next forward has them. */
TEST(copies_follow_the_parameters)
{
    if (!have_bf16())
        skip();
    hpct_model *model = mixed_model(HPCT_BF16, 0);
    small_build(model, (hpct_run_build_options){.backend = "cpu"});
    assert_true(hpct_run_copies_bytes(model->run) > 0);
    double before = forward(model, 8, 0), uniform = log(4);
    assert_true(fabs(before - uniform) > 1e-3);
    size_t count;
    float *weights = hpct_model_parameters(model, &count);
    memset(weights, 0, count * sizeof *weights);
    assert_true(fabs(forward(model, 8, 0) - uniform) < 1e-6);
    assert_int_equal(hpct_model_initialize(model, 3), HPCT_OK);
    assert_true(forward(model, 8, 0) == before);
    small_step(model, 8, 0);
    double updated = forward(model, 8, 0);
    assert_true(updated != before);
    small_build(model, (hpct_run_build_options){.backend = "cpu"}); /* the copies begin anew */
    assert_true(fabs(forward(model, 8, 0) - updated) < 1e-6);
    hpct_model_free(model);
}

TEST(master_weights_are_fp32)
{
    if (!have_bf16())
        skip();
    hpct_model *model = mixed_model(HPCT_BF16, 0);
    small_build(model, (hpct_run_build_options){.backend = "cpu"});
    small_step(model, 8, 0);
    size_t finer = 0, all = 0;
    for (int i = 0; i < model->num_params; i++) {
        size_t count = hpct_graph_shape_count(&model->params[i].shape);
        float *values = malloc(count * sizeof *values);
        assert_int_equal(hpct_run_param_get(model, i, values), HPCT_OK);
        for (size_t k = 0; k < count; k++)
            finer += values[k] != hpct_backend_bf16_value(hpct_backend_bf16_of(values[k]));
        all += count;
        free(values);
    }
    assert_true(finer > all / 2);
    hpct_model_free(model);
}

TEST(precisions_have_names)
{
    hpct_precision precision = HPCT_FP32;
    assert_int_equal(hpct_precision_find(&precision, "bf16"), HPCT_OK);
    assert_int_equal(precision, HPCT_BF16);
    assert_string_equal(hpct_precision_name(precision), "bf16");
    assert_int_equal(hpct_precision_find(&precision, "int4"), HPCT_ERR_USAGE);
    assert_string_equal(hpct_last_error(),
                        "there is no precision \"int4\"; there are: fp32, bf16, fp16");
    hpct_model *model = mixed_model(HPCT_BF16, 0);
    assert_int_equal(hpct_model_precision(model), HPCT_BF16);
    hpct_compile_options options = {.precision = HPCT_PRECISIONS};
    assert_int_equal(hpct_model_compile_with(model, &options), HPCT_ERR_USAGE);
    hpct_model_free(model);
}
