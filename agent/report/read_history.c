/* history.csv, as of Keras' CSVLogger: columns by name, epochs from 0. */
#include "agent/report/run.h"

#include "agent/results/metric.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_COLUMNS 64

typedef struct column {
    enum { EPOCH, LEARNING_RATE, METRIC } kind;
    size_t at;     /* of a metric */
    bool is_known; /* else it may have other things than numbers */
} column;

typedef struct header {
    column columns[MOST_COLUMNS];
    int count;
    bool has_epoch, has_metric, has_validation;
} header;

/* The field from `at` to a comma or the line's end; returns where the next one begins. */
static const char *field(const char *at, const char *end, char *out, size_t room)
{
    const char *comma = memchr(at, ',', (size_t) (end - at));
    const char *stop = comma != NULL ? comma : end;
    size_t bytes = (size_t) (stop - at);
    bytes = bytes < room ? bytes : room - 1;
    memcpy(out, at, bytes);
    out[bytes] = '\0';
    out[strcspn(out, "\r")] = '\0';
    return comma != NULL ? comma + 1 : NULL;
}

static column find_column(hpct_report_run *run, const char *name)
{
    bool of_validation;
    if (strcmp(name, "epoch") == 0)
        return (column){.kind = EPOCH, .is_known = true};
    if (strcmp(name, "learning_rate") == 0)
        return (column){.kind = LEARNING_RATE, .is_known = true};
    return (column){.kind = METRIC,
                    .at = hpct_report_add_column(run, name),
                    .is_known = hpct_results_metric_find(name, &of_validation) != NULL};
}

static void read_header(hpct_report_run *run, header *h, const char *at, const char *end)
{
    char name[64];
    while (at != NULL && h->count < MOST_COLUMNS) {
        at = field(at, end, name, sizeof name);
        column c = h->columns[h->count++] = find_column(run, name);
        h->has_epoch |= c.kind == EPOCH;
        if (c.kind != METRIC)
            continue;
        h->has_metric |= c.at == HPCT_REPORT_LOSS || c.at == HPCT_REPORT_ACCURACY;
        h->has_validation |= c.at == HPCT_REPORT_VAL_LOSS || c.at == HPCT_REPORT_VAL_ACCURACY;
    }
}

/* False if the number cannot be one of this column. */
static bool set_number(hpct_report_point *point, const column *c, double value)
{
    if (c->kind == EPOCH && !(value >= 0 && value < 1e15))
        return false;
    if (c->kind == EPOCH)
        point->epoch = (int64_t) value + 1;
    else if (c->kind == LEARNING_RATE)
        point->learning_rate = value;
    else if (c->at < point->num_values)
        point->values[c->at] = value;
    return true;
}

/* False if a field is not a number, or fields are missing. "NA": no validation in this epoch. */
static bool read_line(const header *h, const char *at, const char *end, hpct_report_point *point)
{
    char text[64], *stop;
    for (int i = 0; i < h->count; i++) {
        const column *c = &h->columns[i];
        if (at == NULL)
            return false;
        at = field(at, end, text, sizeof text);
        double value = strtod(text, &stop);
        bool none = *text == '\0' || strcmp(text, "NA") == 0;
        bool is_number = !none && stop != text && *stop == '\0';
        if (!is_number && ((!none && c->is_known) || c->kind == EPOCH))
            return false;
        if (is_number && !set_number(point, c, value))
            return false;
    }
    return true;
}

/* An epoch that was done again replaces the earlier ones from it on. */
static void add(hpct_report_run *run, const hpct_report_point *point)
{
    while (run->num_points > 0 && run->points[run->num_points - 1].epoch >= point->epoch)
        run->num_points--;
    hpct_report_point *points =
        hpct_report_grow(run->pool, run->points, run->num_points, sizeof *points);
    if (points == NULL)
        return;
    run->points = points;
    run->points[run->num_points++] = *point;
}

static void say_unread(hpct_report_run *run, int64_t unread, int64_t first, bool cut)
{
    if (cut && !hpct_report_run_is_live(run))
        hpct_report_remark(run, "history.csv: line %lld, the last, is cut", (long long) first);
    else if (unread > 0 && !cut)
        hpct_report_remark(run, "history.csv: %lld line%s cannot be read, first line %lld",
                           (long long) unread, unread == 1 ? "" : "s", (long long) first);
}

bool hpct_report_read_history(hpct_report_run *run, const char *text, size_t size)
{
    header h = {.count = 0};
    const char *at = text, *stop = text + size;
    int64_t unread = 0, first = 0;
    bool cut = false;
    for (int64_t line = 1; at < stop; line++) {
        const char *newline = memchr(at, '\n', (size_t) (stop - at));
        const char *end = newline != NULL ? newline : stop;
        hpct_report_point point;
        if (line == 1)
            read_header(run, &h, at, end);
        if (line == 1 && (!h.has_epoch || !h.has_metric))
            return false;
        /* without its newline a number may lack digits */
        bool whole = newline != NULL && line > 1 && end > at;
        if (whole) {
            point = hpct_report_new_point(run);
            whole = read_line(&h, at, end, &point);
        }
        if (whole)
            add(run, &point);
        else if (line > 1 && end > at && unread++ == 0)
            first = line;
        cut = newline == NULL && unread == 1;
        at = end + 1;
    }
    run->validated = h.has_validation;
    say_unread(run, unread, first, cut);
    return h.count > 0;
}
