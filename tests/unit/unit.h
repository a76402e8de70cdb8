/* tests/unit/unit.h - cmocka, what it wants included before it, and tests that need no table. */
#ifndef HPCT_TESTS_UNIT_UNIT_H
#define HPCT_TESTS_UNIT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Tests and fixtures get the state that a fixture has made; few read it. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* A test: TEST(what_it_does) { … }. Those of a program run in the order of its source. */
#define TEST(name) TEST_WITH(name, NULL, NULL)
#define TEST_WITH(name, setup, teardown)                                                           \
    static void name(void **state);                                                                \
    __attribute__((constructor(1000 + __LINE__))) static void unit_add_##name(void)                \
    {                                                                                              \
        unit_add((struct CMUnitTest){#name, name, setup, teardown, NULL});                         \
    }                                                                                              \
    static void name(void **state)

void unit_add(struct CMUnitTest test);

/* Runs all tests: the whole `main` of a program that has none. `setup` comes before them,
 * `teardown` behind. */
int unit_run(CMFixtureFunction setup, CMFixtureFunction teardown);

/* cmocka 2 has other names for it, which cmocka 1 does not know. */
#define assert_within(value, least, most)                                                          \
    do {                                                                                           \
        long long within_ = (long long) (value);                                                   \
        if (within_ < (long long) (least) || within_ > (long long) (most))                         \
            fail_msg("%s is %lld, not from %lld to %lld", #value, within_, (long long) (least),    \
                     (long long) (most));                                                          \
    } while (0)

/* How many random cases to try: few of them where each takes long, under valgrind. */
static inline int unit_cases(int usually)
{
    return getenv("HPC_TRAIN_SHORT") != NULL ? (usually + 9) / 10 : usually;
}

/* Where a test makes its folder, in memory if possible: some file systems take a millisecond for
 * each of thousands of files. */
static inline const char *unit_folder(void)
{
    return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
}

#endif
