/* Doubles keep all their digits (JSON_REAL_PRECISION(17) when dumped). */
#include "agent/train/place.h"

#include <math.h>
#include <stdio.h>

#define MOST_HALVINGS 1 /* --on-nan resume goes back once */

/* JSON has no NaN and no infinity: a step of fp16 may have had one. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static void read_number(double *value, const json_t *from, const char *key)
{
    const json_t *number = json_object_get(from, key);
    *value = json_is_number(number) ? json_number_value(number) : NAN;
}

static void read_best(hpct_best *best, const json_t *from)
{
    const char *monitor = json_string_value(json_object_get(from, "monitor"));
    read_number(&best->value, from, "value");
    best->has = monitor != NULL && isfinite(best->value);
    if (best->has)
        snprintf(best->monitor, sizeof best->monitor, "%s", monitor);
}

json_t *hpct_place_to_json(const hpct_place *p)
{
    json_t *best = p->best.has ? json_pack("{s:s,s:o}", "monitor", p->best.monitor, "value",
                                           number(p->best.value))
                               : json_null();
    return json_pack("{s:I,s:I,s:o,s:o,s:o,s:I,s:I,s:b,s:o,s:o,s:o,s:I,s:I,s:s,s:s,s:o,s:o,s:i}",
                     "epoch", (json_int_t) p->epoch, "step", (json_int_t) p->step, "loss",
                     number(p->loss), "correct", number(p->correct), "in_top_k",
                     number(p->in_top_k), "samples", (json_int_t) p->samples, "steps",
                     (json_int_t) p->steps, "has_loss", p->has_loss ? 1 : 0, "first_loss",
                     number(p->first_loss), "last_loss", number(p->last_loss), "mean_loss",
                     number(p->mean_loss), "csv_bytes", (json_int_t) p->logs.csv.bytes,
                     "steps_bytes", (json_int_t) p->logs.steps.bytes, "csv_end", p->logs.csv.end,
                     "steps_end", p->logs.steps.end, "best", best, "watch",
                     hpct_watch_to_json(&p->watch), "halvings", p->halvings);
}

bool hpct_place_from_json(const json_t *from, hpct_place *p)
{
    json_int_t epoch, step, samples, steps, csv_bytes, steps_bytes;
    const char *csv_end, *steps_end;
    int has_loss, halvings;
    if (json_unpack((json_t *) (uintptr_t) from, "{s:I,s:I,s:I,s:I,s:b,s:I,s:I,s:s,s:s,s:i}",
                    "epoch", &epoch, "step", &step, "samples", &samples, "steps", &steps,
                    "has_loss", &has_loss, "csv_bytes", &csv_bytes, "steps_bytes", &steps_bytes,
                    "csv_end", &csv_end, "steps_end", &steps_end, "halvings", &halvings) != 0 ||
        epoch < 0 || step < 0 || samples < 0 || steps < 0 || halvings < 0 ||
        halvings > MOST_HALVINGS)
        return false;
    p->epoch = epoch;
    p->step = step;
    p->samples = samples;
    p->steps = steps;
    p->has_loss = has_loss != 0;
    p->halvings = halvings;
    read_number(&p->loss, from, "loss");
    read_number(&p->correct, from, "correct");
    read_number(&p->in_top_k, from, "in_top_k");
    read_number(&p->first_loss, from, "first_loss");
    read_number(&p->last_loss, from, "last_loss");
    read_number(&p->mean_loss, from, "mean_loss");
    p->logs = (hpct_history_place){{.bytes = csv_bytes}, {.bytes = steps_bytes}};
    snprintf(p->logs.csv.end, sizeof p->logs.csv.end, "%s", csv_end);
    snprintf(p->logs.steps.end, sizeof p->logs.steps.end, "%s", steps_end);
    read_best(&p->best, json_object_get(from, "best"));
    p->watch = hpct_watch_from_json(json_object_get(from, "watch"));
    return true;
}
