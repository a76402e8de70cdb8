/* The plan of buckets, the time of an all-reduce, and the grid that ranks add up in. */
#include "agent/comm/grid.h"
#include "agent/strategy/gradients/buckets.h"
#include "tests/unit/unit.h"

#include <math.h>

#define FLOATS_OF_W1 ((size_t) 2770656)

/* Buckets follow one another, hold all, and end behind a cache line. */
static int plan(size_t count, size_t bytes, int ranks, double latency, double rate)
{
    size_t ends[HPCT_GRAD_BUCKETS_MOST];
    hpct_comm_network network = {latency, rate, 0};
    int num = hpct_grad_buckets_plan(ends, count, bytes, ranks, &network);
    assert_true(num >= 1 && num <= HPCT_GRAD_BUCKETS_MOST);
    for (int i = 0; i < num; i++) {
        assert_true(count == 0 || ends[i] > (i > 0 ? ends[i - 1] : 0));
        assert_true(i == num - 1 || ends[i] % 16 == 0);
    }
    assert_true(ends[num - 1] == count);
    return num;
}

TEST(buckets_follow_the_network)
{
    /* 88.7 ms of transfer at 1 Gb/s: sqrt(88.7 ms / 4 ms) = 4.7; sqrt(88.7 ms / 0.4 ms) = 14.9 */
    assert_int_equal(plan(FLOATS_OF_W1, 0, 2, 1e-3, 125e6), 4);
    assert_int_equal(plan(FLOATS_OF_W1, 0, 2, 1e-4, 125e6), 14);
    /* bound by latency: 1 ms each way, less than a millisecond of transfer */
    assert_int_equal(plan(34826, 0, 2, 1e-3, 1.25e9), 1);
    assert_int_equal(plan(FLOATS_OF_W1, 0, 2, 1e-1, 125e6), 1);
    /* bound by the rate, and no more than there may be */
    assert_int_equal(plan(FLOATS_OF_W1, 0, 2, 1e-6, 12.5e6), HPCT_GRAD_BUCKETS_MOST);
    assert_int_equal(plan(FLOATS_OF_W1, 0, 2, 0, 1e9), HPCT_GRAD_BUCKETS_MOST);
    /* twice as much to transfer with many ranks, and 2 * 10 messages: sqrt(177 ms / 2 ms) = 9.4 */
    assert_int_equal(plan(FLOATS_OF_W1, 0, 1000, 1e-4, 125e6), 9);
}

TEST(buckets_follow_the_option)
{
    assert_int_equal(plan(1000, 64 * 4, 2, 1, 1), 16);
    assert_int_equal(plan(1000, 1, 2, 1, 1), 32);
    assert_int_equal(plan(1000, 4000, 2, 0, 1e9), 1);
    assert_int_equal(plan(1000, 3999, 2, 0, 1e9), 1); /* whole lines */
    assert_int_equal(plan(1008, 3968, 2, 0, 1e9), 2);
    assert_int_equal(plan(0, 0, 2, 1e-4, 1e9), 1); /* the sums still travel */
    assert_int_equal(plan(1, 0, 2, 1e-4, 1e9), 1);
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-12 * fabs(b);
}

TEST(time_of_an_allreduce)
{
    hpct_comm_network network = {1e-4, 1e9, 0};
    assert_true(hpct_comm_network_allreduce_seconds(&network, 1, 1e9) == 0);
    assert_true(near(hpct_comm_network_allreduce_seconds(&network, 2, 1e9), 2e-4 + 1));
    assert_true(near(hpct_comm_network_allreduce_seconds(&network, 5, 1e9), 6e-4 + 1.6));
    assert_true(near(hpct_comm_network_allreduce_seconds(&network, 8, 0), 6e-4));
}

TEST(parts_cover_all)
{
    for (size_t count = 0; count < 200; count++) {
        for (int parts = 1; parts < 9; parts++) {
            size_t end = 0;
            for (int part = 0; part < parts; part++) {
                hpct_comm_slice_range range = hpct_comm_grid_part(count, parts, part);
                assert_true(range.begin == end && (end % 16 == 0 || range.count == 0));
                end += range.count;
            }
            assert_true(end == count);
        }
    }
}

/* Nodes of 2, 3 and 2 ranks, dealt out in turn. */
TEST(ranks_in_groups)
{
    const int groups[] = {7, 3, 5, 7, 3, 5, 3};
    const int members[][3] = {{0, 3}, {1, 4, 6}, {2, 5}}, num[] = {2, 3, 2};
    const int columns[][3] = {{0, 1, 2}, {3, 4, 5}};
    for (int rank = 0; rank < 7; rank++) {
        hpct_comm_grid grid;
        int group = rank == 6 ? 1 : rank % 3, member = rank / 3;
        assert_int_equal(hpct_comm_grid_make(&grid, groups, rank, 7), HPCT_OK);
        assert_int_equal(grid.owners, 2);
        assert_int_equal(grid.num_members, num[group]);
        assert_int_equal(grid.member, member);
        assert_memory_equal(grid.members, members[group], (size_t) num[group] * sizeof(int));
        assert_int_equal(grid.column == NULL, rank == 6);
        if (rank < 6) {
            assert_int_equal(grid.num_groups, 3);
            assert_int_equal(grid.row, group);
            assert_memory_equal(grid.column, columns[member], sizeof columns[member]);
        }
        hpct_comm_grid_free(&grid);
    }
}

TEST(each_alone)
{
    hpct_comm_grid grid;
    assert_int_equal(hpct_comm_grid_make(&grid, NULL, 2, 4), HPCT_OK);
    assert_true(grid.owners == 1 && grid.num_members == 1 && grid.num_groups == 4 && grid.row == 2);
    for (int rank = 0; rank < 4; rank++)
        assert_int_equal(grid.column[rank], rank);
    hpct_comm_grid_free(&grid);
}
