/* nn/backend/cpu/loops_direct.h - convolutions with few input channels, as dot products. Part of
 * nn/backend/cpu/loops_body.h. */

/* P output cells by V vectors of output channels: sums stay in registers. */
#define DIRECT_TILE(P, V)                                                                          \
    do {                                                                                           \
        vec sum[P][V];                                                                             \
        EACH (p, P)                                                                                \
            EACH (v, V)                                                                            \
                sum[p][v] = LOAD(bias + o + v * LANES);                                            \
        for (int t = 0; t < d->taps; t++) {                                                        \
            const float *at = cell + d->offsets[t];                                                \
            const float *k = kernel + (size_t) t * out + o;                                        \
            vec weight[V];                                                                         \
            EACH (v, V)                                                                            \
                weight[v] = LOAD(k + v * LANES);                                                   \
            EACH (p, P)                                                                            \
                EACH (v, V)                                                                        \
                    sum[p][v] += at[(size_t) p * d->cell_step] * weight[v];                        \
        }                                                                                          \
        EACH (p, P)                                                                                \
            EACH (v, V) {                                                                          \
                vec value = sum[p][v];                                                             \
                if (d->relu)                                                                       \
                    value = MASKED(value, value > 0);                                              \
                STORE(dst + ((size_t) (j + p)) * out + o + v * LANES, value);                      \
            }                                                                                      \
    } while (0)

HPCT_TARGET static void HPCT_VARIANT(direct_forward)(const hpct_cpu_direct *d, const float *src,
                                                     const float *kernel, const float *bias,
                                                     float *dst)
{
    size_t out = (size_t) d->out;
    int j = 0;
    for (; j + 6 <= d->out_w; j += 6) {
        const float *cell = src + (size_t) j * d->cell_step;
        size_t o = 0;
        for (; o + 2 * LANES <= out; o += 2 * LANES)
            DIRECT_TILE(6, 2);
        for (; o < out; o += LANES)
            DIRECT_TILE(6, 1);
    }
    for (; j + 2 <= d->out_w; j += 2) {
        const float *cell = src + (size_t) j * d->cell_step;
        for (size_t o = 0; o < out; o += LANES)
            DIRECT_TILE(2, 1);
    }
    for (; j < d->out_w; j++) {
        const float *cell = src + (size_t) j * d->cell_step;
        for (size_t o = 0; o < out; o += LANES)
            DIRECT_TILE(1, 1);
    }
}

/* T taps by V vectors of output channels, over all cells of the rows. */
#define DIRECT_DIFF_TILE(T, V)                                                                     \
    do {                                                                                           \
        vec sum[T][V];                                                                             \
        EACH (t, T)                                                                                \
            EACH (v, V)                                                                            \
                sum[t][v] = LOAD(diff + (size_t) (tap + t) * out + o + v * LANES);                 \
        const int *offsets = d->offsets + tap;                                                     \
        const float *row = src, *at = g + o;                                                       \
        for (int r = 0; r < rows; r++, row += d->row_step) {                                       \
            const float *cell = row;                                                               \
            for (int j = 0; j < d->out_w; j++, cell += d->cell_step, at += out) {                  \
                vec value[V];                                                                      \
                EACH (v, V)                                                                        \
                    value[v] = LOAD(at + v * LANES);                                               \
                EACH (t, T)                                                                        \
                    EACH (v, V)                                                                    \
                        sum[t][v] += cell[offsets[t]] * value[v];                                  \
            }                                                                                      \
        }                                                                                          \
        EACH (t, T)                                                                                \
            EACH (v, V)                                                                            \
                STORE(diff + (size_t) (tap + t) * out + o + v * LANES, sum[t][v]);                 \
    } while (0)

#define DIRECT_DIFF_TAPS(T)                                                                        \
    do {                                                                                           \
        size_t o = 0;                                                                              \
        for (; o + 2 * LANES <= out; o += 2 * LANES)                                               \
            DIRECT_DIFF_TILE(T, 2);                                                                \
        for (; o < out; o += LANES)                                                                \
            DIRECT_DIFF_TILE(T, 1);                                                                \
    } while (0)

HPCT_TARGET static void HPCT_VARIANT(direct_mask)(const hpct_cpu_direct *d, int rows,
                                                  const float *dst, const float *diff_dst, float *g,
                                                  float *diff_bias)
{
    size_t out = (size_t) d->out, cells = (size_t) rows * (size_t) d->out_w;
    for (size_t o = 0; o < out; o += LANES) {
        vec sum = LOAD(diff_bias + o);
        for (size_t j = 0; j < cells; j++) {
            vec value = LOAD(diff_dst + j * out + o);
            if (d->relu) {
                vec y = LOAD(dst + j * out + o);
                value = MASKED(value, y > 0);
            }
            STORE(g + j * out + o, value);
            sum += value;
        }
        STORE(diff_bias + o, sum);
    }
}

HPCT_TARGET static void HPCT_VARIANT(direct_backward)(const hpct_cpu_direct *d, int rows,
                                                      const float *src, const float *g, float *diff)
{
    size_t out = (size_t) d->out;
    int tap = 0;
#if HPCT_VARIANT_LANES == 16 /* AVX-512 has twice as many registers */
    for (; tap + 9 <= d->taps; tap += 9)
        DIRECT_DIFF_TAPS(9);
    for (; tap + 7 <= d->taps; tap += 7)
        DIRECT_DIFF_TAPS(7);
#endif
    for (; tap + 5 <= d->taps; tap += 5)
        DIRECT_DIFF_TAPS(5);
    for (; tap + 4 <= d->taps; tap += 4)
        DIRECT_DIFF_TAPS(4);
    for (; tap + 2 <= d->taps; tap += 2)
        DIRECT_DIFF_TAPS(2);
    for (; tap < d->taps; tap++)
        DIRECT_DIFF_TAPS(1);
}

#define MASK HPCT_VARIANT(mask)
#define BYTES HPCT_VARIANT(bytes)
#define LOAD_BYTES(p) __builtin_convertvector((BYTES) * (const HPCT_VARIANT(bytesu) *) (p), MASK)
#define STORE_BYTES(p, v)                                                                          \
    (*(HPCT_VARIANT(bytesu) *) (p) = __builtin_convertvector((MASK) (v), BYTES))

#define COUNT(i, n) for (int i = 0; i < (n); i++)

/* Runs BODY for the cells of a window in order; `cell`: index in the window, `at`: offset in the
 * band. */
#define POOL_CELLS(LOOP, HIGH, WIDE, BODY)                                                         \
    LOOP(u, HIGH)                                                                                  \
    LOOP(v, WIDE)                                                                                  \
    {                                                                                              \
        int cell = u * (WIDE) + v;                                                                 \
        size_t at = ((size_t) u * width + (size_t) (j * (WIDE) + v)) * out + o;                    \
        BODY;                                                                                      \
    }

#define POOL_LARGEST                                                                               \
    vec value = LOAD(band + at);                                                                   \
    MASK larger = value > best;                                                                    \
    if (!p->relu && cell == 0)                                                                     \
        larger = ~none;                                                                            \
    best = SELECT(larger, value, best);                                                            \
    which = ((none + cell) & larger) | (which & ~larger)

#define POOL_ROW(LOOP, HIGH, WIDE)                                                                 \
    for (int j = 0; j < p->out_w; j++, dst += p->cell_step, where += out)                          \
        for (size_t o = 0; o < out; o += LANES) {                                                  \
            vec best = {0};                                                                        \
            MASK which = ~none;                                                                    \
            POOL_CELLS(LOOP, HIGH, WIDE, POOL_LARGEST)                                             \
            STORE(dst + o / HPCT_CPU_LANES * p->block_step + o % HPCT_CPU_LANES, best);            \
            STORE_BYTES(where + o, which);                                                         \
        }

HPCT_TARGET static void HPCT_VARIANT(direct_pool)(const hpct_cpu_direct_pool *p, const float *band,
                                                  float *dst, int8_t *where)
{
    const MASK none = {0};
    size_t out = (size_t) p->out, width = (size_t) p->out_w * (size_t) p->wide;
    if (p->high == 2 && p->wide == 2)
        POOL_ROW(EACH, 2, 2)
    else
        POOL_ROW(COUNT, p->high, p->wide)
}

#define UNPOOL_ROW(LOOP, HIGH, WIDE)                                                               \
    for (int j = 0; j < p->out_w; j++, diff_dst += p->cell_step, where += out)                     \
        for (size_t o = 0; o < out; o += LANES) {                                                  \
            vec diff = LOAD(diff_dst + o / HPCT_CPU_LANES * p->block_step + o % HPCT_CPU_LANES);   \
            MASK which = LOAD_BYTES(where + o);                                                    \
            POOL_CELLS(LOOP, HIGH, WIDE, STORE(g + at, MASKED(diff, which == cell)))               \
            STORE(diff_bias + o, LOAD(diff_bias + o) + MASKED(diff, which >= 0));                  \
        }

HPCT_TARGET static void HPCT_VARIANT(direct_unpool)(const hpct_cpu_direct_pool *p,
                                                    const int8_t *where, const float *diff_dst,
                                                    float *g, float *diff_bias)
{
    size_t out = (size_t) p->out, width = (size_t) p->out_w * (size_t) p->wide;
    if (p->high == 2 && p->wide == 2)
        UNPOOL_ROW(EACH, 2, 2)
    else
        UNPOOL_ROW(COUNT, p->high, p->wide)
}

#undef DIRECT_TILE
#undef DIRECT_DIFF_TILE
#undef DIRECT_DIFF_TAPS
#undef MASK
#undef BYTES
#undef LOAD_BYTES
#undef STORE_BYTES
#undef COUNT
#undef POOL_CELLS
#undef POOL_LARGEST
#undef POOL_ROW
#undef UNPOOL_ROW
