/* nn/file/safetensors.h - the safetensors file format: a u64 header length, a JSON object {name:
 * {dtype, shape, data_offsets}}, then raw little-endian numbers. Independent of models. Source: the
 * format description of the safetensors project. */
#ifndef HPCT_NN_FILE_SAFETENSORS_H
#define HPCT_NN_FILE_SAFETENSORS_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HPCT_WEIGHTS_ST_MAX_RANK 8
#define HPCT_WEIGHTS_ST_MAX_HEADER (100u << 20) /* the format's own limit */

typedef struct hpct_weights_st_entry {
    char *name;
    bool is_f32;
    char dtype[8];
    int rank;
    int64_t shape[HPCT_WEIGHTS_ST_MAX_RANK];
    uint64_t begin, end; /* bytes after the end of the header */
} hpct_weights_st_entry;

typedef struct hpct_weights_st_index {
    hpct_weights_st_entry *entries; /* sorted by begin */
    size_t count;
    /* Texts of __metadata__; NULL: absent. */
    char *class_names;  /* "class_names": a JSON list */
    char *trained_with; /* "trained_with": a JSON object */
    char *slices;       /* "slices", of a checkpoint's part: a JSON object */
    uint64_t data_at;   /* offset of the data in the file */
} hpct_weights_st_index;

typedef struct hpct_weights_st_text {
    const char *key, *text; /* text NULL: left out */
} hpct_weights_st_text;

/* Parses `header` (the JSON, `length` bytes, without the length field) of a file with `data_bytes`
 * bytes after it. Checks that entries are inside the data without overlap or gap, and that shape,
 * dtype and length agree; else HPCT_ERR_DATA with a message. The caller frees *out. */
hpct_status hpct_weights_st_parse(hpct_weights_st_index *out, const char *header, size_t length,
                                  uint64_t data_bytes);
void hpct_weights_st_free(hpct_weights_st_index *index);

/* The index of an open regular file of `bytes` bytes. HPCT_ERR_DATA with `path` in the message. */
hpct_status hpct_weights_st_read(hpct_weights_st_index *out, int fd, uint64_t bytes,
                                 const char *path);

/* The entry of this name, or NULL. */
const hpct_weights_st_entry *hpct_weights_st_find(const hpct_weights_st_index *index,
                                                  const char *name);

/* Element size in bytes of the format's types; 0 for unknown ones. */
unsigned hpct_weights_st_element_bytes(const char *dtype);

/* Creates what a file has before its data: the length field, and the JSON for these entries and
 * texts of __metadata__, which end with a key of NULL, padded with spaces so that the data after it
 * is 8-byte aligned. The caller frees *out. */
hpct_status hpct_weights_st_format(char **out, size_t *length, const hpct_weights_st_entry *entries,
                                   size_t count, const hpct_weights_st_text *texts);

#endif
