/* spank/stage/hash.h - the hash that stands for a file's content.
 *
 * A file of up to HPCT_HASH_BLOCK bytes has the XXH3 (64 bits, no seed) of its content; a larger
 * one has the XXH3 of the little-endian hashes of its blocks, each HPCT_HASH_BLOCK bytes but for
 * the last, so that several blocks can be hashed at once. A hole counts as the zeros that it is
 * read as. It finds errors, not forgeries: who can choose the data can choose its hash. */
#ifndef HPCT_STAGE_HASH_H
#define HPCT_STAGE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HPCT_HASH_BLOCK (UINT64_C(16) << 20)

typedef struct hpct_hasher hpct_hasher;

/* NULL when out of memory. */
hpct_hasher *hpct_hasher_new(void);
void hpct_hasher_free(hpct_hasher *hasher); /* NULL is fine */

/* Begins a new file. */
void hpct_hasher_reset(hpct_hasher *hasher);

/* The file's next bytes; NULL data stands for zeros (a hole, which costs little). */
void hpct_hasher_add(hpct_hasher *hasher, const void *data, uint64_t size);

/* The hash of what was added since the reset. */
uint64_t hpct_hasher_end(hpct_hasher *hasher);

/* The hash of a file that is in memory as a whole. */
uint64_t hpct_hash(const void *data, size_t size);

/* The hash of a file from those of its blocks: one block's hash is the file's. */
uint64_t hpct_hash_blocks(const uint64_t *hashes, uint64_t count);

/* How many blocks a file of this size has: at least one. */
static inline uint64_t hpct_hash_count(uint64_t size)
{
    return size <= HPCT_HASH_BLOCK ? 1 : (size + HPCT_HASH_BLOCK - 1) / HPCT_HASH_BLOCK;
}

#endif
