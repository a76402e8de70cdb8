/* spank/stage/broadcast_state.h - a broadcast from within: for broadcast*.c alone. */
#ifndef HPCT_STAGE_BROADCAST_STATE_H
#define HPCT_STAGE_BROADCAST_STATE_H

#include <poll.h>
#include <pthread.h>

#include "spank/stage/broadcast.h"
#include "spank/stage/broadcast_auth.h"
#include "spank/stage/broadcast_link.h"
#include "spank/stage/broadcast_tree.h"

/* Blocks under way per node: enough for a network of 10 Gb/s with a millisecond's delay, and for a
 * disk that hesitates. Even, so that a place always belongs to the same tree. */
#define HPCT_WINDOW 32

/* The connections between two neighbours: one per tree for the blocks, from parent to child, and
 * one along the first tree for letters both ways, which no block ever keeps waiting. */
enum { HPCT_CHANNEL_LETTERS = HPCT_NUM_TREES, HPCT_NUM_CHANNELS };

/* Milliseconds. */
#define HPCT_GREETING_MS 10000 /* from accepting a connection to knowing whose it is */
#define HPCT_BEAT_MS 2000
#define HPCT_SILENCE_MS 30000
#define HPCT_GRACE_MS 2000   /* for the word that explains a broken connection */
#define HPCT_FAREWELL_MS 700 /* for a last word to be taken */
#define HPCT_LATE_MS 5000    /* for those who have not even come to be told of a failure */
#define HPCT_STALL_MS 300000 /* without progress: stuck */

#define HPCT_MAX_STRANGERS 64

/* How far the connection to a parent has come. */
typedef enum hpct_joining {
    HPCT_JOIN_LATER,
    HPCT_JOIN_CONNECTING,
    HPCT_JOIN_CHALLENGE, /* awaited */
    HPCT_JOIN_WELCOME,   /* awaited */
    HPCT_JOIN_DONE,
} hpct_joining;

typedef struct hpct_neighbour {
    int node, channel;
    bool is_parent;
    bool up;
    hpct_stage_link link;
    int64_t broken_at; /* 0: it is not */
    /* to a child, channels of blocks */
    uint64_t next; /* sequence of the block to send, or (from a parent) to receive */
    size_t sent;
    /* to a parent, before it is up */
    hpct_joining joining;
    struct addrinfo *addresses, *address;
    int64_t retry_at, give_up_at;
    int retry_ms;
    hpct_auth_claim claim;
    char trouble[160]; /* why the last attempt failed */
    int polled;        /* place in the list that was polled last, or -1 */
    bool gathered;     /* a child's vote of this round has come */
    bool told;         /* of the failure */
} hpct_neighbour;

/* Somebody who has connected and not yet shown who it is. */
typedef struct hpct_stranger {
    hpct_stage_link link;
    int64_t give_up_at;
    uint8_t challenge[HPCT_NONCE_BYTES];
    int polled;
} hpct_stranger;

typedef struct hpct_block {
    uint8_t *data;
    size_t size;
    uint64_t sequence;
    bool filled;
    uint8_t head[HPCT_WIRE_HEADER];
} hpct_block;

typedef struct hpct_letter {
    uint8_t *data;
    size_t size;
    struct hpct_letter *next;
} hpct_letter;

#define HPCT_MAX_POLLS (2 + HPCT_MAX_STRANGERS + HPCT_MAX_NEIGHBOURS)
#define HPCT_MAX_NEIGHBOURS (HPCT_NUM_CHANNELS * (1 + HPCT_MAX_CHILDREN))

struct hpct_broadcast {
    const hpct_team *team;
    hpct_report *report;
    pthread_t thread;
    int wake_fd, listen_fd;

    /* the network thread's alone */
    hpct_stranger strangers[HPCT_MAX_STRANGERS];
    int64_t opened_at;
    int64_t farewell_at; /* when a failing or finished broadcast closes at the latest */

    _Atomic int64_t alive_at; /* when the caller last showed that its work goes on */

    pthread_mutex_t lock; /* guards all that follows; the network thread lets go of it in poll */
    pthread_cond_t changed;
    hpct_neighbour neighbours[HPCT_MAX_NEIGHBOURS];
    int num_neighbours;
    bool met, closing, over, ended;
    /* the first failure */
    bool failed, elsewhere;
    hpct_wire_failure failure;
    /* blocks */
    hpct_block blocks[HPCT_WINDOW];
    uint64_t put;          /* sequences: the next to be put (node 0), */
    uint64_t given, taken; /* to be given to who takes, to be no longer needed by him */
    int64_t put_at;        /* node 0: when the last was put; 0: none yet, or the end was */
    uint64_t bytes_in, bytes_out;
    /* letters */
    uint64_t tells;                   /* sent on or received so far */
    hpct_letter *heard, **heard_last; /* received, not yet asked for */
    uint64_t round;                   /* of votes, the one that is being taken */
    uint8_t *votes;                   /* combined so far, NULL: none yet */
    size_t votes_size;
    bool voted;
    uint8_t *result; /* node 0: of the last whole round, until it is asked for */
    size_t result_size;
};

static inline bool hpct_neighbour_has_blocks(const hpct_neighbour *n)
{
    return n->channel != HPCT_CHANNEL_LETTERS;
}

/* All of these are called by the network thread, with the lock. */

/* broadcast_join.c: what a node needs to become one of the team. */
void hpct_join_begin(hpct_broadcast *b);
/* Adds the descriptors to wait for to the list of *count, which has room for HPCT_MAX_POLLS. */
void hpct_join_poll(hpct_broadcast *b, struct pollfd *polls, int *count);
void hpct_join_step(hpct_broadcast *b, const struct pollfd *polls, int64_t now);
void hpct_join_end(hpct_broadcast *b);
const char *hpct_node_name(const hpct_broadcast *b, int node);

/* broadcast_loop.c */
void *hpct_broadcast_loop(void *broadcast);
void hpct_broadcast_fail_locked(hpct_broadcast *b, uint32_t node, hpct_status status,
                                const char *why, bool elsewhere);
bool hpct_block_is_free(const hpct_broadcast *b, uint64_t sequence);
void hpct_broadcast_wake(hpct_broadcast *b);
/* Sends a letter to all children of the tree of letters, or to the parent. */
void hpct_letters_down(hpct_broadcast *b, hpct_wire_type type, uint64_t sequence, const void *data,
                       size_t size);
bool hpct_votes_add(hpct_broadcast *b, const uint8_t *votes, size_t size);
void hpct_votes_ready(hpct_broadcast *b);

#endif
