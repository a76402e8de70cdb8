/* The job's time limit: said in time, and stopped for, with a checkpoint. The rank that leads the
 * run watches it alone; the others stop as for a signal of its. */
#include "agent/rank/job_end.h"
#include "agent/rank/stop.h"
#include "agent/train/observer.h"
#include "base/status.h"

#include <math.h>
#include <stdio.h>

#define RESERVE 15    /* seconds for what is not measured: files, ending */
#define UNKNOWN 5     /* of a checkpoint, before there is one */
#define KNOWN_STEPS 5 /* of an epoch, after which a step's time is known */

typedef struct observed {
    hpct_rank_job_end *job_end; /* NULL: not watched */
    bool speaks, saves;
    bool said;
} observed;

/* "90 s", "14 min", "3.5 h" */
static const char *format_time(char *text, size_t size, double seconds)
{
    if (seconds < 120)
        snprintf(text, size, "%.0f s", seconds);
    else if (seconds < 7200)
        snprintf(text, size, "%.0f min", seconds / 60);
    else
        snprintf(text, size, "%.1f h", seconds / 3600);
    return text;
}

/* What is kept for the step under way, an evaluation, and the last checkpoint. */
static double reserve(const hpct_train_training *t)
{
    const hpct_train_training_times *times = &t->now.times;
    return RESERVE + 3 * hpct_train_training_step_seconds(t) + 1.5 * times->evaluation +
           2 * (times->save > 0 ? times->save : UNKNOWN);
}

static void print_forecast(const observed *o, const hpct_train_training *t)
{
    const hpct_train_moment *now = &t->now;
    int epochs = t->options.epochs, rest_epochs = epochs - now->epoch;
    double step = hpct_train_training_step_seconds(t), left = now->times.job_left;
    double epoch = step * (double) t->steps_per_epoch + now->times.evaluation;
    double done = step * (double) now->sums.steps;
    double rest = epoch * rest_epochs - done, fits = (left - reserve(t) + done) / epoch;
    char takes[24], ends[24];
    if (rest <= left - reserve(t))
        return;
    int last = now->epoch + 1 + (int) fmin(fmax(fits, 0), 1e6);
    last = last < epochs ? last : epochs;
    printf("%d epoch%s about %s, and the job ends in %s: ", rest_epochs,
           rest_epochs == 1 ? " takes" : "s take", format_time(takes, sizeof takes, rest),
           format_time(ends, sizeof ends, left));
    if (o->saves)
        printf("training will stop with a checkpoint in epoch %d of %d\n", last, epochs);
    else
        printf(
            "training will be ended in epoch %d of %d (--checkpoint-dir DIR would let another job "
            "go on)\n",
            last, epochs);
    fflush(stdout);
}

/* Watches it, if the run is in a job, and speaks or saves. */
static hpct_status begin(void *own, hpct_train_training *t)
{
    observed *o = own;
    o->speaks = t->leads && t->options.verbose != 0;
    o->saves = t->leads && t->options.checkpoint_dir != NULL;
    if (o->speaks || o->saves)
        HPCT_TRY(hpct_rank_job_end_open(&o->job_end));
    t->now.times.job_left = hpct_rank_job_end_left(o->job_end);
    return HPCT_OK;
}

/* Says once if not all of the run fits into the job. */
static hpct_status step_ended(void *own, hpct_train_training *t)
{
    observed *o = own;
    const hpct_train_moment *now = &t->now;
    double left = t->now.times.job_left = hpct_rank_job_end_left(o->job_end);
    if (!isfinite(left) || now->times.timed < 2)
        return HPCT_OK;
    if (!o->said && o->speaks &&
        (now->times.timed >= KNOWN_STEPS || now->sums.steps == now->planned)) {
        o->said = true;
        print_forecast(o, t);
    }
    if (o->saves && left < reserve(t))
        hpct_rank_stop_raise(HPCT_RANK_STOP_DEADLINE);
    return HPCT_OK;
}

static hpct_status epoch_ended(void *own, hpct_train_training *t)
{
    const observed *o = own;
    t->now.times.job_left = hpct_rank_job_end_left(o->job_end);
    return HPCT_OK;
}

static void close_deadline(void *own, hpct_train_training *t)
{
    const observed *o = own;
    (void) t;
    hpct_rank_job_end_close(o->job_end);
}

const hpct_train_observer hpct_train_observe_deadline = {
    .size = sizeof(observed),
    .on = {[HPCT_TRAIN_ON_BEGIN] = begin,
           [HPCT_TRAIN_ON_STEP_ENDED] = step_ended,
           [HPCT_TRAIN_ON_EPOCH_ENDED] = epoch_ended},
    .close = close_deadline,
};
