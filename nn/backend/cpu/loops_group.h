/* nn/backend/cpu/loops_group.h - layer and group normalization, one group at a time. Part of
 * nn/backend/cpu/loops_body.h. */

#define LANES_SUM(total, v)                                                                        \
    EACH (lane, LANES)                                                                             \
    (total) += (v)[lane]

HPCT_TARGET static void HPCT_VARIANT(group_moments)(const hpct_cpu_group_rows *g, float *mean,
                                                    float *variance)
{
    vec sums = {0}, squares = {0};
    float sum = 0, square = 0, count = (float) (g->cells * g->channels);
    for (size_t r = 0; r < g->cells; r++) {
        const float *src = g->src + r * g->step;
        size_t c = 0;
        for (; c + LANES <= g->channels; c += LANES)
            sums += LOAD(src + c);
        for (; c < g->channels; c++)
            sum += src[c];
    }
    LANES_SUM(sum, sums);
    *mean = sum / count;
    for (size_t r = 0; r < g->cells; r++) {
        const float *src = g->src + r * g->step;
        size_t c = 0;
        for (; c + LANES <= g->channels; c += LANES) {
            vec x = LOAD(src + c) - *mean;
            squares += x * x;
        }
        for (; c < g->channels; c++)
            square += (src[c] - *mean) * (src[c] - *mean);
    }
    LANES_SUM(square, squares);
    *variance = square / count;
}

HPCT_TARGET static void HPCT_VARIANT(group_normalize)(const hpct_cpu_group_rows *g, float *dst)
{
    for (size_t r = 0; r < g->cells; r++, dst += g->step) {
        const float *src = g->src + r * g->step;
        size_t c = 0;
        for (; c + LANES <= g->channels; c += LANES)
            STORE(dst + c,
                  (LOAD(src + c) - g->mean) * g->inverse * LOAD(g->gamma + c) + LOAD(g->beta + c));
        for (; c < g->channels; c++)
            dst[c] = (src[c] - g->mean) * g->inverse * g->gamma[c] + g->beta[c];
    }
}

HPCT_TARGET static void HPCT_VARIANT(group_sums)(const hpct_cpu_group_rows *g, float *sum,
                                                 float *sum_x, float *diff_gamma, float *diff_beta)
{
    vec a = {0}, b = {0};
    *sum = *sum_x = 0;
    for (size_t r = 0; r < g->cells; r++) {
        const float *src = g->src + r * g->step, *diff = g->diff + r * g->step;
        size_t c = 0;
        for (; c + LANES <= g->channels; c += LANES) {
            vec x = LOAD(src + c) - g->mean, d = LOAD(diff + c), scaled = d * LOAD(g->gamma + c);
            STORE(diff_gamma + c, LOAD(diff_gamma + c) + d * x * g->inverse);
            STORE(diff_beta + c, LOAD(diff_beta + c) + d);
            a += scaled;
            b += scaled * x;
        }
        for (; c < g->channels; c++) {
            float x = src[c] - g->mean, scaled = diff[c] * g->gamma[c];
            diff_gamma[c] += diff[c] * x * g->inverse;
            diff_beta[c] += diff[c];
            *sum += scaled;
            *sum_x += scaled * x;
        }
    }
    LANES_SUM(*sum, a);
    LANES_SUM(*sum_x, b);
}

HPCT_TARGET static void HPCT_VARIANT(group_backward)(const hpct_cpu_group_rows *g, float slope,
                                                     float offset, bool add, float *diff_src)
{
    for (size_t r = 0; r < g->cells; r++, diff_src += g->step) {
        const float *src = g->src + r * g->step, *diff = g->diff + r * g->step;
        size_t c = 0;
        for (; c + LANES <= g->channels; c += LANES) {
            vec change = LOAD(diff + c) * LOAD(g->gamma + c) * g->inverse +
                         (LOAD(src + c) - g->mean) * slope + offset;
            change = add ? change + LOAD(diff_src + c) : change;
            STORE(diff_src + c, change);
        }
        for (; c < g->channels; c++) {
            float change = diff[c] * g->gamma[c] * g->inverse + (src[c] - g->mean) * slope + offset;
            diff_src[c] = change + (add ? diff_src[c] : 0);
        }
    }
}

#undef LANES_SUM
