/* The helper's arguments. */
#include <config.h>

#include "spank/stage_run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "spank/child.h"

static void alive(void *share)
{
    hpct_share_progress(share);
}

hpct_status hpct_stage_run_work(void *context, hpct_share *share)
{
    const hpct_stage_run *r = context;
    const hpct_settings *settings = r->settings;
    static char progress_option[] = "--progress-fd", verbose_option[] = "--verbose";
    static char max_option[] = "--max", allow_option[] = "--allow", to_option[] = "--to";
    static char list_option[] = "--list";
    static char links_option[] = "--links", follow[] = "follow", memory_option[] = "--memory";
    char max[32], memory[32], progress[16];
    size_t n = 0, room = (size_t) settings->num_stage_src * 2 + 16;
    char **arguments = calloc(room, sizeof *arguments);
    if (arguments == NULL)
        return hpct_fail_memory(0);
    arguments[n++] = settings->helper;
    snprintf(progress, sizeof progress, "%d", HPCT_PROGRESS_FD);
    arguments[n++] = progress_option;
    arguments[n++] = progress;
    if (settings->verbose)
        arguments[n++] = verbose_option;
    if (settings->stage_max != 0) {
        snprintf(max, sizeof max, "%llu", (unsigned long long) settings->stage_max);
        arguments[n++] = max_option;
        arguments[n++] = max;
    }
    if (settings->stage_follow) {
        arguments[n++] = links_option;
        arguments[n++] = follow;
    }
    if (r->memory != 0) {
        snprintf(memory, sizeof memory, "%llu", (unsigned long long) r->memory);
        arguments[n++] = memory_option;
        arguments[n++] = memory;
    }
    for (int i = 0; i < settings->num_stage_src; i++) {
        arguments[n++] = allow_option;
        arguments[n++] = settings->stage_src[i];
    }
    char *to = strdup(r->to), *list = strdup(r->list);
    arguments[n++] = to_option;
    arguments[n++] = to;
    arguments[n++] = list_option;
    arguments[n++] = list;
    const hpct_child child = {
        .arguments = arguments,
        .stall_seconds = r->stall_seconds,
        .end_signal = SIGTERM,
        .alive = alive,
        .context = share,
    };
    hpct_status status =
        to == NULL || list == NULL ? hpct_fail_memory(0) : hpct_child_run(&child, "staging");
    free(to);
    free(list);
    free(arguments);
    return status;
}
