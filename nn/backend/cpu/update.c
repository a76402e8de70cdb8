/* Optimizers over the arenas: one pass over memory per step, except LARS, LAMB and clipping by
 * norms, which need norms first. */
#include "base/status.h"
#include "nn/backend/cpu/cpu.h"
#include "nn/backend/cpu/loops.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#define LEAST_VECTORS 1024 /* per thread: less does not pay */
#define MAX_PARTS 256

/* Runs a loop over the span on several threads; `sums` receives its sums, added in the order of the
 * parts, or zeros. */
static void over(hpct_cpu_update_loop *loop, const hpct_backend_update_call *call,
                 const hpct_cpu_update_span *span, double sums[2])
{
    size_t vectors = span->count / HPCT_CPU_LANES, parts = (size_t) omp_get_max_threads();
    double of_part[MAX_PARTS][2] = {{0}};
    sums[0] = sums[1] = 0;
    if (vectors / LEAST_VECTORS < parts)
        parts = vectors / LEAST_VECTORS;
    if (parts > MAX_PARTS)
        parts = MAX_PARTS;
    if (parts < 2) {
        loop(call, span, sums);
        return;
    }
#pragma omp parallel for schedule(static) num_threads((int) parts)
    for (size_t part = 0; part < parts; part++) {
        size_t first = vectors * part / parts, end = vectors * (part + 1) / parts;
        hpct_cpu_update_span mine = *span;
        mine.first = span->first + first * HPCT_CPU_LANES;
        mine.count = (end - first) * HPCT_CPU_LANES;
        loop(call, &mine, of_part[part]);
    }
    for (size_t part = 0; part < parts; part++) {
        sums[0] += of_part[part][0];
        sums[1] += of_part[part][1];
    }
}

/* The same, with sums of a split range all-reduced over the shards. */
static hpct_status sum_over(hpct_cpu_update_loop *loop, const hpct_backend_update_call *call,
                            const hpct_backend_update_range *range,
                            const hpct_cpu_update_span *span, double sums[2])
{
    over(loop, call, span, sums);
    if (!range->split || call->add_up == NULL)
        return HPCT_OK;
    float all[2] = {(float) sums[0], (float) sums[1]};
    hpct_status status = call->add_up(call->argument, all, 2);
    sums[0] = (double) all[0];
    sums[1] = (double) all[1];
    return status;
}

/* Factor that limits the norm of a gradient with sum of squares `squares` to `limit`. */
static float shorten(double squares, float limit)
{
    double length = sqrt(squares);
    return length <= (double) limit ? 1 : (float) ((double) limit / length);
}

static hpct_cpu_update_span span_of(const hpct_backend_update_call *call,
                                    const hpct_backend_update_range *range, float scale)
{
    return (hpct_cpu_update_span){.first = range->offset,
                                  .count = range->count,
                                  .scale = scale,
                                  .rate = hpct_backend_update_rate(call, range),
                                  .decay =
                                      hpct_backend_update_rate(call, range) * call->weight_decay};
}

static hpct_status squares_of_gradients(const hpct_backend_update_call *call, float scale,
                                        double *sum)
{
    hpct_status status = HPCT_OK;
    double sums[2];
    *sum = 0;
    for (int i = 0; i < call->num_ranges && status == HPCT_OK; i++) {
        const hpct_backend_update_range *range = &call->ranges[i];
        hpct_cpu_update_span span = span_of(call, range, scale);
        status = sum_over(hpct_cpu_loops_best()->norms, call, range, &span, sums);
        *sum += sums[1];
    }
    return status;
}

static hpct_status lars(const hpct_backend_update_call *call,
                        const hpct_backend_update_range *range, hpct_cpu_update_span *span)
{
    double sums[2];
    span->decay = range->adapt ? call->weight_decay : 0;
    HPCT_TRY(sum_over(hpct_cpu_loops_best()->norms, call, range, span, sums));
    double w = sqrt(sums[0]), g = sqrt(sums[1]);
    if (range->adapt && w > 0 && g > 0)
        span->rate *=
            (float) ((double) call->trust_coefficient * w / (g + (double) span->decay * w));
    over(hpct_cpu_loops_best()->lars, call, span, sums);
    return HPCT_OK;
}

static hpct_status lamb(const hpct_backend_update_call *call,
                        const hpct_backend_update_range *range, hpct_cpu_update_span *span)
{
    double sums[2];
    HPCT_TRY(sum_over(hpct_cpu_loops_best()->moments, call, range, span, sums));
    if (sums[0] > 0 && sums[1] > 0)
        span->rate *= (float) sqrt(sums[0] / sums[1]);
    over(hpct_cpu_loops_best()->lamb, call, span, sums);
    return HPCT_OK;
}

hpct_status hpct_cpu_update(const hpct_backend_update_call *call)
{
    const hpct_cpu_loops *loops = hpct_cpu_loops_best();
    float scale = call->grad_scale;
    double sums[2];
    hpct_status status = HPCT_OK;
    if (call->global_clipnorm > 0) {
        double squares;
        status = squares_of_gradients(call, scale, &squares);
        scale *= shorten(squares, call->global_clipnorm);
    }
    for (int i = 0; i < call->num_ranges && status == HPCT_OK; i++) {
        const hpct_backend_update_range *range = &call->ranges[i];
        hpct_cpu_update_span span = span_of(call, range, scale);
        if (call->clipnorm > 0) {
            status = sum_over(loops->norms, call, range, &span, sums);
            span.scale *= shorten(sums[1], call->clipnorm);
        }
        if (status != HPCT_OK)
            break;
        switch (call->kind) {
        case HPCT_SGD:
            over(loops->sgd, call, &span, sums);
            break;
        case HPCT_ADAM:
        case HPCT_ADAMW:
            over(loops->adam, call, &span, sums);
            break;
        case HPCT_LARS:
            status = lars(call, range, &span);
            break;
        case HPCT_LAMB:
            status = lamb(call, range, &span);
            break;
        case HPCT_RMSPROP:
            over(loops->rmsprop, call, &span, sums);
            break;
        case HPCT_OPTIMIZER_KINDS:
            break;
        }
    }
    return status;
}

typedef struct addition {
    const float *src;
    float *dst;
    bool first;
} addition;

static void add_part(size_t first, size_t count, void *arg)
{
    const addition *a = arg;
    if (a->first)
        memcpy(a->dst + first, a->src + first, count * sizeof *a->dst);
    else
        hpct_cpu_loops_best()->add(count, a->src + first, a->dst + first);
}

hpct_status hpct_cpu_accumulate(size_t count, const float *src, float *dst, bool first)
{
    addition a = {src, dst, first};
    hpct_cpu_loops_split(count, 16384, add_part, &a);
    return HPCT_OK;
}
