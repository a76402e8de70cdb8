/* spank/stage/tree/hash.h - hash of a file's content.
 *
 * Up to HPCT_STAGE_HASH_BLOCK bytes: XXH3 (64 bits, no seed) of the content; larger: XXH3 of the
 * little-endian hashes of its blocks of HPCT_STAGE_HASH_BLOCK bytes, so that blocks can be hashed
 * in parallel. Holes count as zeros. Detects errors, not forgery. */
#ifndef HPCT_SPANK_STAGE_TREE_HASH_H
#define HPCT_SPANK_STAGE_TREE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HPCT_STAGE_HASH_BLOCK (UINT64_C(16) << 20)

typedef struct hpct_stage_hasher hpct_stage_hasher;

/* NULL when out of memory. */
hpct_stage_hasher *hpct_stage_hasher_new(void);
void hpct_stage_hasher_free(hpct_stage_hasher *hasher); /* NULL is allowed */

/* Starts a new file. */
void hpct_stage_hasher_reset(hpct_stage_hasher *hasher);

/* Adds the next bytes; NULL data stands for zeros (a hole). */
void hpct_stage_hasher_add(hpct_stage_hasher *hasher, const void *data, uint64_t size);

/* Hash of the bytes added since the reset. */
uint64_t hpct_stage_hasher_end(hpct_stage_hasher *hasher);

/* Hash of a file in memory. */
uint64_t hpct_stage_hash(const void *data, size_t size);

/* Hash of a file from its blocks' hashes; one block's hash is the file's. */
uint64_t hpct_stage_hash_blocks(const uint64_t *hashes, uint64_t count);

/* Number of blocks of a file: at least one. */
static inline uint64_t hpct_stage_hash_count(uint64_t size)
{
    return size <= HPCT_STAGE_HASH_BLOCK
               ? 1
               : (size + HPCT_STAGE_HASH_BLOCK - 1) / HPCT_STAGE_HASH_BLOCK;
}

#endif
