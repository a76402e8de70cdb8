/* The optimizers over the arenas: one pass over memory a step, but for LARS, LAMB and clipping by a
 * norm, which need norms before. */
#include "nn/cpu/cpu.h"
#include "nn/cpu/loops.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#define LEAST_VECTORS 1024 /* of one thread: less does not pay */
#define MAX_PARTS 256

/* Runs a loop over the span, shared among the threads; `sums` gets its sums, added up in the order
 * of the parts, or zeros. */
static void over(hpct_update_loop *loop, const hpct_update_call *call, const hpct_update_span *span,
                 double sums[2])
{
    size_t vectors = span->count / HPCT_LANES, parts = (size_t) omp_get_max_threads();
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
        hpct_update_span mine = *span;
        mine.first = span->first + first * HPCT_LANES;
        mine.count = (end - first) * HPCT_LANES;
        loop(call, &mine, of_part[part]);
    }
    for (size_t part = 0; part < parts; part++) {
        sums[0] += of_part[part][0];
        sums[1] += of_part[part][1];
    }
}

/* What a gradient whose squares sum to `squares` is multiplied by so that it is no longer than
 * `limit`. */
static float shorten(double squares, float limit)
{
    double length = sqrt(squares);
    return length <= (double) limit ? 1 : (float) ((double) limit / length);
}

static hpct_update_span span_of(const hpct_update_call *call, const hpct_update_range *range,
                                float scale)
{
    return (hpct_update_span){.first = range->offset,
                              .count = range->count,
                              .scale = scale,
                              .rate = call->learning_rate,
                              .decay = call->learning_rate * call->weight_decay};
}

static double squares_of_gradients(const hpct_update_call *call, float scale)
{
    double sum = 0, sums[2];
    for (int i = 0; i < call->num_ranges; i++) {
        hpct_update_span span = span_of(call, &call->ranges[i], scale);
        over(hpct_loops_best()->norms, call, &span, sums);
        sum += sums[1];
    }
    return sum;
}

static void lars(const hpct_update_call *call, const hpct_update_range *range,
                 hpct_update_span *span)
{
    double sums[2];
    span->decay = range->adapt ? call->weight_decay : 0;
    over(hpct_loops_best()->norms, call, span, sums);
    double w = sqrt(sums[0]), g = sqrt(sums[1]);
    if (range->adapt && w > 0 && g > 0)
        span->rate *=
            (float) ((double) call->trust_coefficient * w / (g + (double) span->decay * w));
    over(hpct_loops_best()->lars, call, span, sums);
}

static void lamb(const hpct_update_call *call, hpct_update_span *span)
{
    double sums[2];
    over(hpct_loops_best()->moments, call, span, sums);
    if (sums[0] > 0 && sums[1] > 0)
        span->rate *= (float) sqrt(sums[0] / sums[1]);
    over(hpct_loops_best()->lamb, call, span, sums);
}

hpct_status hpct_cpu_update(const hpct_update_call *call)
{
    const hpct_loops *loops = hpct_loops_best();
    float scale = call->grad_scale;
    double sums[2];
    if (call->global_clipnorm > 0)
        scale *= shorten(squares_of_gradients(call, scale), call->global_clipnorm);
    for (int i = 0; i < call->num_ranges; i++) {
        hpct_update_span span = span_of(call, &call->ranges[i], scale);
        if (call->clipnorm > 0) {
            over(loops->norms, call, &span, sums);
            span.scale *= shorten(sums[1], call->clipnorm);
        }
        switch (call->kind) {
        case HPCT_SGD:
            over(loops->sgd, call, &span, sums);
            break;
        case HPCT_ADAM:
        case HPCT_ADAMW:
            over(loops->adam, call, &span, sums);
            break;
        case HPCT_LARS:
            lars(call, &call->ranges[i], &span);
            break;
        case HPCT_LAMB:
            lamb(call, &span);
            break;
        case HPCT_OPTIMIZER_KINDS:
            break;
        }
    }
    return HPCT_OK;
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
        hpct_loops_best()->add(count, a->src + first, a->dst + first);
}

hpct_status hpct_cpu_accumulate(size_t count, const float *src, float *dst, bool first)
{
    addition a = {src, dst, first};
    hpct_loops_split(count, 16384, add_part, &a);
    return HPCT_OK;
}
