/* nn/cuda/product.h - one matrix product by cuBLASLt, all decided when it is made: d = a b, with a
 * bias and a ReLU where asked for, or d -= rate a b. Matrices are row-major and dense. Which of the library's
 * algorithms is best is measured once and kept (nn/cuda/tune.h). Results are the same each time. */
#ifndef HPCT_NN_CUDA_PRODUCT_H
#define HPCT_NN_CUDA_PRODUCT_H

#include "nn/cuda/cuda.h"

typedef struct hpct_lt_product hpct_lt_product;

typedef struct hpct_lt_spec {
    size_t rows, columns, depth; /* d is [rows][columns], the sums have `depth` terms */
    bool a_transposed;           /* a lies as [depth][rows] instead of [rows][depth] */
    bool b_transposed;           /* b lies as [columns][depth] instead of [depth][columns] */
    cudaDataType_t in;           /* of a and b */
    cudaDataType_t out;          /* of d and of the bias */
    bool bias, relu;             /* [columns] is added to each row; then the maximum with 0 */
    bool update;                 /* d -= rate a b, by the rate that hpct_gpu.now has; no others */
} hpct_lt_spec;

/* *out is NULL, and that is no error, where the library has no algorithm with that bias or ReLU, or
 * for that update; without them there always is a way. */
hpct_status hpct_lt_make(hpct_lt_product **out, const hpct_lt_spec *spec);
void hpct_lt_free(hpct_lt_product *product); /* NULL is allowed */

size_t hpct_lt_workspace_bytes(const hpct_lt_product *product);

/* Enqueues it. All pointers are multiples of 16 bytes; `bias` is not looked at without spec.bias.
 */
hpct_status hpct_lt_run(hpct_lt_product *product, const void *a, const void *b, const void *bias,
                        void *d, void *workspace);

#endif
