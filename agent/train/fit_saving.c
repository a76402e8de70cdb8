/* Where a run is, and when that is saved. */
#include "agent/train/fit_run.h"

#include "agent/data/dataset.h"
#include "agent/data/fingerprint.h"
#include "agent/rank/context.h"
#include "agent/results/results.h"
#include "base/headway.h"
#include "base/process.h"
#include "base/status.h"
#include "nn/run/penalty.h"
#include "nn/run/step.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int64_t hpct_fit_global_step(const hpct_fit_run *run, const hpct_place *place)
{
    return place->epoch * hpct_sampler_steps_per_epoch(run->sampler) + place->step;
}

/* null for none, as in checkpoints of runs that knew no such layers; frees the list. */
static void put_layers(json_t *data, const char *key, char *list)
{
    if (data != NULL && list != NULL)
        json_object_set_new(data, key, list[0] != '\0' ? json_string(list) : json_null());
    free(list);
}

/* Null, as checkpoints without the key are, where every class has weight 1. */
static json_t *weights_to_json(const hpct_model *model)
{
    int count;
    const float *weights = hpct_model_class_weights(model, &count);
    json_t *list = weights != NULL ? json_array() : json_null();
    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_real((double) weights[i]));
    return list;
}

/* Whether the loss follows from the model, as without --loss: a cross-entropy, the binary one of
 * one output. */
static bool is_own_loss(const hpct_model *model, hpct_loss loss)
{
    bool binary = loss == HPCT_BINARY_CROSSENTROPY || loss == HPCT_BINARY_CROSSENTROPY_FROM_LOGITS;
    return loss < HPCT_MEAN_SQUARED_ERROR &&
           !(binary && hpct_model_output_shape(model).size[0] > 1);
}

/* Null for a loss that follows from the model. */
static json_t *loss_to_json(const hpct_model *model)
{
    char text[128];
    double factors[3];
    hpct_loss loss = hpct_model_loss_kind(model);
    hpct_model_loss_factors(model, factors);
    snprintf(text, sizeof text, "%s (gamma %g, alpha %g, delta %g)", hpct_loss_name(loss),
             factors[0], factors[1], factors[2]);
    return is_own_loss(model, loss) ? json_null() : json_string(text);
}

/* Null for what is not asked for, as in checkpoints of releases that did not have it. */
static void put_augmentation(json_t *data, const hpct_dataset_options *o)
{
    const struct {
        const char *name;
        double value;
    } all[] = {{"random rotation", o->rotation},
               {"random zoom", o->zoom},
               {"random translation", o->translation},
               {"random contrast", o->contrast},
               {"operations of RandAugment", o->rand_augment},
               {"strength of RandAugment", o->rand_augment > 0 ? o->rand_augment_factor : 0},
               {"alpha of mixup", o->mixup},
               {"alpha of cutmix", o->cutmix}};
    for (size_t i = 0; data != NULL && i < sizeof all / sizeof *all; i++)
        json_object_set_new(data, all[i].name,
                            all[i].value > 0 ? json_real(all[i].value) : json_null());
}

/* Null, as checkpoints without the key are, for labels that the data have themselves. */
static json_t *labels_to_json(const hpct_dataset *train)
{
    char text[24];
    snprintf(text, sizeof text, "%016" PRIx64, hpct_labels_fingerprint(train));
    return train->label_path != NULL ? json_string(text) : json_null();
}

json_t *hpct_fit_describe(const hpct_model *model, const hpct_dataset *train, uint64_t number,
                          int global_batch, int64_t steps_per_epoch)
{
    const hpct_optimizer *o = hpct_model_optimizer(model);
    char seed[24];
    float factor = 1, offset = 0;
    snprintf(seed, sizeof seed, "%" PRIu64, number);
    hpct_dataset_scale(train, &factor, &offset);
    json_t *data =
        json_pack("{s:s,s:I,s:I,s:I,s:s,s:f,s:f,s:b,s:i,s:f}", "model", hpct_model_name(model),
                  "training samples", (json_int_t) train->size, "global batch",
                  (json_int_t) global_batch, "steps per epoch", (json_int_t) steps_per_epoch,
                  "seed", seed, "scale of images", (double) factor, "offset of images",
                  (double) offset, "random flip", train->options.flip ? 1 : 0, "random crop",
                  train->options.crop, "label smoothing", hpct_model_label_smoothing(model));
    json_t *optimizer = json_pack(
        "{s:s,s:f,s:i,s:I,s:f,s:b,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:i}", "optimizer",
        hpct_optimizer_name(o->kind), "learning rate", o->learning_rate, "schedule",
        (int) o->schedule.kind, "first step of the schedule", (json_int_t) o->schedule.first_step,
        "momentum", o->momentum, "nesterov", o->nesterov ? 1 : 0, "beta_1", o->beta_1, "beta_2",
        o->beta_2, "epsilon", o->epsilon, "rho", o->rho, "weight decay", o->weight_decay,
        "clipvalue", o->clipvalue, "clipnorm", o->clipnorm, "global clipnorm", o->global_clipnorm,
        "gradient accumulation", o->gradient_accumulation_steps);
    if (data != NULL && optimizer != NULL)
        json_object_update(data, optimizer);
    json_decref(optimizer);
    put_augmentation(data, &train->options);
    put_layers(data, "frozen layers", hpct_model_frozen_layers(model));
    put_layers(data, "learning rates of layers", hpct_model_rate_factors(model));
    put_layers(data, "regularizers", hpct_model_list_penalties(model));
    if (data != NULL) {
        json_object_set_new(data, "class weights", weights_to_json(model));
        json_object_set_new(data, "loss", loss_to_json(model));
        json_object_set_new(data, "labels", labels_to_json(train));
    }
    return data;
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
    json_t *same = hpct_fit_describe(run->model, run->train, run->options.seed, run->global_batch,
                                     hpct_sampler_steps_per_epoch(run->sampler));
    hpct_checkpoints_options options = {
        .context = run->context,
        .model = run->model,
        .dir = run->options.checkpoint_dir,
        .every = run->options.checkpoint_every,
        .resume = run->options.resume,
        .keep = run->options.checkpoint_keep,
        .steps_per_epoch = hpct_sampler_steps_per_epoch(run->sampler),
        .speaks = run->options.verbose != 0 && hpct_context_rank(run->context) == 0,
        .same = same,
    };
    hpct_status status =
        same == NULL ? hpct_fail_memory(0)
                     : hpct_checkpoints_open(&run->checkpoints, &options, &from, &continues);
    json_decref(same);
    HPCT_TRY(status);
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
