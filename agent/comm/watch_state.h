/* agent/comm/watch_state.h - state of the heartbeats, shared by the thread (watch.c) and connecting
 * (watch_join.c). */
#ifndef HPCT_AGENT_COMM_WATCH_STATE_H
#define HPCT_AGENT_COMM_WATCH_STATE_H

#include "agent/comm/watch.h"
#include "base/net/acceptor.h"
#include "base/net/link.h"
#include "base/progress.h"

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>

/* State of a rank, as rank 0 knows it. */
typedef struct hpct_comm_gain {
    hpct_waits waits;
    uint32_t done;
    int64_t since_ms; /* of the last change */
} hpct_comm_gain;

/* A connection and its peer: on rank 0 one per other rank; on others the one to rank 0. */
typedef struct hpct_comm_member {
    hpct_net_link link;
    int rank; /* -1 until connected */
    bool left;
    int64_t heard_ms; /* time of its last heartbeat */
    int silence_ms;
    hpct_comm_gain gain;
    char node[HPCT_NET_FRAME_NODE];
} hpct_comm_member;

typedef enum hpct_comm_watch_phase {
    HPCT_COMM_WATCH_JOINING,
    HPCT_COMM_WATCH_RUNNING,
    HPCT_COMM_WATCH_CLOSING,
    HPCT_COMM_WATCH_DONE,
} hpct_comm_watch_phase;

struct hpct_comm_watch {
    hpct_comm_watch_options
        options; /* node, addresses and rank_nodes are valid while connecting only */
    char node[HPCT_NET_FRAME_NODE];
    hpct_comm_member *members;
    struct pollfd *polls; /* [2 + num_members] */
    int num_members;
    int here, left; /* rank 0: number of ranks connected; that have left */
    int arrived;    /* rank 0: number of others at the barrier */
    bool arrival_told;
    hpct_net_acceptor *acceptor; /* rank 0's, while connecting */
    int wake_fd;
    hpct_comm_watch_phase phase;
    bool end_step; /* this rank makes the launcher kill the step */
    int64_t join_began_ms, notice_ms, beat_ms, turn_ms;
    hpct_comm_gain gain;   /* of this rank */
    bool standstill_noted; /* standstill was reported */

    pthread_t thread;
    pthread_mutex_t mutex;  /* protects the following, used by both threads */
    pthread_cond_t changed; /* signalled when connected, failed, or met at the barrier */
    bool joined, meeting, stop_requested, abort_requested;
    hpct_net_frame abort_frame;
    hpct_status failure;
    char failure_text[512];
};

/* Connects to rank 0; fills members[0]. Called in the caller's thread. */
hpct_status hpct_comm_watch_reach(hpct_comm_watch *watch);

/* Rank 0, in the heartbeat thread: accepts connections; and, once per poll, checks for missing
 * ranks. False if connecting has failed, with text and rank. */
void hpct_comm_watch_accept(hpct_comm_watch *watch);
bool hpct_comm_watch_still_joining(hpct_comm_watch *watch, int64_t now, hpct_net_frame *missing);

/* Rank 0, with each heartbeat: records a rank's progress; and checks whether any rank makes
 * progress. If not, returns false after the timeout, with the frame to send: LOST with the rank
 * that all wait for, else ABORT without a rank. */
void hpct_comm_watch_gained(hpct_comm_gain *gain, hpct_waits waits, uint32_t done, int64_t now);
bool hpct_comm_watch_still_gains(hpct_comm_watch *watch, int64_t now, hpct_net_frame *lost);

/* Prints a line on stderr with a timeout, as stderr may block. */
void hpct_comm_watch_say(const char *line, int patience_ms);

#endif
