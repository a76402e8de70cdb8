/* agent/data/gunzip.h - inflates a gzip file at once, in less than half of the time of zlib's
 * streams. For common files; the caller reads all others as a stream. */
#ifndef HPCT_AGENT_DATA_GUNZIP_H
#define HPCT_AGENT_DATA_GUNZIP_H

#include <stddef.h>
#include <stdint.h>

/* Content of the file open at `fd`, from its beginning and without moving its offset: malloc'd,
 * *num bytes, checksum verified. NULL if it is not a regular file with one complete gzip member of
 * less than 4 GiB and nothing after it, if memory is short, and in a build without libdeflate.
 * Allocates no more memory than a file of that length can inflate to. */
uint8_t *hpct_data_gunzip(int fd, size_t *num);

#endif
