/* The end of a classifier in one kernel, on the host: beside loops over Dense in double and the
 * reference's loss. */
#include "tests/unit/cuda_backend.h"
#include "tests/unit/nn_case.h"
#include "tests/unit/unit.h"

#include "nn/cuda/ops.h"
#include "nn/ref/ref.h"
#include "nn/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BEHIND 16 /* floats after what a call may write */

static uint64_t draws;

static int pick(int low, int high)
{
    return low + (int) (hpct_uniform(13, 1, draws++) * (float) (high - low + 1));
}

static float *room(size_t count)
{
    float *memory = aligned_alloc(64, ((count + BEHIND) * sizeof(float) + 63) / 64 * 64);
    assert_non_null(memory);
    memset(memory, 0xff, (count + BEHIND) * sizeof(float)); /* not a number in any type */
    return memory;
}

static void drop(float *memory, size_t written)
{
    for (int i = 0; i < BEHIND; i++)
        assert_true(isnan(memory[written + (size_t) i]));
    free(memory);
}

static void cast(size_t count, hpct_number from_type, const void *from, hpct_number type, void *to)
{
    assert_int_equal(hpct_launch_cast(hpct_cuda_queue(), count, from_type, from, type, to),
                     cudaSuccess);
}

typedef struct head_case {
    int n, in, outputs;
    hpct_number type;
    hpct_loss_form form;
    bool has_bias, mask, bias_before, update, no_diff_src, targets, scaled;
} head_case;

/* In memory as the kernel has it, and in fp32 what that is. */
static void draw_numbers(const head_case *c, size_t count, float *low, float *value)
{
    for (size_t i = 0; i < count; i++)
        value[i] = 2 * hpct_uniform(13, 2, draws++) - 1;
    cast(count, HPCT_NUMBER_FP32, value, c->type, low);
    cast(count, c->type, low, HPCT_NUMBER_FP32, value);
}

static void check(const head_case *c)
{
    const size_t n = (size_t) c->n, in = (size_t) c->in, outs = (size_t) c->outputs;
    const float factor = -0.25F;
    const double bound = c->type == HPCT_NUMBER_FP32   ? 1e-5
                         : c->type == HPCT_NUMBER_FP16 ? 2e-3
                                                       : 1e-2;
    const size_t scratch_floats = hpct_head_scratch_bytes(c->n, c->in, c->outputs) / sizeof(float);
    float *src = room(n * in), *src_value = room(n * in), *kernel = room(outs * in),
          *kernel_before = room(outs * in), *bias = room(outs), *dst = room(n * outs),
          *dst_value = room(n * outs), *diff_src = room(n * in), *diff_value = room(n * in),
          *diff_kernel = room(outs * in), *diff_bias = room(outs), *before = room(in),
          *scratch = room(scratch_floats), *logits = room(n * outs), *slopes = room(n * outs),
          *wanted_src = room(n * in), *wanted_kernel = room(outs * in), *wanted_bias = room(outs),
          *wanted_before = room(in), *targets = room(n * outs);
    int32_t *labels = malloc(n * sizeof *labels);
    assert_non_null(labels);
    hpct_batch_sums sums = {0}, expected, left[2] = {{.loss = -1}, {.loss = -1}};
    hpct_loss_scaling scaling = {.scale = 8};
    uint32_t turns = 5;
    draw_numbers(c, n * in, src, src_value);
    for (size_t i = 0; i < outs * in; i++)
        kernel[i] = kernel_before[i] = 2 * hpct_uniform(13, 3, draws++) - 1;
    for (size_t i = 0; i < outs; i++)
        bias[i] = hpct_uniform(13, 4, draws++);
    for (size_t i = 0; i < n * outs; i++)
        targets[i] = hpct_uniform(13, 5, draws++);
    for (size_t s = 0; s < n; s++)
        labels[s] = pick(0, c->outputs == 1 ? 1 : c->outputs - 1);

    for (size_t s = 0; s < n; s++) {
        for (size_t o = 0; o < outs; o++) {
            double sum = c->has_bias ? (double) bias[o] : 0;
            for (size_t k = 0; k < in; k++)
                sum += (double) src_value[s * in + k] * (double) kernel[o * in + k];
            logits[s * outs + o] = (float) sum;
        }
    }
    hpct_loss_call loss = {.form = c->form,
                           .n = c->n,
                           .classes = c->outputs,
                           .src = logits,
                           .labels = labels,
                           .targets = c->targets ? targets : NULL,
                           .label_smoothing = 0.1F,
                           .threshold = 0,
                           .top_k = 2,
                           .scale = 1.0F / (float) c->n,
                           .scaling = c->scaled ? &scaling : NULL,
                           .diff_src = slopes,
                           .sums = &expected};
    assert_int_equal(hpct_ref_loss(&loss), HPCT_OK);
    memset(wanted_kernel, 0, outs * in * sizeof(float));
    memset(wanted_bias, 0, outs * sizeof(float));
    memset(wanted_before, 0, in * sizeof(float));
    for (size_t s = 0; s < n; s++) {
        for (size_t k = 0; k < in; k++) {
            double slope = 0;
            for (size_t o = 0; o < outs; o++) {
                slope += (double) slopes[s * outs + o] * (double) kernel[o * in + k];
                wanted_kernel[o * in + k] += slopes[s * outs + o] * src_value[s * in + k];
            }
            bool counts = !c->mask || src_value[s * in + k] > 0;
            wanted_src[s * in + k] = counts ? (float) slope : 0;
            wanted_before[k] += wanted_src[s * in + k];
        }
        for (size_t o = 0; o < outs; o++)
            wanted_bias[o] += slopes[s * outs + o];
    }

    loss.sums = &sums;
    loss.left = left;
    loss.turns = &turns;
    hpct_head head = {.loss = hpct_cuda_loss_args(&loss),
                      .in = c->in,
                      .kernel = kernel,
                      .bias = c->has_bias ? bias : NULL,
                      .diff_kernel = {c->update ? kernel : diff_kernel, c->update ? &factor : NULL},
                      .diff_bias = {c->has_bias ? diff_bias : NULL},
                      .mask = c->mask,
                      .before_bias = {c->bias_before ? before : NULL},
                      .scratch = scratch};
    assert_true(hpct_head_fits(c->n, c->in, c->outputs));
    assert_int_equal(hpct_launch_head(hpct_cuda_queue(), c->type, &head, src, dst,
                                      c->no_diff_src ? NULL : diff_src),
                     cudaSuccess);

    assert_true(fabs(sums.loss - expected.loss) <= 1e-5 * fabs(expected.loss) + 1e-6);
    assert_int_equal(sums.correct, expected.correct);
    assert_int_equal(sums.in_top_k, expected.in_top_k);
    assert_int_equal(turns, 6);
    assert_memory_equal(&left[1], &sums, sizeof sums);
    assert_true(left[0].loss == -1);
    cast(n * outs, c->type, dst, HPCT_NUMBER_FP32, dst_value);
    assert_true(nn_difference(dst_value, logits, n * outs) < bound);
    if (!c->no_diff_src) {
        cast(n * in, c->type, diff_src, HPCT_NUMBER_FP32, diff_value);
        assert_true(nn_difference(diff_value, wanted_src, n * in) < bound);
    }
    for (size_t i = 0; i < outs * in && c->update; i++) /* nothing else is written */
        assert_true(isnan(diff_kernel[i]));
    for (size_t i = 0; i < outs * in && c->update; i++)
        diff_kernel[i] = (kernel[i] - kernel_before[i]) / factor;
    assert_true(nn_difference(diff_kernel, wanted_kernel, outs * in) < 1e-4);
    if (!c->update)
        assert_memory_equal(kernel, kernel_before, outs * in * sizeof(float));
    if (c->has_bias)
        assert_true(nn_difference(diff_bias, wanted_bias, outs) < 1e-4);
    if (c->bias_before)
        assert_true(nn_difference(before, wanted_before, in) < 1e-4);

    size_t each = c->type == HPCT_NUMBER_FP32 ? 1 : 2; /* numbers in a float */
    drop(dst, (n * outs + each - 1) / each);
    drop(diff_src, c->no_diff_src ? 0 : (n * in + each - 1) / each);
    drop(diff_kernel, outs * in);
    drop(diff_bias, c->has_bias ? outs : 0);
    drop(before, c->bias_before ? in : 0);
    drop(scratch, scratch_floats);
    drop(kernel, outs * in);
    float *others[] = {src,         src_value,     kernel_before, bias,       dst_value,
                       diff_value,  logits,        slopes,        wanted_src, wanted_kernel,
                       wanted_bias, wanted_before, targets};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        free(others[i]);
    free(labels);
}

static void drawn_heads_match(void **state)
{
    static const hpct_loss_form forms[] = {HPCT_LOSS_LOGITS, HPCT_LOSS_BINARY_LOGITS,
                                           HPCT_LOSS_SQUARED};
    (void) state;
    for (int i = 0; i < unit_cases(60); i++) {
        head_case c = {.in = pick(0, 1) == 0 ? 8 * pick(1, 16) : pick(1, 128),
                       .type = (hpct_number) pick(0, 2),
                       .form = forms[pick(0, 2)],
                       .has_bias = pick(0, 3) > 0,
                       .mask = pick(0, 1) == 0,
                       .bias_before = pick(0, 2) > 0,
                       .update = pick(0, 1) == 0,
                       .no_diff_src = pick(0, 5) == 0,
                       .targets = pick(0, 1) == 0,
                       .scaled = pick(0, 2) == 0};
        int most = 4096 / c.in < 32 ? 4096 / c.in : 32;
        c.outputs = pick(c.form == HPCT_LOSS_LOGITS ? 2 : 1, most);
        c.n = pick(0, 3) == 0 ? pick(1, 200) : pick(1, 40);
        check(&c);
    }
}

/* That of the MNIST models: of one block, of several, of several rows a warp. */
static void the_mnist_models_match(void **state)
{
    static const int batches[] = {1, 8, 64, 100, 256, 300, 512};
    (void) state;
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++)
        check(&(head_case){.n = batches[i],
                           .in = 128,
                           .outputs = 10,
                           .type = (hpct_number) (i % 3),
                           .form = HPCT_LOSS_LOGITS,
                           .has_bias = true,
                           .mask = true,
                           .bias_before = true,
                           .update = i % 2 == 0});
}

static void large_ones_do_not_fit(void **state)
{
    (void) state;
    assert_true(hpct_head_fits(1024, 128, 10));
    assert_true(hpct_head_fits(64, 512, 8));
    assert_false(hpct_head_fits(4096, 128, 10)); /* blocks */
    assert_false(hpct_head_fits(64, 128, 33));   /* outputs */
    assert_false(hpct_head_fits(64, 2048, 10));  /* inputs of a block's rows */
    assert_false(hpct_head_fits(64, 512, 10));   /* the kernel */
    assert_false(hpct_head_fits(1, 2048, 1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(drawn_heads_match),
                                       cmocka_unit_test(the_mnist_models_match),
                                       cmocka_unit_test(large_ones_do_not_fit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
