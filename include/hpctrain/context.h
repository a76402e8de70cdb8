/* hpctrain/context.h - rank, world size and communication of this run.
 *
 * The layout is read from the plugin's config (HPC_TRAIN_CONFIG, HPC_TRAIN_CONFIG_FILE), else from
 * Slurm's variables, else from mpirun's; otherwise there is one rank. */
#ifndef HPCTRAIN_CONTEXT_H
#define HPCTRAIN_CONTEXT_H

#include <hpctrain/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hpct_context hpct_context;

/* Connects all ranks. One context per process. Collective; blocks for at most 300 s
 * (HPC_TRAIN_JOIN_SECONDS).
 *
 * While the context is open, heartbeats detect a rank that dies or stops responding, and one that
 * makes no progress for 1800 s (HPC_TRAIN_STANDSTILL_SECONDS; 0: no limit) while all are in
 * hpct_fit, hpct_evaluate or hpct_bench. The process then prints the rank on stderr and exits with
 * 69, because pending collectives cannot complete.
 *
 * Returns HPCT_ERR_PEER, naming the rank, if one does not connect in time; HPCT_ERR_CONFIG if the
 * cluster description is wrong, rank 0's port is in use, or MPI and the job disagree on the ranks
 * and their addresses are unknown. The caller owns *out and frees it with hpct_context_close() or
 * hpct_context_finish(). */
HPCT_API hpct_status hpct_context_open(hpct_context **out);

/* hpct_context_open() for ranks that compute on `device`: "cpu", "cuda" or "auto". If every rank
 * has a GPU and NCCL, gradients use NCCL, else MPI or TCP through host memory. NCCL needs no MPI if
 * the cluster's config has the ranks' addresses.
 *
 * Returns HPCT_ERR_CONFIG if "cuda" is given and not available on a rank, or two ranks share a
 * GPU. */
HPCT_API hpct_status hpct_context_open_on(hpct_context **out, const char *device);

/* hpct_context_open() with options; NULL and NULL fields select defaults. */
typedef struct hpct_context_options {
    const char *device; /* as above; default "cpu" */
    /* "mpi"; "tcp", which needs the ranks' addresses and the step's key (srun --hpc-train); "auto"
     * (default): MPI if the launcher has set it up for all ranks, else TCP. NCCL takes precedence
     * for gradients. HPCT_ERR_CONFIG if not available. */
    const char *comm;
} hpct_context_options;
HPCT_API hpct_status hpct_context_open_with(hpct_context **out,
                                            const hpct_context_options *options);

/* hpct_context_open_with() that agrees on `before`, the rank's status so far: the ranks connect
 * also after an error, so that hpct_context_finish() prints an error that all ranks have only once.
 */
HPCT_API hpct_status hpct_context_open_after(hpct_context **out, hpct_status before,
                                             const hpct_context_options *options);

/* "ranks are connected by TCP, not MPI: …" with the reason; NULL if MPI is used. */
HPCT_API const char *hpct_context_connected(const hpct_context *context);

/* For the strategy parameter-server, whose ranks do not step together: reads the layout without
 * connecting to other ranks, without MPI and heartbeats. Collective functions are then local.
 *
 * Returns HPCT_ERR_USAGE unless the cluster has the roles ps and worker (a chief is a worker) with
 * known addresses: srun --hpc-train-roles=ps:2,worker:4, or HPC_TRAIN_CONFIG. */
HPCT_API hpct_status hpct_context_open_apart(hpct_context **out);

/* Disconnects and frees. Collective. NULL is allowed. */
HPCT_API void hpct_context_close(hpct_context *context);

/* Agrees on the result of a local operation, such as opening data: each rank passes its status, and
 * all return that of the lowest rank that failed, with its message in hpct_last_error(), rank and
 * node named unless all failed alike. Collective. */
HPCT_API hpct_status hpct_context_agree(hpct_context *context, hpct_status status);

/* Compares the program's settings, "NAME=VALUE" or "NAME", NULL-terminated and in the same order on
 * all ranks, with rank 0's: before anything that only ranks with the same settings can do together.
 * Returns HPCT_ERR_CONFIG on all ranks if they differ, naming the setting, the first rank that has
 * another, its node, and both values. Collective. */
HPCT_API hpct_status hpct_context_compare(hpct_context *context, const char *const *settings);

/* Reports a local fatal error, with hpct_last_error(), to the other ranks, which exit with the same
 * code and name this rank; frees the context without waiting for them. Does not exit. NULL is
 * allowed. */
HPCT_API void hpct_context_abort(hpct_context *context, hpct_status status);

/* Ends a program. With HPCT_OK closes the context. Otherwise prints "PROGRAM: MESSAGE" from
 * hpct_last_error() on stderr once: on rank 0 if all ranks have this error from a collective
 * function, then closes; else on this rank, then calls hpct_context_abort(). `context` may be NULL.
 * Returns `status`, to be returned from main. */
HPCT_API hpct_status hpct_context_finish(hpct_context *context, const char *program,
                                         hpct_status status);

HPCT_API int hpct_context_rank(const hpct_context *context);
HPCT_API int hpct_context_size(const hpct_context *context); /* number of ranks */
HPCT_API int hpct_context_local_rank(const hpct_context *context);

/* Number of ranks that train: all except parameter servers. */
HPCT_API int hpct_context_workers(const hpct_context *context);

/* The number in the first run, if `hpc-train launch` has started this one again, perhaps on fewer
 * nodes: samples per rank are multiplied by this number, so that the global batch stays. */
HPCT_API int hpct_context_first_workers(const hpct_context *context);

/* Whether this rank prints progress and writes results: rank 0, or parameter server 0. */
HPCT_API int hpct_context_leads(const hpct_context *context);

/* Rank according to the environment, without a context; 0 if unknown. Lets one of many tasks print
 * a usage error. */
HPCT_API int hpct_context_rank_hint(void);

/* Path of the data staged on this node by --hpc-train-stage; NULL if none. */
HPCT_API const char *hpct_context_data(const hpct_context *context);

#ifdef __cplusplus
}
#endif
#endif
