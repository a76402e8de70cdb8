/* Agreement on one status by a sum over the ranks. */
#include "agent/comm/agree.h"

#include "base/status.h"

hpct_status hpct_comm_agree(hpct_comm *comm, hpct_status status, const char *what)
{
    float failed = status != HPCT_OK;
    hpct_status met = comm->ops->allreduce_sum(comm, &failed, 1);
    if (met != HPCT_OK || status != HPCT_OK || failed == 0)
        return met != HPCT_OK ? met : status;
    return hpct_fail(HPCT_ERR_PEER, "%.0f other ranks could not %s", (double) failed, what);
}
