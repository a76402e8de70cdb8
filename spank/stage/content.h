/* spank/stage/content.h - the content of one file, the fastest way that the two file systems allow.
 */
#ifndef HPCT_STAGE_CONTENT_H
#define HPCT_STAGE_CONTENT_H

#include <sys/stat.h>

#include "spank/stage/report.h"

/* Copies all of `src` (a plain file whose fstat is `info`) to the empty file `dst`: sharing blocks
 * (FICLONE), else copy_file_range, else read and write. Holes stay holes; mode and times follow.
 * HPCT_ERR_NO_INPUT or HPCT_ERR_IO naming `name`; HPCT_ERR_IO also when the source changed
 * meanwhile. */
hpct_status hpct_copy_content(int src, const struct stat *info, int dst, const char *name,
                              hpct_report *report);

#endif
