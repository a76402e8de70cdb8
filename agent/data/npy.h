/* agent/data/npy.h - the header of NumPy's .npy format (NEP 1), read strictly. */
#ifndef HPCT_AGENT_DATA_NPY_H
#define HPCT_AGENT_DATA_NPY_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HPCT_DATA_NPY_MAX_RANK 8

typedef struct hpct_data_npy {
    char kind;     /* 'u' or 'i': unsigned or signed integers, little-endian */
    int item_size; /* 1, 2, 4 or 8 bytes */
    int rank;
    uint64_t sizes[HPCT_DATA_NPY_MAX_RANK];
    uint64_t bytes; /* size of all elements */
} hpct_data_npy;

/* Length of the prefix: magic, version, length. */
#define HPCT_DATA_NPY_PREFIX 12

/* From the first HPCT_DATA_NPY_PREFIX bytes: the lengths of prefix and text. The prefix of version
 * 1 is two bytes shorter, so that these bytes belong to the text. HPCT_ERR_DATA for anything else.
 */
hpct_status hpct_data_npy_read_prefix(const uint8_t prefix[HPCT_DATA_NPY_PREFIX],
                                      size_t *prefix_length, size_t *text_length, const char *name);

/* Parses the header's text, a Python dictionary with descr, fortran_order and shape. HPCT_ERR_DATA
 * naming `name` for any other form, Fortran order, and non-integer elements. */
hpct_status hpct_data_npy_read_text(hpct_data_npy *out, const char *text, size_t length,
                                    const char *name);

#endif
