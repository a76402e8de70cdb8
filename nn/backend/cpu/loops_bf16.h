/* nn/backend/cpu/loops_bf16.h - conversion to bfloat16. Part of nn/backend/cpu/loops_body.h. */

typedef uint16_t HPCT_VARIANT(halves) __attribute__((vector_size(2 * LANES)));
typedef uint16_t HPCT_VARIANT(halvesu)
    __attribute__((vector_size(2 * LANES), aligned(2), may_alias));
#define STORE_HALVES(p, v)                                                                         \
    (*(HPCT_VARIANT(halvesu) *) (p) = __builtin_convertvector(v, HPCT_VARIANT(halves)))

/* hpct_backend_bf16_of, into the lower half of each word. */
#define BF16(v)                                                                                    \
    ({                                                                                             \
        words bits_ = (words) (v);                                                                 \
        words none_ = (words) ((bits_ & 0x7fffffff) > 0x7f800000);                                 \
        words near_ = (bits_ + 0x7fff + (bits_ >> 16 & 1)) >> 16;                                  \
        (words)((((bits_ >> 16) | 0x40) & none_) | (near_ & ~none_));                              \
    })

HPCT_TARGET static void HPCT_VARIANT(to_bf16)(size_t count, const float *src,
                                              hpct_backend_bf16 *dst)
{
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        STORE_HALVES(dst + i, BF16(LOAD(src + i)));
    for (; i < count; i++)
        dst[i] = hpct_backend_bf16_of(src[i]);
}

HPCT_TARGET static void HPCT_VARIANT(diff_to_bf16)(size_t rows, size_t out, const float *dst,
                                                   const float *diff, float factor,
                                                   hpct_backend_bf16 *low, float *sums)
{
    for (size_t r = 0; r < rows; r++) {
        size_t o = 0, at = r * out;
        for (; o + LANES <= out; o += LANES) {
            vec g = factor * LOAD(diff + at + o);
            if (dst != NULL) {
                vec y = LOAD(dst + at + o);
                g = MASKED(g, y > 0);
            }
            words rounded = BF16(g);
            STORE_HALVES(low + at + o, rounded);
            if (sums != NULL)
                STORE(sums + o, LOAD(sums + o) + (vec) (rounded << 16));
        }
        for (; o < out; o++) {
            low[at + o] =
                hpct_backend_bf16_of(dst == NULL || dst[at + o] > 0 ? factor * diff[at + o] : 0);
            if (sums != NULL)
                sums[o] += hpct_backend_bf16_value(low[at + o]);
        }
    }
}

#undef STORE_HALVES
#undef BF16
