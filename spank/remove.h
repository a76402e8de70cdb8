/* spank/remove.h - removal of a directory tree that its owner may be changing. */
#ifndef HPCT_SPANK_REMOVE_H
#define HPCT_SPANK_REMOVE_H

#include <hpctrain/status.h>

/* Removes `name` in root's open directory `parent`, and everything below. The owner of each
 * directory is changed before it is read: afterwards no process of the user, even with an open
 * descriptor, can add, remove or replace entries, so that only the tree is touched and removal
 * terminates. Follows no link and enters no mount; a user's FUSE mounts are unmounted. Stops after
 * `seconds`. `path` is for messages. Returns HPCT_OK also if there is nothing; HPCT_ERR_IO naming
 * what remains. */
hpct_status hpct_spank_remove(int parent, const char *name, const char *path, int seconds);

#endif
