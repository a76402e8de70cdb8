/* spank/stage/copy.h - from a walk to a writer: several files, and several blocks of a large one,
 * at once.
 *
 * A file up to 128 KiB is read at once. A larger one goes block by block (see hash.h) the way that
 * the two file systems allow: sharing blocks (FICLONE), else copy_file_range, else read and write.
 * In every way each piece of 128 KiB is read from the source and hashed, and read from the copy and
 * hashed, right after it was written and so out of memory; the two hashes must agree. Where the
 * kernel makes the copy the data is read for that alone. */
#ifndef HPCT_STAGE_COPY_H
#define HPCT_STAGE_COPY_H

#include "spank/stage/content.h"
#include "spank/stage/report.h"
#include "spank/stage/walk.h"
#include "spank/stage/writer.h"

/* Makes all of `walk` with `writer`, which is then still to be finished. As many threads as there
 * are processors, four at most, and up to eight while they wait for the storage. */
hpct_status hpct_copy_tree(hpct_walk *walk, hpct_writer *writer, hpct_report *report);

#endif
