/* agent/train/targets.h - data with a row of targets per sample instead of a label: tells the
 * model, and refuses what needs classes. */
#ifndef HPCT_AGENT_TRAIN_TARGETS_H
#define HPCT_AGENT_TRAIN_TARGETS_H

#include <hpctrain/context.h>
#include <hpctrain/train.h>

/* Before a training run is prepared: sets the model's kind of targets, its names of classes or
 * outputs, and what it is trained with. HPCT_ERR_USAGE for options that are of classes,
 * HPCT_ERR_DATA for validation data with other columns, and for data with the names that the
 * model's weights have, in another order; labels of any data pass. */
hpct_status hpct_train_targets_begin(hpct_model *model, const hpct_dataset *train,
                                     const hpct_fit_options *options);

/* HPCT_ERR_USAGE: for parameter servers, which have labels. */
hpct_status hpct_train_targets_check_apart(const hpct_dataset *train);

/* Before an evaluation, likewise. */
hpct_status hpct_train_targets_evaluate(hpct_model *model, const hpct_dataset *dataset,
                                        const hpct_evaluate_options *options);

#endif
