/* When a run is saved. */
#include "agent/results/results.h"
#include "agent/train/fit_run.h"
#include "base/status.h"
#include "nn/run/step.h"

hpct_status hpct_fit_open_checkpoints(hpct_fit_run *run)
{
    hpct_train_training *t = &run->training;
    hpct_model_set_learning_rate(t->model, 0);
    HPCT_TRY(hpct_train_checkpoints_open(&run->checkpoints, t));
    hpct_model_set_halvings(t->model, t->begin.halvings + t->again);
    return HPCT_OK;
}

/* Diverged training is not saved: earlier checkpoints stay. */
static hpct_status save(hpct_fit_run *run, bool best, bool last)
{
    if (run->checkpoints == NULL || hpct_results_diverged(&run->training.now.end))
        return HPCT_OK;
    hpct_train_place place = hpct_train_training_place(&run->training);
    return hpct_train_checkpoints_save(run->checkpoints, &place, best, last);
}

hpct_status hpct_fit_save_step(hpct_fit_run *run)
{
    const hpct_train_training *t = &run->training;
    bool ended = t->now.sums.steps == t->now.planned, due = false;
    if (run->checkpoints == NULL)
        return HPCT_OK;
    HPCT_TRY(hpct_train_checkpoints_due(
        run->checkpoints, t->now.epoch * t->steps_per_epoch + t->now.sums.steps, ended, &due));
    run->due = due && ended;
    return due && !ended ? save(run, false, false) : HPCT_OK;
}

hpct_status hpct_fit_save_epoch(hpct_fit_run *run)
{
    return run->due ? save(run, run->training.now.is_best, false) : HPCT_OK;
}

hpct_status hpct_fit_save_last(hpct_fit_run *run)
{
    const hpct_train_moment *now = &run->training.now;
    if (now->steps_done > 0)
        HPCT_TRY(save(run, now->is_best && now->sums.steps == 0, true));
    return hpct_train_checkpoints_finish(run->checkpoints);
}
