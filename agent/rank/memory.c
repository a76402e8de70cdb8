/* Finds the ranks that share each memory limit. */
#include "agent/rank/memory.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* All-gathered by the ranks. */
typedef struct record {
    char node[64];
    uint64_t ids[HPCT_MEMORY_LEVELS]; /* 0 after the last */
} record;

static int count_sharers(const record *all, int size, const char *node, uint64_t id)
{
    int ranks = 0;
    for (int rank = 0; rank < size && id != 0; rank++) {
        bool has = false;
        for (int i = 0; i < HPCT_MEMORY_LEVELS; i++)
            has |= all[rank].ids[i] == id;
        ranks += has && strncmp(all[rank].node, node, sizeof all[rank].node) == 0;
    }
    return ranks;
}

hpct_status hpct_rank_memory_meet_in(hpct_comm *comm, const char *node, const char *proc,
                                     const char *cgroups)
{
    hpct_memory_level levels[HPCT_MEMORY_LEVELS];
    record mine = {0}, *all = malloc((size_t) comm->size * sizeof *all);
    if (all == NULL)
        return hpct_fail_memory((size_t) comm->size * sizeof *all);
    strncpy(mine.node, node, sizeof mine.node - 1);
    int ranks[HPCT_MEMORY_LEVELS], num = hpct_memory_levels_in(proc, cgroups, levels);
    for (int i = 0; i < num; i++)
        mine.ids[i] = levels[i].id;
    hpct_status status = comm->ops->allgather(comm, &mine, all, sizeof mine);
    for (int i = 0; i < HPCT_MEMORY_LEVELS && status == HPCT_OK; i++)
        ranks[i] = count_sharers(all, comm->size, mine.node, mine.ids[i]);
    if (status == HPCT_OK)
        hpct_memory_set_sharers(mine.ids, ranks);
    free(all);
    return status;
}

hpct_status hpct_rank_memory_meet(hpct_comm *comm, const char *node)
{
    return hpct_rank_memory_meet_in(comm, node, HPCT_PROC, HPCT_CGROUPS);
}
