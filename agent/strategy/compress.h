/* agent/strategy/compress.h - data-parallel gradients that travel compressed: one table, one file
 * per way (powersgd.c, top_k.c). All are lossy and have error feedback: what a rank does not send
 * is its residue, which it adds to its next gradient, so that for every parameter
 *   sum of what was applied so far + sum of the residues = sum of all ranks' gradients so far
 * (Seide et al., 1-bit stochastic gradient descent, 2014; Karimireddy et al., Error feedback fixes
 * SignSGD and other gradient compression schemes, 2019).
 * The first steps go uncompressed, while gradients are large and turn fast. Knows arenas and
 * communicators; nothing of layers or of what the gradient is for. */
#ifndef HPCT_STRATEGY_COMPRESS_H
#define HPCT_STRATEGY_COMPRESS_H

#include "agent/context.h"
#include "nn/step.h"

#include <hpctrain/strategy.h>

/* Floats behind the gradients that are added up with them, and never compressed. */
#define HPCT_COMPRESS_TAIL HPCT_ARENA_TAIL

typedef struct hpct_compressor hpct_compressor;

typedef struct hpct_compressor_plan {
    hpct_comm *comm;
    const hpct_arena_matrix *matrices; /* all parameters, by offset */
    int num_matrices;
    size_t count; /* floats of the arena */
    const hpct_compression *options;
} hpct_compressor_plan;

typedef struct hpct_compressor_ops {
    const char *name; /* as the user writes it */

    /* Allocates all that reduce needs. */
    hpct_status (*open)(hpct_compressor **out, const hpct_compressor_plan *plan);

    /* gradients[count + tail]: the gradients of all ranks (which are weighted, so that their sum is
     * wanted) become one approximation of their sum, and the tail its sum; the same bits on all
     * ranks. Collective; allocates nothing. */
    hpct_status (*reduce)(hpct_compressor *compressor, float *gradients, size_t tail);

    /* What one rank hands to collectives in such a reduce, without the tail. */
    size_t (*bytes)(const hpct_compressor *compressor);

    void (*close)(hpct_compressor *compressor);
} hpct_compressor_ops;

/* The part that every one's own struct begins with. */
struct hpct_compressor {
    const hpct_compressor_ops *ops;
    hpct_comm *comm;
    size_t count;
    float *residue; /* [count], of this rank; zeros where a parameter goes as it is */
    const hpct_model *model;
    float *host;             /* [count + HPCT_COMPRESS_TAIL], of a device's gradients; else NULL */
    int64_t warmup, reduced; /* reductions without compression, and all so far */
};

extern const hpct_compressor_ops hpct_powersgd;
extern const hpct_compressor_ops hpct_top_k;

/* HPCT_ERR_USAGE for a rank or share that cannot be. */
hpct_status hpct_compression_check(const hpct_compression *options);

/* For the built model's arena; *out is NULL where nothing is to be compressed. Collective. */
hpct_status hpct_compressor_open(hpct_compressor **out, hpct_context *context, hpct_model *model,
                                 const hpct_compression *options);
void hpct_compressor_close(hpct_compressor *compressor); /* NULL is allowed */

/* Bytes that open takes, at most, when the gradients are so many bytes. */
size_t hpct_compressor_need(const hpct_compression *options, int ranks, size_t gradients);

/* As reduce above, after the warm-up; until then plain sums. A device's gradients are compressed by
 * the host, which waits for them. */
hpct_status hpct_compressor_reduce(hpct_compressor *compressor, float *gradients, size_t tail);

/* Bytes that one rank has handed to collectives in a reduction, on average over those so far,
 * without the tail. */
double hpct_compressor_bytes(const hpct_compressor *compressor);

#endif
