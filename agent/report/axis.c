/* Ticks after P. Heckbert, "Nice numbers for graph labels", Graphics Gems, 1990. */
#include "agent/report/axis.h"

#include <math.h>

/* The nearest of 1, 2, 5 and 10 times a power of ten that is at least `size`. */
static double nice(double size)
{
    double power = pow(10, floor(log10(size))), part = size / power;
    return power * (part <= 1.0001 ? 1 : part <= 2.0001 ? 2 : part <= 5.0001 ? 5 : 10);
}

hpct_report_axis hpct_report_axis_linear(double low, double high, int ticks, bool whole, bool tight)
{
    hpct_report_axis axis = {.low = low, .high = high};
    double least = fabs(high) * 1e-9 > 1e-300 ? fabs(high) * 1e-9 : 1e-300;
    if (!(high - low > least)) { /* all values are equal */
        double room = whole ? 1 : high == 0 ? 1 : fabs(high) / 2;
        axis.low = low - room;
        axis.high = high + room;
    }
    axis.step = nice((axis.high - axis.low) / ticks);
    if (whole && axis.step < 1)
        axis.step = 1;
    axis.first = ceil(axis.low / axis.step - 1e-6) * axis.step;
    if (!tight) {
        axis.low = axis.first = floor(axis.low / axis.step + 1e-6) * axis.step;
        axis.high = ceil(axis.high / axis.step - 1e-6) * axis.step;
    }
    double digits = -floor(log10(axis.step) + 1e-6);
    axis.decimals = digits > 0 ? (digits < 9 ? (int) digits : 9) : 0;
    return axis;
}

hpct_report_axis hpct_report_axis_log(double low, double high, int ticks)
{
    hpct_report_axis axis = {
        .log = true, .low = floor(log2(low) + 1e-6), .high = ceil(log2(high) - 1e-6)};
    if (axis.high <= axis.low)
        axis.high = axis.low + 1;
    axis.step = ceil((axis.high - axis.low) / ticks);
    axis.first = axis.low;
    return axis;
}

double hpct_report_axis_place(const hpct_report_axis *axis, double value)
{
    double at = axis->log ? log2(value) : value;
    double place = (at - axis->low) / (axis->high - axis->low);
    return place < -1 ? -1 : place > 2 ? 2 : place; /* far outside: drawings stay small */
}

int hpct_report_axis_count(const hpct_report_axis *axis)
{
    double count = floor((axis->high - axis->first) / axis->step + 1e-6) + 1;
    return count > 0 && count < 100 ? (int) count : 0;
}

double hpct_report_axis_tick(const hpct_report_axis *axis, int i)
{
    double at = axis->first + i * axis->step;
    at = fabs(at) < axis->step * 1e-6 ? 0 : at;
    return axis->log ? exp2(at) : at;
}

const char *hpct_report_axis_label(char text[HPCT_REPORT_NUMBER], const hpct_report_axis *axis,
                                   double value)
{
    double size = fabs(value);
    if (axis->log)
        snprintf(text, HPCT_REPORT_NUMBER, size >= 1e7 || size < 1e-3 ? "%.2g" : "%.7g", value);
    else if (size >= 1e6 || (size != 0 && size < 1e-4))
        snprintf(text, HPCT_REPORT_NUMBER, "%.3g", value);
    else
        snprintf(text, HPCT_REPORT_NUMBER, "%.*f", axis->decimals, value);
    return text;
}
