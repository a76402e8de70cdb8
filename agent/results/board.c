/* The content of a run's event files. */
#include "agent/results/board.h"

#include "agent/results/event_files.h"
#include "agent/results/events.h"
#include "base/status.h"
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TAG_MAX 256

struct hpct_results_board {
    hpct_results_event_files *files;
    hpct_results_metric_choice choice;
    int64_t epoch; /* the last one */
};

static hpct_results_event now_at(int64_t epoch)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    return (hpct_results_event){.time = (double) now.tv_sec + 1e-9 * (double) now.tv_nsec,
                                .step = epoch};
}

static void add(const hpct_results_board *board, int which, hpct_protobuf *records)
{
    hpct_results_event_files_add(board->files, which, records);
    free(records->data);
}

/* ---- the begin ---- */

/* Markdown: a block of code. */
static char *model_text(const hpct_model *model)
{
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (stream == NULL)
        return NULL;
    fputs("```\n", stream);
    hpct_model_summary(model, stream);
    fputs("```\n", stream);
    fclose(stream);
    return text;
}

/* Markdown: a table. */
static char *settings_text(const hpct_results_board_run *run)
{
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (stream == NULL)
        return NULL;
    fprintf(stream, "| setting | value |\n|---|---|\n");
    fprintf(stream, "| model | %s |\n", hpct_model_name(run->model));
    fprintf(stream, "| parameters | %zu |\n", hpct_model_count_parameters(run->model));
    fprintf(stream, "| strategy | %s |\n", run->strategy);
    fprintf(stream, "| workers | %d |\n", run->workers);
    fprintf(stream, "| replicas of each | %d |\n", run->replicas);
    fprintf(stream, "| device | %s |\n", hpct_model_device(run->model));
    fprintf(stream, "| precision | %s |\n",
            hpct_precision_policy(hpct_model_precision(run->model)));
    fprintf(stream, "| optimizer | %s |\n", run->optimizer);
    fprintf(stream, "| learning rate | %.9g |\n", run->learning_rate);
    fprintf(stream, "| global batch | %d |\n", run->global_batch);
    fprintf(stream, "| training samples | %zu |\n", run->samples);
    fprintf(stream, "| steps per epoch | %" PRId64 " |\n", run->steps_per_epoch);
    fprintf(stream, "| epochs | %d |\n", run->epochs);
    fprintf(stream, "| first epoch | %" PRId64 " |\n", run->epoch);
    fprintf(stream, "| seed | %" PRIu64 " |\n", run->seed);
    fprintf(stream, "| hpc-train | %s |\n", PACKAGE_VERSION);
    fclose(stream);
    return text;
}

static void put_text(hpct_protobuf *to, const hpct_results_event *at, const char *tag, char *text)
{
    if (text != NULL)
        hpct_results_events_text(to, at, tag, text);
    else
        to->failed = true;
    free(text);
}

static void put_hparams(hpct_protobuf *to, const hpct_results_event *at,
                        const hpct_results_board_run *run)
{
    const hpct_results_hparam hparams[] = {
        {"model", hpct_model_name(run->model), 0},
        {"strategy", run->strategy, 0},
        {"optimizer", run->optimizer, 0},
        {"learning_rate", NULL, run->learning_rate},
        {"global_batch", NULL, run->global_batch},
        {"workers", NULL, run->workers},
        {"precision", hpct_precision_policy(hpct_model_precision(run->model)), 0},
        {"seed", NULL, (double) run->seed},
    };
    hpct_results_events_hparams(to, at, hparams, sizeof hparams / sizeof hparams[0]);
}

static void put_begin(const hpct_results_board *board, const hpct_results_board_run *run)
{
    hpct_results_event at = now_at(run->epoch);
    for (int which = 0; which < HPCT_RESULTS_EVENTS_FILES; which++) {
        hpct_protobuf records = {0};
        hpct_results_events_version(&records, at.time);
        hpct_results_events_start(&records, &at);
        if (which == HPCT_RESULTS_EVENTS_TRAIN) {
            put_text(&records, &at, "model", model_text(run->model));
            put_text(&records, &at, "settings", settings_text(run));
            put_hparams(&records, &at, run);
        }
        add(board, which, &records);
    }
    hpct_results_event_files_flush(board->files, false,
                                   true); /* tried again with the first epoch */
}

hpct_status hpct_results_board_open(hpct_results_board **out, const char *folder,
                                    const hpct_results_board_run *run)
{
    hpct_results_board *board = calloc(1, sizeof *board);
    if (board == NULL)
        return hpct_fail_memory(sizeof *board);
    *board = (hpct_results_board){.choice = run->choice, .epoch = run->epoch};
    hpct_status status = hpct_results_event_files_open(
        &board->files, folder, run->choice.validation ? 2 : 1, run->continues);
    if (status != HPCT_OK) {
        free(board);
        return hpct_fail_within(status, "--log-dir");
    }
    put_begin(board, run);
    *out = board;
    return HPCT_OK;
}

/* ---- epochs ---- */

void hpct_results_board_histogram(hpct_results_board *board, int64_t epoch, const char *parameter,
                                  const char *what, const float *values, size_t count)
{
    char tag[TAG_MAX];
    hpct_results_event at = now_at(epoch);
    hpct_results_histogram histogram;
    hpct_protobuf records = {0};
    snprintf(tag, sizeof tag, "%s/%s", parameter, what);
    hpct_results_histogram_make(&histogram, values, count);
    hpct_results_events_histogram(&records, &at, tag, &histogram);
    add(board, HPCT_RESULTS_EVENTS_TRAIN, &records);
}

static void put_metrics(const hpct_results_board *board, hpct_protobuf *to,
                        const hpct_results_event *at, const hpct_metrics *metrics,
                        bool of_validation)
{
    char tag[TAG_MAX];
    HPCT_RESULTS_METRIC_EACH (m, &board->choice, of_validation) {
        snprintf(tag, sizeof tag, "epoch_%s", m->name);
        hpct_results_events_scalar(to, at, tag, hpct_results_metric_get(m, metrics));
    }
}

static void put_pace(hpct_protobuf *to, const hpct_results_event *at,
                     const hpct_results_board_epoch *epoch)
{
    if (!isfinite(epoch->step_seconds) || epoch->step_seconds <= 0)
        return;
    hpct_results_events_scalar(to, at, "images_per_second",
                               epoch->samples_per_step / epoch->step_seconds);
    hpct_results_events_scalar(to, at, "step_ms", 1e3 * epoch->step_seconds);
}

hpct_status hpct_results_board_note(hpct_results_board *board,
                                    const hpct_results_board_epoch *epoch)
{
    hpct_results_event at = now_at(epoch->epoch);
    hpct_protobuf records = {0};
    put_metrics(board, &records, &at, epoch->train, false);
    hpct_results_events_scalar(&records, &at, "epoch_learning_rate", epoch->learning_rate);
    put_pace(&records, &at, epoch);
    add(board, HPCT_RESULTS_EVENTS_TRAIN, &records);
    if (board->choice.validation) {
        records = (hpct_protobuf){0};
        put_metrics(board, &records, &at, epoch->validation, true);
        add(board, HPCT_RESULTS_EVENTS_VALIDATION, &records);
    }
    board->epoch = epoch->epoch;
    return hpct_results_event_files_flush(board->files, true, epoch->good);
}

void hpct_results_board_mark(hpct_results_board *board)
{
    if (board != NULL)
        hpct_results_event_files_mark(board->files);
}

hpct_status hpct_results_board_close(hpct_results_board *board, bool finished)
{
    if (board == NULL)
        return HPCT_OK;
    if (finished) {
        hpct_results_event at = now_at(board->epoch);
        hpct_protobuf records = {0};
        hpct_results_events_succeeded(&records, &at);
        add(board, HPCT_RESULTS_EVENTS_TRAIN, &records);
    }
    hpct_status status = hpct_results_event_files_close(board->files);
    free(board);
    return status;
}
