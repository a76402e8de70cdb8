/* agent/strategy/crew.h - a few threads that compute side by side in one process, each with its
 * OpenMP threads and its part of the process's cores: replicas of a model. They sleep between
 * works; nobody spins. Knows nothing of models.
 *
 * What a thread waits for here are threads of its own process, which cannot be lost alone, so these
 * waits have no deadline, unless a member that failed is waited for elsewhere (patience_seconds);
 * the sum over other processes is the caller's, with the deadline of its communicator. Nothing
 * allocates but open. */
#ifndef HPCT_STRATEGY_CREW_H
#define HPCT_STRATEGY_CREW_H

#include <hpctrain/status.h>
#include <stddef.h>

typedef struct hpct_crew hpct_crew;

typedef hpct_status (*hpct_crew_work)(void *argument, int member);

typedef struct hpct_crew_options {
    int members; /* at least 1 */
    int threads; /* OpenMP threads of each, at least 1 */
    /* Sums data[count] over other processes, in the thread that calls hpct_crew_run (MPI allows one
     * thread); NULL where there are none. */
    hpct_status (*sum)(void *argument, float *data, size_t count);
    void *argument; /* of sum */
    /* Where members wait for one another by other ways than hpct_crew_sum: so long after one has
     * failed the process ends, if they are waiting still. 0: for ever. */
    int patience_seconds;
} hpct_crew_options;

/* Starts the threads, which take no signals: those are for the thread that trains. */
hpct_status hpct_crew_open(hpct_crew **out, const hpct_crew_options *options);

/* Ends them; NULL is allowed. */
void hpct_crew_close(hpct_crew *crew);

/* All members do work(argument, member), and this returns when all have. What fails first, a member
 * or the sum over other processes, is returned, with its message ("replica 1: …" where there are
 * several); members that wait in hpct_crew_sum then return too. Another run may follow. */
hpct_status hpct_crew_run(hpct_crew *crew, hpct_crew_work work, void *argument);

/* Within a work: data[count] becomes the sum over all members, added up in their order, and over
 * the other processes; the same bits for all. All members call it in the same order with the same
 * counts. */
hpct_status hpct_crew_sum(hpct_crew *crew, int member, float *data, size_t count);

int hpct_crew_members(const hpct_crew *crew);

#endif
