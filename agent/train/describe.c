/* The description of a run (agent/train/identity.h). A value is null where nothing of its kind is
 * asked for. */
#include "agent/train/identity.h"

#include "agent/data/dataset.h"
#include "agent/results/json_file.h"
#include "base/status.h"
#include "nn/file/layers.h"
#include "nn/run/penalty.h"
#include "nn/run/state.h"
#include "nn/run/step.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sets a value, unless an earlier one failed. */
static void set_value(json_t **to, const char *key, json_t *value)
{
    if (*to == NULL || value == NULL || json_object_set_new(*to, key, value) != 0) {
        if (*to == NULL)
            json_decref(value);
        json_decref(*to);
        *to = NULL;
    }
}

static json_t *number_or_null(double value)
{
    return value > 0 ? json_real(value) : json_null();
}

static json_t *hash_text(uint64_t hash)
{
    char text[24];
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    return json_string(text);
}

/* ---- data ---- */

/* Also names of outputs. */
static json_t *list_names(const hpct_dataset *dataset)
{
    json_t *list = dataset->num_classes > 0 ? json_array() : json_null();
    for (int i = 0; i < dataset->num_classes; i++)
        json_array_append_new(list, hpct_results_json_text(dataset->classes[i]));
    return list;
}

static json_t *describe_data(const hpct_dataset *dataset)
{
    hpct_data_fingerprint hash;
    if (dataset == NULL)
        return json_null();
    hpct_dataset_fingerprint(dataset, &hash);
    return json_pack("{s:I, s:o, s:o, s:o, s:o}", "samples", (json_int_t) dataset->size,
                     "hash of labels", hash_text(hash.labels), "names of outputs",
                     dataset->targets != NULL ? list_names(dataset) : json_null(),
                     "hash of file names and sizes", hash_text(hash.files), "hash of some pictures",
                     hash_text(hash.pictures));
}

static void put_augmentation(json_t **to, const hpct_dataset_options *o)
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
    set_value(to, "random flip", json_boolean(o->flip));
    set_value(to, "random crop", json_integer(o->crop));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        set_value(to, all[i].name, number_or_null(all[i].value));
}

static void put_scale(json_t **to, const hpct_dataset *dataset)
{
    float factor = 1, offset = 0;
    hpct_dataset_scale(dataset, &factor, &offset);
    set_value(to, "scale of images", json_real((double) factor));
    set_value(to, "offset of images", json_real((double) offset));
}

static void put_training_data(json_t **to, const hpct_dataset *train)
{
    set_value(to, "class names", train->targets == NULL ? list_names(train) : json_null());
    set_value(to, "training samples", json_integer((json_int_t) train->size));
    set_value(to, "training data", describe_data(train));
    put_scale(to, train);
    put_augmentation(to, &train->options);
}

/* ---- model ---- */

/* null for an empty list; frees it. */
static void put_list(json_t **to, const char *key, char *list)
{
    set_value(to, key, list == NULL ? NULL : list[0] != '\0' ? json_string(list) : json_null());
    free(list);
}

static json_t *list_class_weights(const hpct_model *model)
{
    int count;
    const float *weights = hpct_model_class_weights(model, &count);
    json_t *list = weights != NULL ? json_array() : json_null();
    for (int i = 0; weights != NULL && i < count; i++)
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

static json_t *describe_loss(const hpct_model *model)
{
    char text[128];
    double factors[3];
    hpct_loss loss = hpct_model_loss_kind(model);
    hpct_model_loss_factors(model, factors);
    snprintf(text, sizeof text, "%s (gamma %g, alpha %g, delta %g)", hpct_loss_name(loss),
             factors[0], factors[1], factors[2]);
    return is_own_loss(model, loss) ? json_null() : json_string(text);
}

static void put_model(json_t **to, const hpct_model *model)
{
    set_value(to, "model", json_string(hpct_model_name(model)));
    set_value(to, "layers", hpct_model_describe_layers(model));
    set_value(to, "precision", json_string(hpct_precision_name(hpct_model_precision(model))));
}

static void put_training_of_model(json_t **to, const hpct_model *model)
{
    put_list(to, "frozen layers", hpct_model_frozen_layers(model));
    put_list(to, "learning rates of layers", hpct_model_rate_factors(model));
    put_list(to, "regularizers", hpct_model_list_penalties(model));
    set_value(to, "loss", describe_loss(model));
    set_value(to, "label smoothing", json_real(hpct_model_label_smoothing(model)));
    set_value(to, "class weights", list_class_weights(model));
    set_value(to, "top-k accuracy", json_integer(hpct_model_top_k(model)));
}

/* ---- options ---- */

static json_t *describe_schedule(const hpct_schedule *s)
{
    json_t *list = json_array();
    for (int i = 0; i < s->num_boundaries; i++)
        json_array_append_new(list,
                              json_pack("[I, f]", (json_int_t) s->boundaries[i], s->values[i + 1]));
    return json_pack("{s:I, s:f, s:I, s:f, s:b, s:f, s:f, s:f, s:o}", "warm-up steps",
                     (json_int_t) s->warmup_steps, "start of the warm-up", s->warmup_start,
                     "decay steps", (json_int_t) s->decay_steps, "decay rate", s->decay_rate,
                     "staircase", (int) s->staircase, "alpha", s->alpha, "power", s->power,
                     "last rate", s->end_learning_rate, "boundaries", list);
}

static void put_optimizer(json_t **to, const hpct_optimizer *o)
{
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"learning rate", o->learning_rate},
                   {"momentum", o->momentum},
                   {"beta_1", o->beta_1},
                   {"beta_2", o->beta_2},
                   {"epsilon", o->epsilon},
                   {"rho", o->rho},
                   {"trust coefficient", o->trust_coefficient},
                   {"weight decay", o->weight_decay},
                   {"clipvalue", o->clipvalue},
                   {"clipnorm", o->clipnorm},
                   {"global clipnorm", o->global_clipnorm}};
    set_value(to, "optimizer", json_string(hpct_optimizer_name(o->kind)));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        set_value(to, numbers[i].name, json_real(numbers[i].value));
    set_value(to, "nesterov", json_boolean(o->nesterov));
    set_value(to, "centered", json_boolean(o->centered));
    set_value(to, "trust all", json_boolean(o->trust_all));
    set_value(to, "gradient accumulation", json_integer(o->gradient_accumulation_steps));
    set_value(to, "schedule", json_integer((json_int_t) o->schedule.kind));
    set_value(to, "first step of the schedule", json_integer((json_int_t) o->schedule.first_step));
    set_value(to, "numbers of the schedule", describe_schedule(&o->schedule));
}

static json_t *describe_strategy(const hpct_strategy_options *s)
{
    return json_pack(
        "{s:o, s:i, s:i, s:i, s:o, s:b, s:i, s:I, s:i, s:i, s:[i, i, f, i], s:b, s:i, s:b, s:I}",
        "name", hpct_results_json_text(s->name), "--replicas", s->replicas, "--stages", s->stages,
        "--micro-batches", s->micro_batches, "--hybrid-form",
        hpct_results_json_text(s->hybrid_form), "--allow-lossy", (int) s->allow_lossy, "--wire",
        (int) s->wire, "--bucket-bytes", (json_int_t) s->bucket_bytes, "--local-steps",
        s->local_steps, "--local-warmup-steps", s->local_warmup_steps, "--compress",
        (int) s->compression.kind, s->compression.rank, s->compression.share,
        s->compression.warmup_steps, "--ps-sync", (int) s->ps_synchronous, "--backup-workers",
        s->ps_backup_workers, "bounded staleness", (int) s->ps_bounded, "--max-staleness",
        (json_int_t) s->ps_max_staleness);
}

/* Of files only whether they are asked for: each rank may have a path of its own. */
static json_t *describe_options(const hpct_fit_options *o)
{
    json_t *numbers = json_pack("{s:i, s:i, s:i, s:b}", "--metrics", (int) o->metrics,
                                "--histogram-every", o->histogram_every, "--checkpoint-keep",
                                o->checkpoint_keep, "--check", (int) o->check);
    const struct {
        const char *name, *text;
    } texts[] = {{"--checkpoint-every", o->checkpoint_every},
                 {"--resume", o->resume},
                 {"--on-nan", o->on_nan},
                 {"--monitor", o->monitor},
                 {"--mode", o->monitor_mode},
                 {"--early-stopping", o->early_stopping},
                 {"--reduce-lr-on-plateau", o->reduce_lr_on_plateau},
                 {"--stop-at", o->stop_at}},
      files[] = {{"--confusion-matrix", o->confusion_matrix},
                 {"--log-dir", o->log_dir},
                 {"--save-weights", o->save_weights},
                 {"--save-best", o->save_best},
                 {"--checkpoint-dir", o->checkpoint_dir},
                 {"--learning-rate-file", o->learning_rate_file},
                 {"--summary-json", o->summary_json},
                 {"--timeline", o->timeline}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        set_value(&numbers, texts[i].name, hpct_results_json_text(texts[i].text));
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        set_value(&numbers, files[i].name, json_boolean(files[i].text != NULL));
    return numbers;
}

/* ---- the whole ---- */

static void put_fit(json_t **to, const hpct_train_identity_of *of)
{
    char seed[24];
    snprintf(seed, sizeof seed, "%" PRIu64, of->fit->seed);
    put_training_data(to, of->train);
    set_value(to, "validation data", describe_data(of->validation));
    put_model(to, of->model);
    put_training_of_model(to, of->model);
    set_value(to, "global batch", json_integer(of->global_batch));
    set_value(to, "steps per epoch", json_integer((json_int_t) of->steps));
    set_value(to, "seed", json_string(seed));
    set_value(to, "epochs", json_integer(of->fit->epochs));
    set_value(to, "first epoch", json_integer(of->fit->initial_epoch));
    put_optimizer(to, hpct_model_optimizer(of->model));
    set_value(to, "strategy", describe_strategy(&of->fit->strategy));
    set_value(to, HPCT_TRAIN_IDENTITY_OPTIONS, describe_options(of->fit));
}

/* Of a model that is evaluated, or timed. */
static void put_use(json_t **to, const hpct_train_identity_of *of)
{
    set_value(to, "data", describe_data(of->validation));
    if (of->validation != NULL)
        put_scale(to, of->validation);
    put_model(to, of->model);
    if (of->strategy == NULL)
        return;
    set_value(to, "global batch", json_integer(of->global_batch));
    set_value(to, "steps", json_integer((json_int_t) of->steps));
    set_value(to, "strategy", describe_strategy(of->strategy));
}

/* Without moving statistics: after hpct_fit each rank may have those of its own samples. */
static hpct_status put_weights(json_t **to, const hpct_model *model)
{
    uint64_t hash;
    HPCT_TRY(hpct_run_state_hash_weights(model, &hash));
    set_value(to, "hash of the weights", hash_text(hash));
    return HPCT_OK;
}

hpct_status hpct_train_identity_describe(json_t **out, const hpct_train_identity_of *of)
{
    hpct_status status = HPCT_OK;
    *out = json_object();
    if (of->train != NULL)
        put_fit(out, of);
    else
        put_use(out, of);
    if (of->weights)
        status = put_weights(out, of->model);
    return status != HPCT_OK || *out != NULL ? status : hpct_fail_memory(0);
}
