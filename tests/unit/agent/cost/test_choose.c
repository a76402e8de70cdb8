/* What auto takes: who is a candidate, and who wins on machines that disturb their measurements. */
#include "agent/cost/candidates.h"
#include "agent/cost/contest.h"
#include "agent/strategies/strategies.h"
#include "tests/unit/unit.h"

#include <math.h>

/* ---- candidates ---- */

static const hpct_cost_candidate *candidate_of(hpct_cost_scheme scheme)
{
    for (int i = 0; i < HPCT_COST_CANDIDATES; i++) {
        if (hpct_cost_candidates[i].scheme == scheme)
            return &hpct_cost_candidates[i];
    }
    fail_msg("%s is no candidate", hpct_cost_scheme_name(scheme));
    return NULL;
}

static bool takes(hpct_cost_scheme scheme, hpct_strategy_options given)
{
    return hpct_cost_candidate_is_allowed(candidate_of(scheme), &given);
}

TEST(candidates_follow_options)
{
    const hpct_strategy_options exact = {0}, lossy = {.allow_lossy = true};
    for (int i = 0; i < HPCT_COST_SCHEMES; i++) {
        assert_int_equal(takes((hpct_cost_scheme) i, exact),
                         hpct_cost_scheme_is_exact((hpct_cost_scheme) i));
        assert_true(takes((hpct_cost_scheme) i, lossy));
        const hpct_strategy_ops *ops;
        hpct_strategy_options filled =
            hpct_cost_candidate_options(candidate_of((hpct_cost_scheme) i), &lossy);
        assert_int_equal(hpct_strategy_find(&ops, &filled), HPCT_OK);
        assert_string_equal(ops->name, filled.name);
    }
    const hpct_strategy_options rows = {.hybrid_form = "rows"}, any = {.hybrid_form = "auto"};
    assert_true(takes(HPCT_COST_SCHEME_HYBRID_ROWS, rows));
    assert_false(takes(HPCT_COST_SCHEME_HYBRID_COLUMNS, rows));
    assert_false(takes(HPCT_COST_SCHEME_HYBRID_BACK, rows));
    assert_true(takes(HPCT_COST_SCHEME_HYBRID_COLUMNS, any));
    const hpct_strategy_options fp16 = {.allow_lossy = true, .wire = HPCT_WIRE_FP16};
    assert_true(takes(HPCT_COST_SCHEME_MIRRORED, fp16));
    assert_false(takes(HPCT_COST_SCHEME_MIRRORED_BF16, fp16));
    assert_false(takes(HPCT_COST_SCHEME_POWERSGD, fp16));
    assert_int_equal(
        hpct_cost_candidate_options(candidate_of(HPCT_COST_SCHEME_MIRRORED), &fp16).wire,
        HPCT_WIRE_FP16);
}

/* ---- the contest ---- */

typedef struct field {
    int num;
    double truth[HPCT_COST_CONTEST_MOST], foreseen[HPCT_COST_CONTEST_MOST];
    double noise;  /* a block takes up to so many times longer */
    int disturbed; /* the number, of all blocks, that takes ten times as long; -1: none */
    unsigned seed;
    int blocks; /* that were measured */
} field;

static double measure(field *f, int i)
{
    double longer = 1 + f->noise * rand_r(&f->seed) / (double) RAND_MAX;
    return f->truth[i] * (f->blocks++ == f->disturbed ? 10 : longer);
}

static int hold(field *f, bool late)
{
    hpct_cost_contest c = {.num = f->num};
    int order[HPCT_COST_CONTEST_MOST];
    for (int i = 0; i < f->num; i++) {
        c.runs[i] = true;
        c.foreseen[i] = f->foreseen[i];
    }
    hpct_cost_contest_order(&c, order);
    for (int k = 1; k < f->num; k++)
        assert_false(c.foreseen[order[k]] < c.foreseen[order[k - 1]]);
    f->blocks = 0;
    for (int round = 0; round < HPCT_COST_CONTEST_ROUNDS; round++) {
        for (int k = 0; k < f->num; k++) {
            int i = order[round % 2 == 0 ? k : f->num - 1 - k];
            if (hpct_cost_contest_calls(&c, i))
                hpct_cost_contest_note(&c, i, measure(f, i));
        }
        if (hpct_cost_contest_is_over(&c, late))
            break;
    }
    return hpct_cost_contest_winner(&c);
}

/* Within 3 % of the best, whatever it is, whatever was foreseen. */
TEST(the_best_wins)
{
    unsigned seed = 4711;
    for (int trial = 0; trial < unit_cases(3000); trial++) {
        field f = {.num = 1 + trial % HPCT_COST_CONTEST_MOST,
                   .noise = 0.005,
                   .disturbed = -1,
                   .seed = seed};
        double best = INFINITY;
        for (int i = 0; i < f.num; i++) {
            f.truth[i] = 1e-3 * exp(3.0 * rand_r(&seed) / RAND_MAX);
            f.foreseen[i] = f.truth[i] * exp(rand_r(&seed) / (double) RAND_MAX - 0.5);
            best = fmin(best, f.truth[i]);
        }
        if (trial % 3 == 0)
            f.foreseen[0] = NAN;
        assert_true(f.truth[hold(&f, trial % 2 == 0)] <= 1.03 * best);
    }
}

/* One block of the best is held up by others, whichever it is: it wins all the same. */
TEST(one_disturbance_does_not_decide)
{
    for (int at = 0; at < 12; at++) {
        field f = {.num = 3,
                   .truth = {16e-3, 8e-3, 10e-3},
                   .foreseen = {15e-3, 8e-3, 9e-3},
                   .noise = 0.01,
                   .disturbed = at,
                   .seed = 1};
        assert_int_equal(hold(&f, false), 1);
    }
}

TEST(the_simplest_of_equals)
{
    field f = {.num = 3,
               .truth = {10.1e-3, 10e-3, 10e-3},
               .foreseen = {10e-3, 8e-3, 9e-3},
               .disturbed = -1};
    assert_int_equal(hold(&f, false), 0);
    assert_int_equal(f.blocks, 3 * 2 + 2 * 5); /* nothing tells the last two apart */
    f.truth[0] = 10.5e-3;
    assert_int_equal(hold(&f, false), 1);
}

/* What takes seconds a step on a slow link is not tried, and one that is alone is no contest. */
TEST(hopeless_candidates_are_not_timed)
{
    field f = {.num = 2, .truth = {2, 8e-3}, .foreseen = {1.9, 9e-3}, .disturbed = -1};
    assert_int_equal(hold(&f, false), 1);
    assert_int_equal(f.blocks, 2);
    f = (field){.num = 2, .truth = {2, 8e-3}, .foreseen = {20e-3, 9e-3}, .disturbed = -1};
    assert_int_equal(hold(&f, false), 1);
    assert_int_equal(f.blocks, 3); /* the slow one once */
    f = (field){.num = 1, .truth = {2}, .foreseen = {2}, .disturbed = -1};
    assert_int_equal(hold(&f, true), 0);
    assert_int_equal(f.blocks, 1);
    hpct_cost_contest none = {.num = 2};
    assert_true(hpct_cost_contest_is_over(&none, true));
    assert_int_equal(hpct_cost_contest_winner(&none), -1);
}
