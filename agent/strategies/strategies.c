/* The table of strategies, and whether options go with them. */
#include "agent/strategies/strategies.h"

#include "agent/strategy/gradients/compress.h"
#include "agent/strategy/replicas/replica_set.h"
#include "base/nearest.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

static const hpct_strategy_ops *const strategies[] = {
    &hpct_strategy_hybrid,          &hpct_strategy_multi_worker_mirrored,
    &hpct_strategy_local_sgd,       &hpct_replicas_mirrored,
    &hpct_replicas_central_storage, &hpct_strategy_parameter_server,
    &hpct_strategy_pipeline_stages, NULL,
};

static hpct_status check_compression(const hpct_strategy_ops *ops,
                                     const hpct_strategy_options *options)
{
    const hpct_compression *c = &options->compression;
    if (c->kind == HPCT_COMPRESS_NONE)
        return HPCT_OK;
    if (ops != &hpct_strategy_multi_worker_mirrored)
        return hpct_fail(HPCT_ERR_USAGE, "strategy %s does not support --compress; %s does",
                         ops->name, hpct_strategy_multi_worker_mirrored.name);
    if (!options->allow_lossy)
        return hpct_fail(HPCT_ERR_USAGE,
                         "--compress changes the results: give --allow-lossy as well, or do "
                         "without");
    if (options->wire != HPCT_WIRE_FP32)
        return hpct_fail(HPCT_ERR_USAGE,
                         "--compress and --wire: what is compressed travels in fp32");
    return hpct_grad_compression_check(c);
}

static hpct_status check_local(const hpct_strategy_ops *ops, const hpct_strategy_options *options)
{
    if (options->local_steps < 0)
        return hpct_fail(HPCT_ERR_USAGE, "--local-steps is %d, it must be at least 1",
                         options->local_steps);
    if (ops != &hpct_strategy_local_sgd &&
        (options->local_steps != 0 || options->local_warmup_steps != 0))
        return hpct_fail(
            HPCT_ERR_USAGE,
            "--local-steps and --local-warmup-steps are for strategy local-sgd, not %s", ops->name);
    if (ops == &hpct_strategy_local_sgd && !options->allow_lossy)
        return hpct_fail(HPCT_ERR_USAGE,
                         "strategy local-sgd changes the results: give --allow-lossy as well, or "
                         "take another");
    return HPCT_OK;
}

static hpct_status check_pipeline(const hpct_strategy_ops *ops,
                                  const hpct_strategy_options *options)
{
    if (options->stages < 0 || options->micro_batches < 0)
        return hpct_fail(HPCT_ERR_USAGE,
                         "--stages is %d and --micro-batches %d: both must be positive",
                         options->stages, options->micro_batches);
    if (ops != &hpct_strategy_pipeline_stages &&
        (options->stages != 0 || options->micro_batches != 0))
        return hpct_fail(HPCT_ERR_USAGE,
                         "--stages and --micro-batches are for strategy pipeline, not %s",
                         ops->name);
    return HPCT_OK;
}

static hpct_status check_servers(const hpct_strategy_ops *ops, const hpct_strategy_options *options)
{
    const hpct_strategy_options *o = options;
    if (ops != &hpct_strategy_parameter_server &&
        (o->ps_synchronous || o->ps_backup_workers != 0 || o->ps_bounded))
        return hpct_fail(HPCT_ERR_USAGE,
                         "--ps-sync, --backup-workers and --max-staleness are for strategy "
                         "parameter-server, not %s",
                         ops->name);
    if (o->ps_backup_workers != 0 && !o->ps_synchronous)
        return hpct_fail(HPCT_ERR_USAGE, "--backup-workers needs --ps-sync");
    if (o->ps_bounded && o->ps_synchronous)
        return hpct_fail(HPCT_ERR_USAGE,
                         "--max-staleness is for asynchronous training: leave out --ps-sync");
    return HPCT_OK;
}

static hpct_status check_lossy(const hpct_strategy_options *options)
{
    if (options->wire == HPCT_WIRE_FP32 || options->allow_lossy)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_USAGE,
                     "--wire %s rounds gradients, which changes the results: give --allow-lossy as "
                     "well, or --wire fp32",
                     options->wire == HPCT_WIRE_BF16 ? "bf16" : "fp16");
}

static hpct_status check_replicas(const hpct_strategy_ops *ops,
                                  const hpct_strategy_options *options)
{
    if (options->replicas < 0 || options->replicas > HPCT_MAX_REPLICAS)
        return hpct_fail(HPCT_ERR_USAGE, "--replicas is %d, it must be 1 to %d", options->replicas,
                         HPCT_MAX_REPLICAS);
    if (options->replicas > 1 && !ops->replicas)
        return hpct_fail(HPCT_ERR_USAGE,
                         "strategy %s has one replica on each rank, not %d: --replicas goes with "
                         "mirrored and central-storage",
                         ops->name, options->replicas);
    return HPCT_OK;
}

hpct_status hpct_strategy_check_batch(const hpct_strategy_options *options, int ranks,
                                      int global_batch)
{
    int replicas = hpct_strategy_replicas(options);
    if (options->name != NULL && strcmp(options->name, hpct_replicas_central_storage.name) == 0 &&
        ranks > 1)
        return hpct_replicas_central_storage_check(ranks);
    if (global_batch / ranks >= replicas)
        return HPCT_OK;
    return hpct_fail(
        HPCT_ERR_USAGE,
        "a global batch of %d cannot be shared among %d replicas in each of %d rank%s: "
        "give at least one sample to each",
        global_batch, replicas, ranks, ranks == 1 ? "" : "s");
}

hpct_status hpct_strategy_find(const hpct_strategy_ops **out, const hpct_strategy_options *options)
{
    char names[256] = "", hint[HPCT_NEAREST_HINT];
    hpct_nearest best = {0};
    size_t length = 0;
    const char *name = options->name;
    if (name == NULL || strcmp(name, "auto") == 0) /* auto: not chosen yet, except by replicas */
        name = options->replicas > 1 ? hpct_replicas_mirrored.name
                                     : hpct_strategy_multi_worker_mirrored.name;
    for (const hpct_strategy_ops *const *one = strategies; *one != NULL; one++) {
        if (strcmp((*one)->name, name) == 0) {
            *out = *one;
            HPCT_TRY(check_replicas(*one, options));
            HPCT_TRY(check_lossy(options));
            HPCT_TRY(check_local(*one, options));
            HPCT_TRY(check_servers(*one, options));
            HPCT_TRY(check_pipeline(*one, options));
            return check_compression(*one, options);
        }
        hpct_nearest_try(&best, name, (*one)->name);
        if (length < sizeof names)
            length += (size_t) snprintf(names + length, sizeof names - length, "%s%s",
                                        length > 0 ? ", " : "", (*one)->name);
    }
    return hpct_fail(HPCT_ERR_USAGE, "strategy '%s' is unknown%s; there are: auto, %s", name,
                     hpct_nearest_hint(&best, hint), names);
}

hpct_status hpct_strategy_check(const hpct_strategy_options *options)
{
    const hpct_strategy_ops *ops;
    hpct_split_shard_form form;
    bool choose = options->name == NULL || strcmp(options->name, "auto") == 0;
    HPCT_TRY(hpct_strategy_find(&ops, options));
    HPCT_TRY(hpct_strategy_hybrid_form(options, &form));
    if (options->hybrid_form != NULL && !choose && ops != &hpct_strategy_hybrid)
        return hpct_fail(HPCT_ERR_USAGE, "--hybrid-form is for strategy hybrid, not %s", ops->name);
    return HPCT_OK;
}
