/* Whole files in and out. */
#include "nn/file.h"

#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

hpct_status hpct_file_failed(const char *what, const char *path)
{
    return hpct_fail(HPCT_ERR_IO, "%s: %s failed: %s", path, what, strerror(errno));
}

/* ---- writing ---- */

hpct_status hpct_file_write_all(int fd, const void *data, size_t bytes, const char *path)
{
    const char *at = data;
    while (bytes > 0) {
        ssize_t written = write(fd, at, bytes);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return hpct_file_failed("writing", path);
        at += written;
        bytes -= (size_t) written;
    }
    return HPCT_OK;
}

/* A rename is only safe on disk when its folder is. */
static hpct_status sync_folder(const char *path)
{
    char *copy = strdup(path);
    if (copy == NULL)
        return hpct_fail_memory(strlen(path) + 1);
    const char *folder = dirname(copy);
    hpct_status status = HPCT_OK;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* EINVAL: a file system whose folders cannot be synced, and need not be */
    if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL))
        status = hpct_file_failed("syncing the folder", folder);
    if (fd >= 0)
        close(fd);
    free(copy);
    return status;
}

/* A new file beside `path`; mode 0666 and the umask, as for any other file of the user. */
static int create_beside(const char *path, char *temporary, size_t size)
{
    for (int i = 0; i < 100; i++) {
        snprintf(temporary, size, "%s.tmp%d-%ld", path, i, (long) getpid());
        int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

hpct_status hpct_file_replace(const char *path, hpct_file_writer *write, void *arg)
{
    size_t size = strlen(path) + 48;
    char *temporary = malloc(size);
    if (temporary == NULL)
        return hpct_fail_memory(size);
    int fd = create_beside(path, temporary, size);
    if (fd < 0) {
        hpct_status failed = hpct_file_failed("creating a file beside it", path);
        free(temporary);
        return failed;
    }
    hpct_status status = write(arg, fd);
    if (status == HPCT_OK && fsync(fd) != 0)
        status = hpct_file_failed("syncing", path);
    if (close(fd) != 0 && status == HPCT_OK)
        status = hpct_file_failed("closing", path);
    if (status == HPCT_OK && rename(temporary, path) != 0)
        status = hpct_file_failed("renaming", path);
    if (status == HPCT_OK)
        status = sync_folder(path);
    else
        unlink(temporary);
    free(temporary);
    return status;
}

/* ---- reading ---- */

hpct_status hpct_file_read_all(int fd, void *data, size_t bytes, long long at, const char *path)
{
    char *to = data;
    while (bytes > 0) {
        ssize_t got = pread(fd, to, bytes, at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return hpct_file_failed("reading", path);
        if (got == 0)
            return hpct_fail(HPCT_ERR_DATA, "%s: the file ends early", path);
        to += got;
        at += got;
        bytes -= (size_t) got;
    }
    return HPCT_OK;
}

static hpct_status read_open(char **data, size_t *size, int fd, const char *path, size_t max)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return hpct_file_failed("reading", path);
    if (!S_ISREG(info.st_mode))
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s is not a file", path);
    if ((unsigned long long) info.st_size > max)
        return hpct_fail(HPCT_ERR_DATA, "%s: %lld bytes are more than can be right", path,
                         (long long) info.st_size);
    *size = (size_t) info.st_size;
    *data = malloc(*size + 1);
    if (*data == NULL)
        return hpct_fail_memory(*size + 1);
    (*data)[*size] = '\0';
    hpct_status status = hpct_file_read_all(fd, *data, *size, 0, path);
    if (status != HPCT_OK)
        free(*data);
    return status;
}

hpct_status hpct_file_read(char **data, size_t *size, const char *path, size_t max)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s cannot be opened: %s", path, strerror(errno));
    hpct_status status = read_open(data, size, fd, path, max);
    close(fd);
    return status;
}
