/* spank/stage/net/broadcast_take.h - every node: writes trees from the stream. */
#ifndef HPCT_SPANK_STAGE_NET_BROADCAST_TAKE_H
#define HPCT_SPANK_STAGE_NET_BROADCAST_TAKE_H

#include "spank/stage/net/broadcast.h"
#include "spank/stage/tree/writer.h"

/* Target of an entry's items. */
typedef struct hpct_take_target {
    uint32_t entry;
    int folder;       /* as of hpct_writer_open */
    const char *root; /* one name that does not exist yet; NULL: not needed on this node */
    hpct_writer_options options;
} hpct_take_target;

/* Takes blocks until the end of the stream. Compares each file with the hash sent with it. Returns
 * HPCT_ERR_DATA for an invalid stream, else errors of writer and broadcast. The caller owns what
 * was written, also on error. */
hpct_status hpct_take_all(hpct_broadcast *broadcast, const hpct_take_target *targets, int count,
                          hpct_report *report);

/* The same for one block, for tests: hpct_receiver_block until the end, then hpct_receiver_end. */
typedef struct hpct_receiver hpct_receiver;
hpct_receiver *hpct_receiver_new(const hpct_take_target *targets, int count, hpct_report *report);
hpct_status hpct_receiver_block(hpct_receiver *receiver, const uint8_t *data, size_t size);
hpct_status hpct_receiver_end(hpct_receiver *receiver); /* everything was received and finished */
void hpct_receiver_free(hpct_receiver *receiver);

#endif
