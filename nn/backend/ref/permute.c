/* Permute: a gather, in backward with the inverse order of axes. */
#include "nn/backend/ref/kernels.h"

void HPCT_REF(permute)(const hpct_backend_permute *t, size_t count, const hpct_ref_real *src,
                       bool add, hpct_ref_real *dst)
{
    const int *size = t->size;
    for (size_t i = 0; i < count; i++) {
        size_t rest = i, from = 0, all = 1;
        for (int axis = HPCT_MAX_RANK - 1; axis >= 0; axis--) {
            from += rest % (size_t) size[axis] * t->step[axis];
            rest /= (size_t) size[axis];
            all *= (size_t) size[axis];
        }
        from += rest * all; /* of the sample */
        dst[i] = src[from] + (add ? dst[i] : 0);
    }
}
