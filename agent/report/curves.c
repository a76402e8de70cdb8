/* Loss and accuracy by epoch of several runs, and the numbers behind the lines. */
#include "agent/report/content.h"

#include <stddef.h>

static void add_run_curve(hpct_report_page *page, hpct_report_chart *chart,
                          const hpct_report_run *run, size_t member)
{
    double *x = hpct_report_take(page->pool, run->num_points, sizeof *x);
    double *y = hpct_report_take(page->pool, run->num_points, sizeof *y);
    if (x == NULL || y == NULL)
        return;
    for (size_t i = 0; i < run->num_points; i++) {
        x[i] = (double) run->points[i].epoch;
        y[i] = *(const double *) (const void *) ((const char *) &run->points[i] + member);
    }
    if (hpct_report_has_points(y, run->num_points))
        hpct_report_add_series(page->pool, chart, run->name, x, y, run->num_points);
}

static bool add_curves(hpct_report_page *page, const hpct_report_run *runs, size_t count,
                       const char *title, size_t member)
{
    hpct_report_chart *chart = hpct_report_add_chart(page, title, "epoch", "");
    chart->whole_x = true;
    for (size_t i = 0; i < count && i < HPCT_REPORT_MOST_LINES; i++)
        add_run_curve(page, chart, &runs[i], member);
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

static void add_curve_row(hpct_report_page *page, hpct_report_table *table,
                          const hpct_report_run *runs, size_t count, size_t *at, size_t member)
{
    int64_t epoch = next_epoch(runs, count, at);
    hpct_report_cell(page->pool, table, hpct_report_print(page->pool, "%lld", (long long) epoch));
    for (size_t i = 0; i < count; i++) {
        const hpct_report_point *point = at[i] < runs[i].num_points ? &runs[i].points[at[i]] : NULL;
        if (point == NULL || point->epoch != epoch) {
            hpct_report_cell(page->pool, table, "–");
            continue;
        }
        hpct_report_metric_cell(page->pool, table, hpct_report_number_of(point, member));
        at[i]++;
    }
}

static void add_curve_table(hpct_report_page *page, const hpct_report_run *runs, size_t count,
                            const char *title, size_t member)
{
    size_t at[HPCT_REPORT_MOST_LINES] = {0};
    count = count < HPCT_REPORT_MOST_LINES ? count : HPCT_REPORT_MOST_LINES;
    hpct_report_table *table = hpct_report_add_table(page, title, true);
    table->columns = 1 + count;
    hpct_report_cell(page->pool, table, "epoch");
    for (size_t i = 0; i < count; i++)
        hpct_report_cell(page->pool, table, runs[i].name);
    while (next_epoch(runs, count, at) < INT64_MAX)
        add_curve_row(page, table, runs, count, at, member);
}

/* Draws a line for each run that has this number; shown in a table, too. */
typedef struct curve {
    const char *title;
    size_t member;
} curve;
#define MOST_CURVES (3 + 2 * HPCT_REPORT_METRICS)

static size_t list_curves(hpct_report_pool *pool, curve curves[MOST_CURVES])
{
    size_t count = 0;
    curves[count++] = (curve){"Loss by epoch", offsetof(hpct_report_point, loss)};
    curves[count++] = (curve){"Accuracy by epoch", offsetof(hpct_report_point, accuracy)};
    curves[count++] =
        (curve){"Validation accuracy by epoch", offsetof(hpct_report_point, val_accuracy)};
    for (size_t i = 0; i < HPCT_REPORT_METRICS; i++) {
        const char *name = hpct_report_metric_names[i];
        curves[count++] =
            (curve){hpct_report_print(pool, "%s by epoch", name), hpct_report_metric_at(i, false)};
        curves[count++] = (curve){hpct_report_print(pool, "Validation %s by epoch", name),
                                  hpct_report_metric_at(i, true)};
    }
    return count;
}

void hpct_report_of_curves(hpct_report_page *page, const hpct_report_run *runs, size_t count)
{
    curve curves[MOST_CURVES];
    bool drawn[MOST_CURVES], any = false;
    size_t num = list_curves(page->pool, curves);
    hpct_report_add_words(page, HPCT_REPORT_HEADING, "Loss and accuracy");
    for (size_t i = 0; i < num; i++) {
        drawn[i] = add_curves(page, runs, count, curves[i].title, curves[i].member);
        any |= drawn[i];
    }
    for (size_t i = 0; i < num; i++) {
        if (drawn[i])
            add_curve_table(page, runs, count, curves[i].title, curves[i].member);
    }
    if (!any)
        page->num_items--; /* the heading */
}
