/* Line charts. Of many points, means of neighbours are drawn. */
#include "agent/report/axis.h"
#include "agent/report/chart.h"

#include <math.h>

#define HEIGHT 240
#define BELOW 40 /* ticks, their labels, the axis' name */
#define RIGHT 12
#define TOP 24 /* name of the y axis */
#define MOST_MARKERS 32
#define HUGE_VALUE 1e30 /* not drawn */

typedef struct frame {
    hpct_report_axis x, y;
    double left, right, top, bottom;
} frame;

typedef struct range {
    double low, high;
} range;

int hpct_report_lines_height(void)
{
    return HEIGHT;
}

static bool is_drawn(const hpct_report_chart *chart, double x, double y)
{
    return isfinite(x) && isfinite(y) && fabs(y) < HUGE_VALUE && fabs(x) < HUGE_VALUE &&
           (!chart->log || x > 0) && (!chart->log_y || y > 0);
}

static void widen(range *r, double value)
{
    r->low = value < r->low ? value : r->low;
    r->high = value > r->high ? value : r->high;
}

static void find_ranges(const hpct_report_chart *chart, range *x, range *y)
{
    *x = *y = (range){INFINITY, -INFINITY};
    for (size_t i = 0; i < chart->num_series; i++) {
        const hpct_report_series *s = &chart->series[i];
        for (size_t k = 0; k < s->count; k++) {
            if (is_drawn(chart, s->x[k], s->y[k])) {
                widen(x, s->x[k]);
                widen(y, s->y[k]);
            }
        }
    }
    if (x->low > x->high)
        *x = *y = (range){1, 1};
    if (chart->zero && !chart->log_y)
        widen(y, 0);
}

static double at_x(const frame *f, double value)
{
    return f->left + hpct_report_axis_place(&f->x, value) * (f->right - f->left);
}

static double at_y(const frame *f, double value)
{
    return f->bottom - hpct_report_axis_place(&f->y, value) * (f->bottom - f->top);
}

static frame make_frame(const hpct_report_chart *chart, double top)
{
    range x, y;
    char text[HPCT_REPORT_NUMBER];
    find_ranges(chart, &x, &y);
    frame f = {.top = top + (*chart->y_label != '\0' ? TOP : 8), .bottom = top + HEIGHT - BELOW};
    f.x = chart->log ? hpct_report_axis_log(x.low, x.high, 7)
                     : hpct_report_axis_linear(x.low, x.high, 7, chart->whole_x, true);
    f.y = chart->log_y ? hpct_report_axis_log(y.low, y.high, 6)
                       : hpct_report_axis_linear(y.low, y.high, 5, false, false);
    int longest = 0;
    for (int i = 0; i < hpct_report_axis_count(&f.y); i++) {
        int width =
            hpct_report_width(hpct_report_axis_label(text, &f.y, hpct_report_axis_tick(&f.y, i)));
        longest = width > longest ? width : longest;
    }
    f.left = 14 + 7.5 * longest;
    int last = hpct_report_axis_count(&f.x) - 1;
    double half = 4 * hpct_report_width(
                          hpct_report_axis_label(text, &f.x, hpct_report_axis_tick(&f.x, last)));
    f.right = HPCT_REPORT_CHART_WIDTH - (half > RIGHT ? half : RIGHT);
    return f;
}

static void draw_frame(FILE *out, const hpct_report_chart *chart, const frame *f)
{
    char text[HPCT_REPORT_NUMBER];
    for (int i = 0; i < hpct_report_axis_count(&f->y); i++) {
        double value = hpct_report_axis_tick(&f->y, i), y = at_y(f, value);
        fprintf(out, "<path class=\"g\" d=\"M%.1f %.1fH%.1f\"/>", f->left, y, f->right);
        hpct_report_label(out, f->left - 6, y + 4, "end", "m",
                          hpct_report_axis_label(text, &f->y, value), 0);
    }
    fprintf(out, "<path class=\"ax\" d=\"M%.1f %.1fH%.1f\"/>\n", f->left, f->bottom, f->right);
    for (int i = 0; i < hpct_report_axis_count(&f->x); i++) {
        double value = hpct_report_axis_tick(&f->x, i), x = at_x(f, value);
        fprintf(out, "<path class=\"ax\" d=\"M%.1f %.1fv4\"/>", x, f->bottom);
        hpct_report_label(out, x, f->bottom + 17, "middle", "m",
                          hpct_report_axis_label(text, &f->x, value), 0);
    }
    hpct_report_label(out, (f->left + f->right) / 2, f->bottom + 34, "middle", "m", chart->x_label,
                      0);
    hpct_report_label(out, 4, f->top - 13, "start", "m", chart->y_label, 0);
}

/* Mean of the points from i on, of those that are drawn; false if there is none. */
static bool mean_of(const hpct_report_chart *chart, const hpct_report_series *s, size_t i,
                    size_t count, double *x, double *y)
{
    double used = 0, sum_x = 0, sum_y = 0;
    for (size_t k = i; k < i + count && k < s->count; k++) {
        if (!is_drawn(chart, s->x[k], s->y[k]))
            continue;
        sum_x += s->x[k];
        sum_y += s->y[k];
        used++;
    }
    *x = sum_x / used;
    *y = sum_y / used;
    return used > 0;
}

static void draw_line(FILE *out, const hpct_report_chart *chart, const frame *f, int look)
{
    const hpct_report_series *s = &chart->series[look];
    size_t each = (s->count + HPCT_REPORT_MOST_POINTS - 1) / HPCT_REPORT_MOST_POINTS;
    bool pen = false;
    double x, y;
    fprintf(out, "<path class=\"%s s%d\" stroke-dasharray=\"%s\" d=\"", s->plain ? "ideal" : "line",
            s->plain ? -1 : look % HPCT_REPORT_LOOKS, s->plain ? "3 4" : hpct_report_dashes(look));
    for (size_t i = 0; i < s->count; i += each) {
        bool there = mean_of(chart, s, i, each, &x, &y);
        if (there)
            fprintf(out, "%c%.1f %.1f", pen ? 'L' : 'M', at_x(f, x), at_y(f, y));
        pen = there;
    }
    fputs("\"/>\n", out);
}

/* "validation, epoch 3: 0.0412" */
static void draw_marker(FILE *out, const hpct_report_chart *chart, const frame *f, int look,
                        size_t i)
{
    const hpct_report_series *s = &chart->series[look];
    char tip[256], x[HPCT_REPORT_NUMBER], y[HPCT_REPORT_NUMBER];
    snprintf(x, sizeof x, "%.9g", s->x[i]);
    const char *value = chart->unit == HPCT_REPORT_METRIC ? hpct_report_metric(y, s->y[i])
                                                          : hpct_report_amount(y, s->y[i]);
    if (s->labels != NULL)
        snprintf(tip, sizeof tip, "%s: %s", s->labels[i], value);
    else
        snprintf(tip, sizeof tip, "%s, %s %s: %s", s->name, chart->x_label, x, value);
    hpct_report_marker_draw(out, look, at_x(f, s->x[i]), at_y(f, s->y[i]), tip);
}

static bool is_alone(const hpct_report_chart *chart, const hpct_report_series *s, size_t i)
{
    bool before = i > 0 && is_drawn(chart, s->x[i - 1], s->y[i - 1]);
    bool behind = i + 1 < s->count && is_drawn(chart, s->x[i + 1], s->y[i + 1]);
    return !before && !behind;
}

static void draw_markers(FILE *out, const hpct_report_chart *chart, const frame *f, int look)
{
    const hpct_report_series *s = &chart->series[look];
    size_t each = (s->count + MOST_MARKERS - 1) / MOST_MARKERS;
    bool many = s->count > HPCT_REPORT_MOST_POINTS; /* the line is of means */
    for (size_t i = 0; i < s->count; i++) {
        bool last = i + 1 == s->count, wanted = i % each == 0 || last || is_alone(chart, s, i);
        if (is_drawn(chart, s->x[i], s->y[i]) && wanted && !many)
            draw_marker(out, chart, f, look, i);
    }
}

void hpct_report_lines_draw(FILE *out, const hpct_report_chart *chart, double y)
{
    frame f = make_frame(chart, y);
    draw_frame(out, chart, &f);
    for (size_t i = 0; i < chart->num_series; i++)
        draw_line(out, chart, &f, (int) i);
    for (size_t i = 0; i < chart->num_series; i++) {
        if (!chart->series[i].plain)
            draw_markers(out, chart, &f, (int) i);
    }
}
