/* Which ranks share which memory, and one rank's part of it. */
#include "agent/memory.h"

#include "base/status.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PROC "/proc"
#define CGROUPS "/sys/fs/cgroup"

/* What each rank tells the others. */
typedef struct record {
    char node[64];
    uint64_t ids[HPCT_MEMORY_LEVELS]; /* 0 behind the last */
} record;

/* Of this process, since it met the others. */
static struct {
    uint64_t id;
    int ranks;
} shared[HPCT_MEMORY_LEVELS];

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

hpct_status hpct_memory_meet_in(hpct_comm *comm, const char *node, const char *proc,
                                const char *cgroups)
{
    hpct_memory_level levels[HPCT_MEMORY_LEVELS];
    record mine = {0}, *all = malloc((size_t) comm->size * sizeof *all);
    if (all == NULL)
        return hpct_fail_memory((size_t) comm->size * sizeof *all);
    strncpy(mine.node, node, sizeof mine.node - 1);
    int num = hpct_memory_levels_in(proc, cgroups, levels);
    for (int i = 0; i < num; i++)
        mine.ids[i] = levels[i].id;
    hpct_status status = comm->ops->allgather(comm, &mine, all, sizeof mine);
    for (int i = 0; i < HPCT_MEMORY_LEVELS && status == HPCT_OK; i++) {
        shared[i].id = mine.ids[i];
        shared[i].ranks = count_sharers(all, comm->size, mine.node, mine.ids[i]);
    }
    free(all);
    return status;
}

hpct_status hpct_memory_meet(hpct_comm *comm, const char *node)
{
    return hpct_memory_meet_in(comm, node, PROC, CGROUPS);
}

static int sharers_of(uint64_t id)
{
    for (int i = 0; i < HPCT_MEMORY_LEVELS; i++) {
        if (shared[i].id == id && shared[i].ranks > 0)
            return shared[i].ranks;
    }
    return 1;
}

hpct_memory_share hpct_memory_share_in(const char *proc, const char *cgroups)
{
    hpct_memory_share share = {.bytes = SIZE_MAX, .whose = "machine", .ranks = 1};
    hpct_memory_level levels[HPCT_MEMORY_LEVELS];
    int num = hpct_memory_levels_in(proc, cgroups, levels);
    for (int i = 0; i < num; i++) {
        const hpct_memory_level *level = &levels[i];
        int ranks = sharers_of(level->id);
        size_t part = level->left / (size_t) ranks;
        part = part > level->taken ? part - level->taken : 0;
        if (part < share.bytes)
            share = (hpct_memory_share){part, level->whose, ranks};
    }
    return share;
}

hpct_memory_share hpct_memory_share_now(void)
{
    return hpct_memory_share_in(PROC, CGROUPS);
}
