/* Runs in slurmstepd, as root. Of the user's options only on/off is evaluated; the tasks parse
 * values later with the user's rights. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cluster/variables.h"
#include "base/status.h"
#include "spank/contexts.h"
#include "spank/defaults.h"
#include "spank/marker.h"
#include "spank/network.h"
#include "spank/step_key.h"
#include "spank/timed_child.h"
#include "spank/tmpdir.h"

static void keep_trouble(hpct_spank_plugin *plugin, hpct_status status)
{
    plugin->status = status;
    snprintf(plugin->trouble, sizeof plugin->trouble, "%s", hpct_last_error());
}

/* A step that is off in a job that is on inherits variables of another step, and a TMPDIR that may
 * not exist here. Values the user has changed are kept. */
static void take_away(hpct_spank_plugin *plugin, hpct_slurm *slurm)
{
    hpct_cluster_environment environment = hpct_slurm_environment(slurm);
    bool inherited = environment.get(environment.context, "HPC_TRAIN_CONFIG_FILE") != NULL;
    char *path = hpct_spank_tmpdir_path(plugin->settings.tmpdir, plugin->job);
    for (int i = 0; path != NULL && hpct_cluster_variable_names[i] != NULL; i++) {
        const char *name = hpct_cluster_variable_names[i];
        const char *value = environment.get(environment.context, name);
        bool folder = strcmp(name, "TMPDIR") == 0 || strcmp(name, "SLURM_TMPDIR") == 0;
        if (value != NULL && (folder ? strcmp(value, path) == 0 : inherited))
            hpct_slurm_set(slurm, name, NULL);
    }
    hpct_spank_network_forget(&environment, hpct_slurm_set, slurm);
    free(path);
}

/* Records stage-out for the epilog, in case this process is killed before the last task ends. */
static hpct_status prepare_out(hpct_spank_plugin *plugin, hpct_slurm *slurm, unsigned sent)
{
    hpct_cluster_environment environment = hpct_slurm_environment(slurm);
    if (hpct_spank_options_text(&plugin->options, &environment, HPCT_SPANK_OPTION_STAGE_OUT) ==
        NULL)
        return HPCT_OK;
    /* srun does not listen for reports, so it could not end with another status if results are
     * lost */
    if (hpct_slurm_step_kind(plugin->step) == HPCT_SPANK_STEP_TASKS &&
        plugin->options.values[HPCT_SPANK_OPTION_STAGE_OUT] == NULL &&
        (sent & 1U << HPCT_SPANK_OPTION_STAGE_OUT) == 0)
        return hpct_fail(HPCT_ERR_USAGE,
                         "HPC_TRAIN_STAGE_OUT came by --export alone, and srun would not hear of "
                         "results that are lost: set it where srun is called, or give "
                         "--hpc-train-stage-out");
    if (!hpct_slurm_person(slurm, &plugin->user))
        return hpct_fail(HPCT_ERR_INTERNAL, "Slurm does not say who the user is");
    plugin->out = true;
    return HPCT_OK;
}

/* ---- work in child processes ----------------------------------------------------------------- */

typedef struct visit {
    const hpct_spank_plugin *plugin;
    uint32_t job, step, uid, gid;
} visit;

static hpct_status make(void *context)
{
    const visit *v = context;
    const char *parent = v->plugin->settings.tmpdir;
    HPCT_TRY(hpct_spank_tmpdir_make(parent, v->job, v->uid, v->gid));
    HPCT_TRY(hpct_spank_ports_folder_make(HPCT_SPANK_PORTS_FOLDER));
    if (v->plugin->out)
        HPCT_TRY(hpct_spank_marker_out(parent, v->job, &v->plugin->user));
    /* last: other jobs' epilogs remove markers without a directory, and a step whose tasks have not
     * started leaves no orphans */
    return hpct_spank_marker_step(parent, v->job, v->step, true);
}

static hpct_status find(void *context)
{
    const visit *v = context;
    return hpct_spank_tmpdir_find(v->plugin->settings.tmpdir, v->job, v->uid) ? HPCT_OK
                                                                              : HPCT_ERR_IO;
}

static hpct_status leave(void *context)
{
    const visit *v = context;
    return hpct_spank_marker_step(v->plugin->settings.tmpdir, v->job, v->step, false);
}

static hpct_status go(hpct_spank_timed_child_work work, const char *what, visit *v)
{
    const hpct_spank_timed_child timed_child = {
        .what = what, .seconds = HPCT_SPANK_FOLDER_SECONDS, .work = work, .context = v};
    hpct_status status = hpct_spank_timed_child_run(timed_child);
    return status == HPCT_ERR_STOPPED ? HPCT_ERR_IO : status;
}

/* ---------------------------------------------------------------------------------------------- */

/* sbatch --export=NONE (or NIL, or a list) keeps the options in the script's environment under
 * Slurm's names (SLURM_SPANK_…); the job's own variables, which Slurm always sends, contain them,
 * too. */
static void take_forwarded(hpct_spank_plugin *plugin, const hpct_cluster_environment *environment)
{
    for (int i = 0; i < HPCT_SPANK_NUM_OPTIONS; i++) {
        const char *text = hpct_spank_option_forwarded(environment, (hpct_spank_option) i);
        if (plugin->options.values[i] == NULL && text != NULL)
            hpct_spank_options_set(&plugin->options, (hpct_spank_option) i, text);
    }
}

/* A step without hpc-train in a job that uses it, such as `srun --overlap --jobid=J bash`, gets the
 * job directory if there is one. */
static void show_folder(hpct_spank_plugin *plugin, hpct_slurm *slurm)
{
    visit v = {.plugin = plugin};
    const char *parent = plugin->settings.tmpdir;
    if (plugin->trouble[0] != '\0' || !hpct_slurm_get(slurm, HPCT_SLURM_JOB, &v.job) ||
        !hpct_slurm_get(slurm, HPCT_SLURM_STEP, &v.step) ||
        !hpct_slurm_get(slurm, HPCT_SLURM_UID, &v.uid) ||
        hpct_slurm_step_kind(v.step) == HPCT_SPANK_STEP_OTHER ||
        go(find, "looking for the job directory", &v) != HPCT_OK)
        return;
    hpct_cluster_environment environment = hpct_slurm_environment(slurm);
    const char *value = environment.get(environment.context, "SLURM_TMPDIR");
    size_t size = strlen(parent);
    bool other_job = value != NULL && strncmp(value, parent, size) == 0 && value[size] == '/';
    char *path = hpct_spank_tmpdir_path(parent, v.job);
    if (path != NULL && (value == NULL || other_job))
        hpct_slurm_set(slurm, "SLURM_TMPDIR", path);
    free(path);
}

static hpct_status keep_ports(hpct_spank_plugin *plugin, uint32_t uid, int tasks)
{
    const hpct_spank_ports_owner owner = {
        .process = (uint32_t) getpid(), .uid = uid, .job = plugin->job, .step = plugin->step};
    const int most = tasks + 1; /* and one for staging */
    return hpct_spank_ports_keeper_start(HPCT_SPANK_PORTS_FOLDER, &owner, most, &plugin->keeper);
}

void hpct_spank_step_start(hpct_spank_plugin *plugin, hpct_slurm *slurm)
{
    uint32_t uid = 0, gid = 0, tasks = 0, step = 0, nodes = 0;
    unsigned sent = 0;
    bool off_by_user = false;
    hpct_cluster_environment environment = hpct_slurm_environment(slurm);
    if (hpct_spank_defaults_take(slurm, &sent) != HPCT_OK && plugin->trouble[0] == '\0')
        keep_trouble(plugin, HPCT_ERR_INTERNAL);
    if (hpct_slurm_get(slurm, HPCT_SLURM_STEP, &step) &&
        hpct_slurm_step_kind(step) == HPCT_SPANK_STEP_SCRIPT)
        take_forwarded(plugin, &environment);
    hpct_spank_options_switch(&plugin->options, &environment, plugin->settings.on_by_default,
                              &plugin->on, &off_by_user);
    if (!plugin->on && !off_by_user) {
        show_folder(plugin, slurm);
        return;
    }
    if (!hpct_slurm_get(slurm, HPCT_SLURM_JOB, &plugin->job) ||
        !hpct_slurm_get(slurm, HPCT_SLURM_STEP, &plugin->step) ||
        !hpct_slurm_get(slurm, HPCT_SLURM_UID, &uid) ||
        !hpct_slurm_get(slurm, HPCT_SLURM_GID, &gid)) {
        hpct_fail(HPCT_ERR_INTERNAL, "Slurm does not say whose job this is");
        keep_trouble(plugin, HPCT_ERR_INTERNAL);
        return;
    }
    if (!plugin->on) {
        if (plugin->trouble[0] == '\0')
            take_away(plugin, slurm);
        return;
    }
    if (hpct_slurm_step_kind(plugin->step) == HPCT_SPANK_STEP_OTHER) {
        plugin->on = false;
        return;
    }
    plugin->start = hpct_now_ms();
    plugin->daemon = getpid();
    bool script = hpct_slurm_step_kind(plugin->step) == HPCT_SPANK_STEP_SCRIPT;
    bool one_node = hpct_slurm_get(slurm, HPCT_SLURM_NODES, &nodes) && nodes == 1;
    plugin->has_key = hpct_spank_step_key_take(&plugin->key, slurm, script || one_node);
    plugin->srun_port = hpct_spank_step_port_take(slurm, HPCT_SPANK_STEP_PORT_SENT);
    plugin->end_time = hpct_spank_step_end_take(slurm);
    plugin->results_port = hpct_spank_step_port_take(slurm, HPCT_SPANK_STEP_RESULTS_SENT);
    plugin->folder = hpct_spank_step_folder_take(slurm);
    /* first, as it also keeps the tasks from each printing the same error */
    hpct_status status = hpct_spank_share_make(&plugin->share);
    if (plugin->trouble[0] != '\0')
        return;
    if (status == HPCT_OK)
        status = prepare_out(plugin, slurm, sent);
    visit v = {.plugin = plugin, .job = plugin->job, .step = plugin->step, .uid = uid, .gid = gid};
    if (status == HPCT_OK)
        status = go(make, "making the job directory", &v);
    bool known =
        hpct_slurm_get(slurm, HPCT_SLURM_LOCAL_TASKS, &tasks) && tasks > 0 && tasks <= INT16_MAX;
    if (status == HPCT_OK && !script)
        status = keep_ports(plugin, uid, (int) tasks);
    if (status != HPCT_OK)
        keep_trouble(plugin, status);
    /* without it, GPUs are assigned by rank */
    if (known)
        hpct_spank_gpu_meet_make((int) tasks, &plugin->gpus);
}

void hpct_spank_step_end(hpct_spank_plugin *plugin)
{
    visit v = {.plugin = plugin, .job = plugin->job, .step = plugin->step};
    if (plugin->on && plugin->trouble[0] == '\0')
        go(leave, "leaving the job directory", &v);
}

void hpct_spank_step_name(uint32_t step, char name[HPCT_SPANK_STEP_NAME])
{
    if (hpct_slurm_step_kind(step) == HPCT_SPANK_STEP_TASKS)
        snprintf(name, HPCT_SPANK_STEP_NAME, "%u", step);
    else
        snprintf(name, HPCT_SPANK_STEP_NAME, "batch");
}
