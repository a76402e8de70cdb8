/* All charts of a page in one picture, two beside each other, on white: for papers. */
#include "agent/report/chart.h"

#define MARGIN 20
#define GAP 24
#define COLUMNS 2
#define NOTE 20 /* height of a chart's note */

static size_t count_charts(const hpct_report_page *page)
{
    size_t count = 0;
    for (size_t i = 0; i < page->num_items; i++)
        count += page->items[i].kind == HPCT_REPORT_CHART;
    return count;
}

/* Draws them, if `out` is not NULL; returns the height. The next chart goes below the shorter
 * column. */
static int lay(FILE *out, const hpct_report_page *page, int columns)
{
    int below[COLUMNS] = {MARGIN, MARGIN};
    for (size_t i = 0; i < page->num_items; i++) {
        if (page->items[i].kind != HPCT_REPORT_CHART)
            continue;
        const hpct_report_chart *chart = page->items[i].chart;
        int column = columns > 1 && below[1] < below[0] ? 1 : 0;
        if (out != NULL) {
            fprintf(out, "<g transform=\"translate(%d %d)\">\n",
                    MARGIN + column * (HPCT_REPORT_CHART_WIDTH + GAP), below[column]);
            hpct_report_chart_draw(out, chart);
            if (chart->note != NULL)
                hpct_report_label(out, 4, hpct_report_chart_height(chart) + NOTE - 7, "start",
                                  "m n", chart->note, 0);
            fputs("</g>\n", out);
        }
        below[column] += hpct_report_chart_height(chart) + (chart->note != NULL ? NOTE : 0) + GAP;
    }
    return (below[0] > below[1] ? below[0] : below[1]) - GAP + MARGIN;
}

bool hpct_report_write_svg(FILE *out, const hpct_report_page *page)
{
    size_t count = count_charts(page);
    int columns = count > 1 ? COLUMNS : 1;
    int width = 2 * MARGIN + columns * HPCT_REPORT_CHART_WIDTH + (columns - 1) * GAP;
    if (count == 0)
        return false;
    int height = lay(NULL, page, columns);
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" role=\"img\" lang=\"en\">\n<title>",
            width, height, width, height);
    hpct_report_escape(out, page->title);
    fputs("</title>\n<style>", out);
    hpct_report_chart_style(out, false);
    fputs("</style>\n", out);
    hpct_report_chart_patterns(out);
    fprintf(out, "<rect class=\"bg\" width=\"%d\" height=\"%d\"/>\n", width, height);
    lay(out, page, columns);
    fputs("</svg>\n", out);
    return true;
}
