/* Where a run is, and when that is saved. */
#include "agent/train/fit_run.h"

#include "agent/rank/context.h"
#include "agent/results/results.h"
#include "base/headway.h"
#include "base/process.h"
#include "base/status.h"
#include "nn/run/step.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int64_t hpct_fit_global_step(const hpct_fit_run *run, const hpct_place *place)
{
    return place->epoch * hpct_sampler_steps_per_epoch(run->sampler) + place->step;
}

hpct_status hpct_fit_open_checkpoints(hpct_fit_run *run)
{
    bool continues = false;
    run->begin = (hpct_place){.epoch = run->options.initial_epoch, .logs = HPCT_HISTORY_NONE};
    hpct_model_set_halvings(run->model, 0);
    hpct_model_set_learning_rate(run->model, 0);
    if (run->options.checkpoint_dir == NULL)
        return HPCT_OK;
    hpct_place from;
    hpct_checkpoints_options options = {
        .context = run->context,
        .model = run->model,
        .dir = run->options.checkpoint_dir,
        .every = run->options.checkpoint_every,
        .resume = run->options.resume,
        .keep = run->options.checkpoint_keep,
        .steps_per_epoch = hpct_sampler_steps_per_epoch(run->sampler),
        .speaks = run->options.verbose != 0 && hpct_context_rank(run->context) == 0,
        .identity = run->identity,
    };
    HPCT_TRY(hpct_checkpoints_open(&run->checkpoints, &options, &from, &continues));
    if (continues)
        run->begin = from;
    run->best = run->begin.best;
    hpct_model_set_halvings(run->model, run->begin.halvings + run->again);
    run->end.has_loss = run->begin.has_loss;
    run->end.first_loss = run->begin.first_loss;
    run->end.last_loss = run->begin.last_loss;
    run->end.mean_loss = run->begin.mean_loss;
    if (continues && options.speaks) {
        printf("continues %s: %" PRId64 " of %d epochs are done, and %" PRId64
               " steps of the next\n",
               hpct_checkpoints_last(run->checkpoints), from.epoch, run->options.epochs, from.step);
        fflush(stdout);
    }
    return HPCT_OK;
}

/* ---- saving ---- */

static void note_place(hpct_fit_run *run, int64_t epoch, int64_t step, const hpct_fit_sums *sums)
{
    const hpct_results_end *end = &run->end;
    run->place = (hpct_place){
        .epoch = epoch,
        .step = step,
        .has_loss = end->has_loss,
        .first_loss = end->first_loss,
        .last_loss = end->last_loss,
        .mean_loss = end->mean_loss,
        .logs = HPCT_HISTORY_NONE,
        .best = run->best,
        .watch = run->control.notes,
        .halvings = run->begin.halvings + run->again,
    };
    if (sums == NULL)
        return;
    run->place.loss = sums->loss;
    run->place.correct = sums->correct;
    run->place.in_top_k = sums->in_top_k;
    run->place.samples = sums->samples;
    run->place.steps = sums->steps;
}

/* Diverged training is not saved: earlier checkpoints stay. */
static hpct_status save_place(hpct_fit_run *run, bool best, bool last)
{
    if (run->checkpoints == NULL || hpct_results_diverged(&run->end))
        return HPCT_OK;
    if (run->history != NULL) {
        hpct_history_mark(run->history, &run->place.logs);
        hpct_fit_settle(run); /* as the history is in its place, too */
    }
    hpct_board_mark(run->board);
    return hpct_checkpoints_save(run->checkpoints, &run->place, best, last);
}

hpct_status hpct_fit_step_ended(hpct_fit_run *run, int epoch, int64_t step,
                                const hpct_fit_sums *sums)
{
    bool ended = step + 1 == sums->planned, due = false;
    if (run->history != NULL && hpct_history_continues(run->history))
        hpct_fit_settle(run); /* a start that is killed later is known, too */
    if (run->checkpoints == NULL)
        return HPCT_OK;
    note_place(run, epoch, step + 1, sums);
    HPCT_TRY(hpct_checkpoints_due(run->checkpoints, hpct_fit_global_step(run, &run->place), ended,
                                  &due));
    run->due = due && ended;
    return due && !ended ? save_place(run, false, false) : HPCT_OK;
}

hpct_fit_sums hpct_fit_begin_epoch(const hpct_fit_run *run, int epoch, int64_t steps)
{
    hpct_fit_sums sums = {.planned = steps, .began = hpct_process_clock()};
    if (epoch == run->begin.epoch && run->begin.step > 0) {
        sums.loss = run->begin.loss;
        sums.correct = run->begin.correct;
        sums.in_top_k = run->begin.in_top_k;
        sums.samples = run->begin.samples;
        sums.steps = run->begin.steps;
    }
    return sums;
}

hpct_status hpct_fit_epoch_ended(hpct_fit_run *run, int epoch)
{
    note_place(run, epoch + 1, 0, NULL);
    return run->due ? save_place(run, run->is_best, false) : HPCT_OK;
}

hpct_status hpct_fit_save_last(hpct_fit_run *run)
{
    if (run->steps_done > 0)
        HPCT_TRY(save_place(run, run->is_best && run->place.step == 0, true));
    return hpct_checkpoints_finish(run->checkpoints);
}

/* ---- the best epoch ---- */

/* Elsewhere if need be; an earlier good file stays. */
static hpct_status save_best(const hpct_fit_run *run)
{
    hpct_results_end end = run->end;
    hpct_status status = hpct_results_save(run->model, run->options.save_best, &end);
    if (status != HPCT_OK)
        fprintf(stderr,
                "hpc-train: --save-best: %s%s%s; it is tried again after the next better epoch\n",
                hpct_last_error(), end.where[0] != '\0' ? "; the weights are in " : "", end.where);
    return status;
}

hpct_status hpct_fit_note_best(hpct_fit_run *run, bool gathered)
{
    hpct_status status = HPCT_OK;
    run->is_best = !hpct_results_diverged(&run->end) &&
                   hpct_best_note(&run->best, &run->monitor,
                                  hpct_monitor_value(&run->monitor, &run->result.train,
                                                     &run->result.validation));
    if (!run->is_best || run->options.save_best == NULL)
        return HPCT_OK;
    if (!gathered)
        HPCT_TRY(run->strategy->ops->gather(run->strategy));
    hpct_waits before = hpct_headway_enter(HPCT_WAITS_UNSEEN); /* as for the last weights */
    if (hpct_context_rank(run->context) == 0)
        status = save_best(run);
    hpct_headway_enter(before);
    run->best_failed = status = hpct_context_agree(run->context, status);
    return status == HPCT_OK || hpct_context_all_know(run->context, status) ? HPCT_OK : status;
}

hpct_status hpct_fit_best_saved(const hpct_fit_run *run)
{
    return run->best_failed == HPCT_OK
               ? HPCT_OK
               : hpct_fail(run->best_failed, "the weights of the best epoch are not in %s",
                           run->options.save_best);
}
