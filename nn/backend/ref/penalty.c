/* Penalties of regularizers, directly from the formulas in nn/backend/backend.h. */
#include "nn/backend/ref/ref.h"

#include <math.h>

static float sign_of(float x)
{
    return (float) ((x > 0) - (x < 0));
}

static void add_gradient(const hpct_backend_penalty_call *call, const hpct_backend_penalty *p,
                         double factor)
{
    for (size_t i = p->offset; i < p->offset + p->count; i++) {
        double w = (double) call->param[i], l1 = (double) p->l1, l2 = (double) p->l2;
        double slope = l1 * (double) sign_of(call->param[i]) + 2 * l2 * w;
        call->grad[i] += (float) (factor * slope);
    }
}

static double penalty_of(const hpct_backend_penalty_call *call, const hpct_backend_penalty *p)
{
    double sum = 0;
    for (size_t i = p->offset; i < p->offset + p->count; i++) {
        double w = (double) call->param[i];
        sum += (double) p->l1 * fabs(w) + (double) p->l2 * w * w;
    }
    return sum;
}

hpct_status hpct_ref_penalize(const hpct_backend_penalty_call *call)
{
    double factor = (double) call->factor, sums[2] = {0, 0};
    if (call->scaling != NULL)
        factor *= (double) call->scaling->scale;
    for (int i = 0; i < call->num; i++) {
        const hpct_backend_penalty *p = &call->penalties[i];
        if (call->grad != NULL)
            add_gradient(call, p, factor);
        if (call->sums != NULL)
            sums[p->split ? 0 : 1] += penalty_of(call, p);
    }
    for (int k = 0; k < 2 && call->sums != NULL; k++)
        call->sums[k] = (float) sums[k];
    return HPCT_OK;
}
