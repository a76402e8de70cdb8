/* The helper's arguments. */
#include <config.h>

#include "spank/stage_out.h"

#include <signal.h>
#include <stdio.h>

#include "spank/spec/out_record.h"

#define MAX_ARGUMENTS 16

typedef struct arguments {
    char *all[MAX_ARGUMENTS];
    int count;
} arguments;

/* execve does not change what it is given; its type is older than const. */
static void add(arguments *a, const char *argument)
{
    union {
        const char *in;
        char *out;
    } both = {.in = argument};
    a->all[a->count++] = both.out;
}

static void add_common(arguments *a, const hpct_stage_out *out, char progress[16])
{
    snprintf(progress, 16, "%d", HPCT_PROGRESS_FD);
    add(a, out->settings->helper);
    add(a, "--out");
    add(a, "--progress-fd");
    add(a, progress);
    add(a, "--from");
    add(a, out->from);
    if (out->settings->verbose)
        add(a, "--verbose");
}

hpct_status hpct_stage_out_step(const hpct_stage_out *out, const char *step, const char *cgroup,
                                double grace)
{
    arguments a = {.count = 0};
    char progress[16], seconds[32], record[sizeof HPCT_OUT_RECORD_PREFIX + HPCT_STEP_NAME];
    snprintf(record, sizeof record, HPCT_OUT_RECORD_PREFIX "%s", step);
    snprintf(seconds, sizeof seconds, "%.1f", grace);
    add_common(&a, out, progress);
    add(&a, "--record");
    add(&a, record);
    add(&a, "--grace");
    add(&a, seconds);
    const hpct_child child = {
        .arguments = a.all,
        .stall_seconds = HPCT_STALL_SECONDS,
        .as = out->as,
        .cgroup = cgroup,
        .end_signal = SIGKILL, /* the epilog then goes on with it */
    };
    return hpct_child_run(&child, "copying out");
}

hpct_status hpct_stage_out_last(const hpct_stage_out *out, int seconds,
                                void (*line)(void *context, const char *text), void *context)
{
    arguments a = {.count = 0};
    char progress[16], limit[32];
    snprintf(limit, sizeof limit, "%.3f", seconds > 0 ? seconds : 0.001); /* to say what is lost */
    add_common(&a, out, progress);
    add(&a, "--all");
    add(&a, "--seconds");
    add(&a, limit);
    const hpct_child child = {
        .arguments = a.all,
        .stall_seconds = HPCT_STALL_SECONDS,
        .limit_seconds = seconds + 5,
        .as = out->as,
        .end_signal = SIGKILL,
        .alone = true, /* here no control group would end it */
        .line = line,
        .context = context,
    };
    return hpct_child_run(&child, "copying out");
}
