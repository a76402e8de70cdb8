/* spank/stage/origin.h - which file of which server this is, as far as its mount tells. */
#ifndef HPCT_STAGE_ORIGIN_H
#define HPCT_STAGE_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

/* Whether a mount's source, the last but one field of mountinfo, names a server that is another
 * machine: SERVER:PATH or //SERVER/PATH. */
bool hpct_origin_is_remote(const char *source);

/* Stands for the server and the path there of what is open as `fd`: the same on all nodes that
 * mount it from that server. 0 when its mount names none (a disk, a file system that is known by
 * its type alone). */
uint64_t hpct_origin(int fd);

#endif
