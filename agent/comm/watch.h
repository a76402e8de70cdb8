/* agent/comm/watch.h - the watch over the ranks: a thread of its own, beside MPI, on a TCP star
 * whose middle is rank 0. It notices a rank that dies or stops answering, and passes on a rank's
 * own error, and ends the process with one line that names the rank: its collectives could never
 * finish.
 *
 * Everyone sends a beat each second; who is silent for `silence_ms` is lost. A process that finds
 * its own clock jumped (it was stopped, or the system slept) gives the others that time too.
 * With its beats a rank says how much it has done and whom it waits for (base/headway.h). While all
 * train and none gets on, rank 0 says for whom they wait, and after `standstill_ms` that one is
 * lost. Knows nothing of MPI, models or data. */
#ifndef HPCT_COMM_WATCH_H
#define HPCT_COMM_WATCH_H

#include "agent/comm/frame.h"
#include "base/auth/proof.h"

#include <hpctrain/status.h>
#include <stdint.h>

typedef struct hpct_watch hpct_watch;

typedef struct hpct_watch_options {
    int rank, size;               /* size > 1 */
    const char *node;             /* this rank's node */
    const hpct_auth *auth;        /* valid while the watch lives */
    int listen_fd;                /* rank 0: from hpct_link_listen; taken over */
    const char *const *addresses; /* others: where rank 0 listens, "host:port", tried in turn */
    int num_addresses;
    const char *const
        *rank_nodes;         /* [size] the node of each rank, to name who does not come, or NULL */
    int join_seconds;        /* how long to wait for all */
    int beat_ms, silence_ms; /* 0: 1000 and 6000 */
    /* Of rank 0: how long no rank may get on until it says so, and until it ends the run (0: for
     * ever). */
    int notice_ms, standstill_ms;
    void (*end_step)(int status); /* has the launcher kill what does not answer, or NULL */
    /* In the watch's thread, with each beat once all have come: an error, kept as hpct_fail keeps
     * it, ends all ranks. NULL: nothing else is looked after. */
    hpct_status (*check)(void);
} hpct_watch_options;

/* Joins the others; returns when all have come. Collective. HPCT_ERR_PEER naming who did not come
 * or was lost meanwhile; HPCT_ERR_CONFIG when another program has rank 0's port. */
hpct_status hpct_watch_start(hpct_watch **out, const hpct_watch_options *options);

/* Returns once every rank has called it; collective. Waits for as long as the others live: the
 * caller sets the deadline. */
void hpct_watch_meet(hpct_watch *watch);

/* Leaves in order: waits until all ranks leave (who dies meanwhile is still noticed). */
void hpct_watch_stop(hpct_watch *watch);

/* Tells the others that this rank ends with `status` because of `text`, and leaves at once. */
void hpct_watch_abort(hpct_watch *watch, hpct_status status, const char *text);

#endif
