/* BatchNormalization that an Add works out: of one of its inputs or both, with a ReLU or without,
 * in training and inference, as each would do by itself; statistics from sums that are there; what
 * convolutions before and behind it leave to it and take from it.
 */
#include "tests/gpu_without/kernels/cuda_backend.h"
#include "tests/unit/unit.h"

#include "base/fp16.h"
#include "nn/backend/cuda/ops.h"
#include "nn/backend/ref/ref.h"
#include "nn/graph/rng.h"
#include "nn/plan/run.h"
#include "nn/run/step.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 5

static uint64_t draws;

static int pick(int low, int high)
{
    return low + (int) (hpct_graph_uniform(5, 9, draws++) * (float) (high - low + 1));
}

static hpct_model *finish(hpct_model *model, double rate)
{
    hpct_optimizer sgd = {.kind = HPCT_SGD, .learning_rate = rate};
    hpct_model_add_global_average_pool2d(model);
    assert_int_equal(
        hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, &sgd), HPCT_OK);
    assert_int_equal(hpct_model_initialize(model, 3), HPCT_OK);
    return model;
}

static void normalize(hpct_model *model, int from, int kind)
{
    hpct_model_set_head(model, from);
    hpct_model_add_activation(model, kind == 0 ? HPCT_TANH : HPCT_GELU);
    hpct_model_add_batch_normalization(
        model, &(hpct_batch_normalization){.no_scale = kind == 1, .no_center = kind == 0});
}

/* Two branches from the input, added up. */
static hpct_model *model_of(int side, int channels, bool both, bool first, bool relu)
{
    hpct_model *model = hpct_model_new("sum", HPCT_SHAPE(side, side + 1, channels));
    int input = hpct_model_head(model), heads[2];
    normalize(model, input, 0);
    heads[first ? 0 : 1] = hpct_model_head(model);
    if (both)
        normalize(model, input, 1);
    if (!both) {
        hpct_model_set_head(model, input);
        hpct_model_add_activation(model, HPCT_SIGMOID);
    }
    heads[first ? 1 : 0] = hpct_model_head(model);
    hpct_model_add_add(model, heads, 2);
    if (relu)
        hpct_model_add_activation(model, HPCT_RELU);
    return finish(model, 0.5);
}

static void build(hpct_model *model, const hpct_backend *backend)
{
    int batch = BATCH;
    hpct_run_build_options options = {.batch_sizes = &batch, .num_batch_sizes = 1};
    model->backend = backend;
    if (hpct_model_build(model, &options) != HPCT_OK)
        fail_msg("%s", hpct_last_error());
    float *input = hpct_model_input(model);
    size_t count = BATCH * hpct_graph_shape_count(&model->tensors[0].shape);
    for (size_t i = 0; i < count; i++)
        input[i] = 3 * hpct_graph_uniform(7, 1, i) - 1;
    for (int i = 0; i < BATCH; i++)
        hpct_model_labels(model)[i] = i % hpct_model_count_labels(model);
}

static void assert_near(const float *a, const float *b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!(fabsf(a[i] - b[i]) < 1e-5F * (1 + fabsf(b[i]))))
            fail_msg("%zu of %zu: %g, not %g", i, count, (double) a[i], (double) b[i]);
    }
}

static void assert_same(hpct_model *a, hpct_model *b)
{
    size_t count;
    assert_near(hpct_model_output(a), hpct_model_output(b),
                (size_t) BATCH * (size_t) hpct_model_count_labels(a));
    const float *states = hpct_model_states(a, &count);
    assert_near(states, hpct_model_states(b, &count), count);
    const float *gradients = hpct_model_gradients(a, &count);
    assert_near(gradients, hpct_model_gradients(b, &count), count);
}

/* The first as it should be. */
static void assert_train_alike(hpct_model *const models[2])
{
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < 2; i++) {
            assert_int_equal(hpct_model_forward(models[i], BATCH, true), HPCT_OK);
            assert_int_equal(hpct_model_loss(models[i], BATCH, 1.0F / BATCH, NULL), HPCT_OK);
            assert_int_equal(hpct_model_backward(models[i], BATCH), HPCT_OK);
        }
        assert_same(models[1], models[0]);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(hpct_model_update(models[i]), HPCT_OK);
            assert_int_equal(hpct_model_forward(models[i], BATCH, false), HPCT_OK);
        }
        assert_same(models[1], models[0]);
    }
}

static int count_fused_downstream(const hpct_model *model)
{
    int count = 0;
    for (int i = 0; i < model->num_nodes; i++)
        count += model->run->nodes[i].op->build.fused_downstream;
    return count;
}

/* Normalizations whose backward begins with sums that who reads them has left. */
static int count_sums(const hpct_model *model)
{
    int count = 0;
    for (int i = 0; i < model->num_nodes; i++)
        count += model->run->nodes[i].norm_sums != NULL;
    return count;
}

TEST(an_add_normalizes)
{
    static const int widths[] = {3, 8, 16, 40};
    for (int way = 0; way < 8; way++) {
        bool both = (way & 1) != 0, first = (way & 2) != 0, relu = (way & 4) != 0;
        int side = pick(1, 7), channels = widths[pick(0, 3)];
        hpct_model *plain = model_of(side, channels, both, first, relu),
                   *fused = model_of(side, channels, both, first, relu);
        build(plain, &hpct_ref_backend);
        build(fused, &cuda_backend_on_host);
        assert_int_equal(count_fused_downstream(plain), 0);
        assert_int_equal(count_fused_downstream(fused), both ? 2 : 1);
        assert_int_equal(count_sums(fused), !relu || channels % 4 != 0 ? 0 : both ? 2 : 1);
        assert_train_alike((hpct_model *[]){plain, fused});
        hpct_model_free(plain);
        hpct_model_free(fused);
    }
}

/* What somebody else reads, or what is the model's result, is made where it is. */
TEST(others_find_it_made)
{
    hpct_model *model = hpct_model_new("shared", HPCT_SHAPE(3, 3, 8));
    normalize(model, hpct_model_head(model), 0);
    int norm = hpct_model_head(model);
    hpct_model_add_activation(model, HPCT_TANH);
    hpct_model_add_add(model, (int[]){norm, hpct_model_head(model)}, 2);
    finish(model, 0.5);
    build(model, &cuda_backend_on_host);
    assert_int_equal(count_fused_downstream(model), 0);
    hpct_model_free(model);
}

/* ---- statistics ---- */

#define ROWS 37
#define CHANNELS 19

static hpct_status add_twice(void *argument, float *data, size_t count)
{
    (void) argument;
    for (size_t i = 0; i < count; i++)
        data[i] *= 2; /* another replica has the same rows */
    return HPCT_OK;
}

static void normalize_rows(const float *src, bool synchronized, float *dst, float *moving)
{
    int rows = ROWS;
    hpct_op_spec spec = {.kind = HPCT_OP_BATCH_NORM,
                         .norm = {.rows = 1,
                                  .channels = CHANNELS,
                                  .no_scale = true,
                                  .no_center = true,
                                  .synchronized = synchronized,
                                  .momentum = 0.5F,
                                  .epsilon = 1e-3F}};
    hpct_op_build build = {.batch_sizes = &rows, .num_batch_sizes = 1, .training = true};
    hpct_graph_step_peers replicas = {.sum = add_twice};
    hpct_op *op;
    assert_int_equal(hpct_cuda_make_own(&op, &spec, &build), HPCT_OK);
    void *workspace = hpct_backend_host_allocate(op->workspace_bytes),
         *scratch = hpct_backend_host_allocate(op->scratch_bytes);
    float *params[] = {moving, moving + CHANNELS};
    memset(moving, 0, 2 * CHANNELS * sizeof *moving);
    hpct_op_call call = {.n = ROWS,
                         .src = (const float *[]){src},
                         .dst = dst,
                         .param = params,
                         .workspace = workspace,
                         .scratch = scratch,
                         .replicas = synchronized ? &replicas : NULL,
                         .training = true};
    assert_int_equal(op->class->forward(op, &call), HPCT_OK);
    op->class->destroy(op);
    hpct_backend_host_release(workspace);
    hpct_backend_host_release(scratch);
}

TEST(equal_replicas_have_the_same_statistics)
{
    static float src[ROWS * CHANNELS], alone[ROWS * CHANNELS], together[ROWS * CHANNELS];
    float moving[2][2 * CHANNELS];
    for (int i = 0; i < ROWS * CHANNELS; i++)
        src[i] = hpct_graph_uniform(3, 1, (uint64_t) i) + (float) (i % CHANNELS) / 4;
    normalize_rows(src, false, alone, moving[0]);
    normalize_rows(src, true, together, moving[1]);
    for (int i = 0; i < ROWS * CHANNELS; i++)
        assert_true(fabsf(alone[i] - together[i]) < 1e-4F);
    for (int i = 0; i < 2 * CHANNELS; i++)
        assert_true(fabsf(moving[0][i] - moving[1][i]) < 1e-5F);
    assert_true(moving[1][0] > 0.2F && moving[1][CHANNELS] > 0.02F);
}

/* As on a large device, where a thread that joins statistics has parts for more than one round. */
TEST(many_parts_are_joined)
{
    enum { CELLS = 4, PARTS = 150, MANY = PARTS * 1024 + 77 };
    float *src = malloc(sizeof(float) * CELLS * MANY), moving[2][CELLS] = {0}, notes[4][CELLS],
          rows;
    float *partial = calloc((size_t) PARTS * 4 / 3 * 2 * CELLS, sizeof *partial);
    double sum[CELLS] = {0}, squares[CELLS] = {0};
    assert_true(src != NULL && partial != NULL);
    for (int i = 0; i < CELLS * MANY; i++) { /* a few far from the others, in the last rows */
        src[i] = hpct_graph_uniform(4, 1, (uint64_t) i) + (i > CELLS * (MANY - 9) ? 200.0F : 3.0F);
        sum[i % CELLS] += src[i];
    }
    for (int i = 0; i < CELLS * MANY; i++) {
        double off = src[i] - sum[i % CELLS] / MANY;
        squares[i % CELLS] += off * off;
    }
    hpct_cuda_norm norm = {.type = HPCT_FP32,
                           .rows = MANY,
                           .channels = CELLS,
                           .moving_mean = moving[0],
                           .moving_variance = moving[1],
                           .notes = {notes[0], notes[1], notes[2], notes[3], &rows},
                           .partial = partial};
    int before = hpct_cuda_gpu.multiprocessors;
    hpct_cuda_gpu.multiprocessors = PARTS / 3;
    assert_int_equal(hpct_cuda_norm_parts(norm.type, CELLS), PARTS * 4 / 3);
    assert_int_equal(hpct_cuda_launch_norm_moments(&norm, src), cudaSuccess);
    hpct_cuda_gpu.multiprocessors = before;
    assert_true(partial[(PARTS - 1) * 2 * CELLS] > 3 && partial[PARTS * 2 * CELLS] == 0);
    for (int c = 0; c < CELLS; c++) {
        assert_true(fabs(moving[0][c] / (sum[c] / MANY) - 1) < 1e-5);
        assert_true(fabs(moving[1][c] / (squares[c] / MANY) - 1) < 1e-4);
    }
    free(src);
    free(partial);
}

/* ---- between convolutions: these are the reference's ---- */

static hpct_status make_op(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build)
{
    return spec->kind == HPCT_OP_CONV2D || spec->kind == HPCT_OP_DENSE
               ? hpct_ref_make_op(out, spec, build)
               : cuda_backend_on_host.make_op(out, spec, build);
}

static bool fuse_norms(hpct_backend_fusion fusion, const hpct_op_spec *spec,
                       const hpct_op_build *build, const hpct_op_spec *other)
{
    (void) spec, (void) build, (void) other;
    return fusion != HPCT_BACKEND_FUSION_POOL && fusion != HPCT_BACKEND_FUSION_SUM;
}

static bool leave_biases(hpct_backend_fusion fusion, const hpct_op_spec *spec,
                         const hpct_op_build *build, const hpct_op_spec *other)
{
    (void) spec, (void) build, (void) other;
    return fusion == HPCT_BACKEND_FUSION_BIAS || fusion == HPCT_BACKEND_FUSION_ADD_NORM;
}

static void add_convolution(hpct_model *model, int filters, int window)
{
    hpct_model_add_conv2d(
        model,
        &(hpct_conv2d){.filters = filters, .kernel = {window, window}, .padding = HPCT_SAME});
}

static hpct_model *deep_model(int channels, bool relu, bool synchronized)
{
    hpct_model *model = hpct_model_new("deep", HPCT_SHAPE(5, 4, 3));
    hpct_batch_normalization norm = {.synchronized = synchronized};
    add_convolution(model, channels, 3);
    for (int i = 0; i < 2; i++) {
        norm.no_center = i == 1;
        hpct_model_add_batch_normalization(model, &norm);
        if (relu)
            hpct_model_add_activation(model, HPCT_RELU);
        add_convolution(model, channels + i, 3 - 2 * i);
    }
    hpct_model_add_batch_normalization(model, &norm);
    hpct_model_add_activation(model, HPCT_TANH);
    return finish(model, 0.1);
}

static hpct_status no_other(void *argument, float *data, size_t count)
{
    (void) argument;
    (void) data;
    (void) count;
    return HPCT_OK;
}

TEST(normalizations_between_convolutions_match)
{
    static const int widths[] = {3, 8, 19};
    hpct_backend other = cuda_backend_on_host;
    other.make_op = make_op;
    other.fuses = fuse_norms;
    int ways = unit_cases(30) < 12 ? unit_cases(30) : 12;
    for (int k = 0; k < ways; k++) { /* few of them are far apart */
        int way = 5 * k % 12;
        bool relu = (way & 1) != 0, synchronized = (way & 2) != 0;
        hpct_model *plain = deep_model(widths[way / 4], relu, synchronized),
                   *fused = deep_model(widths[way / 4], relu, synchronized);
        hpct_model *const models[] = {plain, fused};
        build(plain, &hpct_ref_backend);
        build(fused, &other);
        assert_int_equal(count_fused_downstream(fused), 0); /* there is no Add */
        for (int i = 0; i < 2; i++) {
            size_t count;
            float *parameters = hpct_model_parameters(models[i], &count);
            for (size_t p = 0; p < count; p++) /* biases begin with zeros */
                parameters[p] += 0.4F * hpct_graph_uniform(17, 3, p) - 0.2F;
            hpct_model_set_peers(models[i], &(hpct_graph_step_peers){.sum = no_other});
        }
        assert_train_alike(models);
        hpct_model_free(plain);
        hpct_model_free(fused);
    }
}

static hpct_status add_ones(void *argument, float *data, size_t count)
{
    (void) argument;
    for (size_t i = 0; i < count; i++)
        data[i] += 1; /* another replica has a sample, and this one has none */
    return HPCT_OK;
}

TEST(replicas_without_samples_know_the_bias)
{
    hpct_backend other = cuda_backend_on_host;
    hpct_model *model = deep_model(8, true, true);
    other.make_op = make_op;
    other.fuses = leave_biases;
    build(model, &other);
    float *bias = hpct_run_param(model, model->run, 1);
    for (int c = 0; c < 8; c++)
        bias[c] = 3;
    hpct_model_set_peers(model, &(hpct_graph_step_peers){.sum = add_ones});
    assert_int_equal(hpct_model_forward_absent(model), HPCT_OK);
    const float *mean = hpct_run_param(model, model->run, 4); /* moving; momentum 0.99 */
    for (int c = 0; c < 8; c++)
        assert_true(fabsf(mean[c] - 0.01F * (1 + 3)) < 1e-5F);
    hpct_model_free(model);
}
