/* agent/comm/comm.h - what the ranks say to one another while they train: one table of collectives,
 * filled by one file per transport (self.c, mpi.c, tcp.c; for device memory nccl.c, and staged.c
 * over another). Offers the table and its makers; knows nothing of models, data or the watch. */
#ifndef HPCT_COMM_COMM_H
#define HPCT_COMM_COMM_H

#include "base/auth/proof.h"

#include <hpctrain/status.h>
#include <hpctrain/strategy.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct hpct_comm hpct_comm;

/* A sum over the ranks that is prepared once, at a fixed place, and then made many times while the
 * ranks compute. What is summed first goes to the rank that owns a slice, which adds up in the
 * order of ranks: the bits of the result are the same on all ranks, and do not depend on how an
 * array is cut into reductions. */
typedef struct hpct_reduction hpct_reduction;

typedef struct hpct_reduction_options {
    float *data;  /* [count + exact]; the caller's, and to stay until release */
    size_t count; /* may be 0 */
    size_t exact; /* few floats that travel as fp32 whatever `wire` says */
    hpct_wire wire;
    /* [size], the same on all ranks: ranks with the same number (of a node) add up among themselves
     * first, in fp32, and then, in `wire`, with the other groups (agent/comm/grid.h). NULL: each
     * rank is a group of its own. Read by prepare alone. */
    const int *groups;
} hpct_reduction_options;

/* Messages of floats from one rank to another, in order, through buffers that were prepared once: a
 * receiver has asked for as many as it has buffers ahead of time, and a sender may be as many
 * ahead. */
typedef struct hpct_stream hpct_stream;

#define HPCT_MAX_STREAM 32767

typedef struct hpct_stream_options {
    int peer;      /* the other rank */
    bool receives; /* else it sends */
    int number; /* 0 to HPCT_MAX_STREAM, the same at both ends; streams between the same two ranks
                   in the same direction have different ones */
    size_t floats; /* of the largest message */
    int buffers;   /* 1 or more */
} hpct_stream_options;

/* Every operation is collective, but those on streams: all ranks call it, in the same order, with
 * the same sizes. An error means that the group is broken (HPCT_ERR_PEER) and that only `close` may
 * follow. */
typedef struct hpct_comm_ops {
    const char *name; /* "self", "mpi", "tcp", "nccl", "staged" */
    bool of_hosts;    /* what is summed and sent is in the hosts' memory */

    /* data[count] becomes the element-wise sum over the ranks; all ranks get the same bits. */
    hpct_status (*allreduce_sum)(hpct_comm *comm, float *data, size_t count);

    /* data[bytes] of rank `root` replaces everybody's. */
    hpct_status (*broadcast)(hpct_comm *comm, void *data, size_t bytes, int root);

    /* all[size][bytes] receives each rank's mine[bytes], by rank. For small records. */
    hpct_status (*allgather)(hpct_comm *comm, const void *mine, void *all, size_t bytes);

    /* Makes a reduction ready, with all the memory that it takes; collective, and in the same order
     * on all ranks. Those that ended may be started again once all have. Several may be under way,
     * started in any order, also while other operations go on. They move in `progress`, which does
     * not wait and moves all of them, and in `wait`, which does until that one has ended. */
    hpct_status (*prepare)(hpct_comm *comm, hpct_reduction **out,
                           const hpct_reduction_options *options);
    hpct_status (*start)(hpct_reduction *reduction);
    hpct_status (*progress)(hpct_comm *comm);
    bool (*is_done)(const hpct_reduction *reduction); /* also when it was never started */
    hpct_status (*wait)(hpct_reduction *reduction);
    void (*release)(hpct_reduction *reduction); /* not under way, or the group is broken */

    /* One end of a stream; the peer opens the other. Calls on it are of this rank alone. */
    hpct_status (*open_stream)(hpct_comm *comm, hpct_stream **out,
                               const hpct_stream_options *options);
    /* A sender's next free buffer, a receiver's next message: *data, the same until `pass`. Waits
     * for it, without holding on to the processor for long. */
    hpct_status (*next)(hpct_stream *stream, float **data);
    /* What `next` gave goes: floats[count] to the peer, or (count being ignored) the buffer back,
     * to receive again. */
    hpct_status (*pass)(hpct_stream *stream, size_t count);
    /* What was sent moves on; does not wait. */
    hpct_status (*push)(hpct_stream *stream);
    /* Until all that was sent has left. */
    hpct_status (*drain)(hpct_stream *stream);
    void (*close_stream)(
        hpct_stream *stream); /* after drain, or the group is broken; allows NULL */

    /* The ranks that give the same color, in the order of their ranks here, as a group of their
     * own; to be closed before this one. Collective. */
    hpct_status (*split)(hpct_comm *comm, hpct_comm **out, int color);

    /* Leaves the group in order and frees it; collective. */
    void (*close)(hpct_comm *comm);

    /* Frees what can be freed when the others may be gone: waits for nobody. */
    void (*abandon)(hpct_comm *comm);
} hpct_comm_ops;

/* The part that every transport's own struct begins with. */
struct hpct_comm {
    const hpct_comm_ops *ops;
    int rank, size;
    bool records; /* reductions of a device's memory, and what else is summed there, can be recorded
                     with what it computes (hpct_device, record); all ranks record the same */
    const hpct_auth *auth; /* of the connections that are made beside it; NULL: they draw a key of
                              their own, which this group carries */
    bool sleeps; /* a rank that waits for a reduction takes no processor; known once one is prepared
                  */
};

/* The group of one. */
hpct_status hpct_comm_self_open(hpct_comm **out);

/* The group of ranks that the cluster's config and the step's key make, over connections of our
 * own. meeting->auth must live on. Which rank does not come, or cannot be reached, within the time
 * is named (HPCT_ERR_PEER). */
struct hpct_meeting;
hpct_status hpct_comm_tcp_open(hpct_comm **out, const struct hpct_meeting *meeting);

/* The group that MPI knows, which must be `rank` of `size`; HPCT_ERR_CONFIG, with the likely cause
 * (srun without --mpi=pmix), when it is not: MPI is left again then where *world, the number of
 * ranks that it sees, is another one. Initialises MPI; `meet`, unless it is NULL, is called then
 * and must return once every rank has come so far. */
hpct_status hpct_comm_mpi_open(hpct_comm **out, int rank, int size, int *world,
                               void (*meet)(void *argument), void *argument);

/* Whether whoever started this process has told MPI of other ranks, as far as its environment says:
 * without, MPI takes it for the only one. *why not, static storage. */
bool hpct_comm_mpi_is_told(const char **why);

/* Where this process runs: on which of how many nodes. Messages of reductions between nodes can
 * then go over connections of our own (agent/comm/mail.h), if hpct_fabric_choose says so, which are
 * made within so many seconds when the first reduction is prepared. */
typedef struct hpct_comm_mpi_place {
    int node, num_nodes, seconds;
} hpct_comm_mpi_place;
void hpct_comm_mpi_set_place(hpct_comm *comm, const hpct_comm_mpi_place *place);

/* Has the launcher kill all ranks of the step, also those that do not answer any more, and ends
 * this process with `status`; returns where MPI is not running. From any thread. */
void hpct_comm_mpi_end_step(int status);

/* Whether who is in PMIx before MPI begins must stay there: Open MPI 4 cannot begin where it was
 * left, and from 5 on finds no addresses of ranks whose values were got before, unless it was. */
bool hpct_comm_mpi_shares_pmix(void);

/* "Open MPI v4.1.4 …", the library's own words; static storage. */
const char *hpct_comm_mpi_version(void);

#endif
