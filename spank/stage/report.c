/* Progress lines and the stop flag. */
#include <config.h>

#include "spank/stage/report.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/status.h"
#include "spank/stage/bytes.h"

#define LINE_SECONDS 5.0  /* between two progress lines */
#define QUIET_SECONDS 2.0 /* what took less is not worth a line */
#define ALIVE_SECONDS 0.5 /* between two bytes to the plugin */

static volatile sig_atomic_t stop_signal;

static void stop(int number)
{
    stop_signal = number;
}

void hpct_report_catch_signals(void)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGXCPU};
    struct sigaction action = {.sa_handler = stop}; /* no SA_RESTART: a wait is to end */
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double) time.tv_sec + (double) time.tv_nsec * 1e-9;
}

void hpct_report_start(hpct_report *report, bool verbose, int progress_fd)
{
    double start = now();
    *report = (hpct_report){
        .verbose = verbose,
        .progress_fd = progress_fd,
        .touch_fd = -1,
        .start = start,
        .last_line = start,
    };
}

void hpct_report_say(const char *format, ...)
{
    char host[256] = "", text[4096];
    va_list args;
    gethostname(host, sizeof host - 1);
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    dprintf(STDERR_FILENO, "hpc-train-stage: %s: %s\n", host, text);
}

hpct_status hpct_report_tick(hpct_report *report, uint64_t bytes)
{
    char done[32], total[32], rate[32];
    report->bytes += bytes;
    if (stop_signal != 0)
        return hpct_fail(HPCT_ERR_STOPPED, "ended by signal %d", (int) stop_signal);
    double time = now();
    if (time - report->last_byte >= ALIVE_SECONDS) {
        report->last_byte = time;
        if (report->alive != NULL)
            report->alive(report->alive_context);
        if (report->touch_fd >= 0)
            futimens(report->touch_fd, NULL);
        if (report->progress_fd >= 0 && write(report->progress_fd, "", 1) < 0)
            report->progress_fd = -1; /* nobody listens any more; the data is still wanted */
    }
    if (time - report->last_line >= LINE_SECONDS && report->total > 0) {
        report->last_line = time;
        hpct_report_say(
            "%s of %s copied, %s/s", hpct_bytes_show(report->bytes, done, sizeof done),
            hpct_bytes_show(report->total, total, sizeof total),
            hpct_bytes_show((uint64_t) ((double) report->bytes / (time - report->start)), rate,
                            sizeof rate));
    }
    return HPCT_OK;
}

void hpct_report_end(const hpct_report *report, const char *to)
{
    char bytes[32], rate[32];
    double seconds = now() - report->start;
    if (report->files == 0 || (!report->verbose && seconds < QUIET_SECONDS))
        return;
    hpct_report_say(
        "%llu files, %s, to %s in %.1f s (%s/s)", (unsigned long long) report->files,
        hpct_bytes_show(report->bytes, bytes, sizeof bytes), to, seconds,
        hpct_bytes_show((uint64_t) ((double) report->bytes / (seconds + 1e-9)), rate, sizeof rate));
}
