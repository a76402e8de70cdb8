/* tests/unit/agent/strategy/gradients/test_compress.c - compressed gradients against plain C: the
 * loops of every instruction set, the selection, and whole reductions of several ranks, which are
 * threads here. */
#include "tests/unit/allocations.h"
#include "tests/unit/unit.h"

#include "agent/strategy/gradients/compress.h"
#include "agent/strategy/gradients/low_rank.h"
#include "agent/strategy/gradients/select.h"

#include <math.h>
#include <pthread.h>

/* ---- ranks as threads ---- */

#define RANKS 3

typedef struct group {
    pthread_barrier_t barrier;
    float *data[RANKS];
    const void *mine[RANKS];
    float sum[1 << 16];
} group;

typedef struct member {
    hpct_comm base;
    group *group;
} member;

static hpct_status sum_of_members(hpct_comm *comm, float *data, size_t count)
{
    group *g = ((member *) comm)->group;
    g->data[comm->rank] = data;
    pthread_barrier_wait(&g->barrier);
    for (size_t i = 0; i < count && comm->rank == 0; i++) {
        g->sum[i] = 0;
        for (int rank = 0; rank < RANKS; rank++)
            g->sum[i] += g->data[rank][i];
    }
    pthread_barrier_wait(&g->barrier);
    memcpy(data, g->sum, count * sizeof *data);
    pthread_barrier_wait(&g->barrier);
    return HPCT_OK;
}

static hpct_status all_of_members(hpct_comm *comm, const void *mine, void *all, size_t bytes)
{
    group *g = ((member *) comm)->group;
    g->mine[comm->rank] = mine;
    pthread_barrier_wait(&g->barrier);
    for (int rank = 0; rank < RANKS; rank++)
        memcpy((char *) all + (size_t) rank * bytes, g->mine[rank], bytes);
    pthread_barrier_wait(&g->barrier);
    return HPCT_OK;
}

static const hpct_comm_ops member_ops = {
    .name = "members", .allreduce_sum = sum_of_members, .allgather = all_of_members};

/* ---- a run of reductions ---- */

static const hpct_run_arena_matrix matrices[] = {
    {0, 1, 5}, {16, 17, 33}, {592, 40, 7}, {880, 3, 2}}; /* with padding between */
#define MATRICES 4
#define COUNT 896
#define STEPS 6

typedef struct run {
    hpct_compression options;
    int low_rank; /* of the gradients; 0: they are drawn freely */
    bool padded;  /* of each four values the last is padding, without a gradient */
    float gradient[RANKS][STEPS][COUNT], applied[RANKS][STEPS][COUNT + 2], residue[RANKS][COUNT];
    double bytes;
    long allocations;
    group group;
} run;

typedef struct task {
    run *run;
    int rank;
} task;

static void *train(void *argument)
{
    task *t = argument;
    run *r = t->run;
    member self = {{.ops = &member_ops, .rank = t->rank, .size = RANKS}, &r->group};
    hpct_grad_compressor_plan plan = {&self.base, matrices, MATRICES, COUNT, &r->options};
    const hpct_grad_compressor_ops *ops =
        r->options.kind == HPCT_COMPRESS_POWERSGD ? &hpct_grad_powersgd : &hpct_grad_top_k;
    hpct_grad_compressor *c = NULL;
    if (ops->open(&c, &plan) != HPCT_OK)
        return NULL;
    c->ops = ops;
    c->comm = &self.base;
    c->count = COUNT;
    c->warmup = r->options.warmup_steps;
    if (r->padded && (c->padding = malloc(COUNT / 32 * sizeof(uint32_t))) != NULL)
        memset(c->padding, 0x88, COUNT / 32 * sizeof(uint32_t));
    pthread_barrier_wait(&r->group.barrier);
    long before = allocations;
    for (int step = 0; step < STEPS; step++) {
        float *gradients = r->applied[t->rank][step];
        memcpy(gradients, r->gradient[t->rank][step], COUNT * sizeof *gradients);
        gradients[COUNT] = (float) t->rank;
        gradients[COUNT + 1] = 1;
        if (hpct_grad_compressor_reduce(c, gradients, 2) != HPCT_OK)
            gradients[COUNT] = NAN;
    }
    pthread_barrier_wait(&r->group.barrier);
    if (t->rank == 0) {
        r->allocations = allocations - before;
        r->bytes = hpct_grad_compressor_bytes(c);
    }
    pthread_barrier_wait(&r->group.barrier);
    memcpy(r->residue[t->rank], c->residue, COUNT * sizeof(float));
    hpct_grad_compressor_close(c);
    return NULL;
}

static void draw_gradients(run *r)
{
    for (int rank = 0; rank < RANKS; rank++)
        for (int step = 0; step < STEPS; step++)
            for (int m = 0; m < MATRICES; m++) {
                size_t rows = matrices[m].rows, columns = matrices[m].columns;
                float *at = r->gradient[rank][step] + matrices[m].offset, factor[2][64], own[2][64];
                uint64_t seed = (uint64_t) (step * 100 + m);
                hpct_grad_draw_normal(at, rows * columns, seed + 1000 * (uint64_t) (rank + 1));
                /* columns of the factor are the same on all ranks, so that the sum has its rank */
                hpct_grad_draw_normal(factor[0], 128, seed);
                hpct_grad_draw_normal(own[0], 128, seed + 1000 * (uint64_t) (rank + 1));
                for (size_t i = 0; i < rows * columns && r->low_rank > 0 && rows > 1; i++) {
                    at[i] = 0;
                    for (int k = 0; k < r->low_rank; k++)
                        at[i] += factor[k][i / columns] * own[k][i % columns];
                }
            }
    for (int rank = 0; rank < RANKS && r->padded; rank++)
        for (int step = 0; step < STEPS; step++)
            for (size_t i = 3; i < COUNT; i += 4)
                r->gradient[rank][step][i] = 0;
}

static run *train_some(hpct_compression options, int low_rank, bool padded)
{
    run *r = calloc(1, sizeof *r);
    pthread_t threads[RANKS];
    task tasks[RANKS];
    assert_non_null(r);
    r->options = options;
    r->low_rank = low_rank;
    r->padded = padded;
    draw_gradients(r);
    pthread_barrier_init(&r->group.barrier, NULL, RANKS);
    for (int rank = 0; rank < RANKS; rank++) {
        tasks[rank] = (task){r, rank};
        assert_int_equal(pthread_create(&threads[rank], NULL, train, &tasks[rank]), 0);
    }
    for (int rank = 0; rank < RANKS; rank++)
        pthread_join(threads[rank], NULL);
    pthread_barrier_destroy(&r->group.barrier);
    for (int step = 0; step < STEPS; step++) {
        assert_true(r->applied[0][step][COUNT] == 0 + 1 + 2);
        assert_true(r->applied[0][step][COUNT + 1] == RANKS);
        for (int rank = 1; rank < RANKS; rank++)
            assert_memory_equal(r->applied[0][step], r->applied[rank][step],
                                sizeof r->applied[0][step]);
    }
    assert_int_equal(r->allocations, 0);
    return r;
}

static run *train_ranks(hpct_compression options, int low_rank)
{
    return train_some(options, low_rank, false);
}

static double sum_of_gradients(const run *r, int step, size_t i)
{
    double sum = 0;
    for (int rank = 0; rank < RANKS; rank++)
        sum += (double) r->gradient[rank][step][i];
    return sum;
}

/* What was applied and what is kept back are together what all ranks had. */
static void check_feedback(const run *r)
{
    for (size_t i = 0; i < COUNT; i++) {
        double had = 0, has = 0;
        for (int step = 0; step < STEPS; step++) {
            had += sum_of_gradients(r, step, i);
            has += (double) r->applied[0][step][i];
        }
        for (int rank = 0; rank < RANKS; rank++)
            has += (double) r->residue[rank][i];
        assert_true(fabs(had - has) < 1e-4);
    }
}

/* The largest difference between what was applied and the sum of gradients, in one step. */
static double error_of(const run *r, int step)
{
    double worst = 0;
    for (size_t i = 0; i < COUNT; i++)
        worst = fmax(worst, fabs((double) r->applied[0][step][i] - sum_of_gradients(r, step, i)));
    return worst;
}

/* ---- PowerSGD ---- */

/* The same in double precision, on the sum of all ranks, which is all that matters:
 * q[rank][columns] and residue[rows][columns] go from step to step. */
static void plain_step(const hpct_run_arena_matrix *m, int rank, const double *gradient,
                       double *residue, double *q, double *applied)
{
    double p[64][8];
    for (size_t i = 0; i < m->rows * m->columns; i++)
        residue[i] += gradient[i];
    for (size_t i = 0; i < m->rows; i++)
        for (int k = 0; k < rank; k++) {
            p[i][k] = 0;
            for (size_t j = 0; j < m->columns; j++)
                p[i][k] += residue[i * m->columns + j] * q[(size_t) k * m->columns + j];
        }
    for (int k = 0; k < rank; k++) {
        double length = 0;
        for (int l = 0; l < k; l++) {
            double along = 0;
            for (size_t i = 0; i < m->rows; i++)
                along += p[i][l] * p[i][k];
            for (size_t i = 0; i < m->rows; i++)
                p[i][k] -= along * p[i][l];
        }
        for (size_t i = 0; i < m->rows; i++)
            length += p[i][k] * p[i][k];
        for (size_t i = 0; i < m->rows; i++)
            p[i][k] /= sqrt(length);
    }
    for (int k = 0; k < rank; k++)
        for (size_t j = 0; j < m->columns; j++) {
            q[(size_t) k * m->columns + j] = 0;
            for (size_t i = 0; i < m->rows; i++)
                q[(size_t) k * m->columns + j] += p[i][k] * residue[i * m->columns + j];
        }
    for (size_t i = 0; i < m->rows; i++)
        for (size_t j = 0; j < m->columns; j++) {
            double value = 0;
            for (int k = 0; k < rank; k++)
                value += p[i][k] * q[(size_t) k * m->columns + j];
            applied[i * m->columns + j] = value;
            residue[i * m->columns + j] -= value;
        }
}

TEST(powersgd_is_what_plain_c_makes)
{
    enum { RANK = 2 };
    run *r = train_ranks(
        (hpct_compression){.kind = HPCT_COMPRESS_POWERSGD, .rank = RANK, .warmup_steps = 0}, 0);
    float drawn[2 * (33 + 7)];
    size_t begin = 0;
    hpct_grad_draw_normal(drawn, sizeof drawn / sizeof *drawn, 0);
    for (int m = 1; m < 3; m++) {
        const hpct_run_arena_matrix *matrix = &matrices[m];
        size_t count = matrix->rows * matrix->columns;
        double q[2 * 33], residue[17 * 33] = {0}, gradient[17 * 33], applied[17 * 33];
        for (size_t i = 0; i < RANK * matrix->columns; i++)
            q[i] = (double) drawn[begin + i];
        begin += RANK * matrix->columns;
        for (int step = 0; step < STEPS; step++) {
            for (size_t i = 0; i < count; i++)
                gradient[i] = sum_of_gradients(r, step, matrix->offset + i);
            plain_step(matrix, RANK, gradient, residue, q, applied);
            for (size_t i = 0; i < count; i++)
                assert_true(fabs((double) r->applied[0][step][matrix->offset + i] - applied[i]) <
                            1e-3);
        }
    }
    /* the vector, and the matrix of 6 whose factors of rank 2 are 10, go as they are */
    for (size_t i = 0; i < 5; i++)
        assert_true(fabs((double) r->applied[0][0][i] - sum_of_gradients(r, 0, i)) < 1e-5);
    for (size_t i = 880; i < 886; i++)
        assert_true(fabs((double) r->applied[0][0][i] - sum_of_gradients(r, 0, i)) < 1e-5);
    assert_true(error_of(r, 0) > 0.1); /* so that the others mean something */
    check_feedback(r);
    assert_true(r->bytes == 4.0 * (5 + 6 + 2 * (17 + 33) + 2 * (40 + 7)));
    free(r);
}

/* A gradient of rank 2 is what its two factors make, also in the steps after the first. */
TEST(powersgd_of_full_rank_is_exact)
{
    run *r = train_ranks((hpct_compression){.kind = HPCT_COMPRESS_POWERSGD, .rank = 2}, 2);
    assert_true(error_of(r, 0) < 1e-4);
    free(r);
    r = train_ranks((hpct_compression){.kind = HPCT_COMPRESS_POWERSGD, .rank = 256}, 0);
    for (int step = 0; step < STEPS; step++)
        assert_true(error_of(r, step) < 1e-5);
    free(r);
}

/* What kernels and checkpoints have no values for remains 0; the feedback of the rest is whole. */
TEST(powersgd_leaves_padding_zero)
{
    run *r = train_some((hpct_compression){.kind = HPCT_COMPRESS_POWERSGD, .rank = 2}, 0, true);
    for (size_t i = 3; i < COUNT; i += 4) {
        for (int step = 0; step < STEPS; step++)
            assert_true(r->applied[0][step][i] == 0);
        for (int rank = 0; rank < RANKS; rank++)
            assert_true(r->residue[rank][i] == 0);
    }
    assert_true(error_of(r, 0) > 0.1);
    check_feedback(r);
    free(r);
}

TEST(the_first_steps_are_plain)
{
    run *r = train_ranks(
        (hpct_compression){.kind = HPCT_COMPRESS_POWERSGD, .rank = 1, .warmup_steps = 2}, 0);
    assert_true(error_of(r, 0) < 1e-5 && error_of(r, 1) < 1e-5);
    assert_true(error_of(r, 2) > 0.1);
    double compressed = 4.0 * (5 + 5 + (17 + 33) + (40 + 7)); /* 3 x 2 goes as 3 + 2 */
    assert_true(fabs(r->bytes - (2 * 4.0 * COUNT + 4 * compressed) / 6) < 1e-6);
    check_feedback(r);
    free(r);
}

TEST(columns_become_orthonormal)
{
    enum { ROWS = 50, RANK = 6 };
    float p[ROWS * RANK];
    hpct_grad_draw_normal(p, ROWS * RANK, 7);
    for (size_t i = 0; i < ROWS; i++) {
        p[i * RANK + 2] = p[i * RANK] - 3 * p[i * RANK + 1]; /* depends on the others */
        p[i * RANK + 4] = 0;
        p[i * RANK + 5] *= 1e-20f;
    }
    hpct_grad_orthonormalize(p, ROWS, RANK, 1);
    for (int a = 0; a < RANK; a++)
        for (int b = 0; b < RANK; b++) {
            double sum = 0;
            for (size_t i = 0; i < ROWS; i++)
                sum += (double) p[i * RANK + (size_t) a] * (double) p[i * RANK + (size_t) b];
            assert_true(fabs(sum - (a == b)) < 1e-6);
        }
}

/* Every instruction set, sizes around the vectors' and blocks', ranks around the groups'. */
TEST(loops_are_what_plain_c_makes)
{
    static const size_t sizes[][2] = {{1, 1}, {3, 15}, {5, 16}, {2, 33}, {4, 2100}};
    for (const hpct_grad_low_rank_loops *const *l = hpct_grad_low_rank_variants; *l != NULL; l++) {
        if (!(*l)->supported())
            continue;
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int rank = 1; rank <= 9; rank += rank < 5 ? 1 : 4) {
                size_t rows = sizes[s][0], columns = sizes[s][1], count = rows * columns;
                float *all = calloc(3 * count + 9 * (rows + columns), sizeof *all);
                hpct_grad_low_rank m = {rows,
                                        columns,
                                        rank,
                                        all,
                                        all + count,
                                        all + 3 * count,
                                        all + 3 * count + 9 * rows};
                float *before = all + 2 * count;
                hpct_grad_draw_normal(m.gradient, count, 1);
                hpct_grad_draw_normal(m.residue, count, 2);
                hpct_grad_draw_normal(m.q, (size_t) rank * columns, 3);
                for (size_t i = 0; i < count; i++)
                    before[i] = m.residue[i] + m.gradient[i];
                (*l)->left(&m, 0, rows);
                assert_memory_equal(m.residue, before, count * sizeof *before);
                for (size_t i = 0; i < rows; i++)
                    for (int k = 0; k < rank; k++) {
                        double sum = 0;
                        for (size_t j = 0; j < columns; j++)
                            sum += (double) before[i * columns + j] *
                                   (double) m.q[(size_t) k * columns + j];
                        assert_true(fabs(sum - (double) m.p[i * (size_t) rank + (size_t) k]) <
                                    1e-3);
                    }
                (*l)->right(&m, 0, columns);
                (*l)->expand(&m, 0, columns);
                for (size_t j = 0; j < columns; j++)
                    for (int k = 0; k < rank; k++) {
                        double sum = 0;
                        for (size_t i = 0; i < rows; i++)
                            sum += (double) before[i * columns + j] *
                                   (double) m.p[i * (size_t) rank + (size_t) k];
                        assert_true(fabs(sum - (double) m.q[(size_t) k * columns + j]) < 1e-3);
                    }
                for (size_t i = 0; i < count; i++) {
                    double product = 0, size = 1;
                    for (int k = 0; k < rank; k++) {
                        double part = (double) m.p[i / columns * (size_t) rank + (size_t) k] *
                                      (double) m.q[(size_t) k * columns + i % columns];
                        product += part;
                        size += fabs(part);
                    }
                    assert_true(fabs((double) m.gradient[i] - product) < 1e-6 * size);
                    assert_true(fabs((double) m.residue[i] - ((double) before[i] - product)) <
                                1e-6 * size);
                }
                free(all);
            }
    }
}

/* ---- top-k ---- */

static int larger(const void *a, const void *b)
{
    float x = fabsf(*(const float *) a), y = fabsf(*(const float *) b);
    return (x < y) - (x > y);
}

TEST(selection_is_what_sorting_makes)
{
    enum { COUNT_OF = 1000 };
    float gradient[COUNT_OF], residue[COUNT_OF], both[COUNT_OF], sorted[COUNT_OF];
    hpct_grad_pair pairs[COUNT_OF];
    static uint32_t histogram[HPCT_GRAD_SELECT_BINS];
    for (int test = 0; test < unit_cases(200); test++) {
        size_t count = 1 + (size_t) (test * 37) % COUNT_OF, k = 1 + (size_t) (test * 101) % count;
        hpct_grad_draw_normal(gradient, count, (uint64_t) test);
        hpct_grad_draw_normal(residue, count, (uint64_t) test + 1000);
        for (size_t i = 0; i < count; i++) {
            if (test % 3 == 0) /* many are equal, many 0 */
                gradient[i] = truncf(gradient[i]), residue[i] = truncf(residue[i]);
            if (test % 3 == 1) /* of all magnitudes */
                gradient[i] = ldexpf(gradient[i], (int) (i * 7 % 80) - 40), residue[i] = 0;
            both[i] = sorted[i] = gradient[i] + residue[i];
        }
        qsort(sorted, count, sizeof *sorted, larger);
        hpct_grad_select_largest(count, k, gradient, residue, 5, pairs, histogram);
        for (size_t i = 0; i < k; i++) {
            assert_true(pairs[i].index >= 5 && pairs[i].index < count + 5);
            assert_true(i == 0 || pairs[i].index > pairs[i - 1].index);
            assert_true(pairs[i].value == both[pairs[i].index - 5]);
            assert_true(residue[pairs[i].index - 5] == 0);
            assert_true(fabsf(pairs[i].value) >= fabsf(sorted[k - 1]));
            both[pairs[i].index - 5] = 0;
        }
        for (size_t i = 0; i < count; i++) {
            assert_true(residue[i] == both[i]);
            assert_true(fabsf(both[i]) <= fabsf(sorted[k - 1]));
        }
    }
}

TEST(top_k_of_all_is_exact)
{
    run *r = train_ranks((hpct_compression){.kind = HPCT_COMPRESS_TOP_K, .share = 1}, 0);
    for (int step = 0; step < STEPS; step++)
        assert_true(error_of(r, step) < 1e-6);
    free(r);
}

TEST(top_k_keeps_what_it_does_not_send)
{
    run *r = train_ranks((hpct_compression){.kind = HPCT_COMPRESS_TOP_K, .share = 0.1}, 0);
    int sent = 0;
    assert_true(error_of(r, 0) > 0.1);
    check_feedback(r);
    for (size_t i = 592; i < 872; i++) /* 28 numbers of each rank */
        sent += r->applied[0][0][i] != 0;
    assert_true(sent >= 28 && sent <= 28 * RANKS);
    assert_true(r->bytes == 8.0 * (57 + 28 + 1) + 4.0 * 5);
    free(r);
}

/* ---- what is refused ---- */

TEST(impossible_options_are_refused)
{
    static const hpct_compression bad[] = {
        {.kind = HPCT_COMPRESS_POWERSGD},
        {.kind = HPCT_COMPRESS_POWERSGD, .rank = HPCT_POWERSGD_MAX_RANK + 1},
        {.kind = HPCT_COMPRESS_TOP_K},
        {.kind = HPCT_COMPRESS_TOP_K, .share = 1.5},
        {.kind = HPCT_COMPRESS_TOP_K, .share = NAN},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(hpct_grad_compression_check(&bad[i]), HPCT_ERR_USAGE);
    assert_int_equal(
        hpct_grad_compression_check(&(hpct_compression){.kind = HPCT_COMPRESS_POWERSGD, .rank = 1}),
        HPCT_OK);
    assert_int_equal(
        hpct_grad_compression_check(&(hpct_compression){.kind = HPCT_COMPRESS_TOP_K, .share = 1}),
        HPCT_OK);
}
