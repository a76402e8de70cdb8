/* spank/parent.h - the folder in which the job directories lie: root's alone, on the node's own
 * disk. Knows nothing of jobs. */
#ifndef HPCT_SPANK_PARENT_H
#define HPCT_SPANK_PARENT_H

#include <hpctrain/status.h>
#include <stdbool.h>

/* Opens the folder that `path` names, for use below it through *out alone, after checking each
 * folder on the way: no link, root's, writable by root alone or (not the last) sticky as /tmp is.
 * It must not lie on a network file system, where the nodes would remove each other's directories
 * and wait for a server as root. With `create` its last part is made (0711) when it is missing;
 * without, a missing part gives *out = -1 and HPCT_OK. HPCT_ERR_CONFIG or HPCT_ERR_IO, naming the
 * path and what to do. */
hpct_status hpct_parent_open(const char *path, bool create, int *out);

/* The name of the network file system with this number (f_type of statfs), NULL for any other. */
const char *hpct_network_file_system(unsigned long type);

#endif
