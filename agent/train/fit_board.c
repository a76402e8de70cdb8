/* A run's event files for TensorBoard. */
#include "agent/data/dataset.h"
#include "agent/rank/context.h"
#include "agent/train/fit_run.h"
#include "agent/train/means.h"
#include "base/status.h"
#include "nn/run/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hpct_status hpct_fit_open_board(hpct_fit_run *run)
{
    const hpct_optimizer *optimizer = hpct_model_optimizer(run->model);
    /* where nothing is left to train the files of the run that has trained stay as they are */
    if (run->history == NULL || run->begin.epoch >= run->options.epochs)
        return HPCT_OK;
    return hpct_board_open(&run->board, run->options.log_dir,
                           &(hpct_board_run){
                               .model = run->model,
                               .strategy = run->choice.ops->name,
                               .optimizer = hpct_optimizer_name(optimizer->kind),
                               .learning_rate = optimizer->learning_rate,
                               .workers = hpct_context_size(run->context),
                               .replicas = hpct_strategy_replicas(&run->options.strategy),
                               .global_batch = run->global_batch,
                               .epochs = run->options.epochs,
                               .steps_per_epoch = hpct_sampler_steps_per_epoch(run->sampler),
                               .samples = run->train->size,
                               .seed = run->options.seed,
                               .choice = hpct_metrics_chosen(&run->options, run->model),
                               .epoch = run->begin.epoch,
                               .continues = hpct_history_continues(run->history),
                           });
}

/* ---- histograms ---- */

static const char *name_of(const hpct_state_value *value)
{
    return value->name + strlen("weights/");
}

/* The weights, and the gradients where `arena` has them. */
static hpct_status add_parameters(const hpct_fit_run *run, int epoch, const hpct_state_list *list,
                                  const float *arena, float *values)
{
    for (int i = 0; i < list->count; i++) {
        const hpct_state_value *value = &list->values[i];
        if (value->slot != HPCT_STATE_PARAM)
            continue;
        HPCT_TRY(hpct_state_get(run->model, value->param, HPCT_STATE_PARAM, values));
        hpct_board_histogram(run->board, epoch, name_of(value), "histogram", values, value->count);
        if (arena == NULL || value->is_state || value->is_frozen)
            continue;
        HPCT_TRY(hpct_state_get_arena(run->model, value->param, arena, values));
        hpct_board_histogram(run->board, epoch, name_of(value), "gradient", values, value->count);
    }
    return HPCT_OK;
}

/* Of the whole global batch: while they are accumulated a rank has its own. */
static bool keeps_gradients(const hpct_fit_run *run)
{
    return run->choice.ops->keeps_gradients && !hpct_model_on_device(run->model) &&
           hpct_model_gradient_accumulation(run->model) == 1;
}

static hpct_status add_histograms(const hpct_fit_run *run, int epoch)
{
    size_t count;
    hpct_state_list list;
    const float *arena = keeps_gradients(run) ? hpct_model_gradients(run->model, &count) : NULL;
    HPCT_TRY(hpct_state_list_make(&list, run->model));
    float *values = malloc(list.largest * sizeof *values);
    hpct_status status = values != NULL ? add_parameters(run, epoch, &list, arena, values)
                                        : hpct_fail_memory(list.largest * sizeof *values);
    free(values);
    hpct_state_list_free(&list);
    return status;
}

static bool is_due(const hpct_fit_run *run, int epoch)
{
    int every = run->options.histogram_every;
    return every > 0 && epoch % every == 0;
}

void hpct_fit_show_gradients(hpct_fit_run *run, int epoch, bool last)
{
    if (is_due(run, epoch) && keeps_gradients(run))
        hpct_model_show_gradients(run->strategy->model, last);
}

hpct_status hpct_fit_note_histograms(hpct_fit_run *run, int epoch, bool *gathered)
{
    if (!is_due(run, epoch))
        return HPCT_OK;
    if (!*gathered)
        HPCT_TRY(run->strategy->ops->gather(run->strategy));
    *gathered = true;
    return hpct_context_agree(run->context,
                              run->board != NULL ? add_histograms(run, epoch) : HPCT_OK);
}

/* ---- epochs ---- */

void hpct_fit_note_board(hpct_fit_run *run, int epoch, const hpct_fit_sums *sums,
                         double step_seconds, bool good)
{
    if (run->board == NULL)
        return;
    hpct_status status = hpct_board_note(
        run->board, &(hpct_board_epoch){
                        .epoch = epoch,
                        .train = &run->result.train,
                        .validation = &run->result.validation,
                        .learning_rate = hpct_model_learning_rate(run->model),
                        .step_seconds = step_seconds,
                        .samples_per_step = (double) sums->samples / (double) sums->steps,
                        .good = good,
                    });
    if (status != HPCT_OK && run->progress.verbose != 0)
        printf("%s; it is tried again\n", hpct_last_error());
}

hpct_status hpct_fit_close_board(hpct_fit_run *run)
{
    const hpct_results_end *end = &run->end;
    bool finished = end->failed == HPCT_OK && end->signal == 0 && !end->diverged;
    hpct_status status = hpct_board_close(run->board, finished);
    run->board = NULL;
    return hpct_context_agree(run->context, status);
}
