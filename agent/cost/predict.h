/* agent/cost/predict.h - predicted step time on a number of ranks from operation times, network and
 * strategy. Derived in doc/performance-model.md, with sources. Measures and prints nothing. */
#ifndef HPCT_AGENT_COST_PREDICT_H
#define HPCT_AGENT_COST_PREDICT_H

#include "agent/comm/network.h"
#include "nn/run/parts.h"

/* Seconds of work on n samples: fixed + n * each. */
typedef struct hpct_work {
    double fixed, each;
} hpct_work;

typedef struct hpct_part_work {
    hpct_work forward, backward;
} hpct_part_work;

/* Times of a model on one rank. */
typedef struct hpct_cost_model {
    const hpct_part *parts; /* [num_parts] */
    int num_parts;
    const hpct_part_work *work; /* [num_parts], with stored gradients, as on several ranks */
    hpct_work loss;
    double update;               /* of all parameters */
    const hpct_part_work *fused; /* [num_parts], with fused updates */
    double fused_update;         /* of parameters not updated by backward */
    hpct_work alone;             /* the whole step of one rank, without stored gradients */
    double bytes_per_second;     /* copy rate, read and write counted */
    const hpct_model *model;     /* the compiled model; NULL: not available */
} hpct_cost_model;

/* Time of a collective over all ranks; 0 for one rank. bytes: allreduce, of the summed array;
 * allgather, contributed by each rank. */
double hpct_predict_allreduce(const hpct_comm_network *network, int ranks, double bytes);
double hpct_predict_allgather(const hpct_comm_network *network, int ranks, double bytes);

typedef enum hpct_scheme {
    HPCT_SCHEME_MIRRORED,       /* multi-worker-mirrored */
    HPCT_SCHEME_HYBRID_ROWS,    /* hybrid, the largest Dense by rows */
    HPCT_SCHEME_HYBRID_COLUMNS, /* or by columns */
    HPCT_SCHEME_HYBRID_BACK,    /* hybrid in the last layers; needs the model */
    HPCT_SCHEME_MIRRORED_BF16,  /* multi-worker-mirrored, bf16 on the wire */
    HPCT_SCHEME_POWERSGD,       /* multi-worker-mirrored, low-rank gradients */
    HPCT_SCHEME_LOCAL_SGD,
    HPCT_SCHEMES
} hpct_scheme;

#define HPCT_POWERSGD_RANK 4 /* default */

typedef struct hpct_scheme_options {
    const hpct_comm_network
        *sums;           /* network for collectives within a step; NULL: as for gradients */
    double bucket_bytes; /* of multi-worker-mirrored; 0: automatic */
    double float_bytes;  /* per gradient value, for hybrid; 0: 4 */
    int powersgd_rank;   /* >= 1 */
    int local_steps;     /* between two averages; >= 1 */
} hpct_scheme_options;

const char *hpct_scheme_name(hpct_scheme scheme); /* "hybrid (rows)" */
bool hpct_scheme_is_exact(hpct_scheme scheme);

typedef struct hpct_prediction {
    bool possible; /* false: the model cannot be split like this, or not among so many ranks */
    double step_seconds;
    double compute_seconds; /* part of step_seconds */
    double network_seconds; /* part of step_seconds, not overlapped with computation */
    double bytes;           /* passed to collectives by a rank in a step */
} hpct_prediction;

/* samples: per rank and step. */
hpct_prediction hpct_predict(hpct_scheme scheme, const hpct_cost_model *cost,
                             const hpct_comm_network *network, const hpct_scheme_options *options,
                             int ranks, double samples);

#endif
