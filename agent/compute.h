/* agent/compute.h - how long a model's operations take on one rank here: measured, kept in a file
 * of JSON, and as the straight lines that predictions are made of. Knows no other ranks. */
#ifndef HPCT_AGENT_COMPUTE_H
#define HPCT_AGENT_COMPUTE_H

#include "agent/predict.h"

#include <hpctrain/model.h>

/* Whether backward stores gradients, as it does between ranks, or updates parameters itself where
 * it can, as one rank alone does. */
typedef enum hpct_compute_way { HPCT_STORED, HPCT_FUSED, HPCT_COMPUTE_WAYS } hpct_compute_way;

typedef struct hpct_compute {
    char model[128];
    hpct_precision precision;
    int threads;
    int samples[2]; /* of a step that was measured: as many as asked for, and half of them, or 0 */
    int num_parts;
    hpct_part *parts;                                /* [num_parts], of the model */
    const hpct_model *whole;                         /* the model */
    hpct_step_seconds seconds[2][HPCT_COMPUTE_WAYS]; /* at samples[0] and samples[1] */
    double bytes_per_second;                         /* of copying memory */
} hpct_compute;

/* How much is spent on a measurement. */
typedef struct hpct_compute_effort {
    int least_steps; /* of one median, and no more than HPCT_COMPUTE_STEPS */
    double seconds;  /* for one median, unless the least steps take longer */
    bool rates;      /* bytes_per_second too, else it is infinite */
} hpct_compute_effort;

#define HPCT_COMPUTE_STEPS 40
extern const hpct_compute_effort hpct_compute_careful; /* for a plan: at least 8 s altogether */

/* Builds the model four times, one after the other, and takes some steps each; ends with the model
 * built for inference. The model must be compiled and initialized; its weights change, and it must
 * outlive *compute. */
hpct_status hpct_compute_measure(hpct_compute *compute, hpct_model *model, int samples,
                                 const hpct_compute_effort *effort);

/* Writes and reads them. Reading fails with HPCT_ERR_MISSING, HPCT_ERR_DATA (naming the file and
 * what is wrong) or, when they are another model's or in another precision, HPCT_ERR_USAGE. */
hpct_status hpct_compute_write(const hpct_compute *compute, const char *path);
hpct_status hpct_compute_read(hpct_compute *compute, const hpct_model *model, const char *path);

void hpct_compute_free(hpct_compute *compute);

/* Seconds of n samples; exact at those measured. out->parts[num_parts]: the caller's. */
void hpct_compute_at(const hpct_compute *compute, hpct_compute_way way, int n,
                     hpct_step_seconds *out);

/* The whole step of one rank alone, at samples[which]. */
double hpct_compute_alone(const hpct_compute *compute, int which);

/* work[2 * num_parts], of the caller, is what cost->work and cost->fused point into. */
void hpct_compute_cost(const hpct_compute *compute, hpct_part_work *work, hpct_cost_model *cost);

#endif
