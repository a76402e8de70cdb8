/* Schedules and optimizers as described: values, defaults, what is refused. */
#include "nn/graph/optimizer.h"
#include "nn/graph/schedule.h"
#include "tests/unit/unit.h"

#include <hpctrain/model.h>
#include <math.h>

typedef struct expected {
    int64_t step;
    double rate;
} expected;

static void check(hpct_schedule schedule, double learning_rate, const expected *points, int count)
{
    assert_int_equal(hpct_graph_schedule_resolve(&schedule), HPCT_OK);
    for (int i = 0; i < count; i++) {
        double rate = hpct_graph_schedule_rate(&schedule, learning_rate, points[i].step);
        if (fabs(rate - points[i].rate) > 1e-12)
            fail_msg("schedule %d, step %ld: %.15g, not %.15g", (int) schedule.kind,
                     (long) points[i].step, rate, points[i].rate);
    }
}
#define CHECK(schedule, rate, ...)                                                                 \
    check(schedule, rate, (const expected[]){__VA_ARGS__},                                         \
          (int) (sizeof((const expected[]){__VA_ARGS__}) / sizeof(expected)))

/* tests/peers/nn_optimizers.py asks Keras itself; these are worked out by hand. */
TEST(schedules_have_keras_values)
{
    CHECK((hpct_schedule){0}, 0.3, {0, 0.3}, {1000000, 0.3});
    hpct_schedule piecewise = {.kind = HPCT_PIECEWISE_CONSTANT,
                               .num_boundaries = 2,
                               .boundaries = {3, 5},
                               .values = {1, 0.5, 0.1}};
    CHECK(piecewise, 7, {0, 1}, {3, 1}, {4, 0.5}, {5, 0.5}, {6, 0.1});
    hpct_schedule exponential = {
        .kind = HPCT_EXPONENTIAL_DECAY, .decay_steps = 4, .decay_rate = 0.25};
    CHECK(exponential, 1, {0, 1}, {2, 0.5}, {4, 0.25}, {6, 0.125});
    exponential.staircase = true;
    CHECK(exponential, 1, {0, 1}, {3, 1}, {4, 0.25}, {7, 0.25}, {8, 0.0625});
    hpct_schedule cosine = {.kind = HPCT_COSINE_DECAY, .decay_steps = 10, .alpha = 0.2};
    CHECK(cosine, 2, {0, 2}, {5, 1.2}, {10, 0.4}, {99, 0.4});
    hpct_schedule polynomial = {.kind = HPCT_POLYNOMIAL_DECAY, .decay_steps = 4, .power = 2};
    CHECK(polynomial, 1, {0, 1}, {2, 0.9999 / 4 + 1e-4}, {4, 1e-4}, {5, 1e-4});
    polynomial.to_zero = true;
    CHECK(polynomial, 1, {1, 9.0 / 16}, {2, 0.25}, {4, 0}, {9, 0});
    cosine.first_step = 5; /* of a run that goes on */
    CHECK(cosine, 2, {0, 1.2}, {5, 0.4}, {94, 0.4});
}

TEST(warm_up_leads_to_where_the_schedule_begins)
{
    hpct_schedule cosine = {.kind = HPCT_COSINE_DECAY, .decay_steps = 10, .warmup_steps = 4};
    CHECK(cosine, 2, {0, 0}, {1, 0.5}, {3, 1.5}, {4, 2}, {9, 1}, {14, 0});
    hpct_schedule constant = {.warmup_steps = 2, .warmup_start = 0.1};
    CHECK(constant, 0.3, {0, 0.1}, {1, 0.2}, {2, 0.3}, {3, 0.3});
    hpct_schedule piecewise = {.kind = HPCT_PIECEWISE_CONSTANT,
                               .warmup_steps = 2,
                               .num_boundaries = 1,
                               .boundaries = {3},
                               .values = {1, 0.5}};
    CHECK(piecewise, 7, {1, 0.5}, {2, 1}, {5, 1}, {6, 0.5});
}

TEST(impossible_schedules_are_refused)
{
    hpct_schedule wrong[] = {
        {.kind = HPCT_SCHEDULE_KINDS},
        {.warmup_steps = -1},
        {.warmup_start = NAN},
        {.kind = HPCT_COSINE_DECAY},
        {.kind = HPCT_COSINE_DECAY, .decay_steps = 5, .alpha = -1},
        {.kind = HPCT_EXPONENTIAL_DECAY, .decay_steps = 5},
        {.kind = HPCT_POLYNOMIAL_DECAY, .decay_steps = 5, .power = -1},
        {.kind = HPCT_PIECEWISE_CONSTANT},
        {.kind = HPCT_PIECEWISE_CONSTANT, .num_boundaries = HPCT_MAX_BOUNDARIES + 1},
        {.kind = HPCT_PIECEWISE_CONSTANT, .num_boundaries = 2, .boundaries = {5, 5}},
        {.kind = HPCT_PIECEWISE_CONSTANT, .num_boundaries = 1, .values = {1, -1}},
        {.first_step = -1},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(hpct_graph_schedule_resolve(&wrong[i]), HPCT_ERR_USAGE);
}

TEST(zero_means_keras_default)
{
    const double rates[] = {0.01, 0.001, 0.001, 0.5, 0.001, 0.001};
    const double decays[] = {0, 0, 0.004, 0, 0, 0};
    const int slots[] = {0, 2, 2, 1, 2, 1};
    for (int kind = 0; kind < HPCT_OPTIMIZER_KINDS; kind++) {
        hpct_optimizer given = {.kind = (hpct_optimizer_kind) kind}, o;
        if (kind == HPCT_LARS) {
            assert_int_equal(hpct_graph_optimizer_resolve(&o, &given), HPCT_ERR_USAGE);
            assert_string_equal(hpct_last_error(), "lars has no default learning rate: give one");
            given.learning_rate = 0.5;
        }
        assert_int_equal(hpct_graph_optimizer_resolve(&o, &given), HPCT_OK);
        assert_true(o.learning_rate == rates[kind] && o.weight_decay == decays[kind]);
        assert_true(o.momentum == (kind == HPCT_LARS ? 0.9 : 0));
        assert_true(o.beta_1 == 0.9 && o.beta_2 == 0.999 && o.epsilon == 1e-7);
        assert_int_equal(o.gradient_accumulation_steps, 1);
        assert_int_equal(hpct_graph_optimizer_is_plain(&o), kind == HPCT_SGD);
        assert_true(o.rho == (kind == HPCT_RMSPROP ? 0.9 : 0));
        assert_int_equal(hpct_graph_optimizer_num_slots(&o), slots[kind]);
        hpct_optimizer_kind found;
        assert_int_equal(hpct_optimizer_find(&found, hpct_optimizer_name(o.kind)), HPCT_OK);
        assert_int_equal(found, kind);
    }
    hpct_optimizer_kind kind;
    assert_int_equal(hpct_optimizer_find(&kind, "adagrad"), HPCT_ERR_USAGE);
    assert_string_equal(
        hpct_last_error(),
        "there is no optimizer \"adagrad\"; there are: sgd, adam, adamw, lars, lamb, rmsprop");
}

TEST(impossible_optimizers_are_refused)
{
    const hpct_optimizer wrong[] = {
        {.kind = HPCT_OPTIMIZER_KINDS},
        {.kind = (hpct_optimizer_kind) -1},
        {.learning_rate = -1},
        {.learning_rate = INFINITY},
        {.momentum = 1},
        {.kind = HPCT_ADAM, .momentum = 0.9},
        {.kind = HPCT_ADAM, .nesterov = true},
        {.kind = HPCT_ADAM, .beta_1 = 1},
        {.kind = HPCT_LAMB, .beta_2 = -0.1},
        {.kind = HPCT_RMSPROP, .rho = 1},
        {.kind = HPCT_RMSPROP, .nesterov = true},
        {.kind = HPCT_ADAM, .rho = 0.9},
        {.centered = true},
        {.weight_decay = -1},
        {.clipnorm = NAN},
        {.clipnorm = 1, .clipvalue = 1},
        {.global_clipnorm = 1, .clipvalue = 1},
        {.gradient_accumulation_steps = -1},
        {.schedule = {.kind = HPCT_COSINE_DECAY}},
    };
    hpct_optimizer o;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (hpct_graph_optimizer_resolve(&o, &wrong[i]) != HPCT_ERR_USAGE)
            fail_msg("number %zu was taken", i);
}
