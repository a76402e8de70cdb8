/* Lines of progress on standard output. */
#include "agent/data/augment.h"
#include "agent/data/dataset.h"
#include "agent/results/progress.h"
#include "agent/train/means.h"
#include "agent/train/observer.h"
#include "base/process.h"
#include "nn/run/step.h"

static hpct_status begin(void *own, hpct_train_training *t)
{
    hpct_results_progress *progress = own;
    hpct_results_metric_choice choice = hpct_train_metrics_chosen(&t->options, t->model);
    hpct_results_progress_init(progress, stdout, t->leads ? t->options.verbose : 0, &choice);
    if (progress->verbose == 2 && hpct_model_on_device(t->model) &&
        hpct_data_augment_is_deep(&t->train->options))
        puts("--augment: pictures are prepared on the host, not on the GPU, which only flips and "
             "crops");
    return HPCT_OK;
}

static hpct_status epoch_begins(void *own, hpct_train_training *t)
{
    hpct_results_progress_begin(own, t->now.epoch + 1, t->options.epochs, t->now.planned);
    return HPCT_OK;
}

static hpct_status step_ended(void *own, hpct_train_training *t)
{
    const hpct_train_moment *now = &t->now;
    if (now->sums.samples > 0)
        hpct_results_progress_step(own, now->sums.steps,
                                   now->times.last_step_ended - now->times.epoch_began,
                                   hpct_train_training_step_seconds(t), &now->result.train);
    return HPCT_OK;
}

static hpct_status epoch_ended(void *own, hpct_train_training *t)
{
    const hpct_train_moment *now = &t->now;
    bool validated = t->validation != NULL && !now->cut;
    hpct_results_progress_end(own, now->sums.steps, hpct_process_clock() - now->times.epoch_began,
                              hpct_train_training_step_seconds(t), &now->result.train,
                              validated ? &now->result.validation : NULL);
    return HPCT_OK;
}

const hpct_train_observer hpct_train_observe_progress = {
    .size = sizeof(hpct_results_progress),
    .sees_cut_epochs = true,
    .on = {[HPCT_TRAIN_ON_BEGIN] = begin,
           [HPCT_TRAIN_ON_EPOCH] = epoch_begins,
           [HPCT_TRAIN_ON_STEP_ENDED] = step_ended,
           [HPCT_TRAIN_ON_EPOCH_ENDED] = epoch_ended},
};
