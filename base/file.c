/* Reads and writes whole files. */
#include "base/file.h"

#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
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

bool hpct_file_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool hpct_file_same_names(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && hpct_file_same(&of_a, &of_b);
}

/* ---- syncing ---- */

bool hpct_file_sync(int fd)
{
    return fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP;
}

hpct_status hpct_file_sync_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return hpct_file_failed("opening", folder);
    hpct_status status = hpct_file_sync(fd) ? HPCT_OK : hpct_file_failed("syncing", folder);
    close(fd); /* nothing was written through it */
    return status;
}
