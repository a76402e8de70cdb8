/* agent/data/affine_body.h - the loops of affine.c, included once for each instruction set by
 * base/variants.h. */

HPCT_TARGET static void HPCT_VARIANT(locate)(const hpct_data_affine_line *line,
                                             const hpct_data_affine_row *row)
{
    const float width = (float) line->width, height = (float) line->height, x0 = line->x,
                y0 = line->y, dx = line->dx, dy = line->dy;
    const int count = line->width, bottom = line->height - 1, right = line->width - 1,
              cell = line->channels, stride = line->width * line->channels;
    int32_t *restrict top_left = row->top_left, *restrict top_right = row->top_right;
    int32_t *restrict bottom_left = row->bottom_left, *restrict bottom_right = row->bottom_right;
    float *restrict to_right = row->right, *restrict lower = row->lower;
#pragma omp simd
    for (int i = 0; i < count; i++) {
        float x = reflected(x0 + (float) i * dx, width), y = reflected(y0 + (float) i * dy, height);
        int left = (int) x, top = (int) y;
        int next = left < right ? cell : 0, below = top < bottom ? stride : 0;
        int at = top * stride + left * cell;
        top_left[i] = at;
        top_right[i] = at + next;
        bottom_left[i] = at + below;
        bottom_right[i] = at + below + next;
        to_right[i] = x - (float) left;
        lower[i] = y - (float) top;
    }
}

HPCT_TARGET static void HPCT_VARIANT(sample)(const hpct_data_affine_line *line,
                                             const hpct_data_affine_row *row,
                                             const float *restrict src, float *restrict dst)
{
    const int count = line->width, channels = line->channels;
    const int32_t *restrict a = row->top_left, *restrict b = row->top_right;
    const int32_t *restrict c = row->bottom_left, *restrict d = row->bottom_right;
    const float *restrict right = row->right, *restrict lower = row->lower;
    for (int k = 0; k < channels; k++) {
#pragma omp simd
        for (int i = 0; i < count; i++) {
            float top = (1 - right[i]) * src[a[i] + k] + right[i] * src[b[i] + k];
            float bottom = (1 - right[i]) * src[c[i] + k] + right[i] * src[d[i] + k];
            dst[i * channels + k] = (1 - lower[i]) * top + lower[i] * bottom;
        }
    }
}

static const hpct_data_affine_loops HPCT_VARIANT(loops) = {
    HPCT_VARIANT_NAME,
    HPCT_VARIANT(supported),
    HPCT_VARIANT(locate),
    HPCT_VARIANT(sample),
};
