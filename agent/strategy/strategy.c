/* The list of strategies, and a whole step of any of them. */
#include "agent/strategy/strategy.h"

#include "base/status.h"

#include <stdio.h>
#include <string.h>

const hpct_strategy_ops *const hpct_strategies[] = {
    &hpct_hybrid,
    &hpct_multi_worker_mirrored,
    NULL,
};

static hpct_status check_lossy(const hpct_strategy_options *options)
{
    if (options->wire == HPCT_WIRE_FP32 || options->allow_lossy)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_USAGE,
                     "wire %s rounds gradients, which changes the results: give allow_lossy "
                     "(--allow-lossy) as well, or wire fp32",
                     options->wire == HPCT_WIRE_BF16 ? "bf16" : "fp16");
}

hpct_status hpct_strategy_find(const hpct_strategy_ops **out, const hpct_strategy_options *options)
{
    char names[256] = "";
    size_t length = 0;
    const char *name = options->name;
    if (name == NULL || strcmp(name, "auto") == 0) /* not chosen yet */
        name = hpct_multi_worker_mirrored.name;
    for (const hpct_strategy_ops *const *one = hpct_strategies; *one != NULL; one++) {
        if (strcmp((*one)->name, name) == 0) {
            *out = *one;
            return check_lossy(options);
        }
        if (length < sizeof names)
            length += (size_t) snprintf(names + length, sizeof names - length, "%s%s",
                                        length > 0 ? ", " : "", (*one)->name);
    }
    return hpct_fail(HPCT_ERR_USAGE, "strategy '%s' is unknown; there are: auto, %s", name, names);
}

hpct_status hpct_strategy_step(hpct_strategy *strategy, int count, int global_count,
                               hpct_step_sums *sums)
{
    if (strategy->ops->announce != NULL)
        strategy->ops->announce(strategy, sums);
    hpct_status status = strategy->ops->forward(strategy, count, true);
    if (status == HPCT_OK)
        status = strategy->ops->backward(strategy, count, global_count, sums);
    if (status == HPCT_OK)
        status = strategy->ops->reduce(strategy, sums);
    if (status == HPCT_OK && sums->failed == 0)
        status = strategy->ops->apply(strategy);
    return status;
}
