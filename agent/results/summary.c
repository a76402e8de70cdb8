/* --summary-json. */
#include "agent/results/summary.h"

#include "agent/rank/stop.h"
#include "agent/results/json_file.h"

#include <math.h>
#include <stdio.h>

static json_t *servers_to_json(const hpct_results_ps_summary *s)
{
    return json_pack(
        "{s:i s:b s:i s:o s:i s:i s:I s:I s:I s:o s:I s:I}", "servers", s->servers, "synchronous",
        (int) s->synchronous, "backup_workers", s->backup_workers, "max_staleness",
        s->max_staleness < 0 ? json_null() : json_integer(s->max_staleness), "workers_joined",
        s->workers_joined, "workers_lost", s->workers_lost, "gradients", (json_int_t) s->gradients,
        "late", (json_int_t) s->late, "given_again", (json_int_t) s->given_again, "staleness_mean",
        hpct_results_json_number(s->staleness_mean), "staleness_largest",
        (json_int_t) s->staleness_max, "held", (json_int_t) s->held);
}

/* A folder's name need not be UTF-8. */
static json_t *classes_to_json(const hpct_results_summary *s)
{
    json_t *names = s->num_classes > 0 ? json_array() : json_null();
    for (int i = 0; i < s->num_classes; i++) {
        json_t *name = json_string(s->classes[i]);
        json_array_append_new(names, name != NULL ? name : json_integer(i));
    }
    return names;
}

static json_t *run_to_json(const hpct_results_summary *s)
{
    json_t *epoch_seconds = json_array();
    for (int i = 0; i < s->epochs; i++)
        json_array_append_new(epoch_seconds, hpct_results_json_number(s->epoch_seconds[i]));
    return json_pack(
        "{s:s s:s s:s s:s s:i s:i s:i s:i s:i s:I s:I s:I s:o s:o s:o s:o s:o s:o s:o s:o s:o s:o "
        "s:o s:I s:o s:s s:o s:o s:o s:b s:o s:o s:o s:o}",
        "model", s->model, "strategy", s->strategy, "device", s->device, "precision",
        hpct_precision_policy(s->precision), "workers", s->workers, "replicas", s->replicas,
        "threads", s->threads, "global_batch", s->global_batch, "epochs", s->epochs, "steps",
        (json_int_t) s->steps, "parameters", (json_int_t) s->parameters, "seed",
        (json_int_t) s->seed, "start_seconds", hpct_results_json_number(s->start_seconds),
        "train_seconds", hpct_results_json_number(s->train_seconds), "epoch_seconds", epoch_seconds,
        "input_wait_seconds", hpct_results_json_number(s->input_wait_seconds), "step_ms",
        hpct_results_json_number(s->step_ms), "images_per_second",
        hpct_results_json_number(s->images_per_second), "loss",
        hpct_results_json_number(s->train.loss), "accuracy",
        hpct_results_json_number(s->train.accuracy), "val_loss",
        hpct_results_json_number(s->validation.loss), "val_accuracy",
        hpct_results_json_number(s->validation.accuracy), "peak_rss_mb",
        hpct_results_json_number(s->peak_rss_mb), "bytes_sent_per_step",
        (json_int_t) s->bytes_sent_per_step, "stopped_by",
        s->signal == 0 ? json_null() : json_string(hpct_rank_stop_name(s->signal)), "optimizer",
        s->optimizer, "learning_rate", hpct_results_json_number(s->learning_rate),
        "top_k_categorical_accuracy",
        hpct_results_json_number(s->choice.top_k ? s->train.top_k_accuracy : NAN),
        "val_top_k_categorical_accuracy",
        hpct_results_json_number(s->choice.top_k ? s->validation.top_k_accuracy : NAN), "emulated",
        s->emulated, "dilation", hpct_results_json_number(s->emulated ? s->dilation : NAN),
        "predicted_mb", hpct_results_json_number(s->predicted_mb > 0 ? s->predicted_mb : NAN),
        "device_used_mb",
        hpct_results_json_number(s->device_used_mb != 0 ? s->device_used_mb : NAN), "classes",
        classes_to_json(s));
}

void hpct_results_summary_add_tally(json_t *object, const char *prefix,
                                    const hpct_results_tally *tally, char *const *names,
                                    int num_names)
{
    char key[64];
    hpct_metrics metrics;
    hpct_results_tally_get(tally, &metrics);
    for (const hpct_results_metric *m = hpct_results_metric_table; m->name != NULL; m++) {
        snprintf(key, sizeof key, "%s%s", prefix, m->name);
        if (hpct_results_tally_has(tally, m))
            json_object_set_new(object, key,
                                hpct_results_json_number(hpct_results_metric_get(m, &metrics)));
    }
    snprintf(key, sizeof key, "%sclasses", prefix);
    if (hpct_results_tally_classes(tally) > 0)
        json_object_set_new(object, key, hpct_results_tally_to_json(tally, names, num_names));
}

/* The metrics of numbers that need not be asked for. */
static void add_numbers(json_t *object, const hpct_results_summary *s)
{
    const hpct_results_metric_choice choice = {.validation = true, .numbers = true};
    for (int val = 0; val < 2; val++) {
        HPCT_RESULTS_METRIC_EACH (m, &choice, val) {
            if (m->kind == HPCT_RESULTS_METRIC_OF_NUMBERS)
                json_object_set_new(object, hpct_results_metric_title(m, val),
                                    hpct_results_json_number(hpct_results_metric_get(
                                        m, val ? &s->validation : &s->train)));
        }
    }
}

json_t *hpct_results_summary_to_json(const hpct_results_summary *summary)
{
    json_t *object = run_to_json(summary);
    if (object != NULL && summary->choice.numbers)
        add_numbers(object, summary);
    if (object != NULL && summary->parameter_server != NULL)
        json_object_set_new(object, "parameter_server", servers_to_json(summary->parameter_server));
    if (object != NULL && summary->tally != NULL)
        hpct_results_summary_add_tally(object, "val_", summary->tally, summary->classes,
                                       summary->num_classes);
    return object;
}

hpct_status hpct_results_summary_write(const hpct_results_summary *summary, const char *path)
{
    return hpct_results_json_write(hpct_results_summary_to_json(summary), path);
}
