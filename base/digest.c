/* XXH3, with the instructions that the processor has. Independent of files. */
#include <config.h>

#include "base/digest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_STATIC_LINKING_ONLY /* for the size of XXH3_state_t */
#include <xxhash.h>
#ifdef HAVE_XXH_DISPATCH
#include <xxh_x86dispatch.h>
#endif

struct hpct_digest {
    XXH3_state_t state;
};

hpct_digest *hpct_digest_new(void)
{
    hpct_digest *digest = NULL;
    if (posix_memalign((void **) &digest, 64, sizeof *digest) != 0)
        return NULL;
    memset(digest, 0, sizeof *digest);
    XXH3_128bits_reset(&digest->state);
    return digest;
}

void hpct_digest_free(hpct_digest *digest)
{
    free(digest);
}

void hpct_digest_add(hpct_digest *digest, const void *data, size_t bytes)
{
    if (bytes > 0)
        XXH3_128bits_update(&digest->state, data, bytes);
}

void hpct_digest_end(const hpct_digest *digest, uint64_t hash[2])
{
    XXH128_hash_t value = XXH3_128bits_digest(&digest->state);
    hash[0] = value.high64;
    hash[1] = value.low64;
}

uint64_t hpct_digest_64(const void *data, size_t bytes)
{
    return XXH3_64bits(data, bytes);
}

void hpct_digest_of(const void *data, size_t bytes, uint64_t hash[2])
{
    XXH128_hash_t value = XXH3_128bits(data, bytes);
    hash[0] = value.high64;
    hash[1] = value.low64;
}

void hpct_digest_format(const uint64_t hash[2], char text[HPCT_DIGEST_TEXT])
{
    snprintf(text, HPCT_DIGEST_TEXT, "%016" PRIx64 "%016" PRIx64, hash[0], hash[1]);
}

bool hpct_digest_parse(const char *text, uint64_t hash[2])
{
    if (text == NULL || strlen(text) != HPCT_DIGEST_TEXT - 1 ||
        strspn(text, "0123456789abcdef") != HPCT_DIGEST_TEXT - 1)
        return false;
    char high[17];
    snprintf(high, sizeof high, "%.16s", text);
    hash[0] = strtoull(high, NULL, 16);
    hash[1] = strtoull(text + 16, NULL, 16);
    return true;
}
