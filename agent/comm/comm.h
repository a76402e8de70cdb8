/* agent/comm/comm.h - communication between ranks: one table of collectives, one file per transport
 * (self.c, mpi.c, tcp.c; for device memory nccl.c, and staged.c on top of another). Independent of
 * models, data and heartbeats. */
#ifndef HPCT_AGENT_COMM_COMM_H
#define HPCT_AGENT_COMM_COMM_H

#include "base/auth/proof.h"

#include <hpctrain/status.h>
#include <hpctrain/strategy.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct hpct_comm hpct_comm;

/* A persistent reduction: prepared once for a fixed buffer, started many times, progressing while
 * the ranks compute. Each slice is summed by its owner in rank order: the bits are the same on all
 * ranks and do not depend on how an array is cut into reductions. */
typedef struct hpct_comm_reduction hpct_comm_reduction;

typedef struct hpct_comm_reduction_options {
    float *data;  /* [count + exact]; owned by the caller, valid until release */
    size_t count; /* may be 0 */
    size_t exact; /* floats sent as fp32 whatever `wire` is */
    hpct_wire wire;
    /* [size], equal on all ranks: ranks with the same number (of a node) are summed first, in fp32,
     * then the groups in `wire` (agent/comm/grid.h). NULL: each rank is a group. Read by prepare
     * only. */
    const int *groups;
} hpct_comm_reduction_options;

/* A stream: ordered messages of floats between two ranks through preallocated buffers; receives are
 * posted in advance for all buffers, and a sender may have as many messages in flight. */
typedef struct hpct_comm_stream hpct_comm_stream;

#define HPCT_COMM_MAX_STREAM 32767

typedef struct hpct_comm_stream_options {
    int peer;      /* the other rank */
    bool receives; /* false: it sends */
    int number;    /* 0 to HPCT_COMM_MAX_STREAM, equal at both ends; unique between two ranks and
                    * direction
                    */
    size_t floats; /* of the largest message */
    int buffers;   /* 1 or more */
} hpct_comm_stream_options;

/* All operations except those on streams are collective: called by all ranks in the same order with
 * the same sizes. After an error the group is broken (HPCT_ERR_PEER) and only `close` is allowed.
 */
typedef struct hpct_comm_ops {
    const char *name; /* "self", "mpi", "tcp", "nccl", "staged" */
    bool of_hosts;    /* works on host memory */

    /* data[count] becomes the element-wise sum over the ranks; same bits on all ranks. */
    hpct_status (*allreduce_sum)(hpct_comm *comm, float *data, size_t count);

    /* Broadcasts data[bytes] of rank `root`. */
    hpct_status (*broadcast)(hpct_comm *comm, void *data, size_t bytes, int root);

    /* all[size][bytes] receives mine[bytes] of each rank, by rank. For small data. */
    hpct_status (*allgather)(hpct_comm *comm, const void *mine, void *all, size_t bytes);

    /* Prepares a reduction with all its memory; collective, in the same order on all ranks. A
     * completed one may be started again once all are complete. Several may be in flight, started
     * in any order, also during other operations. They progress in `progress`, which does not
     * block, and in `wait`, which blocks until that one is complete. */
    hpct_status (*prepare)(hpct_comm *comm, hpct_comm_reduction **out,
                           const hpct_comm_reduction_options *options);
    hpct_status (*start)(hpct_comm_reduction *reduction);
    hpct_status (*progress)(hpct_comm *comm);
    bool (*is_done)(const hpct_comm_reduction *reduction); /* also if never started */
    hpct_status (*wait)(hpct_comm_reduction *reduction);
    void (*release)(hpct_comm_reduction *reduction); /* not in flight, or the group has failed */

    /* One end of a stream; the peer opens the other. Local calls. */
    hpct_status (*open_stream)(hpct_comm *comm, hpct_comm_stream **out,
                               const hpct_comm_stream_options *options);
    /* A sender's next free buffer, a receiver's next message: *data, valid until `pass`. Blocks
     * without spinning for long. */
    hpct_status (*next)(hpct_comm_stream *stream, float **data);
    /* Sends floats[count] of that buffer; a receiver ignores count and reposts the receive. */
    hpct_status (*pass)(hpct_comm_stream *stream, size_t count);
    /* Progresses sends without blocking. */
    hpct_status (*push)(hpct_comm_stream *stream);
    /* Waits until all messages have been sent. */
    hpct_status (*drain)(hpct_comm_stream *stream);
    void (*close_stream)(
        hpct_comm_stream *stream); /* after drain, or if the group has failed; NULL is allowed */

    /* Creates a group of the ranks with the same color, in rank order; closed before this one.
     * Collective. */
    hpct_status (*split)(hpct_comm *comm, hpct_comm **out, int color);

    /* Closes the group in order and frees it; collective. */
    void (*close)(hpct_comm *comm);

    /* Frees the group without waiting for ranks that may be lost. */
    void (*abandon)(hpct_comm *comm);
} hpct_comm_ops;

/* First member of every transport's struct. */
struct hpct_comm {
    const hpct_comm_ops *ops;
    int rank, size;
    bool records;          /* device reductions, and sums of device data, can be recorded with the
                              computation (hpct_backend_device, record); equal on all ranks */
    const hpct_auth *auth; /* authenticates additional connections; NULL: rank 0 generates a key,
                              distributed through this group */
    bool sleeps;           /* a rank waiting for a reduction sleeps; known once one is prepared */
};

/* A group of one rank. */
hpct_status hpct_comm_self_open(hpct_comm **out);

/* The group given by the cluster's config and the step's key, over TCP. meeting->auth must outlive
 * it. Returns HPCT_ERR_PEER, naming the rank, if one does not connect before the timeout. */
struct hpct_comm_meeting;
hpct_status hpct_comm_tcp_open(hpct_comm **out, const struct hpct_comm_meeting *meeting);

/* The group of MPI's ranks, which must be `rank` of `size`; else HPCT_ERR_CONFIG with the likely
 * cause (srun without --mpi=pmix), and MPI is finalized if *world, its number of ranks, differs.
 * Initializes MPI; then calls `meet`, unless NULL, which returns once MPI_Init has returned on
 * every rank. */
hpct_status hpct_comm_mpi_open(hpct_comm **out, int rank, int size, int *world,
                               void (*meet)(void *argument), void *argument);

/* Whether the launcher has set up MPI for several ranks, according to the environment: otherwise
 * MPI is a singleton, and *why is the reason, in static storage. */
bool hpct_comm_mpi_is_told(const char **why);

/* Node index and number of nodes. Reductions between nodes may then use our own connections
 * (agent/comm/mail.h) if hpct_comm_fabric_choose says so, opened within `seconds` when the first
 * reduction is prepared. */
typedef struct hpct_comm_mpi_place {
    int node, num_nodes, seconds;
} hpct_comm_mpi_place;
void hpct_comm_mpi_set_place(hpct_comm *comm, const hpct_comm_mpi_place *place);

/* Makes the launcher kill all ranks of the step, including unresponsive ones, and exits with
 * `status`; returns if MPI is not running. Thread-safe. */
void hpct_comm_mpi_end_step(int status);

/* Whether PMIx, if initialized before MPI, must stay initialized: Open MPI 4 cannot start after it
 * was finalized; from 5 on, addresses of ranks whose values were read before are not found unless
 * it was. */
bool hpct_comm_mpi_shares_pmix(void);

/* "Open MPI v4.1.4 …", from the library; static storage. */
const char *hpct_comm_mpi_version(void);

#endif
