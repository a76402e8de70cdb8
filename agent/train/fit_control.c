/* What follows from an epoch, in a run: the end, the learning rate, the weights that are kept. */
#include "agent/train/fit_run.h"

#include "agent/checkpoint/disk.h"
#include "agent/rank/stop.h"
#include "agent/strategy/state.h"
#include "base/headway.h"
#include "base/status.h"
#include "nn/run/step.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define BEST_FILE "early-stopping.safetensors" /* in the folder of checkpoints */

static void set_rate(const hpct_fit_run *run, double rate)
{
    hpct_model *model;
    for (int k = 0; (model = hpct_strategy_model(run->strategy, k)) != NULL; k++)
        hpct_model_set_learning_rate(model, rate);
    hpct_model_set_learning_rate(run->model, rate);
}

hpct_status hpct_fit_open_control(hpct_fit_run *run)
{
    const hpct_optimizer *o = hpct_model_optimizer(run->model);
    bool scheduled = o->schedule.kind != HPCT_CONSTANT || o->schedule.warmup_steps > 0;
    return hpct_control_open(&run->control, run->context, &run->options,
                             hpct_model_top_k(run->model) > 0, scheduled);
}

/* ---- the weights of the best epoch ---- */

/* Rank 0. */
static hpct_status save_kept(const hpct_fit_run *run)
{
    char *path;
    if (run->options.checkpoint_dir == NULL)
        return HPCT_OK;
    HPCT_TRY(hpct_disk_join(&path, run->options.checkpoint_dir, BEST_FILE));
    hpct_status status = hpct_model_save_weights(run->model, path);
    free(path);
    return status;
}

static hpct_status keep(hpct_fit_run *run, bool gathered)
{
    if (!gathered)
        HPCT_TRY(run->strategy->ops->gather(run->strategy));
    hpct_waits before = hpct_headway_enter(HPCT_WAITS_UNSEEN);
    hpct_status status = hpct_kept_weights_take(&run->kept, run->context, run->model);
    if (status == HPCT_OK && hpct_context_rank(run->context) == 0 && save_kept(run) != HPCT_OK)
        fprintf(stderr, "hpc-train: %s: if this run is cut, the next one has no best weights\n",
                hpct_last_error()); /* those in memory are all that this run needs */
    hpct_headway_enter(before);
    return hpct_context_agree(run->context, status);
}

/* Rank 0: the file of the run that is continued. */
static hpct_status read_kept(hpct_fit_run *run)
{
    char *path;
    HPCT_TRY(hpct_disk_join(&path, run->options.checkpoint_dir, BEST_FILE));
    hpct_status status = hpct_model_load_weights(run->model, path);
    if (status != HPCT_OK)
        status = hpct_fail(status,
                           "%s: these are the weights of the best epoch, which restore_best of "
                           "--early-stopping needs: leave restore_best out to go on without them",
                           hpct_last_error());
    free(path);
    return status;
}

hpct_status hpct_fit_recall_control(hpct_fit_run *run)
{
    hpct_status status = HPCT_OK;
    run->control.notes = run->begin.watch;
    run->control.halvings = run->begin.halvings + run->again;
    run->control.notes.rate = ldexp(run->control.notes.rate, run->again ? -1 : 0);
    if (!run->control.stops || !run->control.stopping.restore_best ||
        !run->control.notes.stopping.has)
        return HPCT_OK;
    if (hpct_context_rank(run->context) == 0)
        status = read_kept(run);
    if (status == HPCT_OK)
        status = hpct_kept_weights_take(&run->kept, run->context, run->model);
    return hpct_context_agree(run->context, status);
}

hpct_status hpct_fit_restore_best(hpct_fit_run *run)
{
    const hpct_control *c = &run->control;
    if (!run->kept.has)
        return HPCT_OK;
    if (c->speaks != NULL)
        fprintf(c->speaks, "the weights are those of the best epoch, %lld\n",
                (long long) c->notes.stopping.best_epoch + 1);
    return hpct_kept_weights_give(&run->kept, run->context, run->model);
}

/* ---- epochs and batches ---- */

hpct_status hpct_fit_control_epoch(hpct_fit_run *run, int epoch)
{
    const hpct_callbacks *callbacks = run->options.callbacks;
    set_rate(run, hpct_control_rate(&run->control, epoch));
    return callbacks != NULL ? hpct_fit_call_back(run, callbacks->epoch_begin, epoch, -1, NULL)
                             : HPCT_OK;
}

hpct_status hpct_fit_call_back(hpct_fit_run *run, hpct_callback *callback, int epoch, int64_t step,
                               const hpct_metrics *train)
{
    double rate = hpct_model_learning_rate(run->strategy->model);
    hpct_callback_state state = {.epoch = epoch,
                                 .step = step,
                                 .train = train != NULL ? *train : (hpct_metrics){NAN, NAN, NAN},
                                 .validation = {NAN, NAN, NAN},
                                 .learning_rate = rate};
    if (callback == NULL)
        return HPCT_OK;
    hpct_status status = hpct_control_call(&run->control, callback, &state);
    if (step < 0) {
        hpct_comm *comm = hpct_context_comm(run->context);
        HPCT_TRY(hpct_context_agree(run->context, status));
        status = comm->ops->broadcast(comm, &state.learning_rate, sizeof state.learning_rate, 0);
    }
    HPCT_TRY(status);
    if (state.learning_rate != rate) {
        run->control.notes.rate = state.learning_rate;
        set_rate(run, state.learning_rate);
    }
    if (state.stop)
        hpct_stop_raise(HPCT_STOP_CALLBACK);
    return HPCT_OK;
}

hpct_status hpct_fit_control_epoch_ended(hpct_fit_run *run, int epoch, bool gathered)
{
    hpct_control_verdict verdict;
    double rate = hpct_model_learning_rate(run->strategy->model);
    HPCT_TRY(hpct_control_epoch_ended(&run->control, epoch, &run->result.train,
                                      &run->result.validation, rate, &verdict));
    if (verdict.rate > 0 && verdict.rate != rate)
        set_rate(run, verdict.rate);
    if (verdict.stop)
        run->result.stopped_epoch = epoch + 1;
    return verdict.is_best && run->control.stopping.restore_best ? keep(run, gathered) : HPCT_OK;
}
