/* agent/train/slow: which node is named, and when. */
#include "agent/train/pace_file.h"
#include "agent/train/slow_nodes.h"
#include "tests/unit/unit.h"

#include <math.h>

TEST(ratio_is_to_the_median_of_the_others)
{
    const struct {
        int nodes;
        double busy[5], ratio; /* of node 0 */
    } cases[] = {{1, {5}, 1},       {2, {3, 2}, 1.5},      {2, {2, 4}, .5},
                 {3, {3, 1, 2}, 2}, {4, {6, 1, 2, 9}, 3},  {5, {4, 2, 2, 2, 100}, 2},
                 {2, {1, 0}, 1},    {3, {3, NAN, 2}, 1.5}, {2, {3, NAN}, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double scratch[5];
        assert_true(fabs(hpct_train_slow_ratio(cases[i].busy, cases[i].nodes, 0, scratch) -
                         cases[i].ratio) < 1e-12);
    }
}

TEST(node_is_named_after_a_minute_once)
{
    hpct_train_slow_node node = {0};
    assert_int_equal(hpct_train_slow_heed(&node, 1.3, 100), HPCT_TRAIN_SLOW_NO);
    assert_int_equal(hpct_train_slow_heed(&node, 1.31, 105), HPCT_TRAIN_SLOW_BEGINS);
    assert_int_equal(hpct_train_slow_heed(&node, 1.8, 164), HPCT_TRAIN_SLOW_STAYS);
    assert_int_equal(hpct_train_slow_heed(&node, 1.8, 165), HPCT_TRAIN_SLOW_NAMED);
    assert_int_equal(hpct_train_slow_heed(&node, 1.8, 300), HPCT_TRAIN_SLOW_STAYS);
    assert_int_equal(hpct_train_slow_heed(&node, 1.1, 305), HPCT_TRAIN_SLOW_NO);
    assert_int_equal(hpct_train_slow_heed(&node, 1.8, 310), HPCT_TRAIN_SLOW_BEGINS);
    assert_int_equal(hpct_train_slow_heed(&node, 1.8, 371), HPCT_TRAIN_SLOW_NAMED);
}

TEST(short_slowness_is_not_named)
{
    hpct_train_slow_node node = {0};
    for (int i = 1; i < 1000; i++)
        assert_int_not_equal(hpct_train_slow_heed(&node, i % 10 == 0 ? 1.2 : 2, 5.0 * i),
                             HPCT_TRAIN_SLOW_NAMED);
}

/* Ranks of a node need not be neighbours; of some nothing is known. */
TEST(nodes_are_means_of_their_ranks)
{
    enum { RANKS = 5 };
    const char *names[RANKS] = {"a", "b", "a", NULL, "c"};
    double known[HPCT_TRAIN_PACE_PARTS][RANKS] = {[HPCT_TRAIN_PACE_STEP] = {9, 9, 9, 9, NAN},
                                                  [HPCT_TRAIN_PACE_INPUT] = {1, 1, 3, 1, NAN},
                                                  [HPCT_TRAIN_PACE_FORWARD] = {2, 1, 2, 8, NAN},
                                                  [HPCT_TRAIN_PACE_BACKWARD] = {3, 1, 3, 8, NAN},
                                                  [HPCT_TRAIN_PACE_WAIT] = {100, 200, 5, 1, NAN},
                                                  [HPCT_TRAIN_PACE_UPDATE] = {1, 1, 1, 1, NAN}};
    hpct_train_slow_nodes nodes;
    double ratio;
    assert_int_equal(hpct_train_slow_nodes_open(&nodes, names, RANKS), HPCT_OK);
    hpct_train_slow_nodes_number(&nodes);
    assert_int_equal(nodes.num_nodes, 3);
    memcpy(nodes.known, known, sizeof known);
    hpct_train_slow_nodes_fill(&nodes);
    assert_true(nodes.busy[0] == 8 && nodes.input[0] == 2 && nodes.busy[1] == 4);
    assert_true(isnan(nodes.busy[2]));
    assert_int_equal(hpct_train_slow_nodes_first(&nodes, 1), 1);
    assert_int_equal(hpct_train_slow_nodes_heed(&nodes, 0, 100, &ratio), HPCT_TRAIN_SLOW_BEGINS);
    assert_true(ratio == 2);
    assert_int_equal(hpct_train_slow_nodes_heed(&nodes, 2, 100, &ratio), HPCT_TRAIN_SLOW_NO);
    assert_int_equal(hpct_train_slow_nodes_heed(&nodes, 0, 160, &ratio), HPCT_TRAIN_SLOW_NAMED);
    names[4] = "b"; /* it has come */
    hpct_train_slow_nodes_number(&nodes);
    assert_int_equal(nodes.num_nodes, 2);
    assert_int_equal(hpct_train_slow_nodes_heed(&nodes, 0, 161, &ratio), HPCT_TRAIN_SLOW_BEGINS);
    hpct_train_slow_nodes_close(&nodes);
}
