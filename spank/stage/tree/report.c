/* Progress lines and stop signals. */
#include <config.h>

#include "spank/stage/tree/report.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/status.h"
#include "spank/spec/bytes.h"

#define LINE_SECONDS 5.0  /* between two progress lines */
#define ALIVE_SECONDS 0.5 /* between two heartbeat bytes to the plugin */

static volatile sig_atomic_t stop_signal;

static void stop(int number)
{
    stop_signal = number;
}

void hpct_stage_report_catch_signals(void)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGXCPU};
    /* SIGPIPE and SIGXFSZ: the failed write returns an error. The others are meant for the job's
     * program (#SBATCH --signal=USR1@60 sends the signal to all processes of a step). */
    static const int ignored[] = {SIGPIPE, SIGXFSZ, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF};
    struct sigaction action = {.sa_handler = stop}; /* no SA_RESTART: waits must return */
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_IGN);
}

/* Resolution of a few milliseconds, but much cheaper: it is called for every file. */
static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    return (double) time.tv_sec + (double) time.tv_nsec * 1e-9;
}

void hpct_stage_report_start(hpct_stage_report *report, bool verbose, int progress_fd)
{
    double start = now();
    *report = (hpct_stage_report){
        .verbose = verbose,
        .progress_fd = progress_fd,
        .touch_fd = -1,
        .start = start,
        .last_line = start,
        .mutex = PTHREAD_MUTEX_INITIALIZER,
    };
}

void hpct_stage_report_say(const char *format, ...)
{
    char host[256] = "", text[4096];
    va_list args;
    gethostname(host, sizeof host - 1);
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    dprintf(STDERR_FILENO, "hpc-train-stage: %s: %s\n", host, text);
}

static hpct_status check_end(hpct_stage_report *report, double time)
{
    if (report->limit > 0 && time >= report->start + report->limit)
        return hpct_fail(HPCT_ERR_STOPPED, "the time of %.0f s was over", report->limit);
    if (stop_signal == 0)
        return HPCT_OK;
    if (report->stop <= 0) {
        report->stop = time + report->grace;
        if (report->grace > 0)
            hpct_stage_report_say("the job is being ended: %.1f s are left to copy", report->grace);
    }
    return time < report->stop
               ? HPCT_OK
               : hpct_fail(HPCT_ERR_STOPPED, "ended by signal %d", (int) stop_signal);
}

/* "1.2 GB of 5.0 GB, 300 of 60000 files, 1.1 GB/s, 0:04 left"; unknown parts are omitted. */
static void say_progress(const hpct_stage_report *report, double seconds)
{
    char line[256] = "", done[32], total[32], rate[32];
    const uint64_t bytes = report->bytes, files = report->files;
    FILE *out = fmemopen(line, sizeof line, "w");
    if (out == NULL)
        return;
    fputs(hpct_spec_bytes_show(bytes, done, sizeof done), out);
    if (report->total > 0)
        fprintf(out, " of %s", hpct_spec_bytes_show(report->total, total, sizeof total));
    fprintf(out, ", %llu", (unsigned long long) files);
    if (report->total_files > 0)
        fprintf(out, " of %llu", (unsigned long long) report->total_files);
    fprintf(out, " files, %s/s",
            hpct_spec_bytes_show((uint64_t) ((double) bytes / seconds), rate, sizeof rate));
    double done_part = report->total > 0 ? (double) bytes / (double) report->total
                       : report->read_total > 0
                           ? (double) report->read / (double) report->read_total
                           : 1;
    if (done_part > 0 && done_part < 1) {
        double left = seconds / done_part - seconds;
        unsigned long rest = left < 359999 ? (unsigned long) left + 1 : 359999;
        fprintf(out, ", ");
        if (rest >= 3600)
            fprintf(out, "%lu:%02lu", rest / 3600, rest / 60 % 60);
        else
            fprintf(out, "%lu", rest / 60);
        fprintf(out, ":%02lu left", rest % 60);
    }
    fclose(out);
    hpct_stage_report_say("%s", line);
}

hpct_status hpct_stage_report_stopped(void)
{
    return stop_signal == 0 ? HPCT_OK
                            : hpct_fail(HPCT_ERR_STOPPED, "ended by signal %d", (int) stop_signal);
}

static void give_sign(hpct_stage_report *report)
{
    if (report->touch_fd >= 0)
        futimens(report->touch_fd, NULL);
    report->signs++;
    if (report->progress_fd >= 0 && pwrite(report->progress_fd, &report->signs, 1, 0) < 0 &&
        (errno != ESPIPE || write(report->progress_fd, &report->signs, 1) < 0))
        report->progress_fd = -1; /* the reader is gone; staging continues */
}

void hpct_stage_report_alive(hpct_stage_report *report)
{
    if (pthread_mutex_trylock(&report->mutex) != 0)
        return;
    double time = now();
    if (time - report->last_byte >= ALIVE_SECONDS) {
        report->last_byte = time;
        give_sign(report);
    }
    pthread_mutex_unlock(&report->mutex);
}

hpct_status hpct_stage_report_tick(hpct_stage_report *report, uint64_t bytes)
{
    atomic_fetch_add_explicit(&report->bytes, bytes, memory_order_relaxed);
    if (stop_signal != 0 && report->grace <= 0)
        return hpct_stage_report_stopped();
    if (pthread_mutex_trylock(&report->mutex) != 0)
        return HPCT_OK; /* another thread is reporting */
    double time = now();
    hpct_status status = check_end(report, time);
    if (status != HPCT_OK) {
        pthread_mutex_unlock(&report->mutex);
        return status;
    }
    if (time - report->last_byte >= ALIVE_SECONDS) {
        report->last_byte = time;
        if (report->alive != NULL)
            status = report->alive(report->alive_context);
        give_sign(report);
    }
    if (!report->quiet && time - report->last_line >= LINE_SECONDS &&
        report->bytes + report->files > 0) {
        report->last_line = time;
        say_progress(report, time - report->start);
    }
    pthread_mutex_unlock(&report->mutex);
    return status;
}

void hpct_stage_report_end(const hpct_stage_report *report, const char *to, double least)
{
    char bytes[32], rate[32], speed[48] = "";
    double seconds = now() - report->start;
    uint64_t files = report->files, count = report->bytes;
    if (files == 0 || report->quiet || (!report->verbose && seconds < least))
        return;
    if (seconds >= 0.1) /* too short for a rate */
        snprintf(speed, sizeof speed, " (%s/s)",
                 hpct_spec_bytes_show((uint64_t) ((double) count / seconds), rate, sizeof rate));
    hpct_stage_report_say("%llu file%s, %s, to %s in %.1f s%s", (unsigned long long) files,
                          files == 1 ? "" : "s", hpct_spec_bytes_show(count, bytes, sizeof bytes),
                          to, seconds, speed);
}
