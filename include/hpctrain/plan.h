/* hpctrain/plan.h - prediction of training speed on a number of nodes, from operation times
 * measured on one rank, a network, and formulae for each strategy (doc/performance-model.md). */
#ifndef HPCTRAIN_PLAN_H
#define HPCTRAIN_PLAN_H

#include <hpctrain/context.h>
#include <hpctrain/model.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hpct_plan hpct_plan;

/* Parses "50us,1gbit": latency in ns, us, ms or s, and bandwidth in kbit, mbit, gbit (per second,
 * decimal), MB/s or GB/s. Returns HPCT_ERR_USAGE, with outputs unchanged, if malformed. */
HPCT_API hpct_status hpct_plan_parse_network(const char *text, double *latency_seconds,
                                             double *bytes_per_second);

/* Parses "1,2,4,...,1024", "1-8,16": increasing numbers, ranges, "..." for doubling. Writes at most
 * `most` numbers to nodes. Returns HPCT_ERR_USAGE if malformed or too many. */
HPCT_API hpct_status hpct_plan_parse_nodes(const char *text, int *nodes, int most, int *count);

#define HPCT_PLAN_MOST_NODES 1000000

typedef struct hpct_plan_options {
    int batch_size;        /* samples per rank and step; default 32 */
    int global_batch_size; /* samples per step over all ranks; instead of batch_size */
    const int *nodes;      /* [num_nodes], 1 to HPCT_PLAN_MOST_NODES, one rank per node */
    int num_nodes;         /* >= 1 */

    /* Latency of a message; bandwidth in each direction. Both 0: measured between the ranks of the
     * context, two or more. */
    double latency_seconds, bytes_per_second;
    bool assume; /* with one rank: rows for links of 1 Gb/s and of 10 Gb/s */

    const char *compute;      /* file with operation times; default: measured */
    const char *compute_json; /* file for the times; default: none */
    const char *json;         /* file for hpct_plan_write(), checked in advance; or NULL */
    bool allow_lossy;         /* lossy strategies may be the best */
    int local_steps;          /* local-sgd: steps between averages; default 8 */
    int powersgd_rank;        /* default 4 */
} hpct_plan_options;

/* One strategy on one number of nodes. */
typedef struct hpct_plan_row {
    int nodes;
    const char *strategy; /* static storage; "hybrid (rows)" */
    bool exact;           /* same results as one rank with the same global batch */
    bool best;            /* among the allowed ones */
    int global_batch;
    double step_seconds, compute_seconds, network_seconds; /* step = compute + network */
    double images_per_second, speed_up, efficiency;        /* relative to one node */
    double bytes_per_step;                                 /* passed to collectives by one rank */
    int network;                                           /* 0, or 1: the second assumed network */
} hpct_plan_row;

/* Measures and predicts. The model must be compiled and initialized; its weights change unless
 * times come from a file. Rank 0 measures computation while the others wait, and has the rows;
 * other ranks have none. Collective.
 *
 * Returns HPCT_ERR_USAGE for invalid options; HPCT_ERR_CONFIG if the network of one rank is to be
 * measured; errors of reading and writing the files. The caller owns *out and frees it with
 * hpct_plan_free(). */
HPCT_API hpct_status hpct_plan_make(hpct_plan **out, hpct_context *context, hpct_model *model,
                                    const hpct_plan_options *options);
HPCT_API void hpct_plan_free(hpct_plan *plan);

/* Rows in the order of options->nodes, best first for each; without strategies that cannot split
 * the model so. With two assumed networks, those of the first come first. Owned by the plan. */
HPCT_API const hpct_plan_row *hpct_plan_rows(const hpct_plan *plan, int *count);

/* Rank 0 only: prints inputs, one line per number of nodes with the times of all strategies, and
 * the number of nodes that pays off. */
HPCT_API void hpct_plan_print(const hpct_plan *plan, FILE *stream);

/* Rank 0 only: writes a JSON object with model, network and rows; for two assumed networks an array
 * of two. Returns HPCT_ERR_IO. */
HPCT_API hpct_status hpct_plan_write(const hpct_plan *plan, const char *path);

#ifdef __cplusplus
}
#endif
#endif
