/* agent/comm/watch: ranks that are alive but make no progress. */
#include "base/progress.h"
#include "tests/unit/agent/comm/watch_group.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int blocking_rank = 2; /* who waits for nobody */

static void all_wait_for_one(hpct_comm_watch *watch, int rank)
{
    (void) watch;
    hpct_enter_wait(HPCT_WAITS_FOR_NOBODY);
    sleep_ms(100);
    if (rank != blocking_rank)
        hpct_enter_wait(rank == 1 ? HPCT_WAITS_FOR_DEVICE : HPCT_WAITS_FOR_RANKS);
    sleep_ms(50000);
}

/* Of rank 0, which says more than the others. */
static void check_rank_0(group *g, int code, const char *first, const char *second)
{
    char said[1024];
    assert_int_equal(finish(g, 0, said, sizeof said), code);
    const char *at = strstr(said, first);
    if (at == NULL || !says(at + 1, second))
        fail_msg("rank 0 said '%s', not '%s' and '%s'", said, first, second);
    if (strstr(at + 1, first) != NULL)
        fail_msg("rank 0 said twice '%s'", first);
    g->pids[0] = -1;
}

TEST(standstill_reports_the_rank_waited_for)
{
    const int who[] = {2, 0};
    for (int i = 0; i < 2; i++) {
        group g = {.standstill_ms = 1200};
        char said[1024], noted[128], named[128];
        blocking_rank = who[i];
        start(&g, all_wait_for_one, -1);
        snprintf(noted, sizeof noted, "hpc-train: rank %d on node%d: it has made no progress for ",
                 who[i], who[i]);
        snprintf(named, sizeof named,
                 "rank %d on node%d was lost: it has made no progress for [0-9]* s, and the others "
                 "wait",
                 who[i], who[i]);
        if (who[i] != 0)
            check_rank_0(&g, HPCT_ERR_PEER, noted, named);
        check_others(&g, who[i], HPCT_ERR_PEER, named);
        assert_int_equal(finish(&g, who[i], said, sizeof said), HPCT_ERR_PEER);
        assert_non_null(
            strstr(said, "the other ranks have given up this one: it has made no progress"));
        if (who[i] == 0 && strstr(said, noted) == NULL)
            fail_msg("rank 0 said '%s', not '%s'", said, noted);
    }
}

/* Rank 3's file does not answer; later rank 1's. */
static void two_keep_the_others(hpct_comm_watch *watch, int rank)
{
    (void) watch;
    hpct_enter_wait(HPCT_WAITS_FOR_NOBODY);
    if (rank == 1)
        sleep_ms(600);
    hpct_count_progress();
    if (rank != 3 && rank != 1)
        hpct_enter_wait(HPCT_WAITS_FOR_RANKS);
    sleep_ms(50000);
}

TEST(standstill_reports_the_first_to_stop)
{
    group g = {.standstill_ms = 1000};
    start(&g, two_keep_the_others, -1);
    check_others(
        &g, 3, HPCT_ERR_PEER,
        "rank 3 on node3 was lost: it has made no progress for 1 s, as 1 more, and the others");
    char said[1024];
    assert_int_equal(finish(&g, 3, said, sizeof said), HPCT_ERR_PEER);
}

/* Rank 0's standard error is full. */
static void all_wait_and_nobody_reads(hpct_comm_watch *watch, int rank)
{
    char line[512] = "";
    if (rank == 0) {
        int flags = fcntl(STDERR_FILENO, F_GETFL);
        fcntl(STDERR_FILENO, F_SETFL, flags | O_NONBLOCK);
        while (write(STDERR_FILENO, line, sizeof line) > 0)
            ;
        fcntl(STDERR_FILENO, F_SETFL, flags);
    }
    all_wait_for_one(watch, rank);
}

TEST(full_stderr_does_not_block_the_watch)
{
    group g = {.standstill_ms = 0};
    const char *preloaded = getenv("LD_PRELOAD");
    if (preloaded != NULL && strstr(preloaded, "vgpreload") != NULL)
        skip(); /* valgrind does not end a thread that writes */
    start(&g, all_wait_and_nobody_reads, -1);
    sleep_ms(600 + SILENCE_MS + 1000);
    for (int rank = 0; rank < RANKS; rank++)
        assert_int_equal(waitpid(g.pids[rank], NULL, WNOHANG), 0);
    for (int rank = 0; rank < RANKS; rank++) {
        kill(g.pids[rank], SIGKILL);
        assert_int_equal(waitpid(g.pids[rank], NULL, 0), g.pids[rank]);
        close(g.out[rank]);
    }
    g.standstill_ms = 1000; /* and the run ends all the same */
    start(&g, all_wait_and_nobody_reads, -1);
    for (int rank = 0; rank < RANKS; rank++) {
        int status;
        assert_int_equal(waitpid(g.pids[rank], &status, 0), g.pids[rank]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == HPCT_ERR_PEER);
        close(g.out[rank]);
    }
}

static void all_wait_for_the_rest(hpct_comm_watch *watch, int rank)
{
    (void) watch;
    (void) rank;
    hpct_enter_wait(HPCT_WAITS_FOR_NOBODY);
    hpct_enter_wait(HPCT_WAITS_FOR_RANKS);
    sleep_ms(50000);
}

static void all_wait_for_devices(hpct_comm_watch *watch, int rank)
{
    (void) watch;
    hpct_enter_wait(HPCT_WAITS_FOR_NOBODY);
    hpct_enter_wait(rank == 0 ? HPCT_WAITS_FOR_RANKS : HPCT_WAITS_FOR_DEVICE);
    sleep_ms(50000);
}

TEST(deadlock_of_all_ranks_names_none)
{
    group g = {.standstill_ms = 1000};
    start(&g, all_wait_for_the_rest, -1);
    check_others(&g, -1, HPCT_ERR_PEER,
                 "no rank has made progress for [0-9]* s: all wait for one another");
    start(&g, all_wait_for_devices, -1);
    check_others(&g, -1, HPCT_ERR_PEER,
                 "no rank has made progress for [0-9]* s: all wait for their GPUs");
}

/* One works on while the others wait for it; or one does not train. */
static void one_goes_on(hpct_comm_watch *watch, int rank)
{
    hpct_enter_wait(HPCT_WAITS_FOR_NOBODY);
    if (rank != 3)
        hpct_enter_wait(HPCT_WAITS_FOR_RANKS);
    for (int i = 0; i < 15; i++) {
        if (rank == 3)
            hpct_count_progress();
        sleep_ms(100);
    }
    if (rank == 3)
        hpct_enter_wait(HPCT_WAITS_UNSEEN);
    sleep_ms(1200);
    hpct_comm_watch_stop(watch);
}

TEST(working_rank_may_be_slow)
{
    group g = {.standstill_ms = 1000};
    char said[1024];
    start(&g, one_goes_on, -1);
    for (int rank = 0; rank < RANKS; rank++) {
        assert_int_equal(finish(&g, rank, said, sizeof said), 0);
        assert_string_equal(said, "");
    }
}

TEST(standstill_timeout_can_be_disabled)
{
    group g = {.standstill_ms = 0};
    char said[1024];
    blocking_rank = 2;
    start(&g, all_wait_for_one, -1);
    sleep_ms(4000); /* under valgrind and load it takes a while until it is said */
    for (int rank = 0; rank < RANKS; rank++)
        assert_int_equal(waitpid(g.pids[rank], NULL, WNOHANG), 0);
    kill(g.pids[1], SIGKILL);
    check_rank_0(&g, HPCT_ERR_PEER, "rank 2 on node2: it has made no progress",
                 "rank 1 on node1 was lost");
    check_others(&g, 1, HPCT_ERR_PEER, "rank 1 on node1 was lost");
    finish(&g, 1, said, sizeof said);
}

TEST(only_training_is_watched)
{
    hpct_waits waits;
    uint32_t before = hpct_read_progress(&waits);
    assert_int_equal(waits, HPCT_WAITS_UNSEEN);
    assert_int_equal(hpct_enter_wait(HPCT_WAITS_FOR_RANKS), HPCT_WAITS_UNSEEN); /* no training */
    assert_int_equal(hpct_read_progress(&waits), before + 1);
    assert_int_equal(waits, HPCT_WAITS_UNSEEN);
    assert_int_equal(hpct_enter_wait(HPCT_WAITS_FOR_NOBODY), HPCT_WAITS_UNSEEN);
    assert_int_equal(hpct_enter_wait(HPCT_WAITS_FOR_RANKS), HPCT_WAITS_FOR_NOBODY);
    assert_int_equal(hpct_enter_wait(HPCT_WAITS_FOR_NOBODY), HPCT_WAITS_FOR_RANKS);
    assert_int_equal(hpct_enter_wait(HPCT_WAITS_UNSEEN), HPCT_WAITS_FOR_NOBODY);
    hpct_enter_wait(HPCT_WAITS_FOR_DEVICE);
    hpct_read_progress(&waits);
    assert_int_equal(waits, HPCT_WAITS_UNSEEN);
}
