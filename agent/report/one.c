/* The page of one run. */
#include "agent/report/content.h"
#include "agent/results/metric.h"

#include <math.h>
#include <string.h>
#include <time.h>

#define MOST_ROWS 60 /* of a table of steps */

const char *hpct_report_counted(hpct_report_pool *pool, int64_t count, const char *what)
{
    return hpct_report_print(pool, "%lld %s%s", (long long) count, what, count == 1 ? "" : "s");
}

const char *hpct_report_moment(hpct_report_pool *pool, double seconds)
{
    char text[64];
    struct tm local;
    time_t at = (time_t) seconds;
    if (!(seconds > 0 && seconds < 1e11) || localtime_r(&at, &local) == NULL ||
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local) == 0)
        return "?";
    return hpct_report_print(pool, "%s", text);
}

static const char *duration(hpct_report_pool *pool, double seconds)
{
    char text[HPCT_REPORT_NUMBER];
    if (!(seconds >= 0 && seconds < 1e11))
        return "?";
    if (seconds < 120)
        return hpct_report_print(pool, "%s s", hpct_report_amount(text, seconds));
    long long minutes = (long long) (seconds / 60 + 0.5);
    if (minutes < 120)
        return hpct_report_print(pool, "%lld min", minutes);
    return hpct_report_print(pool, "%lld h %lld min", minutes / 60, minutes % 60);
}

/* ---- the first lines ---- */

/* "Under way: epoch 3 of 8, step 120 of 469, some 12 min left; last news 2026-11-26 14:03:22." */
static const char *say_live(hpct_report_pool *pool, const hpct_report_run *run)
{
    const hpct_results_live_state *s = &run->status.state;
    if (!run->has_status)
        return "Under way, as run.json says.";
    const char *left = isnan(s->seconds_left) ? ""
                                              : hpct_report_print(pool, ", some %s left",
                                                                  duration(pool, s->seconds_left));
    return hpct_report_print(pool, "Under way: epoch %d of %d, step %lld of %lld%s; last news %s.",
                             s->epoch, s->epochs, (long long) s->step, (long long) s->steps, left,
                             hpct_report_moment(pool, (double) run->status.time));
}

static const char *say_state(hpct_report_pool *pool, const hpct_report_run *run)
{
    if (hpct_report_run_is_live(run))
        return say_live(pool, run);
    double seconds = hpct_report_run_seconds(run);
    const char *state = run->state == NULL                    ? NULL
                        : strcmp(run->state, "finished") == 0 ? "Finished"
                        : strcmp(run->state, "stopped") == 0  ? "Stopped"
                        : strcmp(run->state, "failed") == 0   ? "Failed"
                                                              : run->state;
    if (state == NULL && isnan(seconds))
        return run->num_points > 0 ? hpct_report_counted(pool, (int64_t) run->num_points, "epoch")
                                   : "";
    return hpct_report_print(pool, "%s%s%s%s%s%s.", state != NULL ? state : "Trained",
                             run->why != NULL ? ": " : "", run->why != NULL ? run->why : "",
                             isnan(seconds)  ? ""
                             : state != NULL ? " after "
                                             : " for ",
                             isnan(seconds) ? "" : duration(pool, seconds),
                             hpct_report_say_starts(pool, run));
}

/* A table's heads, and the only row below them. */
typedef struct facts {
    hpct_report_table *names, values;
} facts;

static void add_fact(facts *f, const char *name, const char *value)
{
    hpct_report_heads(f->names, (const char *const[]){name, NULL});
    hpct_report_cell(&f->values, value);
}

static const char *metric(hpct_report_pool *pool, double value)
{
    char text[HPCT_REPORT_NUMBER];
    return hpct_report_print(pool, "%s", hpct_report_metric(text, value));
}

static const char *amount(hpct_report_pool *pool, double value)
{
    char text[HPCT_REPORT_NUMBER];
    return hpct_report_print(pool, "%s", hpct_report_amount(text, value));
}

/* "val. loss" */
static const char *title_of(hpct_report_pool *pool, const hpct_report_run *run, size_t column)
{
    const char *name = run->metrics[column / 2].name;
    return column % 2 != 0 ? hpct_report_print(pool, "val. %s", name) : name;
}

/* Of training, then of validation. */
static void add_metric_facts(facts *f, hpct_report_pool *pool, const hpct_report_run *run,
                             size_t first, size_t end)
{
    size_t half = end - first;
    for (size_t i = 0; i < 2 * half; i++) {
        size_t column = hpct_report_column(first + i % half, i >= half);
        double value = *hpct_report_last(run, column);
        if (!isnan(value))
            add_fact(f, title_of(pool, run, column), metric(pool, value));
    }
}

static void add_facts(hpct_report_page *page, const hpct_report_run *run)
{
    facts f = {hpct_report_add_facts(page), {.pool = page->pool}};
    add_metric_facts(&f, page->pool, run, 0, 2); /* loss and accuracy */
    add_metric_facts(&f, page->pool, run, 2, run->num_metrics);
    if (!isnan(run->images_per_second))
        add_fact(&f, "images/s", amount(page->pool, run->images_per_second));
    if (!isnan(run->epoch_seconds))
        add_fact(&f, "s per epoch", amount(page->pool, run->epoch_seconds));
    if (run->workers > 0)
        add_fact(&f, run->workers == 1 ? "worker" : "workers",
                 hpct_report_print(page->pool, "%lld", (long long) run->workers));
    if (f.values.num_cells == 0)
        page->num_items--;
    for (size_t i = 0; i < f.values.num_cells; i++)
        hpct_report_cell(f.names, f.values.cells[i]);
}

/* ---- loss and accuracy ---- */

/* One column of all points. */
static double *column_of(hpct_report_pool *pool, const hpct_report_point *points, size_t count,
                         size_t column)
{
    double *values = hpct_report_take(pool, count, sizeof *values);
    for (size_t i = 0; i < count && values != NULL; i++)
        values[i] = hpct_report_value(&points[i], column);
    return values;
}

static double *places(hpct_report_pool *pool, const hpct_report_point *points, size_t count,
                      bool by_step)
{
    double *x = hpct_report_take(pool, count, sizeof *x);
    int64_t last = 0;
    for (size_t i = 0; i < count && x != NULL; i++) {
        last = by_step ? (i > 0 && points[i].step <= last ? last + 1 : points[i].step)
                       : points[i].epoch;
        x[i] = (double) last;
    }
    return x;
}

static void add_line(hpct_report_page *page, hpct_report_chart *chart, const char *name,
                     const hpct_report_point *points, size_t count, size_t column, bool by_step)
{
    double *y = column_of(page->pool, points, count, column);
    double *x = places(page->pool, points, count, by_step);
    if (x != NULL && y != NULL && hpct_report_has_points(y, count))
        hpct_report_add_series(page->pool, chart, name, x, y, count);
}

/* The columns of points that a table shows. */
typedef struct shown {
    const char **titles; /* the last is NULL */
    size_t *columns, count;
} shown;

/* The loss, and what any point has, from the metric `first` on; training, then validation. */
static shown find_shown(hpct_report_pool *pool, const hpct_report_run *run,
                        const hpct_report_point *points, size_t count, bool validated, size_t first)
{
    shown s = {.titles = hpct_report_take(pool, 2 * run->num_metrics + 1, sizeof *s.titles),
               .columns = hpct_report_take(pool, 2 * run->num_metrics, sizeof *s.columns)};
    for (int val = 0; val <= validated && s.titles != NULL && s.columns != NULL; val++) {
        for (size_t i = first; i < run->num_metrics; i++) {
            size_t column = hpct_report_column(i, val);
            if (i != 0 && !hpct_report_any_has(points, count, column))
                continue;
            s.titles[s.count] = title_of(pool, run, column);
            s.columns[s.count++] = column;
        }
    }
    return s;
}

static void add_shown(hpct_report_table *table, const shown *s, const hpct_report_point *point)
{
    for (size_t i = 0; i < s->count; i++)
        hpct_report_metric_cell(table, hpct_report_value(point, s->columns[i]));
}

static void add_epoch_table(hpct_report_page *page, const hpct_report_run *run)
{
    static const char *const before[] = {"epoch", NULL}, *const after[] = {"learning rate", NULL},
                             *const timed_after[] = {"learning rate", "seconds", NULL};
    bool timed = run->num_epoch_times > 0;
    shown s = find_shown(page->pool, run, run->points, run->num_points, run->validated, 0);
    hpct_report_table *table = hpct_report_add_table(page, "By epoch", true);
    hpct_report_heads(table, before);
    hpct_report_heads(table, s.titles);
    hpct_report_heads(table, timed ? timed_after : after);
    for (size_t i = 0; i < run->num_points; i++) {
        const hpct_report_point *p = &run->points[i];
        hpct_report_count_cell(table, p->epoch);
        add_shown(table, &s, p);
        hpct_report_print_cell(table, "%.6g", p->learning_rate);
        if (timed)
            hpct_report_amount_cell(table, p->seconds);
    }
}

static void add_step_table(hpct_report_page *page, const hpct_report_run *run)
{
    static const char *const heads[] = {"epoch", "step", NULL};
    shown s = find_shown(page->pool, run, run->steps, run->num_steps, false, 0);
    size_t each = (run->num_steps + MOST_ROWS - 1) / MOST_ROWS;
    hpct_report_table *table = hpct_report_add_table(
        page,
        each > 1 ? hpct_report_print(page->pool, "By step: one of %zu, and the last", each)
                 : "By step",
        true);
    hpct_report_heads(table, heads);
    hpct_report_heads(table, s.titles);
    for (size_t i = 0; i < run->num_steps; i++) {
        const hpct_report_point *p = &run->steps[i];
        if (i % each != 0 && i + 1 < run->num_steps)
            continue;
        hpct_report_count_cell(table, p->epoch);
        hpct_report_count_cell(table, p->step);
        add_shown(table, &s, p);
    }
}

const char *hpct_report_curve_name(const char *metric)
{
    return strcmp(metric, "loss") == 0       ? "Loss"
           : strcmp(metric, "accuracy") == 0 ? "Accuracy"
                                             : metric;
}

static void add_curve(hpct_report_page *page, const hpct_report_run *run, size_t metric,
                      bool by_step)
{
    const char *what = hpct_report_curve_name(run->metrics[metric].name);
    size_t count = by_step ? run->num_steps : run->num_points;
    const hpct_report_point *points = by_step ? run->steps : run->points;
    hpct_report_chart *chart = hpct_report_add_chart(
        page, hpct_report_print(page->pool, "%s by %s", what, by_step ? "step" : "epoch"),
        by_step ? "step" : "epoch", "");
    chart->whole_x = true;
    if (count > HPCT_REPORT_MOST_POINTS)
        chart->note = hpct_report_print(
            page->pool, "Each point is the mean of %zu %ss.",
            (count + HPCT_REPORT_MOST_POINTS - 1) / HPCT_REPORT_MOST_POINTS, chart->x_label);
    add_line(page, chart, "training", points, count, hpct_report_column(metric, false), by_step);
    if (!by_step)
        add_line(page, chart, "validation", points, count, hpct_report_column(metric, true), false);
    if (chart->num_series == 0)
        page->num_items--; /* nothing to draw */
}

static void add_curves(hpct_report_page *page, const hpct_report_run *run)
{
    bool by_step = run->num_points < 2 && run->num_steps > 1;
    if (run->num_points == 0 && run->num_steps == 0)
        return;
    hpct_report_add_words(page, HPCT_REPORT_HEADING, "Loss and accuracy");
    for (size_t i = 0; i < run->num_metrics; i++)
        add_curve(page, run, i, by_step);
    if (run->num_points > 0)
        add_epoch_table(page, run);
    if (run->num_points < 2 && run->num_steps > 0)
        add_step_table(page, run);
}

/* ---- settings ---- */

static void add_setting(hpct_report_table *table, const char *name, const char *value)
{
    if (value == NULL || *value == '\0')
        return;
    hpct_report_cell(table, name);
    hpct_report_cell(table, value);
}

static void add_count(hpct_report_table *table, const char *name, int64_t value)
{
    if (value > 0)
        add_setting(table, name, hpct_report_print(table->pool, "%lld", (long long) value));
}

/* "node0 (ranks 0 and 1), …"; of many nodes the first. */
static const char *say_nodes(hpct_report_page *page, const hpct_report_run *run)
{
    const char *text = "", *last = NULL;
    int named = 0;
    for (size_t i = 0; i < run->num_node_of && named < 16; i++) {
        const char *node = run->node_of[i];
        if (node == NULL || (last != NULL && strcmp(node, last) == 0))
            continue;
        text = hpct_report_print(page->pool, "%s%s%s", text, named++ > 0 ? ", " : "", node);
        last = node;
    }
    if (run->nodes > named && named > 0)
        text = hpct_report_print(page->pool, "%s, and %lld more", text,
                                 (long long) (run->nodes - named));
    return text;
}

static void add_where(hpct_report_page *page, hpct_report_table *table, const hpct_report_run *run)
{
    add_count(table, "workers", run->workers);
    add_count(table, "replicas per worker", run->replicas > 1 ? run->replicas : 0);
    add_count(table, "threads per worker", run->threads);
    if (run->nodes > 0)
        add_setting(table, hpct_report_counted(page->pool, run->nodes, "node"),
                    say_nodes(page, run));
    add_setting(table, "device", run->device);
    add_setting(table, "precision", run->precision);
    if (!isnan(run->peak_rss_mb))
        add_setting(table, "memory of the largest rank",
                    hpct_report_print(page->pool, "%s MB", amount(page->pool, run->peak_rss_mb)));
    add_setting(table, "hpc-train", run->version);
    add_setting(table, "libraries", run->libraries);
    add_setting(table, "job", run->job);
    if (!isnan(run->started))
        add_setting(table, "started", hpct_report_moment(page->pool, run->started));
    if (!isnan(run->ended))
        add_setting(table, "ended", hpct_report_moment(page->pool, run->ended));
}

static void add_settings(hpct_report_page *page, const hpct_report_run *run)
{
    static const char *const heads[] = {"setting", "value", NULL};
    hpct_report_add_words(page, HPCT_REPORT_HEADING, "Settings");
    hpct_report_table *table = hpct_report_add_table(page, NULL, false);
    table->is_text = true;
    hpct_report_heads(table, heads);
    add_setting(table, "folder or file", run->path);
    add_setting(table, "command", run->command);
    add_setting(table, "model", run->model);
    add_count(table, "parameters", run->parameters);
    add_setting(table, "data", run->data);
    add_count(table, "samples", run->samples);
    add_setting(table, "strategy", run->strategy);
    add_count(table, "global batch", run->global_batch);
    add_count(table, "epochs", run->epochs);
    add_count(table, "steps per epoch", run->steps_per_epoch);
    add_setting(table, "optimizer", run->optimizer);
    if (!isnan(run->learning_rate))
        add_setting(table, "learning rate",
                    hpct_report_print(page->pool, "%.6g", run->learning_rate));
    if (run->seed >= 0)
        add_setting(table, "seed", hpct_report_print(page->pool, "%lld", (long long) run->seed));
    add_setting(table, "checkpoints", run->checkpoint_dir);
    add_where(page, table, run);
}

/* ---- CSV: a row an epoch ---- */

static void make_csv(hpct_report_page *page, const hpct_report_run *run)
{
    static const char *const heads[] = {"epoch",        "loss",          "accuracy", "val_loss",
                                        "val_accuracy", "learning_rate", "seconds",  NULL};
    shown s = find_shown(page->pool, run, run->points, run->num_points, true, 2);
    hpct_report_table *csv = hpct_report_begin_csv(page, heads);
    csv->columns += s.count;
    for (size_t i = 0; i < s.count; i++) /* as in history.csv */
        hpct_report_print_cell(csv, "%s%s", s.columns[i] % 2 != 0 ? HPCT_RESULTS_METRIC_VAL : "",
                               run->metrics[s.columns[i] / 2].name);
    for (size_t i = 0; i < run->num_points; i++) {
        const hpct_report_point *p = &run->points[i];
        const double values[] = {hpct_report_value(p, HPCT_REPORT_LOSS),
                                 hpct_report_value(p, HPCT_REPORT_ACCURACY),
                                 hpct_report_value(p, HPCT_REPORT_VAL_LOSS),
                                 hpct_report_value(p, HPCT_REPORT_VAL_ACCURACY),
                                 p->learning_rate,
                                 p->seconds};
        hpct_report_count_cell(csv, p->epoch);
        for (size_t k = 0; k < sizeof values / sizeof *values; k++)
            hpct_report_exact_cell(csv, values[k]);
        for (size_t k = 0; k < s.count; k++)
            hpct_report_exact_cell(csv, hpct_report_value(p, s.columns[k]));
    }
}

void hpct_report_of_one(hpct_report_page *page, const hpct_report_run *run)
{
    page->title = run->model != NULL
                      ? hpct_report_print(page->pool, "%s: %s", run->name, run->model)
                      : run->name;
    page->subtitle = say_state(page->pool, run);
    page->may_change = hpct_report_run_may_go_on(run);
    for (size_t i = 0; i < run->num_remarks; i++)
        hpct_report_add_words(page, HPCT_REPORT_REMARK, run->remarks[i]);
    add_facts(page, run);
    hpct_report_of_starts(page, run);
    add_curves(page, run);
    if (run->num_ranks > 0)
        hpct_report_of_ranks(page, run);
    add_settings(page, run);
    if (run->num_points > 0)
        make_csv(page, run);
    else
        hpct_report_csv_of_runs(page, run, 1);
}
