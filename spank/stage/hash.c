/* XXH3 by blocks. Knows no files. */
#include <config.h>

#include "spank/stage/hash.h"

#include <stdlib.h>
#include <string.h>
#define XXH_STATIC_LINKING_ONLY /* the state's size */
#include <xxhash.h>
#ifdef HAVE_XXH_DISPATCH
#include <xxh_x86dispatch.h> /* picks AVX2 or AVX512 at run time */
#endif

#define ZEROS 65536

struct hpct_hasher {
    XXH3_state_t block; /* the block being filled */
    XXH3_state_t file;  /* of the blocks before it */
    uint64_t filled, blocks;
};

hpct_hasher *hpct_hasher_new(void)
{
    hpct_hasher *hasher = NULL;
    if (posix_memalign((void **) &hasher, 64, sizeof *hasher) != 0)
        return NULL;
    memset(hasher, 0, sizeof *hasher);
    hpct_hasher_reset(hasher);
    return hasher;
}

void hpct_hasher_free(hpct_hasher *hasher)
{
    free(hasher);
}

void hpct_hasher_reset(hpct_hasher *hasher)
{
    XXH3_64bits_reset(&hasher->block);
    XXH3_64bits_reset(&hasher->file);
    hasher->filled = hasher->blocks = 0;
}

static void add_hash(XXH3_state_t *file, uint64_t hash)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char) (hash >> (8 * i));
    XXH3_64bits_update(file, bytes, sizeof bytes);
}

/* A block is closed only when more comes: the last one may be all of the file. */
static void close_block(hpct_hasher *hasher)
{
    add_hash(&hasher->file, XXH3_64bits_digest(&hasher->block));
    XXH3_64bits_reset(&hasher->block);
    hasher->blocks++;
    hasher->filled = 0;
}

static uint64_t hash_of_zeros(void)
{
    static const char zeros[ZEROS];
    static _Thread_local uint64_t known;
    if (known == 0) {
        XXH3_state_t state;
        XXH3_64bits_reset(&state);
        for (uint64_t at = 0; at < HPCT_HASH_BLOCK; at += ZEROS)
            XXH3_64bits_update(&state, zeros, ZEROS);
        known = XXH3_64bits_digest(&state);
    }
    return known;
}

static void add_zeros(hpct_hasher *hasher, uint64_t size)
{
    static const char zeros[ZEROS];
    while (size > 0) {
        uint64_t part = size < ZEROS ? size : ZEROS;
        /* A whole block of zeros with more behind it: its hash is known. */
        if (hasher->filled == 0 && size > HPCT_HASH_BLOCK) {
            add_hash(&hasher->file, hash_of_zeros());
            hasher->blocks++;
            size -= HPCT_HASH_BLOCK;
            continue;
        }
        hpct_hasher_add(hasher, zeros, part);
        size -= part;
        if (hasher->filled == HPCT_HASH_BLOCK && size > 0)
            close_block(hasher);
    }
}

void hpct_hasher_add(hpct_hasher *hasher, const void *data, uint64_t size)
{
    const char *p = data;
    if (size > 0 && hasher->filled == HPCT_HASH_BLOCK)
        close_block(hasher);
    if (p == NULL) {
        add_zeros(hasher, size);
        return;
    }
    while (size > 0) {
        uint64_t room = HPCT_HASH_BLOCK - hasher->filled, part = size < room ? size : room;
        XXH3_64bits_update(&hasher->block, p, (size_t) part);
        hasher->filled += part;
        p += part;
        size -= part;
        if (size > 0)
            close_block(hasher);
    }
}

uint64_t hpct_hasher_end(hpct_hasher *hasher)
{
    uint64_t last = XXH3_64bits_digest(&hasher->block);
    if (hasher->blocks == 0)
        return last;
    add_hash(&hasher->file, last);
    return XXH3_64bits_digest(&hasher->file);
}

uint64_t hpct_hash(const void *data, size_t size)
{
    if (size <= HPCT_HASH_BLOCK)
        return XXH3_64bits(data, size);
    hpct_hasher hasher;
    hpct_hasher_reset(&hasher);
    hpct_hasher_add(&hasher, data, size);
    return hpct_hasher_end(&hasher);
}

uint64_t hpct_hash_blocks(const uint64_t *hashes, uint64_t count)
{
    XXH3_state_t state;
    if (count == 1)
        return hashes[0];
    XXH3_64bits_reset(&state);
    for (uint64_t i = 0; i < count; i++)
        add_hash(&state, hashes[i]);
    return XXH3_64bits_digest(&state);
}
