/* agent/strategy/replicas/thread_pool.h - thread pool for the replicas of one process, each thread
 * with its OpenMP threads and cores. Waiting threads sleep. Independent of models.
 *
 * Waits between threads of one process have no timeout, as these cannot be lost alone, except after
 * a failed member (patience_seconds); the sum over other processes is the caller's, with its
 * communicator's timeout. Only open allocates. */
#ifndef HPCT_AGENT_STRATEGY_REPLICAS_THREAD_POOL_H
#define HPCT_AGENT_STRATEGY_REPLICAS_THREAD_POOL_H

#include <hpctrain/status.h>
#include <stddef.h>

typedef struct hpct_replicas_pool hpct_replicas_pool;

typedef hpct_status (*hpct_replicas_pool_work)(void *argument, int member);

typedef struct hpct_replicas_pool_options {
    int members; /* at least 1 */
    int threads; /* OpenMP threads of each, at least 1 */
    /* Sums data[count] over other processes, in the thread that calls hpct_replicas_pool_run (MPI
     * allows one thread); NULL for one process. */
    hpct_status (*sum)(void *argument, float *data, size_t count);
    void *argument; /* argument of sum */
    /* For members that also wait for each other outside of hpct_replicas_pool_sum: seconds after a
     * member's failure until the process exits. 0: unlimited. */
    int patience_seconds;
} hpct_replicas_pool_options;

/* Starts the threads, which block signals: these are for the training thread. */
hpct_status hpct_replicas_pool_open(hpct_replicas_pool **out,
                                    const hpct_replicas_pool_options *options);

/* Ends them; NULL is allowed. */
void hpct_replicas_pool_close(hpct_replicas_pool *pool);

/* Runs work(argument, member) on all members and waits. Returns the first error, of a member or the
 * sum over other processes, with its message ("replica 1: …" with several); members waiting in
 * hpct_replicas_pool_sum return, too. May be called again. */
hpct_status hpct_replicas_pool_run(hpct_replicas_pool *pool, hpct_replicas_pool_work work,
                                   void *argument);

/* Within work: data[count] becomes the sum over all members, in their order, and over the other
 * processes; same bits for all. Called by all members in the same order with the same counts. */
hpct_status hpct_replicas_pool_sum(hpct_replicas_pool *pool, int member, float *data, size_t count);

#endif
