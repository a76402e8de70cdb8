/* spank/folder.h - looking at and opening folders that a user may have prepared, as root: without
 * following a link, without entering a mount, without waiting for a file system of the user's. */
#ifndef HPCT_SPANK_FOLDER_H
#define HPCT_SPANK_FOLDER_H

#include <stdbool.h>

/* Opens the folder `name` in the open folder `at` for reading; -1 and errno when it cannot: ELOOP
 * or ENOTDIR for what is no folder, EXDEV when a file system is mounted on it. A FUSE mount, whose
 * owner might never answer, is not asked anything. */
int hpct_folder_open(int at, const char *name);

/* Where an ordinary user has mounted a FUSE file system on `name` (with fusermount, which needs no
 * rights but the folder's), it is unmounted, whether somebody uses it or not. True when there was
 * one. What root has mounted stays. The folder `at` must be one in which no user can put something
 * else at the name. */
bool hpct_folder_unmount(int at, const char *name);

#endif
