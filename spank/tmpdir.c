/* The job directory's life. The parent is walked to from "/" with every folder on the way checked,
 * and from then on only its descriptor is used. Removal is in remove.c. */
#include <config.h>

#include "spank/tmpdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/status.h"
#include "spank/remove.h"

#define NAME_SIZE 16
#define REMOVE_SECONDS 20
#define GONE ".gone-" /* what a job directory is called while it is being removed */

static void job_name(uint32_t job, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "%u", job);
}

char *hpct_tmpdir_path(const char *parent, uint32_t job)
{
    char name[NAME_SIZE];
    job_name(job, name);
    size_t size = strlen(parent) + 1 + strlen(name) + 1;
    char *path = malloc(size);
    if (path != NULL)
        snprintf(path, size, "%s/%s", parent, name);
    return path;
}

/* The owner whom everything above the job directories must have: root, or in tests, who runs them.
 */
static bool is_ours(const struct stat *info)
{
    return info->st_uid == geteuid();
}

static hpct_status check_folder(int fd, const char *path, bool last)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return hpct_fail(HPCT_ERR_IO, "%s: %s", path, strerror(errno));
    if (!is_ours(&info) && info.st_uid != 0)
        return hpct_fail(HPCT_ERR_CONFIG,
                         "%s belongs to user %u, not to root: remove it, or set tmpdir= in "
                         "plugstack.conf",
                         path, info.st_uid);
    bool open_to_all = (info.st_mode & (S_IWGRP | S_IWOTH)) != 0;
    if (open_to_all && (last || (info.st_mode & S_ISVTX) == 0))
        return hpct_fail(HPCT_ERR_CONFIG,
                         "%s can be written by others than root (mode %o): set its mode to 711, or "
                         "tmpdir= in plugstack.conf",
                         path, info.st_mode & 07777);
    return HPCT_OK;
}

/* Opens `path` part by part. With `create`, its last part is made when it is missing; without, a
 * missing part gives *out = -1 and HPCT_OK. */
static hpct_status open_parent(const char *path, bool create, int *out)
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
        int flags = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | (last ? O_RDONLY : O_PATH);
        int next = openat(at, part, flags);
        if (next < 0 && errno == ENOENT && last && create) {
            if (mkdirat(at, part, 0711) != 0 && errno != EEXIST) {
                status = hpct_fail(HPCT_ERR_IO, "%s cannot be made: %s", walked, strerror(errno));
                goto end;
            }
            next = openat(at, part, flags);
            struct stat info; /* the umask may have taken the x bits that users need to pass */
            if (next >= 0 && fstat(next, &info) == 0 && is_ours(&info))
                fchmod(next, 0711);
        }
        if (next < 0) {
            if (errno != ENOENT || create)
                status = hpct_fail(HPCT_ERR_CONFIG,
                                   "%s is no folder that can be used (%s): set "
                                   "tmpdir= in plugstack.conf to a real path",
                                   walked, strerror(errno));
            goto end;
        }
        close(at);
        at = next;
        status = check_folder(at, walked, last);
        if (status != HPCT_OK)
            goto end;
    }
    *out = at;
    return HPCT_OK;
end:
    close(at);
    return status;
}

/* 1 when `name` is the user's directory, 0 when it is not there, -1 when it is something else. */
static int look(int parent, const char *name, uid_t uid)
{
    struct stat info;
    if (fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : -1;
    return S_ISDIR(info.st_mode) && info.st_uid == uid ? 1 : -1;
}

/* Made under a name of its own and renamed when it is the user's: nobody ever sees it half made. */
static hpct_status make(int parent, const char *name, uid_t uid, gid_t gid, const char *path)
{
    char fresh[NAME_SIZE + 32];
    snprintf(fresh, sizeof fresh, ".new-%s-%d", name, (int) getpid());
    hpct_status status = HPCT_OK;
    int fd = -1;
    if (mkdirat(parent, fresh, 0700) != 0)
        return hpct_fail(HPCT_ERR_IO, "%s cannot be made: %s", path, strerror(errno));
    fd = openat(parent, fresh, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fchown(fd, uid, gid) != 0 || fchmod(fd, 0700) != 0) {
        status =
            hpct_fail(HPCT_ERR_IO, "%s cannot be given to user %u: %s", path, uid, strerror(errno));
        goto end;
    }
    if (renameat2(parent, fresh, parent, name, RENAME_NOREPLACE) == 0) {
        close(fd);
        return HPCT_OK;
    }
    if (errno == EINVAL && renameat(parent, fresh, parent, name) == 0) {
        close(fd);
        return HPCT_OK;
    }
    if (errno != EEXIST && errno != ENOTEMPTY)
        status = hpct_fail(HPCT_ERR_IO, "%s cannot be made: %s", path, strerror(errno));
end:
    if (fd >= 0)
        close(fd);
    unlinkat(parent, fresh, AT_REMOVEDIR);
    return status; /* HPCT_OK: another step was quicker; the caller looks again */
}

/* The name is taken away first: whatever becomes of the removal, it is free for the next run, and
 * hpct_tmpdir_sweep finds what is left. */
static hpct_status clear(int fd, const char *parent, const char *name)
{
    char gone[NAME_SIZE + 32], path[4096];
    snprintf(gone, sizeof gone, GONE "%s-%d", name, (int) getpid());
    if (renameat2(fd, name, fd, gone, RENAME_NOREPLACE) != 0) {
        if (errno == ENOENT)
            return HPCT_OK;
        snprintf(gone, sizeof gone, "%s", name); /* then under its own: it may be a mount */
    }
    snprintf(path, sizeof path, "%s/%s", parent, gone);
    return hpct_remove(fd, gone, path, REMOVE_SECONDS, false);
}

hpct_status hpct_tmpdir_make(const char *parent, uint32_t job, uid_t uid, gid_t gid)
{
    int fd = -1;
    char name[NAME_SIZE];
    char *path = hpct_tmpdir_path(parent, job);
    if (path == NULL)
        return hpct_fail_memory(0);
    job_name(job, name);
    hpct_status status = open_parent(parent, true, &fd);
    for (int tries = 0; status == HPCT_OK; tries++) {
        int found = look(fd, name, uid);
        if (found == 1)
            break;
        if (tries == 3)
            status = hpct_fail(HPCT_ERR_IO, "%s is in the way and cannot be removed", path);
        else if (found == 0)
            status = make(fd, name, uid, gid, path);
        else
            status = clear(fd, parent, name);
    }
    if (fd >= 0)
        close(fd);
    free(path);
    return status;
}

hpct_status hpct_tmpdir_remove(const char *parent, uint32_t job)
{
    int fd = -1;
    char name[NAME_SIZE];
    hpct_status status = open_parent(parent, false, &fd);
    if (status != HPCT_OK || fd < 0)
        return status;
    job_name(job, name);
    status = clear(fd, parent, name);
    close(fd);
    return status;
}

void hpct_tmpdir_sweep(const char *parent)
{
    int fd = -1;
    time_t end = time(NULL) + REMOVE_SECONDS;
    if (open_parent(parent, false, &fd) != HPCT_OK || fd < 0)
        return;
    DIR *folder = fdopendir(fd);
    if (folder == NULL) {
        close(fd);
        return;
    }
    for (struct dirent *entry; time(NULL) < end && (entry = readdir(folder)) != NULL;) {
        if (strncmp(entry->d_name, GONE, strlen(GONE)) == 0)
            hpct_remove(fd, entry->d_name, entry->d_name, (int) (end - time(NULL)), true);
    }
    closedir(folder);
}
