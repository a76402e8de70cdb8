/* Removes trees by *at calls on open folders. */
#include <config.h>

#include "spank/stage/tree/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double) time.tv_sec + (double) time.tv_nsec * 1e-9;
}

static bool remove_until(int parent, const char *name, double end, hpct_report *report)
{
    if (unlinkat(parent, name, 0) == 0 || (errno != EISDIR && errno != EPERM))
        return true;
    if (end > 0 && now() > end)
        return false;
    fchmodat(parent, name, 0700, 0);
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    bool done = true;
    if (folder == NULL) {
        if (fd >= 0)
            close(fd);
        return true;
    }
    long count = 0;
    for (struct dirent *found; done && (found = readdir(folder)) != NULL;) {
        if (strcmp(found->d_name, ".") != 0 && strcmp(found->d_name, "..") != 0)
            done = remove_until(fd, found->d_name, end, report);
        if (++count % 256 == 0 && end > 0 && now() > end)
            done = false;
        if (count % 256 == 0 && report != NULL)
            hpct_report_alive(report);
    }
    closedir(folder);
    unlinkat(parent, name, AT_REMOVEDIR);
    return done;
}

void hpct_tree_remove(int parent, const char *name, hpct_report *report)
{
    remove_until(parent, name, 0, report);
}

bool hpct_tree_remove_within(int parent, const char *name, double seconds)
{
    return remove_until(parent, name, now() + seconds, NULL);
}
