/* Doubles keep all their digits (JSON_REAL_PRECISION(17) when dumped). */
#include "agent/train/place.h"

#include "agent/results/json_file.h"
#include "base/status.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

#define MOST_HALVINGS 1 /* --on-nan resume goes back once */
#define MOST                                                                                       \
    INT64_C(1000000000000000) /* steps, samples or bytes: nothing that is added overflows */

static void read_number(double *value, const json_t *from, const char *key)
{
    const json_t *number = json_object_get(from, key);
    *value = json_is_number(number) ? json_number_value(number) : NAN;
}

static void read_best(hpct_train_best *best, const json_t *from)
{
    const char *monitor = json_string_value(json_object_get(from, "monitor"));
    read_number(&best->value, from, "value");
    best->has = monitor != NULL && isfinite(best->value);
    if (best->has)
        snprintf(best->monitor, sizeof best->monitor, "%s", monitor);
}

json_t *hpct_train_place_to_json(const hpct_train_place *p)
{
    json_t *best = p->best.has ? json_pack("{s:s,s:o}", "monitor", p->best.monitor, "value",
                                           hpct_results_json_number(p->best.value))
                               : json_null();
    return json_pack(
        "{s:I,s:I,s:o,s:o,s:o,s:I,s:I,s:b,s:o,s:o,s:o,s:I,s:I,s:s,s:s,s:o,s:o,s:i}", "epoch",
        (json_int_t) p->epoch, "step", (json_int_t) p->step, "loss",
        hpct_results_json_number(p->loss), "correct", hpct_results_json_number(p->correct),
        "in_top_k", hpct_results_json_number(p->in_top_k), "samples", (json_int_t) p->samples,
        "steps", (json_int_t) p->steps, "has_loss", p->has_loss ? 1 : 0, "first_loss",
        hpct_results_json_number(p->first_loss), "last_loss",
        hpct_results_json_number(p->last_loss), "mean_loss", hpct_results_json_number(p->mean_loss),
        "csv_bytes", (json_int_t) p->logs.csv.bytes, "steps_bytes",
        (json_int_t) p->logs.steps.bytes, "csv_end", p->logs.csv.end, "steps_end",
        p->logs.steps.end, "best", best, "watch", hpct_train_watch_to_json(&p->watch), "halvings",
        p->halvings);
}

/* Where a log was, -1: there was none, and how it ended. */
static hpct_status get_log(hpct_results_history_end *out, const json_t *from, const char *bytes,
                           const char *end)
{
    const char *text = json_string_value(json_object_get(from, end));
    if (text == NULL)
        return hpct_fail(HPCT_ERR_DATA, "its \"%s\" is missing", end);
    HPCT_TRY(hpct_results_json_whole(&out->bytes, from, bytes, -1, MOST));
    snprintf(out->end, sizeof out->end, "%s", text);
    return HPCT_OK;
}

static bool is_possible(const hpct_train_watch *w)
{
    return w->best_epoch >= 0 && w->best_epoch < INT_MAX && w->wait >= 0 && w->wait <= INT_MAX &&
           w->cooldown >= 0 && w->cooldown <= INT_MAX;
}

static hpct_status get_watch(hpct_train_watch_notes *out, const json_t *from)
{
    *out = hpct_train_watch_from_json(from);
    if (is_possible(&out->stopping) && is_possible(&out->plateau) && is_possible(&out->target) &&
        isfinite(out->rate) && out->rate >= 0)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_DATA, "its \"watch\" has numbers that are out of range");
}

hpct_status hpct_train_place_from_json(const json_t *from, hpct_train_place *p)
{
    int64_t halvings;
    HPCT_TRY(hpct_results_json_whole(&p->epoch, from, "epoch", 0, INT_MAX - 1));
    HPCT_TRY(hpct_results_json_whole(&p->step, from, "step", 0, MOST));
    HPCT_TRY(hpct_results_json_whole(&p->samples, from, "samples", 0, MOST));
    HPCT_TRY(hpct_results_json_whole(&p->steps, from, "steps", 0, p->step));
    HPCT_TRY(hpct_results_json_whole(&halvings, from, "halvings", 0, MOST_HALVINGS));
    HPCT_TRY(get_log(&p->logs.csv, from, "csv_bytes", "csv_end"));
    HPCT_TRY(get_log(&p->logs.steps, from, "steps_bytes", "steps_end"));
    HPCT_TRY(get_watch(&p->watch, json_object_get(from, "watch")));
    p->halvings = (int) halvings;
    p->has_loss = json_is_true(json_object_get(from, "has_loss"));
    read_number(&p->loss, from, "loss");
    read_number(&p->correct, from, "correct");
    read_number(&p->in_top_k, from, "in_top_k");
    read_number(&p->first_loss, from, "first_loss");
    read_number(&p->last_loss, from, "last_loss");
    read_number(&p->mean_loss, from, "mean_loss");
    read_best(&p->best, json_object_get(from, "best"));
    return HPCT_OK;
}
