/* The page of one run. */
#include "agent/report/content.h"

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
    const hpct_report_status *s = &run->status;
    if (!s->there)
        return "Under way, as run.json says.";
    const char *left = isnan(s->seconds_left) ? ""
                                              : hpct_report_print(pool, ", some %s left",
                                                                  duration(pool, s->seconds_left));
    return hpct_report_print(pool,
                             "Under way: epoch %lld of %lld, step %lld of %lld%s; last news %s.",
                             (long long) s->epoch, (long long) s->epochs, (long long) s->step,
                             (long long) s->steps, left, hpct_report_moment(pool, s->time));
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

static void add_fact(const char **names, const char **values, size_t *count, const char *name,
                     const char *value)
{
    names[*count] = name;
    values[(*count)++] = value;
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

static void add_metric_facts(hpct_report_page *page, const char **names, const char **values,
                             size_t *count, const double *metrics, const char *prefix)
{
    for (int i = 0; i < HPCT_REPORT_METRICS; i++) {
        if (!isnan(metrics[i]))
            add_fact(names, values, count,
                     hpct_report_print(page->pool, "%s%s", prefix, hpct_report_metric_names[i]),
                     metric(page->pool, metrics[i]));
    }
}

static void add_facts(hpct_report_page *page, const hpct_report_run *run)
{
    const char *names[10 + 2 * HPCT_REPORT_METRICS], *values[10 + 2 * HPCT_REPORT_METRICS];
    size_t count = 0;
    const struct {
        const char *name;
        double value;
        bool metric;
    } facts[] = {{"loss", run->loss, true},
                 {"accuracy", run->accuracy, true},
                 {"val. loss", run->val_loss, true},
                 {"val. accuracy", run->val_accuracy, true},
                 {"images/s", run->images_per_second, false},
                 {"s per epoch", run->epoch_seconds, false}};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        if (i == 4)
            add_metric_facts(page, names, values, &count, run->metrics, "");
        if (i == 4)
            add_metric_facts(page, names, values, &count, run->val_metrics, "val. ");
        if (!isnan(facts[i].value))
            add_fact(names, values, &count, facts[i].name,
                     facts[i].metric ? metric(page->pool, facts[i].value)
                                     : amount(page->pool, facts[i].value));
    }
    if (run->workers > 0)
        add_fact(names, values, &count, run->workers == 1 ? "worker" : "workers",
                 hpct_report_print(page->pool, "%lld", (long long) run->workers));
    if (count == 0)
        return;
    hpct_report_table *table = hpct_report_add_facts(page);
    table->columns = count;
    for (size_t i = 0; i < 2 * count; i++)
        hpct_report_cell(page->pool, table, i < count ? names[i] : values[i - count]);
}

/* ---- loss and accuracy ---- */

/* One member of all points. */
static double *column(hpct_report_pool *pool, const hpct_report_point *points, size_t count,
                      size_t member)
{
    double *values = hpct_report_take(pool, count, sizeof *values);
    for (size_t i = 0; i < count && values != NULL; i++)
        values[i] = hpct_report_number_of(&points[i], member);
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
                     const hpct_report_point *points, size_t count, size_t member, bool by_step)
{
    double *y = column(page->pool, points, count, member);
    double *x = places(page->pool, points, count, by_step);
    if (x != NULL && y != NULL && hpct_report_has_points(y, count))
        hpct_report_add_series(page->pool, chart, name, x, y, count);
}

/* The numbers of points that a table shows. */
#define MOST_SHOWN (4 + 2 * HPCT_REPORT_METRICS)
typedef struct shown {
    const char *titles[MOST_SHOWN + 1];
    size_t members[MOST_SHOWN], count;
} shown;

static void show(shown *s, const char *title, size_t member)
{
    s->titles[s->count] = title;
    s->members[s->count++] = member;
}

static void show_metrics(shown *s, hpct_report_pool *pool, const hpct_report_point *points,
                         size_t count, bool of_validation)
{
    for (size_t i = 0; i < HPCT_REPORT_METRICS; i++) {
        size_t member = hpct_report_metric_at(i, of_validation);
        const char *name = hpct_report_metric_names[i];
        if (hpct_report_any_has(points, count, member))
            show(s, of_validation ? hpct_report_print(pool, "val. %s", name) : name, member);
    }
}

/* Of numbers (mae is the first metric) there is no accuracy. */
static shown find_shown(hpct_report_pool *pool, const hpct_report_point *points, size_t count,
                        bool validated)
{
    shown s = {.count = 0};
    bool numbers = hpct_report_any_has(points, count, hpct_report_metric_at(0, false));
    show(&s, "loss", offsetof(hpct_report_point, loss));
    if (!numbers)
        show(&s, "accuracy", offsetof(hpct_report_point, accuracy));
    show_metrics(&s, pool, points, count, false);
    if (validated)
        show(&s, "val. loss", offsetof(hpct_report_point, val_loss));
    if (validated && !numbers)
        show(&s, "val. accuracy", offsetof(hpct_report_point, val_accuracy));
    if (validated)
        show_metrics(&s, pool, points, count, true);
    return s;
}

static void add_shown(hpct_report_page *page, hpct_report_table *table, const shown *s,
                      const hpct_report_point *point)
{
    for (size_t i = 0; i < s->count; i++)
        hpct_report_metric_cell(page->pool, table, hpct_report_number_of(point, s->members[i]));
}

static void add_epoch_table(hpct_report_page *page, const hpct_report_run *run)
{
    bool timed = run->num_epoch_times > 0;
    shown s = find_shown(page->pool, run->points, run->num_points, run->validated);
    hpct_report_table *table = hpct_report_add_table(page, "By epoch", true);
    hpct_report_cell(page->pool, table, "epoch");
    hpct_report_cells(page->pool, table, s.titles);
    table->columns = 2 + s.count + (timed ? 1u : 0u);
    hpct_report_cell(page->pool, table, "learning rate");
    if (timed)
        hpct_report_cell(page->pool, table, "seconds");
    for (size_t i = 0; i < run->num_points; i++) {
        const hpct_report_point *p = &run->points[i];
        hpct_report_cell(page->pool, table,
                         hpct_report_print(page->pool, "%lld", (long long) p->epoch));
        add_shown(page, table, &s, p);
        hpct_report_cell(page->pool, table,
                         hpct_report_print(page->pool, "%.6g", p->learning_rate));
        if (timed)
            hpct_report_amount_cell(page->pool, table, p->seconds);
    }
}

static void add_step_table(hpct_report_page *page, const hpct_report_run *run)
{
    static const char *const heads[] = {"epoch", "step", NULL};
    shown s = find_shown(page->pool, run->steps, run->num_steps, false);
    size_t each = (run->num_steps + MOST_ROWS - 1) / MOST_ROWS;
    hpct_report_table *table = hpct_report_add_table(
        page,
        each > 1 ? hpct_report_print(page->pool, "By step: one of %zu, and the last", each)
                 : "By step",
        true);
    table->columns = 2 + s.count;
    hpct_report_cells(page->pool, table, heads);
    hpct_report_cells(page->pool, table, s.titles);
    for (size_t i = 0; i < run->num_steps; i++) {
        const hpct_report_point *p = &run->steps[i];
        if (i % each != 0 && i + 1 < run->num_steps)
            continue;
        hpct_report_cell(page->pool, table,
                         hpct_report_print(page->pool, "%lld", (long long) p->epoch));
        hpct_report_cell(page->pool, table,
                         hpct_report_print(page->pool, "%lld", (long long) p->step));
        add_shown(page, table, &s, p);
    }
}

static void add_curve(hpct_report_page *page, const hpct_report_run *run, const char *what,
                      size_t member, size_t val_member, bool by_step)
{
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
    add_line(page, chart, "training", points, count, member, by_step);
    if (!by_step)
        add_line(page, chart, "validation", points, count, val_member, false);
    if (chart->num_series == 0)
        page->num_items--; /* nothing to draw */
}

static void add_curves(hpct_report_page *page, const hpct_report_run *run)
{
    bool by_step = run->num_points < 2 && run->num_steps > 1;
    if (run->num_points == 0 && run->num_steps == 0)
        return;
    hpct_report_add_words(page, HPCT_REPORT_HEADING, "Loss and accuracy");
    add_curve(page, run, "Loss", offsetof(hpct_report_point, loss),
              offsetof(hpct_report_point, val_loss), by_step);
    add_curve(page, run, "Accuracy", offsetof(hpct_report_point, accuracy),
              offsetof(hpct_report_point, val_accuracy), by_step);
    for (size_t i = 0; i < HPCT_REPORT_METRICS; i++)
        add_curve(page, run, hpct_report_metric_names[i], hpct_report_metric_at(i, false),
                  hpct_report_metric_at(i, true), by_step);
    if (run->num_points > 0)
        add_epoch_table(page, run);
    if (run->num_points < 2 && run->num_steps > 0)
        add_step_table(page, run);
}

/* ---- settings ---- */

static void add_setting(hpct_report_page *page, hpct_report_table *table, const char *name,
                        const char *value)
{
    if (value == NULL || *value == '\0')
        return;
    hpct_report_cell(page->pool, table, name);
    hpct_report_cell(page->pool, table, value);
}

static void add_count(hpct_report_page *page, hpct_report_table *table, const char *name,
                      int64_t value)
{
    if (value > 0)
        add_setting(page, table, name, hpct_report_print(page->pool, "%lld", (long long) value));
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
    add_count(page, table, "workers", run->workers);
    add_count(page, table, "replicas per worker", run->replicas > 1 ? run->replicas : 0);
    add_count(page, table, "threads per worker", run->threads);
    if (run->nodes > 0)
        add_setting(page, table, hpct_report_counted(page->pool, run->nodes, "node"),
                    say_nodes(page, run));
    add_setting(page, table, "device", run->device);
    add_setting(page, table, "precision", run->precision);
    if (!isnan(run->peak_rss_mb))
        add_setting(page, table, "memory of the largest rank",
                    hpct_report_print(page->pool, "%s MB", amount(page->pool, run->peak_rss_mb)));
    add_setting(page, table, "hpc-train", run->version);
    add_setting(page, table, "libraries", run->libraries);
    add_setting(page, table, "job", run->job);
    if (!isnan(run->started))
        add_setting(page, table, "started", hpct_report_moment(page->pool, run->started));
    if (!isnan(run->ended))
        add_setting(page, table, "ended", hpct_report_moment(page->pool, run->ended));
}

static void add_settings(hpct_report_page *page, const hpct_report_run *run)
{
    static const char *const heads[] = {"setting", "value", NULL};
    hpct_report_add_words(page, HPCT_REPORT_HEADING, "Settings");
    hpct_report_table *table = hpct_report_add_table(page, NULL, false);
    table->columns = 2;
    table->is_text = true;
    hpct_report_cells(page->pool, table, heads);
    add_setting(page, table, "folder or file", run->path);
    add_setting(page, table, "command", run->command);
    add_setting(page, table, "model", run->model);
    add_count(page, table, "parameters", run->parameters);
    add_setting(page, table, "data", run->data);
    add_count(page, table, "samples", run->samples);
    add_setting(page, table, "strategy", run->strategy);
    add_count(page, table, "global batch", run->global_batch);
    add_count(page, table, "epochs", run->epochs);
    add_count(page, table, "steps per epoch", run->steps_per_epoch);
    add_setting(page, table, "optimizer", run->optimizer);
    if (!isnan(run->learning_rate))
        add_setting(page, table, "learning rate",
                    hpct_report_print(page->pool, "%.6g", run->learning_rate));
    if (run->seed >= 0)
        add_setting(page, table, "seed",
                    hpct_report_print(page->pool, "%lld", (long long) run->seed));
    add_setting(page, table, "checkpoints", run->checkpoint_dir);
    add_where(page, table, run);
}

/* ---- CSV: a row an epoch ---- */

static void make_csv(hpct_report_page *page, const hpct_report_run *run)
{
    static const char *const heads[] = {"epoch",        "loss",          "accuracy", "val_loss",
                                        "val_accuracy", "learning_rate", "seconds",  NULL};
    hpct_report_pool *pool = page->pool;
    page->csv = hpct_report_take(pool, 1, sizeof *page->csv);
    if (page->csv == NULL)
        return;
    shown s = {.count = 0};
    show_metrics(&s, pool, run->points, run->num_points, false);
    size_t of_validation = s.count;
    show_metrics(&s, pool, run->points, run->num_points, true);
    page->csv->columns = 7 + s.count;
    hpct_report_cells(pool, page->csv, heads);
    for (size_t i = 0; i < s.count; i++) /* as in history.csv */
        hpct_report_cell(pool, page->csv,
                         i < of_validation ? s.titles[i]
                                           : hpct_report_print(pool, "val_%s", s.titles[i] + 5));
    for (size_t i = 0; i < run->num_points; i++) {
        const hpct_report_point *p = &run->points[i];
        const double values[] = {p->loss,         p->accuracy,      p->val_loss,
                                 p->val_accuracy, p->learning_rate, p->seconds};
        hpct_report_cell(pool, page->csv, hpct_report_print(pool, "%lld", (long long) p->epoch));
        for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
            char text[HPCT_REPORT_NUMBER];
            hpct_report_cell(pool, page->csv,
                             hpct_report_print(pool, "%s", hpct_report_exact(text, values[k])));
        }
        for (size_t k = 0; k < s.count; k++) {
            char text[HPCT_REPORT_NUMBER];
            double value = hpct_report_number_of(p, s.members[k]);
            hpct_report_cell(pool, page->csv,
                             hpct_report_print(pool, "%s", hpct_report_exact(text, value)));
        }
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
