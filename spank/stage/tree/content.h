/* spank/stage/tree/content.h - copies one file's content in the fastest way both file systems
 * support, and compares two. */
#ifndef HPCT_SPANK_STAGE_TREE_CONTENT_H
#define HPCT_SPANK_STAGE_TREE_CONTENT_H

#include <sys/stat.h>

#include "spank/stage/tree/report.h"

/* Copies all of `src` (a regular file with fstat `info`) to the empty file `dst`: reflink
 * (FICLONE), else copy_file_range, else read and write. Keeps holes, mode and times. Returns
 * HPCT_ERR_NO_INPUT or HPCT_ERR_IO naming `name`; HPCT_ERR_IO also if the source changed meanwhile.
 */
hpct_status hpct_stage_copy_content(int src, const struct stat *info, int dst, const char *name,
                                    hpct_stage_report *report);

/* Whether two files have the same bytes; false after a read error or a request to end. Keeps their
 * file offsets. */
bool hpct_stage_same_content(int a, int b, hpct_stage_report *report);

#endif
