/* What works on whole arenas, of every backend against the reference: the optimizers' updates, with
 * clipping and with scaled gradients, penalties, sums and scaled vectors. */
#include "nn/backend/backend.h"
#include "nn/backend/ref/ref.h"
#include "nn/backends/backends.h"
#include "nn/graph/rng.h"
#include "tests/unit/nn/nn_case.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* With NN_OPS_ON_HOST the GPU's own kernels, on the host. */
#ifdef NN_OPS_ON_HOST
#include "tests/gpu_without/kernels/cuda_backend.h"
#define BACKENDS cuda_backends_on_host
#else
#define BACKENDS hpct_backend_table
#endif

static uint64_t draws;

static int pick(int low, int high)
{
    return low + (int) (hpct_graph_uniform(43, 7, draws++) * (float) (high - low + 1));
}

#define MOST_RANGES 24 /* of more rates than a launch on a GPU has room for */

enum { ARENA_PARAM, ARENA_GRAD, ARENA_SLOT, ARENAS = ARENA_SLOT + HPCT_GRAPH_MAX_SLOTS };

/* Random settings of one optimizer; every third clips by value, by norm, by the norm of all. */
static hpct_backend_update_call random_update(hpct_optimizer_kind kind, int clip)
{
    return (hpct_backend_update_call){
        .kind = kind,
        .nesterov = kind == HPCT_SGD && pick(0, 1) == 1,
        .learning_rate = 0.01f * (float) pick(1, 20),
        .weight_decay = pick(0, 1) == 1 ? 0.05f : 0,
        .momentum = 0.9f,
        .epsilon = 1e-7f,
        .trust_coefficient = 0.1f,
        .mix_1 = 0.1f,
        .mix_2 = 0.02f,
        .bias_1 = 0.271f,
        .bias_2 = 0.0588f,
        .grad_scale = pick(0, 1) == 1 ? 0.25f : 1,
        .clipvalue = clip == 1 ? 0.03f : 0,
        .clipnorm = clip == 2 ? 0.5f * (float) pick(1, 40) : 0,
        .global_clipnorm = clip == 3 ? (float) pick(1, 40) : 0,
    };
}

/* So large that a block of a GPU's kernel has several chunks of one. */
static bool all_large;

static int random_units(void)
{
    return all_large ? 40000 : pick(0, 3) == 0 ? pick(2, 6000) : pick(2, 20);
}

/* Parameters of random sizes behind each other, some with gaps that belong to nobody, one without
 * weights and one without gradients; 16 zeros of padding behind each. */
static size_t random_arenas(float *arenas[ARENAS], hpct_backend_update_range *ranges, int num)
{
    size_t total = 0;
    for (int r = 0; r < num; r++) {
        size_t count = 16 * (size_t) random_units();
        total += 16 * (size_t) pick(0, 2);
        ranges[r] = (hpct_backend_update_range){
            total, count, .rate_factor = 0.25f * (float) pick(0, 3 * MOST_RANGES),
            .adapt = pick(0, 2) > 0};
        total += count;
    }
    for (int k = 0; k < ARENAS; k++)
        arenas[k] = hpct_backend_host_allocate(total * sizeof(float));
    for (int r = 0; r < num; r++) {
        for (int k = 0; k < ARENAS; k++) {
            bool none = (k == ARENA_PARAM && r == 1) || (k == ARENA_GRAD && r == 2);
            for (size_t i = 0; i < ranges[r].count - 16 && !none; i++) {
                float u = hpct_graph_uniform(draws, (uint32_t) k, ranges[r].offset + i);
                float value = k == ARENA_SLOT + 1 ? 0.01f * u : u - 0.5f;
                if (k == ARENA_SLOT + 2) /* a mean, whose square is less than that of the squares */
                    value = 0.5f * sqrtf(arenas[ARENA_SLOT + 1][ranges[r].offset + i]);
                arenas[k][ranges[r].offset + i] = value;
            }
        }
    }
    draws++;
    return total;
}

static void run_update(const hpct_backend *backend, hpct_backend_update_call call,
                       float *arenas[ARENAS])
{
    bool slots = call.kind != HPCT_SGD || call.momentum != 0;
    call.param = arenas[ARENA_PARAM];
    call.grad = arenas[ARENA_GRAD];
    for (int k = 0; k < HPCT_GRAPH_MAX_SLOTS && slots; k++)
        call.slot[k] = arenas[ARENA_SLOT + k];
    if (call.kind == HPCT_RMSPROP) { /* which has every mixture of them */
        call.slot[0] = call.grad_scale < 1 ? NULL : call.slot[0];
        call.slot[2] = call.weight_decay > 0 ? NULL : call.slot[2];
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(backend->update(&call), HPCT_OK);
}

static void check_update(hpct_backend_update_call call)
{
    float *first[ARENAS], *expected[ARENAS], *got[ARENAS];
    hpct_backend_update_range ranges[MOST_RANGES];
    call.ranges = ranges;
    call.num_ranges = all_large ? 1 : pick(0, 7) == 0 ? MOST_RANGES : pick(1, 5);
    size_t total = random_arenas(first, ranges, call.num_ranges);
    for (int k = 0; k < ARENAS; k++) {
        expected[k] = hpct_backend_host_allocate(total * sizeof(float));
        got[k] = hpct_backend_host_allocate(total * sizeof(float));
        memcpy(expected[k], first[k], total * sizeof(float));
    }
    run_update(&hpct_ref_backend, call, expected);
    assert_memory_not_equal(expected[ARENA_PARAM], first[ARENA_PARAM], total * sizeof(float));
    for (int b = 0; BACKENDS[b] != NULL; b++) {
        for (int k = 0; k < ARENAS; k++)
            memcpy(got[k], first[k], total * sizeof(float));
        run_update(BACKENDS[b], call, got);
        for (int k = 0; k < ARENAS; k++) {
            double difference = nn_difference(got[k], expected[k], total);
            if (difference > 2e-6)
                fail_msg("%s on %s, clip %g %g %g, arena %d: off by %g",
                         hpct_optimizer_name(call.kind), BACKENDS[b]->name, (double) call.clipvalue,
                         (double) call.clipnorm, (double) call.global_clipnorm, k, difference);
            for (int r = 0; r < call.num_ranges; r++)
                for (size_t i = ranges[r].offset + ranges[r].count - 16;
                     i < ranges[r].offset + ranges[r].count; i++)
                    assert_true(got[k][i] == 0);
        }
    }
    for (int k = 0; k < ARENAS; k++) {
        hpct_backend_host_release(first[k]);
        hpct_backend_host_release(expected[k]);
        hpct_backend_host_release(got[k]);
    }
}

TEST(updates_match)
{
    for (int i = 0; i < unit_cases(nn_cases(100)); i++) {
        hpct_backend_update_call call =
            random_update((hpct_optimizer_kind) (i % HPCT_OPTIMIZER_KINDS), i / 5 % 4);
        if (call.kind == HPCT_SGD && i % 3 == 0)
            call.momentum = 0;
        check_update(call);
    }
}

TEST(updates_of_large_parameters_match)
{
    const hpct_optimizer_kind kinds[] = {HPCT_LAMB, HPCT_SGD};
    all_large = true;
    for (int i = 0; i < 2; i++)
        check_update(random_update(kinds[i], 3));
    all_large = false;
}

/* In place of other replicas, some of which have gradients that are not finite. */
typedef struct replicas {
    int not_finite, judged, added_up;
} replicas;

static hpct_status add_others(void *argument, float *flags, size_t count)
{
    replicas *all = argument;
    assert_int_equal(count, 1);
    assert_true(flags[0] == 0 || flags[0] == 1);
    flags[0] += (float) all->not_finite;
    all->judged++;
    return HPCT_OK;
}

static hpct_status add_nothing(void *argument, float *sums, size_t count)
{
    (void) sums;
    (void) count;
    ((replicas *) argument)->added_up++;
    return HPCT_OK;
}

/* A part of a model may have no parameters. */
TEST(who_has_no_gradients_is_asked_too)
{
    const hpct_backend *backends[2] = {&hpct_ref_backend, BACKENDS[0]};
    if (!BACKENDS[0]->low_values)
        skip(); /* whose numbers are fp32, has no scale */
    for (int b = 0; b < 2; b++) {
        hpct_graph_loss_scaling scaling = HPCT_GRAPH_LOSS_SCALING_BEGIN;
        replicas all = {0};
        hpct_backend_update_call call = random_update(HPCT_ADAM, 3);
        call.scaling = &scaling;
        call.judge = add_others;
        call.argument = &all;
        assert_int_equal(backends[b]->update(&call), HPCT_OK);
        assert_true(all.judged == 1 && scaling.good == 1 && scaling.left_out == 0);
        all.not_finite = 2;
        assert_int_equal(backends[b]->update(&call), HPCT_OK);
        assert_true(all.judged == 2 && scaling.good == 0 && scaling.left_out == 1);
        assert_true(scaling.scale == HPCT_GRAPH_SCALING_FIRST / 2);
    }
}

/* Whether the gradients are finite here, there or everywhere, a device asks for as many sums. */
TEST(sums_are_asked_for_alike)
{
    if (!BACKENDS[0]->low_values)
        skip();
    for (int i = 0; i < unit_cases(nn_cases(40)); i++) {
        hpct_backend_update_call call =
            random_update((hpct_optimizer_kind) (i % HPCT_OPTIMIZER_KINDS), i / 5 % 4);
        hpct_graph_loss_scaling scaling = HPCT_GRAPH_LOSS_SCALING_BEGIN;
        hpct_backend_update_range ranges[3];
        float *arenas[ARENAS];
        replicas all = {0};
        random_arenas(arenas, ranges, 3);
        ranges[0].split = ranges[2].split = true;
        call.ranges = ranges;
        call.num_ranges = 3;
        call.param = arenas[ARENA_PARAM];
        call.grad = arenas[ARENA_GRAD];
        call.slot[0] = arenas[ARENA_SLOT];
        call.slot[1] = arenas[ARENA_SLOT + 1];
        call.scaling = &scaling;
        call.judge = add_others;
        call.add_up = add_nothing;
        call.argument = &all;
        int each = 0;
        for (int t = 0; t < 3; t++) {
            int before = all.added_up;
            arenas[ARENA_GRAD][ranges[1].offset] = t == 1 ? INFINITY : 1;
            all.not_finite = t == 2;
            assert_int_equal(BACKENDS[0]->update(&call), HPCT_OK);
            each = t == 0 ? all.added_up : each;
            assert_int_equal(all.added_up - before, each);
        }
        assert_int_equal(all.judged, 3);
        assert_int_equal(scaling.left_out, 2);
        bool norms = call.clipnorm > 0 || call.global_clipnorm > 0 || call.kind == HPCT_LARS ||
                     call.kind == HPCT_LAMB;
        assert_true(norms == (each > 0));
        for (int k = 0; k < ARENAS; k++)
            hpct_backend_host_release(arenas[k]);
    }
}

/* Updates with scaled gradients, of which some are not finite, here or elsewhere: the same ones are
 * left out, the scale moves alike, and so do the corrections of those that follow. */
TEST(scaled_updates_match)
{
    const hpct_backend *backends[2] = {&hpct_ref_backend, BACKENDS[0]};
    if (!BACKENDS[0]->low_values)
        skip(); /* whose numbers are fp32, has no scale */
    for (int i = 0; i < unit_cases(nn_cases(100)); i++) {
        hpct_backend_update_call call =
            random_update((hpct_optimizer_kind) (i % HPCT_OPTIMIZER_KINDS), i / 5 % 4);
        hpct_backend_update_range ranges[5];
        float *arenas[2][ARENAS];
        hpct_graph_loss_scaling scaling[2];
        int num = pick(1, 5), bad = pick(0, 3), first_good = pick(0, 3);
        replicas others = {0};
        bool alone = pick(0, 1) == 0;
        call.judge = alone ? NULL : add_others;
        call.argument = &others;
        call.ranges = ranges;
        call.num_ranges = num;
        call.mix_2 = 0.001f;
        size_t total = random_arenas(arenas[0], ranges, num);
        for (int b = 0; b < 2; b++) {
            for (int k = 0; k < ARENAS; k++) {
                arenas[1][k] =
                    b == 0 ? hpct_backend_host_allocate(total * sizeof(float)) : arenas[1][k];
                if (b == 0)
                    memcpy(arenas[1][k], arenas[0][k], total * sizeof(float));
            }
            scaling[b] = (hpct_graph_loss_scaling) HPCT_GRAPH_LOSS_SCALING_BEGIN;
            scaling[b].good = HPCT_GRAPH_SCALING_STEPS - first_good;
        }
        for (int b = 0; b < 2; b++) {
            size_t at = ranges[num - 1].offset;
            float *grad = arenas[b][ARENA_GRAD];
            call.param = arenas[b][ARENA_PARAM];
            call.grad = grad;
            call.slot[0] = call.kind == HPCT_SGD && i % 3 == 0 ? NULL : arenas[b][ARENA_SLOT];
            call.slot[1] = arenas[b][ARENA_SLOT + 1];
            call.scaling = &scaling[b];
            for (size_t k = 0; k < total; k++)
                grad[k] *= scaling[b].scale;
            for (int t = 1; t <= 6; t++) {
                float kept = grad[at];
                call.bias_1 = (float) (1 - pow(0.9, t));
                call.bias_2 = (float) (1 - pow(0.999, t));
                if (t - 1 == bad || t == bad)
                    grad[at] = t % 2 == 0 ? INFINITY : NAN;
                others.not_finite = t == 6;
                assert_int_equal(backends[b]->update(&call), HPCT_OK);
                grad[at] = kept;
            }
        }
        assert_true(scaling[0].scale == scaling[1].scale && scaling[0].good == scaling[1].good &&
                    scaling[0].left_out == scaling[1].left_out);
        assert_true(scaling[0].left_out == (bad == 0 ? 1 : 2) + (alone ? 0 : 1));
        for (int k = 0; k < ARENAS; k++) {
            double difference = nn_difference(arenas[1][k], arenas[0][k], total);
            if (difference > 4e-6)
                fail_msg("%s, arena %d: off by %g", hpct_optimizer_name(call.kind), k, difference);
            hpct_backend_host_release(arenas[0][k]);
            hpct_backend_host_release(arenas[1][k]);
        }
    }
}

/* Three updates of one number by keras.optimizers.RMSprop of Keras 3.15. */
TEST(rmsprop_is_keras)
{
    static const float gradients[] = {0.5f, -0.25f, 1.0f};
    static const struct {
        float momentum, weight_decay;
        bool centered;
        float wanted[3];
    } cases[] = {
        {0, 0, false, {0.977859616f, 0.988668084f, 0.968382061f}},
        {0.9f, 0, false, {0.977859616f, 0.968741715f, 0.940249562f}},
        {0, 0, true, {0.975306749f, 0.986207247f, 0.963434279f}},
        {0.9f, 0.1f, true, {0.974306762f, 0.962009072f, 0.928083062f}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        for (int b = -1; b < 0 || BACKENDS[b] != NULL; b++) {
            float *arenas[ARENAS];
            for (int i = 0; i < ARENAS; i++)
                arenas[i] = hpct_backend_host_allocate(16 * sizeof(float));
            hpct_backend_update_range range = {.count = 16};
            hpct_backend_update_call call = {
                .kind = HPCT_RMSPROP,
                .learning_rate = 0.01f,
                .weight_decay = cases[k].weight_decay,
                .momentum = cases[k].momentum,
                .epsilon = 1e-3f,
                .mix_2 = 1 - 0.8f,
                .grad_scale = 1,
                .param = arenas[ARENA_PARAM],
                .grad = arenas[ARENA_GRAD],
                .slot = {cases[k].momentum > 0 ? arenas[ARENA_SLOT] : NULL, arenas[ARENA_SLOT + 1],
                         cases[k].centered ? arenas[ARENA_SLOT + 2] : NULL},
                .ranges = &range,
                .num_ranges = 1,
            };
            arenas[ARENA_PARAM][0] = 1;
            for (int t = 0; t < 3; t++) {
                arenas[ARENA_GRAD][0] = gradients[t];
                assert_int_equal(
                    b < 0 ? hpct_ref_backend.update(&call) : BACKENDS[b]->update(&call), HPCT_OK);
                if (!(fabsf(arenas[ARENA_PARAM][0] - cases[k].wanted[t]) < 1e-6f))
                    fail_msg("case %zu, update %d: %.9g", k, t, (double) arenas[ARENA_PARAM][0]);
            }
            assert_true(arenas[ARENA_PARAM][1] == 0);
            for (int i = 0; i < ARENAS; i++)
                hpct_backend_host_release(arenas[i]);
        }
    }
}

/* Gradients that are all alike have no variance, and none below 0 by rounding. */
TEST(rmsprop_bears_gradients_without_variance)
{
    for (int b = -1; b < 0 || BACKENDS[b] != NULL; b++) {
        float param[16] __attribute__((aligned(64))) = {0}, grad[16] __attribute__((aligned(64)));
        float square[16] __attribute__((aligned(64))) = {0},
                         mean[16] __attribute__((aligned(64))) = {0};
        hpct_backend_update_range range = {.count = 16};
        hpct_backend_update_call call = {.kind = HPCT_RMSPROP,
                                         .learning_rate = 1e-6f,
                                         .epsilon = 1e-7f,
                                         .mix_2 = 0.1f,
                                         .grad_scale = 1,
                                         .param = param,
                                         .grad = grad,
                                         .slot = {NULL, square, mean},
                                         .ranges = &range,
                                         .num_ranges = 1};
        for (int i = 0; i < 16; i++)
            grad[i] = 10.0f + 0.37f * (float) i;
        for (int t = 0; t < 400; t++)
            assert_int_equal(b < 0 ? hpct_ref_backend.update(&call) : BACKENDS[b]->update(&call),
                             HPCT_OK);
        for (int i = 0; i < 16; i++)
            assert_true(isfinite(param[i]) && param[i] < 0);
    }
}

/* A gradient that is not a number must show in the weights, however it is clipped. */
TEST(a_gradient_that_is_no_number_shows)
{
    for (int b = 0; BACKENDS[b] != NULL; b++) {
        for (int clip = 0; clip < 4; clip++) {
            float arenas[3][16] = {{1}, {NAN, 1}, {0}};
            hpct_backend_update_range range = {.count = 16, .adapt = true};
            hpct_backend_update_call call = random_update(HPCT_SGD, clip);
            call.param = arenas[0];
            call.grad = arenas[1];
            call.slot[0] = arenas[2];
            call.ranges = &range;
            call.num_ranges = 1;
            assert_int_equal(BACKENDS[b]->update(&call), HPCT_OK);
            assert_true(isnan(arenas[0][0]) && isnan(arenas[0][1]) == (clip > 1));
        }
    }
}

#define MOST_PENALTIES 300 /* of more parameters than a launch on a GPU has room for */

static hpct_backend_penalty random_penalty(const hpct_backend_update_range *range)
{
    int kind = pick(0, 3);
    return (hpct_backend_penalty){.offset = range->offset,
                                  .count = range->count,
                                  .l1 = kind == 0 ? 0 : 0.01f * (float) pick(1, 9),
                                  .l2 = kind == 1 ? 0 : 0.01f * (float) pick(1, 9),
                                  .split = pick(0, 2) == 0};
}

/* Gradients alone, sums alone, or both, with scaled gradients or not. */
static void check_penalties(int num, int what)
{
    float *arenas[ARENAS], sums[2], expected_sums[2];
    hpct_backend_update_range ranges[MOST_PENALTIES];
    hpct_backend_penalty penalties[MOST_PENALTIES];
    hpct_graph_loss_scaling scaling = HPCT_GRAPH_LOSS_SCALING_BEGIN;
    size_t total = random_arenas(arenas, ranges, num);
    float *expected = hpct_backend_host_allocate(total * sizeof *expected),
          *got = hpct_backend_host_allocate(total * sizeof *got);
    scaling.scale = 8;
    for (int i = 0; i < num; i++)
        penalties[i] = random_penalty(&ranges[i]);
    for (int b = -1; b < 0 || BACKENDS[b] != NULL; b++) {
        const hpct_backend *backend = b < 0 ? &hpct_ref_backend : BACKENDS[b];
        hpct_backend_penalty_call call = {.penalties = penalties,
                                          .num = num,
                                          .param = arenas[ARENA_PARAM],
                                          .grad = what == 1 ? NULL
                                                  : b < 0   ? expected
                                                            : got,
                                          .factor = 2,
                                          .scaling = what == 3 ? &scaling : NULL,
                                          .sums = what == 0 ? NULL
                                                  : b < 0   ? expected_sums
                                                            : sums};
        memcpy(b < 0 ? expected : got, arenas[ARENA_GRAD], total * sizeof *got);
        sums[0] = sums[1] = NAN;
        assert_int_equal(backend->penalize(&call), HPCT_OK);
        if (b < 0)
            continue;
        if (nn_difference(got, expected, total) > 1e-6)
            fail_msg("penalties on %s: gradients are off by %g", backend->name,
                     nn_difference(got, expected, total));
        for (int k = 0; k < 2 && what != 0; k++)
            if (!(fabsf(sums[k] - expected_sums[k]) <= 1e-6f * expected_sums[k]))
                fail_msg("penalties on %s: %g, not %g", backend->name, (double) sums[k],
                         (double) expected_sums[k]);
    }
    for (int k = 0; k < ARENAS; k++)
        hpct_backend_host_release(arenas[k]);
    hpct_backend_host_release(expected);
    hpct_backend_host_release(got);
}

TEST(penalties_match)
{
    for (int i = 0; i < unit_cases(nn_cases(40)); i++)
        check_penalties(i % 10 == 9 ? MOST_PENALTIES : pick(1, 6), i % 4);
    all_large = true;
    check_penalties(1, 2);
    check_penalties(3, 3);
    all_large = false;
}

/* By hand: |w| has no slope at 0, and a parameter that is split is summed apart. */
TEST(penalties_are_l1_and_l2)
{
    for (int b = -1; b < 0 || BACKENDS[b] != NULL; b++) {
        float *w = hpct_backend_host_allocate(32 * sizeof *w),
              *g = hpct_backend_host_allocate(32 * sizeof *g), sums[2];
        const hpct_backend_penalty penalties[] = {
            {.count = 16, .l1 = 0.5f, .l2 = 0.25f},
            {.offset = 16, .count = 16, .l1 = 1, .split = true}};
        const float first[] = {2, -1, 0};
        memcpy(w, first, sizeof first);
        w[16] = -3;
        g[1] = 1;
        hpct_backend_penalty_call call = {
            .penalties = penalties, .num = 2, .param = w, .grad = g, .factor = 1, .sums = sums};
        const hpct_backend *backend = b < 0 ? &hpct_ref_backend : BACKENDS[b];
        assert_int_equal(backend->penalize(&call), HPCT_OK);
        assert_true(sums[0] == 3 && sums[1] == 0.5f * 3 + 0.25f * 5);
        assert_true(g[0] == 1.5f && g[1] == 0 && g[2] == 0 && g[16] == -1 && g[17] == 0);
        hpct_backend_host_release(w);
        hpct_backend_host_release(g);
    }
}

TEST(accumulation_matches)
{
    for (int b = 0; BACKENDS[b] != NULL; b++) {
        size_t count = 16 * (size_t) pick(1, 5000);
        float *src = hpct_backend_host_allocate(count * sizeof *src),
              *dst = hpct_backend_host_allocate(count * sizeof *dst);
        for (size_t i = 0; i < count; i++) {
            src[i] = hpct_graph_uniform(draws, 1, i);
            dst[i] = NAN;
        }
        assert_int_equal(BACKENDS[b]->accumulate(count, src, dst, true), HPCT_OK);
        assert_memory_equal(src, dst, count * sizeof *src);
        assert_int_equal(BACKENDS[b]->accumulate(count, src, dst, false), HPCT_OK);
        for (size_t i = 0; i < count; i++)
            assert_true(dst[i] == 2 * src[i]);
        hpct_backend_host_release(src);
        hpct_backend_host_release(dst);
    }
}

TEST(vectors_match)
{
    for (int i = 0; i < unit_cases(nn_cases(20)); i++) {
        size_t count = (size_t) pick(1, 70000);
        float *a[2], *b = hpct_backend_host_allocate(count * sizeof(float));
        for (int k = 0; k < 2; k++) {
            a[k] = hpct_backend_host_allocate(count * sizeof(float));
            for (size_t j = 0; j < count; j++) {
                a[k][j] = hpct_graph_uniform(draws, 0, j) - 0.5f;
                b[j] = hpct_graph_uniform(draws, 1, j) - 0.5f;
            }
            const hpct_backend *backend = k == 0 ? &hpct_ref_backend : BACKENDS[0];
            assert_int_equal(backend->accumulate(count, b, a[k], false), HPCT_OK);
            assert_int_equal(backend->scale(count, 0.3f, a[k]), HPCT_OK);
        }
        assert_true(nn_difference(a[1], a[0], count) < 1e-6);
        hpct_backend_host_release(a[0]);
        hpct_backend_host_release(a[1]);
        hpct_backend_host_release(b);
    }
}
