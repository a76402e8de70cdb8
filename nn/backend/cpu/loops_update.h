/* nn/backend/cpu/loops_update.h - optimizers, over a range of the arenas. Part of
 * nn/backend/cpu/loops_body.h. */

#define SPREAD(x) ((vec){0} + (x))

#define SQRT(v)                                                                                    \
    ({                                                                                             \
        vec root_;                                                                                 \
        EACH (k_, LANES)                                                                           \
            root_[k_] = sqrtf((v)[k_]);                                                            \
        root_;                                                                                     \
    })

/* Local copies of what the loops read, so that their stores cannot alias it. */
#define LOCALS(c, span)                                                                            \
    float *const param = (c)->param, *const moment = (c)->slot[0], *const square = (c)->slot[1];   \
    const float *const grad = (c)->grad;                                                           \
    const float scale = (span)->scale, rate = (span)->rate, decay = (span)->decay,                 \
                limit = (c)->clipvalue;                                                            \
    const size_t first = (span)->first, end = first + (span)->count;                               \
    (void) param, (void) moment, (void) square, (void) grad, (void) scale, (void) rate,            \
        (void) decay, (void) limit

/* The gradient at i, scaled and clipped by value. NaN stays NaN. */
#define GRADIENT(i)                                                                                \
    ({                                                                                             \
        vec g_ = scale * LOAD(grad + (i));                                                         \
        if (limit > 0) {                                                                           \
            g_ = SELECT(g_ > limit, SPREAD(limit), g_);                                            \
            g_ = SELECT(g_ < -limit, SPREAD(-limit), g_);                                          \
        }                                                                                          \
        g_;                                                                                        \
    })

#define EACH_VECTOR(i) for (size_t i = first; i < end; i += LANES)

/* In double, so that the sum hardly depends on the division among threads. */
#define ADD_SQUARES(sum, v)                                                                        \
    do {                                                                                           \
        HPCT_VARIANT(wide) wide_ = __builtin_convertvector(v, HPCT_VARIANT(wide));                 \
        (sum) += wide_ * wide_;                                                                    \
    } while (0)

#define TOTAL(sum)                                                                                 \
    ({                                                                                             \
        double total_ = 0;                                                                         \
        EACH (k_, LANES)                                                                           \
            total_ += (sum)[k_];                                                                   \
        total_;                                                                                    \
    })

HPCT_TARGET static void HPCT_VARIANT(sgd)(const hpct_backend_update_call *c,
                                          const hpct_cpu_update_span *span, double sums[2])
{
    (void) sums;
    LOCALS(c, span);
    const float momentum = c->momentum;
    const bool nesterov = c->nesterov;
    EACH_VECTOR (i) {
        vec w = LOAD(param + i), step = -rate * GRADIENT(i), change = step;
        if (moment != NULL) {
            change += momentum * LOAD(moment + i);
            STORE(moment + i, change);
            if (nesterov)
                change = momentum * change + step;
        }
        STORE(param + i, w - decay * w + change);
    }
}

/* Updates both moments with the gradient and its square. */
#define MOMENTS(i, m, v)                                                                           \
    do {                                                                                           \
        vec g = GRADIENT(i);                                                                       \
        m = LOAD(moment + (i));                                                                    \
        v = LOAD(square + (i));                                                                    \
        m += (g - m) * mix_1;                                                                      \
        v += (g * g - v) * mix_2;                                                                  \
        STORE(moment + (i), m);                                                                    \
        STORE(square + (i), v);                                                                    \
    } while (0)

HPCT_TARGET static void HPCT_VARIANT(adam)(const hpct_backend_update_call *c,
                                           const hpct_cpu_update_span *span, double sums[2])
{
    (void) sums;
    LOCALS(c, span);
    const float mix_1 = c->mix_1, mix_2 = c->mix_2, epsilon = c->epsilon;
    const float alpha = rate * sqrtf(c->bias_2) / c->bias_1;
    EACH_VECTOR (i) {
        vec w = LOAD(param + i), m, v;
        MOMENTS(i, m, v);
        STORE(param + i, w - decay * w - alpha * m / (SQRT(v) + epsilon));
    }
}

#define LAMB_STEP(m, v) ((m) / bias_1 / (SQRT((v) / bias_2) + epsilon))

HPCT_TARGET static void HPCT_VARIANT(moments)(const hpct_backend_update_call *c,
                                              const hpct_cpu_update_span *span, double sums[2])
{
    LOCALS(c, span);
    const float mix_1 = c->mix_1, mix_2 = c->mix_2;
    const float bias_1 = c->bias_1, bias_2 = c->bias_2, epsilon = c->epsilon;
    HPCT_VARIANT(wide) weights = {0}, steps = {0};
    EACH_VECTOR (i) {
        vec w = LOAD(param + i), m, v;
        MOMENTS(i, m, v);
        w -= decay * w;
        STORE(param + i, w);
        vec u = LAMB_STEP(m, v);
        ADD_SQUARES(weights, w);
        ADD_SQUARES(steps, u);
    }
    sums[0] = TOTAL(weights);
    sums[1] = TOTAL(steps);
}

HPCT_TARGET static void HPCT_VARIANT(lamb)(const hpct_backend_update_call *c,
                                           const hpct_cpu_update_span *span, double sums[2])
{
    (void) sums;
    LOCALS(c, span);
    const float bias_1 = c->bias_1, bias_2 = c->bias_2, epsilon = c->epsilon;
    EACH_VECTOR (i) {
        vec m = LOAD(moment + i), v = LOAD(square + i);
        STORE(param + i, LOAD(param + i) - rate * LAMB_STEP(m, v));
    }
}

HPCT_TARGET static void HPCT_VARIANT(norms)(const hpct_backend_update_call *c,
                                            const hpct_cpu_update_span *span, double sums[2])
{
    LOCALS(c, span);
    HPCT_VARIANT(wide) weights = {0}, gradients = {0};
    EACH_VECTOR (i) {
        vec w = LOAD(param + i), g = GRADIENT(i);
        ADD_SQUARES(weights, w);
        ADD_SQUARES(gradients, g);
    }
    sums[0] = TOTAL(weights);
    sums[1] = TOTAL(gradients);
}

HPCT_TARGET static void HPCT_VARIANT(lars)(const hpct_backend_update_call *c,
                                           const hpct_cpu_update_span *span, double sums[2])
{
    (void) sums;
    LOCALS(c, span);
    const float momentum = c->momentum;
    EACH_VECTOR (i) {
        vec w = LOAD(param + i), g = GRADIENT(i);
        vec m = momentum * LOAD(moment + i) - rate * (g + decay * w);
        STORE(moment + i, m);
        STORE(param + i, w + m);
    }
}

HPCT_TARGET static void HPCT_VARIANT(rmsprop)(const hpct_backend_update_call *c,
                                              const hpct_cpu_update_span *span, double sums[2])
{
    (void) sums;
    LOCALS(c, span);
    float *const average = c->slot[2];
    const float mix = c->mix_2, momentum = c->momentum, epsilon = c->epsilon;
    EACH_VECTOR (i) {
        vec w = LOAD(param + i), g = GRADIENT(i), v = LOAD(square + i);
        v += (g * g - v) * mix;
        STORE(square + i, v);
        if (average != NULL) {
            vec a = LOAD(average + i);
            a += (g - a) * mix;
            STORE(average + i, a);
            v -= a * a;
            v = SELECT(v < 0.0f, SPREAD(0.0f), v);
        }
        vec change = rate * g / SQRT(v + epsilon);
        if (moment != NULL) {
            change += momentum * LOAD(moment + i);
            STORE(moment + i, change);
        }
        STORE(param + i, w - decay * w - change);
    }
}

#undef SPREAD
#undef SQRT
#undef LOCALS
#undef GRADIENT
#undef EACH_VECTOR
#undef ADD_SQUARES
#undef TOTAL
#undef MOMENTS
#undef LAMB_STEP
