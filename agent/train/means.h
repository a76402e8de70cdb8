/* agent/train/means.h - metrics of samples from their sums. */
#ifndef HPCT_AGENT_TRAIN_MEANS_H
#define HPCT_AGENT_TRAIN_MEANS_H

#include "agent/results/metric.h"

#include <hpctrain/model.h>
#include <hpctrain/train.h>
#include <stdint.h>

/* loss, correct, in_top_k: as in hpct_backend_batch_sums, of the model's kind of targets. Of an
 * evaluation's other metrics nothing is set. */
hpct_metrics hpct_train_metrics_of(const hpct_model *model, double loss, double correct,
                                   double in_top_k, int64_t samples);

/* The metrics of a run of this model, whose kind of targets is set. */
hpct_results_metric_choice hpct_train_metrics_chosen(const hpct_fit_options *options,
                                                     const hpct_model *model);

#endif
