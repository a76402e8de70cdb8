/* agent/data/grow.h - reading a stream whose header claims a size: memory grows with the bytes
 * read, so that a wrong header cannot allocate all of it. */
#ifndef HPCT_AGENT_DATA_GROW_H
#define HPCT_AGENT_DATA_GROW_H

#include <hpctrain/status.h>
#include <stddef.h>
#include <stdint.h>

/* Reads exactly `bytes` more bytes from `from`, or fails. */
typedef hpct_status hpct_data_read_function(void *from, void *out, size_t bytes);

/* Reads `bytes` bytes with `read` to *out, malloc'd (never NULL on success); NULL on error. */
hpct_status hpct_data_read_growing(uint8_t **out, size_t bytes, hpct_data_read_function *read,
                                   void *from);

#endif
