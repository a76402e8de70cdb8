/* agent/data/sampler: the order of the samples does not know how many ranks there are. */
#include "agent/data/sampler.h"
#include "tests/unit/unit.h"

/* Collects global batch t as `size` ranks together have it. */
static int collect(uint32_t *out, hpct_data_sampler **samplers, int size, int64_t epoch,
                   int64_t step)
{
    int count = 0, global = -1;
    for (int rank = 0; rank < size; rank++) {
        hpct_data_batch batch = hpct_data_sampler_batch(samplers[rank], epoch, step);
        memcpy(out + count, batch.indices, (size_t) batch.count * sizeof *out);
        count += batch.count;
        assert_true(global == -1 || global == batch.global_count);
        global = batch.global_count;
    }
    assert_int_equal(count, global);
    return count;
}

static void open_all(hpct_data_sampler **samplers, int size, size_t samples, int batch,
                     int64_t steps)
{
    for (int rank = 0; rank < size; rank++) {
        hpct_data_sampler_options options = {samples, batch, steps, rank, size, 7};
        assert_int_equal(hpct_data_sampler_new(&samplers[rank], &options), HPCT_OK);
    }
}

static void close_all(hpct_data_sampler **samplers, int size)
{
    for (int rank = 0; rank < size; rank++)
        hpct_data_sampler_free(samplers[rank]);
}

TEST(batches_do_not_depend_on_number_of_ranks)
{
    const int sizes[] = {2, 3, 7, 8, 16};
    const int64_t steps_per_epoch[] = {0, 5};
    uint32_t alone[16], together[16];
    for (size_t s = 0; s < 2; s++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            hpct_data_sampler *one, *many[16];
            open_all(&one, 1, 103, 16, steps_per_epoch[s]);
            open_all(many, sizes[i], 103, 16, steps_per_epoch[s]);
            int64_t steps = hpct_data_sampler_steps_per_epoch(one);
            assert_int_equal(steps, s == 0 ? 7 : 5);
            for (int64_t t = 0; t < 4 * steps; t++) {
                int n = collect(alone, &one, 1, t / steps, t % steps);
                assert_int_equal(collect(together, many, sizes[i], t / steps, t % steps), n);
                assert_memory_equal(alone, together, (size_t) n * sizeof *alone);
            }
            close_all(&one, 1);
            close_all(many, sizes[i]);
        }
    }
}

TEST(a_pass_has_each_sample_once)
{
    hpct_data_sampler *sampler;
    uint32_t batch[10];
    open_all(&sampler, 1, 25, 10, 0);
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        int seen[25] = {0};
        int counts[3];
        for (int64_t step = 0; step < 3; step++) {
            counts[step] = collect(batch, &sampler, 1, epoch, step);
            for (int i = 0; i < counts[step]; i++)
                seen[batch[i]]++;
        }
        assert_int_equal(counts[0], 10);
        assert_int_equal(counts[2], 5); /* the short one */
        for (int i = 0; i < 25; i++)
            assert_int_equal(seen[i], 1);
    }
    close_all(&sampler, 1);
}

TEST(steps_per_epoch_go_on_over_the_passes)
{
    hpct_data_sampler *sampler;
    uint32_t batch[10];
    int seen[25] = {0};
    open_all(&sampler, 1, 25, 10, 2);
    for (int64_t t = 0; t < 5; t++) { /* 50 samples: two passes, each batch full */
        assert_int_equal(collect(batch, &sampler, 1, t / 2, t % 2), 10);
        for (int i = 0; i < 10; i++)
            seen[batch[i]]++;
    }
    for (int i = 0; i < 25; i++)
        assert_int_equal(seen[i], 2);
    close_all(&sampler, 1);
}

TEST(ranks_may_get_nothing_of_a_short_batch)
{
    hpct_data_sampler *many[4];
    open_all(many, 4, 10, 8, 0);
    assert_int_equal(hpct_data_sampler_short_count(many[0]), 1);
    assert_int_equal(hpct_data_sampler_short_count(many[3]), 0);
    hpct_data_batch batch = hpct_data_sampler_batch(many[3], 0, 1);
    assert_int_equal(batch.count, 0);
    assert_int_equal(batch.global_count, 2);
    close_all(many, 4);
}

TEST(the_order_is_a_function_of_seed_and_pass)
{
    enum { N = 1000 };
    static uint32_t a[N], b[N];
    hpct_data_shuffle(a, N, 1, 0);
    hpct_data_shuffle(b, N, 1, 0);
    assert_memory_equal(a, b, sizeof a);
    const uint64_t others[][2] = {{1, 1}, {2, 0}, {0, 1}};
    for (size_t k = 0; k < 3; k++) {
        int same = 0;
        hpct_data_shuffle(b, N, others[k][0], others[k][1]);
        for (int i = 0; i < N; i++)
            same += a[i] == b[i];
        assert_true(same < 15); /* one is to be expected by chance */
    }
}

/* Every sample is as likely at every place: the counts of 8 numbers at the first of 8 places. */
TEST(the_shuffle_is_fair)
{
    int counts[8] = {0};
    uint32_t order[8];
    for (uint64_t pass = 0; pass < 80000; pass++) {
        hpct_data_shuffle(order, 8, 3, pass);
        counts[order[0]]++;
    }
    double chi2 = 0;
    for (int i = 0; i < 8; i++)
        chi2 += (counts[i] - 10000.0) * (counts[i] - 10000.0) / 10000.0;
    assert_true(chi2 < 24.3); /* 0.1 % at 7 degrees of freedom; the numbers are always the same */
}

TEST(slices_cover_all)
{
    for (int64_t total = 0; total < 20; total++) {
        int64_t next = 0, begin;
        for (int rank = 0; rank < 6; rank++) {
            int64_t count = hpct_data_slice(total, rank, 6, &begin);
            assert_int_equal(begin, next);
            assert_true(count == total / 6 || count == total / 6 + 1);
            next = begin + count;
        }
        assert_int_equal(next, total);
    }
}
