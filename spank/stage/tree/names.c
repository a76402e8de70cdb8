/* Hash table of fixed size with open addressing, at most half full. 0 marks a free slot. */
#include <config.h>

#include "spank/stage/tree/names.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "spank/stage/tree/hash.h"

#define PLACES 32768u

struct hpct_names {
    uint64_t places[PLACES];
    size_t count;
};

hpct_names *hpct_names_new(void)
{
    return calloc(1, sizeof(hpct_names));
}

void hpct_names_drop(hpct_names *names)
{
    free(names);
}

static uint64_t hash_of(const char *name)
{
    uint64_t hash = hpct_hash(name, strlen(name));
    return hash == 0 ? 1 : hash;
}

/* Index of the hash, or of the free slot for it. */
static size_t find(const hpct_names *names, uint64_t hash)
{
    size_t at = hash % PLACES;
    while (names->places[at] != 0 && names->places[at] != hash)
        at = (at + 1) % PLACES;
    return at;
}

bool hpct_names_add(hpct_names *names, const char *name)
{
    const uint64_t hash = hash_of(name);
    uint64_t *place = &names->places[find(names, hash)];
    if (*place == hash)
        return true;
    if (names->count == PLACES / 2)
        return false;
    *place = hash;
    names->count++;
    return true;
}

bool hpct_names_has(const hpct_names *names, const char *name)
{
    return names->count > 0 && names->places[find(names, hash_of(name))] != 0;
}

void hpct_names_clear(hpct_names *names)
{
    memset(names, 0, sizeof *names);
}
