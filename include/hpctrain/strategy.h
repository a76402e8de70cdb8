/* hpctrain/strategy.h - how the ranks share a step. */
#ifndef HPCTRAIN_STRATEGY_H
#define HPCTRAIN_STRATEGY_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Type in which gradients are sent between ranks; sums are computed in fp32. bf16 and fp16 halve
 * the bytes and round each value twice (before and after the sum), to 8 or 11 significant bits.
 * fp16 messages have a scale that maps their largest value to 2^15; values below 2^-39 of it become
 * 0. */
typedef enum hpct_wire { HPCT_WIRE_FP32, HPCT_WIRE_BF16, HPCT_WIRE_FP16 } hpct_wire;

#define HPCT_MAX_REPLICAS 256

/* Lossy compression of gradients, with error feedback: what a rank does not send is added to its
 * next gradient. Vectors are not compressed. */
typedef enum hpct_compression_kind {
    HPCT_COMPRESS_NONE,
    HPCT_COMPRESS_POWERSGD, /* rank-`rank` approximation of each matrix: Vogels, Karimireddy and
                               Jaggi, PowerSGD, 2019 */
    HPCT_COMPRESS_TOP_K /* the `share` of largest magnitude of each matrix, with indices: Aji and
                           Heafield, Sparse communication for distributed gradient descent, 2017 */
} hpct_compression_kind;

#define HPCT_POWERSGD_MAX_RANK 256
#define HPCT_COMPRESS_WARMUP_STEPS 100

typedef struct hpct_compression {
    hpct_compression_kind kind;
    int rank;     /* 1 to HPCT_POWERSGD_MAX_RANK */
    double share; /* more than 0, at most 1 */
    /* Uncompressed updates first; 0: HPCT_COMPRESS_WARMUP_STEPS, negative: none. */
    int warmup_steps;
} hpct_compression;

#define HPCT_LOCAL_STEPS 8
#define HPCT_LOCAL_WARMUP_STEPS 100

/* The same on all ranks. doc/strategies.md describes the algorithms. "Exact": results of one rank
 * on the same global batch, to fp32 rounding. */
typedef struct hpct_strategy_options {
    /* "auto" (default): times exact strategies (with allow_lossy also others) for a few steps
     * before training and uses the fastest; the choice, and the last bits of results, may differ
     * between runs. "mirrored" with replicas above 1; "pipeline" if a rank's memory cannot hold the
     * model and it has no BatchNormalization. "multi-worker-mirrored": data parallelism; gradients
     * are summed over the ranks. Exact. "mirrored": the same with several replicas per rank, each
     * with its own weights. Exact. "central-storage": one rank, several replicas, one set of
     * weights and optimizer slots. Exact. "local-sgd": ranks train independently; weights are
     * averaged every local_steps steps and at the end of each epoch, when losses, signals and
     * failures are reduced. Needs allow_lossy. "hybrid": tensor parallelism for large Dense or for
     * the last layers; every rank reads the global batch. Exact; BatchNormalization as with
     * "multi-worker-mirrored". "pipeline": pipeline stages on different ranks, micro-batches
     * one-forward-one-backward; every rank reads the global batch and holds gradients, slots and
     * activations of its stage. Exact, but BatchNormalization uses the statistics of a micro-batch,
     * as with gradient accumulation. "parameter-server": ranks of the role ps own the variables,
     * workers pull them and push gradients (doc/parameter-server.md). For hpct_fit() with
     * hpct_context_open_apart(); asynchronous unless ps_synchronous; does not need allow_lossy. */
    const char *name;
    /* Replicas per rank, with "mirrored" and "central-storage"; default 1. Threads with their own
     * cores, samples, activations and gradients; batch sizes remain per rank. On GPUs one each: the
     * program must set CUDA_MODULE_LOADING=EAGER before its first call, as hpc-train does, since
     * lazy loading of a kernel may wait for another replica. */
    int replicas;
    /* "pipeline". Stages: default the number of ranks, or its largest divisor the model has
     * operations for; consecutive groups of `stages` ranks are replicas. Micro-batches per replica:
     * default 4 (stages - 1) or slightly more to divide the batch, of at least 4 samples. */
    int stages, micro_batches;
    /* "hybrid": "rows" or "columns" of a Dense kernel, "back" (the last layers by output channels),
     * or "auto" (default): fastest predicted at 1 Gb/s. */
    const char *hybrid_form;
    /* Permit options that change results beyond the order of sums; otherwise HPCT_ERR_USAGE. */
    bool allow_lossy;
    hpct_wire wire; /* bf16 and fp16 need allow_lossy */
    /* Smallest number of bytes reduced at once; default: from the network, measured at start. Does
     * not change results in fp32. */
    size_t bucket_bytes;
    int local_steps; /* local-sgd: steps between averages; default HPCT_LOCAL_STEPS */
    /* Steps averaged each at first; 0: HPCT_LOCAL_WARMUP_STEPS, negative: none. */
    int local_warmup_steps;
    hpct_compression compression; /* multi-worker-mirrored; needs allow_lossy */

    /* parameter-server: one update per global batch, exact. Default: one update per gradient. */
    bool ps_synchronous;
    int ps_backup_workers; /* synchronous: divide the global batch among this many workers fewer;
                              idle workers recompute what is late */
    bool ps_bounded;       /* asynchronous: no gradient is older than ps_max_staleness updates; */
    int64_t ps_max_staleness; /* faster workers wait */
} hpct_strategy_options;

/* Checks options independently of model, data and ranks. Returns HPCT_ERR_USAGE if invalid, as
 * hpct_fit() and hpct_bench() do. */
HPCT_API hpct_status hpct_strategy_check(const hpct_strategy_options *options);

#ifdef __cplusplus
}
#endif
#endif
