/* agent/report/chart.h - charts as SVG, with the colours of a light or a dark page. */
#ifndef HPCT_AGENT_REPORT_CHART_H
#define HPCT_AGENT_REPORT_CHART_H

#include "agent/report/page.h"

#define HPCT_REPORT_CHART_WIDTH 420
#define HPCT_REPORT_LOOKS 6 /* colours, dashes and markers of series */

/* Height at that width. */
int hpct_report_chart_height(const hpct_report_chart *chart);
/* What is drawn, without the <svg> around it. */
void hpct_report_chart_draw(FILE *out, const hpct_report_chart *chart);
/* What the chart shows in one sentence, for those who do not see it; escaped. */
void hpct_report_chart_describe(FILE *out, const hpct_report_chart *chart);

/* The parts of it: lines or bars below y. */
int hpct_report_lines_height(void);
void hpct_report_lines_draw(FILE *out, const hpct_report_chart *chart, double y);
int hpct_report_bars_height(const hpct_report_chart *chart);
void hpct_report_bars_draw(FILE *out, const hpct_report_chart *chart, double y);

/* A marker of a series, and its dashes ("" for none). */
void hpct_report_marker_draw(FILE *out, int look, double x, double y, const char *tip);
const char *hpct_report_dashes(int look);
/* Text at a place; anchor: start, middle or end. At most `room` characters; 0: all. */
void hpct_report_label(FILE *out, double x, double y, const char *anchor, const char *class,
                       const char *text, int room);

/* CSS of all charts, and the patterns of bars' parts. `both`: dark as well, where that is
 * preferred. */
void hpct_report_chart_style(FILE *out, bool both);
void hpct_report_chart_patterns(FILE *out);

#endif
