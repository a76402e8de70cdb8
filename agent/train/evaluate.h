/* agent/train/evaluate.h - evaluation of a model that is already built. */
#ifndef HPCT_AGENT_TRAIN_EVALUATE_H
#define HPCT_AGENT_TRAIN_EVALUATE_H

#include "agent/results/tally.h"
#include "agent/strategy/strategy.h"

#include <hpctrain/train.h>

/* Batch sizes with which this rank evaluates its share in batches of `batch`: sizes[0..2), returns
 * their number (0 to 2). */
int hpct_train_evaluate_batch_sizes(hpct_context *context, const hpct_dataset *dataset, int batch,
                                    int sizes[2]);

/* Evaluates slice `slice` of `slices` of the data set, on a model built for its sizes, by the
 * strategy if it evaluates itself (NULL: none). `tally`, unless NULL, counts the outputs. Local. */
hpct_status hpct_train_evaluate_slice(hpct_model *model, hpct_strategy *strategy,
                                      const hpct_dataset *dataset, int slice, int slices, int batch,
                                      hpct_results_tally *tally, hpct_backend_batch_sums *sums);

/* For options->metrics and confusion_matrix: *tally, NULL if neither was asked for. HPCT_ERR_USAGE,
 * see hpct_results_tally_open. */
hpct_status hpct_train_evaluate_open_tally(hpct_results_tally **tally, const hpct_model *model,
                                           unsigned metrics, bool matrix);

/* hpct_evaluate on a model built for those sizes, by the strategy if it evaluates itself (NULL:
 * none); collective. `tally`, unless NULL: gets the counts of all ranks. */
hpct_status hpct_train_evaluate_built(hpct_context *context, hpct_model *model,
                                      hpct_strategy *strategy, const hpct_dataset *dataset,
                                      int batch, hpct_results_tally *tally, hpct_metrics *metrics);

#endif
