/* The GPU's loss and metrics against the reference, over random batches. */
#include "tests/gpu_without/kernels/cuda_backend.h"
#include "tests/unit/unit.h"

#include "nn/backend/ref/ref.h"
#include "nn/graph/rng.h"

#include <math.h>

static uint64_t draws;

static float draw(void)
{
    return hpct_graph_uniform(11, 5, draws++);
}

static int pick(int low, int high)
{
    return low + (int) (draw() * (float) (high - low + 1));
}

typedef struct batch {
    hpct_backend_loss_call call;
    size_t count;
    float *src, *targets, *expected, *got, *weights;
    int32_t *labels;
} batch;

static bool takes_logits(hpct_backend_loss_form form)
{
    return form == HPCT_BACKEND_LOSS_LOGITS || form == HPCT_BACKEND_LOSS_BINARY_LOGITS ||
           form == HPCT_BACKEND_LOSS_SQUARED || form == HPCT_BACKEND_LOSS_BINARY_FOCAL_LOGITS ||
           form == HPCT_BACKEND_LOSS_FOCAL_LOGITS || form == HPCT_BACKEND_LOSS_HUBER;
}

/* Some outputs are equal, some lie where probabilities are clipped. */
static float draw_output(hpct_backend_loss_form form)
{
    bool edge = pick(0, 9) == 0;
    if (takes_logits(form))
        return edge ? 3 : 12 * (draw() - 0.5f);
    return edge ? (float) pick(0, 1) : draw();
}

static batch random_batch(hpct_backend_loss_form form, int i)
{
    bool binary = form == HPCT_BACKEND_LOSS_BINARY || form == HPCT_BACKEND_LOSS_BINARY_LOGITS ||
                  form == HPCT_BACKEND_LOSS_SQUARED || form == HPCT_BACKEND_LOSS_BINARY_FOCAL ||
                  form == HPCT_BACKEND_LOSS_BINARY_FOCAL_LOGITS || form == HPCT_BACKEND_LOSS_HUBER;
    int n = i % 7 == 0 ? pick(1, 600) : pick(1, 20),
        classes = pick(binary ? 1 : 2, i % 3 == 0   ? 2
                                       : i % 3 == 1 ? 12
                                                    : 130);
    batch b = {.count = (size_t) n * (size_t) classes};
    b.src = hpct_backend_host_allocate(b.count * sizeof(float));
    b.targets = hpct_backend_host_allocate(b.count * sizeof(float));
    b.expected = hpct_backend_host_allocate(b.count * sizeof(float));
    b.got = hpct_backend_host_allocate(b.count * sizeof(float));
    b.labels = hpct_backend_host_allocate((size_t) n * sizeof(int32_t));
    b.weights = hpct_backend_host_allocate((size_t) (classes + 1) * sizeof(float));
    for (int k = 0; k <= classes; k++)
        b.weights[k] = 2 * draw();
    for (size_t k = 0; k < b.count; k++) {
        b.src[k] = draw_output(form);
        b.targets[k] = pick(0, 3) == 0 ? 0.5f : pick(0, 1) == 0 ? draw() : (float) pick(0, 1);
        b.expected[k] = b.got[k] = NAN;
    }
    for (int s = 0; s < n; s++)
        b.labels[s] = pick(0, classes == 1 ? 1 : classes - 1);
    b.call = (hpct_backend_loss_call){.form = form,
                                      .n = n,
                                      .classes = classes,
                                      .src = b.src,
                                      .labels = b.labels,
                                      .label_smoothing = pick(0, 1) == 0 ? 0 : 0.1f,
                                      .threshold = form == HPCT_BACKEND_LOSS_BINARY ? 0.5f : 0,
                                      .top_k = pick(0, 3),
                                      .scale = 0.25f,
                                      .alpha = pick(0, 1) == 0 ? 0 : 0.25f,
                                      .gamma = pick(0, 1) == 0 ? 2 : 0.5f,
                                      .delta = 1,
                                      .class_weights = pick(0, 1) == 0 ? NULL : b.weights};
    if (form != HPCT_BACKEND_LOSS_PROBABILITIES && pick(0, 1) == 0)
        b.call.targets = b.targets;
    if (b.call.targets != NULL)
        b.call.judged = (hpct_target_kind) pick(HPCT_TARGETS_CLASS, HPCT_TARGETS_NUMBERS);
    return b;
}

/* Counts are whole numbers, or sums in another order. */
static bool is_near(double got, double expected)
{
    return isnan(expected) ? isnan(got)
                           : fabs(got - expected) <= 1e-9 * fabs(expected) ||
                                 (isinf(expected) && got == expected);
}

static void check(const batch *b, bool wants_diff)
{
    hpct_backend_batch_sums expected, got, left[2] = {{.loss = -1}, {.loss = -1}};
    uint32_t before = (uint32_t) pick(0, 3), turns = before;
    hpct_backend_loss_call call = b->call;
    call.sums = &expected;
    call.diff_src = wants_diff ? b->expected : NULL;
    assert_int_equal(hpct_ref_loss(&call), HPCT_OK);
    call.sums = &got;
    call.diff_src = wants_diff ? b->got : NULL;
    call.left = pick(0, 2) > 0 ? left : NULL;
    call.turns = &turns;
    assert_int_equal(cuda_backend_on_host.loss(&call), HPCT_OK);
    assert_true(isnan(expected.loss)
                    ? isnan(got.loss)
                    : fabs(got.loss - expected.loss) <= 1e-6 * fabs(expected.loss) + 1e-9);
    bool numbers = call.judged == HPCT_TARGETS_NUMBERS;
    assert_true(is_near(got.correct, expected.correct));
    assert_true(is_near(got.in_top_k, call.top_k > 0 || numbers ? expected.in_top_k : 0));
    assert_int_equal(turns, before + (call.left != NULL));
    if (call.left != NULL)
        assert_memory_equal(&left[before % 2], &got, sizeof got);
    assert_true(left[(before + 1) % 2].loss == -1);
    double largest = 0, off = 0;
    for (size_t i = 0; i < b->count && wants_diff; i++) {
        assert_int_equal(isnan(b->got[i]) != 0, isnan(b->expected[i]) != 0);
        if (isnan(b->got[i]))
            continue;
        largest = fmax(largest, fabs((double) b->expected[i]));
        off = fmax(off, fabs((double) b->got[i] - (double) b->expected[i]));
    }
    assert_true(off <= 1e-6 * largest);
}

TEST(losses_match)
{
    for (int i = 0; i < unit_cases(132); i++) {
        batch b = random_batch((hpct_backend_loss_form) (i % HPCT_BACKEND_LOSS_FORMS), i);
        if (i % 11 == 0)
            b.src[pick(0, (int) b.count - 1)] = NAN;
        check(&b, i % 5 != 4);
        hpct_backend_host_release(b.src);
        hpct_backend_host_release(b.targets);
        hpct_backend_host_release(b.expected);
        hpct_backend_host_release(b.got);
        hpct_backend_host_release(b.labels);
        hpct_backend_host_release(b.weights);
    }
}
