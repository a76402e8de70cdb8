/* agent/data/idx.h - reads one IDX file of unsigned bytes. */
#ifndef HPCT_AGENT_DATA_IDX_H
#define HPCT_AGENT_DATA_IDX_H

#include <hpctrain/status.h>
#include <stdint.h>

#define HPCT_DATA_IDX_MAX_RANK 4

typedef struct hpct_data_idx {
    uint64_t sizes[HPCT_DATA_IDX_MAX_RANK];
    uint8_t *bytes; /* malloc'd; the product of the sizes */
} hpct_data_idx;

/* Reads the file open at `fd` (plain or gzip; always closed here), which must have `rank`
 * dimensions and the length that its header says; else HPCT_ERR_DATA. `path` is for the message.
 * The caller frees out->bytes. */
hpct_status hpct_data_idx_read(hpct_data_idx *out, int fd, int rank, const char *path);

#endif
