/* A list of large chunks; the first is being filled. */
#include "spank/stage/tree/arena.h"

#include <stdlib.h>
#include <string.h>

#define PIECE 65536

typedef struct piece {
    struct piece *next;
    size_t used, room;
    char text[];
} piece;

struct hpct_stage_arena {
    piece *first;
};

hpct_stage_arena *hpct_stage_arena_new(void)
{
    return calloc(1, sizeof(hpct_stage_arena));
}

void hpct_stage_arena_free(hpct_stage_arena *arena)
{
    if (arena == NULL)
        return;
    while (arena->first != NULL) {
        piece *next = arena->first->next;
        free(arena->first);
        arena->first = next;
    }
    free(arena);
}

const char *hpct_stage_arena_keep(hpct_stage_arena *arena, const char *text, size_t size)
{
    piece *p = arena->first;
    if (p == NULL || p->room - p->used <= size) {
        size_t room = size < PIECE / 2 ? PIECE : size + 1;
        p = malloc(sizeof *p + room);
        if (p == NULL)
            return NULL;
        *p = (piece){.next = arena->first, .room = room};
        arena->first = p;
    }
    char *kept = p->text + p->used;
    memcpy(kept, text, size);
    kept[size] = '\0';
    p->used += size + 1;
    return kept;
}
