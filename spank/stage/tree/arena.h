/* spank/stage/tree/arena.h - arena of short strings, freed together. */
#ifndef HPCT_SPANK_STAGE_TREE_ARENA_H
#define HPCT_SPANK_STAGE_TREE_ARENA_H

#include <stddef.h>

typedef struct hpct_stage_arena hpct_stage_arena;

hpct_stage_arena *hpct_stage_arena_new(void);        /* NULL when out of memory */
void hpct_stage_arena_free(hpct_stage_arena *arena); /* NULL is allowed */

/* Copies `size` bytes and appends '\0'; NULL if out of memory. */
const char *hpct_stage_arena_keep(hpct_stage_arena *arena, const char *text, size_t size);

#endif
