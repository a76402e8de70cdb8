/* base/kind.h - file types by content, independent of the name: files are often misnamed, and
 * downloads fail. */
#ifndef HPCT_BASE_KIND_H
#define HPCT_BASE_KIND_H

#include <hpctrain/status.h>
#include <stddef.h>

typedef enum hpct_kind {
    HPCT_KIND_UNKNOWN,
    HPCT_KIND_SAFETENSORS,
    HPCT_KIND_HDF5,
    HPCT_KIND_JSON,
    /* Neither models nor weights that can be read here: */
    HPCT_KIND_EMPTY,
    HPCT_KIND_LFS,
    HPCT_KIND_HTML,
    HPCT_KIND_KERAS,
    HPCT_KIND_NPZ,
    HPCT_KIND_TORCH,
    HPCT_KIND_ZIP,
    HPCT_KIND_PACKED,
    HPCT_KIND_NPY,
    HPCT_KIND_PICKLE,
    HPCT_KIND_TFLITE,
    HPCT_KIND_YAML,
    HPCT_KIND_UTF16,
    HPCT_KINDS
} hpct_kind;

#define HPCT_KIND_BYTES 512 /* enough to detect all types */

hpct_kind hpct_kind_of(const void *head, size_t length);

/* For a regular file; HPCT_ERR_NO_INPUT if it is not one or cannot be opened. */
hpct_status hpct_kind_of_file(hpct_kind *kind, const char *path);

/* A text in UTF-8, ended by a zero byte and without a byte order mark; *text lies in *data, which
 * the caller frees. HPCT_ERR_DATA if it is in UTF-16 or UTF-32, or has a zero byte. */
hpct_status hpct_kind_read_text(char **data, char **text, const char *path, size_t max);

/* "a git-lfs pointer, …": the type and what to do instead. NULL for HPCT_KIND_UNKNOWN. */
const char *hpct_kind_says(hpct_kind kind);

#endif
