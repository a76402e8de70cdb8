/* nn/backend/cuda/product.h - a matrix product by cuBLASLt: d = a b, or d -= rate a b. Matrices are
 * row-major and dense. The fastest of the library's algorithms is measured once and kept
 * (nn/backend/cuda/tune.h). Results are reproducible. */
#ifndef HPCT_NN_BACKEND_CUDA_PRODUCT_H
#define HPCT_NN_BACKEND_CUDA_PRODUCT_H

#include "nn/backend/cuda/cuda.h"

typedef struct hpct_cuda_lt_product hpct_cuda_lt_product;

typedef struct hpct_cuda_lt_spec {
    size_t rows, columns, depth; /* d is [rows][columns], sums have `depth` terms */
    bool a_transposed;           /* a is stored as [depth][rows] instead of [rows][depth] */
    bool b_transposed;           /* b is stored as [columns][depth] instead of [depth][columns] */
    cudaDataType_t in;           /* of a and b */
    cudaDataType_t out;          /* of d */
    bool update;                 /* d -= rate a b, with the rate in hpct_cuda_gpu.now */
} hpct_cuda_lt_spec;

/* *out is NULL, with HPCT_OK, if the library has no algorithm for an update; without update there
 * always is one. */
hpct_status hpct_cuda_lt_make(hpct_cuda_lt_product **out, const hpct_cuda_lt_spec *spec);
void hpct_cuda_lt_free(hpct_cuda_lt_product *product); /* NULL is allowed */

size_t hpct_cuda_lt_workspace_bytes(const hpct_cuda_lt_product *product);

/* Enqueues it. All pointers must be 16-byte aligned. */
hpct_status hpct_cuda_lt_run(const hpct_cuda_lt_product *product, const void *a, const void *b,
                             void *d, void *workspace);

#endif
