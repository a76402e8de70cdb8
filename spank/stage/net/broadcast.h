/* spank/stage/net/broadcast.h - broadcast from node 0 to all nodes: blocks along two trees over
 * TCP, and short control messages (letters) along one of them. Offers connecting, letters to all, a
 * vote of all, the stream, and propagation of failures. Independent of files.
 *
 * One thread does all network work and never blocks; the caller's threads wait for it here. Every
 * wait ends if a node fails, is lost, silent or late, or a signal arrives; the message names the
 * node.
 *
 * Order, the same on all nodes: open, connect, any number of letters and votes, the stream, finish,
 * close. After a failure: fail (if it was this node's), close. */
#ifndef HPCT_SPANK_STAGE_NET_BROADCAST_H
#define HPCT_SPANK_STAGE_NET_BROADCAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spank/stage/net/broadcast_link.h"
#include "spank/stage/net/broadcast_team.h"
#include "spank/stage/tree/report.h"

typedef struct hpct_stage_broadcast hpct_stage_broadcast;

/* Listens, and starts to connect in the background. `team` and `report` must outlive it. */
hpct_status hpct_stage_broadcast_open(const hpct_stage_team *team, hpct_stage_report *report,
                                      hpct_stage_broadcast **out);

/* Waits until this node's neighbours in the trees are connected, printing the missing ones. Returns
 * HPCT_ERR_PEER naming the missing node. */
hpct_status hpct_stage_broadcast_connect(hpct_stage_broadcast *broadcast);

/* From node 0 to all others, which get it by receive; *data is to be freed. At most
 * HPCT_STAGE_LETTER_BYTES bytes. */
hpct_status hpct_stage_broadcast_send(hpct_stage_broadcast *broadcast, const void *data,
                                      size_t size);
hpct_status hpct_stage_broadcast_receive(hpct_stage_broadcast *broadcast, uint8_t **data,
                                         size_t *size);

/* Every node passes `size` bytes; node 0 waits and gets the AND of all in `votes`. Others do not
 * wait. */
hpct_status hpct_stage_broadcast_vote(hpct_stage_broadcast *broadcast, uint8_t *votes, size_t size);

/* Node 0, from any thread: sends *block with `size` bytes (1 to HPCT_STAGE_BLOCK_BYTES) and returns
 * another one to fill. Blocks of one thread stay in order. */
uint8_t *hpct_stage_broadcast_block(void); /* the first one, to be freed; NULL when out of memory */
hpct_status hpct_stage_broadcast_push(hpct_stage_broadcast *broadcast, uint8_t **block,
                                      size_t size);
hpct_status hpct_stage_broadcast_push_end(hpct_stage_broadcast *broadcast);

/* Every node, node 0 included: the next block in order; *size is 0 at the end. Valid until
 * hpct_stage_broadcast_release, which releases the oldest; at most HPCT_STAGE_BROADCAST_HELD may be
 * held. */
#define HPCT_STAGE_BROADCAST_HELD 12
hpct_status hpct_stage_broadcast_pop(hpct_stage_broadcast *broadcast, const uint8_t **data,
                                     size_t *size);
void hpct_stage_broadcast_release(hpct_stage_broadcast *broadcast);

/* Marks this node as done; returns when all nodes are. */
hpct_status hpct_stage_broadcast_finish(hpct_stage_broadcast *broadcast);

/* Reports this node's failure to all, from any thread. The first failure anywhere counts. */
void hpct_stage_broadcast_fail(hpct_stage_broadcast *broadcast, hpct_status status,
                               const char *why);

/* HPCT_OK, or the first failure, "NODE: why", with its status. *elsewhere: on another node, and
 * reported there. */
hpct_status hpct_stage_broadcast_failure(hpct_stage_broadcast *broadcast, bool *elsewhere);

/* Ends the thread, closes connections, frees. NULL is allowed. */
void hpct_stage_broadcast_close(hpct_stage_broadcast *broadcast);

/* Bytes of blocks received and sent. */
void hpct_stage_broadcast_traffic(hpct_stage_broadcast *broadcast, uint64_t *received,
                                  uint64_t *sent);

#endif
