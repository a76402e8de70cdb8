/* agent/train/slow: which node is named, and when. */
#include "agent/train/slow.h"
#include "tests/unit/unit.h"

#include <math.h>

static void ratio_is_to_the_median_of_the_others(void **state)
{
    (void) state;
    const struct {
        int nodes;
        double busy[5], ratio; /* of node 0 */
    } cases[] = {{1, {5}, 1},       {2, {3, 2}, 1.5},     {2, {2, 4}, .5},
                 {3, {3, 1, 2}, 2}, {4, {6, 1, 2, 9}, 3}, {5, {4, 2, 2, 2, 100}, 2},
                 {2, {1, 0}, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double scratch[5];
        assert_true(fabs(hpct_slow_ratio(cases[i].busy, cases[i].nodes, 0, scratch) -
                         cases[i].ratio) < 1e-12);
    }
}

static void node_is_named_after_a_minute_once(void **state)
{
    (void) state;
    hpct_slow_node node = {0};
    assert_int_equal(hpct_slow_heed(&node, 1.3, 100), HPCT_SLOW_NO);
    assert_int_equal(hpct_slow_heed(&node, 1.31, 105), HPCT_SLOW_BEGINS);
    assert_int_equal(hpct_slow_heed(&node, 1.8, 164), HPCT_SLOW_STAYS);
    assert_int_equal(hpct_slow_heed(&node, 1.8, 165), HPCT_SLOW_NAMED);
    assert_int_equal(hpct_slow_heed(&node, 1.8, 300), HPCT_SLOW_STAYS);
    assert_int_equal(hpct_slow_heed(&node, 1.1, 305), HPCT_SLOW_NO);
    assert_int_equal(hpct_slow_heed(&node, 1.8, 310), HPCT_SLOW_BEGINS);
    assert_int_equal(hpct_slow_heed(&node, 1.8, 371), HPCT_SLOW_NAMED);
}

static void short_slowness_is_not_named(void **state)
{
    (void) state;
    hpct_slow_node node = {0};
    for (int i = 1; i < 1000; i++)
        assert_int_not_equal(hpct_slow_heed(&node, i % 10 == 0 ? 1.2 : 2, 5.0 * i),
                             HPCT_SLOW_NAMED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ratio_is_to_the_median_of_the_others),
        cmocka_unit_test(node_is_named_after_a_minute_once),
        cmocka_unit_test(short_slowness_is_not_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
