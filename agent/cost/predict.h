/* agent/cost/predict.h - predicted step time on a number of ranks from operation times, network and
 * strategy. Derived in doc/performance-model.md, with sources. Measures and prints nothing. */
#ifndef HPCT_AGENT_COST_PREDICT_H
#define HPCT_AGENT_COST_PREDICT_H

#include "agent/comm/network.h"
#include "nn/run/parts.h"

/* Seconds of work on n samples: fixed + n * each. */
typedef struct hpct_cost_work {
    double fixed, each;
} hpct_cost_work;

typedef struct hpct_cost_part_work {
    hpct_cost_work forward, backward;
} hpct_cost_part_work;

/* Times of a model on one rank. */
typedef struct hpct_cost_model {
    const hpct_run_part *parts; /* [num_parts] */
    int num_parts;
    const hpct_cost_part_work *work; /* [num_parts], with stored gradients, as on several ranks */
    hpct_cost_work loss;
    double update;                    /* of all parameters */
    const hpct_cost_part_work *fused; /* [num_parts], with fused updates */
    double fused_update;              /* of parameters not updated by backward */
    hpct_cost_work alone;             /* the whole step of one rank, without stored gradients */
    double bytes_per_second;          /* copy rate, read and write counted */
    const hpct_model *model;          /* the compiled model; NULL: not available */
} hpct_cost_model;

/* Time of a collective over all ranks; 0 for one rank. bytes: allreduce, of the summed array;
 * allgather, contributed by each rank. */
double hpct_cost_predict_allreduce(const hpct_comm_network *network, int ranks, double bytes);
double hpct_cost_predict_allgather(const hpct_comm_network *network, int ranks, double bytes);

typedef enum hpct_cost_scheme {
    HPCT_COST_SCHEME_MIRRORED,       /* multi-worker-mirrored */
    HPCT_COST_SCHEME_HYBRID_ROWS,    /* hybrid, the largest Dense by rows */
    HPCT_COST_SCHEME_HYBRID_COLUMNS, /* or by columns */
    HPCT_COST_SCHEME_HYBRID_BACK,    /* hybrid in the last layers; needs the model */
    HPCT_COST_SCHEME_MIRRORED_BF16,  /* multi-worker-mirrored, bf16 on the wire */
    HPCT_COST_SCHEME_POWERSGD,       /* multi-worker-mirrored, low-rank gradients */
    HPCT_COST_SCHEME_LOCAL_SGD,
    HPCT_COST_SCHEMES
} hpct_cost_scheme;

#define HPCT_COST_POWERSGD_RANK 4 /* default */

typedef struct hpct_cost_scheme_options {
    const hpct_comm_network
        *sums;           /* network for collectives within a step; NULL: as for gradients */
    double bucket_bytes; /* of multi-worker-mirrored; 0: automatic */
    double float_bytes;  /* per gradient value, for hybrid; 0: 4 */
    int powersgd_rank;   /* >= 1 */
    int local_steps;     /* between two averages; >= 1 */
} hpct_cost_scheme_options;

const char *hpct_cost_scheme_name(hpct_cost_scheme scheme); /* "hybrid (rows)" */
bool hpct_cost_scheme_is_exact(hpct_cost_scheme scheme);

typedef struct hpct_cost_prediction {
    bool possible; /* false: the model cannot be split like this, or not among so many ranks */
    double step_seconds;
    double compute_seconds; /* part of step_seconds */
    double network_seconds; /* part of step_seconds, not overlapped with computation */
    double bytes;           /* passed to collectives by a rank in a step */
} hpct_cost_prediction;

/* samples: per rank and step. */
hpct_cost_prediction hpct_cost_predict(hpct_cost_scheme scheme, const hpct_cost_model *cost,
                                       const hpct_comm_network *network,
                                       const hpct_cost_scheme_options *options, int ranks,
                                       double samples);

#endif
