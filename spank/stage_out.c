/* The helper's arguments. */
#include <config.h>

#include "spank/stage_out.h"

#include <signal.h>

#include "spank/child.h"
#include "spank/spec/out_record.h"

static void add_common(hpct_spank_argv *argv, const hpct_spank_stage_out *out)
{
    hpct_spank_argv_add(argv, out->settings->helper);
    hpct_spank_argv_add(argv, "--out");
    hpct_spank_argv_add_printed(argv, "--progress-fd", "%d", HPCT_SPANK_PROGRESS_FD);
    hpct_spank_argv_add_option(argv, "--from", out->from);
    if (out->settings->verbose)
        hpct_spank_argv_add(argv, "--verbose");
}

hpct_status hpct_spank_stage_out_step(const hpct_spank_stage_out *out, const char *step,
                                      const char *cgroup, double grace)
{
    hpct_spank_argv argv = {.count = 0};
    add_common(&argv, out);
    hpct_spank_argv_add_printed(&argv, "--record", HPCT_SPEC_OUT_RECORD_PREFIX "%s", step);
    hpct_spank_argv_add_printed(&argv, "--grace", "%.1f", grace);
    const hpct_spank_child child = {
        .arguments = argv.words,
        .stall_seconds = HPCT_SPANK_STALL_SECONDS,
        .as = out->as,
        .cgroup = cgroup,
        .end_signal = SIGKILL, /* the epilog then goes on with it */
    };
    return hpct_spank_child_run(&child, "copying out");
}

hpct_status hpct_spank_stage_out_last(const hpct_spank_stage_out *out, int seconds,
                                      void (*line)(void *context, const char *text), void *context)
{
    hpct_spank_argv argv = {.count = 0};
    add_common(&argv, out);
    hpct_spank_argv_add(&argv, "--all");
    /* at least a moment, to say what is lost */
    hpct_spank_argv_add_printed(&argv, "--seconds", "%.3f", seconds > 0 ? seconds : 0.001);
    const hpct_spank_child child = {
        .arguments = argv.words,
        .stall_seconds = HPCT_SPANK_STALL_SECONDS,
        .limit_seconds = seconds + 5,
        .as = out->as,
        .end_signal = SIGKILL,
        .alone = true, /* here no control group would end it */
        .line = line,
        .context = context,
    };
    return hpct_spank_child_run(&child, "copying out");
}
