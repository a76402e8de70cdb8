/* A run's event files for TensorBoard. */
#include "agent/data/dataset.h"
#include "agent/rank/context.h"
#include "agent/results/board.h"
#include "agent/train/means.h"
#include "agent/train/observer.h"
#include "base/status.h"
#include "nn/run/state.h"
#include "nn/run/step.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct observed {
    hpct_results_board *board; /* NULL: no log folder, or another rank's */
} observed;

static hpct_status begin(void *own, hpct_train_training *t)
{
    observed *o = own;
    const hpct_optimizer *optimizer = hpct_model_optimizer(t->model);
    /* where nothing is left to train the files of the run that has trained stay as they are */
    if (!t->leads || t->options.log_dir == NULL || t->begin.epoch >= t->options.epochs)
        return HPCT_OK;
    return hpct_results_board_open(&o->board, t->options.log_dir,
                                   &(hpct_results_board_run){
                                       .model = t->model,
                                       .strategy = t->strategy_name,
                                       .optimizer = hpct_optimizer_name(optimizer->kind),
                                       .learning_rate = optimizer->learning_rate,
                                       .workers = t->workers,
                                       .replicas = hpct_strategy_replicas(&t->options.strategy),
                                       .global_batch = t->global_batch,
                                       .epochs = t->options.epochs,
                                       .steps_per_epoch = t->steps_per_epoch,
                                       .samples = t->train->size,
                                       .seed = t->options.seed,
                                       .choice = hpct_train_metrics_chosen(&t->options, t->model),
                                       .epoch = t->begin.epoch,
                                       .continues = t->continues,
                                   });
}

/* ---- histograms ---- */

static const char *name_of(const hpct_run_state_value *value)
{
    return value->name + strlen("weights/");
}

/* The weights, and the gradients where `arena` has them. */
static hpct_status add_parameters(hpct_results_board *board, const hpct_train_training *t,
                                  const hpct_run_state_list *list, const float *arena,
                                  float *values)
{
    for (int i = 0; i < list->count; i++) {
        const hpct_run_state_value *value = &list->values[i];
        if (value->slot != HPCT_RUN_STATE_PARAM)
            continue;
        HPCT_TRY(hpct_run_state_get(t->model, value->param, HPCT_RUN_STATE_PARAM, values));
        hpct_results_board_histogram(board, t->now.epoch, name_of(value), "histogram", values,
                                     value->count);
        if (arena == NULL || value->is_state || value->is_frozen)
            continue;
        HPCT_TRY(hpct_run_state_get_arena(t->model, value->param, arena, values));
        hpct_results_board_histogram(board, t->now.epoch, name_of(value), "gradient", values,
                                     value->count);
    }
    return HPCT_OK;
}

/* Of the whole global batch: while they are accumulated a rank has its own. */
static bool keeps_gradients(const hpct_train_training *t)
{
    return t->strategy->ops->keeps_gradients && !hpct_model_on_device(t->model) &&
           hpct_model_gradient_accumulation(t->model) == 1;
}

static hpct_status add_histograms(hpct_results_board *board, const hpct_train_training *t)
{
    size_t count;
    hpct_run_state_list list;
    const float *arena = keeps_gradients(t) ? hpct_model_gradients(t->model, &count) : NULL;
    HPCT_TRY(hpct_run_state_list_make(&list, t->model));
    float *values = malloc(list.largest * sizeof *values);
    hpct_status status = values != NULL ? add_parameters(board, t, &list, arena, values)
                                        : hpct_fail_memory(list.largest * sizeof *values);
    free(values);
    hpct_run_state_list_free(&list);
    return status;
}

static bool is_due(const hpct_train_training *t)
{
    int every = t->options.histogram_every;
    return every > 0 && t->now.epoch % every == 0;
}

/* So that the gradients of the last step of an epoch with histograms are there. */
static hpct_status step_begins(void *own, hpct_train_training *t)
{
    (void) own;
    if (is_due(t) && keeps_gradients(t))
        hpct_model_show_gradients(t->strategy->model, t->now.sums.steps + 1 == t->now.planned);
    return HPCT_OK;
}

static hpct_status note_histograms(const observed *o, hpct_train_training *t)
{
    if (!is_due(t))
        return HPCT_OK;
    HPCT_TRY(hpct_train_training_gather(t));
    return hpct_context_agree(t->context, o->board != NULL ? add_histograms(o->board, t) : HPCT_OK);
}

/* ---- epochs ---- */

/* Collective if histograms are due. An error of the file is printed now, and reported again at the
 * end. */
static hpct_status epoch_ended(void *own, hpct_train_training *t)
{
    const observed *o = own;
    const hpct_train_moment *now = &t->now;
    const hpct_results_board_epoch epoch = {
        .epoch = now->epoch,
        .train = &now->result.train,
        .validation = &now->result.validation,
        .learning_rate = hpct_train_training_rate(t),
        .step_seconds = now->times.timed > 0 ? hpct_train_training_step_seconds(t) : NAN,
        .samples_per_step = (double) now->sums.samples / (double) now->sums.steps,
        .good = now->good,
    };
    HPCT_TRY(note_histograms(o, t));
    if (o->board != NULL)
        hpct_train_training_say_retried(t, hpct_results_board_note(o->board, &epoch));
    return HPCT_OK;
}

static void save(void *own, hpct_train_training *t, hpct_train_place *place)
{
    const observed *o = own;
    (void) t;
    (void) place;
    hpct_results_board_mark(o->board);
}

static hpct_status end(void *own, hpct_train_training *t)
{
    observed *o = own;
    hpct_results_board *board = o->board;
    const hpct_results_end *end = &t->now.end;
    o->board = NULL;
    return hpct_results_board_close(board,
                                    end->failed == HPCT_OK && end->signal == 0 && !end->diverged);
}

static void close_board(void *own, hpct_train_training *t)
{
    const observed *o = own;
    (void) t;
    hpct_results_board_close(o->board, false);
}

const hpct_train_observer hpct_train_observe_board = {
    .size = sizeof(observed),
    .on = {[HPCT_TRAIN_ON_BEGIN] = begin,
           [HPCT_TRAIN_ON_STEP] = step_begins,
           [HPCT_TRAIN_ON_EPOCH_ENDED] = epoch_ended},
    .save = save,
    .end = end,
    .close = close_board,
};
