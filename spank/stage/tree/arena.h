/* spank/stage/tree/arena.h - arena of short strings, freed together. */
#ifndef HPCT_SPANK_STAGE_TREE_ARENA_H
#define HPCT_SPANK_STAGE_TREE_ARENA_H

#include <stddef.h>

typedef struct hpct_arena hpct_arena;

hpct_arena *hpct_arena_new(void);        /* NULL when out of memory */
void hpct_arena_free(hpct_arena *arena); /* NULL is allowed */

/* Copies `size` bytes and appends '\0'; NULL if out of memory. */
const char *hpct_arena_keep(hpct_arena *arena, const char *text, size_t size);

#endif
