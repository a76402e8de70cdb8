/* spank/stage/broadcast_take.h - every node's part: makes trees of what comes out of the stream. */
#ifndef HPCT_STAGE_BROADCAST_TAKE_H
#define HPCT_STAGE_BROADCAST_TAKE_H

#include "spank/stage/broadcast.h"
#include "spank/stage/writer.h"

/* Where the items of an entry go. */
typedef struct hpct_take_target {
    uint32_t entry;
    int folder;       /* as of hpct_writer_open */
    const char *root; /* one name, which does not exist yet; NULL: this node needs none of it */
    hpct_writer_options options;
} hpct_take_target;

/* Until the end of the stream. The content of each file is compared with the hash that came with
 * it. HPCT_ERR_DATA when the stream has what cannot be meant; otherwise the errors of the writer
 * and of the broadcast. What was made is left to the caller, also after an error. */
hpct_status hpct_take_all(hpct_broadcast *broadcast, const hpct_take_target *targets, int count,
                          hpct_report *report);

/* The same of one block, for tests: hpct_receiver_block until the end, then hpct_receiver_end. */
typedef struct hpct_receiver hpct_receiver;
hpct_receiver *hpct_receiver_new(const hpct_take_target *targets, int count, hpct_report *report);
hpct_status hpct_receiver_block(hpct_receiver *receiver, const uint8_t *data, size_t size);
hpct_status hpct_receiver_end(hpct_receiver *receiver); /* everything has come and is finished */
void hpct_receiver_free(hpct_receiver *receiver);

#endif
