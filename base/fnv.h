/* base/fnv.h - FNV-1a (Fowler, Noll, Vo), for hashes that files keep: layouts and data of
 * checkpoints, tuned kernels. Other data: base/digest.h. */
#ifndef HPCT_BASE_FNV_H
#define HPCT_BASE_FNV_H

#include <stddef.h>
#include <stdint.h>

#define HPCT_FNV_START UINT64_C(0xcbf29ce484222325)

/* The hash of what `hash` is of, followed by `size` bytes. */
static inline uint64_t hpct_fnv(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
