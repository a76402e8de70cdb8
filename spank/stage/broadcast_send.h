/* spank/stage/broadcast_send.h - node 0's part: reads sources, each byte once, several files at a
 * time, and puts them into the stream. Works in threads of its own. */
#ifndef HPCT_STAGE_BROADCAST_SEND_H
#define HPCT_STAGE_BROADCAST_SEND_H

#include "spank/stage/broadcast.h"
#include "spank/stage/walk.h"

typedef struct hpct_send_source {
    uint32_t entry; /* its number in the list of what is staged */
    hpct_walk *walk;
    bool extract;     /* it is an archive: its content is sent */
    const char *name; /* for messages */
} hpct_send_source;

typedef struct hpct_sender hpct_sender;

/* Begins to send; `sources` are copied, their walks must live on. What goes wrong fails the
 * broadcast, and is found there. */
hpct_status hpct_sender_start(hpct_broadcast *broadcast, const hpct_send_source *sources, int count,
                              hpct_report *report, hpct_sender **out);

/* Waits for the threads to end, which they do soon after the end of the stream or a failure. NULL
 * is fine. */
void hpct_sender_end(hpct_sender *sender);

#endif
