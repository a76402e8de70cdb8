/* spank: a program that runs as the user, and that the user can manipulate: it is watched all the
 * same. Played by shell scripts. */
#include "base/status.h"
#include "spank/child.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double) time.tv_sec + (double) time.tv_nsec * 1e-9;
}

static char heard[256 * 1024];
static int num_lines;

static void keep_line(void *context, const char *text)
{
    num_lines++;
    strncat(heard, text, sizeof heard - strlen(heard) - 1);
    strncat(heard, "\n", sizeof heard - strlen(heard) - 1);
}

static double seconds; /* that the last one took */

static hpct_status run(hpct_spank_child child, const char *text)
{
    char shell[] = "/bin/sh", option[] = "-c";
    char *script = strdup(text), *arguments[] = {shell, option, script, NULL};
    double start = now();
    heard[0] = '\0';
    num_lines = 0;
    child.arguments = arguments;
    hpct_status status = hpct_spank_child_run(&child, "the test");
    seconds = now() - start;
    free(script);
    return status;
}

#define SOON                                                                                       \
    40 /* seconds that a loaded machine keeps, and what would not end by itself does not           \
        */

static const hpct_spank_child patient = {.stall_seconds = 20, .end_signal = SIGKILL};

TEST(output_is_captured_and_sanitized)
{
    hpct_spank_child child = patient;
    child.line = keep_line;
    assert_int_equal(run(child, "printf 'a\\033b\\nlast' >&2; exit 74"), HPCT_ERR_IO);
    assert_string_equal(heard, "a?b\nlast\n");
    assert_int_equal(run(child, "seq 100000 >&2; exit 0"), HPCT_OK); /* what has no room is lost */
    assert_int_equal(num_lines, 40);
}

/* Another process of the user's can open its files through /proc and keep them. */
TEST(open_descriptors_of_others_do_not_delay)
{
    hpct_spank_child child = patient;
    static const char script[] =
        "(for i in $(seq 120); do echo >&3; sleep 0.5; done) >/dev/null 2>&1 & exit 66";
    assert_int_equal(run(child, script), HPCT_ERR_NO_INPUT);
    assert_true(seconds < SOON);
    child.line = keep_line;
    assert_int_equal(run(child, "timeout 60 yes >&2 3>&- & sleep 3; exit 66"), HPCT_ERR_NO_INPUT);
    assert_true(seconds < SOON);
    assert_int_equal(num_lines, 40);
}

TEST(closing_output_does_not_extend_the_timeout)
{
    hpct_spank_child child = patient;
    child.limit_seconds = 1;
    assert_int_equal(run(child, "exec 3>&- 2>&-; sleep 300"), HPCT_ERR_STOPPED);
    assert_non_null(strstr(hpct_last_error(), "had not ended after 1 seconds"));
    assert_true(seconds < SOON);
    child = (hpct_spank_child){.stall_seconds = 1, .end_signal = SIGKILL};
    assert_int_equal(run(child, "exec 3>&-; sleep 300"), HPCT_ERR_IO);
    assert_non_null(strstr(hpct_last_error(), "no progress for 1 seconds"));
    assert_true(seconds < SOON);
}

TEST(stopped_child_is_killed_after_the_timeout)
{
    hpct_spank_child child = patient;
    child.limit_seconds = 1;
    assert_int_equal(run(child, "kill -STOP $$"), HPCT_ERR_STOPPED);
    assert_true(seconds < SOON);
    child = (hpct_spank_child){.stall_seconds = 1, .end_signal = SIGKILL};
    assert_int_equal(run(child, "kill -STOP $$"), HPCT_ERR_IO);
    assert_true(seconds < SOON);
}

TEST(changed_byte_is_a_heartbeat)
{
    hpct_spank_child child = {.stall_seconds = 5, .end_signal = SIGKILL};
    assert_int_equal(run(child, "for i in 1 2 3 4 5 6 7; do printf . >&3; sleep 1; done; exit 66"),
                     HPCT_ERR_NO_INPUT);
}

/* A process that has ended belongs to its tracer until that detaches. */
TEST(traced_child_does_not_delay)
{
    char name[] = "/tmp/hpc-train-child.XXXXXX", text[256] = "";
    int fd = mkstemp(name), status;
    pid_t tracer = fork(), traced = 0;
    if (tracer == 0) {
        while (read(fd, text, sizeof text) <= 0 || sscanf(text, "%d", &traced) != 1)
            usleep(1000);
        if (ptrace(PTRACE_SEIZE, traced, NULL, NULL) != 0 || unlink(name) != 0)
            _exit(1);
        pause();
    }
    assert_true(fd >= 0 && tracer > 0);
    snprintf(text, sizeof text, "echo $$ >%s; while [ -e %s ]; do :; done", name,
             name); /* a signal would stop it */
    assert_int_equal(run(patient, text), HPCT_ERR_IO);
    assert_non_null(strstr(hpct_last_error(), "status is lost"));
    assert_true(seconds < SOON);
    kill(tracer, SIGKILL);
    assert_int_equal(waitpid(tracer, &status, 0), tracer);
    assert_true(WIFSIGNALED(status));
    while (waitpid(-1, NULL, 0) > 0) {
    }
    close(fd);
}

TEST(descendants_end_with_the_child)
{
    char text[256];
    int pids[2] = {0};
    hpct_spank_child child = patient;
    child.line = keep_line;
    child.alone = true;
    assert_int_equal(run(child, "setsid sh -c 'sleep 30 & echo $! $$ >&2; wait' 3>&- & sleep 3"),
                     HPCT_OK);
    snprintf(text, sizeof text, "%.200s", heard);
    assert_int_equal(sscanf(text, "%d %d", pids, pids + 1), 2);
    for (int i = 0; i < 2; i++) {
        assert_true(pids[i] > 1);
        assert_int_equal(kill(pids[i], 0), -1);
        assert_int_equal(errno, ESRCH);
    }
}
