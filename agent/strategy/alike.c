#include "agent/strategy/alike.h"

#include "agent/rank/context.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

typedef struct layout_record {
    uint64_t layout;
    char node[64];
} layout_record;

/* *differs: the first rank whose layout differs from that of *other, the first rank of its class,
 * or that itself has several layouts; -1 if there is none. records: [ranks] */
static hpct_status compare(hpct_context *context, const hpct_strategy_alike *how, uint64_t layout,
                           layout_record *records, int *differs, int *other)
{
    hpct_comm *comm = hpct_context_comm(context);
    layout_record mine = {.layout = layout};
    strncpy(mine.node, hpct_context_node(context), sizeof mine.node - 1);
    hpct_status status = comm->ops->allgather(comm, &mine, records, sizeof mine);
    *differs = -1;
    for (int rank = 0; status == HPCT_OK && *differs < 0 && rank < comm->size; rank++) {
        *other = rank % how->classes;
        if (records[rank].layout == 0 || records[rank].layout != records[*other].layout)
            *differs = rank;
    }
    return status;
}

hpct_status hpct_strategy_build_alike(hpct_context *context, const hpct_strategy_alike *how)
{
    size_t bytes = (size_t) hpct_context_size(context) * sizeof(layout_record);
    int differs = 0, other = 0;
    hpct_status status;
    layout_record *records = hpct_context_allocate(context, bytes, &status);
    for (int plain = 0; plain < 2 && status == HPCT_OK && differs >= 0; plain++) {
        uint64_t layout = 0;
        status = hpct_context_agree(context, how->build(how->argument, plain == 1, &layout));
        if (status == HPCT_OK)
            status = compare(context, how, layout, records, &differs, &other);
    }
    if (status == HPCT_OK && differs >= 0)
        status =
            hpct_fail(HPCT_ERR_CONFIG,
                      "rank %d (%s) and rank %d (%s) do not have the same model: they must run "
                      "the same program with the same options and the same version of "
                      "hpc-train",
                      differs, records[differs].node, other, records[other].node);
    free(records);
    return status;
}
