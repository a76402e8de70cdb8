/* Runs in slurmstepd, as root, when tasks are forked and when they have ended. */
#include <stdlib.h>

#include "base/cluster/tasks.h"
#include "base/status.h"
#include "spank/cgroup.h"
#include "spank/contexts.h"
#include "spank/requeue.h"
#include "spank/slurm_release.h"
#include "spank/tell.h"
#include "spank/tmpdir.h"

/* Copying stops this long before Slurm's SIGKILL, to remove unfinished files and report. */
#define MARGIN_SECONDS 1.5

void hpct_spank_task_forked(hpct_spank_plugin *plugin, hpct_slurm *slurm)
{
    uint32_t pid = 0;
    if (plugin->out && plugin->cgroup == NULL && hpct_slurm_get(slurm, HPCT_SLURM_PID, &pid))
        plugin->cgroup = hpct_spank_cgroup_of((pid_t) pid);
}

static hpct_status copy_out(const hpct_spank_plugin *plugin)
{
    char step[HPCT_SPANK_STEP_NAME];
    char *from = hpct_spank_tmpdir_path(plugin->settings.tmpdir, plugin->job);
    const hpct_spank_stage_out out = {
        .settings = &plugin->settings, .from = from, .as = &plugin->user};
    hpct_spank_step_name(plugin->step, step);
    hpct_status status = from == NULL
                             ? hpct_fail_memory(0)
                             : hpct_spank_stage_out_step(&out, step, plugin->cgroup,
                                                         hpct_slurm_kill_wait() - MARGIN_SECONDS);
    free(from);
    return status;
}

/* Ends the step on the other nodes, which wait for this node's part of the work. A task killed
 * during staging cannot report that itself. */
static void end_step(hpct_spank_plugin *plugin, hpct_slurm *slurm, const char *node)
{
    if (hpct_slurm_step_kind(plugin->step) != HPCT_SPANK_STEP_TASKS)
        return;
    if (hpct_spank_share_first(plugin->share, HPCT_SPANK_SHARE_REPORTED))
        hpct_slurm_error("%s: its tasks were ended before their programs started: the step is "
                         "ended",
                         node);
    if (hpct_spank_share_first(plugin->share, HPCT_SPANK_SHARE_TOLD))
        hpct_spank_tell(slurm, plugin->job, plugin->step);
}

/* Ranks that wait for rank 0 to listen cannot know that it has ended. Without roles all ranks wait
 * for each other before one can end; with roles a worker may also arrive after the end of the
 * run. */
static void tell_zero_is_gone(const hpct_spank_plugin *plugin, hpct_slurm *slurm)
{
    uint32_t rank = 0, status = 0, tasks = 0;
    hpct_cluster_environment environment = hpct_slurm_environment(slurm);
    bool roles =
        hpct_spank_options_text(&plugin->options, &environment, HPCT_SPANK_OPTION_ROLES) != NULL;
    if (hpct_slurm_step_kind(plugin->step) == HPCT_SPANK_STEP_TASKS &&
        hpct_slurm_get(slurm, HPCT_SLURM_RANK, &rank) && rank == 0 &&
        hpct_slurm_get(slurm, HPCT_SLURM_STATUS, &status) && (status != 0 || roles) &&
        hpct_slurm_get(slurm, HPCT_SLURM_TOTAL_TASKS, &tasks) && tasks > 1)
        hpct_slurm_signal_step(plugin->job, plugin->step, HPCT_CLUSTER_GONE_SIGNAL);
}

/* Results of a step are reported to srun; nobody waits for a script's end, so the job gets the
 * status, unless the script itself failed. */
static void fail_script(const hpct_spank_plugin *plugin, hpct_slurm *slurm, hpct_status why)
{
    uint32_t status = 0;
    if (hpct_slurm_step_kind(plugin->step) == HPCT_SPANK_STEP_SCRIPT &&
        hpct_slurm_get(slurm, HPCT_SLURM_STATUS, &status) && status == 0)
        hpct_slurm_end_job(plugin->job, why);
}

/* Copies out, and says what is not. */
static void leave_results(hpct_spank_plugin *plugin, hpct_slurm *slurm, const char *node)
{
    hpct_cluster_environment environment = hpct_slurm_environment(slurm);
    hpct_status status = copy_out(plugin);
    if (status == HPCT_OK)
        return;
    hpct_slurm_error(
        "%s: not all of '%s' is copied out: %s; it is tried once more when the "
        "job ends, and what is lost then is told in hpc-train-lost.%u.* in the "
        "step's folder",
        node, hpct_spank_options_text(&plugin->options, &environment, HPCT_SPANK_OPTION_STAGE_OUT),
        hpct_last_error(), plugin->job);
    fail_script(plugin, slurm, status);
}

void hpct_spank_task_ended(hpct_spank_plugin *plugin, hpct_slurm *slurm)
{
    uint32_t tasks = 0;
    if (!plugin->on || plugin->share == NULL ||
        !hpct_slurm_get(slurm, HPCT_SLURM_LOCAL_TASKS, &tasks))
        return;
    hpct_cluster_environment environment = hpct_slurm_environment(slurm);
    const char *node = environment.get(environment.context, "SLURMD_NODENAME");
    bool last = ++plugin->tasks_ended == tasks;
    bool started = hpct_spank_share_marked(plugin->share, HPCT_SPANK_SHARE_STARTED);
    if (node == NULL)
        node = "?";
    if (hpct_spank_share_marked(plugin->share, HPCT_SPANK_SHARE_REPORTED) || (last && !started))
        end_step(plugin, slurm, node);
    else
        tell_zero_is_gone(plugin, slurm);
    if (last) { /* before srun learns of the end, and the next step wants the same ports */
        hpct_spank_ports_keeper_end(plugin->keeper);
        plugin->keeper = NULL;
    }
    if (last && started && plugin->out)
        leave_results(plugin, slurm, node);
    if (last && started)
        hpct_spank_requeue_script(plugin, slurm);
}
