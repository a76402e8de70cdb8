/* hpctrain/plan.h - how fast a model would train on so many nodes, before anybody has them: the
 * times of its operations, measured on one rank, a network, and the formulae of each strategy
 * (doc/performance-model.md). */
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

/* "50us,1gbit": a number with ns, us, ms or s, a comma, a number with kbit, mbit or gbit (a second,
 * by thousands), MB/s or GB/s. HPCT_ERR_USAGE says what is wrong; then nothing is changed. */
HPCT_API hpct_status hpct_plan_parse_network(const char *text, double *latency_seconds,
                                             double *bytes_per_second);

/* "1,2,4,...,1024", "1-8,16": numbers that rise, ranges, and "..." for doubling what is before it
 * up to what is behind. nodes[most]; HPCT_ERR_USAGE as above, also where there is no room. */
HPCT_API hpct_status hpct_plan_parse_nodes(const char *text, int *nodes, int most, int *count);

#define HPCT_PLAN_MOST_NODES 1000000

/* Zero means the default named. */
typedef struct hpct_plan_options {
    int batch_size;        /* samples per rank and step; default 32 */
    int global_batch_size; /* samples per step over all ranks; instead of batch_size */
    const int *nodes;      /* [num_nodes] how many, each 1 to HPCT_PLAN_MOST_NODES; one rank each */
    int num_nodes;         /* >= 1 */

    /* Of a message, and at which a rank sends while as much comes in. Both 0: they are measured
     * between the ranks of the context, of which there must be two or more then. */
    double latency_seconds, bytes_per_second;
    bool assume; /* where there is one rank: links of 1 and of 10 Gb/s, each with rows of its own */

    const char *compute;      /* a file with the times of operations; default: measured here */
    const char *compute_json; /* where the times go; default nowhere */
    bool allow_lossy;         /* what changes the result may be the best, too */
    int local_steps;          /* of local-sgd between two averages; default 8 */
    int powersgd_rank;        /* default 4 */
} hpct_plan_options;

/* One strategy on so many nodes. */
typedef struct hpct_plan_row {
    int nodes;
    const char *strategy; /* static storage; "hybrid (rows)" */
    bool exact;           /* the result is one rank's with the same global batch */
    bool best;            /* of those allowed */
    int global_batch;
    double step_seconds, compute_seconds, network_seconds; /* the last two make the first */
    double images_per_second, speed_up, efficiency;        /* against one node */
    double bytes_per_step;                                 /* that one rank hands to collectives */
    int network;                                           /* 0; 1: of the second that is assumed */
} hpct_plan_row;

/* The model must be compiled and initialized; its weights change, unless the times come from a
 * file. Rank 0 measures what it computes, on the threads it has, while the others wait, and has the
 * rows; those of the others are none. Collective. The caller frees *out.
 * HPCT_ERR_USAGE for numbers that cannot be, HPCT_ERR_CONFIG where a network of one rank is to be
 * measured; what reading and writing the files may give. */
HPCT_API hpct_status hpct_plan_make(hpct_plan **out, hpct_context *context, hpct_model *model,
                                    const hpct_plan_options *options);
HPCT_API void hpct_plan_free(hpct_plan *plan);

/* The rows of each number of nodes after one another, in the order of options->nodes, the best
 * first; strategies that cannot share this model among so many ranks are left out. Of two networks
 * that are assumed those of the first, then those of the second. */
HPCT_API const hpct_plan_row *hpct_plan_rows(const hpct_plan *plan, int *count);

/* Rank 0 alone: what it was made of, a line for the best of each number of nodes with all
 * strategies' times beside it, and how many nodes pay off. */
HPCT_API void hpct_plan_print(const hpct_plan *plan, FILE *stream);

/* Rank 0 alone: one JSON object: model, network, rows; for two networks that are assumed an array
 * of two such. HPCT_ERR_IO, naming the file. */
HPCT_API hpct_status hpct_plan_write(const hpct_plan *plan, const char *path);

#ifdef __cplusplus
}
#endif
#endif
