/* Connections for the letters of a communicator over MPI: selects the peers. */
#include "agent/comm/fabric.h"
#include "agent/comm/mpi_comm.h"
#include "base/status.h"

#include <stdlib.h>

#define MOST_PEERS 64 /* per rank; with more peers MPI is used, which connects on demand */

/* Marks the ranks of the grid on other nodes. */
static int mark_wanted(const hpct_comm_grid *grid, const int *places, int rank, bool *wanted)
{
    int num = 0;
    for (int i = 0; i < grid->num_members; i++)
        wanted[grid->members[i]] = places[grid->members[i]] != places[rank];
    for (int i = 0; grid->column != NULL && i < grid->num_groups; i++)
        wanted[grid->column[i]] = places[grid->column[i]] != places[rank];
    for (int i = 0; i < grid->num_members; i++)
        num += wanted[grid->members[i]];
    for (int i = 0; grid->column != NULL && i < grid->num_groups; i++)
        num += wanted[grid->column[i]];
    return num;
}

/* places, wanted: [size] each, allocated by the caller; NULL: out of memory. */
static hpct_status open_to(mpi_comm *mpi, const hpct_comm_grid *grid, int *places, bool *wanted)
{
    hpct_comm *comm = &mpi->host.base;
    int place = hpct_comm_fabric_tcp_everywhere() ? comm->rank : mpi->place.node;
    /* number of ranks that have failed, that want connections, or too many */
    float any[2] = {grid == NULL || places == NULL || wanted == NULL, 0};
    hpct_status status = comm->ops->allreduce_sum(comm, any, 1);
    if (status != HPCT_OK || any[0] > 0)
        return status != HPCT_OK ? status : hpct_fail_memory((size_t) comm->size * sizeof *places);
    HPCT_TRY(comm->ops->allgather(comm, &place, places, sizeof place));
    int num = mark_wanted(grid, places, comm->rank, wanted);
    any[0] = num > 0;
    any[1] = num > MOST_PEERS;
    status = comm->ops->allreduce_sum(comm, any, 2);
    mpi->host.without_mail = any[0] == 0;
    if (status == HPCT_OK && any[0] > 0 && any[1] == 0)
        status = hpct_comm_mail_open(&mpi->host.mail, comm, wanted, mpi->place.seconds);
    comm->sleeps = mpi->host.mail != NULL;
    return status;
}

hpct_status hpct_mpi_open_mail(hpct_comm_host_comm *host, const hpct_comm_grid *grid)
{
    mpi_comm *mpi = (mpi_comm *) host;
    size_t size = (size_t) mpi->host.base.size;
    bool own = false;
    if (mpi->host.mail != NULL || mpi->host.without_mail)
        return HPCT_OK;
    hpct_status status = hpct_comm_fabric_choose(&own, &mpi->host.base, mpi->place.num_nodes);
    mpi->host.without_mail = !own;
    if (status != HPCT_OK || !own)
        return status;
    int *places = calloc(size, sizeof *places);
    bool *wanted = calloc(size, sizeof *wanted);
    status = open_to(mpi, grid, places, wanted);
    free(places);
    free(wanted);
    return status == HPCT_ERR_PEER ? hpct_fail_within(status, "HPC_TRAIN_SUMS=mpi avoids this")
                                   : status;
}
