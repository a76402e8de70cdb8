/* Output files: made beside their name, synced, renamed. */
#include "nn/output.h"

#include "base/status.h"
#include "nn/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define ATTEMPTS 2
#define MAX_LINKS 40
#define SUFFIX_MAX 32 /* of a temporary file's name */

/* ---- where an output goes ---- */

/* The name that symbolic links lead to, whether it is there or not; NULL without memory. */
static char *follow(const char *path)
{
    char link[PATH_MAX], *at = strdup(path);
    for (int i = 0; at != NULL && i < MAX_LINKS; i++) {
        ssize_t length = readlink(at, link, sizeof link - 1);
        if (length < 0)
            break;
        link[length] = '\0';
        const char *slash = strrchr(at, '/');
        char *next = NULL;
        if (link[0] == '/' || slash == NULL)
            next = strdup(link);
        else if (asprintf(&next, "%.*s/%s", (int) (slash - at), at, link) < 0)
            next = NULL;
        free(at);
        at = next;
    }
    return at;
}

/* Where the last part of a name begins, and how much of it a temporary file's name has. */
static const char *base_of(const char *target, int *length)
{
    const char *slash = strrchr(target, '/'), *base = slash != NULL ? slash + 1 : target;
    size_t all = strlen(base);
    *length = (int) (all < NAME_MAX - SUFFIX_MAX ? all : NAME_MAX - SUFFIX_MAX);
    return base;
}

static hpct_status folder_of(char **folder, const char *path)
{
    char *copy = strdup(path);
    *folder = copy != NULL ? strdup(dirname(copy)) : NULL;
    free(copy);
    return *folder != NULL ? HPCT_OK : hpct_fail_memory(strlen(path) + 1);
}

/* The descriptor, 1 or 2, through which this program prints into that file; 0: none. */
static int own_output(const struct stat *info)
{
    struct stat own;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fstat(fd, &own) == 0 && own.st_dev == info->st_dev && own.st_ino == info->st_ino)
            return fd;
    }
    return 0;
}

/* In a folder like /tmp only its owner, and the folder's, may replace a file. */
static bool is_anothers(const char *target, const struct stat *info)
{
    struct stat folder_info;
    char *folder;
    uid_t own = geteuid();
    if (own == 0 || own == info->st_uid || folder_of(&folder, target) != HPCT_OK)
        return false;
    bool kept = stat(folder, &folder_info) == 0 && (folder_info.st_mode & S_ISVTX) != 0 &&
                folder_info.st_uid != own;
    free(folder);
    return kept;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* That a file which is there may be written. */
static hpct_status check_there(hpct_output *file, const struct stat *info)
{
    const char *path = file->path;
    bool is_own = own_output(info) != 0;
    file->replaces = true;
    if (S_ISDIR(info->st_mode))
        return hpct_fail(HPCT_ERR_IO, "%s is a folder: give the name of a file", path);
    file->is_special =
        !S_ISREG(info->st_mode) || (is_own && (begins(path, "/dev/") || begins(path, "/proc/")));
    if (file->is_special)
        return is_own || access(path, W_OK) == 0 ? HPCT_OK : hpct_file_failed("writing", path);
    if (is_own)
        return hpct_fail(HPCT_ERR_IO, "%s is where this program prints: give another name", path);
    errno = EPERM;
    int fd = is_anothers(file->target, info)
                 ? -1
                 : open(file->target, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return hpct_file_failed("writing", path);
    close(fd);
    return HPCT_OK;
}

/* What is there under the name, and whether it may be written. */
static hpct_status look(hpct_output *file, struct stat *info)
{
    const char *path = file->path;
    if (path[0] == '\0')
        return hpct_fail(HPCT_ERR_IO, "a file to write has an empty name");
    file->target = follow(path);
    if (file->target == NULL)
        return hpct_fail_memory(strlen(path) + 1);
    if (stat(path, info) == 0) /* of a pipe in /proc the link leads to no name */
        return check_there(file, info);
    return errno == ENOENT ? HPCT_OK : hpct_file_failed("writing", path);
}

static bool same_folder(const char *a, const char *b)
{
    struct stat of_a, of_b;
    char *folder_a = NULL, *folder_b = NULL;
    bool same = folder_of(&folder_a, a) == HPCT_OK && folder_of(&folder_b, b) == HPCT_OK &&
                stat(folder_a, &of_a) == 0 && stat(folder_b, &of_b) == 0 &&
                of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
    free(folder_a);
    free(folder_b);
    return same;
}

bool hpct_output_same(const char *a, const char *b)
{
    struct stat of_a, of_b;
    bool a_there = stat(a, &of_a) == 0, b_there = stat(b, &of_b) == 0;
    if (a_there && b_there)
        return S_ISREG(of_a.st_mode) && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
    if (a_there || b_there)
        return false;
    char *at_a = follow(a), *at_b = follow(b);
    int length;
    bool same = at_a != NULL && at_b != NULL && same_folder(at_a, at_b) &&
                strcmp(base_of(at_a, &length), base_of(at_b, &length)) == 0;
    free(at_a);
    free(at_b);
    return same;
}

hpct_status hpct_output_make_folder(const char *folder)
{
    char *path = strdup(folder);
    if (path == NULL)
        return hpct_fail_memory(strlen(folder));
    for (char *slash = path + 1;; slash++) {
        if (*slash != '/' && *slash != '\0')
            continue;
        bool last = *slash == '\0';
        *slash = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST) {
            hpct_status status =
                hpct_fail(HPCT_ERR_IO, "the folder %s cannot be made: %s", path, strerror(errno));
            free(path);
            return status;
        }
        if (last)
            break;
        *slash = '/';
    }
    free(path);
    return HPCT_OK;
}

/* ---- files beside it ---- */

/* The process that was to write NAME.tmpN-PID; 0 when the name is no such one. */
static long writer_of(const char *name, const char *base, int length)
{
    long pid;
    int end = 0;
    if (strncmp(name, base, (size_t) length) != 0 ||
        sscanf(name + length, ".tmp%*d-%ld%n", &pid, &end) != 1 || end == 0 ||
        name[length + end] != '\0')
        return 0;
    return pid;
}

/* Nobody writes it: no process of that number here has it, and no other, on another machine, holds
 * its lock. */
static void remove_if_left(int folder, const char *name, long pid)
{
    if (pid <= 0 || kill((pid_t) pid, 0) == 0 || errno != ESRCH)
        return;
    int fd = openat(folder, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(folder, name, 0);
    close(fd);
}

static void remove_leftovers(const char *target)
{
    int length;
    const char *base = base_of(target, &length);
    char *folder;
    if (folder_of(&folder, target) != HPCT_OK)
        return;
    DIR *all = opendir(folder);
    const struct dirent *entry;
    while (all != NULL && (entry = readdir(all)) != NULL)
        remove_if_left(dirfd(all), entry->d_name, writer_of(entry->d_name, base, length));
    if (all != NULL)
        closedir(all);
    free(folder);
}

/* Mode 0666 and the umask, as for any other file of the user. */
static int create_beside(const char *target, char **temporary)
{
    int length;
    const char *base = base_of(target, &length);
    for (int i = 0; i < 100; i++) {
        if (asprintf(temporary, "%.*s%.*s.tmp%d-%ld", (int) (base - target), target, length, base,
                     i, (long) getpid()) < 0) {
            *temporary = NULL;
            errno = ENOMEM;
            return -1;
        }
        int fd = open(*temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0)
            return fd;
        free(*temporary);
        *temporary = NULL;
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

/* And owner and group, where that is allowed: a group that is not may do no more than others. */
static hpct_status keep_mode(const hpct_output *file, const struct stat *old)
{
    struct stat info;
    mode_t mode = old->st_mode & 0777;
    if (fchown(file->fd, old->st_uid, old->st_gid) != 0 &&
        fchown(file->fd, (uid_t) -1, old->st_gid) != 0)
        mode &= (mode_t) ~070 | (mode & 07) << 3;
    if (fstat(file->fd, &info) != 0 ||
        ((info.st_mode & 07777) != mode && fchmod(file->fd, mode) != 0))
        return hpct_file_failed("keeping its mode", file->path);
    return HPCT_OK;
}

static hpct_status make(hpct_output *file, const struct stat *old, bool at_once)
{
    int own = file->is_special ? own_output(old) : 0;
    fflush(stdout);
    if (own != 0)
        file->fd = fcntl(own, F_DUPFD_CLOEXEC, 0);
    else if (file->is_special)
        file->fd = open(file->path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    else if (at_once && !file->replaces)
        file->fd = open(file->target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    else
        file->fd = create_beside(file->target, &file->temporary);
    if (file->fd < 0)
        return hpct_file_failed(file->is_special ? "opening" : "making a file in its folder",
                                file->path);
    if (!file->is_special)
        flock(file->fd, LOCK_EX | LOCK_NB); /* see remove_if_left */
    return file->replaces && !file->is_special ? keep_mode(file, old) : HPCT_OK;
}

hpct_status hpct_output_create(hpct_output *file, const char *path, bool at_once)
{
    struct stat old;
    *file = (hpct_output){.fd = -1, .path = path};
    hpct_status status = look(file, &old);
    if (status == HPCT_OK && !file->is_special)
        remove_leftovers(file->target);
    if (status == HPCT_OK)
        status = make(file, &old, at_once);
    if (status != HPCT_OK)
        hpct_output_close(file);
    return status;
}

void hpct_output_close(hpct_output *file)
{
    if (file->path == NULL)
        return;
    if (file->fd >= 0)
        close(file->fd);
    if (file->temporary != NULL)
        unlink(file->temporary);
    free(file->temporary);
    free(file->target);
    *file = (hpct_output){.fd = -1};
}

/* ---- its name ---- */

/* EINVAL and the like: a file system, or a pipe, that cannot be synced and need not be. */
static bool sync_fd(int fd)
{
    return fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP;
}

/* A rename is only safe on disk when its folder is. */
static hpct_status sync_folder(const hpct_output *file)
{
    char *folder;
    hpct_status status = file->is_special ? HPCT_OK : folder_of(&folder, file->target);
    if (status != HPCT_OK || file->is_special)
        return status;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || !sync_fd(fd))
        status = hpct_file_failed("syncing its folder", file->path);
    if (fd >= 0)
        close(fd);
    free(folder);
    return status;
}

static hpct_status give_name(hpct_output *file)
{
    if (file->temporary == NULL)
        return HPCT_OK;
    if (rename(file->temporary, file->target) != 0)
        return hpct_file_failed("renaming", file->path);
    free(file->temporary);
    file->temporary = NULL;
    flock(file->fd, LOCK_UN);
    return HPCT_OK;
}

hpct_status hpct_output_place(hpct_output *file)
{
    if (!sync_fd(file->fd))
        return hpct_file_failed("syncing", file->path);
    hpct_status status = give_name(file);
    return status == HPCT_OK ? sync_folder(file) : status;
}

/* ---- all at once ---- */

/* Room for `bytes`, where the file system knows; else that one can be written at all. */
static hpct_status reserve(const hpct_output *file, size_t bytes)
{
    if (bytes > 0 && fallocate(file->fd, 0, 0, (off_t) bytes) != 0 &&
        (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
        return hpct_fail(HPCT_ERR_IO, "%s: %zu bytes cannot be written: %s", file->path, bytes,
                         strerror(errno));
    hpct_status status = hpct_file_write_all(file->fd, "", 1, file->path);
    return status != HPCT_OK || sync_fd(file->fd) ? status
                                                  : hpct_file_failed("syncing", file->path);
}

hpct_status hpct_output_try(const char *path, size_t bytes)
{
    struct stat info;
    hpct_output file = {.fd = -1, .path = path};
    hpct_status status = look(&file, &info); /* a pipe is not opened: that may wait for ever */
    bool beside = !file.is_special;
    hpct_output_close(&file);
    if (status != HPCT_OK || !beside)
        return status;
    status = hpct_output_create(&file, path, false);
    if (status == HPCT_OK)
        status = reserve(&file, bytes);
    hpct_output_close(&file);
    return status;
}

/* A file that cannot be synced is kept where nothing better is left. */
static hpct_status attempt(hpct_output *file, hpct_output_writer *write, void *arg, bool sync)
{
    hpct_status status = write(arg, file->fd);
    if (status == HPCT_OK && !sync_fd(file->fd) && sync)
        status = hpct_file_failed("syncing", file->path);
    if (status == HPCT_OK)
        status = give_name(file);
    if (status == HPCT_OK)
        status = sync_folder(file);
    return sync || file->temporary != NULL ? status : HPCT_OK;
}

hpct_status hpct_output_replace(const char *path, hpct_output_writer *write, void *arg)
{
    hpct_status status = HPCT_ERR_IO;
    bool again = true;
    for (int i = 0; i < ATTEMPTS && status != HPCT_OK && again; i++) {
        hpct_output file;
        status = hpct_output_create(&file, path, false);
        again = !file.is_special; /* what a pipe has got cannot be taken back */
        if (status == HPCT_OK)
            status = attempt(&file, write, arg, true);
        hpct_output_close(&file);
    }
    return status;
}

hpct_status hpct_output_rescue(const char *path, hpct_output_writer *write, void *arg)
{
    hpct_output file;
    hpct_status status = hpct_output_create(&file, path, false);
    if (status == HPCT_OK && file.replaces)
        status = hpct_fail(HPCT_ERR_IO, "%s is there already", path);
    if (status == HPCT_OK)
        status = attempt(&file, write, arg, false);
    hpct_output_close(&file);
    return status;
}
