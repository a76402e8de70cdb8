/* PowerSGD: Vogels, Karimireddy and Jaggi, PowerSGD: practical low-rank gradient compression for
 * distributed optimization, 2019, algorithm 1 with error feedback (algorithm 2).
 *
 * Each matrix M (gradient and residual) is approximated by P Q, of rank columns and rows: P = M
 * Q'^T with the Q' of the previous step (warm start; random at first), summed over the ranks and
 * orthonormalized; Q = P^T M, summed over the ranks. One power iteration per step. Both are linear
 * in M, so sums of factors are factors of the sum. A rank's residual is M - P (P^T M), with its own
 * M.
 *
 * Vectors are sent uncompressed, together with P; so are matrices whose factors are not smaller. A
 * kernel's blocked layout is a fixed permutation: a matrix like any other, as long as all ranks
 * have the same layout. Its padding is 0 in M and would not be in P Q; it is cleared, as kernels
 * require, and as checkpoints have no values for it. */
#include "agent/strategy/gradients/compress.h"
#include "agent/strategy/gradients/low_rank.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

typedef struct factors {
    size_t offset, rows, columns; /* offset in the arena */
    int rank;                     /* 0: uncompressed */
    size_t p, q;                  /* offsets in `left` and `right`; p also if uncompressed */
} factors;

typedef struct powersgd {
    hpct_grad_compressor base;
    factors *matrices;
    int num;
    float *left;  /* [left_count + HPCT_GRAD_COMPRESS_PIGGYBACK]: every P and vector */
    float *right; /* [right_count]: every Q, kept for the next step */
    size_t left_count, right_count;
} powersgd;

static factors plan_matrix(powersgd *p, const hpct_run_arena_matrix *m, int rank)
{
    factors f = {.offset = m->offset, .rows = m->rows, .columns = m->columns};
    size_t least = m->rows < m->columns ? m->rows : m->columns;
    f.rank = (size_t) rank < least ? rank : (int) least;
    if ((m->rows + m->columns) * (size_t) f.rank >= m->rows * m->columns)
        f.rank = 0;
    f.p = p->left_count;
    f.q = p->right_count;
    p->left_count += m->rows * (f.rank > 0 ? (size_t) f.rank : m->columns);
    p->right_count += m->columns * (size_t) f.rank;
    return f;
}

static void powersgd_close(hpct_grad_compressor *compressor)
{
    powersgd *p = (powersgd *) compressor;
    free(p->matrices);
    free(p->base.residue);
    free(p->left);
    free(p->right);
    free(p);
}

static hpct_status powersgd_open(hpct_grad_compressor **out, const hpct_grad_compressor_plan *plan)
{
    powersgd *p = calloc(1, sizeof *p);
    if (p == NULL)
        return hpct_fail_memory(sizeof *p);
    p->num = plan->num_matrices;
    p->matrices = calloc((size_t) p->num + 1, sizeof *p->matrices);
    for (int i = 0; i < p->num && p->matrices != NULL; i++)
        p->matrices[i] = plan_matrix(p, &plan->matrices[i], plan->options->rank);
    p->base.residue = calloc(plan->count + 1, sizeof *p->base.residue);
    p->left = calloc(p->left_count + HPCT_GRAD_COMPRESS_PIGGYBACK, sizeof *p->left);
    p->right = calloc(p->right_count + 1, sizeof *p->right);
    if (p->matrices == NULL || p->base.residue == NULL || p->left == NULL || p->right == NULL) {
        powersgd_close(&p->base);
        return hpct_fail_memory((plan->count + p->left_count + p->right_count) * sizeof(float));
    }
    hpct_grad_draw_normal(p->right, p->right_count, 0); /* same on all ranks */
    *out = &p->base;
    return HPCT_OK;
}

static hpct_grad_low_rank low_rank(powersgd *p, const factors *f, float *gradients)
{
    return (hpct_grad_low_rank){.rows = f->rows,
                                .columns = f->columns,
                                .rank = f->rank,
                                .gradient = gradients + f->offset,
                                .residue = p->base.residue + f->offset,
                                .p = p->left + f->p,
                                .q = p->right + f->q};
}

/* Copies uncompressed parameters into `left`, or out of it. */
static void plain(powersgd *p, float *gradients, bool in)
{
    for (int i = 0; i < p->num; i++) {
        const factors *f = &p->matrices[i];
        size_t bytes = f->rows * f->columns * sizeof *gradients;
        if (f->rank > 0)
            continue;
        memcpy(in ? p->left + f->p : gradients + f->offset,
               in ? gradients + f->offset : p->left + f->p, bytes);
    }
}

static void clear_padding(const powersgd *p, const factors *f, float *values)
{
    const uint32_t *bits = p->base.padding;
    for (size_t i = f->offset, end = f->offset + f->rows * f->columns; bits != NULL && i < end;) {
        if (i % 32 == 0 && bits[i / 32] == 0) {
            i += 32;
            continue;
        }
        if ((bits[i / 32] >> i % 32 & 1) != 0)
            values[i] = 0;
        i++;
    }
}

static hpct_status powersgd_reduce(hpct_grad_compressor *compressor, float *gradients,
                                   size_t piggyback)
{
    powersgd *p = (powersgd *) compressor;
    hpct_comm *comm = compressor->comm;
    float *sums = gradients + compressor->count;
    plain(p, gradients, true);
    for (int i = 0; i < p->num; i++) {
        hpct_grad_low_rank m = low_rank(p, &p->matrices[i], gradients);
        if (m.rank > 0)
            hpct_grad_low_rank_left(&m);
    }
    memcpy(p->left + p->left_count, sums, piggyback * sizeof *sums);
    hpct_status status = comm->ops->allreduce_sum(comm, p->left, p->left_count + piggyback);
    memcpy(sums, p->left + p->left_count, piggyback * sizeof *sums);
    plain(p, gradients, false);
    for (int i = 0; i < p->num && status == HPCT_OK; i++) {
        hpct_grad_low_rank m = low_rank(p, &p->matrices[i], gradients);
        if (m.rank == 0)
            continue;
        hpct_grad_orthonormalize(m.p, m.rows, m.rank, (uint64_t) compressor->reduced);
        hpct_grad_low_rank_right(&m);
        clear_padding(p, &p->matrices[i], p->base.residue);
    }
    if (status == HPCT_OK)
        status = comm->ops->allreduce_sum(comm, p->right, p->right_count);
    for (int i = 0; i < p->num && status == HPCT_OK; i++) {
        hpct_grad_low_rank m = low_rank(p, &p->matrices[i], gradients);
        if (m.rank == 0)
            continue;
        hpct_grad_low_rank_expand(&m);
        clear_padding(p, &p->matrices[i], gradients);
    }
    return status;
}

static size_t powersgd_bytes(const hpct_grad_compressor *compressor)
{
    const powersgd *p = (const powersgd *) compressor;
    return (p->left_count + p->right_count) * sizeof(float);
}

static float *powersgd_factors(const hpct_grad_compressor *compressor, size_t *count)
{
    const powersgd *p = (const powersgd *) compressor;
    *count = p->right_count;
    return p->right;
}

const hpct_grad_compressor_ops hpct_grad_powersgd = {
    .name = "powersgd",
    .open = powersgd_open,
    .reduce = powersgd_reduce,
    .bytes = powersgd_bytes,
    .factors = powersgd_factors,
    .close = powersgd_close,
};
