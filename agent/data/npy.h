/* agent/data/npy.h - the header of NumPy's .npy format (NEP 1), read strictly. */
#ifndef HPCT_DATA_NPY_H
#define HPCT_DATA_NPY_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HPCT_NPY_MAX_RANK 8

typedef struct hpct_npy {
    char kind;     /* 'u' or 'i': unsigned or signed integers, little-endian */
    int item_size; /* 1, 2, 4 or 8 bytes */
    int rank;
    uint64_t sizes[HPCT_NPY_MAX_RANK];
    uint64_t bytes; /* of all elements */
} hpct_npy;

/* Length of what precedes the header's text: magic, version, length. */
#define HPCT_NPY_PREFIX 12

/* From the first HPCT_NPY_PREFIX bytes: how long prefix and text are. The prefix of version 1 is
 * two bytes shorter: those bytes belong to the text already. HPCT_ERR_DATA for anything else. */
hpct_status hpct_npy_read_prefix(const uint8_t prefix[HPCT_NPY_PREFIX], size_t *prefix_length,
                                 size_t *text_length, const char *name);

/* The header's text, a Python dictionary with descr, fortran_order and shape. HPCT_ERR_DATA naming
 * `name` for what is not of that form, for Fortran order, and for elements that are no integers. */
hpct_status hpct_npy_read_text(hpct_npy *out, const char *text, size_t length, const char *name);

#endif
