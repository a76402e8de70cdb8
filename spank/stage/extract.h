/* spank/stage/extract.h - unpacking an archive while it is read: tar (also .gz, .zst, .xz, .bz2)
 * and zip. Trusts nothing in it: names that lead out, absolute names, links out, devices, pipes and
 * sockets are errors, as are damage, a missing end, and what the taker refuses. */
#ifndef HPCT_STAGE_EXTRACT_H
#define HPCT_STAGE_EXTRACT_H

#include "spank/stage/report.h"
#include "spank/stage/taker.h"
#include "spank/stage/unpack.h"
#include "spank/stage/walk.h"

/* Unpacks an archive whose bytes come from `from`. `when`: times of the root, which archives need
 * not hold. A zip whose sizes are known only at its end must be a file: hpct_extract_file.
 * HPCT_ERR_DATA naming archive and item. */
hpct_status hpct_extract(const hpct_bytes_source *from, const char *name,
                         const struct timespec when[2], const hpct_taker *taker);

/* Unpacks the one file that `walk` lists, named `name`. HPCT_ERR_IO when it changes meanwhile. */
hpct_status hpct_extract_file(hpct_walk *walk, const char *name, const hpct_taker *taker,
                              hpct_report *report);

#endif
