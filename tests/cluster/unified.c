/* unified.c: loaded into slurmd, shows it /proc/PID/cgroup as a machine has it that has control
 * groups of version 2 alone. Slurm's cgroup/v2 refuses one that has some of version 1 besides, also
 * where it needs none of those. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The lines of the file that begin with "0::", in memory. A node's groups are all that there is:
 * who is in none of them, as process 1 is, is at their root. */
static int filtered(int fd)
{
    char text[8192];
    ssize_t size = read(fd, text, sizeof text - 1);
    int copy = memfd_create("cgroup", MFD_CLOEXEC);
    text[size > 0 ? size : 0] = '\0';
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        if (strncmp(line, "0::", 3) == 0)
            dprintf(copy, "%s\n", strncmp(line, "0::/..", 6) == 0 ? "0::/" : line);
    }
    close(fd);
    lseek(copy, 0, SEEK_SET);
    return copy;
}

#define EXPORT __attribute__((visibility("default")))

EXPORT int open(const char *path, int flags, ...)
{
    char pid[32], end[32] = "";
    va_list args;
    va_start(args, flags);
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, int) : 0;
    va_end(args);
    int fd = (int) syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    bool groups = sscanf(path, "/proc/%31[^/]/%31s", pid, end) == 2 && strcmp(end, "cgroup") == 0;
    return fd >= 0 && groups ? filtered(fd) : fd;
}

EXPORT int open64(const char *path, int flags, ...) __attribute__((alias("open")));
