/* A process that saves in a loop is killed at random moments: each time the newest checkpoint that
 * loads is not older than the last commit that returned, and none is damaged: what is half written
 * or half removed has no manifest. 1,000 kills for at most 12 s; with HPC_TRAIN_LONG 100,000. */
#include "tests/unit/agent/checkpoint/folder.h"

#include <hpctrain/checkpoint.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char dir[64];
static FILE *nowhere;

/* Shared with the process that is killed. */
static struct shared {
    volatile int tried, committed; /* the values of checkpoints */
    volatile int kept, saves;
} * shared;

static unsigned random_state = 1;
static unsigned pick(unsigned n)
{
    random_state = random_state * 1103515245u + 12345u;
    return (random_state >> 8) % n;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double) time.tv_sec + 1e-9 * (double) time.tv_nsec;
}

/* Goes on from the newest checkpoint; sometimes at its step again, or at an earlier one. */
static _Noreturn void save_for_ever(unsigned seed)
{
    hpct_ckpt_store *store;
    int64_t step = 0;
    random_state = seed;
    shared->kept = 1 + (int) pick(3);
    if (folder_load(dir, &step) < 0)
        step = 5;
    if (hpct_ckpt_store_open(&store, dir, shared->kept, NULL, NULL) != HPCT_OK)
        _exit(1);
    step -= (int64_t) pick(3);
    for (;;) {
        int value = shared->tried + 1;
        shared->tried = value;
        step += step < 0 ? 1 - step : 1;
        if (folder_save(store, dir, step, value, pick(3) == 0) != HPCT_OK)
            _exit(2);
        shared->committed = value;
        shared->saves++;
    }
}

static pid_t start(unsigned seed)
{
    pid_t child = fork();
    if (child == 0)
        save_for_ever(seed);
    assert_true(child > 0);
    return child;
}

/* Seconds from the start of a process to its second commit: valgrind and others are slower. */
static double time_saves(void)
{
    double begin = now();
    pid_t child = start(0);
    while (shared->saves < 2 && now() < begin + 60)
        usleep(100);
    double seconds = now() - begin;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return seconds < 0.6 ? seconds : 0.6;
}

static void kill_once(unsigned seed, double seconds)
{
    pid_t child = start(seed);
    int status;
    const struct timespec time = {.tv_nsec = (long) (seconds * 1e6 * pick(1500))};
    nanosleep(&time, NULL);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFSIGNALED(status))
        fail_msg("it ended with %d", WEXITSTATUS(status));
    int value = folder_load(dir, NULL);
    if (value == -HPCT_ERR_NO_INPUT && shared->committed == 0)
        return;
    if (value < shared->committed || value > shared->tried)
        fail_msg("loaded %d, %d was committed: %s", value, shared->committed, hpct_last_error());
    if (folder_notes[0] != '\0' || hpct_checkpoint_verify(dir, nowhere) != HPCT_OK)
        fail_msg("damaged: %s%s", folder_notes, hpct_last_error());
}

TEST(loads_after_every_kill)
{
    bool all = getenv("HPC_TRAIN_LONG") != NULL;
    int kills = 0, most = all ? 100000 : unit_cases(1000);
    double end = now() + (all ? 1e9 : 12);
    folder_make(dir);
    nowhere = fopen("/dev/null", "w");
    assert_non_null(nowhere);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(shared, MAP_FAILED);
    double seconds = time_saves();
    for (; kills < most && now() < end; kills++)
        kill_once((unsigned) kills, seconds);
    print_message("# %d kills, %d saves\n", kills, shared->saves);
    assert_true(shared->saves >= kills / 20);

    /* what a killed run has left, the next one removes */
    hpct_ckpt_store *store;
    assert_int_equal(hpct_ckpt_store_open(&store, dir, 1, NULL, NULL), HPCT_OK);
    assert_int_equal(folder_save(store, dir, 1, 1, true), HPCT_OK);
    hpct_ckpt_store_close(store);
    assert_int_equal(hpct_ckpt_store_open(&store, dir, 1, NULL, NULL), HPCT_OK);
    hpct_ckpt_store_close(store);
    assert_int_equal(folder_count(dir, "step-"), 1);
    assert_true(folder_has(dir, "step-0000000001"));
    char path[128];
    snprintf(path, sizeof path, "%s/step-0000000001", dir);
    assert_int_equal(folder_count(path, ""), 4);
    fclose(nowhere);
    munmap(shared, sizeof *shared);
    folder_remove(dir);
}
