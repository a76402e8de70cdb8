/* history.csv and metrics.jsonl. */
#include "agent/history.h"

#include "base/status.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct log_file {
    FILE *stream;
    char *path;
} log_file;

struct hpct_history {
    int columns;
    log_file csv, steps;
};

/* mkdir -p */
static hpct_status make_folders(const char *folder)
{
    char *path = strdup(folder);
    if (path == NULL)
        return hpct_fail_memory(strlen(folder));
    for (char *slash = path + 1;; slash++) {
        if (*slash != '/' && *slash != '\0')
            continue;
        bool last = *slash == '\0';
        *slash = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST) {
            hpct_status status =
                hpct_fail(HPCT_ERR_IO, "the folder %s cannot be made: %s", path, strerror(errno));
            free(path);
            return status;
        }
        if (last)
            break;
        *slash = '/';
    }
    free(path);
    return HPCT_OK;
}

static hpct_status open_file(log_file *file, const char *folder, const char *name)
{
    if (asprintf(&file->path, "%s/%s", folder, name) < 0) {
        file->path = NULL;
        return hpct_fail_memory(0);
    }
    file->stream = fopen(file->path, "we");
    if (file->stream == NULL)
        return hpct_fail(HPCT_ERR_IO, "%s cannot be written: %s", file->path, strerror(errno));
    return HPCT_OK;
}

static hpct_status check(log_file *file, int result)
{
    if (result == 0 && !ferror(file->stream))
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_IO, "%s cannot be written: %s", file->path, strerror(errno));
}

hpct_status hpct_history_open(hpct_history **out, const char *folder, int columns)
{
    hpct_history *history = calloc(1, sizeof *history);
    if (history == NULL)
        return hpct_fail_memory(sizeof *history);
    history->columns = columns;
    hpct_status status = make_folders(folder);
    if (status == HPCT_OK)
        status = open_file(&history->csv, folder, "history.csv");
    if (status == HPCT_OK)
        status = open_file(&history->steps, folder, "metrics.jsonl");
    if (status != HPCT_OK) {
        hpct_history_close(history);
        return status;
    }
    const char *top_k = columns & HPCT_HISTORY_TOP_K ? ",top_k_categorical_accuracy" : "";
    const char *val_top_k = columns & HPCT_HISTORY_TOP_K ? ",val_top_k_categorical_accuracy" : "";
    bool validation = columns & HPCT_HISTORY_VALIDATION;
    fprintf(history->csv.stream, "epoch,accuracy,learning_rate,loss%s%s%s\n", top_k,
            validation ? ",val_accuracy,val_loss" : "", validation ? val_top_k : "");
    *out = history;
    return HPCT_OK;
}

/* JSON has no NaN and no infinity. */
static void print_json_number(FILE *stream, double value)
{
    if (isfinite(value))
        fprintf(stream, "%.9g", value);
    else
        fputs("null", stream);
}

void hpct_history_step(hpct_history *history, int epoch, int64_t step, const hpct_metrics *metrics)
{
    FILE *stream = history->steps.stream;
    fprintf(stream, "{\"epoch\": %d, \"step\": %" PRId64 ", \"loss\": ", epoch, step);
    print_json_number(stream, metrics->loss);
    fputs(", \"accuracy\": ", stream);
    print_json_number(stream, metrics->accuracy);
    fputs("}\n", stream);
}

hpct_status hpct_history_epoch(hpct_history *history, int epoch, const hpct_metrics *metrics,
                               const hpct_metrics *validation, double learning_rate)
{
    FILE *stream = history->csv.stream;
    bool top_k = history->columns & HPCT_HISTORY_TOP_K;
    fprintf(stream, "%d,%.9g,%.9g,%.9g", epoch, metrics->accuracy, learning_rate, metrics->loss);
    if (top_k)
        fprintf(stream, ",%.9g", metrics->top_k_accuracy);
    if (history->columns & HPCT_HISTORY_VALIDATION) {
        fprintf(stream, ",%.9g,%.9g", validation->accuracy, validation->loss);
        if (top_k)
            fprintf(stream, ",%.9g", validation->top_k_accuracy);
    }
    fputc('\n', stream);
    hpct_status status = check(&history->csv, fflush(stream));
    hpct_status steps = check(&history->steps, fflush(history->steps.stream));
    return status == HPCT_OK ? steps : status;
}

static hpct_status close_file(log_file *file)
{
    hpct_status status = HPCT_OK;
    if (file->stream != NULL) {
        bool failed = ferror(file->stream) != 0;
        if (fclose(file->stream) != 0 || failed)
            status =
                hpct_fail(HPCT_ERR_IO, "%s cannot be written: %s", file->path, strerror(errno));
    }
    free(file->path);
    return status;
}

hpct_status hpct_history_close(hpct_history *history)
{
    if (history == NULL)
        return HPCT_OK;
    hpct_status csv = close_file(&history->csv), steps = close_file(&history->steps);
    free(history);
    return csv == HPCT_OK ? steps : csv;
}
