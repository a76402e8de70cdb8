/* Builds pages. */
#include "agent/report/page.h"

#include <math.h>

static hpct_report_table lost_table; /* where there was no memory: pool->failed ends the report */
static hpct_report_chart lost_chart;

/* ---- tables ---- */

void hpct_report_cell(hpct_report_table *table, const char *text)
{
    const char **cells =
        hpct_report_grow(table->pool, table->cells, table->num_cells, sizeof *table->cells);
    if (cells == NULL || table == &lost_table)
        return;
    table->cells = cells;
    table->cells[table->num_cells++] = text;
}

void hpct_report_print_cell(hpct_report_table *table, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    hpct_report_cell(table, hpct_report_print_list(table->pool, format, args));
    va_end(args);
}

void hpct_report_count_cell(hpct_report_table *table, int64_t count)
{
    if (count < 0)
        hpct_report_cell(table, "–");
    else
        hpct_report_print_cell(table, "%lld", (long long) count);
}

void hpct_report_metric_cell(hpct_report_table *table, double value)
{
    char text[HPCT_REPORT_NUMBER];
    hpct_report_print_cell(table, "%s", hpct_report_metric(text, value));
}

void hpct_report_amount_cell(hpct_report_table *table, double value)
{
    char text[HPCT_REPORT_NUMBER];
    hpct_report_print_cell(table, "%s", hpct_report_amount(text, value));
}

void hpct_report_exact_cell(hpct_report_table *table, double value)
{
    char text[HPCT_REPORT_NUMBER];
    hpct_report_print_cell(table, "%s", hpct_report_exact(text, value));
}

void hpct_report_heads(hpct_report_table *table, const char *const *heads)
{
    for (; *heads != NULL; heads++, table->columns++)
        hpct_report_cell(table, *heads);
}

/* ---- charts ---- */

bool hpct_report_has_points(const double *y, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (isfinite(y[i]))
            return true;
    }
    return false;
}

hpct_report_series *hpct_report_add_series(hpct_report_pool *pool, hpct_report_chart *chart,
                                           const char *name, const double *x, const double *y,
                                           size_t count)
{
    static hpct_report_series lost_series;
    hpct_report_series *series =
        hpct_report_grow(pool, chart->series, chart->num_series, sizeof *series);
    if (series == NULL || chart == &lost_chart)
        return &lost_series;
    chart->series = series;
    series += chart->num_series++;
    *series = (hpct_report_series){.name = name, .x = x, .y = y, .count = count};
    return series;
}

/* ---- items ---- */

static hpct_report_item *add(hpct_report_page *page, hpct_report_kind kind)
{
    static hpct_report_item lost_item;
    hpct_report_item *items =
        hpct_report_grow(page->pool, page->items, page->num_items, sizeof *items);
    if (items == NULL)
        return &lost_item;
    page->items = items;
    items += page->num_items++;
    *items = (hpct_report_item){.kind = kind};
    return items;
}

void hpct_report_add_words(hpct_report_page *page, hpct_report_kind kind, const char *words)
{
    add(page, kind)->words = words;
}

static hpct_report_table *take_table(hpct_report_page *page, const char *caption)
{
    hpct_report_table *table = hpct_report_take(page->pool, 1, sizeof *table);
    if (table == NULL) {
        lost_table = (hpct_report_table){.pool = page->pool};
        return &lost_table;
    }
    *table = (hpct_report_table){.pool = page->pool, .caption = caption};
    return table;
}

hpct_report_table *hpct_report_add_table(hpct_report_page *page, const char *caption, bool folded)
{
    hpct_report_table *table = take_table(page, caption);
    hpct_report_item *item = add(page, HPCT_REPORT_TABLE);
    item->table = table;
    item->folded = folded;
    return table;
}

hpct_report_table *hpct_report_add_facts(hpct_report_page *page)
{
    hpct_report_table *table = take_table(page, NULL);
    add(page, HPCT_REPORT_FACTS)->table = table;
    return table;
}

hpct_report_chart *hpct_report_add_chart(hpct_report_page *page, const char *title,
                                         const char *x_label, const char *y_label)
{
    hpct_report_chart *chart = hpct_report_take(page->pool, 1, sizeof *chart);
    if (chart == NULL)
        return &lost_chart;
    *chart = (hpct_report_chart){.title = title, .x_label = x_label, .y_label = y_label};
    add(page, HPCT_REPORT_CHART)->chart = chart;
    return chart;
}

hpct_report_table *hpct_report_begin_csv(hpct_report_page *page, const char *const *heads)
{
    page->csv = take_table(page, NULL);
    hpct_report_heads(page->csv, heads);
    return page->csv;
}
