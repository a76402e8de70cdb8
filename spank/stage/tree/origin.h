/* spank/stage/tree/origin.h - identity of a file on a server, from its mount. */
#ifndef HPCT_SPANK_STAGE_TREE_ORIGIN_H
#define HPCT_SPANK_STAGE_TREE_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

/* Whether a mount's source (last but one field of mountinfo) names another machine: SERVER:PATH or
 * //SERVER/PATH. */
bool hpct_origin_is_remote(const char *source);

/* Identifies server and path of the file open as `fd`: equal on all nodes that mount it from that
 * server. 0 if the mount names no server (disks, file systems known by type only). */
uint64_t hpct_origin(int fd);

#endif
