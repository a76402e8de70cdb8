/* agent/comm/watch.h - heartbeats: a thread that uses a TCP star around rank 0, independently of
 * MPI. It detects a rank that dies or stops responding, distributes a rank's own error, and ends
 * the process with one line that names the rank, as pending collectives cannot complete.
 *
 * Each rank sends a heartbeat twice a second; one that is silent for longer than an outage of the
 * network may last is lost (base/net/link.h). A process
 * whose clock jumped (stopped, or the system slept) extends the timeout of the others by as much.
 * Heartbeats carry progress and what the rank waits for (base/progress.h). If all train and none
 * makes progress, rank 0 reports the rank that all wait for, and after `standstill_ms` treats it as
 * lost. Independent of models and data. */
#ifndef HPCT_AGENT_COMM_WATCH_H
#define HPCT_AGENT_COMM_WATCH_H

#include "base/auth/proof.h"
#include "base/net/frame.h"

#include <hpctrain/status.h>
#include <stdint.h>

typedef struct hpct_comm_watch hpct_comm_watch;

typedef struct hpct_comm_watch_options {
    int rank, size;               /* size > 1 */
    const char *node;             /* this rank's node */
    const hpct_auth *auth;        /* must outlive the watch */
    int listen_fd;                /* rank 0: from hpct_net_link_listen; ownership is taken */
    const char *const *addresses; /* others: rank 0's "host:port" addresses, tried in turn */
    int num_addresses;
    const char *const *rank_nodes; /* [size] node of each rank, to name missing ranks, or NULL */
    int join_seconds;              /* timeout to connect */
    int silence_ms; /* limit for silence; 0: that of an outage of HPCT_NET_LINK_OUTAGE_MS */
    /* Rank 0: time without progress until it is reported, and until the run is ended (0: never). */
    int notice_ms, standstill_ms;
    void (*end_step)(int status); /* makes the launcher kill unresponsive ranks, or NULL */
    /* Called in the heartbeat thread, with each heartbeat once all are connected: an error,
     * recorded by hpct_fail, ends all ranks. NULL: none. */
    hpct_status (*check)(void);
} hpct_comm_watch_options;

/* Connects; returns when all are connected. Collective. Returns HPCT_ERR_PEER naming the missing or
 * lost rank; HPCT_ERR_CONFIG if another program uses rank 0's port. */
hpct_status hpct_comm_watch_start(hpct_comm_watch **out, const hpct_comm_watch_options *options);

/* Barrier; collective. Waits as long as the other ranks are alive: the caller sets the timeout. */
void hpct_comm_watch_meet(hpct_comm_watch *watch);

/* Closes in order: waits until all ranks call it (losses are still detected). */
void hpct_comm_watch_stop(hpct_comm_watch *watch);

/* Sends the others this rank's `status` and `text`, and closes at once. */
void hpct_comm_watch_abort(hpct_comm_watch *watch, hpct_status status, const char *text);

#endif
