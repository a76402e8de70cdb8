/* spank: one task works, the others wait; ports; the helper's watch. Real processes, real signals.
 */
#include "base/status.h"
#include "spank/ports_check.h"
#include "spank/share.h"
#include "spank/stage_run.h"
#include "spank/turn.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static hpct_spank_share *share;
static int *calls; /* shared: how often the work was done */

static int setup(void **state)
{
    calls = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *calls = 0;
    return calls == MAP_FAILED || hpct_spank_share_make(&share) != HPCT_OK;
}

static int teardown(void **state)
{
    hpct_spank_share_free(share);
    return munmap(calls, 4096);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double) time.tv_sec + (double) time.tv_nsec * 1e-9;
}

/* Runs `work` as 4 tasks; counts how they ended, and whether each one's message holds `says`. */
static void run_tasks(hpct_spank_share_work work, int stall_seconds, const char *says, int *good,
                      int *bad)
{
    pid_t tasks[4];
    for (int i = 0; i < 4; i++) {
        tasks[i] = fork();
        if (tasks[i] != 0)
            continue;
        hpct_status status = hpct_spank_share_once(share, HPCT_SPANK_SHARE_DATA, i,
                                                   "stage the data", stall_seconds, work, NULL);
        if (status == HPCT_OK)
            _exit(0);
        _exit(strstr(hpct_last_error(), says) != NULL ? 1 : 2);
    }
    *good = *bad = 0;
    for (int i = 0; i < 4; i++) {
        int end = 0;
        waitpid(tasks[i], &end, 0);
        *good += WIFEXITED(end) && WEXITSTATUS(end) == 0;
        *bad += WIFEXITED(end) && WEXITSTATUS(end) == 1;
    }
}

static hpct_status short_work(void *context, hpct_spank_share *s)
{
    __atomic_add_fetch(calls, 1, __ATOMIC_SEQ_CST);
    usleep(200000);
    return HPCT_OK;
}

static hpct_status failing_work(void *context, hpct_spank_share *s)
{
    short_work(context, s);
    return hpct_fail(HPCT_ERR_NO_INPUT, "no such data");
}

/* Longer than the waiters' patience, but it says that it goes on. */
static hpct_status long_work(void *context, hpct_spank_share *s)
{
    for (int i = 0; i < 16; i++) {
        usleep(250000);
        hpct_spank_share_progress(s);
    }
    return HPCT_OK;
}

static hpct_status stuck_work(void *context, hpct_spank_share *s)
{
    sleep(6);
    return HPCT_OK;
}

static hpct_status killed_work(void *context, hpct_spank_share *s)
{
    short_work(context, s);
    raise(SIGKILL);
    return HPCT_OK;
}

TEST_WITH(one_works_for_all, setup, teardown)
{
    int good = 0, bad = 0;
    run_tasks(short_work, 5, "", &good, &bad);
    assert_int_equal(good, 4);
    assert_int_equal(*calls, 1);
    assert_true(hpct_spank_share_first(share, HPCT_SPANK_SHARE_REPORTED));
    assert_false(hpct_spank_share_first(share, HPCT_SPANK_SHARE_REPORTED));
}

TEST_WITH(all_learn_of_a_failure, setup, teardown)
{
    int good = 0, bad = 0;
    run_tasks(failing_work, 5, "no such data", &good, &bad);
    assert_int_equal(bad, 4);
    assert_int_equal(*calls, 1);
}

TEST_WITH(waiting_goes_on_with_progress, setup, teardown)
{
    int good = 0, bad = 0;
    run_tasks(long_work, 2, "", &good, &bad);
    assert_int_equal(good, 4);
}

TEST_WITH(waiting_ends_without_progress, setup, teardown)
{
    int good = 0, bad = 0;
    double start = now();
    run_tasks(stuck_work, 2, "to stage the data, but it made no progress for 2 seconds", &good,
              &bad);
    assert_int_equal(bad, 3);
    assert_int_equal(good, 1); /* who worked */
    assert_true(now() - start < 10);
}

TEST_WITH(a_killed_worker_is_noticed_at_once, setup, teardown)
{
    int good = 0, bad = 0;
    double start = now();
    run_tasks(killed_work, 30, "which was to stage the data, was killed", &good, &bad);
    assert_int_equal(bad, 3);
    assert_int_equal(*calls, 1);
    assert_true(now() - start < 3);
}

/* The mutex comes first in the share; the worker is done when a task dies that only reads. */
TEST_WITH(a_killed_reader_spoils_nothing, setup, teardown)
{
    int good = 0, bad = 0;
    assert_int_equal(
        hpct_spank_share_once(share, HPCT_SPANK_SHARE_DATA, 0, "stage", 5, short_work, NULL),
        HPCT_OK);
    pid_t reader = fork();
    if (reader == 0) {
        pthread_mutex_lock((pthread_mutex_t *) (void *) share);
        _exit(0);
    }
    waitpid(reader, NULL, 0);
    run_tasks(short_work, 5, "", &good, &bad);
    assert_int_equal(good, 4);
    assert_int_equal(*calls, 1);
}

/* ---- the helper, played by shell scripts ---- */

static char helper[64];

static const char *hosts; /* for the next one */

static hpct_status run_helper(const char *script, int stall_seconds)
{
    hpct_spank_settings settings = {
        .helper = helper, .stage_max = 1000, .stage_follow = true, .num_stage_src = 1};
    char prefix[] = "/allowed";
    settings.stage_src[0] = prefix;
    hpct_spank_stage_run run = {.settings = &settings,
                                .to = "/to",
                                .list = "/a,/b:c",
                                .mode = hosts == NULL ? NULL : "broadcast",
                                .hosts = hosts,
                                .node = hosts == NULL ? 0 : 1, /* the first speaks for all */
                                .job = hosts == NULL ? NULL : "42.0",
                                .memory = 4096,
                                .stall_seconds = stall_seconds};
    strcpy(helper, "/tmp/hpc-train-helper.XXXXXX");
    int fd = mkstemp(helper);
    fchmod(fd, 0700);
    dprintf(fd, "#!/bin/sh\n%s\n", script);
    close(fd);
    hpct_status status = hpct_spank_stage_run_work(&run, share);
    unlink(helper);
    return status;
}

TEST_WITH(the_helper_is_called_as_told, setup, teardown)
{
    setenv("LD_PRELOAD_TEST", "1", 1);
    int first = open("/proc/version", O_RDONLY), secret = dup2(first, 20); /* not close-on-exec */
    close(first);
    assert_int_equal(secret, 20);
    assert_int_equal(
        run_helper("[ \"$*\" = '--progress-fd 3 --max 1000 --links follow --memory 4096 "
                   "--allow /allowed --to /to --list /a,/b:c' ] && [ -z \"$LD_PRELOAD_TEST\" ] && "
                   "! ls -l /proc/$$/fd | grep -q /proc/version",
                   10),
        HPCT_OK);
    hosts = "a:1\nb:2\n";
    assert_int_equal(
        run_helper(
            "case \"$*\" in *' --quiet '*'--mode broadcast --nodes /proc/self/fd/4 --index 1 "
            "--job 42.0 --to /to'*) ;; *) exit 1;; esac; "
            "[ \"$(cat /proc/self/fd/4)\" = \"$(printf 'a:1\\nb:2')\" ] && "
            "! ls -l /proc/$$/fd | grep -q /proc/version",
            10),
        HPCT_OK);
    hosts = NULL;
    close(secret);
}

TEST_WITH(the_helpers_end_is_told, setup, teardown)
{
    assert_int_equal(run_helper("exit 66", 10), HPCT_ERR_NO_INPUT);
    assert_int_equal(run_helper("kill -KILL $$", 10), HPCT_ERR_IO);
    assert_non_null(strstr(hpct_last_error(), "killed by signal 9"));
    assert_int_equal(run_helper("for i in $(seq 10); do sleep 0.5; printf . >&3; done", 4),
                     HPCT_OK);
    strcpy(helper, "/nonexistent/helper");
    hpct_spank_settings settings = {.helper = helper};
    hpct_spank_stage_run run = {
        .settings = &settings, .to = "/to", .list = "/a", .stall_seconds = 5};
    assert_int_equal(hpct_spank_stage_run_work(&run, share), HPCT_ERR_CONFIG);
}

TEST_WITH(a_stopped_helper_is_ended, setup, teardown)
{
    double start = now();
    assert_int_equal(run_helper("kill -STOP $$; sleep 100", 1), HPCT_ERR_IO);
    assert_non_null(strstr(hpct_last_error(), "no progress for 1 seconds"));
    assert_true(now() - start < 60);
}

TEST_WITH(a_helper_that_does_not_end_is_ended, setup, teardown)
{
    double start = now();
    assert_int_equal(run_helper("exec 3>&- sleep 100", 1), HPCT_ERR_IO);
    assert_non_null(strstr(hpct_last_error(), "no progress for 1 seconds"));
    assert_true(now() - start < 60);
}

TEST_WITH(a_lost_status_is_no_success, setup, teardown)
{
    signal(SIGCHLD, SIG_IGN);
    hpct_status status = run_helper("exit 66", 10);
    signal(SIGCHLD, SIG_DFL);
    assert_int_equal(status, HPCT_ERR_IO);
}

/* ---- ports ---- */

static int listen_on(int family, int port)
{
    int fd = socket(family, SOCK_STREAM, 0);
    struct sockaddr_in any4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t) port)};
    struct sockaddr_in6 any6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t) port)};
    int yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
    int error = family == AF_INET ? bind(fd, (struct sockaddr *) &any4, sizeof any4)
                                  : bind(fd, (struct sockaddr *) &any6, sizeof any6);
    if (error != 0 || listen(fd, 1) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

TEST(ports_in_use_are_named)
{
    int port = 21000 + (int) (getpid() % 5000);
    int fd = listen_on(AF_INET, port);
    assert_true(fd >= 0);
    assert_int_equal(hpct_spank_port_check(port, "node7"), HPCT_ERR_CONFIG);
    char want[64];
    snprintf(want, sizeof want, "port %d on node7", port);
    assert_non_null(strstr(hpct_last_error(), want));
    assert_non_null(strstr(hpct_last_error(), "--hpc-train-port"));
    close(fd);
    assert_int_equal(hpct_spank_port_check(port, "node7"), HPCT_OK);
    assert_int_equal(hpct_spank_port_check(port, "node7"), HPCT_OK);
    fd = listen_on(AF_INET6, port);
    if (fd >= 0) {
        assert_int_equal(hpct_spank_port_check(port, "node7"), HPCT_ERR_CONFIG);
        close(fd);
    }
}

/* ---- turns ---- */

TEST(node_reports_are_staggered)
{
    int at_once = 0, most = 0, per_tenth[20] = {0};
    for (uint32_t node = 0; node < 10000; node++) {
        int turn = hpct_spank_turn_ms(node, 10000);
        assert_within(turn, 0, 1999);
        at_once += turn == 0;
        per_tenth[turn / 100]++;
    }
    for (int i = 0; i < 20; i++)
        most = per_tenth[i] > most ? per_tenth[i] : most;
    assert_int_equal(at_once, 16);
    assert_within(most, 500, 520);
    assert_int_equal(hpct_spank_turn_ms(15, 16), 0);
    assert_int_equal(hpct_spank_turn_ms(5, 3), 0);
    assert_int_equal(hpct_spank_turn_ms(UINT32_MAX - 1, UINT32_MAX), 1999);
}
