/* status.json, formatted and parsed. What is read may be any file. */
#include "agent/results/live_report.h"

#include "agent/results/json_file.h"
#include "base/status.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT 1
#define MOST_SECONDS (INT64_C(1) << 53) /* that a double holds */

static const char *const words[] = {[HPCT_RESULTS_LIVE_RUNNING] = "running",
                                    [HPCT_RESULTS_LIVE_FINISHED] = "finished",
                                    [HPCT_RESULTS_LIVE_STOPPED] = "stopped",
                                    [HPCT_RESULTS_LIVE_FAILED] = "failed"};
#define NUM_WORDS ((int) (sizeof words / sizeof words[0]))

const char *hpct_results_live_word(hpct_results_live_how how)
{
    return words[how];
}

/* The numbers of the state that may be null, in the order in which they are written. */
static const struct number {
    const char *key;
    size_t at;
} numbers[] = {
    {"loss", offsetof(hpct_results_live_state, loss)},
    {"accuracy", offsetof(hpct_results_live_state, accuracy)},
    {"val_loss", offsetof(hpct_results_live_state, val_loss)},
    {"val_accuracy", offsetof(hpct_results_live_state, val_accuracy)},
    {"learning_rate", offsetof(hpct_results_live_state, learning_rate)},
    {"step_ms", offsetof(hpct_results_live_state, step_ms)},
    {"images_per_second", offsetof(hpct_results_live_state, images_per_second)},
    {"seconds_left", offsetof(hpct_results_live_state, seconds_left)},
};
static const struct number of_rank[] = {
    {"step_ms", offsetof(hpct_results_live_rank, step_ms)},
    {"wait_ms", offsetof(hpct_results_live_rank, wait_ms)},
    {"input_ms", offsetof(hpct_results_live_rank, input_ms)},
    {"memory_mb", offsetof(hpct_results_live_rank, memory_mb)},
    {"gpu", offsetof(hpct_results_live_rank, gpu)},
};
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static double *member(void *of, const struct number *number)
{
    return (double *) (void *) ((char *) of + number->at);
}

static double value_of(const void *of, const struct number *number)
{
    return *(const double *) (const void *) ((const char *) of + number->at);
}

static bool is_member(const hpct_results_metric *m)
{
    return m->at == offsetof(hpct_metrics, loss) || m->at == offsetof(hpct_metrics, accuracy);
}

void hpct_results_live_add_metrics(hpct_results_live_state *s,
                                   const hpct_results_metric_choice *choice,
                                   const hpct_metrics *train, const hpct_metrics *validation)
{
    for (int val = 0; val < 2; val++) {
        bool known = !val || !isnan(validation->loss);
        HPCT_RESULTS_METRIC_EACH (m, choice, val) {
            if (is_member(m) || s->num_metrics == HPCT_RESULTS_LIVE_METRICS)
                continue;
            hpct_results_live_metric *to = &s->metrics[s->num_metrics++];
            snprintf(to->name, sizeof to->name, "%s", hpct_results_metric_title(m, val));
            to->value = known ? hpct_results_metric_get(m, val ? validation : train) : NAN;
        }
    }
}

/* ---- formatting ---- */

static json_t *seconds_or_null(double value)
{
    return value >= 0 && value <= (double) MOST_SECONDS ? json_integer((json_int_t) value)
                                                        : json_null();
}

/* 0, or -1 if out of memory. */
static int set_numbers(json_t *object, const struct number *all, size_t count, const void *of)
{
    int failed = 0;
    for (size_t i = 0; i < count; i++)
        failed |= json_object_set_new(object, all[i].key,
                                      hpct_results_json_number(value_of(of, &all[i])));
    return failed;
}

static json_t *format_losses(const hpct_results_live_report *r)
{
    json_t *losses = json_array();
    for (int i = 0; i < r->num_losses; i++)
        json_array_append_new(losses, hpct_results_json_number(r->losses[i]));
    return losses;
}

static json_t *format_metrics(const hpct_results_live_state *s)
{
    json_t *metrics = json_object();
    for (int i = 0; i < s->num_metrics; i++)
        json_object_set_new(metrics, s->metrics[i].name,
                            hpct_results_json_number(s->metrics[i].value));
    return metrics;
}

static json_t *format_ranks(const hpct_results_live_report *r)
{
    json_t *ranks = json_array();
    for (int i = 0; i < r->num_ranks; i++) {
        json_t *one = json_pack("{si ss}", "rank", r->ranks[i].rank, "node", r->ranks[i].node);
        set_numbers(one, of_rank, COUNT(of_rank), &r->ranks[i]);
        json_array_append_new(ranks, one);
    }
    return ranks;
}

hpct_status hpct_results_live_report_format(char **out, const hpct_results_live_report *r)
{
    const hpct_results_live_state *s = &r->state;
    json_t *root =
        json_pack("{si sI ss ss? ss si si si sI sI}", "format", FORMAT, "time",
                  (json_int_t) r->time, "state", hpct_results_live_word(r->how), "job", r->job,
                  "model", r->model, "workers", r->workers, "epoch", s->epoch, "epochs", s->epochs,
                  "step", (json_int_t) s->step, "steps", (json_int_t) s->steps);
    int failed = set_numbers(root, numbers, COUNT(numbers), s);
    if (s->num_metrics > 0)
        failed |= json_object_set_new(root, "metrics", format_metrics(s));
    failed |= json_object_set_new(root, "job_ends", seconds_or_null(s->job_ends));
    failed |= json_object_set_new(root, "losses", format_losses(r));
    failed |= json_object_set_new(root, "ranks", format_ranks(r));
    *out = failed == 0 ? json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(root);
    return *out != NULL ? HPCT_OK : hpct_fail_memory(0);
}

/* ---- parsing ---- */

static hpct_status bad(const char *key, const char *is)
{
    return hpct_fail(HPCT_ERR_DATA, "its \"%s\" %s", key, is);
}

static hpct_status get_int(int *out, const json_t *object, const char *key, int most)
{
    int64_t whole;
    HPCT_TRY(hpct_results_json_whole(&whole, object, key, 0, most));
    *out = (int) whole;
    return HPCT_OK;
}

/* A number, or null. */
static hpct_status get_real(double *out, const json_t *value, const char *key)
{
    *out = json_is_number(value) ? json_number_value(value) : NAN;
    return json_is_number(value) || json_is_null(value) ? HPCT_OK : bad(key, "is not a number");
}

static hpct_status get_numbers(void *of, const struct number *all, size_t count,
                               const json_t *object)
{
    for (size_t i = 0; i < count; i++)
        HPCT_TRY(get_real(member(of, &all[i]), json_object_get(object, all[i].key), all[i].key));
    return HPCT_OK;
}

static hpct_status get_text(char **out, const json_t *object, const char *key, bool optional)
{
    const json_t *value = json_object_get(object, key);
    if (optional && json_is_null(value))
        return HPCT_OK;
    if (!json_is_string(value))
        return bad(key, "is not text");
    *out = strdup(json_string_value(value));
    return *out != NULL ? HPCT_OK : hpct_fail_memory(0);
}

static hpct_status get_how(hpct_results_live_how *out, const json_t *root)
{
    const char *word = json_string_value(json_object_get(root, "state"));
    for (int i = 0; i < NUM_WORDS; i++) {
        if (word != NULL && strcmp(word, words[i]) == 0) {
            *out = (hpct_results_live_how) i;
            return HPCT_OK;
        }
    }
    return bad("state", "is none of running, finished, stopped, failed");
}

/* Optional: most runs log no others. */
static hpct_status get_metrics(hpct_results_live_state *s, json_t *metrics)
{
    const char *name;
    json_t *value;
    if (metrics == NULL)
        return HPCT_OK;
    if (!json_is_object(metrics) || json_object_size(metrics) > HPCT_RESULTS_LIVE_METRICS)
        return bad("metrics", "are not numbers by name, or too many");
    json_object_foreach (metrics, name, value) {
        hpct_results_live_metric *m = &s->metrics[s->num_metrics++];
        if (strlen(name) >= sizeof m->name)
            return bad("metrics", "have a name that is too long");
        strcpy(m->name, name);
        HPCT_TRY(get_real(&m->value, value, "metrics"));
    }
    return HPCT_OK;
}

static hpct_status get_state(hpct_results_live_state *s, const json_t *root)
{
    HPCT_TRY(get_int(&s->epochs, root, "epochs", INT_MAX));
    HPCT_TRY(get_int(&s->epoch, root, "epoch", s->epochs));
    HPCT_TRY(hpct_results_json_whole(&s->steps, root, "steps", 0, INT64_MAX));
    HPCT_TRY(hpct_results_json_whole(&s->step, root, "step", 0, s->steps));
    HPCT_TRY(get_numbers(s, numbers, COUNT(numbers), root));
    HPCT_TRY(get_metrics(s, json_object_get(root, "metrics")));
    s->step_loss = NAN;
    int64_t ends = 0;
    bool ending = !json_is_null(json_object_get(root, "job_ends"));
    if (ending)
        HPCT_TRY(hpct_results_json_whole(&ends, root, "job_ends", 0, MOST_SECONDS));
    s->job_ends = ending ? (double) ends : NAN;
    return HPCT_OK;
}

static hpct_status get_losses(hpct_results_live_report *out, const json_t *losses)
{
    size_t count = json_array_size(losses);
    if (!json_is_array(losses) || count > HPCT_RESULTS_LIVE_LOSSES)
        return bad("losses", "are missing or too many");
    for (; out->num_losses < (int) count; out->num_losses++)
        HPCT_TRY(get_real(&out->losses[out->num_losses],
                          json_array_get(losses, (size_t) out->num_losses), "losses"));
    return HPCT_OK;
}

static hpct_status get_rank(hpct_results_live_rank *rank, const json_t *value)
{
    if (!json_is_object(value))
        return bad("ranks", "are not objects");
    HPCT_TRY(get_int(&rank->rank, value, "rank", HPCT_RESULTS_LIVE_MOST_RANKS - 1));
    HPCT_TRY(get_numbers(rank, of_rank, COUNT(of_rank), value));
    return get_text(&rank->node, value, "node", false);
}

static hpct_status get_ranks(hpct_results_live_report *out, const json_t *ranks)
{
    size_t count = json_array_size(ranks);
    if (!json_is_array(ranks) || count > HPCT_RESULTS_LIVE_MOST_RANKS)
        return bad("ranks", "are missing or too many");
    out->ranks = calloc(count + 1, sizeof *out->ranks);
    if (out->ranks == NULL)
        return hpct_fail_memory(count * sizeof *out->ranks);
    out->num_ranks = (int) count; /* also of those that are not read yet: to be freed */
    for (size_t i = 0; i < count; i++)
        HPCT_TRY(get_rank(&out->ranks[i], json_array_get(ranks, i)));
    return HPCT_OK;
}

static hpct_status parse(hpct_results_live_report *out, const json_t *root)
{
    if (!json_is_object(root) || !json_is_integer(json_object_get(root, "format")))
        return hpct_fail(HPCT_ERR_DATA, "it is not the state of a run");
    if (json_integer_value(json_object_get(root, "format")) != FORMAT)
        return hpct_fail(HPCT_ERR_DATA,
                         "its format is not %d: it was written by another version of hpc-train",
                         FORMAT);
    HPCT_TRY(get_how(&out->how, root));
    HPCT_TRY(hpct_results_json_whole(&out->time, root, "time", 0, INT64_MAX));
    HPCT_TRY(get_text(&out->job, root, "job", true));
    HPCT_TRY(get_text(&out->model, root, "model", false));
    HPCT_TRY(get_int(&out->workers, root, "workers", INT_MAX));
    HPCT_TRY(get_state(&out->state, root));
    HPCT_TRY(get_losses(out, json_object_get(root, "losses")));
    return get_ranks(out, json_object_get(root, "ranks"));
}

hpct_status hpct_results_live_report_parse(hpct_results_live_report *out, const char *text,
                                           size_t length)
{
    json_error_t error;
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    *out = (hpct_results_live_report){.how = HPCT_RESULTS_LIVE_RUNNING};
    if (root == NULL)
        return hpct_fail(HPCT_ERR_DATA, "it is not JSON: line %d: %s", error.line, error.text);
    hpct_status status = parse(out, root);
    json_decref(root);
    if (status != HPCT_OK)
        hpct_results_live_report_free(out);
    return status;
}

void hpct_results_live_report_free(hpct_results_live_report *r)
{
    for (int i = 0; i < r->num_ranks; i++)
        free(r->ranks[i].node);
    free(r->ranks);
    free(r->job);
    free(r->model);
    *r = (hpct_results_live_report){.how = HPCT_RESULTS_LIVE_RUNNING};
}
