/* history.csv and metrics.jsonl. */
#include "agent/history.h"

#include "agent/results.h"
#include "base/status.h"
#include "nn/file.h"
#include "nn/output.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FLUSH_BYTES ((size_t) 1 << 12)
#define MOST_BYTES ((size_t) 1 << 26) /* that wait for a disk with room */

typedef struct log_file {
    hpct_output file;
    char *path;
    char *lines; /* that are not in the file yet */
    size_t bytes, room, flush_at;
    off_t written;
    hpct_status lost; /* lines that there was no memory for */
} log_file;

struct hpct_history {
    int columns;
    bool epochs, good; /* any; any good one */
    log_file csv, steps;
};

static hpct_status open_file(log_file *log, const char *folder, const char *name)
{
    if (asprintf(&log->path, "%s/%s", folder, name) < 0) {
        log->path = NULL;
        return hpct_fail_memory(0);
    }
    log->flush_at = FLUSH_BYTES;
    return hpct_output_create(&log->file, log->path, true);
}

/* ---- lines ---- */

static bool make_room(log_file *log, size_t bytes)
{
    size_t room = log->room > 0 ? log->room : FLUSH_BYTES;
    while (room < log->bytes + bytes)
        room *= 2;
    char *lines = room <= MOST_BYTES ? realloc(log->lines, room) : NULL;
    if (lines == NULL)
        return false;
    log->lines = lines;
    log->room = room;
    return true;
}

__attribute__((format(printf, 2, 3))) static void print(log_file *log, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    size_t bytes = (size_t) length < sizeof text ? (size_t) length : sizeof text - 1;
    if (log->lost == HPCT_OK && !make_room(log, bytes))
        log->lost = hpct_fail(HPCT_ERR_IO,
                              "%s: lines are missing: it could not be written for too "
                              "long",
                              log->path);
    if (log->lost != HPCT_OK)
        return;
    memcpy(log->lines + log->bytes, text, bytes);
    log->bytes += bytes;
}

/* All, or none of them: what was written of a line is taken back. */
static hpct_status flush(log_file *log)
{
    hpct_status status = hpct_file_write_all(log->file.fd, log->lines, log->bytes, log->path);
    if (status == HPCT_OK) {
        log->written += (off_t) log->bytes;
        log->bytes = 0;
    } else if (ftruncate(log->file.fd, log->written) == 0) {
        lseek(log->file.fd, log->written, SEEK_SET);
    }
    log->flush_at = log->bytes + FLUSH_BYTES;
    return status;
}

static void log_free(log_file *log)
{
    hpct_output_close(&log->file);
    free(log->path);
    free(log->lines);
}

static void history_free(hpct_history *history)
{
    log_free(&history->csv);
    log_free(&history->steps);
    free(history);
}

hpct_status hpct_history_open(hpct_history **out, const char *folder, int columns)
{
    hpct_history *history = calloc(1, sizeof *history);
    if (history == NULL)
        return hpct_fail_memory(sizeof *history);
    history->columns = columns;
    hpct_status status = hpct_output_make_folder(folder);
    if (status == HPCT_OK)
        status = open_file(&history->csv, folder, HPCT_HISTORY_EPOCHS);
    if (status == HPCT_OK)
        status = open_file(&history->steps, folder, HPCT_HISTORY_STEPS);
    if (status != HPCT_OK) {
        history_free(history);
        return status;
    }
    const char *top_k = columns & HPCT_HISTORY_TOP_K ? ",top_k_categorical_accuracy" : "";
    const char *val_top_k = columns & HPCT_HISTORY_TOP_K ? ",val_top_k_categorical_accuracy" : "";
    bool validation = columns & HPCT_HISTORY_VALIDATION;
    print(&history->csv, "epoch,accuracy,learning_rate,loss%s%s%s\n", top_k,
          validation ? ",val_accuracy,val_loss" : "", validation ? val_top_k : "");
    *out = history;
    return HPCT_OK;
}

/* JSON has no NaN and no infinity. */
static const char *json_number(char text[32], double value)
{
    if (!isfinite(value))
        return "null";
    snprintf(text, 32, "%.9g", value);
    return text;
}

void hpct_history_step(hpct_history *history, int epoch, int64_t step, const hpct_metrics *metrics)
{
    char loss[32], accuracy[32];
    log_file *log = &history->steps;
    print(log, "{\"epoch\": %d, \"step\": %" PRId64 ", \"loss\": %s, \"accuracy\": %s}\n", epoch,
          step, json_number(loss, metrics->loss), json_number(accuracy, metrics->accuracy));
    if (log->bytes >= log->flush_at)
        flush(log);
}

/* Into the file, and from the first good epoch on under its name. */
static hpct_status settle(const hpct_history *history, log_file *log)
{
    hpct_status status = flush(log);
    if (status == HPCT_OK && history->good && log->file.temporary != NULL)
        status = hpct_output_place(&log->file);
    return status;
}

hpct_status hpct_history_epoch(hpct_history *history, int epoch, const hpct_metrics *metrics,
                               const hpct_metrics *validation, double learning_rate, bool good)
{
    log_file *log = &history->csv;
    bool top_k = history->columns & HPCT_HISTORY_TOP_K;
    print(log, "%d,%.9g,%.9g,%.9g", epoch, metrics->accuracy, learning_rate, metrics->loss);
    if (top_k)
        print(log, ",%.9g", metrics->top_k_accuracy);
    if (history->columns & HPCT_HISTORY_VALIDATION) {
        print(log, ",%.9g,%.9g", validation->accuracy, validation->loss);
        if (top_k)
            print(log, ",%.9g", validation->top_k_accuracy);
    }
    print(log, "\n");
    history->epochs = true;
    history->good |= good;
    hpct_status steps = settle(history, &history->steps);
    hpct_status status = settle(history, log);
    return status == HPCT_OK ? steps : status;
}

/* ---- the end ---- */

/* An earlier run's file that nothing good came to replace. */
static hpct_status put_beside(log_file *log)
{
    char *path;
    hpct_status status = hpct_results_beside(&path, log->file.target, HPCT_RESULTS_DIVERGED);
    if (status != HPCT_OK)
        return status;
    free(log->file.target);
    log->file.target = path;
    return hpct_output_place(&log->file);
}

static hpct_status close_file(const hpct_history *history, log_file *log)
{
    bool kept = log->file.temporary != NULL && !history->good;
    hpct_status status = HPCT_OK;
    for (int i = 0; i < 2 && (i == 0 || status != HPCT_OK); i++) {
        status = flush(log);
        if (status == HPCT_OK && (!kept || history->epochs))
            status = kept ? put_beside(log) : hpct_output_place(&log->file);
    }
    if (status == HPCT_OK && log->lost != HPCT_OK)
        status = hpct_fail(
            HPCT_ERR_IO, "%s: lines are missing: it could not be written for too long", log->path);
    return status;
}

hpct_status hpct_history_close(hpct_history *history)
{
    if (history == NULL)
        return HPCT_OK;
    hpct_status steps = close_file(history, &history->steps);
    hpct_status status = close_file(history, &history->csv);
    history_free(history);
    return status == HPCT_OK ? steps : status;
}
