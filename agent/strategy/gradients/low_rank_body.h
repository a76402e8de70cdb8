/* Loops of low_rank.c for one instruction set (base/variants.h). Memory-bound: M passes through the
 * cache in blocks of columns, and the narrow factors stay there. */

typedef float HPCT_VARIANT(vec) __attribute__((vector_size(4 * HPCT_VARIANT_LANES)));
typedef float HPCT_VARIANT(loose)
    __attribute__((vector_size(4 * HPCT_VARIANT_LANES), aligned(4), may_alias));
#define LOAD(at) ((HPCT_VARIANT(vec)) * (const HPCT_VARIANT(loose) *) (at))
#define STORE(at, value) (*(HPCT_VARIANT(loose) *) (at) = (value))
#define INLINE HPCT_TARGET static inline __attribute__((always_inline))

/* p[k] += sum of m[j] q[k][j]; `step` floats between rows of q. */
INLINE void HPCT_VARIANT(dots)(int group, size_t count, const float *m, const float *q, size_t step,
                               float *p)
{
    HPCT_VARIANT(vec) sum[GROUP] = {{0}};
    size_t j = 0;
    for (; j + HPCT_VARIANT_LANES <= count; j += HPCT_VARIANT_LANES) {
        HPCT_VARIANT(vec) x = LOAD(m + j);
        for (int k = 0; k < group; k++)
            sum[k] += x * LOAD(q + (size_t) k * step + j);
    }
    for (int k = 0; k < group; k++) {
        float total = 0;
        for (int lane = 0; lane < HPCT_VARIANT_LANES; lane++)
            total += sum[k][lane];
        for (size_t i = j; i < count; i++)
            total += m[i] * q[(size_t) k * step + i];
        p[k] += total;
    }
}

/* q[k][j] += p[k] m[j] */
INLINE void HPCT_VARIANT(spread)(int group, size_t count, const float *m, float *q, size_t step,
                                 const float *p)
{
    size_t j = 0;
    for (; j + HPCT_VARIANT_LANES <= count; j += HPCT_VARIANT_LANES) {
        HPCT_VARIANT(vec) x = LOAD(m + j);
        for (int k = 0; k < group; k++)
            STORE(q + (size_t) k * step + j, LOAD(q + (size_t) k * step + j) + p[k] * x);
    }
    for (; j < count; j++) {
        for (int k = 0; k < group; k++)
            q[(size_t) k * step + j] += p[k] * m[j];
    }
}

/* m[j] = (fresh ? 0 : m[j]) + sign * sum over k of p[k] q[k][j] */
INLINE void HPCT_VARIANT(combine)(int group, size_t count, bool fresh, float sign, float *m,
                                  const float *q, size_t step, const float *p)
{
    size_t j = 0;
    for (; j + HPCT_VARIANT_LANES <= count; j += HPCT_VARIANT_LANES) {
        HPCT_VARIANT(vec) x = {0};
        if (!fresh)
            x = LOAD(m + j);
        for (int k = 0; k < group; k++)
            x += sign * p[k] * LOAD(q + (size_t) k * step + j);
        STORE(m + j, x);
    }
    for (; j < count; j++) {
        float x = fresh ? 0 : m[j];
        for (int k = 0; k < group; k++)
            x += sign * p[k] * q[(size_t) k * step + j];
        m[j] = x;
    }
}

INLINE void HPCT_VARIANT(absorb)(size_t count, const float *gradient, float *residue)
{
    size_t j = 0;
    for (; j + HPCT_VARIANT_LANES <= count; j += HPCT_VARIANT_LANES)
        STORE(residue + j, LOAD(residue + j) + LOAD(gradient + j));
    for (; j < count; j++)
        residue[j] += gradient[j];
}

/* Calls a loop for the columns of p in groups of GROUP, then one by one. */
#define BY_GROUPS(call)                                                                            \
    do {                                                                                           \
        int k = 0;                                                                                 \
        for (; k + GROUP <= m->rank; k += GROUP)                                                   \
            call(GROUP);                                                                           \
        for (; k < m->rank; k++)                                                                   \
            call(1);                                                                               \
    } while (0)

HPCT_TARGET static void HPCT_VARIANT(left)(const hpct_grad_low_rank *m, size_t first, size_t count)
{
    size_t rank = (size_t) m->rank;
    memset(m->p + first * rank, 0, count * rank * sizeof *m->p);
    for (size_t c = 0; c < m->columns; c += LEFT_COLUMNS) {
        size_t width = m->columns - c < LEFT_COLUMNS ? m->columns - c : LEFT_COLUMNS;
        for (size_t row = first; row < first + count; row++) {
            float *residue = m->residue + row * m->columns + c;
            HPCT_VARIANT(absorb)(width, m->gradient + row * m->columns + c, residue);
#define ONE(group)                                                                                 \
    HPCT_VARIANT(dots)                                                                             \
    (group, width, residue, m->q + (size_t) k * m->columns + c, m->columns,                        \
     m->p + row * rank + (size_t) k)
            BY_GROUPS(ONE);
#undef ONE
        }
    }
}

HPCT_TARGET static void HPCT_VARIANT(right)(const hpct_grad_low_rank *m, size_t first, size_t count)
{
    size_t rank = (size_t) m->rank;
    for (size_t k = 0; k < rank; k++)
        memset(m->q + k * m->columns + first, 0, count * sizeof *m->q);
    for (size_t row = 0; row < m->rows; row++) {
        const float *residue = m->residue + row * m->columns + first, *p = m->p + row * rank;
#define ONE(group)                                                                                 \
    HPCT_VARIANT(spread)                                                                           \
    (group, count, residue, m->q + (size_t) k * m->columns + first, m->columns, p + k)
        BY_GROUPS(ONE);
#undef ONE
    }
    for (size_t row = 0; row < m->rows; row++) {
        float *residue = m->residue + row * m->columns + first;
        const float *p = m->p + row * rank;
#define ONE(group)                                                                                 \
    HPCT_VARIANT(combine)                                                                          \
    (group, count, false, -1, residue, m->q + (size_t) k * m->columns + first, m->columns, p + k)
        BY_GROUPS(ONE);
#undef ONE
    }
}

HPCT_TARGET static void HPCT_VARIANT(expand)(const hpct_grad_low_rank *m, size_t first,
                                             size_t count)
{
    for (size_t row = 0; row < m->rows; row++) {
        float *gradient = m->gradient + row * m->columns + first;
        const float *p = m->p + row * (size_t) m->rank;
#define ONE(group)                                                                                 \
    HPCT_VARIANT(combine)                                                                          \
    (group, count, k == 0, 1, gradient, m->q + (size_t) k * m->columns + first, m->columns, p + k)
        BY_GROUPS(ONE);
#undef ONE
    }
}

static const hpct_grad_low_rank_loops HPCT_VARIANT(loops) = {
    .name = HPCT_VARIANT_NAME,
    .supported = HPCT_VARIANT(supported),
    .left = HPCT_VARIANT(left),
    .right = HPCT_VARIANT(right),
    .expand = HPCT_VARIANT(expand),
};

#undef LOAD
#undef STORE
#undef INLINE
#undef BY_GROUPS
