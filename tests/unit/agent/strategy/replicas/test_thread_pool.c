/* agent/strategy/replicas/thread_pool: sums in one order, what happens when one fails, who talks to
 * other processes. */
#include "agent/strategy/replicas/thread_pool.h"
#include "base/status.h"
#include "nn/backend/cpu/backend.h"
#include "nn/run/step.h"
#include "tests/unit/unit.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MEMBERS 3
#define COUNT 5

static hpct_replicas_pool *pool;

static void open_pool(int members, hpct_status (*sum)(void *, float *, size_t), void *argument)
{
    hpct_replicas_pool_options options = {
        .members = members, .threads = 2, .sum = sum, .argument = argument};
    assert_int_equal(hpct_replicas_pool_open(&pool, &options), HPCT_OK);
}

/* ---- what members are ---- */

typedef struct seen {
    pthread_t thread[MEMBERS];
    int threads[MEMBERS], blocked[MEMBERS], times[MEMBERS];
} seen;

static hpct_status look(void *argument, int member)
{
    seen *s = argument;
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    s->thread[member] = pthread_self();
    s->threads[member] = hpct_cpu_threads();
    s->blocked[member] = sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGINT) == 1;
    s->times[member]++;
    return HPCT_OK;
}

TEST(each_member_is_a_thread)
{
    seen s = {0};
    open_pool(MEMBERS, NULL, NULL);
    assert_int_equal(hpct_replicas_pool_run(pool, look, &s), HPCT_OK);
    seen first = s;
    assert_int_equal(hpct_replicas_pool_run(pool, look, &s), HPCT_OK);
    for (int k = 0; k < MEMBERS; k++) {
        assert_int_equal(s.times[k], 2);
        assert_int_equal(s.threads[k], 2);
        assert_true(s.blocked[k]);
        assert_true(pthread_equal(s.thread[k], first.thread[k]));
        assert_false(pthread_equal(s.thread[k], pthread_self()));
        assert_false(pthread_equal(s.thread[k], s.thread[(k + 1) % MEMBERS]));
    }
    hpct_replicas_pool_close(pool);
}

/* ---- sums ---- */

typedef struct summing {
    float got[MEMBERS][COUNT];
    int rounds;
} summing;

/* Numbers whose sum depends on the order: 1e8 - 1e8 + 1, while 1 + 1e8 is 1e8. */
static const float order_matters[MEMBERS] = {1e8f, -1e8f, 1};

static hpct_status sum_often(void *argument, int member)
{
    summing *s = argument;
    for (int round = 0; round < s->rounds; round++) {
        size_t count = 1 + (size_t) round % COUNT;
        for (size_t i = 0; i < count; i++)
            s->got[member][i] = order_matters[member] * (float) (1 + i);
        hpct_status status = hpct_replicas_pool_sum(pool, member, s->got[member], count);
        if (status != HPCT_OK)
            return status;
        for (size_t i = 0; i < count; i++) {
            if (s->got[member][i] != (float) (1 + i))
                return hpct_fail(HPCT_ERR_INTERNAL, "round %d: %g", round,
                                 (double) s->got[member][i]);
        }
    }
    return HPCT_OK;
}

TEST(sums_are_in_the_members_order)
{
    summing s = {.rounds = 300};
    open_pool(MEMBERS, NULL, NULL);
    assert_int_equal(hpct_replicas_pool_run(pool, sum_often, &s), HPCT_OK);
    assert_memory_equal(s.got[0], s.got[1], sizeof s.got[0]);
    assert_memory_equal(s.got[0], s.got[2], sizeof s.got[0]);
    hpct_replicas_pool_close(pool);
}

/* ---- other processes ---- */

typedef struct others {
    pthread_t caller;
    int calls, fail_at;
    bool by_caller;
} others;

/* As if one other process had the same. */
static hpct_status twice(void *argument, float *data, size_t count)
{
    others *o = argument;
    o->by_caller = (o->calls == 0 || o->by_caller) && pthread_equal(pthread_self(), o->caller);
    if (++o->calls == o->fail_at)
        return hpct_fail(HPCT_ERR_PEER, "rank 7 was lost");
    for (size_t i = 0; i < count; i++)
        data[i] *= 2;
    return HPCT_OK;
}

static hpct_status sum_three_times(void *argument, int member)
{
    float *got = (float *) argument + member;
    hpct_status status = HPCT_OK;
    for (int i = 0; i < 3 && status == HPCT_OK; i++) {
        *got = (float) (member + 1);
        status = hpct_replicas_pool_sum(pool, member, got, 1);
    }
    return status;
}

TEST(the_caller_sums_over_other_processes)
{
    for (int members = 1; members <= MEMBERS; members++) {
        others o = {.caller = pthread_self()};
        float got[MEMBERS] = {0};
        open_pool(members, twice, &o);
        assert_int_equal(hpct_replicas_pool_run(pool, sum_three_times, got), HPCT_OK);
        for (int k = 0; k < members; k++)
            assert_true(got[k] == (float) (members * (members + 1)));
        assert_int_equal(o.calls, 3);
        assert_true(o.by_caller);
        hpct_replicas_pool_close(pool);
    }
}

TEST(a_lost_rank_ends_all_members)
{
    others o = {.caller = pthread_self(), .fail_at = 2};
    float got[MEMBERS] = {0};
    open_pool(MEMBERS, twice, &o);
    assert_int_equal(hpct_replicas_pool_run(pool, sum_three_times, got), HPCT_ERR_PEER);
    assert_string_equal(hpct_last_error(), "rank 7 was lost");
    assert_int_equal(o.calls, 2);
    hpct_replicas_pool_close(pool);
}

/* ---- failures ---- */

static hpct_status fail_second(void *argument, int member)
{
    float data = 1;
    if (member == *(const int *) argument)
        return hpct_fail(HPCT_ERR_INTERNAL, "out of memory");
    return hpct_replicas_pool_sum(pool, member, &data, 1); /* would wait for ever */
}

TEST(one_that_fails_ends_the_work_of_all)
{
    others o = {.caller = pthread_self()};
    for (int with_others = 0; with_others < 2; with_others++) {
        open_pool(MEMBERS, with_others ? twice : NULL, &o);
        for (int who = 0; who < MEMBERS; who++) {
            char message[64];
            snprintf(message, sizeof message, "replica %d: out of memory", who);
            assert_int_equal(hpct_replicas_pool_run(pool, fail_second, &who), HPCT_ERR_INTERNAL);
            assert_string_equal(hpct_last_error(), message);
        }
        float got[MEMBERS] = {0};
        assert_int_equal(hpct_replicas_pool_run(pool, sum_three_times, got),
                         HPCT_OK); /* and goes on */
        assert_true(got[0] == (with_others ? 12.0f : 6.0f));
        hpct_replicas_pool_close(pool);
    }
    assert_int_equal(o.calls, 3);
}

static hpct_status sum_unlike(void *argument, int member)
{
    float data[MEMBERS] = {0};
    (void) argument;
    return hpct_replicas_pool_sum(pool, member, data, (size_t) member + 1);
}

/* One fails, the others wait for it where nobody tells them. */
static hpct_status fail_or_wait(void *argument, int member)
{
    (void) argument;
    if (member == 1)
        return hpct_fail(HPCT_ERR_CONFIG, "it has no GPU");
    sleep(60);
    return HPCT_OK;
}

TEST(waiting_member_ends_after_patience)
{
    int ends[2], status;
    char text[256] = "";
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        hpct_replicas_pool_options options = {
            .members = MEMBERS, .threads = 1, .patience_seconds = 1};
        if (hpct_replicas_pool_open(&pool, &options) == HPCT_OK)
            hpct_replicas_pool_run(pool, fail_or_wait, NULL);
        _exit(0);
    }
    close(ends[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), HPCT_ERR_CONFIG);
    assert_true(read(ends[0], text, sizeof text - 1) > 0);
    close(ends[0]);
    assert_string_equal(text,
                        "hpc-train: replica 1: it has no GPU; other replicas have waited for it "
                        "for 1 s\n");
}

TEST(sums_of_different_lengths_are_refused)
{
    open_pool(MEMBERS, NULL, NULL);
    assert_int_equal(hpct_replicas_pool_run(pool, sum_unlike, NULL), HPCT_ERR_INTERNAL);
    assert_non_null(strstr(hpct_last_error(), "where others have"));
    hpct_replicas_pool_close(pool);
}

TEST(unused_thread_pool_closes)
{
    open_pool(MEMBERS, NULL, NULL);
    hpct_replicas_pool_close(pool);
    hpct_replicas_pool_close(NULL);
}

int main(void)
{
    alarm(300); /* members that are not let go would wait for ever */
    return unit_run(NULL, NULL);
}
