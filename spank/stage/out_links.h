/* spank/stage/out_links.h - files with several names (hard links) in a folder that is copied out:
 * where each one's first name went, so that the others become names of that copy. Touches no file.
 */
#ifndef HPCT_STAGE_OUT_LINKS_H
#define HPCT_STAGE_OUT_LINKS_H

#include <hpctrain/status.h>
#include <sys/stat.h>

typedef struct hpct_out_links hpct_out_links;

hpct_out_links *hpct_out_links_new(void);        /* NULL when out of memory */
void hpct_out_links_free(hpct_out_links *links); /* NULL is fine */

/* Notes that the file (its fstat: info) goes to `path`. *first becomes the path that was noted for
 * it before, which stays the links' own; NULL when this is its first name. */
hpct_status hpct_out_links_note(hpct_out_links *links, const struct stat *info, const char *path,
                                const char **first);

#endif
