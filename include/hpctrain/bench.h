/* hpctrain/bench.h - timing of training steps. */
#ifndef HPCTRAIN_BENCH_H
#define HPCTRAIN_BENCH_H

#include <hpctrain/context.h>
#include <hpctrain/model.h>
#include <hpctrain/strategy.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hpct_bench_options {
    int batch_size;                 /* samples per rank and step; default 32 */
    int global_batch_size;          /* samples per step over all ranks; instead of batch_size */
    int steps;                      /* measured, after five warm-up steps; default 100 */
    hpct_strategy_options strategy; /* how the ranks share a step */
    bool profile;                   /* rank 0 prints a table of layers; see below */
    const char *summary_json;       /* file, as of hpct_fit(); default: none */
    const char *timeline;           /* file, as of hpct_fit(); default: none */
    /* Not NULL: emulated computation. Operations sleep for their measured time; messages are sent.
     * "": times are measured first, one rank at a time; else read from this file
     * (hpct_plan_options.compute_json), in proportion for shards. Loss is undefined, null in the
     * summary, which has "emulated": true. Not with `profile`; with several ranks name a strategy.
     */
    const char *emulate;
    /* With `emulate`: factor of the sleeping time; default 1. N ranks on M processors with dilation
     * N/M and links N/M times as slow behave as ranks with a processor each (time dilation: Gupta
     * et al., NSDI 2006). Latencies of the machine are not dilated; results are wall time, not
     * divided. */
    double dilation;
} hpct_bench_options;

typedef struct hpct_bench_result {
    /* Rank 0's median; local-sgd: of whole rounds with their averages; GPU: mean of all steps. */
    double step_seconds;
    double images_per_second; /* global batch / step_seconds */
    /* Rank 0, in MiB: planned growth of the process or planned GPU memory; decrease of free GPU
     * memory from before the build to after the steps (NAN on CPUs). */
    double predicted_mb, device_used_mb;
} hpct_bench_result;

/* Trains a compiled, initialized model on synthetic data in memory and times the steps: forward,
 * backward, reduction, update. Changes the weights. Collective.
 *
 * `profile` prints a row per layer, loss, update, and the rest (between ranks: reduction and
 * waiting): means over the half of the steps nearest to the median. The floor below is the step's
 * FLOPs at the rate of a large matrix product or its bytes at the rate of copying, whichever takes
 * longer, both measured at the end; layers that fit into caches can be faster. */
HPCT_API hpct_status hpct_bench(hpct_context *context, hpct_model *model,
                                const hpct_bench_options *options, hpct_bench_result *result);

#ifdef __cplusplus
}
#endif
#endif
