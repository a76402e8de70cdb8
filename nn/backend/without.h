/* nn/backend/without.h - HPC_TRAIN_WITHOUT: a comma-separated list of ways to be faster that are
 * not taken, to find which one is wrong or slow (doc/gpu.md lists them). */
#ifndef HPCT_NN_BACKEND_WITHOUT_H
#define HPCT_NN_BACKEND_WITHOUT_H

#include <stdbool.h>

typedef enum hpct_backend_way_out {
    HPCT_BACKEND_WITHOUT_ADD_NORM, /* the fusions of hpct_backend_fusion */
    HPCT_BACKEND_WITHOUT_BIAS,
    HPCT_BACKEND_WITHOUT_POOL,
    HPCT_BACKEND_WITHOUT_SUM,
    HPCT_BACKEND_WITHOUT_FUSED_UPDATE, /* GPU: plain SGD in the product that makes the gradient */
    HPCT_BACKEND_WITHOUT_SHARED_GRADIENT, /* GPU: a convolution adds to the gradient of a shared
                                             source */
    HPCT_BACKEND_WITHOUT_SMALL,    /* GPU: own kernels for first convolutions on few channels */
    HPCT_BACKEND_WITHOUT_UNPADDED, /* CPU: bf16 products with sides that are not whole tiles of AMX
                                    */
} hpct_backend_way_out;

/* Whether the list names it. The first call reports unknown words. */
bool hpct_backend_without(hpct_backend_way_out way);

#endif
