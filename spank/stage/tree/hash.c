/* XXH3 by blocks. Independent of files. */
#include <config.h>

#include "spank/stage/tree/hash.h"

#include <stdlib.h>
#include <string.h>
#define XXH_STATIC_LINKING_ONLY /* for the size of XXH3_state_t */
#include <xxhash.h>
#ifdef HAVE_XXH_DISPATCH
#include <xxh_x86dispatch.h> /* picks AVX2 or AVX512 at run time */
#endif

#define ZEROS 65536

struct hpct_stage_hasher {
    XXH3_state_t block;      /* the block being filled */
    XXH3_state_t file;       /* of the hashes of the previous blocks */
    uint64_t filled, blocks; /* bytes in the current block */
    uint64_t zeros;          /* leading zero bytes of the block, not hashed yet */
};

hpct_stage_hasher *hpct_stage_hasher_new(void)
{
    hpct_stage_hasher *hasher = NULL;
    if (posix_memalign((void **) &hasher, 64, sizeof *hasher) != 0)
        return NULL;
    memset(hasher, 0, sizeof *hasher);
    hpct_stage_hasher_reset(hasher);
    return hasher;
}

void hpct_stage_hasher_free(hpct_stage_hasher *hasher)
{
    free(hasher);
}

void hpct_stage_hasher_reset(hpct_stage_hasher *hasher)
{
    XXH3_64bits_reset(&hasher->block);
    XXH3_64bits_reset(&hasher->file);
    hasher->filled = hasher->blocks = hasher->zeros = 0;
}

static void add_hash(XXH3_state_t *file, uint64_t hash)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char) (hash >> (8 * i));
    XXH3_64bits_update(file, bytes, sizeof bytes);
}

static void feed_zeros(XXH3_state_t *state, uint64_t size)
{
    static const char zeros[ZEROS];
    for (uint64_t part; size > 0; size -= part) {
        part = size < ZEROS ? size : ZEROS;
        XXH3_64bits_update(state, zeros, (size_t) part);
    }
}

static uint64_t hash_of_zero_block(void)
{
    static _Thread_local uint64_t known;
    if (known == 0) {
        XXH3_state_t state;
        XXH3_64bits_reset(&state);
        feed_zeros(&state, HPCT_STAGE_HASH_BLOCK);
        known = XXH3_64bits_digest(&state);
    }
    return known;
}

/* The hash of a block of zeros is computed once, so that a terabyte of holes takes no time. */
static uint64_t end_block(hpct_stage_hasher *hasher)
{
    if (hasher->zeros == HPCT_STAGE_HASH_BLOCK)
        return hash_of_zero_block();
    feed_zeros(&hasher->block, hasher->zeros);
    hasher->zeros = 0;
    return XXH3_64bits_digest(&hasher->block);
}

static void close_block(hpct_stage_hasher *hasher)
{
    add_hash(&hasher->file, end_block(hasher));
    XXH3_64bits_reset(&hasher->block);
    hasher->blocks++;
    hasher->filled = hasher->zeros = 0;
}

void hpct_stage_hasher_add(hpct_stage_hasher *hasher, const void *data, uint64_t size)
{
    const char *p = data;
    while (size > 0) {
        /* A full block is closed only when more data follows: a single block's hash is the
         * file's. */
        if (hasher->filled == HPCT_STAGE_HASH_BLOCK)
            close_block(hasher);
        uint64_t room = HPCT_STAGE_HASH_BLOCK - hasher->filled, part = size < room ? size : room;
        if (p == NULL && hasher->zeros == hasher->filled) {
            hasher->zeros += part;
        } else {
            feed_zeros(&hasher->block, hasher->zeros);
            hasher->zeros = 0;
            if (p == NULL)
                feed_zeros(&hasher->block, part);
            else
                XXH3_64bits_update(&hasher->block, p, (size_t) part);
        }
        hasher->filled += part;
        size -= part;
        if (p != NULL)
            p += part;
    }
}

uint64_t hpct_stage_hasher_end(hpct_stage_hasher *hasher)
{
    uint64_t last = end_block(hasher);
    if (hasher->blocks == 0)
        return last;
    add_hash(&hasher->file, last);
    return XXH3_64bits_digest(&hasher->file);
}

uint64_t hpct_stage_hash(const void *data, size_t size)
{
    if (size <= HPCT_STAGE_HASH_BLOCK)
        return XXH3_64bits(data, size);
    hpct_stage_hasher hasher;
    hpct_stage_hasher_reset(&hasher);
    hpct_stage_hasher_add(&hasher, data, size);
    return hpct_stage_hasher_end(&hasher);
}

uint64_t hpct_stage_hash_blocks(const uint64_t *hashes, uint64_t count)
{
    XXH3_state_t state;
    if (count == 1)
        return hashes[0];
    XXH3_64bits_reset(&state);
    for (uint64_t i = 0; i < count; i++)
        add_hash(&state, hashes[i]);
    return XXH3_64bits_digest(&state);
}
