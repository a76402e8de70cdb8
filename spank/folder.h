/* spank/folder.h - opens folders under a user's control, as root: without following links, entering
 * mounts, or waiting for a user's file system. */
#ifndef HPCT_SPANK_FOLDER_H
#define HPCT_SPANK_FOLDER_H

#include <stdbool.h>

/* Opens the folder `name` in `at` for reading; -1 and errno: ELOOP or ENOTDIR if it is not a
 * folder, EXDEV if a file system is mounted on it. A FUSE mount, which might not respond, is not
 * accessed.
 */
int hpct_spank_folder_open(int at, const char *name);

/* Unmounts a FUSE file system mounted on `name` by an ordinary user (with fusermount), even if in
 * use. Returns true if there was one. Root's mounts stay. No user may be able to replace `name` in
 * `at`. */
bool hpct_spank_folder_unmount(int at, const char *name);

#endif
