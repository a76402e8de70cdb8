/* spank/stage/out/out_links.h - hard links within a folder that is copied out: remembers the copy
 * of each file's first name. Touches no file. */
#ifndef HPCT_SPANK_STAGE_OUT_OUT_LINKS_H
#define HPCT_SPANK_STAGE_OUT_OUT_LINKS_H

#include <hpctrain/status.h>
#include <sys/stat.h>

typedef struct hpct_stage_out_links hpct_stage_out_links;

hpct_stage_out_links *hpct_stage_out_links_new(void);        /* NULL when out of memory */
void hpct_stage_out_links_free(hpct_stage_out_links *links); /* NULL is allowed */

/* Records that the file (its fstat: info) is copied to `path`. *first is the path recorded before,
 * owned by the table; NULL for its first name. */
hpct_status hpct_stage_out_links_note(hpct_stage_out_links *links, const struct stat *info,
                                      const char *path, const char **first);

#endif
