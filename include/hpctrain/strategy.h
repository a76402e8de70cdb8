/* hpctrain/strategy.h - how the ranks share the work of a step. */
#ifndef HPCTRAIN_STRATEGY_H
#define HPCTRAIN_STRATEGY_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How gradients travel between the ranks; they are added up in fp32 whatever travels. bf16 and fp16
 * halve the bytes and round each number twice, on its way to the rank that adds up and on the way
 * back: to 8 significant bits (bf16), or to 11 (fp16, with a factor for each message that brings
 * its largest number to 2^15, so that nothing overflows; what is below 2^-39 of that is lost). */
typedef enum hpct_wire { HPCT_WIRE_FP32, HPCT_WIRE_BF16, HPCT_WIRE_FP16 } hpct_wire;

#define HPCT_MAX_REPLICAS 256

/* How the gradients of data parallelism are compressed. Both are lossy; what a rank does not send
 * it adds to its next gradient (error feedback). */
typedef enum hpct_compression_kind {
    HPCT_COMPRESS_NONE,
    HPCT_COMPRESS_POWERSGD, /* each matrix as a product of two of `rank` columns and rows: Vogels,
                               Karimireddy and Jaggi, PowerSGD, 2019; vectors as they are */
    HPCT_COMPRESS_TOP_K     /* of each matrix the `share` of largest magnitude, with its places: Aji
                               and Heafield, Sparse communication for distributed gradient descent,
                               2017; vectors as they are */
} hpct_compression_kind;

#define HPCT_POWERSGD_MAX_RANK 256
#define HPCT_COMPRESS_WARMUP_STEPS 100

typedef struct hpct_compression {
    hpct_compression_kind kind;
    int rank;     /* 1 to HPCT_POWERSGD_MAX_RANK */
    double share; /* more than 0, at most 1 */
    /* Updates before it begins; 0: HPCT_COMPRESS_WARMUP_STEPS, negative: none. */
    int warmup_steps;
} hpct_compression;

#define HPCT_LOCAL_STEPS 8
#define HPCT_LOCAL_WARMUP_STEPS 100

/* Zero means the default named; all ranks give the same. */
typedef struct hpct_strategy_options {
    /* "auto" (the default): the fastest of those that change nothing but the order of sums, and
     * with allow_lossy of others too, found by a few steps of each in turn before training, on
     * made-up pictures (on GPUs each once, and none but multi-worker-mirrored where a step of that
     * takes at most 5 % longer than one rank's alone); of those within 2 % of it the simplest;
     * which it is may differ between runs, and so may the last bits of their results. With replicas above 1: "mirrored". Where the
     * memory has no room for the whole model on each rank: "pipeline", for a model without
     * BatchNormalization.
     * Or one by name:
     * "multi-worker-mirrored": every rank has the whole model and a slice of each global batch; the
     * gradients are summed over the ranks.
     * "mirrored": so has every replica, of which each rank has several; gradients are summed over
     * the replicas, then over the ranks, and every replica updates weights of its own.
     * "central-storage": one rank alone; weights and the optimizer's slots are there once, which
     * all replicas read and one update changes.
     * "local-sgd": so has every rank, and trains it by itself on its slices; the weights are
     * averaged from time to time (Lin, Stich, Patel and Jaggi, Don't use large mini-batches, use
     * local SGD, 2020), and at the end of each epoch. Losses are known then, and signals and
     * failures take effect. With allow_lossy alone.
     * "hybrid": every rank reads the whole global batch and computes a part of the large Dense
     * layers and of what feeds them, so that their gradients need not travel; or of the last
     * layers, behind others that are data parallel. Exact; BatchNormalization that is not
     * synchronized is over each rank's slice of the batch, as with "multi-worker-mirrored".
     * "pipeline": the operations are cut into stages of about the same time, one a rank, where few
     * bytes cross, and the batch into micro-batches, which follow one another through the stages
     * (one-forward-one-backward: Narayanan et al., 2021, after PipeDream, 2019; one update with the
     * gradients of all). Exact. A rank has the gradients, optimizer slots and activations of its
     * stage alone, and reads the whole global batch; the whole model's weights come to it at the
     * end and to be evaluated. BatchNormalization takes its statistics from a micro-batch (GPipe):
     * the results are those of one rank that accumulates the gradients of as many batches.
     * "parameter-server": ranks of the role ps own the variables, which those of the role worker
     * pull, and push gradients to; workers may come and go. For fit alone, in a context of
     * hpct_context_open_apart; asynchronous unless ps_synchronous, which allow_lossy need not
     * allow. See doc/parameter-server.md. */
    const char *name;
    /* Replicas in each rank: threads that compute side by side, each with its part of the rank's
     * cores and of its samples. Default 1; above 1 with "mirrored" and "central-storage". Batch
     * sizes stay those of a rank, results those of one replica. Each has activations and gradients
     * of its own. On GPUs each has one, with copies of the weights there; such a program sets
     * CUDA_MODULE_LOADING=EAGER before its first call, as hpc-train does: a kernel that CUDA loads
     * when it is called first may wait for other replicas', which wait for it. */
    int replicas;
    /* Of "pipeline". Stages: default, the ranks, or their largest divisor that the model has
     * operations for; the ranks are a multiple of them, and each multiple is a replica with its
     * share of the global batch. Micro-batches of each replica: default, as few as leave a stage
     * waiting for a fifth of the step, 4 (stages - 1) or a little more to divide the batch, but
     * none of fewer than 4 samples. */
    int stages, micro_batches;
    /* How "hybrid" splits: a Dense by "rows" (the layers before it by channels) or "columns" (the
     * layers before it are computed by all ranks, fewer bytes travel); "back": the last layers by
     * output channels, those before them by samples; "auto" (the default): what is predicted to be
     * faster at 1 Gb/s. */
    const char *hybrid_form;
    /* What changes the results beyond the order of sums is refused (HPCT_ERR_USAGE) without this.
     */
    bool allow_lossy;
    hpct_wire wire; /* other than fp32: with allow_lossy alone */
    /* Bytes of gradients in one reduction, at least; default: from the network, which is measured
     * at the start. Makes no difference to the results in fp32. */
    size_t bucket_bytes;
    int local_steps; /* of local-sgd between averages; default HPCT_LOCAL_STEPS */
    /* Steps before, each with an average; 0: HPCT_LOCAL_WARMUP_STEPS, negative: none. */
    int local_warmup_steps;
    hpct_compression compression; /* of multi-worker-mirrored; with allow_lossy alone */

    /* parameter-server: each update is made from the gradients of one global batch, and the result
     * is that of one rank. Default: every gradient is an update of its own. */
    bool ps_synchronous;
    int ps_backup_workers; /* synchronous: a global batch is shared by so many workers fewer, and
                              who is idle computes again what the slowest have in work */
    bool ps_bounded;       /* asynchronous: no gradient is older than ps_max_staleness updates: */
    int64_t ps_max_staleness; /* who is too fast waits */
} hpct_strategy_options;

/* HPCT_ERR_USAGE for options that cannot be, whatever the model, the data and the ranks: so that
 * they are refused before any of these is at hand. hpct_fit and hpct_bench refuse them, too. */
HPCT_API hpct_status hpct_strategy_check(const hpct_strategy_options *options);

#ifdef __cplusplus
}
#endif
#endif
