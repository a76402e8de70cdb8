#include "agent/rank/largest.h"

#include "agent/rank/context.h"
#include "base/status.h"

#include <math.h>
#include <stdlib.h>

hpct_status hpct_rank_largest(hpct_context *context, double *values, int count)
{
    hpct_comm *comm = hpct_context_comm(context);
    size_t bytes = (size_t) count * sizeof *values;
    hpct_status status;
    double *all = hpct_context_allocate(context, (size_t) comm->size * bytes, &status);
    if (status == HPCT_OK)
        status = comm->ops->allgather(comm, values, all, bytes);
    for (int i = 0; status == HPCT_OK && i < comm->size * count; i++) {
        double *value = &values[i % count];
        if (isnan(all[i]) || all[i] > *value)
            *value = all[i];
    }
    free(all);
    return status;
}
