/* agent/strategy/gradients/compress.h - lossy compression of data-parallel gradients: one table,
 * one file per way (powersgd.c, top_k.c). With error feedback: what a rank does not send is its
 * residual, added to its next gradient, so that for every parameter
 *   sum of applied gradients + sum of residuals = sum of all ranks' gradients
 * (Seide et al., 1-bit stochastic gradient descent, 2014; Karimireddy et al., Error feedback fixes
 * SignSGD and other gradient compression schemes, 2019). The first steps are uncompressed. Uses
 * arenas and communicators; independent of layers. */
#ifndef HPCT_AGENT_STRATEGY_GRADIENTS_COMPRESS_H
#define HPCT_AGENT_STRATEGY_GRADIENTS_COMPRESS_H

#include "agent/rank/context.h"
#include "nn/run/step.h"

#include <hpctrain/strategy.h>

/* Piggybacked floats behind the gradients, never compressed. */
#define HPCT_GRAD_COMPRESS_PIGGYBACK HPCT_RUN_ARENA_PIGGYBACK

typedef struct hpct_grad_compressor hpct_grad_compressor;

typedef struct hpct_grad_compressor_plan {
    hpct_comm *comm;
    const hpct_run_arena_matrix *matrices; /* all parameters, by offset */
    int num_matrices;
    size_t count; /* floats of the arena */
    const hpct_compression *options;
} hpct_grad_compressor_plan;

typedef struct hpct_grad_compressor_ops {
    const char *name; /* name of the option's value */

    /* Allocates everything that reduce needs. */
    hpct_status (*open)(hpct_grad_compressor **out, const hpct_grad_compressor_plan *plan);

    /* gradients[count + tail]: all ranks' (weighted) gradients become an approximation of their
     * sum, the tail its exact sum; same bits on all ranks. Collective; allocates nothing. */
    hpct_status (*reduce)(hpct_grad_compressor *compressor, float *gradients, size_t piggyback);

    /* Bytes one rank passes to collectives in reduce, without the tail. */
    size_t (*bytes)(const hpct_grad_compressor *compressor);

    /* Factors kept for the next step, [*count], equal on all ranks. NULL: none. */
    float *(*factors)(const hpct_grad_compressor *compressor, size_t *count);

    void (*close)(hpct_grad_compressor *compressor);
} hpct_grad_compressor_ops;

/* First member of every compressor's struct. */
struct hpct_grad_compressor {
    const hpct_grad_compressor_ops *ops;
    hpct_comm *comm;
    size_t count;
    float *residue;    /* [count], of this rank; zeros for uncompressed parameters */
    uint32_t *padding; /* hpct_model_mark_padding; NULL: there is none */
    const hpct_model *model;
    float *host; /* [count + HPCT_GRAD_COMPRESS_PIGGYBACK], copy of device gradients; else NULL */
    int64_t warmup, reduced; /* number of uncompressed reductions; of all so far */
};

extern const hpct_grad_compressor_ops hpct_grad_powersgd;
extern const hpct_grad_compressor_ops hpct_grad_top_k;

/* HPCT_ERR_USAGE for an invalid rank or share. */
hpct_status hpct_grad_compression_check(const hpct_compression *options);

/* For the built model's arena; *out is NULL if nothing is compressed. Collective. */
hpct_status hpct_grad_compressor_open(hpct_grad_compressor **out, hpct_context *context,
                                      hpct_model *model, const hpct_compression *options);
void hpct_grad_compressor_close(hpct_grad_compressor *compressor); /* NULL is allowed */

/* Maximal number of bytes allocated by open, for that many bytes of gradients. */
size_t hpct_grad_compressor_need(const hpct_compression *options, int ranks, size_t gradients);

/* Like hpct_grad_compressor_ops.reduce after the warm-up; until then uncompressed sums. Gradients
 * of a device are compressed on the host, synchronously. */
hpct_status hpct_grad_compressor_reduce(hpct_grad_compressor *compressor, float *gradients,
                                        size_t piggyback);

/* This rank's residual of a parameter, in Keras' layout; HPCT_ERR_CONFIG on a device, whose layout
 * the host cannot read. */
hpct_status hpct_grad_compressor_get_residue(const hpct_grad_compressor *compressor, int param,
                                             float *floats);
hpct_status hpct_grad_compressor_put_residue(const hpct_grad_compressor *compressor, int param,
                                             const float *floats);

/* Mean bytes per reduction that one rank passed to collectives so far, without the tail. */
double hpct_grad_compressor_bytes(const hpct_grad_compressor *compressor);

#endif
