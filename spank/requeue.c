/* The job is Slurm's to requeue; how often is counted by Slurm, too. Steps have ended by then, on
 * all nodes: a requeued job is ended like one that is cancelled. */
#include "spank/requeue.h"

#include <limits.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/status.h"
#include "spank/slurm_release.h"

/* Why the job is to run again; NULL: it is not. A script that does not end by itself is ended at
 * the job's time limit, by the same signals as one that is cancelled. */
static const char *find_reason(hpct_slurm *slurm, const hpct_spank_plugin *plugin)
{
    uint32_t status = 0;
    if (hpct_slurm_step_kind(plugin->step) != HPCT_SPANK_STEP_SCRIPT ||
        !hpct_slurm_get(slurm, HPCT_SLURM_STATUS, &status))
        return NULL;
    int how = (int) status;
    if (WIFEXITED(how) && WEXITSTATUS(how) == HPCT_ERR_STOPPED)
        return "the script asks to be continued (exit status 75)";
    bool ended = (WIFSIGNALED(how) && (WTERMSIG(how) == SIGTERM || WTERMSIG(how) == SIGKILL)) ||
                 (WIFEXITED(how) && WEXITSTATUS(how) > 128);
    return ended && hpct_slurm_ran_out(plugin->job) ? "the job has reached its time limit" : NULL;
}

void hpct_spank_requeue_script(hpct_spank_plugin *plugin, hpct_slurm *slurm)
{
    int times = 0;
    const char *why;
    hpct_cluster_environment environment = hpct_slurm_environment(slurm);
    const char *text =
        hpct_spank_options_text(&plugin->options, &environment, HPCT_SPANK_OPTION_REQUEUE);
    if (text == NULL || hpct_spank_requeue_parse(text, &times) != HPCT_OK ||
        (why = find_reason(slurm, plugin)) == NULL)
        return;
    /* SPANK's item of this name is 0 in a script's step (22.05); the variable is not there before
     * the first time. */
    const long before =
        hpct_cluster_environment_number(&environment, "SLURM_RESTART_COUNT", INT_MAX, 0);
    if (before >= times) {
        hpct_slurm_error("%s; it is not requeued again: it has been %ld times, and "
                         "--hpc-train-requeue allows %d",
                         why, before, times);
        return;
    }
    hpct_status status = hpct_slurm_requeue(plugin->job);
    if (status == HPCT_OK)
        hpct_slurm_error("%s: job %u is requeued (%ld of %d times)", why, plugin->job, before + 1,
                         times);
    else
        hpct_slurm_error("%s, but job %u cannot be requeued: %s", why, plugin->job,
                         hpct_last_error());
}
