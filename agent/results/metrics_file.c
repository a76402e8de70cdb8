/* Families of samples: gauges all, as a run that is continued may go back. */
#include "agent/results/metrics_file.h"

#include "base/status.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS 1e-3
#define MIB 1048576.0

typedef struct text {
    FILE *stream;
    const hpct_results_live_report *report;
    const char *strategy;
} text;

/* Backslash, quote and line feed are escaped in label values. */
static void put_label(FILE *stream, const char *name, const char *value)
{
    fprintf(stream, "%s=\"", name);
    for (const char *c = value; *c != '\0'; c++) {
        if (*c == '\\' || *c == '"')
            fputc('\\', stream);
        if (*c == '\n')
            fputs("\\n", stream);
        else
            fputc(*c, stream);
    }
    fputc('"', stream);
}

/* printf has "-nan" and "inf". */
static void put_value(FILE *stream, double value)
{
    if (isnan(value))
        fputs(" NaN\n", stream);
    else if (isinf(value))
        fputs(value > 0 ? " +Inf\n" : " -Inf\n", stream);
    else
        fprintf(stream, " %.12g\n", value);
}

/* `rank` NULL: of the whole run. */
static void put_sample(const text *t, const char *name, const hpct_results_live_rank *rank,
                       double value)
{
    fprintf(t->stream, "hpc_train_%s{", name);
    put_label(t->stream, "job", t->report->job != NULL ? t->report->job : "");
    fputc(',', t->stream);
    put_label(t->stream, "model", t->report->model);
    fputc(',', t->stream);
    put_label(t->stream, "strategy", t->strategy);
    if (rank != NULL) {
        fprintf(t->stream, ",rank=\"%d\",", rank->rank);
        put_label(t->stream, "node", rank->node);
    }
    fputc('}', t->stream);
    put_value(t->stream, value);
}

static void put_head(const text *t, const char *name, const char *help)
{
    fprintf(t->stream, "# HELP hpc_train_%s %s\n# TYPE hpc_train_%s gauge\n", name, help, name);
}

static void put_metric(const text *t, const char *name, const char *help, double value)
{
    put_head(t, name, help);
    put_sample(t, name, NULL, value);
}

/* Names of samples have no other characters. */
static bool is_plain(const char *name)
{
    return name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';
}

static void put_run(const text *t)
{
    const hpct_results_live_state *s = &t->report->state;
    put_metric(t, "last_step_timestamp_seconds", "Time of the last step, seconds since 1970.",
               (double) t->report->time);
    put_metric(t, "workers", "Ranks that train.", t->report->workers);
    put_metric(t, "epoch", "Epoch under way, from 1.", s->epoch);
    put_metric(t, "epochs", "Epochs in all.", s->epochs);
    put_metric(t, "epoch_steps_done", "Steps done of the epoch under way.", (double) s->step);
    put_metric(t, "epoch_steps", "Steps of the epoch under way.", (double) s->steps);
    put_metric(t, "loss", "Mean loss of the epoch so far.", s->loss);
    put_metric(t, "accuracy_ratio", "Mean accuracy of the epoch so far.", s->accuracy);
    put_metric(t, "validation_loss", "Loss of the last evaluation.", s->val_loss);
    put_metric(t, "validation_accuracy_ratio", "Accuracy of the last evaluation.", s->val_accuracy);
    for (int i = 0; i < s->num_metrics; i++) {
        if (is_plain(s->metrics[i].name))
            put_metric(t, s->metrics[i].name,
                       "Mean of the epoch so far, or, with val_, of the last evaluation.",
                       s->metrics[i].value);
    }
    put_metric(t, "learning_rate", "Learning rate.", s->learning_rate);
    put_metric(t, "step_seconds", "Time of a step.", s->step_ms * MS);
    put_metric(t, "images_per_second", "Samples trained per second.", s->images_per_second);
    put_metric(t, "remaining_seconds", "Expected time to the end of the last epoch.",
               s->seconds_left);
    put_metric(t, "job_end_timestamp_seconds", "Time limit of the Slurm job, seconds since 1970.",
               s->job_ends);
}

static void put_ranks(const text *t)
{
    static const struct family {
        const char *name, *help;
        size_t at;
        double unit;
    } families[] = {
        {"rank_step_seconds", "Time of a step of this rank.",
         offsetof(hpct_results_live_rank, step_ms), MS},
        {"rank_wait_seconds", "Time of a step in which this rank waits for others.",
         offsetof(hpct_results_live_rank, wait_ms), MS},
        {"rank_input_seconds", "Time of a step in which this rank waits for input.",
         offsetof(hpct_results_live_rank, input_ms), MS},
        {"rank_memory_bytes", "Resident memory of this rank.",
         offsetof(hpct_results_live_rank, memory_mb), MIB},
        {"rank_gpu_utilization_ratio", "Share of the time in which this rank's GPU computes.",
         offsetof(hpct_results_live_rank, gpu), 1},
    };
    for (size_t k = 0; k < sizeof families / sizeof families[0] && t->report->num_ranks > 0; k++) {
        put_head(t, families[k].name, families[k].help);
        for (int i = 0; i < t->report->num_ranks; i++) {
            const hpct_results_live_rank *rank = &t->report->ranks[i];
            const void *at = (const char *) rank + families[k].at;
            put_sample(t, families[k].name, rank, *(const double *) at * families[k].unit);
        }
    }
}

hpct_status hpct_results_metrics_file_format(char **out, const hpct_results_live_report *report,
                                             const char *strategy)
{
    size_t size;
    *out = NULL;
    const text t = {open_memstream(out, &size), report, strategy};
    if (t.stream == NULL)
        return hpct_fail_memory(0);
    put_run(&t);
    put_ranks(&t);
    fputs("# EOF\n", t.stream); /* required by OpenMetrics, a comment for Prometheus */
    if (fclose(t.stream) == 0)
        return HPCT_OK;
    free(*out);
    *out = NULL;
    return hpct_fail_memory(0);
}
