/* Modes, owners and ACLs of a file and of the folders above it. */
#include "agent/report/readers.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#define READ 04
#define SEARCH 01
#define ACL "system.posix_acl_access"

/* An ACL may exclude anybody: only the owner is sure. Members of another group are others. */
static mode_t allowed(const char *path, mode_t access, gid_t group)
{
    struct stat info;
    if (stat(path, &info) != 0 || getxattr(path, ACL, NULL, 0) > 0)
        return 0;
    bool others = (info.st_mode & access) != 0;
    bool members = info.st_gid == group ? (info.st_mode & access << 3) != 0 : others;
    return (members ? 0070 : 0) | (others ? 0007 : 0);
}

mode_t hpct_report_readers(const char *path, gid_t group)
{
    char whole[PATH_MAX];
    if (realpath(path, whole) == NULL)
        return 0;
    mode_t mode = 0077 & allowed(whole, READ, group);
    for (char *slash; (slash = strrchr(whole, '/')) != NULL && slash != whole;) {
        *slash = '\0';
        mode &= allowed(whole, SEARCH, group);
    }
    return mode & allowed("/", SEARCH, group);
}
