/* agent/report/page.h - what a report shows, before it is HTML, Markdown or a picture: headings,
 * words, tables and charts, in order. All of it is the pool's. */
#ifndef HPCT_AGENT_REPORT_PAGE_H
#define HPCT_AGENT_REPORT_PAGE_H

#include "agent/report/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- tables ---- */

typedef struct hpct_report_table {
    hpct_report_pool *pool;
    const char *caption;
    const char **cells; /* row by row, the heads first; the first column heads its row */
    size_t num_cells, columns;
    bool is_text; /* the other columns, too: else they are numbers, set to the right */
} hpct_report_table;

void hpct_report_cell(hpct_report_table *table, const char *text);
__attribute__((format(printf, 2, 3))) void hpct_report_print_cell(hpct_report_table *table,
                                                                  const char *format, ...);
void hpct_report_count_cell(hpct_report_table *table, int64_t count); /* below 0: a dash */
void hpct_report_metric_cell(hpct_report_table *table, double value);
void hpct_report_amount_cell(hpct_report_table *table, double value); /* NaN: a dash */
void hpct_report_exact_cell(hpct_report_table *table, double value);
/* More columns, with these NULL-terminated heads. */
void hpct_report_heads(hpct_report_table *table, const char *const *heads);

/* ---- charts ---- */

typedef enum hpct_report_unit { HPCT_REPORT_METRIC, HPCT_REPORT_AMOUNT } hpct_report_unit;

/* A line: values that are not finite are gaps. */
typedef struct hpct_report_series {
    const char *name;
    const double *x, *y;
    const char *const *labels; /* of the points, for their tooltips; or NULL */
    size_t count;
    bool plain; /* without markers: an ideal or a prediction, grey */
} hpct_report_series;

/* A bar of several parts. */
typedef struct hpct_report_bar {
    const char *label, *mark; /* mark: written behind it, or NULL */
    const double *parts;      /* [num_parts] of the chart */
} hpct_report_bar;

/* Of a line, one each two pixels: of more, means are drawn. */
#define HPCT_REPORT_MOST_POINTS 210

typedef struct hpct_report_chart {
    const char *title, *x_label, *y_label;
    const char *note; /* below; or NULL */
    hpct_report_unit unit;
    hpct_report_series *series;
    size_t num_series;
    bool log, log_y, zero, whole_x; /* y from 0; x in whole numbers */
    hpct_report_bar *bars;          /* instead of series */
    size_t num_bars;
    const char *const *part_names;
    int num_parts;
} hpct_report_chart;

hpct_report_series *hpct_report_add_series(hpct_report_pool *pool, hpct_report_chart *chart,
                                           const char *name, const double *x, const double *y,
                                           size_t count);
/* Whether there is a point to draw. */
bool hpct_report_has_points(const double *y, size_t count);

/* ---- the page ---- */

typedef enum hpct_report_kind {
    HPCT_REPORT_HEADING,
    HPCT_REPORT_WORDS,
    HPCT_REPORT_REMARK,
    HPCT_REPORT_FACTS, /* a table whose first row are names, and the second values in large type */
    HPCT_REPORT_TABLE,
    HPCT_REPORT_CHART
} hpct_report_kind;

typedef struct hpct_report_item {
    hpct_report_kind kind;
    const char *words;
    hpct_report_table *table;
    hpct_report_chart *chart;
    bool folded; /* the table */
} hpct_report_item;

typedef struct hpct_report_page {
    const char *title, *subtitle;
    bool may_change; /* a run is not finished */
    int reload;      /* seconds until the browser reads the file again; 0: never */
    hpct_report_item *items;
    size_t num_items;
    hpct_report_table *csv; /* of --format csv, with all digits */
    hpct_report_pool *pool;
} hpct_report_page;

void hpct_report_add_words(hpct_report_page *page, hpct_report_kind kind, const char *words);
/* A zeroed table or chart of the page; never NULL (without memory one that is not shown). */
hpct_report_table *hpct_report_add_table(hpct_report_page *page, const char *caption, bool folded);
hpct_report_table *hpct_report_add_facts(hpct_report_page *page);
hpct_report_chart *hpct_report_add_chart(hpct_report_page *page, const char *title,
                                         const char *x_label, const char *y_label);
/* Begins page->csv. */
hpct_report_table *hpct_report_begin_csv(hpct_report_page *page, const char *const *heads);

/* ---- what becomes of it ---- */

void hpct_report_write_html(FILE *out, const hpct_report_page *page);
void hpct_report_write_md(FILE *out, const hpct_report_page *page);
void hpct_report_write_csv(FILE *out, const hpct_report_page *page);
/* All charts in one picture; false if there is none. */
bool hpct_report_write_svg(FILE *out, const hpct_report_page *page);

#endif
