/* The products of low_rank.h in blocks, and the orthonormalization between them.
 *
 * Lower bound: `left` reads gradient and residual and writes the residual, `right` reads and writes
 * the residual (from memory once: a block of columns fits the cache), `expand` writes the gradient:
 * 6 passes over the matrix of 4 bytes per value, against 2 rank / (rows + columns) of a value that
 * are sent. The 6 rank FLOPs per value are hidden behind them for ranks up to about 8. */
#include "agent/strategy/gradients/low_rank.h"

#include <math.h>
#include <string.h>

#define GROUP 4           /* columns of p that are accumulated in registers together */
#define LEFT_COLUMNS 2048 /* of a block: its part of q fits the cache, 32 KiB at rank 4 */
#define RIGHT_COLUMNS ((size_t) 512) /* 256 KiB with 128 rows */

#define HPCT_BODY "agent/strategy/gradients/low_rank_body.h"
#include "base/variants.h"

const hpct_grad_low_rank_loops *const hpct_grad_low_rank_variants[] = {HPCT_VARIANTS(loops)};

static const hpct_grad_low_rank_loops *best(void)
{
    int i = 0;
    while (!hpct_grad_low_rank_variants[i]->supported())
        i++;
    return hpct_grad_low_rank_variants[i];
}

#define LEAST 65536 /* values of a matrix below which threads do not pay */

static bool pays(const hpct_grad_low_rank *m)
{
    return m->rows * m->columns >= LEAST;
}

void hpct_grad_low_rank_left(const hpct_grad_low_rank *m)
{
    const hpct_grad_low_rank_loops *loops = best();
    enum { PARTS = 64 };
#pragma omp parallel for schedule(dynamic, 1) if (pays(m))
    for (size_t part = 0; part < PARTS; part++) {
        size_t first = m->rows * part / PARTS, end = m->rows * (part + 1) / PARTS;
        if (end > first)
            loops->left(m, first, end - first);
    }
}

static void by_columns(const hpct_grad_low_rank *m,
                       void (*loop)(const hpct_grad_low_rank *m, size_t first, size_t count))
{
    size_t blocks = (m->columns + RIGHT_COLUMNS - 1) / RIGHT_COLUMNS;
#pragma omp parallel for schedule(dynamic, 1) if (pays(m))
    for (size_t block = 0; block < blocks; block++) {
        size_t first = block * RIGHT_COLUMNS, left = m->columns - first;
        loop(m, first, left < RIGHT_COLUMNS ? left : RIGHT_COLUMNS);
    }
}

void hpct_grad_low_rank_right(const hpct_grad_low_rank *m)
{
    by_columns(m, best()->right);
}

void hpct_grad_low_rank_expand(const hpct_grad_low_rank *m)
{
    by_columns(m, best()->expand);
}

/* ---- orthonormal columns ---- */

/* SplitMix64 (Steele, Lea and Flood, Fast splittable pseudorandom number generators, 2014). */
static uint64_t next(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Sum of four 16-bit uniform numbers: scaled to mean 0 and variance 1, approximately normal by the
 * central limit theorem. */
static float normal(uint64_t *state)
{
    uint64_t bits = next(state);
    int64_t sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (int64_t) (bits >> (16 * i) & 0xffff);
    return (float) (sum - 2 * 0xffff) * (float) (1.7320508075688772 / 65536);
}

void hpct_grad_draw_normal(float *values, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++)
        values[i] = normal(&seed);
}

static double dot(const float *p, size_t rows, int rank, int a, int b)
{
    double sum = 0;
    for (size_t i = 0; i < rows; i++)
        sum +=
            (double) p[i * (size_t) rank + (size_t) a] * (double) p[i * (size_t) rank + (size_t) b];
    return sum;
}

/* Subtracts the projections on the columns before k and normalizes the rest. False if the rest was
 * only rounding errors. */
static bool orthonormal(float *p, size_t rows, int rank, int k)
{
    double before = sqrt(dot(p, rows, rank, k, k));
    for (int pass = 0; pass < 2; pass++) {
        for (int j = 0; j < k; j++) {
            double along = dot(p, rows, rank, j, k);
            for (size_t i = 0; i < rows; i++) {
                float *row = p + i * (size_t) rank;
                row[k] = (float) ((double) row[k] - along * (double) row[j]);
            }
        }
    }
    double length = sqrt(dot(p, rows, rank, k, k));
    if (!(length > 1e-6 * before))
        return false;
    for (size_t i = 0; i < rows; i++) {
        float *at = p + i * (size_t) rank + (size_t) k;
        *at = (float) ((double) *at / length);
    }
    return true;
}

void hpct_grad_orthonormalize(float *p, size_t rows, int rank, uint64_t seed)
{
    enum { TRIES = 8 };
    for (int k = 0; k < rank; k++) {
        bool done = orthonormal(p, rows, rank, k);
        for (int attempt = 0; !done && attempt < TRIES; attempt++) {
            for (size_t i = 0; i < rows; i++)
                p[i * (size_t) rank + (size_t) k] = normal(&seed);
            done = orthonormal(p, rows, rank, k);
        }
    }
}
