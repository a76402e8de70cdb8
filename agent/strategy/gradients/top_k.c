/* Top-k sparsification: the largest share of each parameter's gradient: Aji and Heafield, Sparse
 * communication for distributed gradient descent, 2017; per parameter, as in Lin et al., Deep
 * gradient compression, 2018 (without its momentum correction and clipping).
 *
 * Each rank sends the k = ceil(share * count) values of largest magnitude of each matrix (gradient
 * and residual) with their indices, and keeps the others as its residual; each adds the pairs of
 * all ranks in the order of ranks, so that all get the same bits. Vectors are sent uncompressed. */
#include "agent/strategy/gradients/compress.h"
#include "agent/strategy/gradients/select.h"
#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct part {
    size_t offset, count; /* offset in the arena */
    size_t k;             /* number of pairs sent; 0: uncompressed */
    size_t at;            /* offset in `mine`, or in `plain` */
} part;

typedef struct top_k {
    hpct_grad_compressor base;
    part *parts;
    int num;
    hpct_grad_pair *mine; /* [pairs] */
    hpct_grad_pair *all;  /* [size][pairs] */
    float *plain;         /* [plain_count + HPCT_GRAD_COMPRESS_PIGGYBACK] */
    size_t pairs, plain_count;
    uint32_t histogram[HPCT_GRAD_SELECT_BINS];
} top_k;

static part plan_part(top_k *t, const hpct_run_arena_matrix *m, double share)
{
    part one = {.offset = m->offset, .count = m->rows * m->columns};
    bool vector = m->rows == 1 || m->columns == 1;
    if (!vector)
        one.k = (size_t) fmin((double) one.count, ceil(share * (double) one.count));
    one.at = vector ? t->plain_count : t->pairs;
    t->plain_count += vector ? one.count : 0;
    t->pairs += one.k;
    return one;
}

static void top_k_close(hpct_grad_compressor *compressor)
{
    top_k *t = (top_k *) compressor;
    free(t->parts);
    free(t->base.residue);
    free(t->mine);
    free(t->all);
    free(t->plain);
    free(t);
}

static hpct_status top_k_open(hpct_grad_compressor **out, const hpct_grad_compressor_plan *plan)
{
    if (plan->count > UINT32_MAX)
        return hpct_fail(HPCT_ERR_USAGE, "--compress topk: %zu parameters are too many to number",
                         plan->count);
    top_k *t = calloc(1, sizeof *t);
    if (t == NULL)
        return hpct_fail_memory(sizeof *t);
    size_t ranks = (size_t) plan->comm->size;
    t->num = plan->num_matrices;
    t->parts = calloc((size_t) t->num + 1, sizeof *t->parts);
    for (int i = 0; i < t->num && t->parts != NULL; i++)
        t->parts[i] = plan_part(t, &plan->matrices[i], plan->options->share);
    t->base.residue = calloc(plan->count + 1, sizeof *t->base.residue);
    t->mine = calloc(t->pairs + 1, sizeof *t->mine);
    t->all = calloc(t->pairs * ranks + 1, sizeof *t->all);
    t->plain = calloc(t->plain_count + HPCT_GRAD_COMPRESS_PIGGYBACK, sizeof *t->plain);
    if (t->parts == NULL || t->base.residue == NULL || t->mine == NULL || t->all == NULL ||
        t->plain == NULL) {
        top_k_close(&t->base);
        return hpct_fail_memory(plan->count * sizeof(float) +
                                t->pairs * (ranks + 1) * sizeof(hpct_grad_pair));
    }
    *out = &t->base;
    return HPCT_OK;
}

/* Collects this rank's pairs and uncompressed parameters; sets matrices to zero. */
static void collect_pairs(top_k *t, float *gradients)
{
    for (int i = 0; i < t->num; i++) {
        const part *p = &t->parts[i];
        float *gradient = gradients + p->offset;
        if (p->k == 0) {
            memcpy(t->plain + p->at, gradient, p->count * sizeof *gradient);
            continue;
        }
        hpct_grad_select_largest(p->count, p->k, gradient, t->base.residue + p->offset, p->offset,
                                 t->mine + p->at, t->histogram);
        memset(gradient, 0, p->count * sizeof *gradient);
    }
}

static hpct_status top_k_reduce(hpct_grad_compressor *compressor, float *gradients,
                                size_t piggyback)
{
    top_k *t = (top_k *) compressor;
    hpct_comm *comm = compressor->comm;
    float *sums = gradients + compressor->count;
    collect_pairs(t, gradients);
    memcpy(t->plain + t->plain_count, sums, piggyback * sizeof *sums);
    HPCT_TRY(comm->ops->allreduce_sum(comm, t->plain, t->plain_count + piggyback));
    HPCT_TRY(comm->ops->allgather(comm, t->mine, t->all, t->pairs * sizeof *t->mine));
    memcpy(sums, t->plain + t->plain_count, piggyback * sizeof *sums);
    for (int i = 0; i < t->num; i++) {
        const part *p = &t->parts[i];
        if (p->k == 0)
            memcpy(gradients + p->offset, t->plain + p->at, p->count * sizeof *gradients);
    }
    for (size_t i = 0; i < t->pairs * (size_t) comm->size; i++)
        gradients[t->all[i].index] += t->all[i].value;
    return HPCT_OK;
}

static size_t top_k_bytes(const hpct_grad_compressor *compressor)
{
    const top_k *t = (const top_k *) compressor;
    return t->pairs * sizeof(hpct_grad_pair) + t->plain_count * sizeof(float);
}

const hpct_grad_compressor_ops hpct_grad_top_k = {
    .name = "topk",
    .open = top_k_open,
    .reduce = top_k_reduce,
    .bytes = top_k_bytes,
    .close = top_k_close,
};
