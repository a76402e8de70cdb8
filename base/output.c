/* Output files: written beside their name, synced, renamed. */
#include "base/output.h"

#include "base/file.h"
#include "base/links.h"
#include "base/status.h"
#include "base/tried.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define ATTEMPTS 2
#define SUFFIX_MAX 32 /* of a temporary file's name */
#define READER_SECONDS 10
#define ACL "system.posix_acl_access"
#define ACL_MAX 65536

/* ---- target of an output ---- */

/* Offset of the last component, and how much of it fits into a temporary name. */
static const char *base_of(const char *target, int *length)
{
    const char *slash = strrchr(target, '/'), *base = slash != NULL ? slash + 1 : target;
    size_t all = strlen(base);
    *length = (int) (all < NAME_MAX - SUFFIX_MAX ? all : NAME_MAX - SUFFIX_MAX);
    return base;
}

/* The caller frees it; NULL: out of memory. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t) (slash - path));
}

/* The descriptor, 1 or 2, that this program's output goes through to that file; 0: none. */
static int own_output(const struct stat *info)
{
    struct stat own;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fstat(fd, &own) == 0 && hpct_file_same(&own, info))
            return fd;
    }
    return 0;
}

/* In a sticky folder such as /tmp only the owners of file and folder may replace a file. */
static bool is_anothers(const char *target, const struct stat *info)
{
    struct stat of_folder;
    uid_t own = geteuid();
    char *folder = folder_of(target);
    bool kept = own != 0 && own != info->st_uid && folder != NULL &&
                stat(folder, &of_folder) == 0 && (of_folder.st_mode & S_ISVTX) != 0 &&
                of_folder.st_uid != own;
    free(folder);
    return kept;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* File types that are not written although they can be opened. */
static const char *unfit(mode_t mode)
{
    return S_ISDIR(mode) ? "folder" : S_ISBLK(mode) ? "disk" : S_ISSOCK(mode) ? "socket" : NULL;
}

/* Checks that an existing file may be written. */
static hpct_status check_there(hpct_output *file, const struct stat *info)
{
    const char *path = file->path;
    bool is_own = own_output(info) != 0;
    const char *what = is_own ? NULL : unfit(info->st_mode);
    file->replaces = true;
    if (what != NULL)
        return hpct_fail(HPCT_ERR_IO, "%s is a %s: give the name of a file", path, what);
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

/* What exists under the name, and whether it may be written. */
static hpct_status check_target(hpct_output *file, struct stat *info)
{
    const char *path = file->path;
    if (path[0] == '\0')
        return hpct_fail(HPCT_ERR_IO, "a file to write has an empty name");
    file->target = hpct_links_follow(path);
    if (file->target == NULL)
        return hpct_fail_memory(strlen(path) + 1);
    if (stat(path, info) == 0) /* the link of a pipe in /proc has no path */
        return check_there(file, info);
    if (errno != ENOENT)
        return hpct_file_failed("writing", path);
    return file->target[strlen(file->target) - 1] != '/'
               ? HPCT_OK
               : hpct_fail(HPCT_ERR_IO, "%s ends in a slash: give the name of a file", path);
}

static bool same_folder(const char *a, const char *b)
{
    char *folder_a = folder_of(a), *folder_b = folder_of(b);
    bool same = folder_a != NULL && folder_b != NULL && hpct_file_same_names(folder_a, folder_b);
    free(folder_a);
    free(folder_b);
    return same;
}

bool hpct_output_same(const char *a, const char *b)
{
    struct stat of_a, of_b;
    bool a_there = stat(a, &of_a) == 0, b_there = stat(b, &of_b) == 0;
    if (a_there || b_there)
        return a_there && b_there && S_ISREG(of_a.st_mode) && hpct_file_same(&of_a, &of_b);
    char *at_a = hpct_links_follow(a), *at_b = hpct_links_follow(b);
    int length;
    bool same = at_a != NULL && at_b != NULL && same_folder(at_a, at_b) &&
                strcmp(base_of(at_a, &length), base_of(at_b, &length)) == 0;
    free(at_a);
    free(at_b);
    return same;
}

hpct_status hpct_output_make_folder(const char *folder)
{
    if (folder[0] == '\0')
        return hpct_fail(HPCT_ERR_IO, "a folder to write to has an empty name");
    char *path = strdup(folder);
    if (path == NULL)
        return hpct_fail_memory(strlen(folder));
    hpct_status status = HPCT_OK;
    char *end = path;
    for (bool last = false; !last && status == HPCT_OK; *end = last ? '\0' : '/') {
        end += 1 + strcspn(end + 1, "/");
        last = *end == '\0';
        *end = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            status =
                hpct_fail(HPCT_ERR_IO, "the folder %s cannot be made: %s", path, strerror(errno));
    }
    free(path);
    return status;
}

/* ---- temporary files ---- */

/* The process id in NAME.tmpN-PID; 0 if the name has another form. */
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

/* Removes a temporary file if its writer has ended: no process with that id here, and no lock by
 * another machine. */
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
    char *folder = folder_of(target);
    DIR *all = folder != NULL ? opendir(folder) : NULL;
    const struct dirent *entry;
    while (all != NULL && (entry = readdir(all)) != NULL)
        remove_if_left(dirfd(all), entry->d_name, writer_of(entry->d_name, base, length));
    if (all != NULL)
        closedir(all);
    free(folder);
}

/* Mode 0666 and the umask, as for any new file. */
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

/* Copies the ACL, if there is one: the group bits are then its mask. A default ACL of the folder is
 * not the earlier file's. */
static int keep_acl(const hpct_output *file)
{
    char acl[ACL_MAX];
    ssize_t bytes = getxattr(file->target, ACL, acl, sizeof acl);
    if (bytes > 0)
        return fsetxattr(file->fd, ACL, acl, (size_t) bytes, 0);
    if (bytes < 0 && errno != ENODATA && errno != ENOTSUP)
        return -1;
    return fremovexattr(file->fd, ACL) == 0 || errno == ENODATA || errno == ENOTSUP ? 0 : -1;
}

/* Copies owner and group if permitted; if the group cannot be kept, its bits are reduced to those
 * of others. */
static hpct_status keep_mode(const hpct_output *file, const struct stat *old)
{
    struct stat info;
    mode_t mode = old->st_mode & 0777;
    if (fchown(file->fd, old->st_uid, old->st_gid) != 0 &&
        fchown(file->fd, (uid_t) -1, old->st_gid) != 0)
        mode &= (mode_t) ~070 | (mode & 07) << 3;
    if (keep_acl(file) != 0 || fstat(file->fd, &info) != 0 ||
        ((info.st_mode & 07777) != mode && fchmod(file->fd, mode) != 0))
        return hpct_file_failed("keeping its mode", file->path);
    return HPCT_OK;
}

/* Opens a pipe; waits for its reader, with a timeout. */
static int open_special(const char *path, bool is_pipe)
{
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    for (int i = 0; i < 10 * READER_SECONDS && is_pipe && fd < 0 && errno == ENXIO; i++) {
        usleep(100000);
        fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    }
    if (fd >= 0)
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    else if (is_pipe && errno == ENXIO)
        errno = ETIMEDOUT;
    return fd;
}

static hpct_status fail_to_make(const hpct_output *file)
{
    if (file->is_special && errno == ETIMEDOUT)
        return hpct_fail(HPCT_ERR_IO, "%s: nobody reads this pipe", file->path);
    return hpct_file_failed(file->is_special ? "opening" : "making a file in its folder",
                            file->path);
}

static hpct_status make(hpct_output *file, const struct stat *old, bool at_once)
{
    int own = file->is_special ? own_output(old) : 0;
    fflush(stdout);
    if (own != 0)
        file->fd = fcntl(own, F_DUPFD_CLOEXEC, 0);
    else if (file->is_special)
        file->fd = open_special(file->path, S_ISFIFO(old->st_mode));
    else if (at_once && !file->replaces)
        file->fd = open(file->target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    else
        file->fd = create_beside(file->target, &file->temporary);
    if (file->fd < 0)
        return fail_to_make(file);
    if (!file->is_special)
        flock(file->fd, LOCK_EX | LOCK_NB); /* for remove_if_left of other processes */
    return file->replaces && !file->is_special ? keep_mode(file, old) : HPCT_OK;
}

hpct_status hpct_output_create(hpct_output *file, const char *path, bool at_once)
{
    struct stat old;
    *file = (hpct_output){.fd = -1, .path = path};
    hpct_status status = check_target(file, &old);
    if (status == HPCT_OK && !file->is_special)
        remove_leftovers(file->target);
    if (status == HPCT_OK)
        status = make(file, &old, at_once);
    if (status != HPCT_OK)
        hpct_output_close(file);
    return status;
}

/* Whether the bytes before `end` are these. */
static bool is_before(int fd, off_t end, const char *text)
{
    char there[1024];
    size_t bytes = strlen(text);
    return bytes <= sizeof there && (off_t) bytes <= end &&
           pread(fd, there, bytes, end - (off_t) bytes) == (ssize_t) bytes &&
           memcmp(there, text, bytes) == 0;
}

hpct_status hpct_output_continue(hpct_output *file, const char *path, int64_t bytes,
                                 const char *begin, const char *end)
{
    struct stat info;
    *file = (hpct_output){.fd = -1, .path = path, .replaces = true};
    file->target = hpct_links_follow(path);
    if (file->target == NULL)
        return hpct_fail_memory(strlen(path) + 1);
    hpct_status status = HPCT_OK;
    file->fd = open(file->target, O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file->fd < 0 || fstat(file->fd, &info) != 0)
        status = hpct_file_failed("opening", path);
    else if (!S_ISREG(info.st_mode) || info.st_size < bytes)
        status = hpct_fail(HPCT_ERR_IO, "%s is shorter than when the checkpoint was saved", path);
    else if (flock(file->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        status = hpct_fail(HPCT_ERR_CONFIG,
                           "%s is being written by another run: give each run a folder of its own",
                           path);
    else if (bytes > 0 && !is_before(file->fd, (off_t) strlen(begin), begin))
        status = hpct_fail(HPCT_ERR_CONFIG,
                           "%s has other columns than this run: continue with the same options, "
                           "or give another folder",
                           path);
    else if (!is_before(file->fd, bytes, end))
        status = hpct_fail(HPCT_ERR_CONFIG,
                           "%s is not the one of the checkpoint that is continued: give another "
                           "folder",
                           path);
    else if (ftruncate(file->fd, bytes) != 0 || lseek(file->fd, bytes, SEEK_SET) < 0)
        status = hpct_file_failed("shortening", path);
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

/* ---- final name ---- */

/* Some errors are only reported by close: object stores on FUSE write then, and some have no fsync.
 */
static bool flush_fd(int fd)
{
    int result;
    do {
        int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        result = copy >= 0 ? close(copy) : -1;
    } while (result != 0 && errno == EINTR);
    return result == 0;
}

static bool sync_fd(int fd)
{
    return hpct_file_sync(fd) && flush_fd(fd);
}

/* A rename is durable only after syncing its folder. */
static hpct_status sync_folder(const hpct_output *file)
{
    if (file->is_special)
        return HPCT_OK;
    char *folder = folder_of(file->target);
    hpct_status status = folder != NULL ? hpct_file_sync_folder(folder) : hpct_fail_memory(0);
    free(folder);
    return status;
}

static hpct_status give_name(hpct_output *file)
{
    if (file->temporary == NULL)
        return HPCT_OK;
    HPCT_TRY(hpct_tried_check(file->path, file->target));
    if (rename(file->temporary, file->target) != 0)
        return hpct_file_failed("renaming", file->path);
    free(file->temporary);
    file->temporary = NULL;
    return hpct_tried_note(file->path, file->target, false);
}

/* A file under its final name may be replaced by another program. */
static hpct_status check_name(const hpct_output *file)
{
    struct stat own, named;
    if (file->is_special || file->temporary != NULL ||
        (fstat(file->fd, &own) == 0 && stat(file->target, &named) == 0 &&
         hpct_file_same(&own, &named)))
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_IO, "%s was removed or replaced by another program", file->path);
}

hpct_status hpct_output_place(hpct_output *file)
{
    if (!sync_fd(file->fd))
        return hpct_file_failed("syncing", file->path);
    HPCT_TRY(check_name(file));
    HPCT_TRY(give_name(file));
    return sync_folder(file);
}

/* ---- whole files ---- */

/* Reserves `bytes` if the file system can; else checks that writing works at all. */
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

/* Checks that renaming works: not in append-only folders (chattr +a) and on some object stores. */
static hpct_status try_name(hpct_output *file)
{
    char *other;
    int fd = create_beside(file->target, &other);
    if (fd < 0)
        return fail_to_make(file);
    close(fd);
    hpct_status status = rename(file->temporary, other) == 0
                             ? HPCT_OK
                             : hpct_file_failed("renaming a file in its folder", file->path);
    if (status != HPCT_OK)
        unlink(file->temporary);
    free(file->temporary);
    file->temporary = other;
    return status;
}

hpct_status hpct_output_try(const char *path, size_t bytes)
{
    struct stat info;
    hpct_output file = {.fd = -1, .path = path};
    hpct_status status = check_target(&file, &info); /* a pipe is not opened: that may block */
    bool beside = !file.is_special;
    hpct_output_close(&file);
    if (status != HPCT_OK || !beside)
        return status;
    status = hpct_output_create(&file, path, false);
    if (status == HPCT_OK)
        status = reserve(&file, bytes);
    if (status == HPCT_OK)
        status = try_name(&file);
    if (status == HPCT_OK)
        status = hpct_tried_note(path, file.target, true);
    hpct_output_close(&file);
    return status;
}

/* `sync` false: keep a file that cannot be synced. */
static hpct_status attempt(hpct_output *file, hpct_output_writer *write, void *arg, bool sync)
{
    HPCT_TRY(write(arg, file->fd));
    if (sync)
        return hpct_output_place(file);
    sync_fd(file->fd);
    HPCT_TRY(give_name(file));
    sync_folder(file);
    return HPCT_OK;
}

hpct_status hpct_output_replace(const char *path, hpct_output_writer *write, void *arg)
{
    hpct_status status = HPCT_ERR_IO;
    bool again = true;
    for (int i = 0; i < ATTEMPTS && status != HPCT_OK && again; i++) {
        hpct_output file;
        status = hpct_output_create(&file, path, false);
        again = !file.is_special; /* what a pipe has received cannot be undone */
        if (status == HPCT_OK)
            status = attempt(&file, write, arg, true);
        hpct_output_close(&file);
    }
    return status;
}

hpct_status hpct_output_refresh(const char *path, hpct_output_writer *write, void *arg)
{
    hpct_output file;
    HPCT_TRY(hpct_output_create(&file, path, false));
    hpct_status status = write(arg, file.fd);
    if (status == HPCT_OK)
        status = give_name(&file);
    hpct_output_close(&file);
    return status;
}

typedef struct content {
    const char *text, *path;
} content;

static hpct_status write_text(void *arg, int fd)
{
    const content *c = arg;
    return hpct_file_write_all(fd, c->text, strlen(c->text), c->path);
}

hpct_status hpct_output_put_text(const char *path, const char *text, bool sync)
{
    content c = {text, path};
    return sync ? hpct_output_replace(path, write_text, &c)
                : hpct_output_refresh(path, write_text, &c);
}

hpct_status hpct_output_remove(const char *path)
{
    struct stat info;
    hpct_output file = {.fd = -1, .path = path};
    HPCT_TRY(check_target(&file, &info));
    hpct_status status = hpct_tried_check(path, file.target);
    if (status == HPCT_OK && file.replaces && !file.is_special && unlink(file.target) != 0 &&
        errno != ENOENT)
        status = hpct_file_failed("removing", path);
    if (status == HPCT_OK)
        status = hpct_tried_note(path, file.target, false);
    hpct_output_close(&file);
    return status;
}

hpct_status hpct_output_rescue(const char *path, hpct_output_writer *write, void *arg, bool sync)
{
    hpct_output file;
    hpct_status status = hpct_output_create(&file, path, false);
    if (status == HPCT_OK && file.replaces)
        status = hpct_fail(HPCT_ERR_IO, "%s is there already", path);
    if (status == HPCT_OK)
        status = attempt(&file, write, arg, sync);
    hpct_output_close(&file);
    return status;
}
