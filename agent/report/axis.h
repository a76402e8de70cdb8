/* agent/report/axis.h - axes: nice ticks, and where a value lies. */
#ifndef HPCT_AGENT_REPORT_AXIS_H
#define HPCT_AGENT_REPORT_AXIS_H

#include "agent/report/text.h"

typedef struct hpct_report_axis {
    double low, high; /* at its ends; of a logarithmic axis their log2 */
    double step;      /* between ticks */
    double first;     /* tick */
    bool log;
    int decimals;
} hpct_report_axis;

/* For values from `low` to `high`, with about `ticks` ticks at 1, 2 or 5 times a power of ten; of a
 * whole axis at least 1 apart; of a logarithmic one, at powers of two. `tight`: ends at the values,
 * not at ticks. */
hpct_report_axis hpct_report_axis_linear(double low, double high, int ticks, bool whole,
                                         bool tight);
hpct_report_axis hpct_report_axis_log(double low, double high, int ticks);

/* 0 at the low end, 1 at the high one. */
double hpct_report_axis_place(const hpct_report_axis *axis, double value);

int hpct_report_axis_count(const hpct_report_axis *axis);
double hpct_report_axis_tick(const hpct_report_axis *axis, int i); /* its value */
const char *hpct_report_axis_label(char text[HPCT_REPORT_NUMBER], const hpct_report_axis *axis,
                                   double value);

#endif
