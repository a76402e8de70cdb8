/* agent/report/run.h - what is known of one run, from the files of its --log-dir, or from a file of
 * --summary-json: for hpc-train report and top. Unknown texts are NULL, unknown numbers NaN or 0.
 * Foreign input: every reader takes any bytes; what it cannot use becomes a remark. */
#ifndef HPCT_AGENT_REPORT_RUN_H
#define HPCT_AGENT_REPORT_RUN_H

#include "agent/report/text.h"
#include "agent/results/live_report.h"

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A metric that the run logs, as history.csv calls it, and its last values: of training, and of
 * validation. The first are loss and accuracy, then come the others of agent/results/metric.h, then
 * those that only the run's own files name. */
typedef struct hpct_report_logged {
    const char *name;
    double last[2];
} hpct_report_logged;

/* A metric of training or of validation. */
static inline size_t hpct_report_column(size_t metric, bool of_validation)
{
    return 2 * metric + of_validation;
}
#define HPCT_REPORT_NO_COLUMN SIZE_MAX
enum { HPCT_REPORT_LOSS, HPCT_REPORT_VAL_LOSS, HPCT_REPORT_ACCURACY, HPCT_REPORT_VAL_ACCURACY };

/* One line of history.csv, epoch from 1, or of metrics.jsonl. */
typedef struct hpct_report_point {
    int64_t epoch, step;
    double learning_rate, seconds;
    double *values; /* [num_values] by column; later ones are unknown */
    size_t num_values;
} hpct_report_point;

/* Parts of a step, in the order in which they are drawn; the rest is what the others leave. */
typedef enum hpct_report_part {
    HPCT_REPORT_INPUT,
    HPCT_REPORT_FORWARD,
    HPCT_REPORT_BACKWARD,
    HPCT_REPORT_WAIT,
    HPCT_REPORT_UPDATE,
    HPCT_REPORT_REST,
    HPCT_REPORT_PARTS
} hpct_report_part;
extern const char *const hpct_report_part_names[HPCT_REPORT_PARTS];

/* Means over the steps of pace.jsonl. */
typedef struct hpct_report_rank {
    const char *node; /* or NULL */
    double steps;     /* that the rank took part in; 0: none, and step_ms is NaN */
    double step_ms, part_ms[HPCT_REPORT_PARTS], memory_mb;
} hpct_report_rank;

#define HPCT_REPORT_SLOW 1.3 /* times the median of the ranks' own time */

/* One process of a run that was stopped or killed, and continued. Of one that is not known -1, NaN
 * and NULL. */
typedef struct hpct_report_start {
    double time, seconds, images_per_second;
    int64_t epoch, step, steps, workers; /* from where (epoch from 0), and how many */
    const char *state, *why;
} hpct_report_start;

typedef struct hpct_report_run {
    const char *path, *name; /* as given; its last part, or more where two runs share that */
    const char *model, *strategy, *device, *precision, *optimizer, *command, *version, *data,
        *checkpoint_dir, *state, *why, *libraries, *host, *job;
    int64_t parameters, seed, global_batch, epochs, steps_per_epoch, samples, workers, replicas,
        threads, nodes;    /* seed: -1 if unknown */
    double started, ended; /* Unix seconds */
    double learning_rate, start_seconds, train_seconds, epoch_seconds, images_per_second, step_ms;
    double peak_rss_mb;
    hpct_report_logged *metrics; /* last values: of the last epoch, or summary */
    size_t num_metrics;
    hpct_report_point *points, *steps;
    size_t num_points, num_steps;
    hpct_report_rank *ranks;
    size_t num_ranks;
    int64_t paced_steps; /* that the means of the ranks are over */
    const char **node_of;
    size_t num_node_of;
    hpct_report_start *starts;
    size_t num_starts;
    double *epoch_times; /* [num_epoch_times], by epoch; NaN: unknown */
    size_t num_epoch_times;
    hpct_results_live_report status; /* status.json: where a run under way is */
    bool has_status, validated, is_summary;
    const char **remarks;
    size_t num_remarks;
    hpct_report_pool *pool;
} hpct_report_run;

/* Reads the folder or file at `path`. Returns HPCT_ERR_NO_INPUT if there is nothing to read, saying
 * what was looked for; HPCT_ERR_DATA if nothing in it can be shown. */
hpct_status hpct_report_run_read(hpct_report_run *run, hpct_report_pool *pool, const char *path);
/* Only its status, from that status.json, without a pool. Returns HPCT_ERR_NO_INPUT, or
 * HPCT_ERR_DATA saying what is wrong; both name the path. */
hpct_status hpct_report_run_read_status(hpct_report_run *run, const char *path);
void hpct_report_run_free(hpct_report_run *run); /* what is not in the pool */
/* Whether `path` is one of the files that are looked for in the folder. */
bool hpct_report_run_has_file(const char *folder, const char *path);
/* Those who can read all files of the run at `path` (hpct_report_readers). */
mode_t hpct_report_run_readers(const char *path, gid_t group);
void hpct_report_run_clear(hpct_report_run *run, hpct_report_pool *pool);

/* Whether it is under way, as its files say. */
bool hpct_report_run_is_live(const hpct_report_run *run);
/* Whether it may still change: it is under way, or was stopped and can be continued. */
bool hpct_report_run_may_go_on(const hpct_report_run *run);
/* Seconds of the whole program, of all its starts that are known; NaN if none is. */
double hpct_report_run_seconds(const hpct_report_run *run);
/* A rank's time in a step without waiting for others; the median of all ranks but the slowest. */
double hpct_report_rank_own(const hpct_report_rank *rank);
double hpct_report_median_own(const hpct_report_run *run);

/* ---- metrics and points (agent/report/points.c) ---- */

void hpct_report_begin_metrics(hpct_report_run *run); /* the known ones */
/* num_metrics if there is none of that name. */
size_t hpct_report_find_metric(const hpct_report_run *run, const char *name);
/* Of a column of history.csv, which is added if it is a new one; HPCT_REPORT_NO_COLUMN of too many.
 */
size_t hpct_report_add_column(hpct_report_run *run, const char *name);
/* Nothing is known, of all columns that there are. */
hpct_report_point hpct_report_new_point(const hpct_report_run *run);
double hpct_report_value(const hpct_report_point *point, size_t column);
bool hpct_report_any_has(const hpct_report_point *points, size_t count, size_t column);
double *hpct_report_last(const hpct_report_run *run, size_t column);

__attribute__((format(printf, 2, 3))) void hpct_report_remark(hpct_report_run *run,
                                                              const char *format, ...);

/* ---- readers of one file's content; false: nothing of it can be used ---- */

bool hpct_report_read_history(hpct_report_run *run, const char *text, size_t size);
bool hpct_report_read_steps(hpct_report_run *run, const char *text, size_t size);
bool hpct_report_read_pace(hpct_report_run *run, const char *text, size_t size);
bool hpct_report_read_run_json(hpct_report_run *run, const char *text, size_t size);
bool hpct_report_read_status(hpct_report_run *run, const char *text, size_t size);
bool hpct_report_read_summary(hpct_report_run *run, const char *text, size_t size);

#endif
