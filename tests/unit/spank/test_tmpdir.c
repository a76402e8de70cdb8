/* spank: the job directory's making and removal, against names, links and owners that are not what
 * they should be. Runs as root (with an unprivileged uid for the job) or as any user (for himself).
 */
#include "spank/parent.h"
#include "spank/tmpdir.h"
#include "tests/unit/spank/place.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define base place_base
#define parent place_parent
#define uid place_uid
#define gid place_gid
#define in place_text
#define shell place_shell
#define exists place_exists

TEST(a_directory_is_made_and_removed)
{
    struct stat info;
    umask(077);
    assert_int_equal(hpct_spank_tmpdir_make(parent, 42, uid, gid), HPCT_OK);
    assert_int_equal(hpct_spank_tmpdir_make(parent, 42, uid, gid), HPCT_OK); /* the next step */
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
    /* records are beside it, where the user's clean-up does not find them */
    assert_int_equal(stat(in("%s/.records-42", parent), &info), 0);
    assert_int_equal(info.st_uid, uid);
    assert_int_equal(info.st_mode & 07777, 0700);
    shell(in("cd %s/.records-42 && touch out.0 && mkdir a && ln -s / a/root", parent));
    assert_int_equal(hpct_spank_tmpdir_remove(parent, 42), HPCT_OK);
    assert_false(exists(in("%s/42", parent)));
    assert_false(exists(in("%s/.records-42", parent)));
    assert_int_equal(hpct_spank_tmpdir_remove(parent, 42), HPCT_OK);
    assert_int_equal(hpct_spank_tmpdir_remove(in("%s/none", base), 42), HPCT_OK);
}

TEST(jobs_do_not_touch_one_another)
{
    char *path = hpct_spank_tmpdir_path("/p", 42);
    assert_string_equal(path, "/p/42");
    free(path);
    assert_int_equal(hpct_spank_tmpdir_make(parent, 42, uid, gid), HPCT_OK);
    assert_int_equal(hpct_spank_tmpdir_make(parent, 421, uid, gid), HPCT_OK);
    assert_int_equal(hpct_spank_tmpdir_remove(parent, 42), HPCT_OK);
    assert_false(exists(in("%s/42", parent)));
    assert_true(exists(in("%s/421", parent)));
    assert_int_equal(hpct_spank_tmpdir_remove(parent, 421), HPCT_OK);
}

TEST(links_are_removed_and_not_followed)
{
    assert_int_equal(hpct_spank_tmpdir_make(parent, 1, uid, gid), HPCT_OK);
    shell(in("mkdir -p %s/precious && touch %s/precious/file", base, base));
    shell(in("ln -s %s/precious %s/1/link && ln -s %s/precious %s/7", base, parent, base, parent));
    assert_int_equal(hpct_spank_tmpdir_remove(parent, 1), HPCT_OK);
    assert_int_equal(hpct_spank_tmpdir_remove(parent, 7), HPCT_OK);
    assert_false(exists(in("%s/1", parent)) || exists(in("%s/7", parent)));
    assert_true(exists(in("%s/precious/file", base)));
    /* a link planted at the name of a job's directory is replaced, not used */
    shell(in("ln -s %s/precious %s/8", base, parent));
    assert_int_equal(hpct_spank_tmpdir_make(parent, 8, uid, gid), HPCT_OK);
    struct stat info;
    assert_int_equal(lstat(in("%s/8", parent), &info), 0);
    assert_true(S_ISDIR(info.st_mode));
    assert_int_equal(stat(in("%s/precious", base), &info), 0);
    assert_int_equal(info.st_uid, geteuid());
    assert_int_equal(hpct_spank_tmpdir_remove(parent, 8), HPCT_OK);
}

TEST(what_another_user_left_is_removed)
{
    if (geteuid() != 0)
        skip();
    assert_int_equal(hpct_spank_tmpdir_make(parent, 9, uid + 1, gid), HPCT_OK);
    shell(in("touch %s/9/secret", parent));
    assert_int_equal(hpct_spank_tmpdir_make(parent, 9, uid, gid), HPCT_OK);
    assert_false(exists(in("%s/9/secret", parent)));
    assert_int_equal(hpct_spank_tmpdir_remove(parent, 9), HPCT_OK);
    shell(in("test -e %s/.gone-9-*/secret", parent)); /* tasks that start do not wait for this */
    hpct_spank_tmpdir_sweep(parent);
    shell(in("test -z \"$(ls -A %s)\"", parent));
}

TEST(unsafe_parents_are_refused)
{
    struct stat info;
    shell(
        in("mkdir -m 777 %s/open && mkdir -m 1777 %s/sticky && mkdir %s/real && ln -s real %s/link",
           base, base, base, base));
    /* others could rename what is in it */
    assert_int_equal(hpct_spank_tmpdir_make(in("%s/open", base), 1, uid, gid), HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), "written by others"));
    assert_int_equal(hpct_spank_tmpdir_make(in("%s/open/jobs", base), 1, uid, gid),
                     HPCT_ERR_CONFIG);
    /* in a sticky one they cannot, but could make the job directories' names their own */
    assert_int_equal(hpct_spank_tmpdir_make(in("%s/sticky", base), 1, uid, gid), HPCT_ERR_CONFIG);
    assert_int_equal(hpct_spank_tmpdir_make(in("%s/sticky/jobs", base), 1, uid, gid), HPCT_OK);
    assert_int_equal(hpct_spank_tmpdir_make(in("%s/link/jobs", base), 1, uid, gid),
                     HPCT_ERR_CONFIG);
    assert_false(exists(in("%s/real/jobs", base)));
    shell(in("touch %s/file", base));
    assert_int_equal(hpct_spank_tmpdir_make(in("%s/file", base), 1, uid, gid), HPCT_ERR_CONFIG);
    assert_int_equal(hpct_spank_tmpdir_make(in("%s/no/where", base), 1, uid, gid), HPCT_ERR_CONFIG);
    if (geteuid() == 0) {
        shell(in("mkdir -m 755 %s/theirs && chown %u %s/theirs", base, uid, base));
        assert_int_equal(hpct_spank_tmpdir_make(in("%s/theirs", base), 1, uid, gid),
                         HPCT_ERR_CONFIG);
        assert_non_null(strstr(hpct_last_error(), "belongs to user"));
        assert_int_equal(hpct_spank_tmpdir_make(in("%s/theirs/jobs", base), 1, uid, gid),
                         HPCT_ERR_CONFIG);
        assert_non_null(strstr(hpct_last_error(), "the administrator must set tmpdir="));
    }
    assert_int_equal(stat(in("%s/open", base), &info), 0);
    assert_int_equal(info.st_mode & 07777, 0777);
}

TEST(steps_may_race)
{
    for (uint32_t job = 100; job < 120; job++) {
        int failed = 0;
        pid_t children[8];
        for (int i = 0; i < 8; i++) {
            children[i] = fork();
            if (children[i] == 0)
                _exit(hpct_spank_tmpdir_make(parent, job, uid, gid) == HPCT_OK ? 0 : 1);
        }
        for (int i = 0; i < 8; i++) {
            int end = 0;
            waitpid(children[i], &end, 0);
            failed += end != 0;
        }
        assert_int_equal(failed, 0);
        assert_int_equal(hpct_spank_tmpdir_remove(parent, job), HPCT_OK);
    }
    shell(in("test -z \"$(ls -A %s)\"", parent)); /* no half-made ones stay */
}

TEST(leftovers_are_removed_later)
{
    assert_int_equal(hpct_spank_tmpdir_make(parent, 12, uid, gid), HPCT_OK);
    shell(in("mkdir -p %s/.gone-13-1/deep/er && touch %s/.gone-13-1/file %s/12/file", parent,
             parent, parent));
    hpct_spank_tmpdir_sweep(parent);
    assert_false(exists(in("%s/.gone-13-1", parent)));
    assert_true(exists(in("%s/12/file", parent)));
    assert_int_equal(hpct_spank_tmpdir_remove(parent, 12), HPCT_OK);
    hpct_spank_tmpdir_sweep(in("%s/none", base));
}

TEST(incomplete_directories_are_removed_with_the_job)
{
    assert_int_equal(hpct_spank_tmpdir_make(parent, 14, uid, gid), HPCT_OK);
    shell(in("mkdir -p %s/.new-14-1/full %s/.new-14-%d %s/.new-15-1 %s/.new-140-1", parent, parent,
             (int) getpid(), parent, parent));
    assert_int_equal(hpct_spank_tmpdir_remove(parent, 14), HPCT_OK);
    assert_false(exists(in("%s/.new-14-1", parent)) || exists(in("%s/14", parent)));
    assert_true(exists(in("%s/.new-15-1", parent)) && exists(in("%s/.new-140-1", parent)));
    /* nor are they in the way of a process that has the number of the one that was killed */
    shell(in("mkdir -p %s/.new-14-%d", parent, (int) getpid()));
    assert_int_equal(hpct_spank_tmpdir_make(parent, 14, uid, gid), HPCT_OK);
    assert_int_equal(hpct_spank_tmpdir_remove(parent, 14), HPCT_OK);
    shell(in("rmdir %s/.new-15-1 %s/.new-140-1", parent, parent));
}

TEST(reboot_moves_old_directories_aside)
{
    struct stat info;
    shell(in("rm -rf %s", parent));
    umask(077);
    assert_int_equal(hpct_spank_tmpdir_prepare(parent), HPCT_OK);
    umask(022);
    assert_int_equal(stat(parent, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0711);
    assert_int_equal(hpct_spank_tmpdir_make(parent, 21, uid, gid), HPCT_OK);
    shell(in("touch %s/21/data && mkdir %s/.new-21-7 %s/lost+found", parent, parent, parent));
    assert_int_equal(hpct_spank_tmpdir_prepare(parent),
                     HPCT_OK); /* the daemon alone started again */
    assert_true(exists(in("%s/21/data", parent)));
    shell(in("rm %s/.boot", parent)); /* nothing is known of the run before */
    assert_int_equal(hpct_spank_tmpdir_prepare(parent), HPCT_OK);
    assert_true(exists(in("%s/21/data", parent)));
    shell(in("echo 0123 >%s/.boot", parent));
    assert_int_equal(hpct_spank_tmpdir_prepare(parent), HPCT_OK);
    assert_false(exists(in("%s/21", parent)) || exists(in("%s/.new-21-7", parent)));
    assert_true(exists(in("%s/lost+found", parent)));
    shell(in("cmp %s/.boot /proc/sys/kernel/random/boot_id", parent));
    hpct_spank_tmpdir_sweep(parent);
    shell(in("test \"$(ls -A %s)\" = \"$(printf '.boot\\nlost+found')\"", parent));
    shell(in("rm -r %s", parent));
    if (geteuid() == 0) {
        shell(in("mkdir %s && chown %u %s", parent, uid, parent));
        assert_int_equal(hpct_spank_tmpdir_prepare(parent), HPCT_ERR_CONFIG);
        assert_non_null(strstr(hpct_last_error(), "belongs to user"));
        shell(in("rmdir %s", parent));
    }
}

TEST(invisible_directory_is_an_error)
{
    assert_int_equal(hpct_spank_tmpdir_check(in("%s/none", parent)), HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), "/none was made, but the tasks do not see it"));
    assert_non_null(strstr(hpct_last_error(), "tmpdir="));
    assert_int_equal(hpct_spank_tmpdir_check("/tmp"), HPCT_OK);
    assert_int_equal(hpct_spank_tmpdir_check("/proc/version/x"), HPCT_ERR_IO);
}

TEST(network_file_systems_are_known)
{
    assert_string_equal(hpct_spank_network_file_system(0x6969), "NFS");
    assert_string_equal(hpct_spank_network_file_system(0x0bd00bd0), "Lustre");
    assert_string_equal(hpct_spank_network_file_system(0xff534d42), "CIFS");
    static const unsigned long local[] = {0xef53, 0x58465342, 0x01021994, 0x9123683e, 0x794c7630};
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        assert_null(hpct_spank_network_file_system(local[i]));
}

int main(void)
{
    return unit_run(place_setup, place_teardown);
}
