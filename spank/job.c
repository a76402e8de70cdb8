/* Prolog and epilog of a job on a node, as root. All work is done in timed children: a user's
 * processes that outlive the job can block readers of their environment and removal of their
 * folders. */
#include <stdlib.h>

#include "base/status.h"
#include "spank/contexts.h"
#include "spank/marker.h"
#include "spank/orphans.h"
#include "spank/slurm_release.h"
#include "spank/timed_child.h"
#include "spank/tmpdir.h"

#define ORPHANS_SECONDS 5
#define OTHER_SECONDS 40   /* for everything else in an epilog */
#define TRY_SECONDS 25     /* added to last_try: for killing orphans and for the helper to end */
#define REMOVAL_SECONDS 25 /* a removal itself stops after 20 */

typedef struct visit {
    const hpct_spank_settings *settings;
    uint32_t job, uid;
    int limit;  /* Slurm's time limit for all of it; 0: none */
    double end; /* its end */
} visit;

static void to_log(void *job, bool error, const char *text)
{
    if (error)
        hpct_slurm_error("job %u: %s", *(uint32_t *) job, text);
    else
        hpct_slurm_info("job %u: %s", *(uint32_t *) job, text);
}

static hpct_status run(visit *v, const char *what, int seconds, hpct_spank_timed_child_work work)
{
    double left = v->end - hpct_spank_forked_now() - HPCT_SPANK_KILL_SECONDS;
    if (v->limit > 0 && left < seconds)
        seconds = left < 1 ? 1 : (int) left;
    const hpct_spank_timed_child timed_child = {.what = what,
                                                .seconds = seconds,
                                                .work = work,
                                                .context = v,
                                                .line = to_log,
                                                .line_context = &v->job};
    return hpct_spank_timed_child_run(timed_child);
}

/* ---- work in child processes
 * ------------------------------------------------------------------ */

/* A slurmstepd kills what it has started; if slurmstepd itself was killed, this does. */
static void end_orphans(const visit *v)
{
    const char *node = getenv("SLURMD_NODENAME");
    if (node == NULL || !hpct_spank_marker_find_step(v->settings->tmpdir, v->job))
        return;
    int count = hpct_spank_orphans_end(v->uid, v->job, node, ORPHANS_SECONDS);
    hpct_spank_timed_child_print(
        true, "a slurmstepd was killed; %d processes that it left behind were ended", count);
}

static void send_line(void *context, const char *text)
{
    (void) context;
    hpct_spank_timed_child_print(false, "%s", text);
}

static int last_try_seconds(const visit *v)
{
    int seconds = v->settings->last_try;
    if (v->limit > 0 && seconds > v->limit - OTHER_SECONDS)
        seconds = v->limit > OTHER_SECONDS ? v->limit - OTHER_SECONDS : 0;
    return seconds;
}

static void try_again(const visit *v)
{
    hpct_spank_person person;
    if (!hpct_spank_marker_find_out(v->settings->tmpdir, v->job, &person))
        return;
    char *from = hpct_spank_tmpdir_path(v->settings->tmpdir, v->job);
    const hpct_spank_stage_out out = {.settings = v->settings, .from = from, .as = &person};
    if (from != NULL && person.uid == v->uid &&
        hpct_spank_stage_out_last(&out, last_try_seconds(v), send_line, NULL) != HPCT_OK)
        hpct_spank_timed_child_print(true,
                                     "results of user %u were not copied out and are lost: %s",
                                     v->uid, hpct_last_error());
    free(from);
    hpct_spank_person_free(&person);
}

static hpct_status save(void *context)
{
    end_orphans(context);
    try_again(context);
    return HPCT_OK;
}

static hpct_status clean(void *context)
{
    const visit *v = context;
    hpct_spank_marker_remove(v->settings->tmpdir, v->job);
    return hpct_spank_tmpdir_remove(v->settings->tmpdir, v->job);
}

static hpct_status sweep(void *context)
{
    const visit *v = context;
    hpct_spank_marker_remove(v->settings->tmpdir, 0);
    hpct_spank_tmpdir_sweep(v->settings->tmpdir);
    return HPCT_OK;
}

/* ---------------------------------------------------------------------------------------------- */

void hpct_spank_job_clean(hpct_spank_plugin *plugin, hpct_slurm *slurm, bool epilog)
{
    visit v = {.settings = &plugin->settings, .limit = hpct_slurm_epilog_limit()};
    /* if an argument is wrong, no other can be trusted */
    if (plugin->trouble[0] != '\0') {
        hpct_slurm_error("%s", plugin->trouble);
        return;
    }
    if (!hpct_slurm_get(slurm, HPCT_SLURM_JOB, &v.job) ||
        !hpct_slurm_get(slurm, HPCT_SLURM_UID, &v.uid))
        return;
    v.end = hpct_spank_forked_now() + v.limit;
    if (run(&v, "a last try to copy out", last_try_seconds(&v) + TRY_SECONDS, save) != HPCT_OK)
        hpct_slurm_error("job %u: %s", v.job, hpct_last_error());
    hpct_status status = run(&v, "removing the job directory", REMOVAL_SECONDS, clean);
    if (status != HPCT_OK)
        hpct_slurm_error("job %u: %s", v.job, hpct_last_error());
    /* what blocks this removal would block the others, too */
    if (epilog && status != HPCT_ERR_STOPPED &&
        run(&v, "removing what earlier jobs left", REMOVAL_SECONDS, sweep) != HPCT_OK)
        hpct_slurm_error("job %u: %s", v.job, hpct_last_error());
}
