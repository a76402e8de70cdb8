/* Shared by the tests of spank/'s directories. */
#include "tests/unit/spank/place.h"

#include <limits.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/unit.h"

char place_base[64], place_parent[128];
uid_t place_uid;
gid_t place_gid;

char *place_text(const char *format, ...)
{
    static char texts[8][PATH_MAX];
    static int next;
    char *text = texts[next++ % 8];
    va_list args;
    va_start(args, format);
    vsnprintf(text, PATH_MAX, format, args);
    va_end(args);
    return text;
}

void place_shell(const char *command)
{
    if (system(command) != 0)
        fail_msg("failed: %s", command);
}

bool place_exists(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

int place_setup(void **state)
{
    place_uid = geteuid() == 0 ? 12345 : geteuid();
    place_gid = geteuid() == 0 ? 12345 : getegid();
    snprintf(place_base, sizeof place_base, "%s/hpc-train-tmpdir.XXXXXX", unit_folder());
    if (mkdtemp(place_base) == NULL)
        return -1;
    snprintf(place_parent, sizeof place_parent, "%s/jobs", place_base);
    return chmod(place_base, 0755);
}

int place_teardown(void **state)
{
    while (umount2(place_base, MNT_DETACH) == 0) /* what place_own_mounts put there */
        ;
    return system(place_text("rm -rf %s", place_base));
}

/* In a chroot "/" is not a mount of its own, so the test's folder is made one. */
void place_own_mounts(void)
{
    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
        (mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) != 0 &&
         (mount(place_base, place_base, "none", MS_BIND, NULL) != 0 ||
          mount("none", place_base, "none", MS_PRIVATE, NULL) != 0)))
        skip();
}

int place_times(int usually, int long_run)
{
    const char *text = getenv("HPC_TRAIN_LONG");
    return text != NULL && strcmp(text, "1") == 0 ? long_run : usually;
}
