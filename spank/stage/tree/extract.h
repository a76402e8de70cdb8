/* spank/stage/tree/extract.h - unpacks an archive while it is read: tar (also .gz, .zst, .xz, .bz2)
 * and zip. The archive is untrusted: absolute names, names or links that leave the folder, devices,
 * pipes and sockets are errors, as are damage and a missing end. */
#ifndef HPCT_SPANK_STAGE_TREE_EXTRACT_H
#define HPCT_SPANK_STAGE_TREE_EXTRACT_H

#include "spank/stage/tree/report.h"
#include "spank/stage/tree/taker.h"
#include "spank/stage/tree/unpack.h"
#include "spank/stage/tree/walk.h"

/* Unpacks an archive from `from`. `when`: times of the root, as archives may lack them. A zip whose
 * sizes are at its end must be a file: use hpct_extract_file. Returns HPCT_ERR_DATA naming archive
 * and item. */
hpct_status hpct_extract(const hpct_bytes_source *from, const char *name,
                         const struct timespec when[2], const hpct_taker *taker);

/* Unpacks the single file of `walk`, called `name`. Returns HPCT_ERR_IO if it changes meanwhile. */
hpct_status hpct_extract_file(hpct_walk *walk, const char *name, const hpct_taker *taker,
                              hpct_report *report);

#endif
