/* agent/cost/compute.h - operation times of a model on one rank: measurement, JSON file, and linear
 * models for predictions. Local. */
#ifndef HPCT_AGENT_COST_COMPUTE_H
#define HPCT_AGENT_COST_COMPUTE_H

#include "agent/cost/predict.h"

#include <hpctrain/model.h>

/* Whether backward stores gradients, as with several ranks, or fuses updates where it can, as with
 * one. */
typedef enum hpct_cost_compute_way {
    HPCT_COST_STORED,
    HPCT_COST_FUSED,
    HPCT_COST_COMPUTE_WAYS
} hpct_cost_compute_way;

typedef struct hpct_cost_compute {
    char model[128];
    hpct_precision precision;
    int threads;
    int samples[2]; /* of a measured step: as requested, and half, or 0 */
    int num_parts;
    hpct_run_part *parts;                                     /* [num_parts], of the model */
    const hpct_model *whole;                                  /* the model */
    hpct_run_step_seconds seconds[2][HPCT_COST_COMPUTE_WAYS]; /* for samples[0] and samples[1] */
    double bytes_per_second;                                  /* copy rate of memory */
} hpct_cost_compute;

/* Effort of a measurement. */
typedef struct hpct_cost_compute_effort {
    int least_steps; /* of one median; at most HPCT_COST_COMPUTE_STEPS */
    double seconds;  /* per median, unless least_steps takes longer */
    bool rates;      /* measure bytes_per_second, else it is infinite */
} hpct_cost_compute_effort;

#define HPCT_COST_COMPUTE_STEPS 40
extern const hpct_cost_compute_effort
    hpct_cost_compute_careful; /* for a plan: at least 8 s in total */

/* Builds the model for training up to four times and times some steps of each build; the model
 * stays built as in the last one. It must be compiled and initialized; its weights change, and it
 * must outlive *compute. */
hpct_status hpct_cost_compute_measure(hpct_cost_compute *compute, hpct_model *model, int samples,
                                      const hpct_cost_compute_effort *effort);

/* Write and read. Reading returns HPCT_ERR_NO_INPUT, HPCT_ERR_DATA (naming file and error), or
 * HPCT_ERR_USAGE for another model or precision. */
hpct_status hpct_cost_compute_write(const hpct_cost_compute *compute, const char *path);
hpct_status hpct_cost_compute_read(hpct_cost_compute *compute, const hpct_model *model,
                                   const char *path);

void hpct_cost_compute_free(hpct_cost_compute *compute);

/* Seconds for n samples; exact at the measured sizes. out->parts[num_parts] is allocated by the
 * caller. */
void hpct_cost_compute_at(const hpct_cost_compute *compute, hpct_cost_compute_way way, int n,
                          hpct_run_step_seconds *out);

/* Step time of one rank alone, at samples[which]. */
double hpct_cost_compute_alone(const hpct_cost_compute *compute, int which);

/* work[2 * num_parts], allocated by the caller, is referenced by cost->work and cost->fused. */
void hpct_cost_compute_cost(const hpct_cost_compute *compute, hpct_cost_part_work *work,
                            hpct_cost_model *cost);

#endif
