/* The helper's options, and the list of nodes that it reads. */
#include <config.h>

#include "spank/stage_run.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/status.h"
#include "spank/child.h"

static void alive(void *share)
{
    hpct_spank_share_progress(share);
}

/* A list of ten thousand nodes is too long for an argument: passed as a file. */
static hpct_status open_hosts(const char *text, int *file)
{
    *file = memfd_create("hpc-train-nodes", MFD_CLOEXEC);
    if (*file >= 0 && hpct_fd_write(*file, text, strlen(text)))
        return HPCT_OK;
    hpct_fd_close(*file);
    return hpct_fail(HPCT_ERR_INTERNAL, "the list of nodes cannot be handed to the helper: %s",
                     strerror(errno));
}

static void add_team(hpct_spank_argv *argv, const hpct_spank_stage_run *r)
{
    hpct_spank_argv_add_printed(argv, "--nodes", "/proc/self/fd/%d", HPCT_SPANK_CHILD_FILE_FD);
    hpct_spank_argv_add_printed(argv, "--index", "%d", r->node);
    hpct_spank_argv_add_option(argv, "--job", r->job);
    hpct_spank_argv_add_option(argv, "--key", r->key);
}

static void add_limits(hpct_spank_argv *argv, const hpct_spank_stage_run *r)
{
    const hpct_spank_settings *settings = r->settings;
    if (settings->stage_max != 0)
        hpct_spank_argv_add_printed(argv, "--max", "%" PRIu64, settings->stage_max);
    if (settings->stage_follow)
        hpct_spank_argv_add_option(argv, "--links", "follow");
    if (r->memory != 0)
        hpct_spank_argv_add_printed(argv, "--memory", "%" PRIu64, r->memory);
    for (int i = 0; i < settings->num_stage_src; i++)
        hpct_spank_argv_add_option(argv, "--allow", settings->stage_src[i]);
}

static void build(hpct_spank_argv *argv, const hpct_spank_stage_run *r)
{
    hpct_spank_argv_add(argv, r->settings->helper);
    hpct_spank_argv_add_printed(argv, "--progress-fd", "%d", HPCT_SPANK_PROGRESS_FD);
    if (r->settings->verbose)
        hpct_spank_argv_add(argv, "--verbose");
    else if (r->node != 0) /* the first node reports progress for all */
        hpct_spank_argv_add(argv, "--quiet");
    add_limits(argv, r);
    hpct_spank_argv_add_option(argv, "--mode", r->mode);
    if (r->hosts != NULL)
        add_team(argv, r);
    hpct_spank_argv_add_option(argv, "--to", r->to);
    hpct_spank_argv_add_option(argv, "--list", r->list);
}

hpct_status hpct_spank_stage_run_work(void *context, hpct_spank_share *share)
{
    const hpct_spank_stage_run *r = context;
    hpct_spank_argv argv = {.count = 0};
    int hosts = -1;
    build(&argv, r);
    if (r->hosts != NULL)
        HPCT_TRY(open_hosts(r->hosts, &hosts));
    const hpct_spank_child child = {
        .arguments = argv.words,
        .stall_seconds = r->stall_seconds,
        .end_signal = SIGTERM,
        .file = hosts,
        .alive = alive,
        .context = share,
    };
    hpct_status status = hpct_spank_child_run(&child, "staging");
    hpct_fd_close(hosts);
    return status;
}

hpct_status hpct_spank_stage_run_once(const hpct_spank_stage_run *run, hpct_spank_share *share,
                                      int local_rank)
{
    hpct_spank_stage_run own = *run;
    /* Waiters time out a little later than the worker, so that its more specific error is printed.
     */
    return hpct_spank_share_once(share, HPCT_SPANK_SHARE_DATA, local_rank, "stage the data",
                                 own.stall_seconds + 10, hpct_spank_stage_run_work, &own);
}
