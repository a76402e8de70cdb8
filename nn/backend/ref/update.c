/* Optimizers, element by element, directly from the formulas in nn/backend/backend.h. */
#include "nn/backend/ref/ref.h"

#include "base/status.h"

#include <math.h>

/* Gradient of element i, scaled and clipped; `scale` includes clipping by norms. */
static float gradient(const hpct_backend_update_call *c, size_t i, double scale)
{
    double g = (double) c->grad[i] * scale, limit = (double) c->clipvalue;
    if (limit > 0 && fabs(g) > limit)
        g = g > 0 ? limit : -limit;
    return (float) g;
}

/* The square root of a sum of squares, all-reduced over shards if the range is split. NAN on error,
 * after which every later message fails, too. */
static double root(const hpct_backend_update_call *c, const hpct_backend_update_range *range,
                   double sum)
{
    float all = (float) sum;
    if (!range->split || c->add_up == NULL)
        return sqrt(sum);
    return c->add_up(c->argument, &all, 1) == HPCT_OK ? sqrt((double) all) : NAN;
}

static double norm(const hpct_backend_update_call *c, const float *values,
                   const hpct_backend_update_range *range)
{
    double sum = 0;
    for (size_t i = range->offset; i < range->offset + range->count; i++)
        sum += (double) values[i] * (double) values[i];
    return root(c, range, sum);
}

/* Factor that limits a gradient of norm `length` to `limit`. */
static double shorten(double length, double limit)
{
    return limit > 0 && !(length <= limit) ? limit / length : 1;
}

static void sgd(const hpct_backend_update_call *c, const hpct_backend_update_range *range,
                double scale)
{
    float rate = hpct_backend_update_rate(c, range), decay = rate * c->weight_decay,
          *m = c->slot[0];
    for (size_t i = range->offset; i < range->offset + range->count; i++) {
        float step = -rate * gradient(c, i, scale), change = step;
        if (m != NULL) {
            m[i] = c->momentum * m[i] + step;
            change = c->nesterov ? c->momentum * m[i] + step : m[i];
        }
        c->param[i] += change - decay * c->param[i];
    }
}

static void moments(const hpct_backend_update_call *c, const hpct_backend_update_range *range,
                    double scale)
{
    float decay = hpct_backend_update_rate(c, range) * c->weight_decay;
    float *m = c->slot[0], *v = c->slot[1];
    for (size_t i = range->offset; i < range->offset + range->count; i++) {
        float g = gradient(c, i, scale);
        m[i] += (g - m[i]) * c->mix_1;
        v[i] += (g * g - v[i]) * c->mix_2;
        c->param[i] -= decay * c->param[i];
    }
}

static void adam(const hpct_backend_update_call *c, const hpct_backend_update_range *range,
                 double scale)
{
    float alpha = hpct_backend_update_rate(c, range) * sqrtf(c->bias_2) / c->bias_1;
    moments(c, range, scale);
    for (size_t i = range->offset; i < range->offset + range->count; i++)
        c->param[i] -= alpha * c->slot[0][i] / (sqrtf(c->slot[1][i]) + c->epsilon);
}

static float lamb_update(const hpct_backend_update_call *c, size_t i)
{
    return c->slot[0][i] / c->bias_1 / (sqrtf(c->slot[1][i] / c->bias_2) + c->epsilon);
}

static void lamb(const hpct_backend_update_call *c, const hpct_backend_update_range *range,
                 double scale)
{
    moments(c, range, scale);
    double w = norm(c, c->param, range), u = 0;
    for (size_t i = range->offset; i < range->offset + range->count; i++)
        u += (double) lamb_update(c, i) * (double) lamb_update(c, i);
    u = root(c, range, u);
    float rate = hpct_backend_update_rate(c, range) * (float) (w > 0 && u > 0 ? w / u : 1);
    for (size_t i = range->offset; i < range->offset + range->count; i++)
        c->param[i] -= rate * lamb_update(c, i);
}

static void lars(const hpct_backend_update_call *c, const hpct_backend_update_range *range,
                 double scale)
{
    float decay = range->adapt ? c->weight_decay : 0, rate = hpct_backend_update_rate(c, range);
    double w = norm(c, c->param, range), g = 0;
    for (size_t i = range->offset; i < range->offset + range->count; i++)
        g += (double) gradient(c, i, scale) * (double) gradient(c, i, scale);
    g = root(c, range, g);
    if (range->adapt && w > 0 && g > 0)
        rate *= (float) ((double) c->trust_coefficient * w / (g + (double) decay * w));
    for (size_t i = range->offset; i < range->offset + range->count; i++) {
        float *m = &c->slot[0][i];
        *m = c->momentum * *m - rate * (gradient(c, i, scale) + decay * c->param[i]);
        c->param[i] += *m;
    }
}

static void rmsprop(const hpct_backend_update_call *c, const hpct_backend_update_range *range,
                    double scale)
{
    float rate = hpct_backend_update_rate(c, range), decay = rate * c->weight_decay;
    float *m = c->slot[0], *v = c->slot[1], *a = c->slot[2];
    for (size_t i = range->offset; i < range->offset + range->count; i++) {
        float g = gradient(c, i, scale);
        v[i] += (g * g - v[i]) * c->mix_2;
        float spread = v[i];
        if (a != NULL) {
            a[i] += (g - a[i]) * c->mix_2;
            spread -= a[i] * a[i];
            spread = spread < 0 ? 0 : spread; /* rounding, if all gradients are equal */
        }
        float change = rate * g / sqrtf(spread + c->epsilon);
        if (m != NULL)
            change = m[i] = c->momentum * m[i] + change;
        c->param[i] -= decay * c->param[i] + change;
    }
}

/* ---- loss scaling ---- */

/* Whether all gradients are finite, on all replicas. */
static hpct_status find_infinite(const hpct_backend_update_call *c, bool *finite)
{
    *finite = true;
    for (int k = 0; k < c->num_ranges; k++) {
        const hpct_backend_update_range *range = &c->ranges[k];
        for (size_t i = range->offset; i < range->offset + range->count; i++)
            *finite = *finite && isfinite(c->grad[i]);
    }
    float infinite = *finite ? 0 : 1;
    hpct_status status = c->judge != NULL ? c->judge(c->argument, &infinite, 1) : HPCT_OK;
    *finite = infinite == 0;
    return status;
}

static void update_all(const hpct_backend_update_call *call)
{
    static void (*const updates[HPCT_OPTIMIZER_KINDS])(
        const hpct_backend_update_call *, const hpct_backend_update_range *, double) = {
        [HPCT_SGD] = sgd,   [HPCT_ADAM] = adam, [HPCT_ADAMW] = adam,
        [HPCT_LARS] = lars, [HPCT_LAMB] = lamb, [HPCT_RMSPROP] = rmsprop,
    };
    double scale = (double) call->grad_scale, all = 0;
    for (int i = 0; i < call->num_ranges && call->global_clipnorm > 0; i++)
        all = hypot(all, norm(call, call->grad, &call->ranges[i]));
    scale *= shorten(scale * all, (double) call->global_clipnorm);
    for (int i = 0; i < call->num_ranges; i++) {
        double own = call->clipnorm > 0 ? scale * norm(call, call->grad, &call->ranges[i]) : 0;
        updates[call->kind](call, &call->ranges[i], scale * shorten(own, (double) call->clipnorm));
    }
}

hpct_status hpct_ref_update(const hpct_backend_update_call *call)
{
    hpct_graph_loss_scaling *s = call->scaling;
    bool finite = true;
    hpct_backend_update_call scaled = *call;
    if (s != NULL) {
        HPCT_TRY(find_infinite(call, &finite));
        scaled.grad_scale /= s->scale;
        scaled.bias_1 = hpct_graph_loss_scaling_bias(call->bias_1, s->undo_1);
        scaled.bias_2 = hpct_graph_loss_scaling_bias(call->bias_2, s->undo_2);
    }
    if (finite)
        update_all(&scaled);
    if (s != NULL)
        hpct_graph_loss_scaling_move(s, finite, 1 - (double) call->mix_1, 1 - (double) call->mix_2);
    return HPCT_OK;
}

hpct_status hpct_ref_accumulate(size_t count, const float *src, float *dst, bool first)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = first ? src[i] : dst[i] + src[i];
    return HPCT_OK;
}
