/* spank/stage/arena.h - many short texts, kept until all of them go. */
#ifndef HPCT_STAGE_ARENA_H
#define HPCT_STAGE_ARENA_H

#include <stddef.h>

typedef struct hpct_arena hpct_arena;

hpct_arena *hpct_arena_new(void);        /* NULL when out of memory */
void hpct_arena_free(hpct_arena *arena); /* NULL is fine */

/* A copy of `size` bytes with a '\0' behind them; NULL when out of memory. */
const char *hpct_arena_keep(hpct_arena *arena, const char *text, size_t size);

#endif
