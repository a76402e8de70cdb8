/* Whether the options of fit, its model and its data go together. */
#include "agent/cost/batch.h"
#include "agent/data/augment.h"
#include "agent/data/dataset.h"
#include "agent/rank/context.h"
#include "agent/strategies/strategies.h"
#include "agent/train/checkpoints.h"
#include "agent/train/control.h"
#include "agent/train/fit.h"
#include "agent/train/fit_run.h"
#include "base/status.h"
#include "nn/run/step.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

hpct_status hpct_fit_check_epochs(const hpct_fit_options *o)
{
    int epochs = o->epochs == 0 ? 1 : o->epochs;
    if (o->epochs < 0 || o->steps_per_epoch < 0 || o->batch_size < 0 || o->global_batch_size < 0)
        return hpct_fail(HPCT_ERR_USAGE,
                         "epochs, steps per epoch and batch sizes cannot be negative");
    if (o->initial_epoch < 0 || o->initial_epoch >= epochs)
        return hpct_fail(HPCT_ERR_USAGE,
                         "the initial epoch is %d of %d in all: none would be left to train",
                         o->initial_epoch, epochs);
    return HPCT_OK;
}

hpct_status hpct_fit_check_options(const hpct_context *context, const hpct_fit_options *o,
                                   int *global_batch)
{
    int size = hpct_context_size(context);
    HPCT_TRY(hpct_fit_check_epochs(o));
    if (o->batch_size > 0 && o->global_batch_size > 0)
        return hpct_fail(HPCT_ERR_USAGE,
                         "batch size (per rank) and global batch size are both given: give one");
    if (o->verbose < HPCT_VERBOSE_AUTO || o->verbose > 2)
        return hpct_fail(HPCT_ERR_USAGE, "verbose is %d, it must be 0, 1 or 2", o->verbose);
    int64_t global = o->global_batch_size;
    if (global == 0)
        global = (int64_t) (o->batch_size > 0 ? o->batch_size : HPCT_COST_DEFAULT_BATCH) *
                 hpct_context_first_workers(context);
    if (global > INT_MAX / 2)
        return hpct_fail(HPCT_ERR_USAGE, "a global batch of %" PRId64 " samples is too large",
                         global);
    if (global < size)
        return hpct_fail(HPCT_ERR_USAGE,
                         "a global batch of %" PRId64 " cannot be shared among %d ranks: give at "
                         "least one sample to each",
                         global, size);
    *global_batch = (int) global;
    if (o->histogram_every < 0 || (o->histogram_every > 0 && o->log_dir == NULL))
        return hpct_fail(HPCT_ERR_USAGE,
                         "--histogram-every is a number of epochs, for runs with --log-dir");
    HPCT_TRY(hpct_train_checkpoints_check(o->checkpoint_dir, o->checkpoint_every, o->resume,
                                          o->checkpoint_keep));
    if (o->save_best == NULL && o->checkpoint_dir == NULL &&
        (o->monitor != NULL || o->monitor_mode != NULL))
        return hpct_fail(HPCT_ERR_USAGE, "--monitor and --mode are for runs with --save-best or "
                                         "--checkpoint-dir");
    HPCT_TRY(hpct_train_control_check(o));
    bool stop = o->on_nan == NULL || strcmp(o->on_nan, "stop") == 0;
    if (!stop && strcmp(o->on_nan, "resume") != 0)
        return hpct_fail(HPCT_ERR_USAGE, "--on-nan is '%s', it must be stop or resume", o->on_nan);
    if (!stop && o->checkpoint_dir == NULL)
        return hpct_fail(HPCT_ERR_USAGE, "--on-nan resume is for runs with --checkpoint-dir");
    HPCT_TRY(hpct_strategy_check(&o->strategy));
    return hpct_strategy_check_batch(&o->strategy, size, *global_batch);
}

hpct_status hpct_fit_check_apart(const hpct_fit_options *o)
{
    const char *option = o->metrics != 0               ? "--metrics"
                         : o->confusion_matrix != NULL ? "--confusion-matrix"
                                                       : NULL;
    return option == NULL ? HPCT_OK
                          : hpct_fail(HPCT_ERR_USAGE,
                                      "%s is not for --strategy parameter-server, whose workers "
                                      "report loss and accuracy only: hpc-train evaluate has it, "
                                      "for the weights of --save-weights",
                                      option);
}

hpct_status hpct_fit_check(const hpct_context *context, const hpct_fit_options *options)
{
    int ignored;
    if (hpct_context_is_apart(context) && options->check)
        return hpct_fail(HPCT_ERR_USAGE,
                         "--check compares nodes whose ranks step together: those of --strategy "
                         "parameter-server do not");
    if (hpct_context_is_apart(context))
        HPCT_TRY(hpct_fit_check_apart(options));
    return hpct_context_is_apart(context) ? hpct_strategy_check(&options->strategy)
                                          : hpct_fit_check_options(context, options, &ignored);
}

/* Mixed pictures have rows of targets. */
static hpct_status check_mixing(const hpct_model *model, const hpct_dataset *train)
{
    hpct_loss loss = hpct_model_loss_kind(model);
    bool categorical = loss <= HPCT_CATEGORICAL_CROSSENTROPY_FROM_LOGITS ||
                       loss == HPCT_CATEGORICAL_FOCAL_CROSSENTROPY ||
                       loss == HPCT_CATEGORICAL_FOCAL_CROSSENTROPY_FROM_LOGITS;
    if (!hpct_data_augment_mixes(&train->options) || categorical)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_USAGE,
                     "--augment mixup and cutmix need a categorical cross-entropy, which takes "
                     "shares of classes: not %s",
                     hpct_loss_name(loss));
}

hpct_status hpct_fit_check_data(const hpct_model *model, const hpct_dataset *train,
                                const hpct_dataset *validation)
{
    hpct_shape input = hpct_model_input_shape(model);
    int labels = hpct_model_count_labels(model);
    if (hpct_model_count_trainable(model) == 0 && hpct_model_count_parameters(model) > 0)
        return hpct_fail(HPCT_ERR_USAGE,
                         "model %s: all layers with weights are frozen (--freeze, or trainable "
                         "false in its JSON): nothing is left to train",
                         hpct_model_name(model));
    HPCT_TRY(check_mixing(model, train));
    HPCT_TRY(hpct_dataset_check(train, input, labels));
    HPCT_TRY(hpct_dataset_check_targets(train, model));
    if (validation == NULL)
        return HPCT_OK;
    HPCT_TRY(hpct_dataset_check(validation, input, labels));
    HPCT_TRY(hpct_dataset_check_targets(validation, model));
    return hpct_dataset_check_classes(validation, train);
}

hpct_status hpct_fit_check_accumulation(const hpct_fit_run *run)
{
    const hpct_train_training *t = &run->training;
    int every = hpct_model_gradient_accumulation(t->model);
    int64_t epochs = t->options.epochs - t->options.initial_epoch, steps;
    if (__builtin_mul_overflow(t->steps_per_epoch, epochs, &steps) || steps > run->max_steps)
        steps = run->max_steps;
    if (every > steps)
        return hpct_fail(HPCT_ERR_USAGE,
                         "--gradient-accumulation %d: the whole run has %" PRId64
                         " steps, so that no weight would change: give at most that many",
                         every, steps);
    if (steps % every != 0 && t->options.verbose != 0 && t->leads)
        printf("--gradient-accumulation %d: the gradients of the last %" PRId64 " of %" PRId64
               " steps are not applied\n",
               every, steps % every, steps);
    return HPCT_OK;
}
