/* --hpc-train-bind=closest between real processes: who asks, what the others hear, and what happens
 * when somebody is missing or the helper fails. The helper is a shell script here. */
#include "spank/gpu_ask.h"
#include "spank/gpu_closest.h"
#include "tests/unit/unit.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char folder[64], helper[96], count_file[96];
static const uid_t *users; /* the user of each task; NULL: the caller's */

static int set_up(void **state)
{
    strcpy(folder, "/tmp/hpc-train-meet.XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(helper, sizeof helper, "%s/helper", folder);
    snprintf(count_file, sizeof count_file, "%s/count", folder);
    return 0;
}

static int tear_down(void **state)
{
    unlink(helper);
    unlink(count_file);
    return rmdir(folder);
}

static void write_helper(const char *body)
{
    FILE *file = fopen(helper, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\necho x >>%s\n%s\n", count_file, body);
    fclose(file);
    assert_int_equal(chmod(helper, 0755), 0);
    unlink(count_file);
}

static int times_asked(void)
{
    int lines = 0, c;
    FILE *file = fopen(count_file, "r");
    while (file != NULL && (c = fgetc(file)) != EOF)
        lines += c == '\n';
    if (file != NULL)
        fclose(file);
    return lines;
}

/* Starts a process per task; each ends with place + 1 (0 for -1), or with 100 more after an error.
 * visible[i] NULL: that task never comes. */
static void run_tasks(int tasks, const char *const *visible, bool bound, int *results)
{
    hpct_spank_gpu_meet *meet;
    pid_t pids[16];
    assert_int_equal(hpct_spank_gpu_meet_make(tasks, &meet), HPCT_OK);
    for (int i = 0; i < tasks; i++) {
        pids[i] = fork();
        if (pids[i] != 0)
            continue;
        cpu_set_t one;
        int place = -2;
        CPU_ZERO(&one);
        CPU_SET(0, &one);
        if (bound && sched_setaffinity(0, sizeof one, &one) != 0)
            _exit(255);
        if (users != NULL && setresuid(users[i], users[i], users[i]) != 0)
            _exit(255);
        if (visible[i] == NULL)
            _exit(0);
        nanosleep(&(struct timespec){.tv_nsec = (tasks - i) * 3000000L}, NULL);
        hpct_status status =
            hpct_spank_gpu_closest_place(meet, i, visible[i], helper, "node0", &place);
        _exit(place + 1 + (status == HPCT_OK ? 0 : 100));
    }
    for (int i = 0; i < tasks; i++) {
        int state;
        assert_int_equal(waitpid(pids[i], &state, 0), pids[i]);
        assert_true(WIFEXITED(state));
        results[i] = WEXITSTATUS(state);
    }
    hpct_spank_gpu_meet_free(meet);
}

static bool more_than_one_cpu(void)
{
    return sysconf(_SC_NPROCESSORS_ONLN) > 1;
}

TEST_WITH(one_task_asks_for_all, set_up, tear_down)
{
    const char *const visible[] = {"4,5,6", "4,5,6", "4,5,6", "4,5,6"};
    int results[4];
    if (!more_than_one_cpu())
        skip();
    /* it must be asked about every task, in their order, by the node's name */
    write_helper("[ \"$*\" = '--node node0' ] || exit 1\n"
                 "n=2; while read -r cpus gpus; do\n"
                 "[ \"$cpus $gpus\" = '0-0 4,5,6' ] || exit 1; echo $n; n=$(((n + 2) % 3)); done");
    run_tasks(4, visible, true, results);
    assert_int_equal(results[0], 3);
    assert_int_equal(results[1], 2);
    assert_int_equal(results[2], 1);
    assert_int_equal(results[3], 3);
    assert_int_equal(times_asked(), 1);
}

TEST_WITH(those_without_a_choice_do_not_wait, set_up, tear_down)
{
    const char *const visible[] = {"7", "", "0,1", "0,1"};
    const char *const each_one[] = {"0", "1", NULL};
    int results[4];
    if (!more_than_one_cpu())
        skip();
    write_helper("read -r a; read -r b; read -r c && exit 1; echo 1; echo 0");
    run_tasks(4, visible, true, results);
    assert_int_equal(results[0], 0);
    assert_int_equal(results[1], 0);
    assert_int_equal(results[2], 2);
    assert_int_equal(results[3], 1);
    time_t start = time(NULL);
    write_helper("exit 1");
    run_tasks(3, each_one, true, results);
    assert_true(results[0] == 0 && results[1] == 0 && time(NULL) - start < 5);
    assert_int_equal(times_asked(), 0);
}

/* ConstrainDevices with --gpus-per-task: every task calls its GPUs 0 and 1, and they are different
 * ones. In a /dev of the test's own, whose devices belong to the one user or the other. */
TEST_WITH(tasks_with_different_devices_are_treated_apart, set_up, tear_down)
{
    static const uid_t owners[] = {12001, 12001, 12002, 12002},
                       mixed[] = {12001, 12002, 12001, 12002};
    const char *const visible[] = {"0,1", "0,1", "0,1", "0,1"};
    int results[4];
    if (geteuid() != 0 || !more_than_one_cpu() || unshare(CLONE_NEWNS) != 0 ||
        mount("", "/", "", MS_REC | MS_PRIVATE, "") != 0 ||
        mount("dev", "/dev", "tmpfs", 0, "mode=755") != 0)
        skip();
    for (unsigned i = 0; i < 4; i++) {
        char path[32];
        snprintf(path, sizeof path, "/dev/nvidia%u", i);
        assert_int_equal(mknod(path, S_IFCHR | 0600, makedev(1, 3)), 0);
        assert_int_equal(chown(path, owners[i], 0), 0);
    }
    assert_int_equal(mknod("/dev/null", S_IFCHR | 0666, makedev(1, 3)), 0);
    assert_int_equal(chmod("/dev/null", 0666), 0);
    write_helper("read -r a; read -r b; read -r c && exit 1; echo 1; echo 0");
    fclose(fopen(count_file, "w"));
    assert_true(chmod(folder, 0755) == 0 && chmod(count_file, 0666) == 0);
    users = mixed;
    run_tasks(4, visible, true, results);
    users = NULL;
    umount2("/dev", MNT_DETACH);
    assert_int_equal(times_asked(), 2);
    assert_true(results[0] == 2 && results[2] == 1); /* the two of each user, in their order */
    assert_true(results[1] == 2 && results[3] == 1);
}

TEST_WITH(nobody_asks_when_no_task_is_bound, set_up, tear_down)
{
    const char *const visible[] = {"0,1", "0,1"};
    int results[2];
    if (access("/sys/devices/system/cpu/online", R_OK) != 0) /* a task's all may be a part */
        skip();
    write_helper("exit 1");
    run_tasks(2, visible, false, results);
    assert_true(results[0] == 0 && results[1] == 0);
    assert_int_equal(times_asked(), 0);
}

TEST_WITH(failed_request_is_reported_once, set_up, tear_down)
{
    static const char *const bad[] = {
        "echo there is no NVML; exit 78",
        "kill -9 $$",
        "echo 1",
        "echo 1; echo 2",
        "echo 1; echo x",
        "",
        "echo 1; echo -1",
        "echo 1; echo 0; echo 0",
    };
    const char *const visible[] = {"0,1", "0,1"}; /* so that the places are 0 and 1 */
    int results[2];
    if (!more_than_one_cpu())
        skip();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_helper(bad[i]);
        run_tasks(2, visible, true, results);
        if (results[0] != 100 || results[1] != 0)
            fail_msg("'%s': %d and %d", bad[i], results[0], results[1]);
    }
}

TEST_WITH(request_has_a_timeout, set_up, tear_down)
{
    char answer[64];
    time_t start = time(NULL);
    write_helper("exec sleep 60");
    assert_int_equal(hpct_spank_gpu_ask(helper, NULL, "0 0,1\n", 1, answer, sizeof answer),
                     HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), "within 1 seconds"));
    assert_true(time(NULL) - start < 10);
    write_helper(
        "echo a lot of words that do not fit into so small a place as this is meant to be");
    assert_int_equal(hpct_spank_gpu_ask(helper, NULL, "", 5, answer, sizeof answer), HPCT_OK);
    assert_int_equal(strlen(answer), sizeof answer - 1);
    assert_int_equal(hpct_spank_gpu_ask("/nonexistent/helper", NULL, "", 5, answer, sizeof answer),
                     HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), "/nonexistent/helper cannot be started"));
    write_helper("echo first words; echo more; exit 3");
    assert_int_equal(hpct_spank_gpu_ask(helper, NULL, "", 5, answer, sizeof answer),
                     HPCT_ERR_CONFIG);
    assert_string_equal(hpct_last_error(), "first words");
}

/* The helper gets nothing of the caller's environment but where Slurm's files are. */
TEST_WITH(the_helper_has_its_own_environment, set_up, tear_down)
{
    char answer[256];
    setenv("LD_PRELOAD_OF_USER", "x", 1);
    setenv("SLURM_CONF", "/run/here/slurm.conf", 1);
    write_helper("env | grep -v -e ^PWD= -e ^_= -e ^SHLVL= -e ^OLDPWD= | sort");
    assert_int_equal(hpct_spank_gpu_ask(helper, NULL, "", 5, answer, sizeof answer), HPCT_OK);
    assert_string_equal(answer,
                        "LC_ALL=C.UTF-8\nPATH=/usr/bin:/bin\nSLURM_CONF=/run/here/slurm.conf\n");
    unsetenv("LD_PRELOAD_OF_USER");
    unsetenv("SLURM_CONF");
}

TEST(missing_task_times_out)
{
    const hpct_spank_gpu_view view = {.gpus = 2};
    hpct_spank_gpu_meet *meet;
    assert_int_equal(hpct_spank_gpu_meet_make(2, &meet), HPCT_OK);
    hpct_spank_gpu_meet_post(meet, 1, &view);
    hpct_spank_gpu_meet_post(meet, 1, &view); /* twice is once */
    assert_false(hpct_spank_gpu_meet_all(meet, 50));
    assert_null(hpct_spank_gpu_meet_view(meet, 0));
    assert_int_equal(hpct_spank_gpu_meet_listen(meet, 1, 50), -1);
    hpct_spank_gpu_meet_post(meet, 0, &view);
    assert_true(hpct_spank_gpu_meet_all(meet, 50));
    hpct_spank_gpu_meet_tell(meet, 1, 0);
    assert_int_equal(hpct_spank_gpu_meet_listen(meet, 1, 50), 0);
    hpct_spank_gpu_meet_free(meet);
}
