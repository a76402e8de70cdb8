/* agent/strategy/low_rank.h - one matrix as the product of two narrow ones, by one step of
 * subspace (power) iteration: P = M Q^T made orthonormal, Q = P^T M, M ~ P Q. Loops over memory,
 * shared among OpenMP's threads; the results do not depend on their number. */
#ifndef HPCT_STRATEGY_LOW_RANK_H
#define HPCT_STRATEGY_LOW_RANK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* M is what was to be sent: the gradient and the residue of the steps before. Row-major. */
typedef struct hpct_low_rank {
    size_t rows, columns;
    int rank;
    float *gradient; /* [rows][columns] */
    float *residue;  /* [rows][columns] */
    float *p;        /* [rows][rank] */
    float *q;        /* [rank][columns] */
} hpct_low_rank;

/* residue += gradient, which is M; p = M q^T. */
void hpct_low_rank_left(const hpct_low_rank *m);
/* q = p^T residue; residue -= p q. */
void hpct_low_rank_right(const hpct_low_rank *m);
/* gradient = p q. */
void hpct_low_rank_expand(const hpct_low_rank *m);

/* The columns of p[rows][rank], rank <= rows, become orthonormal, by modified Gram-Schmidt in
 * double precision, each column twice (Giraud, Langou and Rozloznik, 2005). Instead of a column
 * that depends on those before it, one is drawn from `seed`. The same bits on every processor. */
void hpct_orthonormalize(float *p, size_t rows, int rank, uint64_t seed);

/* About normal numbers, sums of uniform ones, so that no function but addition takes part. */
void hpct_draw_normal(float *values, size_t count, uint64_t seed);

/* The loops on one thread's part, by instruction set; ended by NULL. */
typedef struct hpct_low_rank_loops {
    const char *name;
    bool (*supported)(void);
    void (*left)(const hpct_low_rank *m, size_t first, size_t count);   /* rows */
    void (*right)(const hpct_low_rank *m, size_t first, size_t count);  /* columns */
    void (*expand)(const hpct_low_rank *m, size_t first, size_t count); /* columns */
} hpct_low_rank_loops;
extern const hpct_low_rank_loops *const hpct_low_rank_variants[];

#endif
