/* The job's time limit: said in time, and stopped for, with a checkpoint. Rank 0 alone watches it;
 * the others stop as for a signal of its. */
#include "agent/rank/context.h"
#include "agent/rank/stop.h"
#include "agent/train/fit_run.h"
#include "base/process.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define RESERVE 15    /* seconds for what is not measured: files, ending */
#define UNKNOWN 5     /* of a checkpoint, before there is one */
#define KNOWN_STEPS 5 /* of an epoch, after which a step's time is known */

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
static double reserve(const hpct_fit_run *run, double step)
{
    double save = hpct_checkpoints_seconds(run->checkpoints);
    return RESERVE + 3 * step + 1.5 * run->evaluation_seconds + 2 * (save > 0 ? save : UNKNOWN);
}

static void say(const hpct_fit_run *run, int epoch, int64_t step, double seconds, double left)
{
    int64_t steps = hpct_sampler_steps_per_epoch(run->sampler);
    int epochs = run->options.epochs;
    double epoch_seconds = seconds * (double) steps + run->evaluation_seconds;
    double rest = epoch_seconds * (epochs - epoch) - seconds * (double) (step + 1);
    double fits = (left - reserve(run, seconds) + seconds * (double) (step + 1)) / epoch_seconds;
    char takes[24], ends[24];
    if (rest <= left - reserve(run, seconds))
        return;
    int last = epoch + 1 + (int) fmin(fmax(fits, 0), 1e6);
    printf("%d epoch%s take about %s, and the job ends in %s: ", epochs - epoch,
           epochs - epoch == 1 ? "" : "s", format_time(takes, sizeof takes, rest),
           format_time(ends, sizeof ends, left));
    if (run->checkpoints != NULL)
        printf("training will stop with a checkpoint in epoch %d of %d\n",
               last < epochs ? last : epochs, epochs);
    else
        printf(
            "training will be ended in epoch %d of %d (--checkpoint-dir DIR would let another job "
            "go on)\n",
            last < epochs ? last : epochs, epochs);
    fflush(stdout);
}

void hpct_fit_heed_deadline(hpct_fit_run *run, int epoch, int64_t step, const hpct_fit_sums *sums,
                            double seconds)
{
    double left = hpct_job_end_left(run->job_end);
    if (!isfinite(left) || sums->timed < 2)
        return;
    if (!run->deadline_said && run->options.verbose != 0 &&
        (sums->timed >= KNOWN_STEPS || step + 1 == sums->planned)) {
        run->deadline_said = true;
        say(run, epoch, step, seconds, left);
    }
    if (run->checkpoints != NULL && left < reserve(run, seconds))
        hpct_stop_raise(HPCT_STOP_DEADLINE);
}
