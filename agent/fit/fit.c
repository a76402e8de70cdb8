/* fit: by the loop in which the ranks step together, or by that with parameter servers. */
#include "agent/fit/fit.h"

#include "agent/ps/fit.h"
#include "agent/strategies/strategies.h"
#include "agent/train/fit.h"
#include "agent/train/targets.h"
#include "base/progress.h"
#include "base/status.h"

hpct_status hpct_fit(hpct_context *context, hpct_model *model, const hpct_dataset *train,
                     const hpct_fit_options *options, hpct_fit_result *result)
{
    return hpct_fit_until(context, model, train, options, INT64_MAX, result);
}

hpct_status hpct_fit_until(hpct_context *context, hpct_model *model, const hpct_dataset *train,
                           const hpct_fit_options *options, int64_t max_steps,
                           hpct_fit_result *result)
{
    const hpct_strategy_ops *ops;
    hpct_status status = hpct_strategy_find(&ops, &options->strategy);
    if (status == HPCT_OK)
        status = hpct_strategy_check_device(&options->strategy, model);
    if (status == HPCT_OK)
        status = hpct_train_targets_begin(model, train, options);
    if (status == HPCT_OK && ops->apart)
        return hpct_ps_fit(context, model, train, options, max_steps, result);
    hpct_waits before = hpct_enter_wait(HPCT_WAITS_FOR_NOBODY);
    status = hpct_context_agree(context, status);
    if (status == HPCT_OK)
        status = hpct_fit_together(context, model, train, options, max_steps, result);
    hpct_enter_wait(before);
    return status;
}
