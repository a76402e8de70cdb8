/* agent/comm/mpi_comm.h - what the files of the communicator over MPI share. They alone include it,
 * for they alone may include mpi.h. */
#ifndef HPCT_COMM_MPI_COMM_H
#define HPCT_COMM_MPI_COMM_H

#include "agent/comm/comm.h"
#include "agent/comm/grid.h"
#include "agent/comm/mail.h"

#include <mpi.h>

typedef struct mpi_comm {
    hpct_comm base;
    MPI_Comm group;
    MPI_Comm reductions;       /* messages of prepared reductions, which meet no others there */
    int tag;                   /* the next free one in that */
    hpct_reduction *under_way; /* a list */
    bool part;                 /* made by split: MPI itself is the whole group's */
    int streams;               /* open ones */
    hpct_comm_mpi_place place;
    hpct_mail *mail;   /* to ranks on other nodes; NULL: none is used, or was needed so far */
    bool without_mail; /* MPI is better */
} mpi_comm;

/* HPCT_ERR_PEER, naming the call, unless it is MPI_SUCCESS. */
hpct_status hpct_mpi_check(int code, const char *what);

/* The table's functions of mpi_reduction.c. */
hpct_status hpct_mpi_prepare(hpct_comm *comm, hpct_reduction **out,
                             const hpct_reduction_options *options);
hpct_status hpct_mpi_start(hpct_reduction *reduction);
hpct_status hpct_mpi_progress(hpct_comm *comm);
bool hpct_mpi_is_done(const hpct_reduction *reduction);
hpct_status hpct_mpi_wait(hpct_reduction *reduction);
void hpct_mpi_release(hpct_reduction *reduction);

/* Connects, once, to the ranks of the first grid that are on other nodes, where that is better than
 * MPI and they are not very many; collective. NULL: this rank has failed, and all fail. */
hpct_status hpct_mpi_open_mail(mpi_comm *mpi, const hpct_grid *grid);

/* Those of mpi_stream.c. */
hpct_status hpct_mpi_open_stream(hpct_comm *comm, hpct_stream **out,
                                 const hpct_stream_options *options);
hpct_status hpct_mpi_next(hpct_stream *stream, float **data);
hpct_status hpct_mpi_pass(hpct_stream *stream, size_t count);
hpct_status hpct_mpi_push(hpct_stream *stream);
hpct_status hpct_mpi_drain(hpct_stream *stream);
void hpct_mpi_close_stream(hpct_stream *stream);

#endif
