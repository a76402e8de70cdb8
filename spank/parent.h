/* spank/parent.h - the parent directory of the job directories: owned by root, on a local disk.
 * Independent of jobs. */
#ifndef HPCT_SPANK_PARENT_H
#define HPCT_SPANK_PARENT_H

#include <hpctrain/status.h>
#include <stdbool.h>

/* Opens the folder `path` for use through *out only, after checking each component: no link, owned
 * by root, writable by root only or (except the last) sticky as /tmp. A network file system is an
 * error: nodes would remove each other's directories, and root would wait for a server. With
 * `create` the last component is created (0711) if missing; without, a missing component gives *out
 * = -1 and HPCT_OK. Returns HPCT_ERR_CONFIG or HPCT_ERR_IO, naming the path and what to do. */
hpct_status hpct_spank_parent_open(const char *path, bool create, int *out);

/* The name of the network file system with this f_type of statfs; NULL for others. */
const char *hpct_spank_network_file_system(unsigned long type);

#endif
