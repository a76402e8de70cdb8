/* Penalties of regularizers: one pass over the regularized parameters, on all threads. Pieces and
 * the order of their sums depend on the sizes only. */
#include "nn/backend/cpu/cpu.h"
#include "nn/backend/cpu/loops.h"

#include <math.h>

#define PIECE 16384 /* floats at least: less does not pay */
#define MAX_PIECES 64

typedef struct pieces {
    const hpct_backend_penalty_call *call;
    const hpct_backend_penalty *penalty;
    float factor;
    size_t floats; /* per piece, except the last */
    double sums[MAX_PIECES];
} pieces;

static void add_gradient(const pieces *p, size_t first, size_t count)
{
    const float *w = p->call->param + first, l1 = p->factor * p->penalty->l1,
                l2 = 2 * p->factor * p->penalty->l2;
    float *g = p->call->grad + first;
#pragma omp simd
    for (size_t i = 0; i < count; i++)
        g[i] += l2 * w[i] + (w[i] > 0 ? l1 : w[i] < 0 ? -l1 : 0);
}

static double penalty_of(const pieces *p, size_t first, size_t count)
{
    const float *w = p->call->param + first;
    double size = 0, squares = 0;
#pragma omp simd reduction(+ : size, squares)
    for (size_t i = 0; i < count; i++) {
        size += fabs((double) w[i]);
        squares += (double) w[i] * (double) w[i];
    }
    return (double) p->penalty->l1 * size + (double) p->penalty->l2 * squares;
}

static void piece(size_t index, void *arg)
{
    pieces *p = arg;
    size_t at = index * p->floats, left = p->penalty->count - at;
    size_t first = p->penalty->offset + at, count = left < p->floats ? left : p->floats;
    if (p->call->grad != NULL)
        add_gradient(p, first, count);
    if (p->call->sums != NULL)
        p->sums[index] = penalty_of(p, first, count);
}

/* Returns the penalty, if it is asked for. */
static double one(const hpct_backend_penalty_call *call, const hpct_backend_penalty *penalty,
                  float factor)
{
    size_t even = (penalty->count + MAX_PIECES - 1) / MAX_PIECES;
    pieces p = {call, penalty, factor, .floats = even > PIECE ? even : PIECE};
    size_t num = (penalty->count + p.floats - 1) / p.floats;
    double sum = 0;
    if (num == 1)
        piece(0, &p);
    else
        hpct_cpu_loops_each(num, piece, &p);
    for (size_t i = 0; i < num; i++)
        sum += p.sums[i];
    return sum;
}

hpct_status hpct_cpu_penalize(const hpct_backend_penalty_call *call)
{
    double sums[2] = {0, 0};
    float scale = call->scaling != NULL ? call->scaling->scale : 1;
    for (int i = 0; i < call->num; i++)
        sums[call->penalties[i].split ? 0 : 1] +=
            one(call, &call->penalties[i], scale * call->factor);
    for (int k = 0; k < 2 && call->sums != NULL; k++)
        call->sums[k] = (float) sums[k];
    return HPCT_OK;
}
