/* Lines are composed whole, then cut to the width. */
#include "agent/top/screen.h"

#include "agent/results/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES 1024
#define BAR_WIDTH 40
#define NO_NEWS_SECONDS 30 /* or three steps */
#define NODE_WIDTH 16
#define RED "\033[31m"
#define GREEN "\033[32m"
#define YELLOW "\033[33m"
#define PLAIN "\033[0m"

typedef struct page {
    FILE *out;
    const hpct_top_screen *screen;
    const hpct_results_live_report *report;
    int lines;
    char line[LINE_BYTES];
    size_t length;
} page;

/* ---- a line ---- */

__attribute__((format(printf, 2, 3))) static void put(page *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(p->line + p->length, sizeof p->line - p->length, format, args);
    va_end(args);
    size_t room = sizeof p->line - 1 - p->length;
    p->length += (size_t) length < room ? (size_t) length : room;
}

static void put_colour(page *p, const char *colour)
{
    if (p->screen->colour)
        put(p, "%s", colour);
}

/* Text of the file, of at most `width` characters. */
static void put_foreign(page *p, const char *text, int width)
{
    int count = 0;
    for (const char *c = text; *c != '\0' && count < width; c++) {
        if (((unsigned char) *c & 0xc0) == 0x80)
            continue; /* within a character of several bytes */
        put(p, "%c", *c >= ' ' && *c <= '~' ? *c : '?');
        count++;
    }
}

/* Bytes of a line that fill `width` columns; colours take none. */
static size_t cut(const char *line, int width)
{
    int columns = 0;
    size_t i = 0;
    for (; line[i] != '\0'; i++) {
        if (line[i] == '\033')
            i += strcspn(line + i, "m");
        else if (((unsigned char) line[i] & 0xc0) != 0x80 && ++columns > width)
            break;
    }
    return i;
}

static void end_line(page *p)
{
    const hpct_top_screen *s = p->screen;
    p->line[p->length] = '\0';
    while (p->length > 0 && p->line[p->length - 1] == ' ')
        p->line[--p->length] = '\0';
    if (s->height == 0 || p->lines < s->height) {
        size_t bytes = s->height == 0 ? p->length : cut(p->line, s->width);
        fprintf(p->out, "%s%.*s%s", p->lines > 0 ? "\n" : "", (int) bytes, p->line,
                bytes < p->length && s->colour ? PLAIN : "");
    }
    p->lines++;
    p->length = 0;
}

/* ---- numbers ---- */

#define TEXT 32

static const char *duration(char text[TEXT], double seconds)
{
    if (!(seconds < 1e9)) {
        snprintf(text, TEXT, "-");
        return text;
    }
    long all = seconds > 0 ? (long) (seconds + 0.5) : 0;
    if (all >= 86400)
        snprintf(text, TEXT, "%ld d %ld h", all / 86400, all / 3600 % 24);
    else if (all >= 3600)
        snprintf(text, TEXT, "%ld:%02ld:%02ld", all / 3600, all / 60 % 60, all % 60);
    else if (all >= 60)
        snprintf(text, TEXT, "%ld:%02ld", all / 60, all % 60);
    else
        snprintf(text, TEXT, "%ld s", all);
    return text;
}

/* "-" if unknown. */
static const char *number(char text[TEXT], double value, int digits, const char *unit)
{
    if (isnan(value))
        snprintf(text, TEXT, "-");
    else
        snprintf(text, TEXT, fabs(value) < 1e9 ? "%.*f%s" : "%.*e%s", digits, value, unit);
    return text;
}

/* Share of a step, in percent. */
static const char *share(char text[TEXT], double part, double whole)
{
    return number(text, whole > 0 ? 100 * part / whole : NAN, 0, " %");
}

/* ---- the run ---- */

static double age(const page *p)
{
    double seconds = (double) (p->screen->now - p->report->time);
    return seconds > 0 ? seconds : 0; /* clocks of nodes differ */
}

static bool is_silent(const page *p)
{
    double usual = 3e-3 * p->report->state.step_ms;
    return p->report->how == HPCT_RESULTS_LIVE_RUNNING &&
           age(p) > (usual > NO_NEWS_SECONDS ? usual : NO_NEWS_SECONDS);
}

static void draw_title(page *p)
{
    static const char *const colours[] = {[HPCT_RESULTS_LIVE_RUNNING] = GREEN,
                                          [HPCT_RESULTS_LIVE_FINISHED] = GREEN,
                                          [HPCT_RESULTS_LIVE_STOPPED] = YELLOW,
                                          [HPCT_RESULTS_LIVE_FAILED] = RED};
    const hpct_results_live_report *r = p->report;
    char text[TEXT];
    put_foreign(p, r->model, 64);
    put(p, ", %d %s", r->workers, r->workers == 1 ? "rank" : "ranks");
    if (r->job != NULL) {
        put(p, ", job ");
        put_foreign(p, r->job, 24);
    }
    put(p, ": ");
    put_colour(p, is_silent(p) ? YELLOW : colours[r->how]);
    put(p, "%s", hpct_results_live_word(r->how));
    if (is_silent(p))
        put(p, ", no news for %s", duration(text, age(p)));
    put_colour(p, PLAIN);
    end_line(p);
}

static void draw_bar(page *p, double done)
{
    int filled = (int) (done * BAR_WIDTH);
    put(p, "%3.0f %% [", floor(100 * done));
    for (int i = 0; i < BAR_WIDTH; i++)
        put(p, "%s", p->screen->utf8 ? (i < filled ? "━" : " ") : (i < filled ? "=" : " "));
    put(p, "]");
}

/* The bar is of the whole run. */
static void draw_place(page *p)
{
    const hpct_results_live_state *s = &p->report->state;
    double of_epoch = s->steps > 0 ? (double) s->step / (double) s->steps : 0;
    double done = s->epoch > 0 ? (s->epoch - 1 + of_epoch) / s->epochs : 0;
    draw_bar(p, done);
    end_line(p);
    put(p, "epoch %d/%d, step %" PRId64 "/%" PRId64, s->epoch, s->epochs, s->step, s->steps);
    end_line(p);
}

static void draw_times(page *p)
{
    const hpct_results_live_state *s = &p->report->state;
    char text[TEXT];
    put(p, "%s per step, ", number(text, s->step_ms, 1, " ms"));
    put(p, "%s images/s", number(text, s->images_per_second, 0, ""));
    if (!isnan(s->learning_rate))
        put(p, ", learning rate %g", s->learning_rate);
    end_line(p);
    if (p->report->how != HPCT_RESULTS_LIVE_RUNNING)
        return;
    double job = s->job_ends - (double) p->screen->now;
    bool late = s->seconds_left > job;
    put_colour(p, late ? RED : "");
    if (isnan(s->seconds_left))
        put(p, "time left unknown");
    else
        put(p, "%s left", duration(text, s->seconds_left));
    if (!isnan(job))
        put(p, ", the job ends in %s%s", duration(text, job), late ? ": too soon" : "");
    put_colour(p, late ? PLAIN : "");
    end_line(p);
}

/* ---- the loss ---- */

static void draw_curve(page *p, const double *values, int num)
{
    static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char letters[] = "_.,-=+*#";
    double least = INFINITY, most = -INFINITY;
    for (int i = 0; i < num; i++) {
        least = fmin(least, values[i]);
        most = fmax(most, values[i]);
    }
    for (int i = 0; i < num; i++) {
        double height = most > least ? (values[i] - least) / (most - least) : 0;
        int level = isfinite(values[i] + height) ? (int) (height * 7 + 0.5) : -1;
        if (level < 0)
            put(p, "?"); /* not finite */
        else if (p->screen->utf8)
            put(p, "%s", blocks[level]);
        else
            put(p, "%c", letters[level]);
    }
}

/* Of the last values as many as there are columns. */
static void draw_losses(page *p)
{
    const hpct_results_live_report *r = p->report;
    char loss[HPCT_RESULTS_METRIC_TEXT];
    if (isnan(r->state.loss) && r->state.step == 0) /* none yet, rather than not a number */
        snprintf(loss, sizeof loss, "-");
    else
        hpct_results_progress_metric(loss, r->state.loss);
    put(p, "loss      %-10s ", loss);
    int room = p->screen->width - (int) p->length, num = r->num_losses;
    int first = p->screen->height > 0 && num > room ? num - room : 0;
    if (first < num)
        draw_curve(p, r->losses + first, num - first);
    end_line(p);
}

/* Those of evaluations, or the others, behind what the line has. */
static void put_metrics(page *p, bool of_validation)
{
    const hpct_results_live_state *s = &p->report->state;
    char text[HPCT_RESULTS_METRIC_TEXT];
    for (int i = 0; i < s->num_metrics; i++) {
        const hpct_results_live_metric *m = &s->metrics[i];
        if ((strncmp(m->name, HPCT_RESULTS_METRIC_VAL, strlen(HPCT_RESULTS_METRIC_VAL)) == 0) !=
            of_validation)
            continue;
        put(p, "%s", p->length > 0 ? ", " : "");
        put_foreign(p, m->name, HPCT_RESULTS_LIVE_NAME);
        put(p, " %s", isnan(m->value) ? "-" : hpct_results_progress_metric(text, m->value));
    }
}

/* Of numbers there is no accuracy. */
static bool has_accuracy(const hpct_results_live_state *s)
{
    bool of_validation;
    const hpct_results_metric *first =
        s->num_metrics > 0 ? hpct_results_metric_find(s->metrics[0].name, &of_validation) : NULL;
    return first == NULL || first->kind != HPCT_RESULTS_METRIC_OF_NUMBERS;
}

static void draw_metrics(page *p)
{
    const hpct_results_live_state *s = &p->report->state;
    char text[TEXT], loss[HPCT_RESULTS_METRIC_TEXT];
    draw_losses(p);
    if (has_accuracy(s))
        put(p, "accuracy  %s", number(text, s->accuracy, 4, ""));
    put_metrics(p, false);
    end_line(p);
    if (isnan(s->val_loss) && isnan(s->val_accuracy))
        return;
    put(p, "val_loss %s", hpct_results_progress_metric(loss, s->val_loss));
    if (has_accuracy(s))
        put(p, ", val_accuracy %s", number(text, s->val_accuracy, 4, ""));
    put_metrics(p, true);
    end_line(p);
}

/* ---- ranks ---- */

/* Steps end together: the rank that waits least is the slowest. */
static double own_ms(const hpct_results_live_rank *rank)
{
    double ms = rank->step_ms - rank->wait_ms;
    return isnan(ms) ? -INFINITY : ms;
}

static int by_slowness(const void *a, const void *b)
{
    const hpct_results_live_rank *x = *(const hpct_results_live_rank *const *) a,
                                 *y = *(const hpct_results_live_rank *const *) b;
    double of_x = own_ms(x), of_y = own_ms(y);
    return of_x != of_y ? (of_x < of_y) - (of_x > of_y) : (x->rank > y->rank) - (x->rank < y->rank);
}

static void draw_rank(page *p, const hpct_results_live_rank *rank)
{
    char text[TEXT];
    put(p, "%5d  ", rank->rank);
    size_t begin = p->length;
    put_foreign(p, rank->node, NODE_WIDTH);
    put(p, "%*s", NODE_WIDTH - (int) (p->length - begin), "");
    put(p, "%10s", number(text, rank->step_ms, 1, ""));
    put(p, "%8s", share(text, rank->wait_ms, rank->step_ms));
    put(p, "%8s", share(text, rank->input_ms, rank->step_ms));
    put(p, "%10s", number(text, rank->memory_mb, 0, " MB"));
    put(p, "%8s", share(text, rank->gpu, 1));
    end_line(p);
}

/* Some strategies do not tell. */
static bool knows_ranks(const hpct_results_live_report *r)
{
    for (int i = 0; i < r->num_ranks; i++) {
        if (!isnan(r->ranks[i].step_ms) || !isnan(r->ranks[i].memory_mb))
            return true;
    }
    return false;
}

/* In the order of ranks, or, where they do not all fit, the slowest first. */
static void draw_ranks(page *p)
{
    const hpct_results_live_report *r = p->report;
    int room = p->screen->height == 0
                   ? r->num_ranks
                   : p->screen->height - p->lines - 2 - (p->screen->remark != NULL ? 1 : 0);
    const hpct_results_live_rank **order = calloc((size_t) r->num_ranks + 1, sizeof *order);
    if (!knows_ranks(r) || room < 1 || order == NULL) {
        free(order);
        return;
    }
    for (int i = 0; i < r->num_ranks; i++)
        order[i] = &r->ranks[i];
    int shown = r->num_ranks;
    if (shown > room) {
        qsort(order, (size_t) r->num_ranks, sizeof *order, by_slowness);
        shown = room - 1;
    }
    end_line(p);
    put(p, " rank  %-*s%10s%8s%8s%10s%8s", NODE_WIDTH, "node", "ms/step", "waits", "input",
        "memory", "GPU");
    end_line(p);
    for (int i = 0; i < shown; i++)
        draw_rank(p, order[i]);
    if (shown < r->num_ranks) {
        put(p, "and %d more, which are faster", r->num_ranks - shown);
        end_line(p);
    }
    free(order);
}

void hpct_top_screen_draw(FILE *out, const hpct_top_screen *screen,
                          const hpct_results_live_report *report)
{
    page p = {.out = out, .screen = screen, .report = report};
    draw_title(&p);
    draw_place(&p);
    draw_metrics(&p);
    draw_times(&p);
    draw_ranks(&p);
    if (screen->remark != NULL) {
        put_foreign(&p, screen->remark, LINE_BYTES);
        end_line(&p);
    }
    if (screen->height == 0)
        fputc('\n', out);
}
