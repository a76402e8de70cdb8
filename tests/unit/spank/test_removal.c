/* spank: removing what a hostile user has made, while he goes on. His processes run with his own
 * rights, hold every folder open, and try to have root touch what is not the job's. With
 * HPC_TRAIN_LONG=1: ten thousand races, a hundred thousand levels, a million files. */
#include "base/clock.h"
#include "spank/folder.h"
#include "spank/parent.h"
#include "spank/remove.h"
#include "spank/tmpdir.h"
#include "tests/unit/spank/place.h"
#include "tests/unit/unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define base place_base
#define parent place_parent
#define uid place_uid
#define gid place_gid
#define in place_text
#define shell place_shell
#define exists place_exists

#define FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static double now(void)
{
    return (double) hpct_now_ms() * 1e-3;
}

static void become_user(void)
{
    if (geteuid() == 0 && (setgroups(0, NULL) != 0 || setgid(gid) != 0 || setuid(uid) != 0))
        _exit(99);
}

/* What root owns and the user wants changed: a folder, and a file in it. */
static void make_precious(void)
{
    shell(
        in("rm -rf %s/root && mkdir -m 755 %s/root && echo keep >%s/root/file", base, base, base));
}

static void assert_same(const struct stat *a, const struct stat *b)
{
    assert_int_equal(a->st_uid, b->st_uid);
    assert_int_equal(a->st_mode, b->st_mode);
    assert_int_equal(a->st_size, b->st_size);
    assert_int_equal(a->st_ctim.tv_sec, b->st_ctim.tv_sec); /* nobody can set this one back */
    assert_int_equal(a->st_ctim.tv_nsec, b->st_ctim.tv_nsec);
}

/* ---- races ----------------------------------------------------------------------------------- */

static void put_file(int at, const char *name)
{
    close(openat(at, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
}

/* The user's process: makes a tree in the job directory, says so, and then does all it can, with
 * every folder held open, until it is killed. `own` is a folder of his outside of the job's. */
static void attack(int job, int own, int ready, unsigned seed)
{
    char root[256], file[256], name[16];
    snprintf(root, sizeof root, "%s/root", base);
    snprintf(file, sizeof file, "%s/root/file", base);
    umask(0);
    mkdirat(job, "a", 0755);
    mkdirat(job, "c", 0777);
    int a = openat(job, "a", FOLDER), c = openat(job, "c", FOLDER);
    mkdirat(a, "b", 0777);
    int b = openat(a, "b", FOLDER);
    put_file(b, "f");
    put_file(c, "f");
    symlinkat(root, job, "l");
    symlinkat(root, a, "l");
    put_file(own, "mine");
    if (write(ready, "", 1) != 1)
        _exit(99);
    for (unsigned n = 0;; n++) {
        snprintf(name, sizeof name, "n%u", n);
        switch (rand_r(&seed) % 16) {
        case 0:
            renameat2(job, "a", job, "l", RENAME_EXCHANGE);
            break;
        case 1:
            renameat2(a, "b", a, "l", RENAME_EXCHANGE);
            break;
        case 2:
            renameat(a, "b", own, "b");
            break;
        case 3:
            renameat(own, "b", a, "b");
            break;
        case 4:
            renameat(job, "c", a, "c");
            break;
        case 5:
            renameat(a, "c", own, "c");
            break;
        case 6:
            renameat(own, "c", job, "c");
            break;
        case 7:
            symlinkat(root, b, name);
            break;
        case 8:
            mkdirat(b, name, 0777);
            break;
        case 9:
            put_file(c, name);
            break;
        case 10:
            unlinkat(b, "f", 0);
            symlinkat(file, b, "f");
            break;
        case 11:
            linkat(own, "mine", c, name, 0);
            break;
        case 12:
            linkat(AT_FDCWD, file, c, name, 0);
            break;
        case 13:
            fchmod(job, 0777);
            break;
        case 14:
            fchmodat(a, "b", 0777, 0);
            break;
        default:
            renameat(job, "..", own, "up");
            mkdirat(job, "../x", 0777);
            break;
        }
    }
}

/* Nothing of the user's has become root's, or lost what was in it. */
static void check_own(int own)
{
    struct stat info;
    static const char *const names[] = {"b", "c", "mine"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (fstatat(own, names[i], &info, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        assert_int_equal(info.st_uid, uid);
        assert_int_equal(info.st_mode & 0700, i == 2 ? 0600 : 0700);
        if (i < 2) {
            char file[8];
            snprintf(file, sizeof file, "%s/f", names[i]);
            /* b/f is exchanged by two calls, the first of which may have been the last */
            if (i == 1)
                assert_int_equal(fstatat(own, file, &info, AT_SYMLINK_NOFOLLOW), 0);
        }
    }
    assert_int_equal(fstatat(own, "mine", &info, AT_SYMLINK_NOFOLLOW), 0);
    assert_int_equal(fstatat(own, "up", &info, AT_SYMLINK_NOFOLLOW), -1);
}

static bool is_empty(const char *path)
{
    DIR *folder = opendir(path);
    int count = 0;
    assert_non_null(folder);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count == 2;
}

TEST(racing_user_gains_nothing)
{
    struct stat folder, file, after;
    int times = place_times(60, 10000), moved = 0;
    if (geteuid() != 0)
        skip();
    make_precious();
    assert_int_equal(stat(in("%s/root", base), &folder), 0);
    assert_int_equal(stat(in("%s/root/file", base), &file), 0);
    int outside = open(base, FOLDER);
    unsigned seed = 1;
    for (int round = 0; round < times; round++) {
        int ready[2];
        char byte;
        assert_int_equal(hpct_spank_tmpdir_make(parent, 6, uid, gid), HPCT_OK);
        assert_int_equal(mkdirat(outside, "own", 0755), 0);
        assert_int_equal(fchownat(outside, "own", uid, gid, 0), 0);
        int job = open(in("%s/6", parent), FOLDER), own = openat(outside, "own", FOLDER);
        assert_int_equal(pipe(ready), 0);
        pid_t child = fork();
        if (child == 0) {
            become_user();
            attack(job, own, ready[1], seed + (unsigned) round);
        }
        assert_int_equal(read(ready[0], &byte, 1), 1);
        usleep((useconds_t) (rand_r(&seed) % 300));
        double start = now();
        hpct_status status = hpct_spank_tmpdir_remove(parent, 6);
        double took = now() - start;
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        assert_string_equal(status == HPCT_OK ? "" : hpct_last_error(), "");
        assert_true(is_empty(parent)); /* although he held it, and went on */
        assert_true(took < 100);       /* he goes on for ever */
        check_own(own);
        moved += faccessat(own, "b", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
        close(ready[0]);
        close(ready[1]);
        close(job);
        close(own);
        assert_int_equal(stat(in("%s/root", base), &after), 0);
        assert_same(&folder, &after);
        assert_int_equal(stat(in("%s/root/file", base), &after), 0);
        after.st_nlink = file.st_nlink;
        assert_same(&file, &after);
        assert_int_equal(hpct_spank_remove(outside, "own", "own", 20), HPCT_OK);
    }
    close(outside);
    /* the attack was one: it got folders out of the tree while that was still the user's (under
     * valgrind he is often too slow) */
    assert_true(moved > times / 20 || getenv("HPC_TRAIN_SHORT") != NULL);
    print_message("%d races, %d with a folder that was moved away\n", times, moved);
}

/* A process that does nothing but add files, everywhere, does not keep the directory. */
TEST(busy_writer_does_not_prevent_removal)
{
    if (geteuid() != 0)
        skip();
    for (int round = 0; round < place_times(2, 100); round++) {
        assert_int_equal(hpct_spank_tmpdir_make(parent, 7, uid, gid), HPCT_OK);
        int job = open(in("%s/7", parent), FOLDER);
        pid_t children[3];
        for (int i = 0; i < 3; i++) {
            children[i] = fork();
            if (children[i] == 0) {
                char name[16];
                become_user();
                snprintf(name, sizeof name, "d%d", i);
                mkdirat(job, name, 0777);
                int at = openat(job, name, FOLDER);
                for (unsigned n = 0;; n++) {
                    snprintf(name, sizeof name, "x%u", n);
                    put_file(at, name);
                    mkdirat(job, name, 0777);
                }
            }
        }
        usleep(20000);
        double start = now();
        hpct_status status = hpct_spank_tmpdir_remove(parent, 7);
        double took = now() - start;
        for (int i = 0; i < 3; i++) {
            kill(children[i], SIGKILL);
            waitpid(children[i], NULL, 0);
        }
        close(job);
        assert_string_equal(status == HPCT_OK ? "" : hpct_last_error(), "");
        assert_true(is_empty(parent));
        assert_true(took < 100); /* he goes on for ever */
    }
}

/* ---- large trees ----------------------------------------------------------------------------- */

TEST(deep_trees_are_removed)
{
    int levels = place_times(1500, 100000); /* 512 of them are a path too long to be named */
    assert_int_equal(hpct_spank_tmpdir_make(parent, 5, uid, gid), HPCT_OK);
    int at = open(in("%s/5", parent), FOLDER);
    put_file(at, ".deep-1-0");
    for (int i = 0; i < levels; i++) {
        assert_int_equal(mkdirat(at, "deeper", 0755), 0);
        int next = openat(at, "deeper", FOLDER);
        close(at);
        at = next;
    }
    close(at);
    double start = now();
    int goes = 1;
    for (hpct_status status = hpct_spank_tmpdir_remove(parent, 5); status != HPCT_OK; goes++) {
        assert_non_null(strstr(hpct_last_error(), "not removed within"));
        assert_true(goes < 30); /* on a slow or busy machine later epilogs go on */
        hpct_spank_tmpdir_sweep(parent);
        status = is_empty(parent) ? HPCT_OK : status;
    }
    print_message("%d levels: %.2f s in %d goes\n", levels, now() - start, goes);
    assert_true(is_empty(parent));
}

TEST(time_is_bounded)
{
    int files = place_times(5000, 1000000);
    char name[16];
    assert_int_equal(hpct_spank_tmpdir_make(parent, 8, uid, gid), HPCT_OK);
    int at = open(in("%s/8", parent), FOLDER), top = open(parent, FOLDER);
    for (int i = 0; i < files; i++) {
        snprintf(name, sizeof name, "%d", i);
        mknodat(at, name, S_IFREG | 0644, 0);
    }
    close(at);
    double start = now();
    int passes = 1;
    for (; hpct_spank_remove(top, "8", "8", 1) != HPCT_OK; passes++) {
        assert_non_null(strstr(hpct_last_error(), "not removed within 1 seconds"));
        assert_true(now() - start < 3 * passes + 5);
        assert_true(passes < 300);
    }
    print_message("%d files: %.2f s in %d goes\n", files, now() - start, passes);
    /* without any time nothing is done, but no user can enter any more */
    struct stat info;
    assert_int_equal(hpct_spank_tmpdir_make(parent, 9, uid, gid), HPCT_OK);
    shell(in("touch %s/9/file && chmod 777 %s/9", parent, parent));
    assert_int_equal(hpct_spank_remove(top, "9", "9", 0), HPCT_ERR_IO);
    assert_true(exists(in("%s/9/file", parent)));
    assert_int_equal(stat(in("%s/9", parent), &info), 0);
    assert_int_equal(info.st_uid, geteuid());
    assert_int_equal(info.st_mode & 07777, 0700);
    assert_int_equal(hpct_spank_remove(top, "9", "9", 1), HPCT_OK);
    close(top);
    assert_int_equal(hpct_spank_tmpdir_remove(parent, 8), HPCT_OK); /* the records */
    assert_int_equal(hpct_spank_tmpdir_remove(parent, 9), HPCT_OK);
    assert_true(is_empty(parent));
}

TEST(unremovable_entry_is_named)
{
    if (geteuid() != 0)
        skip();
    assert_int_equal(hpct_spank_tmpdir_make(parent, 13, uid, gid), HPCT_OK);
    shell(in("mkdir -p %s/13/a && cd %s/13/a && touch 'odd\nname' other", parent, parent));
    if (system(in("cd %s/13/a && chattr +i odd*name 2>/dev/null", parent)) != 0) {
        assert_int_equal(hpct_spank_tmpdir_remove(parent, 13), HPCT_OK);
        skip();
    }
    double start = now();
    assert_int_equal(hpct_spank_tmpdir_remove(parent, 13), HPCT_ERR_IO);
    assert_true(now() - start < 3); /* it does not wait for a change that cannot come */
    assert_non_null(strstr(hpct_last_error(), "'odd?name': Operation not permitted"));
    shell(
        in("test \"$(find %s/.gone-13* -type f | wc -w)\" = 2", parent)); /* a name of two words */
    shell(in("chattr -i %s/.gone-13*/a/odd*name", parent));
    hpct_spank_tmpdir_sweep(parent);
    assert_true(is_empty(parent));
}

/* A mount in the user's own namespace (a container's) is not a mount here. */
TEST(a_mount_in_another_namespace_is_no_obstacle)
{
    int ready[2];
    char byte;
    if (geteuid() != 0)
        skip();
    assert_int_equal(hpct_spank_tmpdir_make(parent, 16, uid, gid), HPCT_OK);
    shell(in("mkdir %s/16/m", parent));
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        place_own_mounts();
        if (mount("none", in("%s/16/m", parent), "tmpfs", 0, NULL) != 0 ||
            chdir(in("%s/16/m", parent)) != 0 || write(ready[1], "", 1) != 1)
            _exit(1);
        pause();
        _exit(0);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(hpct_spank_tmpdir_remove(parent, 16), HPCT_OK);
    assert_true(is_empty(parent));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ready[0]);
}

/* ---- mounts ---------------------------------------------------------------------------------- */

/* A bind mount has the device number of the file system around it. */
TEST(mounts_of_root_are_not_entered)
{
    place_own_mounts();
    assert_int_equal(hpct_spank_tmpdir_make(parent, 10, uid, gid), HPCT_OK);
    shell(
        in("mkdir -p %s/mine %s/10/a/m %s/10/b && touch %s/mine/file", base, parent, parent, base));
    assert_int_equal(mount(in("%s/mine", base), in("%s/10/a/m", parent), "none", MS_BIND, NULL), 0);
    assert_int_equal(hpct_spank_tmpdir_remove(parent, 10), HPCT_ERR_IO);
    assert_non_null(strstr(hpct_last_error(), "/.gone-10-"));
    assert_non_null(strstr(hpct_last_error(), "'m': Device or resource busy"));
    assert_true(exists(in("%s/mine/file", base)));
    assert_false(exists(in("%s/10", parent))); /* the name is free for the job's next run */
    assert_false(exists(in("%s/.gone-10-%d-0/b", parent, (int) getpid())));
    hpct_spank_tmpdir_sweep(parent);
    assert_true(exists(in("%s/mine/file", base)));
    assert_int_equal(umount(in("%s/.gone-10-%d-0/a/m", parent, (int) getpid())), 0);
    hpct_spank_tmpdir_sweep(parent);
    assert_true(is_empty(parent));
    assert_true(exists(in("%s/mine/file", base)));

    assert_int_equal(hpct_spank_tmpdir_make(parent, 11, uid, gid), HPCT_OK);
    assert_int_equal(mount(in("%s/mine", base), in("%s/11", parent), "none", MS_BIND, NULL), 0);
    assert_int_equal(hpct_spank_tmpdir_make(parent, 11, uid, gid), HPCT_ERR_IO);
    assert_non_null(strstr(hpct_last_error(), "/11 cannot be used: a file system is mounted"));
    assert_int_equal(hpct_spank_tmpdir_remove(parent, 11), HPCT_ERR_IO);
    assert_non_null(strstr(hpct_last_error(), "/11 cannot be removed: a file system is mounted"));
    assert_true(exists(in("%s/mine/file", base)));
    assert_int_equal(umount(in("%s/11", parent)), 0);
    assert_int_equal(hpct_spank_tmpdir_remove(parent, 11), HPCT_OK);
}

/* What fusermount does for a user: a mount whose requests come to the returned descriptor.
 * Everybody may enter it (allow_other), and nobody answers unless a test does. */
static int mount_fuse(const char *path, uid_t owner)
{
    int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (fd < 0)
        skip();
    assert_int_equal(mount("fuse", path, "fuse", 0,
                           in("fd=%d,rootmode=40000,user_id=%u,group_id=0,allow_other", fd, owner)),
                     0);
    return fd;
}

TEST(unresponsive_mount_is_not_accessed)
{
    place_own_mounts();
    assert_int_equal(hpct_spank_tmpdir_make(parent, 15, uid, gid), HPCT_OK);
    alarm(60); /* a process that waits for FUSE can be killed */
    /* on the directory itself, one upon the other: the next step is told, the epilog succeeds */
    int first = mount_fuse(in("%s/15", parent), uid), second = mount_fuse(in("%s/15", parent), uid);
    assert_int_equal(hpct_spank_tmpdir_make(parent, 15, uid, gid), HPCT_ERR_IO);
    assert_non_null(strstr(hpct_last_error(), "a file system is mounted on it"));
    assert_int_equal(hpct_spank_tmpdir_remove(parent, 15), HPCT_OK);
    assert_true(is_empty(parent));
    close(first);
    close(second);
    /* within it, deep down */
    assert_int_equal(hpct_spank_tmpdir_make(parent, 15, uid, gid), HPCT_OK);
    shell(in("mkdir -p %s/15/a/b/m", parent));
    first = mount_fuse(in("%s/15/a/b/m", parent), uid);
    assert_int_equal(hpct_spank_tmpdir_remove(parent, 15), HPCT_OK);
    assert_true(is_empty(parent));
    close(first);
    /* a mount that root made may be something that the administrator wants */
    assert_int_equal(hpct_spank_tmpdir_make(parent, 15, uid, gid), HPCT_OK);
    shell(in("mkdir %s/15/m", parent));
    first = mount_fuse(in("%s/15/m", parent), 0);
    assert_int_equal(hpct_spank_tmpdir_remove(parent, 15), HPCT_ERR_IO);
    assert_non_null(strstr(hpct_last_error(), "'m': Device or resource busy"));
    assert_int_equal(umount2(in("%s/.gone-15-%d-0/m", parent, (int) getpid()), MNT_DETACH), 0);
    close(first);
    hpct_spank_tmpdir_sweep(parent);
    assert_true(is_empty(parent));
    alarm(0);
}

/* As little of a file server as an empty folder needs. A process of its own: under valgrind a
 * thread that waits for the server would keep it from running. */
static void serve(int fd)
{
    static char request[65536] __attribute__((aligned(8)));
    while (read(fd, request, sizeof request) > 0) {
        const struct fuse_in_header *header = (const struct fuse_in_header *) (void *) request;
        struct {
            struct fuse_out_header header;
            union {
                struct fuse_init_out init;
                struct fuse_attr_out attributes;
                struct fuse_open_out open;
                struct fuse_statfs_out statfs;
            } body;
        } answer = {.header = {.unique = header->unique}};
        size_t size = 0;
        if (header->opcode == FUSE_INIT) {
            answer.body.init.major = FUSE_KERNEL_VERSION;
            answer.body.init.minor = FUSE_KERNEL_MINOR_VERSION;
            answer.body.init.max_write = 4096;
            size = sizeof answer.body.init;
        } else if (header->opcode == FUSE_GETATTR) {
            answer.body.attributes.attr.ino = 1;
            answer.body.attributes.attr.mode = S_IFDIR | 0711;
            answer.body.attributes.attr.nlink = 2;
            size = sizeof answer.body.attributes;
        } else if (header->opcode == FUSE_OPENDIR) {
            size = sizeof answer.body.open;
        } else if (header->opcode == FUSE_STATFS) {
            size = sizeof answer.body.statfs;
        } else {
            answer.header.error = -ENOSYS;
        }
        answer.header.len = (uint32_t) (sizeof answer.header + size);
        if (header->opcode != FUSE_FORGET && header->opcode != FUSE_BATCH_FORGET &&
            write(fd, &answer, answer.header.len) < 0)
            break;
    }
    _exit(0);
}

TEST(a_parent_on_a_network_is_refused)
{
    place_own_mounts();
    shell(in("mkdir %s/far", base));
    int fd = mount_fuse(in("%s/far", base), 0);
    pid_t server = fork();
    if (server == 0)
        serve(fd);
    alarm(60);
    assert_int_equal(hpct_spank_tmpdir_make(in("%s/far", base), 1, uid, gid), HPCT_ERR_CONFIG);
    assert_non_null(
        strstr(hpct_last_error(), "/far lies on FUSE, a network file system: set tmpdir="));
    assert_int_equal(umount2(in("%s/far", base), MNT_DETACH), 0);
    close(fd);
    assert_int_equal(waitpid(server, NULL, 0), server);
    alarm(0);
}

int main(void)
{
    return unit_run(place_setup, place_teardown);
}
