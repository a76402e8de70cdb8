/* run.json, status.json and --summary-json. */
#include "agent/report/read_json.h"

#include "agent/results/metric.h"
#include "base/below.h"
#include "base/hint.h"
#include "base/sort.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_RANKS (1 << 20)
#define MOST_EPOCHS (1 << 20)

/* ---- members ---- */

double hpct_report_json_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : (double) NAN;
}

int64_t hpct_report_json_integer(const json_t *object, const char *key, int64_t missing)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) && json_integer_value(value) >= 0 ? json_integer_value(value)
                                                                    : missing;
}

const char *hpct_report_json_text(hpct_report_pool *pool, const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? hpct_report_print(pool, "%s", text) : NULL;
}

/* ---- lines ---- */

static json_t *parse_line(hpct_report_lines *lines, const char *begin, size_t size)
{
    json_t *object = json_loadb(begin, size, 0, NULL);
    if (json_is_object(object))
        return object;
    json_decref(object);
    lines->unread++;
    return NULL;
}

json_t *hpct_report_next_line(hpct_report_lines *lines)
{
    while (lines->at < lines->size) {
        const char *begin = lines->text + lines->at;
        const char *end = memchr(begin, '\n', lines->size - lines->at);
        size_t size = end != NULL ? (size_t) (end - begin) : lines->size - lines->at;
        lines->at += size + 1;
        json_t *object = size > 0 ? parse_line(lines, begin, size) : NULL;
        if (object != NULL)
            return object;
    }
    return NULL;
}

json_t *hpct_report_previous_line(hpct_report_lines *lines)
{
    while (lines->at > 0) {
        size_t end = lines->at - (lines->text[lines->at - 1] == '\n'), begin = end;
        while (begin > 0 && lines->text[begin - 1] != '\n')
            begin--;
        lines->at = begin;
        json_t *object = end > begin ? parse_line(lines, lines->text + begin, end - begin) : NULL;
        if (object != NULL)
            return object;
    }
    return NULL;
}

bool hpct_report_drop_cut_line(hpct_report_lines *lines)
{
    size_t size = lines->size;
    while (size > 0 && lines->text[size - 1] != '\n')
        size--;
    bool cut = size < lines->size;
    if (cut) { /* the newline alone may be missing */
        json_t *object = json_loadb(lines->text + size, lines->size - size, 0, NULL);
        cut = !json_is_object(object);
        json_decref(object);
    }
    if (cut)
        lines->size = size;
    return cut;
}

/* ---- objects ---- */

#define INTEGER(run, object, name)                                                                 \
    (run)->name = hpct_report_json_integer(object, #name, (run)->name)

static void set_text(hpct_report_run *run, const char **to, const json_t *object, const char *key)
{
    const char *text = hpct_report_json_text(run->pool, object, key);
    if (text != NULL)
        *to = text;
}

static void set_number(double *to, const json_t *object, const char *key)
{
    double value = hpct_report_json_number(object, key);
    if (!isnan(value))
        *to = value;
}

/* What run.json and the summary both have. */
static void read_settings(hpct_report_run *run, const json_t *object)
{
    set_text(run, &run->model, object, "model");
    set_text(run, &run->strategy, object, "strategy");
    set_text(run, &run->device, object, "device");
    set_text(run, &run->precision, object, "precision");
    set_text(run, &run->optimizer, object, "optimizer");
    INTEGER(run, object, parameters);
    INTEGER(run, object, seed);
    INTEGER(run, object, global_batch);
    INTEGER(run, object, workers);
    INTEGER(run, object, replicas);
    INTEGER(run, object, threads);
    set_number(&run->learning_rate, object, "learning_rate");
}

/* Adds the times of epochs from `first` on; of the first one the rest may have been left, `part`.
 */
static void add_epoch_seconds(hpct_report_run *run, const json_t *array, int64_t first, bool part)
{
    for (int64_t i = 0; i < (int64_t) json_array_size(array) && first + i < MOST_EPOCHS; i++) {
        const json_t *value = json_array_get(array, (size_t) i);
        while (first + i >= (int64_t) run->num_epoch_times) {
            double *times =
                hpct_report_grow(run->pool, run->epoch_times, run->num_epoch_times, sizeof *times);
            if (times == NULL)
                return;
            run->epoch_times = times;
            run->epoch_times[run->num_epoch_times++] = NAN;
        }
        run->epoch_times[first + i] =
            json_is_number(value) && !(part && i == 0) ? json_number_value(value) : (double) NAN;
    }
}

static void find_median(hpct_report_run *run)
{
    size_t known = 0;
    double *sorted = hpct_report_take(run->pool, run->num_epoch_times, sizeof *sorted);
    for (size_t i = 0; i < run->num_epoch_times && sorted != NULL; i++) {
        if (!isnan(run->epoch_times[i]))
            sorted[known++] = run->epoch_times[i];
    }
    if (known == 0)
        return;
    hpct_sort_numbers(sorted, known);
    run->epoch_seconds = (sorted[known / 2] + sorted[(known - 1) / 2]) / 2;
}

static void read_metrics(hpct_report_run *run, const json_t *object)
{
    for (size_t i = 0; i < run->num_metrics; i++) {
        hpct_report_logged *m = &run->metrics[i];
        set_number(&m->last[0], object, m->name);
        set_number(&m->last[1], object,
                   hpct_report_print(run->pool, HPCT_RESULTS_METRIC_VAL "%s", m->name));
    }
}

static void read_summary(hpct_report_run *run, const json_t *object)
{
    read_settings(run, object);
    set_number(&run->start_seconds, object, "start_seconds");
    set_number(&run->train_seconds, object, "train_seconds");
    set_number(&run->images_per_second, object, "images_per_second");
    set_number(&run->step_ms, object, "step_ms");
    read_metrics(run, object);
    set_number(&run->peak_rss_mb, object, "peak_rss_mb");
    if (run->epochs == 0)
        INTEGER(run, object, epochs);
}

/* Of `bench --emulate` only speeds are known, in the time that was dilated. */
static void read_emulated(hpct_report_run *run, const json_t *object)
{
    double dilation = hpct_report_json_number(object, "dilation");
    if (!json_is_true(json_object_get(object, "emulated")))
        return;
    if (dilation > 0) {
        run->images_per_second *= dilation;
        run->step_ms /= dilation;
    }
    run->start_seconds = run->train_seconds = NAN;
    run->device = hpct_report_print(run->pool, "%s, emulated",
                                    run->device != NULL ? run->device : "computation");
}

bool hpct_report_read_summary(hpct_report_run *run, const char *text, size_t size)
{
    json_t *object = json_loadb(text, size, 0, NULL);
    bool is_one = json_is_string(json_object_get(object, "model")) &&
                  json_is_integer(json_object_get(object, "workers")) &&
                  json_object_get(object, "images_per_second") != NULL;
    if (is_one) {
        read_summary(run, object);
        read_emulated(run, object);
        add_epoch_seconds(run, json_object_get(object, "epoch_seconds"), 0, false);
        find_median(run);
    }
    run->is_summary |= is_one;
    json_decref(object);
    return is_one;
}

/* ---- run.json ---- */

static void read_command(hpct_report_run *run, const json_t *words)
{
    char *text = NULL;
    size_t size, i;
    const json_t *word;
    FILE *out = json_array_size(words) > 0 ? open_memstream(&text, &size) : NULL;
    if (out == NULL)
        return;
    json_array_foreach(words, i, word)
    {
        if (i > 0)
            fputc(' ', out);
        hpct_print_word(out, json_is_string(word) ? json_string_value(word) : "?");
    }
    if (fclose(out) == 0)
        run->command = hpct_report_print(run->pool, "%s", text);
    free(text);
}

static void note_node(hpct_report_run *run, const char *name, int64_t rank)
{
    while (rank >= 0 && rank < MOST_RANKS && (int64_t) run->num_node_of <= rank) {
        run->node_of = hpct_report_grow(run->pool, run->node_of, run->num_node_of, sizeof(char *));
        if (run->node_of == NULL) {
            run->num_node_of = 0;
            return;
        }
        run->node_of[run->num_node_of++] = NULL;
    }
    if (rank >= 0 && rank < MOST_RANKS)
        run->node_of[rank] = name;
}

static void read_nodes(hpct_report_run *run, const json_t *nodes)
{
    size_t i, k;
    const json_t *node, *rank;
    run->nodes = (int64_t) json_array_size(nodes);
    json_array_foreach(nodes, i, node)
    {
        const char *name = hpct_report_json_text(run->pool, node, "name");
        json_array_foreach(json_object_get(node, "ranks"), k, rank)
            note_node(run, name, json_is_integer(rank) ? json_integer_value(rank) : -1);
    }
}

/* "oneDNN 3.1.0, Open MPI v4.1.4" */
static void read_libraries(hpct_report_run *run, json_t *libraries)
{
    const char *name;
    json_t *version;
    json_object_foreach (libraries, name, version) {
        const char *before = run->libraries;
        const char *text = json_is_string(version) ? json_string_value(version) : "";
        /* MPI: "Open MPI v4.1.4" names itself */
        bool named = strpbrk(text, "0123456789") != text && strchr(text, ' ') != NULL;
        run->libraries = hpct_report_print(run->pool, "%s%s%s%s%s", before != NULL ? before : "",
                                           before != NULL ? ", " : "", named ? "" : name,
                                           named ? "" : " ", text);
    }
}

/* `ends` has how it ended, and `summary` what it did: of the last start run.json itself. */
static void read_start(hpct_report_run *run, const json_t *start, const json_t *ends,
                       const json_t *summary)
{
    hpct_report_start *s = &run->starts[run->num_starts++];
    double train = hpct_report_json_number(summary, "train_seconds");
    *s = (hpct_report_start){
        .time = hpct_report_json_number(start, "time"),
        .seconds = hpct_report_json_number(summary, "start_seconds") + train,
        .images_per_second = hpct_report_json_number(summary, "images_per_second"),
        .epoch = hpct_report_json_integer(start, "epoch", -1),
        .step = hpct_report_json_integer(start, "step", -1),
        .steps = hpct_report_json_integer(summary, "steps", -1),
        .workers = hpct_report_json_integer(ends, "workers", -1),
        .state = hpct_report_json_text(run->pool, ends, "state"),
        .why = hpct_report_json_text(run->pool, ends, "why"),
    };
    if (isnan(s->seconds) || train <= 0) /* it was killed, or failed */
        s->seconds = hpct_report_json_number(ends, "ended") - s->time;
    if (s->epoch >= 0)
        add_epoch_seconds(run, json_object_get(summary, "epoch_seconds"), s->epoch, s->step > 0);
}

static void read_starts(hpct_report_run *run, const json_t *object)
{
    const json_t *starts = json_object_get(object, "starts");
    size_t count = json_array_size(starts);
    run->starts = hpct_report_take(run->pool, count, sizeof *run->starts);
    if (run->starts == NULL || count == 0)
        return;
    for (size_t i = 0; i < count; i++) {
        const json_t *start = json_array_get(starts, i);
        bool last = i + 1 == count;
        read_start(run, start, last ? object : start,
                   last ? json_object_get(object, "summary") : start);
        set_text(run, &run->host, start, "host");
        set_text(run, &run->job, start, "job");
    }
    set_number(&run->started, json_array_get(starts, 0), "time");
}

static void read_run(hpct_report_run *run, const json_t *object)
{
    read_settings(run, object);
    INTEGER(run, object, epochs);
    INTEGER(run, object, steps_per_epoch);
    INTEGER(run, object, samples);
    set_text(run, &run->version, object, "version");
    set_text(run, &run->data, object, "data");
    set_text(run, &run->checkpoint_dir, object, "checkpoint_dir");
    set_text(run, &run->state, object, "state");
    set_text(run, &run->why, object, "why");
    set_number(&run->ended, object, "ended");
    read_command(run, json_object_get(object, "command"));
    read_nodes(run, json_object_get(object, "nodes"));
    read_libraries(run, json_object_get(object, "libraries"));
    if (json_is_object(json_object_get(object, "summary")))
        read_summary(run, json_object_get(object, "summary"));
    read_starts(run, object);
    find_median(run);
}

bool hpct_report_read_run_json(hpct_report_run *run, const char *text, size_t size)
{
    json_t *object = json_loadb(text, size, 0, NULL);
    bool is_one = json_integer_value(json_object_get(object, "format")) == 1 &&
                  json_is_string(json_object_get(object, "model"));
    if (is_one)
        read_run(run, object);
    json_decref(object);
    return is_one;
}

/* ---- status.json ---- */

bool hpct_report_read_status(hpct_report_run *run, const char *text, size_t size)
{
    const hpct_results_live_report *s = &run->status;
    run->has_status = hpct_results_live_report_parse(&run->status, text, size) == HPCT_OK;
    if (!run->has_status)
        return false;
    if (run->model == NULL)
        run->model = s->model;
    if (run->workers == 0)
        run->workers = s->workers;
    bool ended = s->how != HPCT_RESULTS_LIVE_RUNNING;
    /* run.json may be missing, or older: a run that was killed cannot write its end */
    if (run->state == NULL || (ended && strcmp(run->state, "running") == 0))
        run->state = hpct_results_live_word(s->how);
    return true;
}
