/* What fits into a job, and when a run is to stop. */
#include "agent/train/deadline.h"

#include "agent/rank/stop.h"

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
static double reserve(const hpct_deadline_place *now)
{
    return RESERVE + 3 * now->seconds + 1.5 * now->evaluation +
           2 * (now->save_seconds > 0 ? now->save_seconds : UNKNOWN);
}

static void say(const hpct_deadline *deadline, const hpct_deadline_place *now, double left)
{
    int epochs = deadline->epochs, rest_epochs = epochs - now->epoch;
    double epoch = now->seconds * (double) deadline->steps_per_epoch + now->evaluation;
    double done = now->seconds * (double) (now->step + 1);
    double rest = epoch * rest_epochs - done, fits = (left - reserve(now) + done) / epoch;
    char takes[24], ends[24];
    if (rest <= left - reserve(now))
        return;
    int last = now->epoch + 1 + (int) fmin(fmax(fits, 0), 1e6);
    last = last < epochs ? last : epochs;
    printf("%d epoch%s about %s, and the job ends in %s: ", rest_epochs,
           rest_epochs == 1 ? " takes" : "s take", format_time(takes, sizeof takes, rest),
           format_time(ends, sizeof ends, left));
    if (deadline->saves)
        printf("training will stop with a checkpoint in epoch %d of %d\n", last, epochs);
    else
        printf(
            "training will be ended in epoch %d of %d (--checkpoint-dir DIR would let another job "
            "go on)\n",
            last, epochs);
    fflush(stdout);
}

hpct_status hpct_deadline_open(hpct_deadline *deadline)
{
    return deadline->speaks || deadline->saves ? hpct_job_end_open(&deadline->job_end) : HPCT_OK;
}

void hpct_deadline_close(hpct_deadline *deadline)
{
    hpct_job_end_close(deadline->job_end);
    deadline->job_end = NULL;
}

void hpct_deadline_heed(hpct_deadline *deadline, const hpct_deadline_place *now)
{
    double left = hpct_job_end_left(deadline->job_end);
    if (!isfinite(left) || now->timed < 2)
        return;
    if (!deadline->said && deadline->speaks && (now->timed >= KNOWN_STEPS || now->epoch_ended)) {
        deadline->said = true;
        say(deadline, now, left);
    }
    if (deadline->saves && left < reserve(now))
        hpct_stop_raise(HPCT_STOP_DEADLINE);
}
