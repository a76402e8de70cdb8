/* spank/stage/net/unpacker.h - writes trees from blocks: of the stream, on every
 * node, or of an archive that this node unpacks alone. */
#ifndef HPCT_SPANK_STAGE_NET_UNPACKER_H
#define HPCT_SPANK_STAGE_NET_UNPACKER_H

#include "spank/stage/net/broadcast.h"
#include "spank/stage/tree/walk.h"
#include "spank/stage/tree/writer.h"

/* Target of an entry's items. */
typedef struct hpct_stage_unpacker_target {
    uint32_t entry;
    int folder;       /* as of hpct_stage_writer_open */
    const char *root; /* one name that does not exist yet; NULL: not needed on this node */
    hpct_stage_writer_options options;
} hpct_stage_unpacker_target;

/* Unpacks blocks until the end of the stream. Compares each file with the hash sent with it.
 * Returns HPCT_ERR_DATA for an invalid stream, else errors of writer and broadcast. The caller owns
 * what was written, also on error. */
hpct_status hpct_stage_unpacker_run(hpct_stage_broadcast *broadcast,
                                    const hpct_stage_unpacker_target *targets, int count,
                                    hpct_stage_report *report);

/* Unpacks an archive, the single file of `walk` called `name`, on this node alone. */
hpct_status hpct_stage_unpacker_archive(const hpct_stage_unpacker_target *target,
                                        hpct_stage_walk *walk, const char *name,
                                        hpct_stage_report *report);

/* One block after the other, for tests: hpct_stage_unpacker_block until the end, then
 * hpct_stage_unpacker_end.
 */
typedef struct hpct_stage_unpacker hpct_stage_unpacker;
hpct_stage_unpacker *hpct_stage_unpacker_new(const hpct_stage_unpacker_target *targets, int count,
                                             hpct_stage_report *report);
hpct_status hpct_stage_unpacker_block(hpct_stage_unpacker *unpacker, const uint8_t *data,
                                      size_t size);
hpct_status
hpct_stage_unpacker_end(hpct_stage_unpacker *unpacker); /* everything was received and finished */
void hpct_stage_unpacker_free(hpct_stage_unpacker *unpacker);

#endif
