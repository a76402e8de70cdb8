/* agent/data/idx.h - reading one IDX file of unsigned bytes. */
#ifndef HPCT_DATA_IDX_H
#define HPCT_DATA_IDX_H

#include <hpctrain/status.h>
#include <stdint.h>

#define HPCT_IDX_MAX_RANK 4

typedef struct hpct_idx {
    uint64_t sizes[HPCT_IDX_MAX_RANK];
    uint8_t *bytes; /* malloc'd: the product of the sizes */
} hpct_idx;

/* Reads the file open at `fd` (plain or gzip; closed here in every case), which must have `rank`
 * dimensions and end where its header says. HPCT_ERR_DATA for what is not so; `path` is for the
 * message. The caller frees out->bytes. */
hpct_status hpct_idx_read(hpct_idx *out, int fd, int rank, const char *path);

#endif
