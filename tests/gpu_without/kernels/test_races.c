/* What the emulated GPU finds of races (tests/gpu_without/kernels/cuda_watch.h): of kernels that
 * have one and of their like that have none. */
#include "tests/gpu_without/kernels/races_kernels.h"
#include "tests/unit/unit.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int found;
static char first[512];

static void count(const char *what)
{
    if (found++ == 0)
        snprintf(first, sizeof first, "%s", what);
}

/* What is said of the first: NULL: nothing may be found. */
static void expect(race_case of, const char *words)
{
    found = 0;
    races_run(of);
    if (words == NULL && found > 0)
        fail_msg("case %d: %s", of, first);
    if (words != NULL && (found == 0 || strstr(first, words) == NULL))
        fail_msg("case %d: '%s' was not found, but '%s'", of, words, found > 0 ? first : "nothing");
}

TEST(threads_of_a_block)
{
    expect(RACE_NONE, NULL);
    expect(RACE_NO_BARRIER, "writes 4 bytes (shared), which thread 0 of the same block read");
    expect(RACE_OVERWRITE, "writes 4 bytes (shared), which thread 0 of the same block read");
    expect(RACE_WARP_NONE, NULL);
    expect(RACE_SHUFFLE, "reads 4 bytes (shared), which thread 1 of the same block wrote");
    expect(RACE_BETWEEN_WARPS, "of the same block");
}

TEST(blocks)
{
    expect(RACE_BLOCKS_WRITE, "(global), which thread 0 of another block wrote");
    expect(RACE_BLOCKS_READ, "of another block read");
    expect(RACE_TICKET_NONE, NULL);
    expect(RACE_TICKET_EARLY, "of another block wrote");
    expect(RACE_TICKET_LATE, "of another block wrote");
    expect(RACE_TICKET_ALONE, NULL);
}

/* A GPU ends there: the program traps. */
TEST(traps)
{
    const race_case cases[] = {RACE_UNALIGNED, RACE_BEHIND};
    int status;
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        if (child == 0) {
            signal(SIGILL, SIG_DFL); /* cmocka has its own */
            races_run(cases[i]);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGILL);
    }
}

int main(void)
{
    hpct_race_found = count;
    return unit_run(NULL, NULL);
}
