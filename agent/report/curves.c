/* Metrics by epoch of several runs, and the numbers behind the lines. */
#include "agent/report/content.h"

#include <string.h>

/* A chart with a line for each run that has the metric; shown in a table, too. */
typedef struct curve {
    const char *title, *metric;
    bool of_validation;
} curve;

/* Unknown metrics have another column in each run. */
static size_t column_of(const hpct_report_run *run, const curve *c)
{
    return hpct_report_column(hpct_report_find_metric(run, c->metric), c->of_validation);
}

static void add_run_curve(hpct_report_page *page, hpct_report_chart *chart,
                          const hpct_report_run *run, size_t column)
{
    double *x = hpct_report_take(page->pool, run->num_points, sizeof *x);
    double *y = hpct_report_take(page->pool, run->num_points, sizeof *y);
    if (x == NULL || y == NULL)
        return;
    for (size_t i = 0; i < run->num_points; i++) {
        x[i] = (double) run->points[i].epoch;
        y[i] = hpct_report_value(&run->points[i], column);
    }
    if (hpct_report_has_points(y, run->num_points))
        hpct_report_add_series(page->pool, chart, run->name, x, y, run->num_points);
}

static bool add_chart(hpct_report_page *page, const hpct_report_run *runs, size_t count,
                      const curve *c)
{
    hpct_report_chart *chart = hpct_report_add_chart(page, c->title, "epoch", "");
    chart->whole_x = true;
    for (size_t i = 0; i < count && i < HPCT_REPORT_MOST_LINES; i++)
        add_run_curve(page, chart, &runs[i], column_of(&runs[i], c));
    if (chart->num_series == 0) {
        page->num_items--;
        return false;
    }
    if (count > HPCT_REPORT_MOST_LINES)
        chart->note = hpct_report_print(page->pool, "The first %d runs.", HPCT_REPORT_MOST_LINES);
    return true;
}

/* ---- the numbers behind them ---- */

/* The least epoch that no row has yet; at[i] is the next point of run i. */
static int64_t next_epoch(const hpct_report_run *runs, size_t count, const size_t *at)
{
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < count; i++) {
        if (at[i] < runs[i].num_points && runs[i].points[at[i]].epoch < least)
            least = runs[i].points[at[i]].epoch;
    }
    return least;
}

static void add_curve_row(hpct_report_table *table, const hpct_report_run *runs, size_t count,
                          size_t *at, const curve *c)
{
    int64_t epoch = next_epoch(runs, count, at);
    hpct_report_count_cell(table, epoch);
    for (size_t i = 0; i < count; i++) {
        const hpct_report_point *point = at[i] < runs[i].num_points ? &runs[i].points[at[i]] : NULL;
        if (point == NULL || point->epoch != epoch) {
            hpct_report_cell(table, "–");
            continue;
        }
        hpct_report_metric_cell(table, hpct_report_value(point, column_of(&runs[i], c)));
        at[i]++;
    }
}

static void add_curve_table(hpct_report_page *page, const hpct_report_run *runs, size_t count,
                            const curve *c)
{
    size_t at[HPCT_REPORT_MOST_LINES] = {0};
    count = count < HPCT_REPORT_MOST_LINES ? count : HPCT_REPORT_MOST_LINES;
    hpct_report_table *table = hpct_report_add_table(page, c->title, true);
    table->columns = 1 + count;
    hpct_report_cell(table, "epoch");
    for (size_t i = 0; i < count; i++)
        hpct_report_cell(table, runs[i].name);
    while (next_epoch(runs, count, at) < INT64_MAX)
        add_curve_row(table, runs, count, at, c);
}

/* ---- which curves ---- */

typedef struct curves {
    curve *of;
    size_t count;
} curves;

static bool has_metric(const curves *all, const char *metric)
{
    bool has = false;
    for (size_t i = 0; i < all->count && !has; i++)
        has = strcmp(all->of[i].metric, metric) == 0;
    return has;
}

static void add_metric(hpct_report_pool *pool, curves *all, const char *metric)
{
    all->of[all->count++] = (curve){
        hpct_report_print(pool, "%s by epoch", hpct_report_curve_name(metric)), metric, false};
    if (strcmp(metric, "loss") != 0) /* that of validation is in the table */
        all->of[all->count++] =
            (curve){hpct_report_print(pool, "Validation %s by epoch", metric), metric, true};
}

/* Of all runs, in the order of the first one that has them. */
static curves list_curves(hpct_report_pool *pool, const hpct_report_run *runs, size_t count)
{
    size_t most = 0;
    for (size_t i = 0; i < count; i++)
        most += 2 * runs[i].num_metrics;
    curves all = {.of = hpct_report_take(pool, most, sizeof *all.of)};
    for (size_t i = 0; i < count && all.of != NULL; i++) {
        for (size_t k = 0; k < runs[i].num_metrics; k++) {
            if (!has_metric(&all, runs[i].metrics[k].name))
                add_metric(pool, &all, runs[i].metrics[k].name);
        }
    }
    return all;
}

void hpct_report_of_curves(hpct_report_page *page, const hpct_report_run *runs, size_t count)
{
    curves all = list_curves(page->pool, runs, count);
    bool *drawn = hpct_report_take(page->pool, all.count, sizeof *drawn), any = false;
    if (drawn == NULL)
        return;
    hpct_report_add_words(page, HPCT_REPORT_HEADING, "Loss and accuracy");
    for (size_t i = 0; i < all.count; i++) {
        drawn[i] = add_chart(page, runs, count, &all.of[i]);
        any |= drawn[i];
    }
    for (size_t i = 0; i < all.count; i++) {
        if (drawn[i])
            add_curve_table(page, runs, count, &all.of[i]);
    }
    if (!any)
        page->num_items--; /* the heading */
}
