/* spank/stage/tree/identity.h - whether two nodes see the same file or folder. */
#ifndef HPCT_SPANK_STAGE_TREE_IDENTITY_H
#define HPCT_SPANK_STAGE_TREE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* Inode number, size and both times: equal on all nodes for a file or folder of a shared file
 * system, different for copies on local disks (programs cannot set the change time). Where each
 * node numbers a server's inodes itself (FUSE: sshfs), a file is the same if path, server, size and
 * modification time are. */
typedef struct hpct_stage_identity {
    uint64_t inode[6];
    uint64_t origin; /* server and path; 0 if the mount names no server (disks, file systems known
                        by type only) */
} hpct_stage_identity;

/* Of the file open as `fd`; false if it cannot be read, with errno. */
bool hpct_stage_identity_read(hpct_stage_identity *identity, int fd);
void hpct_stage_identity_set(hpct_stage_identity *identity, const struct stat *info,
                             uint64_t origin);

bool hpct_stage_identity_same(const hpct_stage_identity *one, const hpct_stage_identity *other);

/* Whether a mount's source (last but one field of mountinfo) names another machine: SERVER:PATH or
 * //SERVER/PATH. */
bool hpct_stage_origin_is_remote(const char *source);

#endif
