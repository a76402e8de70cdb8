/* The connections for letters of a communicator over MPI: to whom there are any. */
#include "agent/comm/fabric.h"
#include "agent/comm/mpi_comm.h"
#include "base/status.h"

#include <stdlib.h>

hpct_status hpct_mpi_open_mail(mpi_comm *mpi)
{
    size_t size = (size_t) mpi->base.size;
    bool own = false, any = false;
    int place = hpct_fabric_tcp_everywhere() ? mpi->base.rank : mpi->place.node;
    if (mpi->mail_asked)
        return HPCT_OK;
    mpi->mail_asked = true;
    int *places = calloc(size, sizeof *places);
    bool *wanted = calloc(size, sizeof *wanted);
    hpct_status status = hpct_fabric_choose(&own, &mpi->base, mpi->place.num_nodes);
    float missing = places == NULL || wanted == NULL;
    if (status == HPCT_OK && own)
        status = mpi->base.ops->allreduce_sum(&mpi->base, &missing, 1);
    if (status == HPCT_OK && own && missing > 0)
        status = hpct_fail_memory(size * sizeof *places);
    if (status == HPCT_OK && own)
        status = mpi->base.ops->allgather(&mpi->base, &place, places, sizeof place);
    for (size_t rank = 0; rank < size && status == HPCT_OK && own; rank++) {
        wanted[rank] = places[rank] != place;
        any = any || places[rank] != places[0];
    }
    if (status == HPCT_OK && any)
        status = hpct_mail_open(&mpi->mail, &mpi->base, wanted, mpi->place.seconds);
    free(places);
    free(wanted);
    return status == HPCT_ERR_PEER ? hpct_fail_within(status, "HPC_TRAIN_SUMS=mpi avoids this")
                                   : status;
}

hpct_status hpct_mpi_meet(mpi_comm *mpi, hpct_status status)
{
    float failed = status != HPCT_OK;
    hpct_status met = mpi->base.ops->allreduce_sum(&mpi->base, &failed, 1);
    if (met != HPCT_OK || status != HPCT_OK || failed == 0)
        return met != HPCT_OK ? met : status;
    return hpct_fail(HPCT_ERR_PEER, "%.0f other ranks could not prepare a sum", (double) failed);
}
