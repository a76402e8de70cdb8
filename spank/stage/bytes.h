/* spank/stage/bytes.h - sizes in bytes, as people write and read them. */
#ifndef HPCT_STAGE_BYTES_H
#define HPCT_STAGE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "1048576", "500M", "2T" (K, M, G, T: powers of 1024); false when it is not of that form. */
bool hpct_bytes_parse(const char *text, uint64_t *bytes);

/* "999 B", "1.5 MB", "130 GB" (powers of 1000, as disks are sold); returns `text`. */
const char *hpct_bytes_show(uint64_t bytes, char *text, size_t size);

#endif
