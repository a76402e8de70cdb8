/* spank/stage/tree/unpack.h - decompression: gzip, zstd, xz, bzip2, detected by their first bytes;
 * other data passes unchanged. Verifies checksums (gzip: CRC and length of each member; xz, bzip2
 * and, if present, zstd). */
#ifndef HPCT_SPANK_STAGE_TREE_UNPACK_H
#define HPCT_SPANK_STAGE_TREE_UNPACK_H

#include <hpctrain/status.h>
#include <stddef.h>

/* Source of compressed bytes: *size bytes at *data, valid until the next call; 0 at the end. */
typedef struct hpct_stage_bytes_source {
    void *context;
    hpct_status (*read)(void *context, const void **data, size_t *size);
} hpct_stage_bytes_source;

typedef struct hpct_stage_unpack hpct_stage_unpack;

/* Opens and reads the first bytes. `name` is for messages. Returns HPCT_ERR_DATA for damage. */
hpct_status hpct_stage_unpack_open(hpct_stage_unpack **unpack, const hpct_stage_bytes_source *from,
                                   const char *name);
void hpct_stage_unpack_close(hpct_stage_unpack *unpack); /* NULL is allowed */

/* Returns the next bytes; *size is 0 at the end, and only if the data is complete. */
hpct_status hpct_stage_unpack_read(hpct_stage_unpack *unpack, const void **data, size_t *size);

#endif
