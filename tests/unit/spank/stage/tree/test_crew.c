/* When another thread is started: how a thread spent its time, and what the pool makes of it. */
#include "tests/unit/unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "spank/stage/tree/thread_pool.h"

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double) time.tv_sec + (double) time.tv_nsec * 1e-9;
}

/* A busy machine may take its time between the two, but not each of ten times. */
TEST(test_early)
{
    int early = 0;
    for (int i = 0; i < 10; i++) {
        hpct_stage_pace pace = {0};
        hpct_stage_pace_begin(&pace);
        hpct_stage_pace_end(&pace);
        early += hpct_stage_pace_check(&pace) == HPCT_STAGE_PACE_EARLY;
    }
    assert_true(early > 0);
}

TEST(test_waits)
{
    hpct_stage_pace pace = {0};
    for (int i = 0; i < 30; i++) {
        hpct_stage_pace_begin(&pace);
        usleep(1000);
        hpct_stage_pace_end(&pace);
    }
    assert_int_equal(hpct_stage_pace_check(&pace), HPCT_STAGE_PACE_WAITS);
    assert_int_equal(hpct_stage_pace_check(&pace), HPCT_STAGE_PACE_EARLY); /* it began anew */
}

/* What lies between two pieces of work does not count. */
TEST(test_between)
{
    hpct_stage_pace pace = {0};
    hpct_stage_pace_begin(&pace);
    hpct_stage_pace_end(&pace);
    usleep(40000);
    assert_int_equal(hpct_stage_pace_check(&pace), HPCT_STAGE_PACE_EARLY);
}

static atomic_int at_work;

static void *share_core(void *context)
{
    hpct_stage_pace pace = {0};
    hpct_stage_pace_kind *kind = context;
    cpu_set_t all, one;
    size_t first = 0; /* the same for both */
    sched_getaffinity(0, sizeof all, &all);
    while (!CPU_ISSET(first, &all))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    sched_setaffinity(0, sizeof one, &one);
    at_work++;
    while (at_work < 2)
        sched_yield();
    hpct_stage_pace_begin(&pace);
    for (double end = now() + 0.2; now() < end;) {
    }
    hpct_stage_pace_end(&pace);
    *kind = hpct_stage_pace_check(&pace);
    return NULL;
}

TEST(test_shares)
{
    pthread_t threads[2];
    hpct_stage_pace_kind kinds[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, share_core, &kinds[i]), 0);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(kinds[i], HPCT_STAGE_PACE_SHARES);
    }
}

/* ---- the workers ---- */

static atomic_int working, most_working;

static hpct_status wait_a_little(void *context, const uint8_t *data, size_t size)
{
    (void) context, (void) data, (void) size;
    int count = ++working;
    if (count > most_working)
        most_working = count;
    usleep(5000);
    working--;
    return HPCT_OK;
}

static void give_back(void *context)
{
    ++*(int *) context;
}

TEST(test_pool_grows)
{
    int back = 0;
    const hpct_stage_pool_job job = {.work = wait_a_little, .back = give_back, .context = &back};
    hpct_stage_pool *workers = hpct_stage_pool_new(&job, 3, 8);
    assert_non_null(workers);
    for (int i = 0; i < 60; i++)
        assert_int_equal(hpct_stage_pool_give(workers, NULL, 0), HPCT_OK);
    assert_int_equal(hpct_stage_pool_wait(workers), HPCT_OK);
    hpct_stage_pool_free(workers);
    assert_int_equal(back, 60);
    assert_int_equal(most_working, 3); /* all that it may */
}
