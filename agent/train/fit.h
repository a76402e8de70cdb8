/* agent/train/fit.h - fit whose ranks step together, and checks of the options of any. */
#ifndef HPCT_AGENT_TRAIN_FIT_H
#define HPCT_AGENT_TRAIN_FIT_H

#include <hpctrain/train.h>

/* As hpct_fit, ended after max_steps steps; the last epoch may be shorter. The model's targets are
 * set. */
hpct_status hpct_fit_together(hpct_context *context, hpct_model *model, const hpct_dataset *train,
                              const hpct_fit_options *options, int64_t max_steps,
                              hpct_fit_result *result);

/* Whether numbers of epochs, steps and samples make sense. HPCT_ERR_USAGE. */
hpct_status hpct_fit_check_epochs(const hpct_fit_options *options);

/* HPCT_ERR_USAGE for options that parameter servers do not support. */
hpct_status hpct_fit_check_apart(const hpct_fit_options *options);

/* Checks that the data fits the model; `validation` may be NULL. */
hpct_status hpct_fit_check_data(const hpct_model *model, const hpct_dataset *train,
                                const hpct_dataset *validation);

#endif
