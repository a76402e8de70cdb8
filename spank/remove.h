/* spank/remove.h - removing a directory tree that its owner may be changing. */
#ifndef HPCT_SPANK_REMOVE_H
#define HPCT_SPANK_REMOVE_H

#include <hpctrain/status.h>
#include <stdbool.h>

/* Removes `name` in the open directory `parent` and everything below it, never following a link,
 * never entering what is mounted there, at any depth. The directory is first taken from its owner,
 * so that no path leads into it any more; processes already inside may still add to it, hence the
 * deadline in `seconds`. With `once` it does not try again what did not go. `path` is for messages.
 * HPCT_OK also when there is nothing; HPCT_ERR_IO otherwise. */
hpct_status hpct_remove(int parent, const char *name, const char *path, int seconds, bool once);

#endif
