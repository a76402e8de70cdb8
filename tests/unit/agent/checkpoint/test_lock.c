/* The lock of a folder: who lives keeps it, who is gone loses it, and one of many gets it. */
#include "agent/checkpoint/disk.h"
#include "agent/checkpoint/holder.h"
#include "agent/checkpoint/lock.h"
#include "tests/unit/agent/checkpoint/folder.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const hpct_ckpt_lock_times quick = {.renew = 0.1, .gone = 100, .wait = 1};
static char dir[64];

static int setup(void **state)
{
    folder_make(dir);
    folder_notes[0] = '\0';
    return 0;
}

static int teardown(void **state)
{
    folder_remove(dir);
    return 0;
}

static hpct_status take(hpct_ckpt_lock **lock)
{
    return hpct_ckpt_lock_take(lock, dir, &quick, folder_note, NULL);
}

static void assert_taken(void)
{
    hpct_ckpt_lock *lock;
    if (take(&lock) != HPCT_OK)
        fail_msg("%s", hpct_last_error());
    assert_int_equal(hpct_ckpt_lock_check(lock), HPCT_OK);
    hpct_ckpt_lock_release(lock);
    assert_false(folder_has(dir, "lock"));
}

static void assert_refused(const char *words)
{
    hpct_ckpt_lock *lock;
    assert_int_equal(take(&lock), HPCT_ERR_CONFIG);
    if (strstr(hpct_last_error(), words) == NULL)
        fail_msg("'%s' is not in: %s", words, hpct_last_error());
    assert_true(folder_has(dir, "lock"));
    assert_int_equal(folder_count(dir, ""), 1); /* nothing else is left there */
}

static void write_lock(const json_t *holder)
{
    char *text = json_dumps(holder, 0);
    assert_non_null(text);
    folder_write(dir, "lock", text, strlen(text));
    free(text);
}

static void set_time(int64_t seconds_ago)
{
    char path[128];
    struct stat now;
    snprintf(path, sizeof path, "%s/lock", dir);
    assert_int_equal(stat(path, &now), 0);
    const struct timespec times[2] = {{.tv_sec = now.st_mtime - seconds_ago},
                                      {.tv_sec = now.st_mtime - seconds_ago}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* ---- on this machine ---- */

TEST_WITH(a_second_run_is_refused_with_the_holder_named, setup, teardown)
{
    char host[256] = "", words[512];
    hpct_ckpt_lock *lock;
    setenv("SLURM_JOB_ID", "4711", 1);
    assert_int_equal(take(&lock), HPCT_OK);
    gethostname(host, sizeof host - 1);
    snprintf(words, sizeof words, "in use by job 4711 on host %s (process %d, since 2", host,
             (int) getpid());
    unsetenv("SLURM_JOB_ID");
    assert_refused(words);
    assert_refused("end that run, or give this one a folder of its own");
    hpct_ckpt_lock_release(lock);
    assert_taken();
}

/* A process that takes the lock and ends without releasing it. */
static pid_t take_in_child(void)
{
    pid_t child = fork();
    if (child == 0) {
        hpct_ckpt_lock *lock;
        _exit(take(&lock) == HPCT_OK ? 0 : 1);
    }
    return child;
}

static void leave_lock(void)
{
    int status;
    pid_t child = take_in_child();
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(folder_has(dir, "lock"));
}

TEST_WITH(a_dead_process_loses_it_at_once, setup, teardown)
{
    leave_lock();
    assert_taken();
    assert_string_equal(folder_notes, "");
}

TEST_WITH(a_process_not_waited_for_is_dead, setup, teardown)
{
    siginfo_t info;
    pid_t child = take_in_child();
    assert_int_equal(waitid(P_PID, (id_t) child, &info, WEXITED | WNOWAIT), 0);
    assert_taken();
    assert_string_equal(folder_notes, ""); /* at once */
    waitpid(child, NULL, 0);
}

TEST_WITH(a_reused_process_id_does_not_count, setup, teardown)
{
    json_t *holder = hpct_ckpt_holder_self();
    write_lock(holder);
    assert_refused("in use by");
    json_int_t started = json_integer_value(json_object_get(holder, "started"));
    json_object_set_new(holder, "started", json_integer(started - 1));
    write_lock(holder);
    assert_taken();
    json_decref(holder);
}

/* ---- on another machine ---- */

/* A holder of job 12 on another machine. */
static json_t *elsewhere(void)
{
    json_t *holder = hpct_ckpt_holder_self();
    json_object_set_new(holder, "boot", json_string("another"));
    json_object_set_new(holder, "host", json_string("n2"));
    json_object_set_new(holder, "job", json_string("12"));
    return holder;
}

static void hold_elsewhere(void)
{
    json_t *holder = elsewhere();
    write_lock(holder);
    json_decref(holder);
}

TEST_WITH(another_namespace_is_another_machine, setup, teardown)
{
    json_t *holder = hpct_ckpt_holder_self();
    assert_int_equal(hpct_ckpt_holder_look(holder), HPCT_CKPT_HOLDER_LIVES);
    json_object_set_new(holder, "processes", json_string("pid:[1]"));
    assert_int_equal(hpct_ckpt_holder_look(holder), HPCT_CKPT_HOLDER_UNKNOWN);
    json_decref(holder);
}

TEST_WITH(not_renewed_for_long_it_is_taken_at_once, setup, teardown)
{
    hold_elsewhere();
    set_time(101);
    assert_taken();
    assert_string_equal(folder_notes, "");
}

TEST_WITH(not_renewed_while_waited_for_it_is_taken, setup, teardown)
{
    hold_elsewhere();
    set_time(50);
    assert_taken();
    assert_non_null(strstr(folder_notes, "locked by job 12 on host n2"));
    assert_non_null(strstr(folder_notes, "waiting up to"));
}

/* Its clock may be wrong. */
TEST_WITH(a_time_in_the_future_is_waited_for_no_longer, setup, teardown)
{
    hold_elsewhere();
    set_time(-100000);
    assert_taken();
}

/* As one that was requeued, or started again by hpc-train launch, finds it. */
TEST_WITH(an_earlier_run_of_the_same_job_has_ended, setup, teardown)
{
    static const char *const variables[] = {"SLURM_JOB_ID", "SLURM_CLUSTER_NAME",
                                            "SLURM_RESTART_COUNT", "HPC_TRAIN_LAUNCH",
                                            "HPC_TRAIN_RESTART"};
    static const struct {
        const char *values[5];
        hpct_ckpt_holder_life life;
    } of[] = {
        {{"12", "c", "0", "12.5", "1"}, HPCT_CKPT_HOLDER_ENDED},
        {{"12", "c", "0", "12.5", "0"}, HPCT_CKPT_HOLDER_UNKNOWN},
        {{"12", "c", "0", "12.6", "1"}, HPCT_CKPT_HOLDER_UNKNOWN},
        {{"12", "d", "1", "12.5", "1"}, HPCT_CKPT_HOLDER_UNKNOWN},
        {{"13", "c", "1", "", "0"}, HPCT_CKPT_HOLDER_UNKNOWN},
        {{"12", "c", "1", "", "0"}, HPCT_CKPT_HOLDER_ENDED},
    };
    json_t *holder = elsewhere();
    json_object_set_new(holder, "cluster", json_string("c"));
    json_object_set_new(holder, "launch", json_string("12.5"));
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        for (int k = 0; k < 5; k++)
            setenv(variables[k], of[i].values[k], 1);
        if (hpct_ckpt_holder_look(holder) != of[i].life)
            fail_msg("case %zu", i);
    }
    write_lock(holder);
    json_decref(holder);
    assert_taken();
    assert_string_equal(folder_notes, ""); /* at once, though it was renewed just now */
    for (int k = 0; k < 5; k++)
        unsetenv(variables[k]);
}

static void *renew_later(void *arg)
{
    (void) arg;
    usleep(200000);
    set_time(49);
    return NULL;
}

TEST_WITH(renewed_while_waited_for_it_is_kept, setup, teardown)
{
    pthread_t thread;
    hold_elsewhere();
    set_time(50);
    pthread_create(&thread, NULL, renew_later, NULL);
    assert_refused("in use by job 12 on host n2");
    pthread_join(thread, NULL);
}

TEST_WITH(an_unreadable_lock_is_waited_for, setup, teardown)
{
    folder_write(dir, "lock", "{\"job\": 1", 9);
    assert_taken();
    assert_non_null(strstr(folder_notes, "a run that has left no name"));
    folder_write(dir, "lock", "", 0);
    assert_taken();
}

/* ---- held ---- */

TEST_WITH(the_holder_renews_it, setup, teardown)
{
    hpct_ckpt_lock *lock;
    struct stat now;
    char path[128];
    snprintf(path, sizeof path, "%s/lock", dir);
    assert_int_equal(take(&lock), HPCT_OK);
    set_time(1000);
    assert_int_equal(stat(path, &now), 0);
    int64_t old = now.st_mtime;
    for (int i = 0; i < 100 && now.st_mtime < old + 900; i++) {
        usleep(20000);
        assert_int_equal(stat(path, &now), 0);
    }
    assert_true(now.st_mtime >= old + 900);
    hpct_ckpt_lock_release(lock);
}

TEST_WITH(a_lock_taken_over_is_noticed_and_left_alone, setup, teardown)
{
    hpct_ckpt_lock *lock;
    size_t size;
    assert_int_equal(take(&lock), HPCT_OK);
    char path[128];
    snprintf(path, sizeof path, "%s/lock", dir);
    unlink(path);
    hold_elsewhere();
    assert_int_equal(hpct_ckpt_lock_check(lock), HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), "job 12 on host n2"));
    hpct_ckpt_lock_release(lock);
    char *text = folder_read(dir, "lock", &size);
    assert_non_null(strstr(text, "n2"));
    free(text);
    assert_int_equal(folder_count(dir, ""), 1);
}

TEST_WITH(a_lock_removed_by_hand_is_made_again, setup, teardown)
{
    hpct_ckpt_lock *lock;
    char path[128];
    snprintf(path, sizeof path, "%s/lock", dir);
    assert_int_equal(take(&lock), HPCT_OK);
    unlink(path);
    assert_int_equal(hpct_ckpt_lock_check(lock), HPCT_OK);
    assert_refused("in use by");
    hpct_ckpt_lock_release(lock);
    assert_int_equal(folder_count(dir, ""), 0);
}

/* ---- several at once ---- */

#define RIVALS 8

/* Tries to take the lock; waits until all have tried. Exit code 0: it has it, and has it still. */
static _Noreturn void rival(int go, int done, int end)
{
    char byte;
    hpct_ckpt_lock *lock = NULL;
    if (read(go, &byte, 1) < 0)
        _exit(9);
    hpct_status status = take(&lock);
    if (write(done, "x", 1) != 1 || read(end, &byte, 1) < 0)
        _exit(9);
    if (status == HPCT_OK)
        _exit(hpct_ckpt_lock_check(lock) == HPCT_OK ? 0 : 2);
    _exit(status == HPCT_ERR_CONFIG ? 1 : 3);
}

static void compete(void)
{
    int go[2], done[2], end[2], winners = 0, status;
    char bytes[RIVALS];
    assert_int_equal(pipe(go), 0);
    assert_int_equal(pipe(done), 0);
    assert_int_equal(pipe(end), 0);
    for (int i = 0; i < RIVALS; i++) {
        if (fork() == 0) {
            close(end[1]);
            rival(go[0], done[1], end[0]);
        }
    }
    memset(bytes, 'x', sizeof bytes);
    assert_int_equal(write(go[1], bytes, RIVALS), RIVALS);
    for (int i = 0; i < RIVALS; i++)
        assert_int_equal(read(done[0], bytes, 1), 1);
    close(end[1]); /* all end */
    for (int i = 0; i < RIVALS; i++) {
        assert_true(wait(&status) > 0);
        assert_true(WIFEXITED(status));
        assert_within(WEXITSTATUS(status), 0, 1);
        winners += WEXITSTATUS(status) == 0;
    }
    close(end[0]);
    for (int i = 0; i < 2; i++) {
        close(go[i]);
        close(done[i]);
    }
    assert_int_equal(winners, 1);
}

TEST_WITH(one_of_many_gets_the_lock_of_a_dead_run, setup, teardown)
{
    for (int i = 0; i < unit_cases(60); i++) {
        leave_lock();
        compete();
    }
}
