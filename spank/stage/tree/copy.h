/* spank/stage/tree/copy.h - from a walk to a writer: several files, and several blocks of a large
 * one, in parallel.
 *
 * A file up to 128 KiB is read at once. A larger one is copied block by block (hash.h): by reflink
 * (FICLONE), else copy_file_range, else read and write. In each case every piece of 128 KiB is read
 * and hashed from the source, and from the copy while it is still cached; the hashes must agree. */
#ifndef HPCT_SPANK_STAGE_TREE_COPY_H
#define HPCT_SPANK_STAGE_TREE_COPY_H

#include "spank/stage/tree/content.h"
#include "spank/stage/tree/report.h"
#include "spank/stage/tree/walk.h"
#include "spank/stage/tree/writer.h"

/* Copies all of `walk` with `writer`; the caller finishes the writer. Uses as many threads as
 * cores, at most four, up to eight if they wait for storage. */
hpct_status hpct_stage_copy_tree(hpct_stage_walk *walk, hpct_stage_writer *writer,
                                 hpct_stage_report *report);

#endif
