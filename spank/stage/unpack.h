/* spank/stage/unpack.h - the bytes that were compressed: gzip, zstd, xz, bzip2, told apart by their
 * first bytes; what is none of these passes as it is. Checks what the format offers to check
 * (gzip: CRC and length of each member; xz, bzip2 and, where it was written, zstd: their sums). */
#ifndef HPCT_STAGE_UNPACK_H
#define HPCT_STAGE_UNPACK_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>

/* Where compressed bytes come from: *size bytes at *data, valid until the next call; 0 at the end.
 */
typedef struct hpct_bytes_source {
    void *context;
    hpct_status (*read)(void *context, const void **data, size_t *size);
} hpct_bytes_source;

typedef struct hpct_unpack hpct_unpack;

/* Reads a first piece. `name` is for messages. HPCT_ERR_DATA for what is damaged. */
hpct_status hpct_unpack_open(hpct_unpack **unpack, const hpct_bytes_source *from, const char *name);
void hpct_unpack_close(hpct_unpack *unpack); /* NULL is fine */

/* The next bytes; *size is 0 at the end, which is reported only when nothing is missing. */
hpct_status hpct_unpack_read(hpct_unpack *unpack, const void **data, size_t *size);

/* Whether anything was compressed. */
bool hpct_unpack_was_packed(const hpct_unpack *unpack);

#endif
