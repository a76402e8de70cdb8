/* agent/ps/fit.h - fit with parameter servers. */
#ifndef HPCT_AGENT_PS_FIT_H
#define HPCT_AGENT_PS_FIT_H

#include <hpctrain/train.h>

/* As hpct_fit, ended after max_steps steps. The model's targets are set. */
hpct_status hpct_ps_fit(hpct_context *context, hpct_model *model, const hpct_dataset *train,
                        const hpct_fit_options *options, int64_t max_steps,
                        hpct_fit_result *result);

#endif
