/* spank/stage/net/broadcast_state.h - internals of a broadcast, for broadcast*.c only. */
#ifndef HPCT_SPANK_STAGE_NET_BROADCAST_STATE_H
#define HPCT_SPANK_STAGE_NET_BROADCAST_STATE_H

#include <poll.h>
#include <pthread.h>

#include "base/net/resolve.h"
#include "spank/stage/net/broadcast.h"
#include "spank/stage/net/broadcast_auth.h"
#include "spank/stage/net/broadcast_link.h"
#include "spank/stage/net/broadcast_team.h"

/* Blocks in flight per node: enough for 10 Gb/s with a delay of 1 ms and a slow disk. Even, so that
 * a slot always belongs to the same tree. */
#define HPCT_STAGE_WINDOW 32

/* Connections between two neighbours: one per tree for blocks, from parent to child, and one along
 * the first tree for letters both ways, never delayed by blocks. */
enum { HPCT_STAGE_CHANNEL_LETTERS = HPCT_STAGE_NUM_TREES, HPCT_STAGE_NUM_CHANNELS };

/* Milliseconds. */
#define HPCT_STAGE_GREETING_MS 10000 /* from accept to authentication */
#define HPCT_STAGE_LAST_MS 30000     /* time to deliver what is still to be sent */
#define HPCT_STAGE_GRACE_MS 2000   /* wait for the FAIL message that explains a broken connection */
#define HPCT_STAGE_FAREWELL_MS 700 /* time to deliver a last message */
#define HPCT_STAGE_LATE_MS                                                                         \
    5000 /* time for nodes that are not connected yet to learn of a failure */
#define HPCT_STAGE_STALL_MS 300000 /* no progress for this long: hung */

#define HPCT_STAGE_MAX_STRANGERS 64

/* State of the connection to a parent. */
typedef enum hpct_stage_joining {
    HPCT_STAGE_JOIN_LATER,
    HPCT_STAGE_JOIN_CONNECTING,
    HPCT_STAGE_JOIN_CHALLENGE, /* waits for CHALLENGE */
    HPCT_STAGE_JOIN_WELCOME,   /* waits for WELCOME */
    HPCT_STAGE_JOIN_DONE,
} hpct_stage_joining;

typedef struct hpct_stage_neighbour {
    int node, channel;
    bool is_parent;
    bool up;
    hpct_stage_link link;
    int64_t broken_at; /* 0: not broken */
    /* block channels: */
    uint64_t next; /* sequence of the block to send (to a child) or to receive (from a parent) */
    size_t sent;
    /* connection to a parent that is not up yet */
    hpct_stage_joining joining;
    hpct_net_addresses *addresses; /* NULL: not found yet */
    int address;                   /* index of the next to try */
    int64_t retry_at, give_up_at;
    int retry_ms;
    hpct_stage_auth_claim claim;
    char trouble[160]; /* error of the last attempt */
    int polled;        /* index in the last poll, or -1 */
    bool gathered;     /* the child's vote of this round has arrived */
    bool informed;     /* was sent the failure */
} hpct_stage_neighbour;

/* A connection that is not authenticated yet. */
typedef struct hpct_stage_stranger {
    hpct_stage_link link;
    int64_t give_up_at;
    uint8_t challenge[HPCT_STAGE_NONCE_BYTES];
    int polled;
} hpct_stage_stranger;

typedef struct hpct_stage_block {
    uint8_t *data;
    size_t size;
    uint64_t sequence;
    bool filled;
    uint8_t head[HPCT_STAGE_WIRE_HEADER];
} hpct_stage_block;

typedef struct hpct_stage_letter {
    uint8_t *data;
    size_t size;
    struct hpct_stage_letter *next;
} hpct_stage_letter;

#define HPCT_STAGE_MAX_POLLS (2 + HPCT_STAGE_MAX_STRANGERS + HPCT_STAGE_MAX_NEIGHBOURS)
#define HPCT_STAGE_MAX_NEIGHBOURS (HPCT_STAGE_NUM_CHANNELS * (1 + HPCT_STAGE_MAX_CHILDREN))

struct hpct_stage_broadcast {
    const hpct_stage_team *team;
    hpct_stage_report *report;
    pthread_t thread;
    int wake_fd, listen_fd;

    /* used by the network thread only */
    hpct_stage_stranger strangers[HPCT_STAGE_MAX_STRANGERS];
    int64_t opened_at;
    int64_t farewell_at; /* deadline for closing after failure or end */

    _Atomic int64_t alive_at; /* last time the caller showed progress */

    pthread_mutex_t lock; /* protects everything below; the network thread releases it in poll */
    pthread_cond_t changed;
    hpct_stage_neighbour neighbours[HPCT_STAGE_MAX_NEIGHBOURS];
    int num_neighbours;
    bool connected, closing, over;
    /* the first failure */
    bool failed, elsewhere;
    hpct_stage_wire_failure failure;
    /* blocks */
    hpct_stage_block blocks[HPCT_STAGE_WINDOW];
    uint64_t pushed;           /* sequence numbers: next to be pushed (node 0), */
    uint64_t popped, released; /* next to be popped, oldest still in use */
    int64_t pushed_at; /* node 0: time of the last push; 0: none yet, or the end was pushed */
    uint64_t bytes_in, bytes_out;
    /* letters */
    uint64_t num_letters;                      /* forwarded or received so far */
    hpct_stage_letter *letters, **last_letter; /* received, not yet returned */
    uint64_t round;                            /* number of the current vote */
    uint8_t *votes;                            /* combined so far; NULL: none yet */
    size_t votes_size;
    bool voted;
    uint8_t *result; /* of the last complete vote, until node 0 takes it */
};

static inline bool hpct_stage_neighbour_has_blocks(const hpct_stage_neighbour *n)
{
    return n->channel != HPCT_STAGE_CHANNEL_LETTERS;
}

/* The network thread calls all of these with the lock held. */

/* broadcast_join.c: connecting and authenticating. */
void hpct_stage_join_begin(hpct_stage_broadcast *b);
/* Appends descriptors to the poll list of *count entries; room for HPCT_STAGE_MAX_POLLS. */
void hpct_stage_join_poll(hpct_stage_broadcast *b, struct pollfd *polls, int *count);
void hpct_stage_join_step(hpct_stage_broadcast *b, const struct pollfd *polls, int64_t now);
void hpct_stage_join_end(hpct_stage_broadcast *b);
const char *hpct_stage_node_name(const hpct_stage_broadcast *b, int node);

/* broadcast_loop.c */
void *hpct_stage_broadcast_loop(void *broadcast);
void hpct_stage_broadcast_fail_locked(hpct_stage_broadcast *b, uint32_t node, hpct_status status,
                                      const char *why, bool elsewhere);
bool hpct_stage_block_is_free(const hpct_stage_broadcast *b, uint64_t sequence);
void hpct_stage_broadcast_wake(hpct_stage_broadcast *b);
/* Sends a letter to all children in the control tree, or to the parent. */
void hpct_stage_letters_down(hpct_stage_broadcast *b, hpct_stage_wire_type type, uint64_t sequence,
                             const void *data, size_t size);
bool hpct_stage_votes_add(hpct_stage_broadcast *b, const uint8_t *votes, size_t size);
void hpct_stage_votes_ready(hpct_stage_broadcast *b);

#endif
