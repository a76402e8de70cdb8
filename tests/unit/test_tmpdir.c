/* spank: the job directory's making and removal, against names, links and owners that are not what
 * they should be. Runs as root (with an unprivileged uid for the job) or as any user (for himself).
 */
#include "spank/tmpdir.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char base[64], parent[128];
static uid_t uid;
static gid_t gid;

static char *in(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *in(const char *format, ...)
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

static void shell(const char *command)
{
    if (system(command) != 0)
        fail_msg("failed: %s", command);
}

static bool exists(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

static int setup(void **state)
{
    (void) state;
    uid = geteuid() == 0 ? 12345 : geteuid();
    gid = geteuid() == 0 ? 12345 : getegid();
    strcpy(base, "/tmp/hpc-train-tmpdir.XXXXXX");
    if (mkdtemp(base) == NULL)
        return -1;
    snprintf(parent, sizeof parent, "%s/jobs", base);
    return chmod(base, 0755);
}

static int teardown(void **state)
{
    (void) state;
    umount2(base, MNT_DETACH); /* where mounts_are_private put a mount there */
    return system(in("rm -rf %s", base));
}

static void a_directory_is_made_and_removed(void **state)
{
    (void) state;
    struct stat info;
    umask(077);
    assert_int_equal(hpct_tmpdir_make(parent, 42, uid, gid), HPCT_OK);
    assert_int_equal(hpct_tmpdir_make(parent, 42, uid, gid), HPCT_OK); /* the next step */
    umask(022);
    assert_int_equal(stat(in("%s/42", parent), &info), 0);
    assert_int_equal(info.st_uid, uid);
    assert_int_equal(info.st_gid, gid);
    assert_int_equal(info.st_mode & 07777, 0700);
    assert_int_equal(stat(parent, &info), 0);
    assert_int_equal(info.st_uid, geteuid());
    assert_int_equal(info.st_mode & 07777, 0711);
    shell(in("cd %s/42 && mkdir -p a/b/c && touch a/b/f 'odd\nname' && ln -s / root && mkdir ro && "
             "touch ro/f && chmod 555 ro",
             parent));
    assert_int_equal(hpct_tmpdir_remove(parent, 42), HPCT_OK);
    assert_false(exists(in("%s/42", parent)));
    assert_int_equal(hpct_tmpdir_remove(parent, 42), HPCT_OK);
    assert_int_equal(hpct_tmpdir_remove(in("%s/none", base), 42), HPCT_OK);
}

static void jobs_do_not_touch_one_another(void **state)
{
    (void) state;
    char *path = hpct_tmpdir_path("/p", 42);
    assert_string_equal(path, "/p/42");
    free(path);
    assert_int_equal(hpct_tmpdir_make(parent, 42, uid, gid), HPCT_OK);
    assert_int_equal(hpct_tmpdir_make(parent, 421, uid, gid), HPCT_OK);
    assert_int_equal(hpct_tmpdir_remove(parent, 42), HPCT_OK);
    assert_false(exists(in("%s/42", parent)));
    assert_true(exists(in("%s/421", parent)));
    assert_int_equal(hpct_tmpdir_remove(parent, 421), HPCT_OK);
}

static void links_are_removed_and_not_followed(void **state)
{
    (void) state;
    assert_int_equal(hpct_tmpdir_make(parent, 1, uid, gid), HPCT_OK);
    shell(in("mkdir -p %s/precious && touch %s/precious/file", base, base));
    shell(in("ln -s %s/precious %s/1/link && ln -s %s/precious %s/7", base, parent, base, parent));
    assert_int_equal(hpct_tmpdir_remove(parent, 1), HPCT_OK);
    assert_int_equal(hpct_tmpdir_remove(parent, 7), HPCT_OK);
    assert_false(exists(in("%s/1", parent)) || exists(in("%s/7", parent)));
    assert_true(exists(in("%s/precious/file", base)));
    /* a link planted at the name of a job's directory is replaced, not used */
    shell(in("ln -s %s/precious %s/8", base, parent));
    assert_int_equal(hpct_tmpdir_make(parent, 8, uid, gid), HPCT_OK);
    struct stat info;
    assert_int_equal(lstat(in("%s/8", parent), &info), 0);
    assert_true(S_ISDIR(info.st_mode));
    assert_int_equal(stat(in("%s/precious", base), &info), 0);
    assert_int_equal(info.st_uid, geteuid());
    assert_int_equal(hpct_tmpdir_remove(parent, 8), HPCT_OK);
}

static void what_another_user_left_is_removed(void **state)
{
    (void) state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(hpct_tmpdir_make(parent, 9, uid + 1, gid), HPCT_OK);
    shell(in("touch %s/9/secret", parent));
    assert_int_equal(hpct_tmpdir_make(parent, 9, uid, gid), HPCT_OK);
    assert_false(exists(in("%s/9/secret", parent)));
    assert_int_equal(hpct_tmpdir_remove(parent, 9), HPCT_OK);
}

static void unsafe_parents_are_refused(void **state)
{
    (void) state;
    struct stat info;
    shell(
        in("mkdir -m 777 %s/open && mkdir -m 1777 %s/sticky && mkdir %s/real && ln -s real %s/link",
           base, base, base, base));
    /* others could rename what is in it */
    assert_int_equal(hpct_tmpdir_make(in("%s/open", base), 1, uid, gid), HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), "written by others"));
    assert_int_equal(hpct_tmpdir_make(in("%s/open/jobs", base), 1, uid, gid), HPCT_ERR_CONFIG);
    /* in a sticky one they cannot, but could make the job directories' names their own */
    assert_int_equal(hpct_tmpdir_make(in("%s/sticky", base), 1, uid, gid), HPCT_ERR_CONFIG);
    assert_int_equal(hpct_tmpdir_make(in("%s/sticky/jobs", base), 1, uid, gid), HPCT_OK);
    assert_int_equal(hpct_tmpdir_make(in("%s/link/jobs", base), 1, uid, gid), HPCT_ERR_CONFIG);
    assert_false(exists(in("%s/real/jobs", base)));
    shell(in("touch %s/file", base));
    assert_int_equal(hpct_tmpdir_make(in("%s/file", base), 1, uid, gid), HPCT_ERR_CONFIG);
    assert_int_equal(hpct_tmpdir_make(in("%s/no/where", base), 1, uid, gid), HPCT_ERR_CONFIG);
    if (geteuid() == 0) {
        shell(in("mkdir -m 755 %s/theirs && chown %u %s/theirs", base, uid, base));
        assert_int_equal(hpct_tmpdir_make(in("%s/theirs", base), 1, uid, gid), HPCT_ERR_CONFIG);
        assert_non_null(strstr(hpct_last_error(), "belongs to user"));
        assert_int_equal(hpct_tmpdir_make(in("%s/theirs/jobs", base), 1, uid, gid),
                         HPCT_ERR_CONFIG);
    }
    assert_int_equal(stat(in("%s/open", base), &info), 0);
    assert_int_equal(info.st_mode & 07777, 0777);
}

static void steps_may_race(void **state)
{
    (void) state;
    for (uint32_t job = 100; job < 120; job++) {
        int failed = 0;
        pid_t children[8];
        for (int i = 0; i < 8; i++) {
            children[i] = fork();
            if (children[i] == 0)
                _exit(hpct_tmpdir_make(parent, job, uid, gid) == HPCT_OK ? 0 : 1);
        }
        for (int i = 0; i < 8; i++) {
            int end = 0;
            waitpid(children[i], &end, 0);
            failed += end != 0;
        }
        assert_int_equal(failed, 0);
        assert_int_equal(hpct_tmpdir_remove(parent, job), HPCT_OK);
    }
    shell(in("test -z \"$(ls -A %s)\"", parent)); /* no half-made ones stay */
}

static void deep_trees_are_removed(void **state)
{
    (void) state;
    assert_int_equal(hpct_tmpdir_make(parent, 5, uid, gid), HPCT_OK);
    int at = open(in("%s/5", parent), O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 1500; i++) { /* longer than a path may be */
        assert_int_equal(mkdirat(at, "deeper", 0755), 0);
        int next = openat(at, "deeper", O_RDONLY | O_DIRECTORY);
        close(at);
        at = next;
    }
    close(at);
    assert_int_equal(hpct_tmpdir_remove(parent, 5), HPCT_OK);
    assert_false(exists(in("%s/5", parent)));
}

/* A process of the user swaps a folder for a link to what only root may change, as fast as it can.
 */
static void a_racing_user_gains_nothing(void **state)
{
    (void) state;
    shell(in("rm -rf %s/root && mkdir %s/root && touch %s/root/file", base, base, base));
    for (int round = 0; round < 40; round++) {
        assert_int_equal(hpct_tmpdir_make(parent, 6, uid, gid), HPCT_OK);
        shell(in("mkdir -p %s/6/a/b %s/6/c && ln -s %s/root %s/6/l && touch %s/6/a/b/file", parent,
                 parent, base, parent, parent));
        int fd = open(in("%s/6", parent), O_RDONLY | O_DIRECTORY);
        pid_t child = fork();
        if (child == 0) { /* holds the directory open, as a surviving process would */
            for (;;) {
                renameat2(fd, "a", fd, "l", 2 /* RENAME_EXCHANGE */);
                mkdirat(fd, "new", 0755);
            }
        }
        close(fd);
        usleep(500);
        hpct_status status = hpct_tmpdir_remove(parent, 6);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        if (status != HPCT_OK) /* it added to the directory up to the end */
            hpct_tmpdir_sweep(parent);
        shell(in("test -z \"$(ls -A %s)\"", parent));
        assert_true(exists(in("%s/root/file", base)));
        struct stat info;
        assert_int_equal(stat(in("%s/root", base), &info), 0);
        assert_int_equal(info.st_uid, geteuid());
    }
}

/* A bind mount has the device number of the file system around it. */
/* From here on this process mounts for itself alone. In a chroot "/" is no mount of its own, so the
 * test's folder is made one. */
static bool mounts_are_private(void)
{
    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0)
        return false;
    return mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) == 0 ||
           (mount(base, base, "none", MS_BIND, NULL) == 0 &&
            mount("none", base, "none", MS_PRIVATE, NULL) == 0);
}

static void what_is_mounted_is_not_entered(void **state)
{
    (void) state;
    if (!mounts_are_private())
        skip();
    assert_int_equal(hpct_tmpdir_make(parent, 10, uid, gid), HPCT_OK);
    shell(
        in("mkdir -p %s/mine %s/10/a/m %s/10/b && touch %s/mine/file", base, parent, parent, base));
    assert_int_equal(mount(in("%s/mine", base), in("%s/10/a/m", parent), "none", MS_BIND, NULL), 0);
    assert_int_equal(hpct_tmpdir_remove(parent, 10), HPCT_ERR_IO);
    assert_non_null(strstr(hpct_last_error(), "/.gone-10-"));
    assert_true(exists(in("%s/mine/file", base)));
    assert_false(exists(in("%s/10", parent))); /* the name is free for the job's next run */
    hpct_tmpdir_sweep(parent);
    assert_true(exists(in("%s/mine/file", base)));
    shell(in("test -n \"$(ls -A %s)\"", parent));
    assert_int_equal(umount(in("%s/.gone-10-%d/a/m", parent, (int) getpid())), 0);
    hpct_tmpdir_sweep(parent);
    shell(in("test -z \"$(ls -A %s)\"", parent));
    assert_true(exists(in("%s/mine/file", base)));

    assert_int_equal(hpct_tmpdir_make(parent, 11, uid, gid), HPCT_OK);
    assert_int_equal(mount(in("%s/mine", base), in("%s/11", parent), "none", MS_BIND, NULL), 0);
    assert_int_equal(hpct_tmpdir_remove(parent, 11), HPCT_ERR_IO);
    assert_non_null(strstr(hpct_last_error(), "/11 cannot be removed: a file system is mounted"));
    assert_true(exists(in("%s/mine/file", base)));
    assert_int_equal(umount(in("%s/11", parent)), 0);
    assert_int_equal(hpct_tmpdir_remove(parent, 11), HPCT_OK);
}

static void what_was_left_is_swept_up(void **state)
{
    (void) state;
    assert_int_equal(hpct_tmpdir_make(parent, 12, uid, gid), HPCT_OK);
    shell(in("mkdir -p %s/.gone-13-1/deep/er && touch %s/.gone-13-1/file %s/12/file", parent,
             parent, parent));
    hpct_tmpdir_sweep(parent);
    assert_false(exists(in("%s/.gone-13-1", parent)));
    assert_true(exists(in("%s/12/file", parent)));
    assert_int_equal(hpct_tmpdir_remove(parent, 12), HPCT_OK);
    hpct_tmpdir_sweep(in("%s/none", base));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_directory_is_made_and_removed),
        cmocka_unit_test(jobs_do_not_touch_one_another),
        cmocka_unit_test(links_are_removed_and_not_followed),
        cmocka_unit_test(what_another_user_left_is_removed),
        cmocka_unit_test(unsafe_parents_are_refused),
        cmocka_unit_test(steps_may_race),
        cmocka_unit_test(deep_trees_are_removed),
        cmocka_unit_test(a_racing_user_gains_nothing),
        cmocka_unit_test(what_was_left_is_swept_up),
        cmocka_unit_test(what_is_mounted_is_not_entered),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
