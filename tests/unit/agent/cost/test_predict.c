/* The formulae of predictions: their limits, and that they move the right way. */
#include "agent/cost/payoff.h"
#include "agent/cost/predict.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

/* conv (320 parameters) -> pool -> dense (21632 x 128) -> dense (128 x 10), as in the small CNN. */
enum { CONV, POOL, DENSE, HEAD, PARTS };
static const hpct_run_part parts[PARTS] = {
    {.split = HPCT_RUN_PART_MAKES, .input = -1, .gradients = 320, .rows = 9, .cols = 32},
    {.split = HPCT_RUN_PART_PASSES_ON, .input = CONV},
    {.split = HPCT_RUN_PART_MAKES,
     .dense = true,
     .input = POOL,
     .gradients = 2769024,
     .rows = 21632,
     .cols = 128},
    {.split = HPCT_RUN_PART_MAKES,
     .dense = true,
     .input = DENSE,
     .gradients = 1290,
     .rows = 128,
     .cols = 10},
};
#define FLOATS (320.0 + 2769024 + 1290)
static const hpct_cost_part_work work[PARTS] = {
    {{1e-5, 2e-5}, {1e-5, 3e-5}},
    {{0, 1e-5}, {0, 1e-5}},
    {{1e-3, 4e-5}, {2e-3, 8e-5}},
    {{1e-6, 1e-6}, {1e-6, 1e-6}},
};
static const hpct_cost_part_work fused[PARTS] = {
    {{1e-5, 2e-5}, {2e-5, 3e-5}},
    {{0, 1e-5}, {0, 1e-5}},
    {{1e-3, 4e-5}, {3e-3, 8e-5}},
    {{1e-6, 1e-6}, {2e-6, 1e-6}},
};
static const hpct_cost_model cost = {
    .parts = parts,
    .num_parts = PARTS,
    .work = work,
    .loss = {0, 1e-7},
    .update = 1e-3,
    .fused = fused,
    .fused_update = 1e-4,
    .alone = {3e-3, 1.921e-4},
    .bytes_per_second = 1e10,
};
static const hpct_cost_scheme_options how = {.powersgd_rank = 4, .local_steps = 8};
static const hpct_comm_network gigabit = {50e-6, 125e6, 0}, free_network = {0, INFINITY, 0};

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-12 + 1e-9 * fabs(b);
}
#define NEAR(a, b) assert_true(is_near(a, b))

static double forward_and_backward(double samples)
{
    double sum = cost.loss.fixed + samples * cost.loss.each;
    for (int i = 0; i < PARTS; i++)
        sum += work[i].forward.fixed + work[i].backward.fixed +
               samples * (work[i].forward.each + work[i].backward.each);
    return sum;
}

TEST(collectives)
{
    const hpct_comm_network slow = {0, 1e6, 0}, late = {1e-3, INFINITY, 0};
    NEAR(hpct_cost_predict_allreduce(&gigabit, 1, 1e9), 0);
    NEAR(hpct_cost_predict_allgather(&gigabit, 1, 1e9), 0);
    NEAR(hpct_cost_predict_allreduce(&gigabit, 2, 1.25e6), 50e-6 + 1e-2); /* one exchange */
    for (int ranks = 2; ranks <= 64; ranks++) {
        double least = 2 * (ranks - 1.0) / ranks; /* of any algorithm: Patarasu and Yuan */
        NEAR(hpct_cost_predict_allreduce(&slow, ranks, 1e6), least);
        double rounds = ceil(log2(ranks));
        NEAR(hpct_cost_predict_allreduce(&late, ranks, 1e6), 1e-3 * rounds);
        /* many bytes take there and back, and the least that is possible */
        NEAR(hpct_cost_predict_allreduce(&gigabit, ranks, 1e9),
             (ranks == 2 ? 1 : 2 * rounds) * 50e-6 + least * 8);
        NEAR(hpct_cost_predict_allreduce(&free_network, ranks, 1e6), 0);
        NEAR(hpct_cost_predict_allgather(&slow, ranks, 1e6), ranks - 1);
        NEAR(hpct_cost_predict_allgather(&late, ranks, 1e6), 1e-3 * ceil(log2(ranks)));
        for (double bytes = 4; bytes < 1e9; bytes *= 8) { /* more takes longer */
            double some = hpct_cost_predict_allreduce(&gigabit, ranks, bytes);
            assert_true(some < hpct_cost_predict_allreduce(&gigabit, ranks, 2 * bytes));
            assert_true(some >= 50e-6 + bytes / 125e6 * least * (1 - 1e-12));
        }
    }
}

TEST(one_rank)
{
    for (int scheme = 0; scheme < HPCT_COST_SCHEMES; scheme++) {
        hpct_cost_prediction p =
            hpct_cost_predict((hpct_cost_scheme) scheme, &cost, &gigabit, &how, 1, 64);
        assert_true(p.possible);
        NEAR(p.step_seconds, 3e-3 + 64 * 1.921e-4);
        NEAR(p.network_seconds, 0);
        assert_true(p.bytes == 0);
    }
}

TEST(infinite_network_is_free)
{
    double whole = forward_and_backward(64) + cost.update;
    for (int ranks = 2; ranks <= 32; ranks *= 2) {
        hpct_cost_prediction p[HPCT_COST_SCHEMES];
        for (int scheme = 0; scheme < HPCT_COST_SCHEMES; scheme++) {
            if (scheme == HPCT_COST_SCHEME_HYBRID_BACK)
                continue;
            p[scheme] =
                hpct_cost_predict((hpct_cost_scheme) scheme, &cost, &free_network, &how, ranks, 64);
            assert_true(p[scheme].possible);
            NEAR(p[scheme].network_seconds, 0);
            NEAR(p[scheme].step_seconds, p[scheme].compute_seconds);
        }
        NEAR(p[HPCT_COST_SCHEME_MIRRORED].step_seconds, whole);
        NEAR(p[HPCT_COST_SCHEME_LOCAL_SGD].step_seconds, 3e-3 + 64 * 1.921e-4);
        /* by rows: what is shared takes one rank's samples, its fixed part shrinks, the head sees
         * the batches of all */
        double fixed = 3e-5 + 4e-3, each = 2e-5 + 3e-5 + 2e-5 + 12e-5, loss = 64 * ranks * 1e-7;
        double head = 3e-6 + 64 * ranks * 2e-6;
        double kept = ((320 + 2769024.0) / ranks + 1290) / FLOATS;
        NEAR(p[HPCT_COST_SCHEME_HYBRID_ROWS].step_seconds,
             fixed / ranks + 64 * each + head + loss + 1e-4 * kept);
        /* by columns: the convolution and the pool see all; the head has rows for its columns */
        double repeated = 3e-5 + 64 * ranks * (5e-5 + 2e-5);
        kept = (320 + (2769024.0 + 1290) / ranks) / FLOATS;
        NEAR(p[HPCT_COST_SCHEME_HYBRID_COLUMNS].step_seconds,
             4e-3 / ranks + 64 * 12e-5 + repeated + head / ranks + loss + 1e-4 * kept);
    }
}

TEST(bytes_per_strategy)
{
    const struct {
        hpct_cost_scheme scheme;
        double bytes;
    } wanted[] = {
        {HPCT_COST_SCHEME_MIRRORED, 4 * FLOATS},
        {HPCT_COST_SCHEME_MIRRORED_BF16, 2 * FLOATS},
        {HPCT_COST_SCHEME_HYBRID_ROWS, 4.0 * 256 * 128},
        {HPCT_COST_SCHEME_HYBRID_COLUMNS, 4.0 * 256 * 10 + 4 * 320},
        {HPCT_COST_SCHEME_LOCAL_SGD, 4 * FLOATS / 8},
        /* the first kernel, 9 x 32, is the larger for it: 4 x 41 numbers for 288; the biases whole
         */
        {HPCT_COST_SCHEME_POWERSGD,
         4 * (4 * (9.0 + 32) + 32 + 4 * (21632.0 + 128) + 128 + 4 * (128.0 + 10) + 10)},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        hpct_cost_prediction p = hpct_cost_predict(wanted[i].scheme, &cost, &gigabit, &how, 4, 64);
        NEAR(p.bytes, wanted[i].bytes);
    }
}

/* A Dense of 30 by own samples, before one of 3000 and one of 10 that are split; samples of the
 * first go to all, and its gradients come back. */
TEST(last_layers)
{
    static const int units[] = {30, 3000, 10};
    hpct_model *model = hpct_model_new("dense", HPCT_SHAPE(24));
    hpct_run_part dense[3];
    const hpct_cost_part_work stored[3] = {
        {{1e-4, 1e-5}, {2e-4, 2e-5}}, {{3e-3, 4e-5}, {4e-3, 5e-5}}, {{1e-5, 1e-6}, {1e-5, 2e-6}}};
    const hpct_cost_part_work updating[3] = {
        {{1e-4, 1e-5}, {1e-4, 2e-5}}, {{3e-3, 4e-5}, {3e-3, 5e-5}}, {{1e-5, 1e-6}, {0, 2e-6}}};
    for (int i = 0; i < 3; i++)
        hpct_model_add_dense(model, &(hpct_dense){.units = units[i]});
    assert_int_equal(hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
                                        &(hpct_optimizer){.learning_rate = 0.1}),
                     HPCT_OK);
    for (int i = 0; i < 3; i++)
        dense[i] = hpct_model_part(model, i);
    hpct_cost_model of = {.parts = dense,
                          .num_parts = 3,
                          .work = stored,
                          .fused = updating,
                          .loss = {0, 1e-7},
                          .update = 1e-3,
                          .fused_update = 2e-4,
                          .model = model};
    const double front = 24 * 30 + 30, split = 30 * 3000 + 3000 + 3000 * 10 + 10;
    for (int ranks = 2; ranks <= 8; ranks *= 2) {
        double all = 64.0 * ranks;
        hpct_cost_prediction p =
            hpct_cost_predict(HPCT_COST_SCHEME_HYBRID_BACK, &of, &free_network, &how, ranks, 64);
        assert_true(p.possible);
        NEAR(p.step_seconds, 3e-4 + 64 * 3e-5 + (6e-3 + 1e-5 + all * 9.3e-5) / ranks + all * 1e-7 +
                                 (1e-3 * front + 2e-4 * split / ranks) / (front + split));
        NEAR(p.bytes, 4 * (30 * 64 + 30 * all + 10 * all + front));
        p = hpct_cost_predict(HPCT_COST_SCHEME_HYBRID_BACK, &of, &gigabit, &how, ranks, 64);
        NEAR(p.network_seconds,
             2 * hpct_cost_predict_allgather(&gigabit, ranks, 4 * 30 * 64) +
                 hpct_cost_predict_allreduce(&gigabit, ranks, 4 * 10 * all) +
                 hpct_comm_network_allreduce_seconds(&gigabit, ranks, 4 * front));
    }
    of.model = NULL;
    assert_false(
        hpct_cost_predict(HPCT_COST_SCHEME_HYBRID_BACK, &of, &gigabit, &how, 2, 64).possible);
    hpct_model_free(model);
}

TEST(monotonic)
{
    static const int ranks[] = {2, 3, 4, 7, 8, 20, 32};
    for (int scheme = 0; scheme < HPCT_COST_SCHEMES; scheme++) {
        for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++) {
            if (scheme == HPCT_COST_SCHEME_HYBRID_BACK)
                continue;
            hpct_cost_prediction p =
                hpct_cost_predict((hpct_cost_scheme) scheme, &cost, &gigabit, &how, ranks[i], 64);
            NEAR(p.compute_seconds + p.network_seconds, p.step_seconds);
            assert_true(p.network_seconds > 0);
            hpct_comm_network slower = {50e-6, 60e6, 0}, later = {100e-6, 125e6, 0};
            assert_true(
                hpct_cost_predict((hpct_cost_scheme) scheme, &cost, &slower, &how, ranks[i], 64)
                    .step_seconds > p.step_seconds);
            assert_true(
                hpct_cost_predict((hpct_cost_scheme) scheme, &cost, &later, &how, ranks[i], 64)
                    .step_seconds > p.step_seconds);
            assert_true(
                hpct_cost_predict((hpct_cost_scheme) scheme, &cost, &gigabit, &how, ranks[i], 65)
                    .step_seconds > p.step_seconds);
        }
    }
}

/* Backward of the convolution and the pool goes on while the Dense's gradient travels. */
TEST(overlap)
{
    hpct_cost_scheme_options one_bucket = how, buckets = how;
    one_bucket.bucket_bytes = 1e12;
    buckets.bucket_bytes = 1e6;
    const hpct_comm_network fast = {0, 4e9, 0}, slow = {0, 4e6, 0}, late = {1, 125e6, 0};
    double behind =
        work[CONV].backward.fixed + 64 * work[CONV].backward.each + 64 * work[POOL].backward.each;
    double last = 4 * FLOATS - 11e6; /* of eleven full ones and the rest */
    hpct_cost_prediction one =
        hpct_cost_predict(HPCT_COST_SCHEME_MIRRORED, &cost, &fast, &one_bucket, 2, 64);
    hpct_cost_prediction more =
        hpct_cost_predict(HPCT_COST_SCHEME_MIRRORED, &cost, &fast, &buckets, 2, 64);
    NEAR(one.network_seconds, 4 * FLOATS / 4e9);
    NEAR(more.network_seconds, fmax(0, 11e6 / 4e9 - behind) + last / 4e9);
    one = hpct_cost_predict(HPCT_COST_SCHEME_MIRRORED, &cost, &slow, &one_bucket, 2, 64);
    more = hpct_cost_predict(HPCT_COST_SCHEME_MIRRORED, &cost, &slow, &buckets, 2, 64);
    NEAR(one.network_seconds, 4 * FLOATS / 4e6);
    NEAR(more.network_seconds, 4 * FLOATS / 4e6 - behind);
    NEAR(more.compute_seconds, one.compute_seconds);
    /* a network that is all latency gets one bucket; one without any gets many */
    NEAR(hpct_cost_predict(HPCT_COST_SCHEME_MIRRORED, &cost, &late, &how, 2, 64).network_seconds,
         2 + 4 * FLOATS / 125e6);
    assert_true(
        hpct_cost_predict(HPCT_COST_SCHEME_MIRRORED, &cost, &slow, &how, 2, 64).network_seconds <
        one.network_seconds);
}

/* What the processor does for messages no network hides; but the last bucket's, for which nothing
 * is left to be computed, is part of what it takes to travel. */
TEST(processors_for_messages)
{
    const hpct_comm_network fast = {0, 1e15, 0}, busy = {0, 1e15, 2e-9};
    hpct_cost_scheme_options halves = how;
    halves.bucket_bytes = 4 * FLOATS / 2;
    hpct_cost_prediction free = hpct_cost_predict(HPCT_COST_SCHEME_MIRRORED, &cost, &fast, &halves,
                                                  4, 64),
                         busier = hpct_cost_predict(HPCT_COST_SCHEME_MIRRORED, &cost, &busy,
                                                    &halves, 4, 64);
    NEAR(busier.step_seconds - free.step_seconds, 2e-9 * halves.bucket_bytes * 2 * 3 / 4);
    NEAR(busier.compute_seconds, free.compute_seconds);
}

TEST(impossible_splits_are_refused)
{
    assert_true(
        hpct_cost_predict(HPCT_COST_SCHEME_HYBRID_ROWS, &cost, &gigabit, &how, 32, 64).possible);
    assert_false(
        hpct_cost_predict(HPCT_COST_SCHEME_HYBRID_ROWS, &cost, &gigabit, &how, 33, 64).possible);
    assert_true(hpct_cost_predict(HPCT_COST_SCHEME_HYBRID_COLUMNS, &cost, &gigabit, &how, 128, 64)
                    .possible);
    assert_false(hpct_cost_predict(HPCT_COST_SCHEME_HYBRID_COLUMNS, &cost, &gigabit, &how, 129, 64)
                     .possible);
    /* without the pooling ranks may share pixels, and add up what each of them knows of the kernel
     */
    hpct_run_part direct[PARTS];
    memcpy(direct, parts, sizeof direct);
    direct[CONV].cells = 676;
    hpct_cost_model by_cells = cost;
    by_cells.parts = direct;
    assert_false(hpct_cost_predict(HPCT_COST_SCHEME_HYBRID_ROWS, &by_cells, &gigabit, &how, 33, 64)
                     .possible);
    direct[DENSE].input = CONV;
    hpct_cost_prediction shared =
        hpct_cost_predict(HPCT_COST_SCHEME_HYBRID_ROWS, &by_cells, &gigabit, &how, 33, 64);
    assert_true(shared.possible);
    NEAR(shared.bytes, 4.0 * 33 * 64 * 128 + 4 * 320);
    shared = hpct_cost_predict(HPCT_COST_SCHEME_HYBRID_ROWS, &by_cells, &gigabit, &how, 2, 64);
    NEAR(shared.bytes, 4.0 * 2 * 64 * 128); /* 16 channels each */
    hpct_cost_model only_conv = cost;
    only_conv.num_parts = POOL + 1;
    assert_false(hpct_cost_predict(HPCT_COST_SCHEME_HYBRID_ROWS, &only_conv, &gigabit, &how, 2, 64)
                     .possible);
    hpct_run_part changed[PARTS];
    memcpy(changed, parts, sizeof changed);
    changed[POOL].split = HPCT_RUN_PART_WHOLE; /* a join, say */
    hpct_cost_model joined = cost;
    joined.parts = changed;
    assert_false(
        hpct_cost_predict(HPCT_COST_SCHEME_HYBRID_ROWS, &joined, &gigabit, &how, 2, 64).possible);
    assert_true(hpct_cost_predict(HPCT_COST_SCHEME_HYBRID_COLUMNS, &joined, &gigabit, &how, 2, 64)
                    .possible);
    changed[POOL].synchronize = 129; /* a synchronized BatchNormalization of 32 channels */
    hpct_cost_prediction with =
        hpct_cost_predict(HPCT_COST_SCHEME_MIRRORED, &joined, &gigabit, &how, 2, 64);
    hpct_cost_prediction without =
        hpct_cost_predict(HPCT_COST_SCHEME_MIRRORED, &cost, &gigabit, &how, 2, 64);
    NEAR(with.step_seconds - without.step_seconds, 3 * 50e-6 + 4 * 129 / 125e6);
}

static double efficiency(const hpct_cost_payoff_case *c, int ranks, hpct_cost_scheme scheme)
{
    double samples = c->same_global ? ceil(c->samples / ranks) : c->samples;
    double global = c->same_global ? c->samples : samples * ranks, alone = c->samples;
    double step = hpct_cost_predict(scheme, &cost, c->network, &how, ranks, samples).step_seconds;
    return global / step / ranks * (cost.alone.fixed + alone * cost.alone.each) / alone;
}

TEST(number_of_ranks_that_pays_off)
{
    hpct_cost_payoff_case c = {.cost = &cost, .network = &free_network, .how = how, .samples = 64};
    c.allowed[HPCT_COST_SCHEME_MIRRORED] = true;
    assert_int_equal(hpct_cost_payoff(&c),
                     HPCT_COST_PAYOFF_MOST); /* nothing is lost but for the update */
    c.network = &gigabit;                    /* a gradient of 11 MB takes longer than a step: */
    assert_int_equal(hpct_cost_payoff(&c), 1);
    c.allowed[HPCT_COST_SCHEME_LOCAL_SGD] = true; /* and an eighth of it does not */
    int most = hpct_cost_payoff(&c);
    assert_true(most > 2 &&
                efficiency(&c, most, HPCT_COST_SCHEME_LOCAL_SGD) >= HPCT_COST_PAYOFF_EFFICIENCY);

    const hpct_comm_network late = {2e-3, 125e6, 0};
    c = (hpct_cost_payoff_case){.cost = &cost,
                                .network = &late,
                                .how = how,
                                .allowed = {[HPCT_COST_SCHEME_HYBRID_ROWS] = true},
                                .samples = 256,
                                .same_global = true};
    most = hpct_cost_payoff(&c); /* messages limit it: 256 pictures alone take 50 ms */
    assert_true(most > 1 && most < 16);
    assert_true(efficiency(&c, most, HPCT_COST_SCHEME_HYBRID_ROWS) >= HPCT_COST_PAYOFF_EFFICIENCY);
    assert_true(efficiency(&c, 2 * most, HPCT_COST_SCHEME_HYBRID_ROWS) <
                HPCT_COST_PAYOFF_EFFICIENCY);
    c.network = &free_network;
    c.samples = 3;
    assert_true(hpct_cost_payoff(&c) <= 3); /* each rank has a sample */
}
