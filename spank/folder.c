/* openat2 makes the kernel reject links and mounts during the lookup; on older kernels mount ids
 * are compared first. */
#include <config.h>

#include "spank/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

/* Id of the mount that a name resolves to. O_PATH opens nothing, so no file system is accessed. */
static int mount_at(int at, const char *name)
{
    int fd = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    int mount = fd < 0 ? -1 : hpct_fd_mount(fd);
    hpct_fd_close(fd);
    return mount;
}

/* For kernels before 5.6. Device numbers would not distinguish a bind mount from a folder. The
 * checked folder is the one that is opened: "." of an O_PATH descriptor cannot change by a mount
 * meanwhile. */
static int open_slowly(int at, const char *name)
{
    int found = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), fd = -1;
    if (found < 0)
        return -1;
    int error = EXDEV;
    if (hpct_fd_mount(found) == hpct_fd_mount(at)) {
        fd = openat(found, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        error = errno;
    }
    close(found);
    if (fd < 0)
        errno = error;
    return fd;
}

int hpct_spank_folder_open(int at, const char *name)
{
    const struct open_how how = {
        .flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
        .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS,
    };
    long fd = syscall(SYS_openat2, at, name, &how, sizeof how);
    if (fd >= 0 || errno != ENOSYS)
        return (int) fd;
    return open_slowly(at, name);
}

/* Whether a line of mountinfo, "36 35 0:98 / /mnt opts - TYPE SOURCE SUPEROPTS", describes the
 * mount with that id and is a FUSE mount of an ordinary user. */
static bool is_users(const char *line, int mount)
{
    int number = -1;
    unsigned user = 0;
    const char *type = strstr(line, " - ");
    if (sscanf(line, "%d ", &number) != 1 || number != mount || type == NULL)
        return false;
    type += 3;
    if (strncmp(type, "fuse ", 5) != 0 && strncmp(type, "fuse.", 5) != 0)
        return false;
    const char *options = strrchr(line, ' '); /* blanks in the preceding fields are written \040 */
    const char *owner = options == NULL ? NULL : strstr(options, "user_id=");
    return owner != NULL && sscanf(owner, "user_id=%u", &user) == 1 && user != 0;
}

bool hpct_spank_folder_unmount(int at, const char *name)
{
    int mount = mount_at(at, name);
    if (mount < 0 || mount == hpct_fd_mount(at))
        return false;
    FILE *file = fopen("/proc/self/mountinfo", "re");
    if (file == NULL)
        return false;
    char *line = NULL, path[512];
    size_t room = 0;
    bool found = false;
    while (!found && getline(&line, &room, file) > 0)
        found = is_users(line, mount);
    free(line);
    fclose(file);
    int size = snprintf(path, sizeof path, "/proc/self/fd/%d/%s", at, name);
    return found && size < (int) sizeof path && umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0;
}
