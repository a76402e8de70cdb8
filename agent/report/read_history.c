/* history.csv, as of Keras' CSVLogger: columns by name, epochs from 0. Other columns are left
 * out. */
#include "agent/report/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_COLUMNS 64

/* Where a column goes. */
static const struct column {
    const char *name;
    size_t at;
} columns[] = {
    {"loss", offsetof(hpct_report_point, loss)},
    {"accuracy", offsetof(hpct_report_point, accuracy)},
    {"val_loss", offsetof(hpct_report_point, val_loss)},
    {"val_accuracy", offsetof(hpct_report_point, val_accuracy)},
    {"learning_rate", offsetof(hpct_report_point, learning_rate)},
};
#define NUM_COLUMNS (sizeof columns / sizeof *columns)
#define METRICS ((int) NUM_COLUMNS) /* then those of the validation */
#define EPOCH (METRICS + 2 * HPCT_REPORT_METRICS)

typedef struct header {
    int column[MOST_COLUMNS]; /* index in `columns`, METRICS and more, EPOCH, or -1 */
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

/* EPOCH, or where a column goes, or -1: it is left out. */
static int find_column(const char *name)
{
    bool of_validation = strncmp(name, "val_", 4) == 0;
    if (strcmp(name, "epoch") == 0)
        return EPOCH;
    for (int i = 0; i < (int) NUM_COLUMNS; i++) {
        if (strcmp(name, columns[i].name) == 0)
            return i;
    }
    for (int i = 0; i < HPCT_REPORT_METRICS; i++) {
        if (strcmp(name + (of_validation ? 4 : 0), hpct_report_metric_names[i]) == 0)
            return METRICS + i + (of_validation ? HPCT_REPORT_METRICS : 0);
    }
    return -1;
}

/* The number of a point in which a column goes. */
static double *number_at(hpct_report_point *point, int column)
{
    int metric = column - METRICS;
    size_t at = metric < 0 ? columns[column].at
                           : hpct_report_metric_at((size_t) (metric % HPCT_REPORT_METRICS),
                                                   metric >= HPCT_REPORT_METRICS);
    return (double *) (void *) ((char *) point + at);
}

static void read_header(header *h, const char *at, const char *end)
{
    char name[64];
    while (at != NULL && h->count < MOST_COLUMNS) {
        at = field(at, end, name, sizeof name);
        int column = find_column(name);
        h->has_epoch |= column == EPOCH;
        h->has_metric |= column == 0 || column == 1;
        h->has_validation |= column == 2 || column == 3;
        h->column[h->count++] = column;
    }
}

/* False if a field is no number, or fields are missing. "NA": no validation in this epoch. */
static bool read_line(const header *h, const char *at, const char *end, hpct_report_point *point)
{
    char text[64], *stop;
    *point = hpct_report_no_point();
    for (int i = 0; i < h->count; i++) {
        if (at == NULL)
            return false;
        at = field(at, end, text, sizeof text);
        double value = strtod(text, &stop);
        bool none = *text == '\0' || strcmp(text, "NA") == 0;
        if (!none && (stop == text || *stop != '\0') && h->column[i] >= 0)
            return false;
        if (h->column[i] == EPOCH && !(value >= 0 && value < 1e15 && !none))
            return false;
        if (h->column[i] == EPOCH)
            point->epoch = (int64_t) value + 1;
        else if (h->column[i] >= 0 && !none)
            *number_at(point, h->column[i]) = value;
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
            read_header(&h, at, end);
        if (line == 1 && (!h.has_epoch || !h.has_metric))
            return false;
        /* without its newline a number may lack digits */
        bool whole = newline != NULL && line > 1 && end > at && read_line(&h, at, end, &point);
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
