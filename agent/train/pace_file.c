/* In memory at first: an earlier run's file stays until an epoch has ended. */
#include "agent/train/pace_file.h"

#include "base/status.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FILE_NAME "pace.jsonl"

static const char *const keys[HPCT_TRAIN_PACE_PARTS] = {
    "step_ms", "input_ms", "forward_ms", "backward_ms", "wait_ms", "update_ms", "memory_mb"};

struct hpct_train_pace_file {
    char path[PATH_MAX];
    FILE *stream;
    char *text; /* before it is settled */
    size_t text_size;
    bool settled;
};

static void complain(const hpct_train_pace_file *f)
{
    fprintf(stderr, "hpc-train: %s cannot be written: %s\n", f->path, strerror(errno));
}

/* ---- opening and closing ---- */

hpct_status hpct_train_pace_file_open(hpct_train_pace_file **out, const char *log_dir,
                                      bool continues)
{
    *out = NULL;
    if (log_dir == NULL)
        return HPCT_OK;
    hpct_train_pace_file *f = calloc(1, sizeof *f);
    if (f == NULL)
        return hpct_fail_memory(sizeof *f);
    snprintf(f->path, sizeof f->path, "%s/" FILE_NAME, log_dir);
    f->settled = continues;
    f->stream = continues ? fopen(f->path, "ae") : open_memstream(&f->text, &f->text_size);
    if (f->stream == NULL)
        complain(f);
    *out = f;
    return HPCT_OK;
}

void hpct_train_pace_file_settle(hpct_train_pace_file *f)
{
    if (f == NULL || f->stream == NULL || f->settled)
        return;
    fclose(f->stream);
    f->stream = fopen(f->path, "we");
    if (f->stream == NULL || fwrite(f->text, 1, f->text_size, f->stream) != f->text_size)
        complain(f);
    f->settled = true;
}

/* A run without an epoch replaces no earlier file. */
void hpct_train_pace_file_close(hpct_train_pace_file *f)
{
    if (f == NULL)
        return;
    if (f->stream != NULL && !f->settled && access(f->path, F_OK) != 0)
        hpct_train_pace_file_settle(f);
    if (f->stream != NULL && fclose(f->stream) != 0)
        complain(f);
    free(f->text);
    free(f);
}

/* ---- lines ---- */

static json_t *numbers(const double *values, int count)
{
    json_t *array = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(array, isfinite(values[i]) ? json_real(round(values[i] * 1e4) / 1e4)
                                                         : json_null());
    return array;
}

static void write_line(hpct_train_pace_file *f, int epoch, int64_t step, int64_t steps,
                       const double *known, int ranks)
{
    if (f == NULL || f->stream == NULL)
        return;
    json_t *line = json_pack("{s:I,s:i,s:I,s:I}", "time", (json_int_t) time(NULL), "epoch", epoch,
                             "step", (json_int_t) step, "steps", (json_int_t) steps);
    for (int part = 0; part < HPCT_TRAIN_PACE_PARTS && line != NULL; part++)
        json_object_set_new(line, keys[part],
                            numbers(known + (size_t) part * (size_t) ranks, ranks));
    char *text = json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(12));
    if (text != NULL && (fprintf(f->stream, "%s\n", text) < 0 || fflush(f->stream) != 0)) {
        complain(f);
        fclose(f->stream);
        f->stream = NULL;
    }
    free(text);
    json_decref(line);
}

void hpct_train_pace_file_write(hpct_train_pace_file *f, hpct_results_live *live, int epoch,
                                int64_t step, int64_t steps, const double *known,
                                const double *busy, int ranks)
{
    const double *of[HPCT_TRAIN_PACE_PARTS];
    for (int part = 0; part < HPCT_TRAIN_PACE_PARTS; part++)
        of[part] = known + (size_t) part * (size_t) ranks;
    write_line(f, epoch, step, steps, known, ranks);
    hpct_results_live_ranks(live, ranks, of[HPCT_TRAIN_PACE_STEP], of[HPCT_TRAIN_PACE_WAIT],
                            of[HPCT_TRAIN_PACE_INPUT], of[HPCT_TRAIN_PACE_MEMORY], busy);
}
