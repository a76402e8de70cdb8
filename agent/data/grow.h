/* agent/data/grow.h - reading a stream whose header claims a size: memory is asked for as the bytes
 * come, so that a wrong header cannot ask for all of it. */
#ifndef HPCT_DATA_GROW_H
#define HPCT_DATA_GROW_H

#include <hpctrain/status.h>
#include <stddef.h>
#include <stdint.h>

/* Reads exactly `bytes` more bytes from `from`, or fails. */
typedef hpct_status hpct_read_function(void *from, void *out, size_t bytes);

/* *out: `bytes` bytes from `read`, malloc'd (never NULL on success); NULL on failure. */
hpct_status hpct_read_growing(uint8_t **out, size_t bytes, hpct_read_function *read, void *from);

#endif
