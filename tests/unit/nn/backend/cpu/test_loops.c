/* The vector loops of every instruction set that this processor has, against the reference. The
 * backend only ever uses the best one; here all are run. */
#include "nn/backend/cpu/backend.h"
#include "nn/backend/cpu/loops.h"
#include "nn/backend/cpu/shim.h"
#include "nn/backend/ref/kernels.h"
#include "nn/backend/ref/ref.h"
#include "nn/graph/rng.h"
#include "tests/unit/nn/nn_case.h"
#include "tests/unit/unit.h"

#include <math.h>

static uint64_t draws;

static float *numbers(size_t count)
{
    float *memory = hpct_backend_host_allocate(count * sizeof *memory);
    for (size_t i = 0; i < count; i++)
        memory[i] = hpct_graph_uniform(5, 5, draws++) - 0.5f;
    return memory;
}

/* Allocated to the last byte, so that a sanitizer or valgrind sees a read behind the end. */
static float *exactly(const float *from, size_t count)
{
    float *memory = malloc(count * sizeof *memory);
    memcpy(memory, from, count * sizeof *memory);
    return memory;
}

static const hpct_op_spec relu_spec = {.kind = HPCT_OP_RELU},
                          hard_sigmoid = {.kind = HPCT_OP_HARD_SIGMOID};

static void elementwise(const hpct_cpu_loops *loops)
{
    static const size_t counts[] = {1, 15, 16, 17, 100};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        size_t n = counts[c];
        float *a = numbers(n), *b = numbers(n), *v = numbers(n);
        float *ea = exactly(a, n), *eb = exactly(b, n), *ev = exactly(v, n);
        loops->relu_forward(n, ea, ev);
        hpct_ref_element_forward(&relu_spec, n, a, v);
        assert_memory_equal(ev, v, n * sizeof *v);
        loops->relu_backward(n, ea, eb, ev);
        hpct_ref_element_backward(&relu_spec, n, a, b, v);
        assert_memory_equal(ev, v, n * sizeof *v);
        loops->rescaling(n, 0.5f, 2, ea, ev);
        hpct_ref_rescaling(n, 0.5f, 2, a, v);
        assert_true(nn_difference(ev, v, n) < 1e-6);
        const hpct_op_spec bent = {
            .kind = HPCT_OP_LEAKY_RELU, .slope = 0.25f, .threshold = -0.1f, .most = 0.5f};
        loops->leaky_forward(n, &bent, ea, ev);
        hpct_ref_element_forward(&bent, n, a, v);
        assert_true(nn_difference(ev, v, n) < 1e-6);
        loops->leaky_backward(n, &bent, ea, eb, ev);
        hpct_ref_element_backward(&bent, n, a, b, v);
        assert_memory_equal(ev, v, n * sizeof *v);
        hpct_ref_rescaling(n, 5, 0, a, v);
        memcpy(ev, v, n * sizeof *v); /* beyond 3 on both sides */
        loops->hard_sigmoid_forward(n, ev, ev);
        hpct_ref_element_forward(&hard_sigmoid, n, v, v);
        assert_true(nn_difference(ev, v, n) < 1e-6);
        memcpy(ev, v, n * sizeof *v);
        loops->hard_sigmoid_backward(n, ev, eb, ev);
        hpct_ref_element_backward(&hard_sigmoid, n, v, b, v);
        assert_memory_equal(ev, v, n * sizeof *v);
        loops->product(n, ea, eb, false, ev);
        loops->product(n, ea, eb, true, ev);
        for (size_t i = 0; i < n; i++)
            v[i] = 2 * (a[i] * b[i]);
        assert_true(nn_difference(ev, v, n) < 1e-6);
        loops->add(n, ea, eb);
        for (size_t i = 0; i < n; i++)
            assert_true(eb[i] == a[i] + b[i]);
        memcpy(eb, b, n * sizeof *b);
        free(ea), free(eb), free(ev);
        hpct_backend_host_release(a), hpct_backend_host_release(b), hpct_backend_host_release(v);
    }
}

/* All optimizers of one instruction set against the reference. */
static void updates(const hpct_cpu_loops *loops)
{
    enum { COUNT = 48, ARENAS = 4 };
    for (int kind = 0; kind < 5; kind++) {
        float *mine[ARENAS], *expected[ARENAS];
        for (int k = 0; k < ARENAS; k++) {
            float *values = numbers(COUNT);
            for (int i = 0; i < COUNT; i++)
                values[i] = k == 3 ? fabsf(values[i]) : values[i];
            mine[k] = exactly(values, COUNT);
            expected[k] = exactly(values, COUNT);
            hpct_backend_host_release(values);
        }
        static const hpct_optimizer_kind kinds[] = {HPCT_SGD, HPCT_ADAM, HPCT_LARS, HPCT_LAMB,
                                                    HPCT_RMSPROP};
        hpct_backend_update_range range = {.count = COUNT, .adapt = true};
        hpct_backend_update_call call = {.kind = kinds[kind],
                                         .nesterov = true,
                                         .learning_rate = 0.1f,
                                         .weight_decay = 0.01f,
                                         .momentum = 0.9f,
                                         .epsilon = 1e-7f,
                                         .trust_coefficient = 0.5f,
                                         .mix_1 = 0.1f,
                                         .mix_2 = 0.02f,
                                         .bias_1 = 0.1f,
                                         .bias_2 = 0.02f,
                                         .grad_scale = 0.5f,
                                         .clipvalue = 0.2f,
                                         .param = expected[0],
                                         .grad = expected[1],
                                         .slot = {expected[2], expected[3]},
                                         .ranges = &range,
                                         .num_ranges = 1};
        hpct_ref_update(&call);
        call.param = mine[0], call.grad = mine[1], call.slot[0] = mine[2], call.slot[1] = mine[3];
        hpct_cpu_update_span span = {0, COUNT, 0.5f, 0.1f, 0.1f * 0.01f};
        double sums[2];
        if (kind == 0)
            loops->sgd(&call, &span, sums);
        if (kind == 1)
            loops->adam(&call, &span, sums);
        if (kind == 2) {
            span.decay = 0.01f;
            loops->norms(&call, &span, sums);
            double w = sqrt(sums[0]), g = sqrt(sums[1]);
            span.rate *= (float) (0.5 * w / (g + 0.01 * w));
            loops->lars(&call, &span, sums);
        }
        if (kind == 3) {
            loops->moments(&call, &span, sums);
            span.rate *= (float) sqrt(sums[0] / sums[1]);
            loops->lamb(&call, &span, sums);
        }
        if (kind == 4)
            loops->rmsprop(&call, &span, sums);
        for (int k = 0; k < ARENAS; k++) {
            assert_true(nn_difference(mine[k], expected[k], COUNT) < 1e-6);
            free(mine[k]), free(expected[k]);
        }
    }
}

static void dropout(const hpct_cpu_loops *loops)
{
    static const size_t counts[] = {1, 16, 63, 64, 65, 200};
    const hpct_graph_draw draw = {.seed = UINT64_C(0x123456789abcdef), .stream = 5, .step = 77};
    const hpct_backend_dropout half = hpct_backend_dropout_make(&draw, 0.5);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        size_t n = 128 + counts[c];
        float *a = numbers(n), *y = numbers(n), *ea = exactly(a + 128, n - 128),
              *ey = exactly(y, n - 128);
        loops->dropout(&half, 9, 2, n - 128, ea, ey); /* from the third group on */
        hpct_ref_dropout(&half, 9, 1, 1, n, a, y);
        assert_memory_equal(ey, y + 128, (n - 128) * sizeof *y);
        free(ea), free(ey);
        hpct_backend_host_release(a), hpct_backend_host_release(y);
    }
}

static void rows(const hpct_cpu_loops *loops)
{
    for (size_t out = 1; out < 40; out += 3) {
        size_t n = 1 + out % 7, count = n * out;
        float *x = numbers(count), *bias = numbers(out), *g = numbers(count), *sums = numbers(out);
        float *ex = exactly(x, count), *eg = exactly(g, count), *y = exactly(g, count);
        loops->bias_transposed(n, out, ex, bias, true, y);
        for (size_t r = 0; r < n; r++)
            for (size_t o = 0; o < out; o++)
                assert_true(y[r * out + o] == fmaxf(0, x[o * n + r] + bias[o]));
        loops->mask_and_sum(n, out, ex, eg, sums);
        for (size_t o = 0; o < out; o++) {
            float sum = 0;
            for (size_t r = 0; r < n; r++)
                sum += x[r * out + o] > 0 ? g[r * out + o] : 0;
            assert_true(fabsf(sum - sums[o]) < 1e-5f);
        }
        free(ex), free(eg), free(y);
        hpct_backend_host_release(x), hpct_backend_host_release(bias), hpct_backend_host_release(g),
            hpct_backend_host_release(sums);
    }
}

/* A group, which is a whole row of the reference. */
static void groups(const hpct_cpu_loops *loops, size_t cells, size_t channels)
{
    size_t count = cells * channels;
    hpct_op_spec spec = {.kind = HPCT_OP_GROUP_NORM,
                         .group = {.rows = 1,
                                   .cells = (int) cells,
                                   .channels = (int) channels,
                                   .groups = 1,
                                   .epsilon = 1e-3f}};
    float *x = numbers(count), *g = numbers(count), *gamma = numbers(channels),
          *beta = numbers(channels), *y = numbers(count), *dx = numbers(count),
          *dgamma = numbers(channels), *dbeta = numbers(channels);
    float mean, variance, got_mean, got_variance, sum, sum_x, all = (float) count;
    float *sums = calloc(2 * channels, sizeof *sums), *ex = exactly(x, count),
          *eg = exactly(g, count), *ey = exactly(y, count), *edx = exactly(dx, count);
    hpct_ref_group_norm_statistics(&spec, 1, x, &mean, &variance);
    hpct_ref_group_norm_forward(&spec, 1, x, &mean, &variance, gamma, beta, y);
    hpct_ref_group_norm_backward(&spec, 1, x, &mean, &variance, gamma, g, true, dx, dgamma, dbeta);
    hpct_cpu_group_rows rows = {.cells = cells,
                                .channels = channels,
                                .step = channels,
                                .src = ex,
                                .diff = eg,
                                .gamma = gamma,
                                .beta = beta};
    loops->group_moments(&rows, &got_mean, &got_variance);
    assert_true(fabsf(got_mean - mean) < 1e-5f && fabsf(got_variance - variance) < 1e-5f);
    float inverse = 1 / sqrtf(variance + 1e-3f);
    rows.mean = mean;
    rows.inverse = inverse;
    loops->group_normalize(&rows, ey);
    loops->group_sums(&rows, &sum, &sum_x, sums, sums + channels);
    loops->group_backward(&rows, -inverse * inverse * inverse * sum_x / all, -inverse * sum / all,
                          true, edx);
    assert_true(nn_difference(ey, y, count) < 1e-5 && nn_difference(edx, dx, count) < 1e-4);
    assert_true(nn_difference(sums, dgamma, channels) < 1e-4);
    assert_true(nn_difference(sums + channels, dbeta, channels) < 1e-4);
    free(sums), free(ex), free(eg), free(ey), free(edx);
    hpct_backend_host_release(x), hpct_backend_host_release(g), hpct_backend_host_release(gamma),
        hpct_backend_host_release(beta);
    hpct_backend_host_release(y), hpct_backend_host_release(dx), hpct_backend_host_release(dgamma);
    hpct_backend_host_release(dbeta);
}

/* One sample, row by row. */
static void direct(const hpct_cpu_loops *loops, int out_w, int out, int kernel_h, int kernel_w)
{
    int in[3] = {kernel_h + 1, out_w + kernel_w - 1, 2}, size[2] = {kernel_h, kernel_w},
        strides[2] = {1, 1};
    hpct_graph_window w = nn_window(in, out, size, strides, false);
    int offsets[64], taps = 0;
    for (int u = 0; u < kernel_h; u++)
        for (int v = 0; v < kernel_w * 2; v++)
            offsets[taps++] = u * in[1] * 2 + v;
    hpct_cpu_direct d = {.out_w = out_w,
                         .out = out,
                         .taps = taps,
                         .offsets = offsets,
                         .row_step = (size_t) in[1] * 2,
                         .cell_step = 2,
                         .relu = true};
    size_t src = (size_t) (in[0] * in[1] * 2), row = (size_t) (out_w * out), outs = (size_t) out,
           dst = row * (size_t) w.out_h, weights = (size_t) taps * outs;
    float *x = numbers(src), *k = numbers(weights), *bias = numbers(outs), *y = numbers(dst),
          *g = numbers(dst), *dk = numbers(weights), *db = numbers(outs);
    float *ex = exactly(x, src), *ek = exactly(k, weights), *ey = exactly(y, dst),
          *eg = exactly(g, dst), *masked = exactly(g, row), *sums = calloc(weights + outs, 4);
    hpct_ref_conv2d_forward(&w, 1, x, k, bias, y);
    hpct_ref_element_forward(&relu_spec, dst, y, y);
    hpct_ref_element_backward(&relu_spec, dst, y, g, g);
    hpct_ref_conv2d_backward_weights(&w, 1, x, g, dk, db);
    for (size_t i = 0; i < (size_t) w.out_h; i++) {
        loops->direct_forward(&d, ex + i * d.row_step, ek, bias, ey + i * row);
        loops->direct_mask(&d, 1, y + i * row, eg + i * row, masked, sums + weights);
        loops->direct_backward(&d, 1, ex + i * d.row_step, masked, sums);
    }
    assert_true(nn_difference(ey, y, dst) < 1e-5);
    assert_true(nn_difference(sums, dk, weights) < 1e-5);
    assert_true(nn_difference(sums + weights, db, outs) < 1e-5);
    free(ex), free(ek), free(ey), free(eg), free(masked), free(sums);
    hpct_backend_host_release(x), hpct_backend_host_release(k), hpct_backend_host_release(bias),
        hpct_backend_host_release(y);
    hpct_backend_host_release(g), hpct_backend_host_release(dk), hpct_backend_host_release(db);
}

/* One band, into channels last and into blocks. */
static void pool(const hpct_cpu_loops *loops, int out_w, int blocks, int high, int wide, bool relu)
{
    size_t out = 16 * (size_t) blocks, results = (size_t) out_w * out,
           cells = (size_t) (high * wide);
    hpct_cpu_direct_pool p = {.out_w = out_w,
                              .out = (int) out,
                              .high = high,
                              .wide = wide,
                              .cell_step = blocks % 2 ? out : 16,
                              .block_step = blocks % 2 ? 16 : (size_t) out_w * 16,
                              .relu = relu};
    float *x = numbers(results * cells), *g = numbers(results), *sums = numbers(out);
    for (size_t i = 0; i < results * cells; i++)
        x[i] = roundf(4 * x[i]); /* some are equal */
    float *ex = exactly(x, results * cells), *ey = exactly(g, results), *eg = exactly(g, results),
          *back = exactly(x, results * cells), *bias = exactly(sums, out);
    int8_t *where = malloc(results);
    loops->direct_pool(&p, ex, ey, where);
    loops->direct_unpool(&p, where, eg, back, bias);
    for (size_t o = 0; o < out; o++) {
        float sum = sums[o];
        for (size_t j = 0; j < (size_t) out_w; j++) {
            size_t to = j * p.cell_step + o / 16 * p.block_step + o % 16, best = 0, at[256];
            for (size_t c = 0; c < cells; c++) {
                at[c] =
                    ((c / (size_t) wide * (size_t) out_w + j) * (size_t) wide + c % (size_t) wide) *
                        out +
                    o;
                best = x[at[c]] > x[at[best]] ? c : best;
            }
            bool zero = relu && x[at[best]] <= 0;
            assert_true(ey[to] == (zero ? 0 : x[at[best]]));
            assert_true(where[j * out + o] == (zero ? -1 : (int) best));
            for (size_t c = 0; c < cells; c++)
                assert_true(back[at[c]] == (c == best && !zero ? g[to] : 0));
            sum += zero ? 0 : g[to];
        }
        assert_true(bias[o] == sum);
    }
    free(ex), free(ey), free(eg), free(back), free(bias), free(where);
    hpct_backend_host_release(x), hpct_backend_host_release(g), hpct_backend_host_release(sums);
}

TEST(all_variants_match)
{
    int ran = 0;
    for (int i = 0; hpct_cpu_loops_variants[i] != NULL; i++) {
        const hpct_cpu_loops *loops = hpct_cpu_loops_variants[i];
        if (!loops->supported())
            continue;
        elementwise(loops);
        dropout(loops);
        updates(loops);
        rows(loops);
        for (size_t k = 2; k < 70; k += 3)
            groups(loops, 1 + k % 4, k);
        for (int k = 1; k <= 30; k++) /* 2 to 50 taps */
            direct(loops, 1 + k % 14, 16 * (1 + k % 4), 1 + k % 5, 1 + k % 6 % 5);
        for (int k = 0; k < 36; k++)
            pool(loops, 1 + k % 5, 1 + k % 4, 1 + k % 3, 1 + k / 3 % 4, k % 2);
        pool(loops, 1, 1, 1, INT8_MAX, true);
        ran++;
    }
    assert_true(ran >= 1);
}

TEST(best_is_the_first_supported)
{
    int first = 0;
    while (!hpct_cpu_loops_variants[first]->supported() ||
           hpct_cpu_loops_variants[first]->lanes > hpct_cpu_shim_lanes())
        first++;
    assert_ptr_equal(hpct_cpu_loops_best(), hpct_cpu_loops_variants[first]);
    const char *lanes = getenv("HPC_TRAIN_TEST_LANES"); /* of isa.t */
    if (lanes != NULL)
        assert_int_equal(hpct_cpu_loops_best()->lanes, atoi(lanes));
}

static void mark(size_t first, size_t count, void *arg)
{
    unsigned char *seen = arg;
    for (size_t i = first; i < first + count; i++)
        seen[i]++;
}

TEST(split_covers_everything_once)
{
    for (size_t total = 0; total < 300; total++) {
        unsigned char seen[300] = {0};
        hpct_cpu_loops_split(total, 7, mark, seen);
        for (size_t i = 0; i < sizeof seen; i++)
            assert_int_equal(seen[i], i < total);
    }
}

/* The sums, and the gradients in diff (filled with what must not stay) unless that is NULL. */
static hpct_backend_batch_sums loss_on(int threads, hpct_backend_loss_call call, float *diff)
{
    hpct_backend_batch_sums sums;
    size_t count = (size_t) call.n * (size_t) call.classes;
    for (size_t i = 0; diff != NULL && i < count; i++)
        diff[i] = 77;
    call.diff_src = diff;
    call.sums = &sums;
    hpct_cpu_set_threads(threads);
    assert_int_equal(threads == 0 ? hpct_ref_loss(&call) : hpct_cpu_backend.loss(&call), HPCT_OK);
    return sums;
}

/* As the reference, and the same bits on any number of threads. */
static void losses_match(hpct_backend_loss_call call)
{
    size_t count = (size_t) call.n * (size_t) call.classes;
    float *expected = malloc(count * sizeof *expected), *found = malloc(count * sizeof *found);
    hpct_backend_batch_sums ref = loss_on(0, call, expected), one = loss_on(1, call, found);
    assert_memory_equal(found, expected, count * sizeof *found);
    hpct_backend_batch_sums three = loss_on(3, call, found), alone = loss_on(3, call, NULL);
    assert_memory_equal(found, expected, count * sizeof *found);
    assert_true(fabs(three.loss - ref.loss) <= 1e-12 * fabs(ref.loss));
    assert_true(fabs(three.correct - ref.correct) <= 1e-12 * ref.correct);
    assert_true(fabs(three.in_top_k - ref.in_top_k) <= 1e-12 * ref.in_top_k);
    assert_true(one.loss == three.loss && alone.loss == three.loss);
    assert_true(one.correct == three.correct && one.in_top_k == three.in_top_k);
    free(expected);
    free(found);
}

TEST(losses_are_shared_among_threads)
{
    static const int sizes[][2] = {{1, 10}, {64, 10}, {13, 1000}, {3, 5000}, {700, 70}, {3, 4096}};
    int before = hpct_cpu_threads();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int n = sizes[i][0], classes = sizes[i][1];
        size_t count = (size_t) n * (size_t) classes;
        float *numbered = numbers(count), *src = exactly(numbered, count);
        int32_t *labels = malloc((size_t) n * sizeof *labels);
        for (int s = 0; s < n; s++)
            labels[s] = s % 3 == 0 ? (s * 7) % classes : 0;
        hpct_backend_loss_call call = {.form = HPCT_BACKEND_LOSS_LOGITS,
                                       .n = n,
                                       .classes = classes,
                                       .src = src,
                                       .labels = labels,
                                       .top_k = classes / 2,
                                       .scale = 0.25f};
        losses_match(call);
        call.form = HPCT_BACKEND_LOSS_SQUARED;
        call.targets = exactly(numbered, count); /* its own memory */
        call.labels = NULL;
        losses_match(call);
        call.judged = HPCT_TARGETS_NUMBERS;
        losses_match(call);
        free((void *) (uintptr_t) call.targets);
        free(labels);
        free(src);
        hpct_backend_host_release(numbered);
    }
    hpct_cpu_set_threads(before);
}
