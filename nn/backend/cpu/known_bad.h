/* nn/backend/cpu/known_bad.h - what releases of oneDNN are known to compute wrongly, by version,
 * instruction set and shape, and the way round. Knows no oneDNN: tests ask about releases that are
 * not installed. */
#ifndef HPCT_NN_BACKEND_CPU_KNOWN_BAD_H
#define HPCT_NN_BACKEND_CPU_KNOWN_BAD_H

#include <stdbool.h>
#include <stddef.h>

/* A release, and whether it uses AMX on this processor. */
typedef struct hpct_cpu_onednn {
    int version; /* 10000 * major + 100 * minor + patch */
    bool amx;
} hpct_cpu_onednn;

/* The tiles of AMX have so many bf16 numbers in a row. */
#define HPCT_CPU_PRODUCT_TILE ((size_t) 32)

/* The inner size to use for a bf16 product whose inner size is `k`: `k` itself, or the next
 * multiple of HPCT_CPU_PRODUCT_TILE where `k` would be computed wrongly. Both matrices then need
 * zeros behind `k`. */
size_t hpct_cpu_product_depth(const hpct_cpu_onednn *library, size_t k);

/* One of oneDNN's implementations of a convolution. */
typedef struct hpct_cpu_conv_choice {
    const char *name; /* as oneDNN calls it: "brgconv:avx512_core_bf16" */
    bool bf16;        /* computes with it */
    int inner;        /* channels that it sums over; 0: none (the kernel's gradient) */
    int in_c, in_w, out_c, out_w;
    int stride_h, stride_w;
} hpct_cpu_conv_choice;

/* Whether another implementation has to be used. */
bool hpct_cpu_conv_is_known_bad(const hpct_cpu_onednn *library, const hpct_cpu_conv_choice *choice);

#endif
