/* hpctrain/bench.h - how fast a model trains here, and where the time goes. */
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

/* Zero means the default named. */
typedef struct hpct_bench_options {
    int batch_size;                 /* samples per rank and step; default 32 */
    int global_batch_size;          /* samples per step over all ranks; instead of batch_size */
    int steps;                      /* measured; default 100. Five more go before them. */
    hpct_strategy_options strategy; /* how the ranks share the work */
    bool profile;                   /* rank 0 prints a table by layers */
    const char *summary_json;       /* as hpct_fit writes it; default nowhere */
    const char *timeline;           /* as in hpct_fit_options */
    /* Not NULL: a rank sleeps for as long as each of its operations takes, instead of computing;
     * what ranks send one another is sent. Not with `profile`; several ranks need a
     * strategy by name. "": the times are measured first, by
     * the ranks in turn; else they come from this file, which hpct_plan writes (compute_json), of
     * a part of the model in proportion.
     * Losses then mean nothing, and are null in the summary, which says "emulated": true. */
    const char *emulate;
    /* With `emulate`: a rank sleeps so many times as long; default 1. Where N ranks share M
     * processors, messages over links N/M times as slow, beside computation that takes N/M times as
     * long, meet processors as busy as ranks would with one each: time dilation (Gupta and others,
     * NSDI 2006). Latencies of the machine itself are not dilated. Times and rates are those of the
     * clock, not divided by it. */
    double dilation;
} hpct_bench_options;

typedef struct hpct_bench_result {
    /* Median, of rank 0; with local-sgd of whole rounds, averages included. On a GPU, which works
     * behind the host's back, the mean of all steps. */
    double step_seconds;
    double images_per_second; /* global batch over step_seconds */
    /* MiB of rank 0: what its process was planned to grow by, or on a GPU what it was planned to
     * take there; and by how much less the GPU has left after the steps than before the model was
     * built (NAN on processors). */
    double predicted_mb, device_used_mb;
} hpct_bench_result;

/* Trains a compiled, initialized model on made-up pictures that lie in memory already, so that the
 * steps alone are measured: forward, backward, reduction, update. Collective; changes the weights.
 *
 * The table of `profile` has a row for each layer, and for loss, update and the rest (between ranks
 * the reduction, and waiting). Its times are means over the half of the steps that is nearest to
 * the median, so that its sum is those steps' time. Beneath, the floor: the step's FLOPs at the
 * rate of a large matrix product and its bytes, each read and written once by each operation, at
 * the rate of copying, both measured then; whichever takes longer. A layer that works within the
 * caches may be faster than the floor of bytes says. */
HPCT_API hpct_status hpct_bench(hpct_context *context, hpct_model *model,
                                const hpct_bench_options *options, hpct_bench_result *result);

#ifdef __cplusplus
}
#endif
#endif
