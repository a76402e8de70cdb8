/* nn/safetensors.h - the safetensors file format: a u64 header length, a JSON object
 * {name: {dtype, shape, data_offsets}}, then raw little-endian numbers. Format only: knows no
 * models. Source: the format description of the safetensors project. */
#ifndef HPCT_NN_SAFETENSORS_H
#define HPCT_NN_SAFETENSORS_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HPCT_ST_MAX_RANK 8
#define HPCT_ST_MAX_HEADER (100u << 20) /* the format's own limit */

typedef struct hpct_st_entry {
    char *name;
    bool is_f32;
    char dtype[8];
    int rank;
    int64_t shape[HPCT_ST_MAX_RANK];
    uint64_t begin, end; /* bytes, counted from the first byte behind the header */
} hpct_st_entry;

typedef struct hpct_st_index {
    hpct_st_entry *entries; /* by begin */
    size_t count;
} hpct_st_index;

/* Reads `header` (the JSON, `length` bytes, without the length field) of a file with `data_bytes`
 * bytes behind it. Every entry lies inside the data, no two overlap, together they leave no gap,
 * and shape, dtype and length agree; HPCT_ERR_DATA with a message otherwise. *out is the caller's.
 */
hpct_status hpct_st_parse(hpct_st_index *out, const char *header, size_t length,
                          uint64_t data_bytes);
void hpct_st_free(hpct_st_index *index);

/* The JSON for these entries (names, shapes and offsets are used; all are F32), padded with blanks
 * so that the data behind it is 8-byte aligned. The caller frees *out. */
hpct_status hpct_st_format(char **out, size_t *length, const hpct_st_entry *entries, size_t count);

#endif
