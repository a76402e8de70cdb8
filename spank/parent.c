/* Opens the parent component by component from "/". */
#include <config.h>

#include "spank/parent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/status.h"

/* Owned by root, or in tests by their user. */
static bool is_ours(const struct stat *info)
{
    return info->st_uid == geteuid() || info->st_uid == 0;
}

static hpct_status check_folder(int fd, const char *path, bool last)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return hpct_fail(HPCT_ERR_IO, "%s: %s", path, strerror(errno));
    if (!is_ours(&info))
        return hpct_fail(HPCT_ERR_CONFIG, "%s belongs to user %u, not to root: %s", path,
                         info.st_uid,
                         last ? "remove it, or set tmpdir= in plugstack.conf"
                              : "the administrator must set tmpdir= in plugstack.conf to a folder "
                                "elsewhere, and where Slurm gives each job folders of its own "
                                "(JobContainerType, NamespaceType) to none in these");
    bool open_to_all = (info.st_mode & (S_IWGRP | S_IWOTH)) != 0;
    if (open_to_all && (last || (info.st_mode & S_ISVTX) == 0))
        return hpct_fail(HPCT_ERR_CONFIG,
                         "%s can be written by others than root (mode %o): set its mode to 711, or "
                         "tmpdir= in plugstack.conf",
                         path, info.st_mode & 07777);
    return HPCT_OK;
}

/* Magic numbers from the file systems' sources; most are in linux/magic.h and statfs(2) as well.
 * FUSE is included: mounted by root, it is nearly always a network file system (GlusterFS, sshfs,
 * object stores). */
const char *hpct_spank_network_file_system(unsigned long type)
{
    static const struct {
        unsigned long type;
        const char *name;
    } known[] = {
        {0x6969, "NFS"},        {0x0bd00bd0, "Lustre"},   {0x47504653, "GPFS"},
        {0x19830326, "BeeGFS"}, {0x00c36400, "CephFS"},   {0xff534d42, "CIFS"},
        {0xfe534d42, "SMB"},    {0x517b, "SMB"},          {0x65735546, "FUSE"},
        {0x01021997, "9P"},     {0x5346414f, "AFS"},      {0x6b414653, "AFS"},
        {0x73757245, "Coda"},   {0x01161970, "GFS2"},     {0x7461636f, "OCFS2"},
        {0xaad7aaea, "PanFS"},  {0x20030528, "OrangeFS"}, {0x564c, "NCP"},
        {0x786f4256, "vboxsf"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].type == type)
            return known[i].name;
    }
    return NULL;
}

static hpct_status check_file_system(int fd, const char *path)
{
    struct statfs info;
    if (fstatfs(fd, &info) != 0)
        return hpct_fail(HPCT_ERR_IO, "%s: %s", path, strerror(errno));
    const char *name = hpct_spank_network_file_system((unsigned long) info.f_type & 0xfffffffful);
    if (name == NULL)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_CONFIG,
                     "%s lies on %s, a network file system: set tmpdir= in plugstack.conf to a "
                     "folder on the node's own disk or in its memory",
                     path, name);
}

/* Opens one component: -1 and errno on error. */
static int enter(int at, const char *part, bool last, bool create)
{
    int flags = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | (last ? O_RDONLY : O_PATH);
    int next = openat(at, part, flags);
    if (next < 0 && errno == EACCES && !create) /* ordinary users may have x only */
        next = openat(at, part, flags | O_PATH);
    if (next >= 0 || errno != ENOENT || !last || !create)
        return next;
    bool made = mkdirat(at, part, 0711) == 0;
    if (!made && errno != EEXIST)
        return -1;
    next = openat(at, part, flags);
    if (next >= 0 && made)
        fchmod(next, 0711); /* the umask may have cleared the x bits that users need */
    return next;
}

hpct_status hpct_spank_parent_open(const char *path, bool create, int *out)
{
    hpct_status status = HPCT_OK;
    char walked[4096] = "", part[256];
    int at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    *out = -1;
    if (at < 0)
        return hpct_fail(HPCT_ERR_IO, "/: %s", strerror(errno));
    for (const char *p = path; *p == '/';) {
        size_t size = strcspn(++p, "/");
        bool last = p[size] == '\0';
        if (size >= sizeof part || strlen(path) >= sizeof walked) {
            status = hpct_fail(HPCT_ERR_CONFIG, "%.200s: the name is too long", path);
            goto end;
        }
        memcpy(part, p, size);
        part[size] = '\0';
        p += size;
        memcpy(walked, path, (size_t) (p - path));
        walked[p - path] = '\0';
        int next = enter(at, part, last, create);
        if (next < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)) {
            if (errno != ENOENT || create)
                status = hpct_fail(HPCT_ERR_CONFIG,
                                   "%s is not a folder that can be used (%s): set "
                                   "tmpdir= in plugstack.conf to a real path",
                                   walked, strerror(errno));
            goto end;
        }
        if (next < 0) {
            status = hpct_fail(HPCT_ERR_IO, "%s cannot be %s: %s", walked,
                               last && create ? "made or opened" : "opened", strerror(errno));
            goto end;
        }
        close(at);
        at = next;
        status = check_folder(at, walked, last);
        if (status == HPCT_OK && last)
            status = check_file_system(at, walked);
        if (status != HPCT_OK)
            goto end;
    }
    *out = at;
    return HPCT_OK;
end:
    close(at);
    return status;
}
