/* agent/comm/watch_state.h - the watch's state, shared by its thread (watch.c) and by the two ways
 * of joining (watch_join.c). */
#ifndef HPCT_COMM_WATCH_STATE_H
#define HPCT_COMM_WATCH_STATE_H

#include "agent/comm/acceptor.h"
#include "agent/comm/link.h"
#include "agent/comm/watch.h"
#include "base/headway.h"

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>

/* How far a rank has come, as rank 0 knows it. */
typedef struct hpct_gain {
    hpct_waits waits;
    uint32_t done;
    int64_t since_ms; /* when it became this */
} hpct_gain;

/* One connection and whom it speaks for: of rank 0, one per other rank; of the others, the one to
 * rank 0. */
typedef struct hpct_member {
    hpct_link link;
    int rank; /* -1 until it has come */
    bool left;
    int64_t heard_ms; /* when it last showed a sign of life */
    hpct_gain gain;
    char node[HPCT_FRAME_NODE];
} hpct_member;

typedef enum hpct_watch_phase {
    HPCT_WATCH_JOINING,
    HPCT_WATCH_RUNNING,
    HPCT_WATCH_CLOSING,
    HPCT_WATCH_DONE,
} hpct_watch_phase;

struct hpct_watch {
    hpct_watch_options options; /* node, addresses and rank_nodes are valid while joining only */
    char node[HPCT_FRAME_NODE];
    hpct_member *members;
    struct pollfd *polls; /* [2 + num_members] */
    int num_members;
    int here, left; /* rank 0: how many have come, how many said goodbye */
    int arrived;    /* rank 0: how many others are at the meeting */
    bool arrival_told;
    hpct_acceptor *acceptor; /* of rank 0, while joining */
    int wake_fd;
    hpct_watch_phase phase;
    bool end_step; /* this rank has the launcher end the step */
    int64_t join_began_ms, notice_ms, beat_ms, turn_ms;
    hpct_gain gain;        /* this rank's own */
    bool standstill_noted; /* and said */

    pthread_t thread;
    pthread_mutex_t mutex;  /* guards what follows, which both threads use */
    pthread_cond_t changed; /* joined, failed, or met */
    bool joined, meeting, stop_requested, abort_requested;
    hpct_frame abort_frame;
    hpct_status failure;
    char failure_text[512];
};

/* Connects to rank 0; fills members[0]. Runs in the caller's thread. */
hpct_status hpct_watch_reach(hpct_watch *watch);

/* Rank 0, in the watch's thread: takes in those who come; and once a turn, who is still missing.
 * False when joining has failed, with the text and the rank to name. */
void hpct_watch_accept(hpct_watch *watch);
bool hpct_watch_still_joining(hpct_watch *watch, int64_t now, hpct_frame *missing);

/* Rank 0, with each beat: what a rank has said of itself; and whether no rank gets on any more.
 * False then, with the rank to name: LOST when it is the one for whom all wait, else an ABORT of
 * nobody's. */
void hpct_watch_gained(hpct_gain *gain, hpct_waits waits, uint32_t done, int64_t now);
bool hpct_watch_still_gains(hpct_watch *watch, int64_t now, hpct_frame *lost);

/* Prints a line on stderr, which may be stopped, or be a file that does not answer: waits so long
 * for it at most. */
void hpct_watch_say(const char *line, int patience_ms);

/* The node of a rank as far as it is known while joining: "node1", or "its node". */
const char *hpct_watch_node_of(const hpct_watch *watch, int rank);

#endif
