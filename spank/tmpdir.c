/* Life cycle of a job directory. The parent also contains, for root only:
 *   .new-NAME-PID   a directory being created; renamed when it is the user's
 *   .gone-NAME-PID  one being removed; its name is free for the job's next run
 *   .boot           the kernel's boot id. No job outlives a boot. */
#include <config.h>

#include "spank/tmpdir.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "spank/folder.h"
#include "spank/parent.h"
#include "spank/remove.h"
#include "spank/spec/out_record.h"

#define NAME_SIZE 32
#define REMOVE_SECONDS 20
#define NEW ".new-"
#define GONE ".gone-"
#define BOOT ".boot"

static void job_name(uint32_t job, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "%u", job);
}

static void records_name(uint32_t job, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, HPCT_SPEC_RECORDS_PREFIX "%u", job);
}

char *hpct_spank_tmpdir_path(const char *parent, uint32_t job)
{
    char *path = NULL;
    return asprintf(&path, "%s/%u", parent, job) < 0 ? NULL : path;
}

/* Renames to an unused name. Without RENAME_NOREPLACE only an empty directory is replaced, which is
 * equivalent. */
static int rename_free(int fd, const char *from, const char *to)
{
    if (renameat2(fd, from, fd, to, RENAME_NOREPLACE) == 0)
        return 0;
    return errno == EINVAL || errno == ENOSYS ? renameat(fd, from, fd, to) : -1;
}

/* Renames first: the name is free for the next run even if removal fails, and
 * hpct_spank_tmpdir_sweep finds the rest. *gone is empty if there was nothing. */
static hpct_status put_aside(int fd, const char *parent, const char *name, char gone[NAME_SIZE * 6])
{
    int error = EEXIST;
    for (int i = 0; i < 100 && error != 0; i++) {
        snprintf(gone, NAME_SIZE * 6, GONE "%s-%d-%d", name, (int) getpid(), i);
        error = rename_free(fd, name, gone) == 0 ? 0 : errno;
        if (error == ENOENT) {
            gone[0] = '\0';
            return HPCT_OK;
        }
        if (error == EBUSY && !hpct_spank_folder_unmount(fd, name))
            return hpct_fail(HPCT_ERR_IO, "%s/%s cannot be removed: a file system is mounted on it",
                             parent, name);
        if (error != EBUSY && error != EEXIST && error != ENOTEMPTY)
            break;
    }
    return error == 0 ? HPCT_OK
                      : hpct_fail(HPCT_ERR_IO, "%s/%s cannot be removed: %s", parent, name,
                                  strerror(error));
}

static hpct_status clear(int fd, const char *parent, const char *name)
{
    char gone[NAME_SIZE * 6], path[4096];
    HPCT_TRY(put_aside(fd, parent, name, gone));
    if (gone[0] == '\0')
        return HPCT_OK;
    snprintf(path, sizeof path, "%s/%s", parent, gone);
    return hpct_spank_remove(fd, gone, path, REMOVE_SECONDS);
}

/* ---- creating
 * --------------------------------------------------------------------------------- */

typedef enum found { NOTHING, THE_USERS, SOMETHING_ELSE, UNKNOWN } found;

/* Checks the existing entry of that name. Another step of the job may be using it: only an entry
 * that is certainly not the user's directory is an error. */
static found check_existing(int parent, const char *name, uid_t uid)
{
    struct stat info;
    int fd = hpct_spank_folder_open(parent, name);
    if (fd < 0)
        return errno == ENOENT                      ? NOTHING
               : errno == ENOTDIR || errno == ELOOP ? SOMETHING_ELSE
                                                    : UNKNOWN;
    found result = UNKNOWN;
    if (fstat(fd, &info) == 0)
        result = info.st_uid == uid ? THE_USERS : SOMETHING_ELSE;
    hpct_fd_close(fd);
    return result;
}

/* Created under a temporary name and renamed when it is the user's: no other process sees an
 * incomplete directory. */
static hpct_status make(int parent, const char *name, uid_t uid, gid_t gid, const char *path)
{
    char temporary[NAME_SIZE * 4], gone[NAME_SIZE * 6];
    snprintf(temporary, sizeof temporary, NEW "%s-%d", name, (int) getpid());
    hpct_status status = HPCT_OK;
    int fd = -1;
    if (mkdirat(parent, temporary, 0700) != 0) {
        if (errno == EEXIST) /* left by a killed step with the same pid */
            return put_aside(parent, path, temporary, gone);
        return hpct_fail(HPCT_ERR_IO, "%s cannot be made: %s", path, strerror(errno));
    }
    fd = openat(parent, temporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fchown(fd, uid, gid) != 0 || fchmod(fd, 0700) != 0)
        status =
            hpct_fail(HPCT_ERR_IO, "%s cannot be given to user %u: %s", path, uid, strerror(errno));
    else if (rename_free(parent, temporary, name) == 0)
        temporary[0] = '\0';
    else if (errno != EEXIST && errno != ENOTEMPTY)
        status = hpct_fail(HPCT_ERR_IO, "%s cannot be made: %s", path, strerror(errno));
    hpct_fd_close(fd);
    if (temporary[0] != '\0')
        unlinkat(parent, temporary, AT_REMOVEDIR);
    return status; /* HPCT_OK: it exists, or another step was faster; the caller checks again */
}

static hpct_status make_until_there(int fd, const char *parent, const char *name, uid_t uid,
                                    gid_t gid)
{
    char gone[NAME_SIZE * 6], path[4096];
    hpct_status status = HPCT_OK;
    snprintf(path, sizeof path, "%s/%s", parent, name);
    for (int tries = 0; status == HPCT_OK; tries++) {
        found there = check_existing(fd, name, uid);
        if (there == THE_USERS)
            break;
        if (there == UNKNOWN && errno == EXDEV)
            status =
                hpct_fail(HPCT_ERR_IO, "%s cannot be used: a file system is mounted on it", path);
        else if (there == UNKNOWN)
            status = hpct_fail(HPCT_ERR_IO, "%s cannot be opened: %s", path, strerror(errno));
        else if (tries == 3)
            status = hpct_fail(HPCT_ERR_IO, "%s is in the way and cannot be removed", path);
        else if (there == NOTHING)
            status = make(fd, name, uid, gid, path);
        else /* removed by the job's epilog, so that starting tasks do not wait for it */
            status = put_aside(fd, parent, name, gone);
    }
    return status;
}

hpct_status hpct_spank_tmpdir_make(const char *parent, uint32_t job, uid_t uid, gid_t gid)
{
    int fd = -1;
    char name[NAME_SIZE], records[NAME_SIZE];
    job_name(job, name);
    records_name(job, records);
    HPCT_TRY(hpct_spank_parent_open(parent, true, &fd));
    hpct_status status = make_until_there(fd, parent, records, uid, gid);
    if (status == HPCT_OK)
        status = make_until_there(fd, parent, name, uid, gid);
    close(fd);
    return status;
}

bool hpct_spank_tmpdir_find(const char *parent, uint32_t job, uid_t uid)
{
    char name[NAME_SIZE];
    int fd = -1;
    job_name(job, name);
    if (hpct_spank_parent_open(parent, false, &fd) != HPCT_OK || fd < 0)
        return false;
    bool there = check_existing(fd, name, uid) == THE_USERS;
    close(fd);
    return there;
}

hpct_status hpct_spank_tmpdir_check(const char *path)
{
    if (access(path, W_OK | X_OK) == 0)
        return HPCT_OK;
    if (errno != ENOENT)
        return hpct_fail(HPCT_ERR_IO, "%s cannot be used: %s", path, strerror(errno));
    return hpct_fail(HPCT_ERR_CONFIG,
                     "%s was made, but the tasks do not see it: where Slurm gives each job folders "
                     "of its own (JobContainerType, NamespaceType), the administrator must set "
                     "tmpdir= in plugstack.conf to a folder elsewhere",
                     path);
}

/* ---- removing -------------------------------------------------------------------------------- */

static void remove_half_made(int fd, const char *name)
{
    char half_made[NAME_SIZE * 2];
    snprintf(half_made, sizeof half_made, NEW "%s-", name);
    DIR *folder = hpct_fd_list(fd);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        if (strncmp(entry->d_name, half_made, strlen(half_made)) == 0)
            hpct_spank_remove(fd, entry->d_name, entry->d_name, REMOVE_SECONDS);
    }
    if (folder != NULL)
        closedir(folder);
}

hpct_status hpct_spank_tmpdir_remove(const char *parent, uint32_t job)
{
    int fd = -1;
    char name[NAME_SIZE], records[NAME_SIZE];
    HPCT_TRY(hpct_spank_parent_open(parent, false, &fd));
    if (fd < 0)
        return HPCT_OK;
    job_name(job, name);
    records_name(job, records);
    remove_half_made(fd, name);
    remove_half_made(fd, records);
    hpct_status of_records = clear(fd, parent, records), status = clear(fd, parent, name);
    close(fd);
    return status != HPCT_OK ? status : of_records;
}

void hpct_spank_tmpdir_sweep(const char *parent)
{
    int fd = -1;
    int64_t end = hpct_now_ms() + REMOVE_SECONDS * 1000;
    if (hpct_spank_parent_open(parent, false, &fd) != HPCT_OK || fd < 0)
        return;
    /* One process at a time: what blocks one would block the next. Only root can lock this file. */
    int turn = openat(fd, BOOT, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = turn >= 0 && flock(turn, LOCK_EX | LOCK_NB) != 0 ? NULL : hpct_fd_list(fd);
    for (struct dirent *entry;
         folder != NULL && hpct_now_ms() < end && (entry = readdir(folder)) != NULL;)
        if (strncmp(entry->d_name, GONE, strlen(GONE)) == 0)
            hpct_spank_remove(fd, entry->d_name, entry->d_name,
                              (int) ((end - hpct_now_ms()) / 1000));
    if (folder != NULL)
        closedir(folder);
    hpct_fd_close(turn);
    close(fd);
}

/* ---- after a reboot
 * --------------------------------------------------------------------------- */

static bool read_line(int at, const char *path, char *line, size_t size)
{
    int fd = openat(at, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, line, size - 1);
    hpct_fd_close(fd);
    line[got > 0 ? got : 0] = '\0';
    return got > 0;
}

/* A job id, or the name of its records or of a directory being created for one. */
static bool is_of_a_job(const char *name)
{
    return strncmp(name, NEW, strlen(NEW)) == 0 ||
           strncmp(name, HPCT_SPEC_RECORDS_PREFIX, strlen(HPCT_SPEC_RECORDS_PREFIX)) == 0 ||
           (isdigit((unsigned char) name[0]) && name[strspn(name, "0123456789")] == '\0' &&
            strlen(name) < NAME_SIZE);
}

static hpct_status put_all_aside(int fd, const char *parent)
{
    hpct_status status = HPCT_OK;
    char gone[NAME_SIZE * 6];
    DIR *folder = hpct_fd_list(fd);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        if (is_of_a_job(entry->d_name) && put_aside(fd, parent, entry->d_name, gone) != HPCT_OK)
            status = HPCT_ERR_IO;
    }
    if (folder != NULL)
        closedir(folder);
    return status;
}

hpct_status hpct_spank_tmpdir_prepare(const char *parent)
{
    int fd = -1;
    char boot[64] = "", before[64] = "";
    HPCT_TRY(hpct_spank_parent_open(parent, true, &fd));
    hpct_status status = HPCT_OK;
    bool known = read_line(fd, BOOT, before, sizeof before);
    if (read_line(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot, sizeof boot) &&
        strcmp(boot, before) != 0) {
        if (known)
            status = put_all_aside(fd, parent);
        unlinkat(fd, BOOT, 0);
        int file = openat(fd, BOOT, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (file < 0 || write(file, boot, strlen(boot)) != (ssize_t) strlen(boot))
            status = hpct_fail(HPCT_ERR_IO, "%s/" BOOT " cannot be written: %s", parent,
                               strerror(errno));
        hpct_fd_close(file);
    }
    close(fd);
    return status;
}
