/* Accumulates gradients and applies updates. */
#include "agent/ps/holder.h"

#include "base/status.h"
#include "nn/run/step.h"

#include <stdlib.h>
#include <string.h>

hpct_status hpct_ps_holder_init(hpct_ps_holder *holder, const hpct_ps_run *run)
{
    const size_t *b = &run->bounds[run->index], *s = &run->state_bounds[run->index];
    *holder = (hpct_ps_holder){.run = run,
                               .begin = b[0],
                               .count = b[1] - b[0],
                               .version = run->schedule.first_step,
                               .state_begin = s[0],
                               .state_count = s[1] - s[0]};
    hpct_model_set_learning_rate(run->model, 0);
    holder->has = calloc((size_t) run->schedule.slices, sizeof *holder->has);
    holder->states = calloc(holder->state_count + 1, sizeof *holder->states);
    if (holder->has == NULL || holder->states == NULL) {
        hpct_ps_holder_free(holder);
        return hpct_fail_memory((holder->state_count + 1) * sizeof *holder->states);
    }
    return HPCT_OK;
}

void hpct_ps_holder_free(hpct_ps_holder *holder)
{
    free(holder->has);
    free(holder->states);
    holder->has = NULL;
    holder->states = NULL;
}

/* dst += src; dst = src if it is the first. */
static void add(float *restrict dst, const float *restrict src, size_t count, bool first)
{
    if (first) {
        memcpy(dst, src, count * sizeof *dst);
        return;
    }
#pragma omp simd
    for (size_t i = 0; i < count; i++)
        dst[i] += src[i];
}

static hpct_status update(hpct_ps_holder *holder)
{
    size_t count;
    hpct_model *model = holder->run->model;
    float *states = hpct_model_states(model, &count);
    hpct_model_set_learning_rate(model, holder->rate);
    hpct_status status =
        hpct_model_update_part(model, holder->begin, holder->begin + holder->count);
    if (holder->state_count > 0)
        add(states + holder->state_begin, holder->states, holder->state_count, false);
    holder->version++;
    holder->have = 0;
    memset(holder->has, 0, (size_t) holder->run->schedule.slices * sizeof *holder->has);
    return status;
}

hpct_status hpct_ps_holder_push(hpct_ps_holder *holder, int64_t step, int slice, double rate,
                                const float *floats)
{
    size_t count;
    bool synchronous = holder->run->schedule.synchronous;
    float *gradients = hpct_model_gradients(holder->run->model, &count);
    if (synchronous && (step != holder->version || holder->has[slice]))
        return HPCT_OK;
    holder->rate = rate;
    add(gradients + holder->begin, floats, holder->count, holder->have == 0);
    add(holder->states, floats + holder->count, holder->state_count, holder->have == 0);
    if (!synchronous)
        return update(holder);
    holder->has[slice] = true;
    holder->have++;
    return HPCT_OK;
}

hpct_status hpct_ps_holder_reach(hpct_ps_holder *holder, int64_t version, bool *possible)
{
    const hpct_ps_schedule_options *options = &holder->run->schedule;
    *possible = true;
    if (!options->synchronous || version <= holder->version)
        return HPCT_OK;
    *possible = version == holder->version + 1 &&
                holder->have == hpct_ps_step_slices(options, holder->version);
    return *possible ? update(holder) : HPCT_OK;
}
