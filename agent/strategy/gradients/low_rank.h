/* agent/strategy/gradients/low_rank.h - low-rank approximation of a matrix by one step of subspace
 * (power) iteration: P = M Q^T orthonormalized, Q = P^T M, M ~ P Q. OpenMP loops whose results do
 * not depend on the number of threads. */
#ifndef HPCT_AGENT_STRATEGY_GRADIENTS_LOW_RANK_H
#define HPCT_AGENT_STRATEGY_GRADIENTS_LOW_RANK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* M = gradient + residual of earlier steps. Row-major. */
typedef struct hpct_grad_low_rank {
    size_t rows, columns;
    int rank;
    float *gradient; /* [rows][columns] */
    float *residue;  /* [rows][columns] */
    float *p;        /* [rows][rank] */
    float *q;        /* [rank][columns] */
} hpct_grad_low_rank;

/* residue += gradient, so it holds M; p = M q^T. */
void hpct_grad_low_rank_left(const hpct_grad_low_rank *m);
/* q = p^T residue; residue -= p q. */
void hpct_grad_low_rank_right(const hpct_grad_low_rank *m);
/* gradient = p q. */
void hpct_grad_low_rank_expand(const hpct_grad_low_rank *m);

/* Orthonormalizes the columns of p[rows][rank], rank <= rows: modified Gram-Schmidt in double
 * precision, each column twice (Giraud, Langou and Rozloznik, 2005). A column that depends on
 * earlier ones is replaced by one drawn from `seed`. Same bits on every processor. */
void hpct_grad_orthonormalize(float *p, size_t rows, int rank, uint64_t seed);

/* Approximately normal numbers as sums of uniform ones, using additions only. */
void hpct_grad_draw_normal(float *values, size_t count, uint64_t seed);

/* Loops for one thread's part, by instruction set; NULL-terminated. */
typedef struct hpct_grad_low_rank_loops {
    const char *name;
    bool (*supported)(void);
    void (*left)(const hpct_grad_low_rank *m, size_t first, size_t count);   /* rows */
    void (*right)(const hpct_grad_low_rank *m, size_t first, size_t count);  /* columns */
    void (*expand)(const hpct_grad_low_rank *m, size_t first, size_t count); /* columns */
} hpct_grad_low_rank_loops;
extern const hpct_grad_low_rank_loops *const hpct_grad_low_rank_variants[];

#endif
