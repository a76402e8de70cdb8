/* The job is Slurm's to requeue; how often is counted by Slurm, too. Steps have ended by then, on
 * all nodes: a requeued job is ended like one that is cancelled. */
#include "spank/requeue.h"

#include <limits.h>
#include <sys/wait.h>

#include "agent/cluster/number.h"
#include "base/status.h"
#include "spank/slurm_release.h"

static bool asks_again(hpct_slurm *slurm, uint32_t step)
{
    uint32_t status = 0;
    return hpct_slurm_step_kind(step) == HPCT_STEP_SCRIPT &&
           hpct_slurm_get(slurm, HPCT_SLURM_STATUS, &status) && WIFEXITED((int) status) &&
           WEXITSTATUS((int) status) == HPCT_ERR_STOPPED;
}

/* SPANK's item of this name is 0 in a script's step (22.05); the variable is not there before the
 * first time. */
static long restarts(const hpct_environment *environment)
{
    const char *text = environment->get(environment->context, "SLURM_RESTART_COUNT");
    long count = 0;
    return text != NULL && hpct_number_parse(text, 0, INT_MAX, &count) ? count : 0;
}

void hpct_requeue_script(hpct_plugin *plugin, hpct_slurm *slurm)
{
    int times = 0;
    hpct_environment environment = hpct_slurm_environment(slurm);
    const char *text = hpct_options_text(&plugin->options, &environment, HPCT_OPTION_REQUEUE);
    if (text == NULL || hpct_requeue_parse(text, &times) != HPCT_OK ||
        !asks_again(slurm, plugin->step))
        return;
    long before = restarts(&environment);
    if (before >= times) {
        hpct_slurm_error("the script asks to be continued (exit status 75); the job is not "
                         "requeued again: it has been %ld times, and --hpc-train-requeue allows %d",
                         before, times);
        return;
    }
    hpct_status status = hpct_slurm_requeue(plugin->job);
    if (status == HPCT_OK)
        hpct_slurm_error(
            "the script asks to be continued (exit status 75): job %u is requeued (%ld "
            "of %d times)",
            plugin->job, before + 1, times);
    else
        hpct_slurm_error("the script asks to be continued (exit status 75), but job %u cannot be "
                         "requeued: %s",
                         plugin->job, hpct_last_error());
}
