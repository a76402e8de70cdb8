/* GaussianNoise, element by element. Its gradient is that of the identity. */
#include "nn/backend/noise.h"
#include "nn/backend/ref/kernels.h"

void HPCT_REF(gaussian_noise)(const hpct_graph_draw *draw, double stddev, int first_sample, int n,
                              size_t size, const hpct_ref_real *src, hpct_ref_real *dst)
{
    float noise[HPCT_BACKEND_NOISE_GROUP] = {0};
    for (int s = 0; s < n; s++) {
        for (size_t e = 0; e < size; e++, src++, dst++) {
            if (e % HPCT_BACKEND_NOISE_GROUP == 0)
                hpct_backend_noise_block(draw, (uint32_t) (first_sample + s),
                                         (uint32_t) (e / HPCT_BACKEND_NOISE_GROUP), noise);
            *dst =
                *src + (hpct_ref_real) stddev * (hpct_ref_real) noise[e % HPCT_BACKEND_NOISE_GROUP];
        }
    }
}
