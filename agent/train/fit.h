/* agent/train/fit.h - fit, for training loops built on it. */
#ifndef HPCT_AGENT_TRAIN_FIT_H
#define HPCT_AGENT_TRAIN_FIT_H

#include <hpctrain/train.h>

/* hpct_fit that ends after max_steps steps; the last epoch may be shorter. */
hpct_status hpct_fit_until(hpct_context *context, hpct_model *model, const hpct_dataset *train,
                           const hpct_fit_options *options, int64_t max_steps,
                           hpct_fit_result *result);

/* Whether numbers of epochs, steps and samples make sense. HPCT_ERR_USAGE. */
hpct_status hpct_fit_check_epochs(const hpct_fit_options *options);

/* Checks that the data fits the model; `validation` may be NULL. */
hpct_status hpct_fit_check_data(const hpct_model *model, const hpct_dataset *train,
                                const hpct_dataset *validation);

#endif
