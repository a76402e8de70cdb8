/* The list of strategies, and a whole step of any of them. */
#include "agent/strategy/strategy.h"

#include "agent/strategy/compress.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

const hpct_strategy_ops *const hpct_strategies[] = {
    &hpct_hybrid,
    &hpct_multi_worker_mirrored,
    NULL,
};

static hpct_status check_compression(const hpct_strategy_ops *ops,
                                     const hpct_strategy_options *options)
{
    const hpct_compression *c = &options->compression;
    if (c->kind == HPCT_COMPRESS_NONE)
        return HPCT_OK;
    if (ops != &hpct_multi_worker_mirrored)
        return hpct_fail(HPCT_ERR_USAGE, "strategy %s has no gradients to compress; %s has",
                         ops->name, hpct_multi_worker_mirrored.name);
    if (!options->allow_lossy)
        return hpct_fail(HPCT_ERR_USAGE,
                         "compress: compression changes the results: give allow_lossy "
                         "(--allow-lossy) as well, or do without");
    if (options->wire != HPCT_WIRE_FP32)
        return hpct_fail(HPCT_ERR_USAGE, "compress and wire: what is compressed travels in fp32");
    return hpct_compression_check(c);
}

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
            hpct_status status = check_lossy(options);
            return status == HPCT_OK ? check_compression(*one, options) : status;
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
