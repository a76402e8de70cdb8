/* nn/backend/cpu/loops_pool.h - maximum pooling. Part of nn/backend/cpu/loops_body.h. */

#define STORE_INTS(p, v) STORE((float *) (void *) (p), (vec) (v))
#define LOAD_INTS(p) ((HPCT_VARIANT(mask)) LOAD((const float *) (const void *) (p)))

/* Runs BODY for the cells of a window in order: `cell`, index in the window; `at`, offset in the
 * image in floats; `outside`, set for padding, which is skipped unless it counts as zeros. */
#define EACH_CELL(BODY)                                                                            \
    for (int u = 0, cell = 0; u < w->kernel_h; u++)                                                \
        for (int v = 0; v < w->kernel_w; v++, cell++) {                                            \
            int y = i * w->stride_h + u - w->pad_top, x = j * w->stride_w + v - w->pad_left;       \
            bool outside = y < 0 || y >= w->in_h || x < 0 || x >= w->in_w;                         \
            size_t at = outside ? 0 : ((size_t) y * (size_t) w->in_w + (size_t) x) * src_step;     \
            BODY;                                                                                  \
        }

#define MAX_VECTOR                                                                                 \
    if (outside && !w->pad_zeros)                                                                  \
        continue;                                                                                  \
    vec value = {0};                                                                               \
    if (!outside)                                                                                  \
        value = LOAD(src + at + c);                                                                \
    HPCT_VARIANT(mask) larger = (value > best) | (first ? ~none : none);                           \
    best = SELECT(larger, value, best);                                                            \
    which = ((outside ? ~none : none + cell) & larger) | (which & ~larger);                        \
    first = false

#define MAX_ONE                                                                                    \
    if (outside && !w->pad_zeros)                                                                  \
        continue;                                                                                  \
    float value = outside ? 0 : src[at + c];                                                       \
    if (first || value > best) {                                                                   \
        best = value;                                                                              \
        which = outside ? -1 : cell;                                                               \
    }                                                                                              \
    first = false

HPCT_TARGET static void HPCT_VARIANT(max_pool)(const hpct_graph_window *w, const float *src,
                                               size_t src_step, float *dst, size_t dst_step,
                                               int32_t *where)
{
    const HPCT_VARIANT(mask) none = {0};
    size_t channels = (size_t) w->in_c;
    for (int i = 0; i < w->out_h; i++)
        for (int j = 0; j < w->out_w; j++, dst += dst_step, where += channels) {
            size_t c = 0;
            for (; c + LANES <= channels; c += LANES) {
                vec best = {0};
                HPCT_VARIANT(mask) which = none;
                bool first = true;
                EACH_CELL(MAX_VECTOR)
                STORE(dst + c, best);
                STORE_INTS(where + c, which);
            }
            for (; c < channels; c++) {
                float best = 0;
                int32_t which = 0;
                bool first = true;
                EACH_CELL(MAX_ONE)
                dst[c] = best;
                where[c] = which;
            }
        }
}

#define ADD_VECTOR                                                                                 \
    if (outside)                                                                                   \
        continue;                                                                                  \
    float *to = diff_src + at + c;                                                                 \
    STORE(to, LOAD(to) + MASKED(diff, which == cell))

HPCT_TARGET static void HPCT_VARIANT(max_pool_backward)(const hpct_graph_window *w,
                                                        const int32_t *where, const float *diff_dst,
                                                        size_t dst_step, float *diff_src,
                                                        size_t src_step)
{
    size_t channels = (size_t) w->in_c;
    for (int i = 0; i < w->out_h; i++)
        for (int j = 0; j < w->out_w; j++, diff_dst += dst_step, where += channels) {
            size_t c = 0;
            for (; c + LANES <= channels; c += LANES) {
                vec diff = LOAD(diff_dst + c);
                HPCT_VARIANT(mask) which = LOAD_INTS(where + c);
                EACH_CELL(ADD_VECTOR)
            }
            for (; c < channels; c++) {
                int y = i * w->stride_h + where[c] / w->kernel_w - w->pad_top,
                    x = j * w->stride_w + where[c] % w->kernel_w - w->pad_left;
                if (where[c] >= 0)
                    diff_src[((size_t) y * (size_t) w->in_w + (size_t) x) * src_step + c] +=
                        diff_dst[c];
            }
        }
}

#undef STORE_INTS
#undef LOAD_INTS
#undef EACH_CELL
#undef MAX_VECTOR
#undef MAX_ONE
#undef ADD_VECTOR
