/* Which files a RUN has, and what follows from all of them. */
#include "agent/report/run.h"

#include "agent/report/readers.h"
#include "agent/results/status_file.h"
#include "base/below.h"
#include "base/file.h"
#include "base/hint.h"
#include "base/output.h"
#include "base/sort.h"
#include "base/status.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MOST_BYTES ((size_t) 1 << 29) /* of one file */

/* In the order in which they are read: the state says whether a cut line is one still written, and
 * pace.jsonl's ranks have the nodes of run.json. */
static const struct source {
    const char *name;
    bool (*read)(hpct_report_run *run, const char *text, size_t size);
    const char *what;
} sources[] = {
    {"run.json", hpct_report_read_run_json, "a run.json of hpc-train, or is cut"},
    {"status.json", hpct_report_read_status, "a status.json of hpc-train, or is cut"},
    {"history.csv", hpct_report_read_history,
     "a history.csv: its first line has no 'epoch' beside 'loss' or 'accuracy'"},
    {"metrics.jsonl", hpct_report_read_steps, "a metrics.jsonl: no line has epoch, step and loss"},
    {"pace.jsonl", hpct_report_read_pace, "a pace.jsonl: no line has a step's times of all ranks"},
};
#define NUM_SOURCES (sizeof sources / sizeof *sources)

void hpct_report_remark(hpct_report_run *run, const char *format, ...)
{
    va_list args;
    const char **remarks =
        hpct_report_grow(run->pool, run->remarks, run->num_remarks, sizeof *remarks);
    if (remarks == NULL)
        return;
    va_start(args, format);
    run->remarks = remarks;
    run->remarks[run->num_remarks++] = hpct_report_print_list(run->pool, format, args);
    va_end(args);
}

void hpct_report_run_clear(hpct_report_run *run, hpct_report_pool *pool)
{
    *run = (hpct_report_run){.pool = pool, .seed = -1};
    double *const numbers[] = {&run->started,           &run->ended,         &run->learning_rate,
                               &run->start_seconds,     &run->train_seconds, &run->epoch_seconds,
                               &run->images_per_second, &run->step_ms,       &run->peak_rss_mb};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        *numbers[i] = NAN;
    hpct_report_begin_metrics(run);
}

bool hpct_report_run_has_file(const char *folder, const char *path)
{
    char name[PATH_MAX + 32];
    for (size_t i = 0; i < NUM_SOURCES; i++) {
        snprintf(name, sizeof name, "%s/%s", folder, sources[i].name);
        if (hpct_output_same(name, path))
            return true;
    }
    return false;
}

mode_t hpct_report_run_readers(const char *path, gid_t group)
{
    struct stat info;
    char name[PATH_MAX + 32];
    mode_t mode = 0077;
    if (stat(path, &info) == 0 && !S_ISDIR(info.st_mode))
        return hpct_report_readers(path, group);
    for (size_t i = 0; i < NUM_SOURCES; i++) {
        snprintf(name, sizeof name, "%s/%s", path, sources[i].name);
        if (stat(name, &info) == 0)
            mode &= hpct_report_readers(name, group);
    }
    return mode;
}

/* ---- one file ---- */

/* False if it is not there, or nothing of it can be used; that is remarked. */
static bool read_source(hpct_report_run *run, const struct source *source, bool *there)
{
    char *text;
    size_t size;
    struct stat info;
    const char *path = hpct_report_print(run->pool, "%s/%s", run->path, source->name);
    if (stat(path, &info) != 0)
        return false;
    *there = true;
    if (hpct_file_read(&text, &size, path, MOST_BYTES) != HPCT_OK) {
        hpct_report_remark(run, "%s", hpct_last_error());
        return false;
    }
    bool used = source->read(run, text, size);
    free(text);
    if (!used && size > 0)
        hpct_report_remark(run, "%s is not %s", source->name, source->what);
    else if (!used && !hpct_report_run_is_live(run))
        hpct_report_remark(run, "%s is empty", source->name);
    return used;
}

#define MOST_HINTED 8

/* "; below it there are 2 runs: hpc-train report runs/n1 runs/n2", or "" */
static const char *hint_below(hpct_report_run *run)
{
    const char *names[NUM_SOURCES];
    for (size_t i = 0; i < NUM_SOURCES; i++)
        names[i] = sources[i].name;
    hpct_below below = hpct_below_find(run->path, names, NUM_SOURCES);
    char *text = NULL;
    size_t size;
    FILE *out = below.num > 0 ? open_memstream(&text, &size) : NULL;
    if (out != NULL) {
        fprintf(out, "; below it there %s%s: hpc-train report",
                below.num == 1 ? "is one" : hpct_report_print(run->pool, "are %zu runs", below.num),
                below.num > MOST_HINTED ? ", the first of them" : "");
        for (size_t i = 0; i < below.num && i < MOST_HINTED; i++) {
            fputc(' ', out);
            hpct_print_word(out, below.paths[i]);
        }
        fclose(out);
    }
    const char *hint = text != NULL ? hpct_report_print(run->pool, "%s", text) : "";
    free(text);
    hpct_below_free(&below);
    return hint;
}

static hpct_status read_folder(hpct_report_run *run)
{
    bool there = false, used = false;
    for (size_t i = 0; i < NUM_SOURCES; i++) {
        /* steps are drawn where there are no epochs to draw */
        if (sources[i].read != hpct_report_read_steps || run->num_points < 2)
            used |= read_source(run, &sources[i], &there);
    }
    if (!there)
        return hpct_fail(HPCT_ERR_NO_INPUT,
                         "%s has none of run.json, status.json, history.csv, metrics.jsonl and "
                         "pace.jsonl: give the folder of a run's --log-dir%s",
                         run->path, hint_below(run));
    if (!used)
        return hpct_fail(HPCT_ERR_DATA, "%s: nothing in it can be shown%s%s", run->path,
                         run->num_remarks > 0 ? ": " : "",
                         run->num_remarks > 0 ? run->remarks[0] : "");
    return HPCT_OK;
}

static hpct_status read_file(hpct_report_run *run)
{
    char *text;
    size_t size;
    HPCT_TRY(hpct_file_read(&text, &size, run->path, MOST_BYTES));
    bool used =
        hpct_report_read_summary(run, text, size) || hpct_report_read_run_json(run, text, size);
    free(text);
    if (!used)
        return hpct_fail(HPCT_ERR_DATA,
                         "%s is neither a folder nor a file of --summary-json, or is cut",
                         run->path);
    return HPCT_OK;
}

/* ---- what follows ---- */

static void give_epochs_times(hpct_report_run *run)
{
    for (size_t i = 0; i < run->num_points; i++) {
        int64_t epoch = run->points[i].epoch;
        if (epoch > 0 && epoch <= (int64_t) run->num_epoch_times)
            run->points[i].seconds = run->epoch_times[epoch - 1];
    }
}

static void set_if_unknown(double *to, double value)
{
    if (isnan(*to))
        *to = value;
}

static void say_not_finite(hpct_report_run *run, const hpct_report_point *points, size_t count,
                           const char *what, bool by_step)
{
    size_t wrong = 0, first = 0;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(hpct_report_value(&points[i], HPCT_REPORT_LOSS)) && wrong++ == 0)
            first = i;
    }
    if (wrong > 0)
        hpct_report_remark(run,
                           "the loss is not finite in %zu %s%s, first in %s %lld: gaps in its line",
                           wrong, what, wrong == 1 ? "" : "s", what,
                           (long long) (by_step ? points[first].step : points[first].epoch));
}

static void conclude(hpct_report_run *run)
{
    give_epochs_times(run);
    if (run->num_points > 0) {
        const hpct_report_point *last = &run->points[run->num_points - 1];
        for (size_t i = 0; i < 2 * run->num_metrics; i++)
            set_if_unknown(hpct_report_last(run, i), hpct_report_value(last, i));
        set_if_unknown(&run->learning_rate, last->learning_rate);
    }
    if (run->has_status && run->num_starts > 0 && hpct_report_run_is_live(run))
        set_if_unknown(&run->starts[run->num_starts - 1].seconds,
                       (double) run->status.time - run->starts[run->num_starts - 1].time);
    if (run->has_status) {
        const hpct_results_live_state *state = &run->status.state;
        set_if_unknown(&run->images_per_second, state->images_per_second);
        set_if_unknown(&run->step_ms, state->step_ms);
        set_if_unknown(hpct_report_last(run, HPCT_REPORT_LOSS), state->loss);
        set_if_unknown(hpct_report_last(run, HPCT_REPORT_ACCURACY), state->accuracy);
    }
    if (run->workers == 0)
        run->workers = (int64_t) run->num_ranks;
    say_not_finite(run, run->points, run->num_points, "epoch", false);
    if (run->num_points < 2)
        say_not_finite(run, run->steps, run->num_steps, "step", true);
}

/* The last part of the path, without slashes at its end. */
static const char *last_part(hpct_report_pool *pool, const char *path)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    size_t begin = length;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    return hpct_report_print(pool, "%.*s", (int) (length - begin), path + begin);
}

hpct_status hpct_report_run_read(hpct_report_run *run, hpct_report_pool *pool, const char *path)
{
    struct stat info;
    hpct_report_run_clear(run, pool);
    if (pool->failed)
        return hpct_fail_memory(0);
    run->path = path;
    run->name = last_part(pool, path);
    if (stat(path, &info) != 0)
        return hpct_fail(HPCT_ERR_NO_INPUT,
                         "%s: there is no such file or folder: give the folder of a run's "
                         "--log-dir, or its --summary-json",
                         path);
    HPCT_TRY(S_ISDIR(info.st_mode) ? read_folder(run) : read_file(run));
    conclude(run);
    return pool->failed ? hpct_fail_memory(0) : HPCT_OK;
}

hpct_status hpct_report_run_read_status(hpct_report_run *run, const char *path)
{
    *run = (hpct_report_run){.path = path};
    hpct_status status = hpct_results_status_file_read(&run->status, path);
    run->has_status = status == HPCT_OK;
    return status;
}

void hpct_report_run_free(hpct_report_run *run)
{
    hpct_results_live_report_free(&run->status);
}

/* ---- questions ---- */

bool hpct_report_run_is_live(const hpct_report_run *run)
{
    return run->state != NULL && strcmp(run->state, "running") == 0;
}

bool hpct_report_run_may_go_on(const hpct_report_run *run)
{
    return run->state != NULL && strcmp(run->state, "finished") != 0;
}

double hpct_report_run_seconds(const hpct_report_run *run)
{
    double told = run->start_seconds + run->train_seconds, sum = NAN;
    for (size_t i = 0; i < run->num_starts; i++) {
        double one = run->starts[i].seconds;
        sum = isnan(sum) ? one : isnan(one) ? sum : sum + one;
    }
    return isnan(sum) ? told : sum;
}

double hpct_report_rank_own(const hpct_report_rank *rank)
{
    return rank->step_ms - rank->part_ms[HPCT_REPORT_WAIT];
}

double hpct_report_median_own(const hpct_report_run *run)
{
    size_t count = 0;
    double *own = hpct_report_take(run->pool, run->num_ranks, sizeof *own);
    for (size_t i = 0; i < run->num_ranks && own != NULL; i++) {
        if (run->ranks[i].steps > 0)
            own[count++] = hpct_report_rank_own(&run->ranks[i]);
    }
    if (count == 0)
        return NAN;
    hpct_sort_numbers(own, count);
    count -= count > 1; /* the slowest is compared with the others */
    return (own[count / 2] + own[(count - 1) / 2]) / 2;
}
