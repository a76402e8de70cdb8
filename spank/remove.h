/* spank/remove.h - removing a directory tree that its owner may be changing. */
#ifndef HPCT_SPANK_REMOVE_H
#define HPCT_SPANK_REMOVE_H

#include <hpctrain/status.h>

/* Removes `name` in the open directory `parent` and everything below it, never following a link,
 * never entering another file system, at any depth. The directory is first taken from its owner, so
 * that no path leads into it any more; processes already inside may still add to it, hence the
 * deadline. `path` is for messages. HPCT_OK also when there is nothing; HPCT_ERR_IO otherwise. */
hpct_status hpct_remove(int parent, const char *name, const char *path);

#endif
