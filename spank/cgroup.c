/* The cgroup of a process and the mount points of hierarchies, from /proc. */
#include <config.h>

#include "spank/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/status.h"

/* A line of /proc/PID/cgroup is "NUMBER:CONTROLLERS:PATH"; CONTROLLERS is empty for the unified
 * hierarchy. */
static bool path_in(const char *file, const char *controller, char path[PATH_MAX])
{
    char line[PATH_MAX + 256];
    bool found = false;
    FILE *lines = fopen(file, "re");
    while (lines != NULL && !found && fgets(line, sizeof line, lines) != NULL) {
        char *first = strchr(line, ':');
        char *second = first == NULL ? NULL : strchr(first + 1, ':');
        if (second == NULL)
            continue;
        *second = '\0';
        second[1 + strcspn(second + 1, "\n")] = '\0';
        found = strcmp(first + 1, controller) == 0 && strlen(second + 1) < PATH_MAX;
        if (found)
            strcpy(path, second + 1);
    }
    if (lines != NULL)
        fclose(lines);
    return found;
}

static bool has_word(const char *list, const char *word)
{
    size_t size = strlen(word);
    for (const char *p = list; (p = strstr(p, word)) != NULL; p += size) {
        if ((p == list || p[-1] == ',') && (p[size] == ',' || p[size] == '\0'))
            return true;
    }
    return false;
}

/* The directory of `path` in the hierarchy. A line of mountinfo is "ID PARENT DEVICE ROOT
 * MOUNTPOINT OPTIONS [TAG]... - TYPE SOURCE OPTIONS". */
static char *folder_of(const char *controller, const char *path)
{
    char line[PATH_MAX * 2], root[PATH_MAX], point[PATH_MAX], type[32], options[256];
    char *folder = NULL;
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    while (mounts != NULL && folder == NULL && fgets(line, sizeof line, mounts) != NULL) {
        const char *behind = strstr(line, " - ");
        if (behind == NULL || sscanf(line, "%*s %*s %*s %4095s %4095s", root, point) != 2 ||
            sscanf(behind, " - %31s %*s %255s", type, options) != 2)
            continue;
        bool wanted = *controller == '\0'
                          ? strcmp(type, "cgroup2") == 0
                          : strcmp(type, "cgroup") == 0 && has_word(options, controller);
        size_t size = strcmp(root, "/") == 0 ? 0 : strlen(root);
        if (!wanted || strncmp(path, root, size) != 0 || (path[size] != '/' && path[size] != '\0'))
            continue;
        if (asprintf(&folder, "%s%s", point, path + size) < 0)
            folder = NULL;
    }
    if (mounts != NULL)
        fclose(mounts);
    return folder;
}

char *hpct_spank_cgroup_of(pid_t pid)
{
    static const char *const controllers[] = {"freezer", ""};
    char file[64], theirs[PATH_MAX], ours[PATH_MAX];
    snprintf(file, sizeof file, "/proc/%d/cgroup", (int) pid);
    for (size_t i = 0; i < sizeof controllers / sizeof *controllers; i++) {
        if (path_in(file, controllers[i], theirs) &&
            path_in("/proc/self/cgroup", controllers[i], ours) && strcmp(theirs, ours) != 0)
            return folder_of(controllers[i], theirs);
    }
    return NULL;
}

hpct_status hpct_spank_cgroup_enter(const char *folder)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/cgroup.procs", folder);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool entered = fd >= 0 && write(fd, "0", 1) == 1;
    hpct_fd_close(fd);
    return entered
               ? HPCT_OK
               : hpct_fail(HPCT_ERR_INTERNAL, "%s cannot be entered: %s", folder, strerror(errno));
}
