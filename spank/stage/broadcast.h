/* spank/stage/broadcast.h - one node reads, all receive: blocks of bytes sent along two trees over
 * TCP, and short letters along one of them. Offers the meeting of all nodes, letters to all, a vote
 * of all, the stream, and a failure that reaches everybody. Knows nothing of files.
 *
 * One thread of its own does all that has to do with the network and never blocks; the caller's
 * threads wait for it here. Every wait ends: when a node fails, is lost or silent, when it does not
 * come in time, when a signal asks to end; the message names the node.
 *
 * The order, the same on all nodes: open, meet, any number of letters and votes, the stream,
 * finish, close. After any failure: fail (if it was this node's), close. */
#ifndef HPCT_STAGE_BROADCAST_H
#define HPCT_STAGE_BROADCAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spank/stage/broadcast_team.h"
#include "spank/stage/broadcast_wire.h"
#include "spank/stage/report.h"

typedef struct hpct_broadcast hpct_broadcast;

/* Listens, and begins to connect in the background. `team` and `report` must live on. */
hpct_status hpct_broadcast_open(const hpct_team *team, hpct_report *report, hpct_broadcast **out);

/* Waits until this node's neighbours in the trees are there, and says whom it waits for.
 * HPCT_ERR_PEER naming who did not come. */
hpct_status hpct_broadcast_meet(hpct_broadcast *broadcast);

/* From node 0 to all others, which get it with hear; *data is to be freed. At most
 * HPCT_LETTER_BYTES bytes. */
hpct_status hpct_broadcast_tell(hpct_broadcast *broadcast, const void *data, size_t size);
hpct_status hpct_broadcast_hear(hpct_broadcast *broadcast, uint8_t **data, size_t *size);

/* Every node gives `size` bytes; on node 0, which waits for them, `votes` is then the AND of all.
 * The other nodes do not wait. */
hpct_status hpct_broadcast_vote(hpct_broadcast *broadcast, uint8_t *votes, size_t size);

/* Node 0, from any thread: hands on the *block of `size` bytes (HPCT_BLOCK_BYTES at most, not 0)
 * and gives back another one to fill. Blocks handed on by one thread keep their order. */
uint8_t *hpct_broadcast_block(void); /* the first one, to be freed; NULL when out of memory */
hpct_status hpct_broadcast_put(hpct_broadcast *broadcast, uint8_t **block, size_t size);
hpct_status hpct_broadcast_put_end(hpct_broadcast *broadcast);

/* Every node, node 0 too: the next block in order; *size is 0 at the end. It stays valid until
 * hpct_broadcast_taken, which is for the oldest one that was taken; at most HPCT_BROADCAST_HELD may
 * be held. */
#define HPCT_BROADCAST_HELD 12
hpct_status hpct_broadcast_take(hpct_broadcast *broadcast, const uint8_t **data, size_t *size);
void hpct_broadcast_taken(hpct_broadcast *broadcast);

/* This node is done; returns when all are. */
hpct_status hpct_broadcast_finish(hpct_broadcast *broadcast);

/* This node fails, from any thread: tells all others. What failed first anywhere counts. */
void hpct_broadcast_fail(hpct_broadcast *broadcast, hpct_status status, const char *why);

/* HPCT_OK, or what failed first: "NODE: why", with the status that it had there. *elsewhere: it was
 * told by another node and is about another one. */
hpct_status hpct_broadcast_failure(hpct_broadcast *broadcast, bool *elsewhere);

/* Ends the thread, closes everything, frees. NULL is fine. */
void hpct_broadcast_close(hpct_broadcast *broadcast);

/* Bytes of blocks received and sent. */
void hpct_broadcast_traffic(hpct_broadcast *broadcast, uint64_t *received, uint64_t *sent);

#endif
