/* spank: root's own work that a user can hold up, in a process of its own. */
#include "base/status.h"
#include "spank/timed_child.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static char heard[256 * 1024];

static void keep_line(void *context, bool error, const char *text)
{
    size_t size = strlen(heard);
    snprintf(heard + size, sizeof heard - size, "%c:%s\n", error ? 'e' : 'i', text);
}

static double seconds; /* that the last one took */

static hpct_status run(hpct_spank_timed_child_work work, void *context, int limit)
{
    const hpct_spank_timed_child timed_child = {
        .what = "the test", .seconds = limit, .work = work, .context = context, .line = keep_line};
    double start = hpct_spank_forked_now();
    heard[0] = '\0';
    hpct_status status = hpct_spank_timed_child_run(timed_child);
    seconds = hpct_spank_forked_now() - start;
    return status;
}

static hpct_status speak(void *context)
{
    hpct_spank_timed_child_print(true, "one %d", 1);
    hpct_spank_timed_child_print(false, "two");
    return *(int *) context == 0 ? HPCT_OK
                                 : hpct_fail(HPCT_ERR_CONFIG, "said %d", *(int *) context);
}

TEST(lines_and_status_are_returned)
{
    int number = 0;
    assert_int_equal(run(speak, &number, 100), HPCT_OK);
    assert_string_equal(heard, "e:one 1\ni:two\n");
    number = 7;
    assert_int_equal(run(speak, &number, 100), HPCT_ERR_CONFIG);
    assert_string_equal(hpct_last_error(), "said 7");
}

static hpct_status speak_for_ever(void *context)
{
    for (int i = 0; i < 100000; i++)
        hpct_spank_timed_child_print(false, "line %d", i);
    return HPCT_OK;
}

TEST(timeout_is_enforced)
{
    assert_int_equal(run(speak_for_ever, NULL, 300), HPCT_OK);
    assert_true(strlen(heard) > 60000 && strlen(heard) < 140000);
    assert_memory_equal(heard, "i:line 0\ni:line 1\n", 18);
}

static hpct_status stop_itself(void *context)
{
    hpct_spank_timed_child_print(true, "here");
    kill(getpid(), SIGSTOP);
    return *(int *) context == 0 ? HPCT_OK : HPCT_ERR_IO;
}

TEST(stopped_child_is_killed_in_time)
{
    int number = 0;
    assert_int_equal(run(stop_itself, &number, 1), HPCT_ERR_STOPPED);
    assert_string_equal(heard, "e:here\n");
    assert_string_equal(hpct_last_error(), "the test was not done after 1 seconds");
    assert_true(seconds < 60);
}

static hpct_status die(void *context)
{
    raise(*(int *) context);
    return HPCT_OK;
}

TEST(killed_child_is_an_error)
{
    int number = SIGKILL;
    assert_int_equal(run(die, &number, 100), HPCT_ERR_IO);
    assert_string_equal(hpct_last_error(), "the test: its process was ended");
    assert_true(seconds < 90);
}

/* Who waits for the end of a pipe must not wait for one that was left behind. */
static hpct_status look_at_files(void *context)
{
    struct stat info, null;
    const int *fds = context;
    if (fstat(fds[1], &info) != 0 || stat("/dev/null", &null) != 0)
        return hpct_fail(HPCT_ERR_IO, "cannot look");
    return info.st_ino == null.st_ino && info.st_rdev == null.st_rdev
               ? HPCT_OK
               : hpct_fail(HPCT_ERR_IO, "it has the pipe");
}

TEST(descriptors_are_not_inherited)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(run(look_at_files, fds, 100), HPCT_OK);
    for (int i = 0; i < 3; i++) {
        int number[2] = {i, i};
        assert_int_equal(run(look_at_files, number, 100), HPCT_OK);
    }
    close(fds[0]);
    close(fds[1]);
}

static hpct_status who(void *context)
{
    const hpct_spank_person *person = context;
    /* its user cannot look into it, or change it: it has root's memory */
    return getuid() == person->uid && geteuid() == person->uid && getgid() == person->gid &&
                   prctl(PR_GET_DUMPABLE) != 1
               ? HPCT_OK
               : HPCT_ERR_IO;
}

TEST(child_drops_privileges)
{
    hpct_spank_person person = {.uid = 12345, .gid = 12346};
    const hpct_spank_timed_child timed_child = {
        .what = "the test", .seconds = 10, .as = &person, .work = who, .context = &person};
    if (getuid() != 0)
        skip();
    assert_int_equal(hpct_spank_timed_child_run(timed_child), HPCT_OK);
}
