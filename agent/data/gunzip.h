/* agent/data/gunzip.h - a gzip file inflated at once, in less than half of the time that zlib's
 * streams take. For the usual file; whoever calls it reads all others as a stream. */
#ifndef HPCT_DATA_GUNZIP_H
#define HPCT_DATA_GUNZIP_H

#include <stddef.h>
#include <stdint.h>

/* The content of the file open at `fd`, from its beginning and without moving its offset: malloc'd,
 * *num bytes of it, its checksum compared. NULL when it is not a regular file with one whole gzip
 * member of less than 4 GiB and nothing after it, when memory is short, and in a build without
 * libdeflate. Asks for no more memory than a file of that length can inflate to. */
uint8_t *hpct_gunzip(int fd, size_t *num);

#endif
