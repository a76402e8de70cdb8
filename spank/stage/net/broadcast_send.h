/* spank/stage/net/broadcast_send.h - node 0: reads sources, each byte once, several files in
 * parallel, into the stream. Uses its own threads. */
#ifndef HPCT_SPANK_STAGE_NET_BROADCAST_SEND_H
#define HPCT_SPANK_STAGE_NET_BROADCAST_SEND_H

#include "spank/stage/net/broadcast.h"
#include "spank/stage/tree/walk.h"

typedef struct hpct_send_source {
    uint32_t entry; /* index in the staging list */
    hpct_walk *walk;
    bool extract;     /* an archive: its contents are sent */
    const char *name; /* for messages */
} hpct_send_source;

typedef struct hpct_sender hpct_sender;

/* Starts sending. Copies `sources`; their walks must outlive the sender. Errors fail the broadcast
 * and are reported through it. */
hpct_status hpct_sender_start(hpct_broadcast *broadcast, const hpct_send_source *sources, int count,
                              hpct_report *report, hpct_sender **out);

/* Waits for the threads, which end soon after the stream or a failure. NULL is allowed. */
void hpct_sender_end(hpct_sender *sender);

#endif
