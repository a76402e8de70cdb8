/* Atomic files. */
#include "agent/checkpoint/disk.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MOST_BYTES ((size_t) 16 << 20) /* at once: hashed while in the cache */
#define MOST_NAMES 1000                /* that are tried */

void hpct_ckpt_disk_token(char token[HPCT_CKPT_DISK_TOKEN])
{
    static unsigned count;
    uint64_t value = 0;
    if (getrandom(&value, sizeof value, GRND_NONBLOCK) != (ssize_t) sizeof value) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        value = (uint64_t) now.tv_nsec << 34 ^ (uint64_t) now.tv_sec ^ (uint64_t) getpid() << 12 ^
                __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
    }
    snprintf(token, HPCT_CKPT_DISK_TOKEN, "%016llx", (unsigned long long) value);
}

hpct_status hpct_ckpt_disk_join(char **out, const char *folder, const char *name)
{
    return hpct_alloc_text(out, "%s/%s", folder, name);
}

/* ---- a new file ---- */

hpct_status hpct_ckpt_disk_create(hpct_ckpt_disk_file *file, const char *folder, const char *name)
{
    char token[HPCT_CKPT_DISK_TOKEN];
    *file = (hpct_ckpt_disk_file){.fd = -1, .folder = folder, .digest = hpct_digest_new()};
    hpct_ckpt_disk_token(token);
    if (file->digest == NULL || asprintf(&file->temporary, "%s/%s" HPCT_CKPT_DISK_TEMPORARY "%s",
                                         folder, name, token) < 0) {
        file->temporary = NULL;
        hpct_ckpt_disk_discard(file);
        return hpct_fail_memory(0);
    }
    file->fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file->fd >= 0)
        return HPCT_OK;
    hpct_status status = hpct_file_failed("making it", file->temporary);
    free(file->temporary); /* not ours to remove */
    file->temporary = NULL;
    hpct_ckpt_disk_discard(file);
    return status;
}

hpct_status hpct_ckpt_disk_write(hpct_ckpt_disk_file *file, const void *data, size_t bytes)
{
    const char *at = data;
    for (size_t part; bytes > 0; at += part, bytes -= part) {
        part = bytes < MOST_BYTES ? bytes : MOST_BYTES;
        hpct_digest_add(file->digest, at, part);
        HPCT_TRY(hpct_file_write_all(file->fd, at, part, file->temporary));
        file->bytes += part;
    }
    return HPCT_OK;
}

/* Full disks and exceeded quotas may be reported by fsync or close only. */
static hpct_status finish(hpct_ckpt_disk_file *file)
{
    if (!hpct_file_sync(file->fd))
        return hpct_file_failed("syncing", file->temporary);
    int fd = file->fd;
    file->fd = -1;
    if (close(fd) != 0 && errno != EINTR)
        return hpct_file_failed("closing", file->temporary);
    return HPCT_OK;
}

/* A request that a server has carried out may be reported as failed if its answer was lost: then
 * `path` is the file that `info` is of. */
static bool has_name(const char *path, const struct stat *info)
{
    struct stat now;
    return lstat(path, &now) == 0 && hpct_file_same(&now, info);
}

/* Gives it this name, replacing what has it. */
static hpct_status replace(hpct_ckpt_disk_file *file, const char *name)
{
    char *path;
    struct stat info = {0};
    bool known = fstat(file->fd, &info) == 0;
    HPCT_TRY(finish(file));
    HPCT_TRY(hpct_ckpt_disk_join(&path, file->folder, name));
    if (rename(file->temporary, path) != 0) {
        int error = errno;
        if (!known || !has_name(path, &info)) {
            errno = error;
            hpct_status status = hpct_file_failed("renaming a complete file to it", path);
            free(path);
            return status;
        }
    }
    free(path);
    free(file->temporary);
    file->temporary = NULL;
    return hpct_file_sync_folder(file->folder);
}

/* Where the file system has no hard links; then two nodes may both see that the name is free. */
static int rename_if_free(const char *from, const char *to)
{
    struct stat info;
    if (lstat(to, &info) == 0)
        return 0;
    return errno == ENOENT && rename(from, to) == 0 ? 1 : -1;
}

int hpct_ckpt_disk_link(const char *from, const char *to)
{
    struct stat info;
    if (lstat(from, &info) != 0)
        return -1;
    if (link(from, to) != 0) {
        int error = errno;
        if (error == EPERM || error == EOPNOTSUPP || error == ENOSYS)
            return rename_if_free(from, to);
        errno = error;
        if (!has_name(to, &info))
            return error == EEXIST ? 0 : (errno = error, -1);
    }
    unlink(from); /* a second name of a complete file does no harm */
    return 1;
}

hpct_status hpct_ckpt_disk_place(hpct_ckpt_disk_file *file, const char *stem, const char *extension,
                                 hpct_ckpt_store_file *written)
{
    HPCT_TRY(finish(file));
    int placed = 0;
    for (int i = 1; i <= MOST_NAMES && placed == 0; i++) {
        char *path, number[16] = "";
        if (i > 1)
            snprintf(number, sizeof number, ".%d", i);
        snprintf(written->name, sizeof written->name, "%.32s%s.%.15s", stem, number, extension);
        HPCT_TRY(hpct_ckpt_disk_join(&path, file->folder, written->name));
        placed = hpct_ckpt_disk_link(file->temporary, path);
        free(path);
    }
    if (placed == 0)
        errno = EEXIST;
    if (placed != 1)
        return hpct_file_failed("giving it its name", file->temporary);
    free(file->temporary);
    file->temporary = NULL;
    written->bytes = file->bytes;
    hpct_digest_end(file->digest, written->hash);
    return hpct_file_sync_folder(file->folder);
}

void hpct_ckpt_disk_discard(hpct_ckpt_disk_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    if (file->temporary != NULL)
        unlink(file->temporary);
    free(file->temporary);
    hpct_digest_free(file->digest);
    *file = (hpct_ckpt_disk_file){.fd = -1};
}

hpct_status hpct_ckpt_disk_put(const char *folder, const char *name, const char *text)
{
    hpct_ckpt_disk_file file;
    HPCT_TRY(hpct_ckpt_disk_create(&file, folder, name));
    hpct_status status = hpct_ckpt_disk_write(&file, text, strlen(text));
    if (status == HPCT_OK)
        status = replace(&file, name);
    hpct_ckpt_disk_discard(&file);
    return status;
}

/* ---- folders ---- */

hpct_status hpct_ckpt_disk_remove(const char *folder, const char *name)
{
    char *path;
    HPCT_TRY(hpct_ckpt_disk_join(&path, folder, name));
    hpct_status status =
        unlink(path) == 0 || errno == ENOENT ? HPCT_OK : hpct_file_failed("removing", path);
    free(path);
    return status;
}

hpct_status hpct_ckpt_disk_each(const char *folder,
                                hpct_status (*each)(void *context, const char *folder,
                                                    const char *name),
                                void *context)
{
    const struct dirent *entry;
    DIR *all = opendir(folder);
    if (all == NULL)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s cannot be opened: %s", folder, strerror(errno));
    hpct_status status = HPCT_OK;
    for (errno = 0; status == HPCT_OK && (entry = readdir(all)) != NULL; errno = 0) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            status = each(context, folder, entry->d_name);
    }
    if (status == HPCT_OK && errno != 0)
        status = hpct_file_failed("listing", folder);
    closedir(all);
    return status;
}
