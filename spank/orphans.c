/* The environment of a process is under its user's control, so it can only cause that user's own
 * processes to be killed: the uid is checked, and a pidfd is opened before the process is
 * examined. */
#include <config.h>

#include "spank/orphans.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"

#define MAX_BYTES (4u << 20) /* size of an environment */

/* Whether the bytes contain `entry`, delimited by '\0' or an end. */
static bool has_entry(const char *bytes, size_t size, const char *entry)
{
    size_t length = strlen(entry);
    for (const char *p = bytes; (p = memmem(p, size - (size_t) (p - bytes), entry, length)) != NULL;
         p++) {
        if ((p == bytes || p[-1] == '\0') && (p + length == bytes + size || p[length] == '\0'))
            return true;
    }
    return false;
}

static bool belongs(int process, const char *const entries[2], char *buffer)
{
    size_t size = 0;
    int fd = openat(process, "environ", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    for (ssize_t got; size < MAX_BYTES && (got = read(fd, buffer + size, MAX_BYTES - size)) > 0;)
        size += (size_t) got;
    close(fd);
    return has_entry(buffer, size, entries[0]) && has_entry(buffer, size, entries[1]);
}

/* Kernels before 5.3 have no pidfd; there the pid must do. */
static bool end(DIR *all, const char *name, uid_t uid, const char *const entries[2], char *buffer)
{
    struct stat info;
    pid_t pid = (pid_t) atol(name);
    if (pid <= 1 || fstatat(dirfd(all), name, &info, 0) != 0 || info.st_uid != uid)
        return false;
    int handle = (int) syscall(SYS_pidfd_open, pid, 0);
    int process = openat(dirfd(all), name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ours = process >= 0 && fstat(process, &info) == 0 && info.st_uid == uid &&
                belongs(process, entries, buffer);
    if (ours && (handle >= 0 ? syscall(SYS_pidfd_send_signal, handle, SIGKILL, NULL, 0)
                             : kill(pid, SIGKILL)) != 0)
        ours = false;
    hpct_fd_close(process);
    hpct_fd_close(handle);
    return ours;
}

int hpct_spank_orphans_end(uid_t uid, uint32_t job, const char *node, int seconds)
{
    char job_entry[48], node_entry[300];
    int count = 0;
    time_t until = time(NULL) + seconds;
    snprintf(job_entry, sizeof job_entry, "SLURM_JOB_ID=%" PRIu32, job);
    snprintf(node_entry, sizeof node_entry, "SLURMD_NODENAME=%s", node);
    const char *const entries[2] = {job_entry, node_entry};
    char *buffer = malloc(MAX_BYTES);
    DIR *all = opendir("/proc");
    for (bool found = uid != 0 && buffer != NULL && all != NULL; found;) {
        found = false;
        rewinddir(all);
        for (struct dirent *entry; (entry = readdir(all)) != NULL;) {
            if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
                end(all, entry->d_name, uid, entries, buffer)) {
                found = true;
                count++;
            }
        }
        if (time(NULL) >= until)
            break;
        if (found) /* killed processes may have forked meanwhile */
            nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    if (all != NULL)
        closedir(all);
    free(buffer);
    return count;
}
