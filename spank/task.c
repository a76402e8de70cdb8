/* Runs in each task, as the user, just before its program starts. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cluster/tasks.h"
#include "base/cluster/variables.h"
#include "base/status.h"
#include "spank/contexts.h"
#include "spank/describe.h"
#include "spank/gpu_closest.h"
#include "spank/network.h"
#include "spank/ports_check.h"
#include "spank/slurm_release.h"
#include "spank/stage_run.h"
#include "spank/step_key.h"
#include "spank/tmpdir.h"

typedef struct task {
    hpct_spank_plugin *plugin;
    hpct_slurm *slurm;
    hpct_cluster_environment environment;
    hpct_spank_choices choices;
    hpct_cluster_config *config;
    hpct_spank_team_facts team;
    char *key; /* key file of the step */
} task;

static hpct_status read_facts(hpct_spank_plugin *plugin, hpct_slurm *slurm,
                              hpct_spank_task_facts *facts)
{
    facts->job = plugin->job;
    facts->step = plugin->step;
    if (hpct_slurm_get(slurm, HPCT_SLURM_RANK, &facts->rank) &&
        hpct_slurm_get(slurm, HPCT_SLURM_TASK, &facts->local_rank) &&
        hpct_slurm_get(slurm, HPCT_SLURM_NODE, &facts->node) &&
        hpct_slurm_get(slurm, HPCT_SLURM_LOCAL_TASKS, &facts->local_tasks) &&
        hpct_slurm_get(slurm, HPCT_SLURM_TOTAL_TASKS, &facts->total_tasks))
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_INTERNAL, "Slurm does not say which task this is");
}

static hpct_status set_end_time(const hpct_spank_plugin *plugin, hpct_slurm *slurm)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, plugin->end_time);
    return hpct_slurm_set(slurm, "HPC_TRAIN_END_TIME", plugin->end_time > 0 ? text : NULL);
}

static hpct_status set_environment(hpct_spank_plugin *plugin, hpct_slurm *slurm,
                                   const hpct_spank_choices *choices,
                                   const hpct_cluster_environment *environment,
                                   const hpct_cluster_config *config)
{
    char *json = NULL, *file = NULL;
    const char *dropped = NULL;
    char name[64];
    snprintf(name, sizeof name, "config.%u.%d.json", plugin->step, config->rank);
    hpct_status status = hpct_cluster_config_to_json(config, &json);
    if (status == HPCT_OK)
        status = hpct_spank_private_write(config->tmpdir, name, json, &file);
    if (status == HPCT_OK)
        status = hpct_cluster_variables_emit(config, choices->frameworks, json, file,
                                             hpct_slurm_set, slurm, &dropped);
    if (status == HPCT_OK)
        status =
            hpct_spank_network_emit(hpct_spank_share_network(plugin->share), choices->frameworks,
                                    config->node_rank == 0, environment, hpct_slurm_set, slurm);
    if (status == HPCT_OK)
        status = set_end_time(plugin, slurm);
    if (status == HPCT_OK && choices->hide && config->gpu != NULL)
        status = hpct_slurm_set(slurm, "CUDA_VISIBLE_DEVICES", config->gpu);
    if (status == HPCT_OK && dropped != NULL && config->rank == 0)
        hpct_slurm_error("warning: %s is not set: for %d tasks it would be longer than a variable "
                         "can be; read the file $HPC_TRAIN_CONFIG_FILE instead",
                         dropped, config->size);
    free(json);
    free(file);
    return status;
}

/* Without a key, remove the variable inherited from the enclosing script. */
static hpct_status leave_key(hpct_spank_plugin *plugin, hpct_slurm *slurm, const char *tmpdir,
                             uint32_t rank, char **path)
{
    hpct_status status = HPCT_OK;
    if (plugin->has_key)
        status = hpct_spank_step_key_write(&plugin->key, tmpdir, plugin->step, rank, path);
    explicit_bzero(&plugin->key, sizeof plugin->key);
    return status == HPCT_OK ? hpct_slurm_set(slurm, HPCT_AUTH_KEY_VARIABLE, *path) : status;
}

/* On failure the config keeps the GPU by rank. */
static void bind_closest(hpct_spank_plugin *plugin, const hpct_cluster_environment *environment,
                         const hpct_spank_choices *choices, int local_rank,
                         hpct_cluster_config *config)
{
    const char *visible = environment->get(environment->context, "CUDA_VISIBLE_DEVICES");
    const char *node = environment->get(environment->context, "SLURMD_NODENAME");
    int place = -1;
    if (choices->bind.kind != HPCT_SPANK_GPU_BIND_CLOSEST || plugin->gpus == NULL ||
        local_rank >= hpct_spank_gpu_meet_tasks(plugin->gpus))
        return;
    hpct_status status = hpct_spank_gpu_closest_place(plugin->gpus, local_rank, visible,
                                                      plugin->settings.gpu_helper, node, &place);
    if (status != HPCT_OK && choices->bind.asked)
        hpct_slurm_error("warning: --hpc-train-bind=closest: %s; GPUs are given out by local rank",
                         hpct_last_error());
    else if (status != HPCT_OK && plugin->settings.verbose)
        hpct_slurm_info("GPUs are given out by local rank: %s", hpct_last_error());
    char *gpu = place < 0 ? NULL : hpct_spank_gpu_entry(visible, place);
    if (gpu == NULL)
        return;
    free(config->gpu);
    config->gpu = gpu;
}

static int own_port(const hpct_cluster_config *config)
{
    return atoi(strrchr(config->addresses[config->rank], ':') + 1);
}

static hpct_status check_own_port(const task *t)
{
    return hpct_spank_port_check(own_port(t->config), t->config->nodes[t->config->node_rank].name);
}

static hpct_status stage(const task *t)
{
    const hpct_spank_options *options = &t->plugin->options;
    const hpct_spank_stage_run run = {
        .settings = &t->plugin->settings,
        .to = t->config->tmpdir,
        .list = hpct_spank_options_text(options, &t->environment, HPCT_SPANK_OPTION_STAGE),
        .mode = hpct_spank_options_text(options, &t->environment, HPCT_SPANK_OPTION_STAGE_MODE),
        .hosts = t->team.hosts,
        .node = t->config->node_rank,
        .job = t->config->job,
        .key = t->key,
        .memory = hpct_slurm_memory(t->slurm),
        .stall_seconds = HPCT_SPANK_STALL_SECONDS,
    };
    if (t->choices.stage.count == 0)
        return HPCT_OK;
    return hpct_spank_stage_run_once(&run, t->plugin->share, t->config->local_rank);
}

static hpct_status describe(task *t, const char *tmpdir)
{
    hpct_spank_ports_choosing choosing = {
        .plugin = t->plugin,
        .environment = &t->environment,
        .wish = hpct_spank_network_wish(&t->choices, &t->plugin->settings)};
    hpct_spank_task_facts facts = {.tmpdir = tmpdir,
                                   .address_of = hpct_slurm_address,
                                   .trusted = t->plugin->has_key || hpct_slurm_uses_munge(),
                                   .choose = hpct_spank_ports_choose,
                                   .context = &choosing,
                                   .network = hpct_spank_share_network(t->plugin->share)};
    HPCT_TRY(read_facts(t->plugin, t->slurm, &facts));
    choosing.local_rank = (int) facts.local_rank;
    HPCT_TRY(hpct_spank_task_describe(&facts, &t->choices, &t->plugin->settings, &t->environment,
                                      &t->team, &t->config));
    if (own_port(t->config) != t->team.port)
        HPCT_TRY(check_own_port(t));
    bind_closest(t->plugin, &t->environment, &t->choices, choosing.local_rank, t->config);
    return HPCT_OK;
}

static hpct_status prepare_task(task *t, const char *tmpdir)
{
    hpct_spank_plugin *plugin = t->plugin;
    HPCT_TRY(hpct_spank_options_resolve(&plugin->options, &t->environment,
                                        plugin->settings.on_by_default, &t->choices));
    HPCT_TRY(describe(t, tmpdir));
    HPCT_TRY(leave_key(plugin, t->slurm, tmpdir, (uint32_t) t->config->rank, &t->key));
    HPCT_TRY(stage(t));
    /* another task of the node used it for staging when this task found it free */
    if (own_port(t->config) == t->team.port)
        HPCT_TRY(check_own_port(t));
    HPCT_TRY(set_environment(plugin, t->slurm, &t->choices, &t->environment, t->config));
    return hpct_spank_task_record_out(plugin, t->slurm, &t->environment, t->config, tmpdir, t->key);
}

static hpct_status prepare_script(task *t, const char *tmpdir)
{
    HPCT_TRY(hpct_slurm_set(t->slurm, "SLURM_TMPDIR", tmpdir));
    HPCT_TRY(hpct_slurm_set(t->slurm, "TMPDIR", tmpdir));
    HPCT_TRY(leave_key(t->plugin, t->slurm, tmpdir, 0, &t->key));
    return hpct_spank_task_record_out(t->plugin, t->slurm, &t->environment, NULL, tmpdir, NULL);
}

static hpct_status prepare(hpct_spank_plugin *plugin, hpct_slurm *slurm, const char *tmpdir)
{
    task t = {.plugin = plugin, .slurm = slurm, .environment = hpct_slurm_environment(slurm)};
    if (plugin->trouble[0] != '\0')
        return hpct_fail(plugin->status, "%s", plugin->trouble);
    HPCT_TRY(hpct_spank_tmpdir_check(tmpdir));
    hpct_status status = hpct_slurm_step_kind(plugin->step) == HPCT_SPANK_STEP_SCRIPT
                             ? prepare_script(&t, tmpdir)
                             : prepare_task(&t, tmpdir);
    free(t.key);
    free(t.team.hosts);
    hpct_cluster_config_free(t.config);
    hpct_spank_choices_free(&t.choices);
    return status;
}

/* One message per node is enough. slurmstepd sees this task end and ends the step elsewhere: if a
 * task did that itself, it would be killed with the others before its own status is known. */
static void report(hpct_spank_plugin *plugin, hpct_slurm *slurm)
{
    hpct_cluster_environment environment = hpct_slurm_environment(slurm);
    const char *node = environment.get(environment.context, "SLURMD_NODENAME");
    if (plugin->share != NULL && !hpct_spank_share_first(plugin->share, HPCT_SPANK_SHARE_REPORTED))
        return;
    hpct_slurm_error("%s: %s", node == NULL ? "?" : node, hpct_last_error());
}

static void leave(int number)
{
    (void) number;
    _exit(HPCT_ERR_PEER);
}

static volatile sig_atomic_t gone;

static void note_gone(int number)
{
    (void) number;
    gone = 1;
}

/* From here on the signal is pending until the program checks it (agent/comm/gone.h). Rank 0, which
 * may have a terminal and use the signal itself, is not notified. The handler stays until exec:
 * removing it would discard the pending signal. */
static void hold_gone(hpct_slurm *slurm)
{
    uint32_t rank = 0;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, HPCT_CLUSTER_GONE_SIGNAL);
    if (hpct_slurm_get(slurm, HPCT_SLURM_RANK, &rank) && rank != 0)
        sigprocmask(SIG_BLOCK, &signals, NULL);
}

hpct_status hpct_spank_task_start(hpct_spank_plugin *plugin, hpct_slurm *slurm)
{
    if (!plugin->on)
        return HPCT_OK;
    /* If slurmstepd is killed, nobody would supervise or clean up after the task. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(HPCT_SPANK_TASK_SIGNAL, leave);
    signal(HPCT_CLUSTER_GONE_SIGNAL, note_gone);
    pid_t parent = getppid(); /* 0: the parent is in another pid namespace */
    if (parent != 0 && parent != plugin->daemon)
        return hpct_fail(HPCT_ERR_INTERNAL, "slurmstepd has ended");
    char *tmpdir = hpct_spank_tmpdir_path(plugin->settings.tmpdir, plugin->job);
    hpct_status status = tmpdir == NULL ? hpct_fail_memory(0) : prepare(plugin, slurm, tmpdir);
    free(tmpdir);
    signal(HPCT_SPANK_TASK_SIGNAL, SIG_DFL);
    hold_gone(slurm);
    if (status == HPCT_OK)
        status = hpct_slurm_set(slurm, HPCT_CLUSTER_GONE_VARIABLE, gone ? "1" : NULL);
    if (status != HPCT_OK)
        report(plugin, slurm);
    return status;
}
