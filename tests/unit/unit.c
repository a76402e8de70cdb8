/* tests/unit/unit.c - the tests of a program, as its TESTs add them before `main`. */
#include "tests/unit/unit.h"

static struct CMUnitTest tests[128];
static size_t count;

void unit_add(struct CMUnitTest test)
{
    assert_true(count < sizeof tests / sizeof *tests);
    tests[count++] = test;
}

int unit_run(CMFixtureFunction setup, CMFixtureFunction teardown)
{
    return cmocka_run_group_tests(tests, setup, teardown); /* rows without a name are passed over */
}

__attribute__((weak)) int main(void)
{
    return unit_run(NULL, NULL);
}
