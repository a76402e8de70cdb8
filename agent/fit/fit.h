/* agent/fit/fit.h - fit of any strategy, for training loops built on it. */
#ifndef HPCT_AGENT_FIT_FIT_H
#define HPCT_AGENT_FIT_FIT_H

#include <hpctrain/train.h>

/* hpct_fit that ends after max_steps steps; the last epoch may be shorter. */
hpct_status hpct_fit_until(hpct_context *context, hpct_model *model, const hpct_dataset *train,
                           const hpct_fit_options *options, int64_t max_steps,
                           hpct_fit_result *result);

#endif
