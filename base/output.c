/* Output files: written beside their name, synced, renamed. */
#include "base/output.h"

#include "base/file.h"
#include "base/links.h"
#include "base/status.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
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

static hpct_status folder_of(char **folder, const char *path)
{
    char *copy = strdup(path);
    *folder = copy != NULL ? strdup(dirname(copy)) : NULL;
    free(copy);
    return *folder != NULL ? HPCT_OK : hpct_fail_memory(strlen(path) + 1);
}

/* The descriptor, 1 or 2, that this program's output goes through to that file; 0: none. */
static int own_output(const struct stat *info)
{
    struct stat own;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fstat(fd, &own) == 0 && own.st_dev == info->st_dev && own.st_ino == info->st_ino)
            return fd;
    }
    return 0;
}

/* In a sticky folder such as /tmp only the owners of file and folder may replace a file. */
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
static hpct_status look(hpct_output *file, struct stat *info)
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
    char *acl = malloc(ACL_MAX);
    ssize_t bytes = acl != NULL ? getxattr(file->target, ACL, acl, ACL_MAX) : -1;
    int error = bytes < 0 && (errno == ENODATA || errno == ENOTSUP) ? 0 : errno, result = -1;
    if (bytes > 0)
        result = fsetxattr(file->fd, ACL, acl, (size_t) bytes, 0);
    else if (error == 0)
        result = fremovexattr(file->fd, ACL) == 0 || errno == ENODATA || errno == ENOTSUP ? 0 : -1;
    free(acl);
    return result;
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
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
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
    hpct_status status = look(file, &old);
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

/* EINVAL and the like: file systems and pipes without sync */
static bool sync_fd(int fd)
{
    return (fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP) && flush_fd(fd);
}

/* A rename is durable only after syncing its folder. */
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

/* ---- what is replaced ---- */

/* An output's file when the name was tried, or as this process has last written it. */
typedef struct tried {
    struct tried *next;
    char *path, *target;
    struct stat info; /* st_nlink 0: nothing */
} tried;

static pthread_mutex_t tried_mutex = PTHREAD_MUTEX_INITIALIZER;
static tried *tried_names;

static tried *find_tried(const char *target)
{
    tried *t = tried_names;
    while (t != NULL && strcmp(t->target, target) != 0)
        t = t->next;
    return t;
}

/* Where this name led when it was tried; NULL: it was not. */
static const char *find_lead(const char *path)
{
    const tried *t = tried_names;
    while (t != NULL && strcmp(t->path, path) != 0)
        t = t->next;
    return t != NULL ? t->target : NULL;
}

/* `path` not NULL: also if it was not tried before. */
static hpct_status note_tried(const char *target, const char *path)
{
    bool add = path != NULL;
    pthread_mutex_lock(&tried_mutex);
    tried *t = find_tried(target);
    char *name = t == NULL && add ? strdup(target) : NULL, *by = name != NULL ? strdup(path) : NULL;
    tried *new = by != NULL ? calloc(1, sizeof *new) : NULL;
    if (new != NULL) {
        *new = (tried){.next = tried_names, .target = name, .path = by};
        t = tried_names = new;
    } else {
        free(name);
        free(by);
    }
    if (t != NULL && stat(target, &t->info) != 0)
        t->info = (struct stat){0};
    pthread_mutex_unlock(&tried_mutex);
    return t == NULL && add ? hpct_fail_memory(sizeof *t) : HPCT_OK;
}

static hpct_status check_tried(const hpct_output *file)
{
    struct stat now;
    pthread_mutex_lock(&tried_mutex);
    const tried *t = find_tried(file->target);
    bool other = t != NULL && stat(file->target, &now) == 0 && S_ISREG(now.st_mode) &&
                 (now.st_dev != t->info.st_dev || now.st_ino != t->info.st_ino ||
                  now.st_size != t->info.st_size || now.st_mtim.tv_sec != t->info.st_mtim.tv_sec ||
                  now.st_mtim.tv_nsec != t->info.st_mtim.tv_nsec);
    const char *lead = find_lead(file->path);
    other |= lead != NULL && file->replaces && strcmp(lead, file->target) != 0; /* a link moved */
    pthread_mutex_unlock(&tried_mutex);
    return other ? hpct_fail(HPCT_ERR_IO,
                             "%s has been written by another program since this run began, and "
                             "stays: give each run a name of its own",
                             file->path)
                 : HPCT_OK;
}

static hpct_status give_name(hpct_output *file)
{
    if (file->temporary == NULL)
        return HPCT_OK;
    HPCT_TRY(check_tried(file));
    if (rename(file->temporary, file->target) != 0)
        return hpct_file_failed("renaming", file->path);
    free(file->temporary);
    file->temporary = NULL;
    return note_tried(file->target, NULL);
}

/* A file under its final name may be replaced by another program. */
static hpct_status check_name(const hpct_output *file)
{
    struct stat own, named;
    if (file->is_special || file->temporary != NULL ||
        (fstat(file->fd, &own) == 0 && stat(file->target, &named) == 0 &&
         own.st_dev == named.st_dev && own.st_ino == named.st_ino))
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
    hpct_status status = look(&file, &info); /* a pipe is not opened: that may block */
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
        status = note_tried(file.target, path);
    hpct_output_close(&file);
    return status;
}

/* `sync` false: keep a file that cannot be synced. */
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

hpct_status hpct_output_replace_text(const char *path, const char *text)
{
    return hpct_output_replace(path, write_text, &(content){text, path});
}

hpct_status hpct_output_refresh_text(const char *path, const char *text)
{
    return hpct_output_refresh(path, write_text, &(content){text, path});
}

hpct_status hpct_output_remove(const char *path)
{
    struct stat info;
    hpct_output file = {.fd = -1, .path = path};
    HPCT_TRY(look(&file, &info));
    hpct_status status = check_tried(&file);
    if (status == HPCT_OK && file.replaces && !file.is_special && unlink(file.target) != 0 &&
        errno != ENOENT)
        status = hpct_file_failed("removing", path);
    if (status == HPCT_OK)
        status = note_tried(file.target, NULL);
    hpct_output_close(&file);
    return status;
}

static hpct_status rescue(const char *path, hpct_output_writer *write, void *arg, bool sync)
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

hpct_status hpct_output_rescue(const char *path, hpct_output_writer *write, void *arg)
{
    return rescue(path, write, arg, true);
}

hpct_status hpct_output_rescue_unsynced(const char *path, hpct_output_writer *write, void *arg)
{
    return rescue(path, write, arg, false);
}
