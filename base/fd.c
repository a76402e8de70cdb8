#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

void hpct_fd_close(int fd)
{
    int kept = errno;
    if (fd >= 0)
        close(fd);
    errno = kept;
}

/* Offset -1: the descriptor's own. */
static bool write_all(int fd, const char *data, size_t size, off_t at)
{
    for (ssize_t put; size > 0;) {
        put = at < 0 ? write(fd, data, size) : pwrite(fd, data, size, at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return false;
        data += put;
        size -= (size_t) put;
        at += at < 0 ? 0 : put;
    }
    return true;
}

bool hpct_fd_write(int fd, const void *data, size_t size)
{
    return write_all(fd, data, size, -1);
}

bool hpct_fd_write_at(int fd, const void *data, size_t size, off_t at)
{
    return write_all(fd, data, size, at);
}

static ssize_t read_all(int fd, char *data, size_t size, off_t at)
{
    size_t have = 0;
    for (ssize_t got; have < size;) {
        got = at < 0 ? read(fd, data + have, size - have)
                     : pread(fd, data + have, size - have, at + (off_t) have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        have += (size_t) got;
    }
    return (ssize_t) have;
}

ssize_t hpct_fd_read(int fd, void *data, size_t size)
{
    return read_all(fd, data, size, -1);
}

ssize_t hpct_fd_read_at(int fd, void *data, size_t size, off_t at)
{
    return read_all(fd, data, size, at);
}

DIR *hpct_fd_list(int fd)
{
    int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = own < 0 ? NULL : fdopendir(own);
    if (folder == NULL)
        hpct_fd_close(own);
    return folder;
}

int hpct_fd_mount(int fd)
{
    char path[64], line[256];
    int id = -1;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    FILE *file = fopen(path, "re");
    while (file != NULL && id < 0 && fgets(line, sizeof line, file) != NULL)
        sscanf(line, "mnt_id: %d", &id);
    if (file != NULL)
        fclose(file);
    return id;
}
