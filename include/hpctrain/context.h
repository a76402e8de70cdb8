/* hpctrain/context.h - who we are among the ranks of this run.
 *
 * The layout is read from the plugin's config (HPC_TRAIN_CONFIG, HPC_TRAIN_CONFIG_FILE), else from
 * SLURM_* variables, else from mpirun's, else the process stands alone. */
#ifndef HPCTRAIN_CONTEXT_H
#define HPCTRAIN_CONTEXT_H

#include <hpctrain/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hpct_context hpct_context;

/* Joins the other ranks; returns once all are there. One context per process. Collective: every
 * wait has a deadline (300 s, HPC_TRAIN_JOIN_SECONDS changes it), and a rank that does not come is
 * named (HPCT_ERR_PEER). HPCT_ERR_CONFIG when the cluster's description is wrong, rank 0's port is
 * in use, or MPI sees other ranks than the job has and nobody said where they listen. While a
 * context is open a watch notices a peer that dies or stops answering: the process then prints
 * which one on stderr and ends with exit code 69, because the other ranks' collectives can no
 * longer finish. So it does where all ranks are in hpct_fit, hpct_evaluate or hpct_bench and none
 * gets on for 1800 s (HPC_TRAIN_STANDSTILL_SECONDS changes it, 0: for ever). */
HPCT_API hpct_status hpct_context_open(hpct_context **out);

/* The same for ranks that compute on `device`: "cpu" (as above), "cuda", or "auto". Where every
 * rank has a GPU and NCCL, gradients go by NCCL from GPU to GPU; else by MPI or TCP through the
 * hosts' memory. Where the cluster's config says where ranks listen, NCCL needs no MPI.
 * HPCT_ERR_CONFIG when "cuda" is asked for and a rank cannot have it, or two ranks share a GPU. */
HPCT_API hpct_status hpct_context_open_on(hpct_context **out, const char *device);

/* The same with more to say; NULL, and NULL in it, for the defaults. */
typedef struct hpct_context_options {
    const char *device; /* as above; default "cpu" */
    /* What connects the ranks: "mpi"; "tcp", which needs nothing but where the ranks listen and the
     * step's key (srun --hpc-train); or "auto", the default: MPI where the launcher has told it of
     * all ranks, else TCP. Not for what goes by NCCL. HPCT_ERR_CONFIG where it cannot be. */
    const char *comm;
} hpct_context_options;
HPCT_API hpct_status hpct_context_open_with(hpct_context **out,
                                            const hpct_context_options *options);

/* "ranks are connected by TCP, not MPI: …" and why; NULL where they are not. */
HPCT_API const char *hpct_context_connected(const hpct_context *context);

/* For a run whose ranks do not wait for one another (the strategy parameter-server): reads who
 * takes part, and joins nobody; MPI is not started, and there is no watch. What is collective is
 * then each rank's own. HPCT_ERR_USAGE unless the cluster has ranks of the roles ps and worker (and
 * chief, a worker too), whose addresses are known: srun --hpc-train-roles=ps:2,worker:4, or an
 * HPC_TRAIN_CONFIG. */
HPCT_API hpct_status hpct_context_open_apart(hpct_context **out);

/* Leaves in order; collective. NULL is allowed. */
HPCT_API void hpct_context_close(hpct_context *context);

/* Makes a step that each rank takes for itself (opening its data, say) end alike on all: each
 * passes its own status, and all get that of the lowest rank that failed, with its message in
 * hpct_last_error, the rank and node named unless all failed alike. Then rank 0 alone need print
 * it. Collective. What collective functions return is the same on all ranks in the same way. */
HPCT_API hpct_status hpct_context_agree(hpct_context *context, hpct_status status);

/* For a program about to end with an error of its own that the others do not know of: tells them
 * (with this thread's hpct_last_error); they end with the same exit code and name this rank. Then
 * frees the context without waiting for them. Ends nothing here. NULL is allowed. */
HPCT_API void hpct_context_abort(hpct_context *context, hpct_status status);

/* The end of a program: closes the context when `status` is HPCT_OK. Else prints "PROGRAM: MESSAGE"
 * with hpct_last_error on stderr, once: rank 0 does, when all ranks have this error from a
 * collective function, and then all leave in order; otherwise the rank that has it, and
 * hpct_context_abort follows. `context` may be NULL (it could not be opened). Returns `status`, for
 * main to return. */
HPCT_API hpct_status hpct_context_finish(hpct_context *context, const char *program,
                                         hpct_status status);

HPCT_API int hpct_context_rank(const hpct_context *context);
HPCT_API int hpct_context_size(const hpct_context *context); /* ranks in all */
HPCT_API int hpct_context_local_rank(const hpct_context *context);

/* Ranks that train: all, or, apart, those that are no parameter servers. */
HPCT_API int hpct_context_workers(const hpct_context *context);

/* Whether this rank shows progress and writes results: rank 0, or, apart, parameter server 0. */
HPCT_API int hpct_context_leads(const hpct_context *context);

/* The rank as the environment alone tells it, before any context is open; 0 when it does not. So
 * that of many tasks with the same wrong option one prints. */
HPCT_API int hpct_context_rank_hint(void);

/* The folder or file that `--hpc-train-stage` put on this node's disk, NULL when there is none. */
HPCT_API const char *hpct_context_data(const hpct_context *context);

#ifdef __cplusplus
}
#endif
#endif
