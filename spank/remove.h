/* spank/remove.h - removing a directory tree that its owner may be changing. */
#ifndef HPCT_SPANK_REMOVE_H
#define HPCT_SPANK_REMOVE_H

#include <hpctrain/status.h>

/* Removes `name` in the open directory `parent`, which is root's, and everything below it. Each
 * directory is taken from its owner before it is looked into: from then on no process of his, not
 * even one that has it open, can add to it, take something out of it, or put a link in a name's
 * place. So nothing but what is in the tree is ever touched, and the removal comes to an end. No
 * link is followed and no mount entered; a user's own FUSE mounts are unmounted. Stops after
 * `seconds`. `path` is for messages.
 * HPCT_OK also when there is nothing; HPCT_ERR_IO otherwise, naming what would not go. */
hpct_status hpct_remove(int parent, const char *name, const char *path, int seconds);

#endif
