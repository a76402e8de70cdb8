/* spank/stage/net/reader.h - node 0: reads sources, each byte once, several files in
 * parallel, into the stream. Uses its own threads. */
#ifndef HPCT_SPANK_STAGE_NET_READER_H
#define HPCT_SPANK_STAGE_NET_READER_H

#include "spank/stage/net/broadcast.h"
#include "spank/stage/tree/walk.h"

typedef struct hpct_stage_reader_source {
    uint32_t entry; /* index in the staging list */
    hpct_stage_walk *walk;
    bool extract;     /* an archive: its contents are sent */
    const char *name; /* for messages */
} hpct_stage_reader_source;

typedef struct hpct_stage_reader hpct_stage_reader;

/* Starts reading and sending. Copies `sources`; their walks must outlive the reader. Errors fail
 * the broadcast and are reported through it. */
hpct_status hpct_stage_reader_start(hpct_stage_broadcast *broadcast,
                                    const hpct_stage_reader_source *sources, int count,
                                    hpct_stage_report *report, hpct_stage_reader **out);

/* Waits for the threads, which end soon after the stream or a failure. NULL is allowed. */
void hpct_stage_reader_end(hpct_stage_reader *reader);

#endif
