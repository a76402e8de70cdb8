/* Keras' progress output: a bar of 20 that is redrawn, or a line an epoch. */
#include "agent/results/progress.h"

#include "base/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BAR_WIDTH 20
#define REDRAW_SECONDS 0.1
#define DONE_COLOUR "\033[32m"
#define REST_COLOUR "\033[37m"
#define NO_COLOUR "\033[0m"
#define CLEAR_LINE "\033[K"

void hpct_results_progress_init(hpct_results_progress *progress, FILE *stream, int verbose,
                                const hpct_results_metric_choice *choice)
{
    const char *no_colour = getenv("NO_COLOR"), *kind = getenv("TERM");
    int fd = fileno(stream); /* -1: memory, which takes all */
    bool terminal = fd < 0 || (isatty(fd) && !(kind != NULL && strcmp(kind, "dumb") == 0));
    *progress = (hpct_results_progress){.stream = stream,
                                        .verbose = verbose,
                                        .choice = *choice,
                                        .colours = no_colour == NULL || no_colour[0] == '\0'};
    /* mpirun gives its ranks a terminal, whatever its own output is */
    bool asked = verbose == 1 || getenv("OMPI_COMM_WORLD_RANK") == NULL;
    if (verbose == HPCT_VERBOSE_AUTO || verbose == 1)
        progress->verbose = terminal && asked ? 1 : 2;
}

/* For as long as its reader likes: a terminal may be stopped. */
static void show(FILE *stream)
{
    hpct_waits before = hpct_enter_wait(HPCT_WAITS_UNSEEN);
    fflush(stream);
    hpct_enter_wait(before);
}

void hpct_results_progress_begin(hpct_results_progress *progress, int epoch, int epochs,
                                 int64_t steps)
{
    progress->steps = steps;
    progress->drawn_at = -REDRAW_SECONDS;
    if (progress->verbose == 0)
        return;
    fprintf(progress->stream, "Epoch %d/%d\n", epoch, epochs);
    show(progress->stream);
}

static void print_step_time(FILE *stream, double seconds)
{
    if (seconds >= 1)
        fprintf(stream, "%.0fs/step", seconds);
    else if (seconds >= 1e-3)
        fprintf(stream, "%.0fms/step", seconds * 1e3);
    else
        fprintf(stream, "%.0fus/step", seconds * 1e6);
}

static void print_time_left(FILE *stream, double seconds)
{
    long left = (long) (seconds + 0.5);
    if (left >= 3600)
        fprintf(stream, "%ld:%02ld:%02ld ", left / 3600, left / 60 % 60, left % 60);
    else if (left >= 60)
        fprintf(stream, "%ld:%02ld ", left / 60, left % 60);
    else
        fprintf(stream, "%lds ", left);
}

const char *hpct_results_progress_metric(char text[HPCT_RESULTS_METRIC_TEXT], double value)
{
    double size = fabs(value);
    if (isnan(value))
        snprintf(text, HPCT_RESULTS_METRIC_TEXT, "nan"); /* printf may say "-nan" */
    else if (size >= 1e6)
        snprintf(text, HPCT_RESULTS_METRIC_TEXT, "%.1e", value);
    else
        snprintf(text, HPCT_RESULTS_METRIC_TEXT, size > 1e-3 || size == 0 ? "%.4f" : "%.4e", value);
    return text;
}

static void print_metrics(const hpct_results_progress *progress, const hpct_metrics *metrics,
                          bool of_validation)
{
    char text[HPCT_RESULTS_METRIC_TEXT];
    HPCT_RESULTS_METRIC_EACH (m, &progress->choice, of_validation)
        fprintf(progress->stream, " - %s: %s", hpct_results_metric_title(m, of_validation),
                hpct_results_progress_metric(text, hpct_results_metric_get(m, metrics)));
}

/* What is left is told by the colour; without colours, by another character. */
static void print_bar(const hpct_results_progress *progress, int64_t done)
{
    FILE *stream = progress->stream;
    int64_t steps = progress->steps;
    int filled = steps > 0 ? (int) (done * BAR_WIDTH / steps) : BAR_WIDTH;
    fprintf(stream, "\r%" PRId64 "/%" PRId64 " %s", done, steps,
            progress->colours ? DONE_COLOUR : "");
    for (int i = 0; i < BAR_WIDTH; i++) {
        if (i == filled && progress->colours)
            fputs(REST_COLOUR, stream);
        fputs(i >= filled && !progress->colours ? "─" : "━", stream);
    }
    fputs(progress->colours ? NO_COLOUR " " : " ", stream);
}

void hpct_results_progress_step(hpct_results_progress *progress, int64_t done, double seconds,
                                double step_seconds, const hpct_metrics *metrics)
{
    if (progress->verbose != 1 || done == progress->steps ||
        seconds - progress->drawn_at < REDRAW_SECONDS)
        return;
    progress->drawn_at = seconds;
    print_bar(progress, done);
    print_time_left(progress->stream, step_seconds * (double) (progress->steps - done));
    print_step_time(progress->stream, step_seconds);
    print_metrics(progress, metrics, false);
    fputs(CLEAR_LINE, progress->stream);
    show(progress->stream);
}

void hpct_results_progress_end(hpct_results_progress *progress, int64_t done, double seconds,
                               double step_seconds, const hpct_metrics *metrics,
                               const hpct_metrics *validation)
{
    if (progress->verbose == 0)
        return;
    if (progress->verbose == 1) {
        print_bar(progress, done);
        fprintf(progress->stream, "%.0fs ", seconds);
    } else {
        fprintf(progress->stream, "%" PRId64 "/%" PRId64 " - %.0fs - ", done, progress->steps,
                seconds);
    }
    print_step_time(progress->stream, step_seconds);
    print_metrics(progress, metrics, false);
    if (validation != NULL)
        print_metrics(progress, validation, true);
    if (progress->verbose == 1)
        fputs(CLEAR_LINE, progress->stream);
    fputc('\n', progress->stream);
    show(progress->stream);
}
