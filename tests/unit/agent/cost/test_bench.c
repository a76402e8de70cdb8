/* bench and the profile: what is counted, that times add up, that nobody asks the clock unasked. */
#include "agent/cost/profile.h"
#include "agent/rank/context.h"
#include "nn/run/run.h"
#include "nn/run/step.h"
#include "tests/unit/unit.h"

#include <hpctrain/hpctrain.h>
#include <unistd.h>

static int clock_readings; /* by steps */
double __real_hpct_run_clock(void);
double __wrap_hpct_run_clock(void);
double __wrap_hpct_run_clock(void)
{
    clock_readings++;
    return __real_hpct_run_clock();
}

static hpct_model *ready_model(const char *name, int batch)
{
    hpct_model *model;
    hpct_optimizer sgd = {.kind = HPCT_SGD, .learning_rate = 1e-6};
    hpct_run_build_options build = {
        .backend = "cpu", .batch_sizes = &batch, .num_batch_sizes = 1, .fuse_update = true};
    assert_int_equal(hpct_model_builtin(&model, name), HPCT_OK);
    assert_int_equal(
        hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, &sgd), HPCT_OK);
    assert_int_equal(hpct_model_initialize(model, 0), HPCT_OK);
    assert_int_equal(hpct_model_build(model, &build), HPCT_OK);
    assert_non_null(hpct_model_input(model));
    return model;
}

static void step(hpct_model *model, int n)
{
    hpct_backend_batch_sums sums;
    assert_int_equal(hpct_model_forward(model, n, true), HPCT_OK);
    assert_int_equal(hpct_model_loss(model, n, 1.0f / (float) n, &sums), HPCT_OK);
    assert_int_equal(hpct_model_backward(model, n), HPCT_OK);
    assert_int_equal(hpct_model_update(model), HPCT_OK);
}

TEST(times_of_layers)
{
    enum { BATCH = 8, STEPS = 4 };
    static const int all[STEPS] = {0, 1, 2, 3};
    hpct_model *model = ready_model("mnist-cnn", BATCH);
    hpct_run_profile *profile;
    clock_readings = 0;
    step(model, BATCH);
    assert_int_equal(clock_readings, 0); /* costs nothing when off */
    assert_int_equal(hpct_run_profile_start(&profile, model, STEPS), HPCT_OK);
    double began = __real_hpct_run_clock();
    for (int i = 0; i < STEPS; i++)
        step(model, BATCH);
    double seconds = __real_hpct_run_clock() - began;
    assert_true(clock_readings > 0);
    step(model, BATCH); /* one more than there is room for is not noted */
    int num;
    double sum = 0, flops = 0;
    const hpct_run_profile_row *rows = hpct_run_profile_rows(profile, all, STEPS, &num);
    static const char *const names[] = {"conv2d", "dense", "dense_1", "loss", "update"};
    assert_int_equal(num, 5);
    for (int i = 0; i < num; i++) {
        assert_string_equal(rows[i].name, names[i]);
        assert_true(rows[i].forward_seconds > 0 || i == 4);
        assert_true(rows[i].backward_seconds > 0 || i == 3);
        sum += STEPS * (rows[i].forward_seconds + rows[i].backward_seconds);
        flops += rows[i].forward_flops + rows[i].backward_flops;
    }
    assert_true(sum <= seconds);
    assert_true(flops == 17399808.0 * BATCH);
    /* Dense: source and kernel forward; both and the two gradients backward, the update fused. */
    double in = BATCH * 21632, out = BATCH * 128, kernel = 21632 * 128, bias = 128;
    double floats =
        (in + out + kernel + bias) + (out + out + in + in + kernel + bias) + 2 * kernel + bias;
    assert_true(rows[1].bytes == 4 * floats);
    hpct_run_profile_stop(profile);
    clock_readings = 0;
    step(model, BATCH);
    assert_int_equal(clock_readings, 0);
    hpct_model_free(model);
}

TEST(table)
{
    static const hpct_run_profile_row rows[] = {
        {.name = "conv2d",
         .type = "Conv2D",
         .forward_seconds = 0.001,
         .backward_seconds = 0.002,
         .forward_flops = 1e8,
         .backward_flops = 2e8,
         .bytes = 4e7},
        {.name = "loss", .type = "", .forward_seconds = 0.0005},
    };
    static const hpct_backend_rates rates = {.flops = 2e11, .bytes = 2e10};
    static const char expected[] =
        "layer                        forward ms  GFLOP/s  backw. ms  GFLOP/s   share\n"
        "conv2d (Conv2D)                   1.000    100.0      2.000    100.0   75.0%\n"
        "loss                              0.500                                12.5%\n"
        "rest                                                  0.500            12.5%\n"
        "step                              1.500               2.500           100.0%\n"
        "step      4.000 ms: 0.3000 GFLOP (75.0 GFLOP/s), 40.0 MB\n"
        "floor     2.000 ms: the larger of 1.500 ms at 200.0 GFLOP/s (matrix product) and 2.000 ms "
        "at 20.0 GB/s (copying)\n"
        "ratio      2.00\n";
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    hpct_cost_profile_print(stream, rows, 2, 0.004, &rates);
    fclose(stream);
    assert_string_equal(text, expected);
    free(text);
}

TEST(whole_bench)
{
    char path[] = "/tmp/hpct-bench-XXXXXX", text[4096] = "";
    hpct_context *context;
    hpct_model *model = ready_model("mnist-convnet", 4);
    close(mkstemp(path));
    hpct_bench_options options = {.batch_size = 6, .steps = 8, .summary_json = path};
    hpct_bench_result result;
    assert_int_equal(hpct_context_open_alone(&context), HPCT_OK);
    assert_int_equal(hpct_bench(context, model, &options, &result), HPCT_OK);
    assert_true(result.step_seconds > 0);
    assert_true(result.images_per_second == 6 / result.step_seconds);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    unlink(path);
    assert_non_null(strstr(text, "\"model\": \"mnist-convnet\""));
    assert_non_null(strstr(text, "\"steps\": 8"));
    assert_non_null(strstr(text, "\"global_batch\": 6"));
    options.global_batch_size = 6;
    assert_int_equal(hpct_bench(context, model, &options, &result), HPCT_ERR_USAGE);
    hpct_model_free(model);
    hpct_context_close(context);
}
