/* A chart: title, legend, lines or bars. */
#include "agent/report/chart.h"

#include "agent/report/axis.h"

#include <math.h>

#define TITLE 24
#define LEGEND_ROW 18
#define LEGEND_LEFT 4
#define SWATCH 26  /* before a name */
#define LETTER 7.6 /* width of one, at most, on average */
#define LEGEND_MOST 40

/* ---- legend ---- */

static int num_names(const hpct_report_chart *chart)
{
    if (chart->num_bars > 0)
        return chart->num_parts > 1 ? chart->num_parts : 0;
    return (int) chart->num_series;
}

static const char *name_of(const hpct_report_chart *chart, int i)
{
    return chart->num_bars > 0 ? chart->part_names[i] : chart->series[i].name;
}

static double name_width(const char *name)
{
    int letters = hpct_report_width(name);
    return SWATCH + LETTER * (letters < LEGEND_MOST ? letters : LEGEND_MOST) + 12;
}

static void draw_swatch(FILE *out, const hpct_report_chart *chart, int i, double x, double y)
{
    if (chart->num_bars > 0) {
        fprintf(out,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"18\" height=\"12\" fill=\"url(#part%d)\"/>", x,
                y - 6, i);
        return;
    }
    bool plain = chart->series[i].plain;
    fprintf(out, "<path class=\"%s s%d\" stroke-dasharray=\"%s\" d=\"M%.1f %.1fh22\"/>",
            plain ? "ideal" : "line", plain ? -1 : i % HPCT_REPORT_LOOKS,
            plain ? "3 4" : hpct_report_dashes(i), x, y);
    if (!plain)
        hpct_report_marker_draw(out, i, x + 11, y, NULL);
}

/* Draws it, if `out` is not NULL; returns its rows. */
static int lay_legend(FILE *out, const hpct_report_chart *chart, double y)
{
    double x = LEGEND_LEFT;
    int rows = num_names(chart) > 0;
    for (int i = 0; i < num_names(chart); i++) {
        double width = name_width(name_of(chart, i));
        if (x > LEGEND_LEFT && x + width > HPCT_REPORT_CHART_WIDTH) {
            x = LEGEND_LEFT;
            rows++;
        }
        double middle = y + LEGEND_ROW * (rows - 0.5);
        if (out != NULL) {
            draw_swatch(out, chart, i, x, middle);
            hpct_report_label(out, x + SWATCH, middle + 4, "start", "t", name_of(chart, i),
                              LEGEND_MOST);
        }
        x += width;
    }
    return rows;
}

static int legend_height(const hpct_report_chart *chart)
{
    int rows = lay_legend(NULL, chart, 0);
    return rows > 0 ? rows * LEGEND_ROW + 6 : 0;
}

/* ---- the whole ---- */

int hpct_report_chart_height(const hpct_report_chart *chart)
{
    int body = chart->num_bars > 0 ? hpct_report_bars_height(chart) : hpct_report_lines_height();
    return TITLE + legend_height(chart) + body;
}

void hpct_report_chart_draw(FILE *out, const hpct_report_chart *chart)
{
    double y = TITLE + legend_height(chart);
    hpct_report_label(out, LEGEND_LEFT, 16, "start", "t h", chart->title, 0);
    lay_legend(out, chart, TITLE);
    if (chart->num_bars > 0)
        hpct_report_bars_draw(out, chart, y);
    else
        hpct_report_lines_draw(out, chart, y);
}

static void describe_series(FILE *out, const hpct_report_chart *chart,
                            const hpct_report_series *series)
{
    char from[HPCT_REPORT_NUMBER], to[HPCT_REPORT_NUMBER];
    size_t first = 0, last = series->count;
    while (first < series->count && !isfinite(series->y[first]))
        first++;
    while (last > 0 && !isfinite(series->y[last - 1]))
        last--;
    if (first >= last)
        return;
    bool metric = chart->unit == HPCT_REPORT_METRIC;
    double begin = series->y[first], end = series->y[last - 1];
    fputs("; ", out);
    hpct_report_escape(out, series->name);
    fprintf(out, " from %s to %s",
            metric ? hpct_report_metric(from, begin) : hpct_report_amount(from, begin),
            metric ? hpct_report_metric(to, end) : hpct_report_amount(to, end));
}

void hpct_report_chart_describe(FILE *out, const hpct_report_chart *chart)
{
    hpct_report_escape(out, chart->title);
    fprintf(out, chart->num_bars > 0 ? ": bars, %s by %s" : ": lines, %s by %s", chart->y_label,
            chart->x_label);
    if (chart->num_bars > 0)
        fprintf(out, "; %zu bars", chart->num_bars);
    for (size_t i = 0; i < chart->num_series; i++)
        describe_series(out, chart, &chart->series[i]);
}
