/* Keras' learning rate schedules, with a linear warm-up before any of them. */
#include "nn/graph/schedule.h"

#include "base/status.h"

#include <inttypes.h>
#include <math.h>

#define DEFAULT_END 1e-4

static bool is_rate(double value)
{
    return isfinite(value) && value >= 0;
}

static hpct_status check_piecewise(const hpct_schedule *s)
{
    if (s->num_boundaries < 1 || s->num_boundaries > HPCT_MAX_BOUNDARIES)
        return hpct_fail(HPCT_ERR_USAGE, "schedule: %d boundaries, there must be 1 to %d",
                         s->num_boundaries, HPCT_MAX_BOUNDARIES);
    for (int i = 0; i <= s->num_boundaries; i++) {
        if (!is_rate(s->values[i]))
            return hpct_fail(HPCT_ERR_USAGE, "schedule: value %g must be a number from 0 on",
                             s->values[i]);
        if (i > 0 && i < s->num_boundaries && s->boundaries[i] <= s->boundaries[i - 1])
            return hpct_fail(HPCT_ERR_USAGE, "schedule: the boundaries must increase");
    }
    return HPCT_OK;
}

hpct_status hpct_graph_schedule_resolve(hpct_schedule *s)
{
    if (s->first_step < 0 || s->first_step > INT64_MAX / 2)
        return hpct_fail(HPCT_ERR_USAGE, "schedule: the first step cannot be %" PRId64,
                         s->first_step);
    if (s->warmup_steps < 0 || !is_rate(s->warmup_start))
        return hpct_fail(HPCT_ERR_USAGE, "schedule: a warm-up cannot be negative");
    if (s->kind == HPCT_CONSTANT)
        return HPCT_OK;
    if (s->kind == HPCT_PIECEWISE_CONSTANT)
        return check_piecewise(s);
    if ((int) s->kind < 0 || s->kind >= HPCT_SCHEDULE_KINDS)
        return hpct_fail(HPCT_ERR_USAGE, "there is no schedule %d", (int) s->kind);
    if (s->decay_steps < 1)
        return hpct_fail(HPCT_ERR_USAGE, "schedule: decay_steps must be at least 1");
    if (s->kind == HPCT_EXPONENTIAL_DECAY && !(s->decay_rate > 0 && isfinite(s->decay_rate)))
        return hpct_fail(HPCT_ERR_USAGE, "schedule: decay_rate must be above 0");
    if (s->power == 0)
        s->power = 1;
    if (s->end_learning_rate == 0 && !s->to_zero)
        s->end_learning_rate = DEFAULT_END;
    if (s->to_zero)
        s->end_learning_rate = 0;
    if (!is_rate(s->alpha) || !is_rate(s->power) || !is_rate(s->end_learning_rate))
        return hpct_fail(HPCT_ERR_USAGE,
                         "schedule: alpha, power and end_learning_rate cannot be negative");
    return HPCT_OK;
}

static double piecewise(const hpct_schedule *s, int64_t step)
{
    int i = 0;
    while (i < s->num_boundaries && step > s->boundaries[i])
        i++;
    return s->values[i];
}

/* Step 0 is the first after the warm-up. */
static double scheduled(const hpct_schedule *s, double rate, int64_t step)
{
    double fraction = s->decay_steps > 0 ? (double) step / (double) s->decay_steps : 0;
    double until_end = fmin(fraction, 1);
    switch (s->kind) {
    case HPCT_PIECEWISE_CONSTANT:
        return piecewise(s, step);
    case HPCT_EXPONENTIAL_DECAY:
        return rate * pow(s->decay_rate, s->staircase ? floor(fraction) : fraction);
    case HPCT_COSINE_DECAY:
        return rate * ((1 - s->alpha) * 0.5 * (1 + cos(M_PI * until_end)) + s->alpha);
    case HPCT_POLYNOMIAL_DECAY:
        return (rate - s->end_learning_rate) * pow(1 - until_end, s->power) + s->end_learning_rate;
    case HPCT_CONSTANT:
    case HPCT_SCHEDULE_KINDS:
        break;
    }
    return rate;
}

double hpct_graph_schedule_rate(const hpct_schedule *s, double learning_rate, int64_t step)
{
    step += s->first_step;
    if (step >= s->warmup_steps)
        return scheduled(s, learning_rate, step - s->warmup_steps);
    double target = scheduled(s, learning_rate, 0);
    return s->warmup_start + (target - s->warmup_start) * (double) step / (double) s->warmup_steps;
}
