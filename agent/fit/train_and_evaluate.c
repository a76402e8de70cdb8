/* train_and_evaluate: fit whose epochs are the evaluate_every steps between evaluations. */
#include "agent/fit/fit.h"
#include "base/status.h"

#include <inttypes.h>
#include <limits.h>

hpct_status hpct_train_and_evaluate(hpct_context *context, hpct_model *model,
                                    const hpct_dataset *train, const hpct_dataset *evaluation,
                                    const hpct_train_and_evaluate_options *options,
                                    hpct_fit_result *result)
{
    hpct_fit_options fit = options->fit;
    int64_t every = options->evaluate_every > 0 ? options->evaluate_every : options->max_steps;
    if (options->max_steps < 1 || options->evaluate_every < 0)
        return hpct_fail(HPCT_ERR_USAGE,
                         "max_steps is %" PRId64
                         ", it must be at least 1; evaluate_every is %" PRId64
                         ", it cannot be negative",
                         options->max_steps, options->evaluate_every);
    if (fit.epochs != 0 || fit.initial_epoch != 0 || fit.steps_per_epoch != 0 ||
        fit.validation != NULL)
        return hpct_fail(HPCT_ERR_USAGE,
                         "epochs, initial_epoch, steps_per_epoch and validation follow from "
                         "max_steps, evaluate_every and evaluation: leave them out");
    if (fit.checkpoint_dir != NULL)
        return hpct_fail(HPCT_ERR_USAGE, "checkpoint_dir is for hpct_fit");
    int64_t parts = (options->max_steps - 1) / every + 1;
    if (parts > INT_MAX)
        return hpct_fail(HPCT_ERR_USAGE, "%" PRId64 " evaluations are too many", parts);
    fit.steps_per_epoch = every;
    fit.epochs = (int) parts;
    fit.validation = evaluation;
    return hpct_fit_until(context, model, train, &fit, options->max_steps, result);
}
