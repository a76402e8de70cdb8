/* In the prolog and epilog of a job on a node, as root. */
#include <stdlib.h>

#include "base/status.h"
#include "spank/contexts.h"
#include "spank/marker.h"
#include "spank/orphans.h"
#include "spank/slurm_release.h"
#include "spank/tmpdir.h"

#define KILL_SECONDS 5
#define OTHER_SECONDS 40 /* for all else that an epilog does */

static void to_log(void *job, const char *text)
{
    hpct_slurm_info("job %u: %s", *(uint32_t *) job, text);
}

/* A process that watches over a step ends what it has started; one that was killed could not. */
static void end_orphans(const hpct_plugin *plugin, uint32_t job, uint32_t uid)
{
    const char *node = getenv("SLURMD_NODENAME");
    if (node == NULL || !hpct_marker_find_step(plugin->settings.tmpdir, job))
        return;
    int count = hpct_orphans_end(uid, job, node, KILL_SECONDS);
    hpct_slurm_error("job %u: a slurmstepd was killed; %d processes that it left behind were ended",
                     job, count);
}

static void try_again(const hpct_plugin *plugin, uint32_t job, uint32_t uid)
{
    hpct_person person;
    const hpct_settings *settings = &plugin->settings;
    int seconds = settings->last_try, limit = hpct_slurm_epilog_limit();
    if (!hpct_marker_find_out(settings->tmpdir, job, &person))
        return;
    if (limit > 0 && seconds > limit - OTHER_SECONDS)
        seconds = limit > OTHER_SECONDS ? limit - OTHER_SECONDS : 0;
    char *from = hpct_tmpdir_path(settings->tmpdir, job);
    const hpct_stage_out out = {.settings = settings, .from = from, .as = &person};
    if (from != NULL && person.uid == uid &&
        hpct_stage_out_last(&out, seconds, to_log, &job) != HPCT_OK)
        hpct_slurm_error("job %u: results of user %u were not copied out and are lost: %s", job,
                         uid, hpct_last_error());
    free(from);
    hpct_person_free(&person);
}

void hpct_job_clean(hpct_plugin *plugin, hpct_slurm *slurm)
{
    uint32_t job = 0, uid = 0;
    /* with a wrong argument, which other could be trusted? */
    if (plugin->trouble[0] != '\0') {
        hpct_slurm_error("%s", plugin->trouble);
        return;
    }
    if (!hpct_slurm_get(slurm, HPCT_SLURM_JOB, &job) ||
        !hpct_slurm_get(slurm, HPCT_SLURM_UID, &uid))
        return;
    end_orphans(plugin, job, uid);
    try_again(plugin, job, uid);
    hpct_marker_remove(plugin->settings.tmpdir, job);
    if (hpct_tmpdir_remove(plugin->settings.tmpdir, job) != HPCT_OK)
        hpct_slurm_error("%s", hpct_last_error());
}

void hpct_job_sweep(hpct_plugin *plugin)
{
    if (plugin->trouble[0] != '\0')
        return;
    hpct_marker_remove(plugin->settings.tmpdir, 0);
    hpct_tmpdir_sweep(plugin->settings.tmpdir);
}
