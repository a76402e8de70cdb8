/* nn/backend/cpu/loops_dropout.h - Dropout and its random numbers. Part of
 * nn/backend/cpu/loops_body.h. */

/* Upper and lower halves of the 64-bit products with a constant. */
#define MULTIPLY(factor, c, high, low)                                                             \
    do {                                                                                           \
        pairs even = ((pairs) (c) &0xffffffff) * (factor), odd = ((pairs) (c) >> 32) * (factor);   \
        high = (words) (even >> 32 | (odd & UINT64_C(0xffffffff00000000)));                        \
        low = (words) ((even & 0xffffffff) | odd << 32);                                           \
    } while (0)

/* hpct_graph_draw_words for HPCT_BACKEND_DROPOUT_LANES blocks; `out` has the first words of all
 * blocks, then the second ones, etc. */
HPCT_TARGET static void HPCT_VARIANT(draw_group)(const hpct_graph_draw *draw, uint32_t sample,
                                                 uint32_t group, uint32_t *out)
{
    for (uint32_t block = 0; block < HPCT_BACKEND_DROPOUT_LANES; block += LANES) {
        words c0 = {0}, c1 = {0}, c2 = {0}, c3 = {0}, high0, low0, high2, low2;
        uint32_t k0 = (uint32_t) draw->seed, k1 = (uint32_t) (draw->seed >> 32);
        EACH (i, LANES)
            c0[i] = (uint32_t) i;
        c0 += group * HPCT_BACKEND_DROPOUT_LANES + block;
        c1 += sample;
        c2 += draw->step;
        c3 += hpct_graph_draw_tag(draw);
        for (int round = 0; round < 10; round++) {
            MULTIPLY(UINT64_C(0xD2511F53), c0, high0, low0);
            MULTIPLY(UINT64_C(0xCD9E8D57), c2, high2, low2);
            c0 = high2 ^ c1 ^ k0;
            c2 = high0 ^ c3 ^ k1;
            c1 = low2;
            c3 = low0;
            k0 += UINT32_C(0x9E3779B9);
            k1 += UINT32_C(0xBB67AE85);
        }
        words all[4] = {c0, c1, c2, c3};
        EACH (w, 4)
            memcpy(out + w * HPCT_BACKEND_DROPOUT_LANES + block, &all[w], sizeof all[w]);
    }
}

HPCT_TARGET static void HPCT_VARIANT(dropout)(const hpct_backend_dropout *dropout, uint32_t sample,
                                              uint32_t group, size_t count, const float *src,
                                              float *dst)
{
    uint32_t drawn[HPCT_BACKEND_DROPOUT_GROUP];
    for (; count >= HPCT_BACKEND_DROPOUT_GROUP; count -= HPCT_BACKEND_DROPOUT_GROUP, group++) {
        HPCT_VARIANT(draw_group)(&dropout->draw, sample, group, drawn);
        for (int i = 0; i < HPCT_BACKEND_DROPOUT_GROUP; i += LANES) {
            words word;
            memcpy(&word, drawn + i, sizeof word);
            STORE(dst + i, MASKED(LOAD(src + i) * dropout->scale, word >= dropout->threshold));
        }
        src += HPCT_BACKEND_DROPOUT_GROUP;
        dst += HPCT_BACKEND_DROPOUT_GROUP;
    }
    if (count > 0)
        HPCT_VARIANT(draw_group)(&dropout->draw, sample, group, drawn);
    for (size_t i = 0; i < count; i++)
        dst[i] = drawn[i] >= dropout->threshold ? src[i] * dropout->scale : 0;
}

#undef MULTIPLY
