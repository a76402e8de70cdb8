/* agent/comm/mpi_comm.h - shared by the files of the MPI communicator, the only ones that include
 * mpi.h. */
#ifndef HPCT_AGENT_COMM_MPI_COMM_H
#define HPCT_AGENT_COMM_MPI_COMM_H

#include "agent/comm/reduction.h"

#include <mpi.h>

typedef struct mpi_comm {
    hpct_comm_host_comm host; /* host.mail: to ranks on other nodes */
    MPI_Comm group;
    MPI_Comm reductions; /* messages of prepared reductions, separate from others */
    bool part;           /* made by split: MPI is finalized with the whole group */
    int streams;         /* number of open ones */
    hpct_comm_mpi_place place;
} mpi_comm;

/* HPCT_ERR_PEER, naming the call, unless it is MPI_SUCCESS. */
hpct_status hpct_mpi_check(int code, const char *what);

/* Letters between nodes without a fast fabric, where MPI's TCP transport copies once more, polls in
 * small reads and spins; otherwise MPI's persistent requests. */
extern const hpct_comm_carrier hpct_mpi_carrier;

/* Connects once to the ranks of the first grid on other nodes, if that is better than MPI and they
 * are not too many; collective. NULL: this rank has failed, and all fail. */
hpct_status hpct_mpi_open_mail(hpct_comm_host_comm *host, const hpct_comm_grid *grid);

/* Functions of mpi_stream.c. */
hpct_status hpct_mpi_open_stream(hpct_comm *comm, hpct_comm_stream **out,
                                 const hpct_comm_stream_options *options);
hpct_status hpct_mpi_next(hpct_comm_stream *stream, float **data);
hpct_status hpct_mpi_pass(hpct_comm_stream *stream, size_t count);
hpct_status hpct_mpi_push(hpct_comm_stream *stream);
hpct_status hpct_mpi_drain(hpct_comm_stream *stream);
void hpct_mpi_close_stream(hpct_comm_stream *stream);

#endif
