/* nn/backend/noise.h - GaussianNoise's numbers: equal in every backend but for rounding, for any
 * number of ranks and threads. */
#ifndef HPCT_NN_BACKEND_NOISE_H
#define HPCT_NN_BACKEND_NOISE_H

#include "nn/graph/rng.h"

#include <math.h>

#define HPCT_BACKEND_NOISE_GROUP 4 /* element e of a sample has number e % 4 of block e / 4 */

/* Four standard normal numbers (Box and Muller, A Note on the Generation of Random Normal Deviates,
 * 1958). */
static inline void hpct_backend_noise_block(const hpct_graph_draw *draw, uint32_t sample,
                                            uint32_t block, float out[HPCT_BACKEND_NOISE_GROUP])
{
    uint32_t words[4];
    hpct_graph_draw_words(draw, sample, block, words);
    for (int k = 0; k < HPCT_BACKEND_NOISE_GROUP; k += 2) {
        float uniform = (float) words[k] * 0x1p-32f + 0x1p-33f; /* not 0 */
        float angle = (float) words[k + 1] * (6.2831853071795865f * 0x1p-32f);
        float radius = sqrtf(-2 * logf(uniform));
        out[k] = radius * cosf(angle);
        out[k + 1] = radius * sinf(angle);
    }
}

#endif
