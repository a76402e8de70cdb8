/* spank/stage/tree/extract.h - unpacks an archive while it is read: tar (also .gz, .zst, .xz, .bz2)
 * and zip. The archive is untrusted: absolute names, names or links that leave the folder, devices,
 * pipes and sockets are errors, as are damage and a missing end. */
#ifndef HPCT_SPANK_STAGE_TREE_EXTRACT_H
#define HPCT_SPANK_STAGE_TREE_EXTRACT_H

#include "spank/stage/tree/item.h"
#include "spank/stage/tree/report.h"
#include "spank/stage/tree/unpack.h"
#include "spank/stage/tree/walk.h"

#define HPCT_STAGE_EXTRACT_SMALL (128u << 10)

/* Receives an archive's items, from one thread in the archive's order; the first is the root, a
 * folder. An error of a callback ends reading with its status. */
typedef struct hpct_stage_extract_output {
    void *context;
    hpct_status (*add)(void *context, const hpct_stage_item *item); /* all but files */
    hpct_status (*whole)(void *context, const hpct_stage_item *item,
                         const void *content);                           /* a small
                                              file: HPCT_STAGE_EXTRACT_SMALL at most */
    hpct_status (*begin)(void *context, const hpct_stage_item *item);    /* a larger file, then */
    hpct_status (*data)(void *context, const void *data, uint64_t size); /* NULL data: a hole */
    hpct_status (*end)(void *context); /* not called after an error */
} hpct_stage_extract_output;

/* Unpacks an archive from `from`. `when`: times of the root, as archives may lack them. A zip whose
 * sizes are at its end must be a file: use hpct_stage_extract_file. Returns HPCT_ERR_DATA naming
 * archive and item. */
hpct_status hpct_stage_extract(const hpct_stage_bytes_source *from, const char *name,
                               const struct timespec when[2],
                               const hpct_stage_extract_output *output);

/* Unpacks the single file of `walk`, called `name`. Returns HPCT_ERR_IO if it changes meanwhile. */
hpct_status hpct_stage_extract_file(hpct_stage_walk *walk, const char *name,
                                    const hpct_stage_extract_output *output,
                                    hpct_stage_report *report);

#endif
