/* base/links.h - targets of symbolic links. */
#ifndef HPCT_BASE_LINKS_H
#define HPCT_BASE_LINKS_H

/* Resolves the links at the end of `path`, whether the target exists or not; for a cycle returns
 * one of its links. The caller frees the result; NULL if out of memory. */
char *hpct_links_follow(const char *path);

#endif
