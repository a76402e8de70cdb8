/* history.csv and metrics.jsonl. */
#include "agent/results/history.h"

#include "agent/results/log_file.h"
#include "base/file.h"
#include "base/output.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_LINE 1024

struct hpct_results_history {
    hpct_results_metric_choice choice;
    bool continues;    /* another run's files */
    bool epochs, good; /* any; any good one */
    hpct_results_log_file csv, steps;
};

/* An earlier run's file gets another name: this run may still diverge. */
static hpct_status keep_earlier(const hpct_results_log_file *log)
{
    char *path;
    HPCT_TRY(hpct_results_beside(&path, log->file.target, "earlier"));
    hpct_status status =
        link(log->file.target, path) == 0 || errno == ENOENT || rename(log->file.target, path) == 0
            ? HPCT_OK
            : hpct_file_failed("renaming", log->path);
    free(path);
    return status;
}

/* `from`: the end of an earlier file that is continued; `begin`: its first line. */
static hpct_status open_file(hpct_results_log_file *log, const char *folder, const char *name,
                             const hpct_results_history_end *from, const char *begin)
{
    int64_t bytes = from->bytes;
    char *path;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return hpct_fail_memory(0);
    *log = hpct_results_log_file_of(path, "line");
    hpct_status status =
        bytes >= 0 ? hpct_output_continue(&log->file, log->path, bytes, begin, from->end) : HPCT_OK;
    if (bytes >= 0 && status == HPCT_OK) {
        log->written = bytes;
        memcpy(log->end, from->end, sizeof log->end);
        return HPCT_OK;
    }
    if (status == HPCT_ERR_CONFIG)
        return hpct_fail_within(status, "--log-dir");
    if (bytes >= 0)
        fprintf(stderr, "hpc-train: %s; it begins anew\n", hpct_last_error());
    HPCT_TRY(hpct_output_create(&log->file, log->path, true));
    return bytes >= 0 && log->file.replaces && !log->file.is_special ? keep_earlier(log) : HPCT_OK;
}

/* ---- lines ---- */

__attribute__((format(printf, 2, 3))) static void print(hpct_results_log_file *log,
                                                        const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    hpct_results_log_add(log, text,
                         (size_t) length < sizeof text ? (size_t) length : sizeof text - 1);
}

/* The learning rate stands before that of training. */
static bool is_loss(const hpct_results_metric *metric)
{
    return metric->at == offsetof(hpct_metrics, loss);
}

static void history_free(hpct_results_history *history)
{
    hpct_results_log_free(&history->csv);
    hpct_results_log_free(&history->steps);
    free(history);
}

/* In the order of their names, as Keras has them. */
static void name_columns(char first[FIRST_LINE], const hpct_results_metric_choice *choice)
{
    int length = snprintf(first, FIRST_LINE, "epoch");
    for (int val = 0; val < 2; val++) {
        HPCT_RESULTS_METRIC_EACH (m, choice, val)
            length += snprintf(first + length, FIRST_LINE - (size_t) length, "%s,%s",
                               !val && is_loss(m) ? ",learning_rate" : "",
                               hpct_results_metric_title(m, val));
    }
    snprintf(first + length, FIRST_LINE - (size_t) length, "\n");
}

hpct_status hpct_results_history_open(hpct_results_history **out, const char *folder,
                                      const hpct_results_metric_choice *choice,
                                      const hpct_results_history_place *from)
{
    char first[FIRST_LINE];
    name_columns(first, choice);
    hpct_results_history *history = calloc(1, sizeof *history);
    if (history == NULL)
        return hpct_fail_memory(sizeof *history);
    history->choice = *choice;
    hpct_status status = hpct_output_make_folder(folder);
    if (status == HPCT_OK)
        status = open_file(&history->csv, folder, HPCT_RESULTS_HISTORY_EPOCHS, &from->csv, first);
    if (status == HPCT_OK)
        status = open_file(&history->steps, folder, HPCT_RESULTS_HISTORY_STEPS, &from->steps, "");
    if (status != HPCT_OK) {
        history_free(history);
        return status;
    }
    *out = history;
    history->continues = history->csv.written > 0;
    if (history->continues)
        return HPCT_OK; /* it has its first line */
    print(&history->csv, "%s", first);
    return HPCT_OK;
}

bool hpct_results_history_continues(const hpct_results_history *history)
{
    return history->continues;
}

/* JSON has no NaN and no infinity. */
static const char *json_number(char text[32], double value)
{
    if (isfinite(value))
        snprintf(text, 32, "%.9g", value);
    else
        strcpy(text, "null");
    return text;
}

/* The loss first; top-k accuracy is in history.csv alone. */
void hpct_results_history_step(hpct_results_history *history, int epoch, int64_t step,
                               const hpct_metrics *metrics)
{
    char text[32];
    hpct_results_log_file *log = &history->steps;
    print(log, "{\"epoch\": %d, \"step\": %" PRId64 ", \"loss\": %s", epoch, step,
          json_number(text, metrics->loss));
    HPCT_RESULTS_METRIC_EACH (m, &history->choice, false) {
        if (!is_loss(m) && m->kind != HPCT_RESULTS_METRIC_OF_TOP_K)
            print(log, ", \"%s\": %s", m->name,
                  json_number(text, hpct_results_metric_get(m, metrics)));
    }
    print(log, "}\n");
    if (log->bytes >= log->flush_at)
        hpct_results_log_flush(log);
}

/* Into the file, and from the first good epoch on under its name. */
static hpct_status settle(const hpct_results_history *history, hpct_results_log_file *log)
{
    HPCT_TRY(hpct_results_log_flush(log));
    if (history->good && log->file.temporary != NULL)
        HPCT_TRY(hpct_output_place(&log->file));
    return HPCT_OK;
}

/* printf writes a negative one as -nan. */
static double unsigned_nan(double value)
{
    return isnan(value) ? fabs((double) NAN) : value;
}

hpct_status hpct_results_history_epoch(hpct_results_history *history, int epoch,
                                       const hpct_metrics *metrics, const hpct_metrics *validation,
                                       double learning_rate, bool good)
{
    hpct_results_log_file *log = &history->csv;
    print(log, "%d", epoch);
    for (int val = 0; val < 2; val++) {
        const hpct_metrics *values = val ? validation : metrics;
        HPCT_RESULTS_METRIC_EACH (m, &history->choice, val) {
            if (!val && is_loss(m))
                print(log, ",%.9g", learning_rate);
            print(log, ",%.9g", unsigned_nan(hpct_results_metric_get(m, values)));
        }
    }
    print(log, "\n");
    history->epochs = true;
    history->good |= good;
    hpct_status steps = settle(history, &history->steps);
    HPCT_TRY(settle(history, log));
    return steps;
}

static hpct_status mark(hpct_results_history_end *end, const hpct_results_history *history,
                        hpct_results_log_file *log)
{
    *end = (hpct_results_history_end){.bytes = -1};
    hpct_status status =
        hpct_results_log_flush(log); /* lines that wait are a gap, if the run ends now */
    if (log->file.is_special || (status != HPCT_OK && log->file.temporary != NULL))
        return status;
    if (log->file.temporary != NULL && log->file.replaces && !history->good)
        HPCT_TRY(keep_earlier(log));
    HPCT_TRY(
        hpct_output_place(&log->file)); /* on the disk before the checkpoint that counts on it */
    end->bytes = log->written;
    memcpy(end->end, log->end, sizeof end->end);
    return HPCT_OK;
}

void hpct_results_history_mark(hpct_results_history *history, hpct_results_history_place *place)
{
    mark(&place->csv, history, &history->csv);
    mark(&place->steps, history, &history->steps);
}

/* ---- the end ---- */

/* An earlier run's file that nothing good came to replace. */
static hpct_status put_beside(hpct_results_log_file *log)
{
    char *path;
    HPCT_TRY(hpct_results_beside(&path, log->file.target, HPCT_RESULTS_DIVERGED));
    free(log->file.target);
    log->file.target = path;
    log->file.path = path; /* it is no longer the name that was tried */
    return hpct_output_place(&log->file);
}

static hpct_status close_file(const hpct_results_history *history, hpct_results_log_file *log)
{
    bool kept = log->file.temporary != NULL && !history->good;
    hpct_status status = HPCT_OK;
    for (int i = 0; i < 2 && (i == 0 || status != HPCT_OK); i++) {
        status = hpct_results_log_flush(log);
        if (status == HPCT_OK && (!kept || history->epochs))
            status = kept ? put_beside(log) : hpct_output_place(&log->file);
    }
    if (status != HPCT_OK && !log->file.is_special && (!kept || history->epochs))
        status = hpct_results_log_rescue(status, log);
    return status == HPCT_OK ? hpct_results_log_check(log) : status;
}

hpct_status hpct_results_history_close(hpct_results_history *history)
{
    if (history == NULL)
        return HPCT_OK;
    hpct_status steps = close_file(history, &history->steps);
    char *why = steps != HPCT_OK ? hpct_error_keep() : NULL;
    hpct_status status = close_file(history, &history->csv);
    history_free(history);
    if (status == HPCT_OK) {
        hpct_error_restore(why);
        return steps;
    }
    if (why != NULL)
        hpct_fail(status, "%s; %s", hpct_last_error(), why);
    free(why);
    return status;
}
