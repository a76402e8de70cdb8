/* Bars of several parts, one below the other. */
#include "agent/report/axis.h"
#include "agent/report/chart.h"

#include <math.h>

#define ROW 22
#define BAR 15
#define BELOW 40
#define TOP 4
#define MOST_LETTERS 18 /* of a label */
#define MARK_ROOM 52    /* behind the bars */

int hpct_report_bars_height(const hpct_report_chart *chart)
{
    return TOP + ROW * (int) chart->num_bars + BELOW;
}

static double positive(double value)
{
    return isfinite(value) && value > 0 && value < 1e30 ? value : 0;
}

static double total(const hpct_report_chart *chart, const hpct_report_bar *bar)
{
    double sum = 0;
    for (int i = 0; i < chart->num_parts; i++)
        sum += positive(bar->parts[i]);
    return sum;
}

static double left_of(const hpct_report_chart *chart)
{
    int longest = 0;
    for (size_t i = 0; i < chart->num_bars; i++) {
        int width = hpct_report_width(chart->bars[i].label);
        longest = width > longest ? width : longest;
    }
    return 10 + 7.4 * (longest < MOST_LETTERS ? longest : MOST_LETTERS);
}

static hpct_report_axis make_axis(const hpct_report_chart *chart)
{
    double high = 0;
    for (size_t i = 0; i < chart->num_bars; i++)
        high = fmax(high, total(chart, &chart->bars[i]));
    return hpct_report_axis_linear(0, high > 0 ? high : 1, 5, false, false);
}

static void draw_axis(FILE *out, const hpct_report_chart *chart, const hpct_report_axis *axis,
                      double left, double right, double top, double bottom)
{
    char text[HPCT_REPORT_NUMBER];
    for (int i = 0; i < hpct_report_axis_count(axis); i++) {
        double value = hpct_report_axis_tick(axis, i);
        double x = left + hpct_report_axis_place(axis, value) * (right - left);
        fprintf(out, "<path class=\"%s\" d=\"M%.1f %.1fV%.1f\"/>", i == 0 ? "ax" : "g", x, top,
                bottom + 4);
        hpct_report_label(out, x, bottom + 17, "middle", "m",
                          hpct_report_axis_label(text, axis, value), 0);
    }
    hpct_report_label(out, (left + right) / 2, bottom + 34, "middle", "m", chart->y_label, 0);
}

static void draw_bar(FILE *out, const hpct_report_chart *chart, const hpct_report_bar *bar,
                     const hpct_report_axis *axis, double left, double right, double y)
{
    double sum = 0, x = left;
    for (int i = 0; i < chart->num_parts; i++) {
        char text[HPCT_REPORT_NUMBER];
        double value = positive(bar->parts[i]);
        sum += value;
        double end = left + hpct_report_axis_place(axis, sum) * (right - left);
        if (value > 0) {
            fprintf(out,
                    "<rect class=\"part\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\" "
                    "fill=\"url(#part%d)\"><title>",
                    x, y, end - x, BAR, chart->num_parts > 1 ? i : 1);
            hpct_report_escape(out, bar->label);
            fprintf(out, ": %s %s</title></rect>", chart->part_names[i],
                    hpct_report_amount(text, value));
        }
        x = end;
    }
    hpct_report_label(out, left - 6, y + 12, "end", bar->mark != NULL ? "t b" : "t", bar->label,
                      MOST_LETTERS);
    if (bar->mark != NULL)
        hpct_report_label(out, x + 5, y + 12, "start", "t b", bar->mark, 0);
}

void hpct_report_bars_draw(FILE *out, const hpct_report_chart *chart, double y)
{
    bool marked = false;
    for (size_t i = 0; i < chart->num_bars; i++)
        marked |= chart->bars[i].mark != NULL;
    hpct_report_axis axis = make_axis(chart);
    double left = left_of(chart), right = HPCT_REPORT_CHART_WIDTH - (marked ? MARK_ROOM : 14);
    double top = y + TOP, bottom = top + ROW * (double) chart->num_bars;
    draw_axis(out, chart, &axis, left, right, top, bottom);
    for (size_t i = 0; i < chart->num_bars; i++)
        draw_bar(out, chart, &chart->bars[i], &axis, left, right,
                 top + ROW * (double) i + (ROW - BAR) / 2.0);
}
