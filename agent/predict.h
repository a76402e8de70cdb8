/* agent/predict.h - the time of a training step on so many ranks, by formulae alone: the times of
 * its operations, a network, and how each strategy puts them together. doc/performance-model.md
 * derives them and names the sources. Measures nothing, prints nothing. */
#ifndef HPCT_AGENT_PREDICT_H
#define HPCT_AGENT_PREDICT_H

#include "agent/comm/network.h"
#include "nn/parts.h"

/* Seconds of work on n samples: fixed + n * each. */
typedef struct hpct_work {
    double fixed, each;
} hpct_work;

typedef struct hpct_part_work {
    hpct_work forward, backward;
} hpct_part_work;

/* What a model costs on one rank. */
typedef struct hpct_cost_model {
    const hpct_part *parts; /* [num_parts] */
    int num_parts;
    const hpct_part_work *work; /* [num_parts], gradients stored, as it is with several ranks */
    hpct_work loss;
    double update;               /* of all parameters */
    const hpct_part_work *fused; /* [num_parts], backward updating parameters where it can */
    double fused_update;         /* of what is left */
    hpct_work alone;             /* the whole step of one rank, which needs to store no gradient */
    double bytes_per_second;     /* at which memory is copied: read and write counted */
    const hpct_model *model;     /* whose parts these are, compiled; NULL: it is not at hand */
} hpct_cost_model;

/* Of one collective of all ranks. 0 for one rank. bytes: of the array that is added up; that each
 * rank brings. */
double hpct_predict_allreduce(const hpct_network *network, int ranks, double bytes);
double hpct_predict_allgather(const hpct_network *network, int ranks, double bytes);

typedef enum hpct_scheme {
    HPCT_SCHEME_MIRRORED,       /* multi-worker-mirrored */
    HPCT_SCHEME_HYBRID_ROWS,    /* hybrid, the large Dense by rows */
    HPCT_SCHEME_HYBRID_COLUMNS, /* or by columns */
    HPCT_SCHEME_HYBRID_BACK,    /* hybrid in the last layers; needs the model */
    HPCT_SCHEME_MIRRORED_BF16,  /* multi-worker-mirrored, bf16 on the wire */
    HPCT_SCHEME_POWERSGD,       /* multi-worker-mirrored, gradients of low rank */
    HPCT_SCHEME_LOCAL_SGD,
    HPCT_SCHEMES
} hpct_scheme;

#define HPCT_POWERSGD_RANK 4 /* where nobody says another */

typedef struct hpct_scheme_options {
    const hpct_network *sums; /* for what hybrid waits for; NULL: as for gradients */
    double bucket_bytes;      /* of multi-worker-mirrored; 0: as it chooses itself */
    double float_bytes;       /* of a gradient's float on hybrid's wire; 0: 4 */
    int powersgd_rank;        /* >= 1 */
    int local_steps;          /* between two averages; >= 1 */
} hpct_scheme_options;

const char *hpct_scheme_name(hpct_scheme scheme); /* "hybrid (rows)" */
bool hpct_scheme_is_exact(hpct_scheme scheme);

typedef struct hpct_prediction {
    bool possible; /* false: nothing in the model can be shared so, or not by so many ranks */
    double step_seconds;
    double compute_seconds; /* of it */
    double network_seconds; /* of it: what no computation hides */
    double bytes;           /* that a rank hands to collectives in a step */
} hpct_prediction;

/* samples: of one rank in a step. */
hpct_prediction hpct_predict(hpct_scheme scheme, const hpct_cost_model *cost,
                             const hpct_network *network, const hpct_scheme_options *options,
                             int ranks, double samples);

#endif
