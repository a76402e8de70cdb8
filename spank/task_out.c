/* Runs in the first task of a node, as the user, before its program starts: writes the stage-out
 * record, which the helper reads. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cluster/cluster.h"
#include "base/status.h"
#include "spank/agree/results.h"
#include "spank/contexts.h"
#include "spank/spec/out_record.h"

#define BEGIN_SECONDS 5.0 /* for a busy srun; it is told again at the end */

static uint32_t number_of(const hpct_cluster_environment *environment, const char *name)
{
    return (uint32_t) hpct_cluster_environment_number(environment, name, UINT32_MAX, 0);
}

/* For a script SPANK has an item; for a step there are only variables, which sbatch within an array
 * job also passes on to a job that is not in an array. */
static hpct_spec_out_array array_of(hpct_slurm *slurm, const hpct_cluster_environment *environment,
                                    bool script)
{
    uint32_t array = 0;
    if (script && hpct_slurm_get(slurm, HPCT_SLURM_ARRAY, &array) && array == 0)
        return (hpct_spec_out_array){.is = false};
    return (hpct_spec_out_array){
        .is = environment->get(environment->context, "SLURM_ARRAY_TASK_ID") != NULL,
        .job = number_of(environment, "SLURM_ARRAY_JOB_ID"),
        .task = number_of(environment, "SLURM_ARRAY_TASK_ID"),
    };
}

static bool is_tmp(const hpct_cluster_environment *environment, const char *name)
{
    const char *value = environment->get(environment->context, name);
    return value != NULL && strcmp(value, "/tmp") == 0;
}

/* If Slurm cannot enter the step's working directory it uses /tmp, which is local to each node. */
static hpct_status check_folder(const hpct_cluster_environment *environment,
                                const hpct_spec_out_list *list, const char *cwd)
{
    if (strcmp(cwd, "/tmp") != 0 || is_tmp(environment, "PWD") ||
        is_tmp(environment, "SLURM_SUBMIT_DIR"))
        return HPCT_OK;
    for (int i = 0; i < list->count; i++) {
        if (*list->entries[i].dst != '/')
            return hpct_fail(
                HPCT_ERR_USAGE,
                "'%.200s' would be copied to the node's own /tmp, where Slurm has gone "
                "as it could not enter the step's folder: write the whole path",
                list->entries[i].dst);
    }
    return HPCT_OK;
}

/* As text: the program may remove its own key file. NULL if it cannot be read. */
static char *read_key(const char *path)
{
    hpct_auth_key *key = NULL;
    char *text = calloc(1, HPCT_AUTH_KEY_TEXT);
    if (text != NULL && hpct_auth_key_read(&key, path) == HPCT_OK)
        hpct_auth_key_to_text(text, key);
    hpct_auth_key_free(key);
    return text;
}

/* srun then misses the node's report if it does not come, and when all nodes have the key, forgets
 * it. */
static void tell_begin(const hpct_spec_out_record *record, const char *path)
{
    hpct_auth_key *key = NULL;
    if (hpct_auth_key_read(&key, path) != HPCT_OK)
        return;
    const hpct_agree_results_way way = {.address = record->srun,
                                        .key = key,
                                        .node = record->node,
                                        .nodes = record->nodes,
                                        .name = ""};
    hpct_agree_results_tell(&way, HPCT_OK, NULL, BEGIN_SECONDS);
    hpct_auth_key_free(key);
}

static hpct_status record_out(hpct_spank_plugin *plugin, hpct_slurm *slurm,
                              const hpct_cluster_environment *environment,
                              const hpct_cluster_config *config, const char *tmpdir,
                              const char *key)
{
    char step[HPCT_SPANK_STEP_NAME], address[256];
    uint32_t tasks = 0, node = 0, rank = 0,
             before = 0; /* number of tasks of the preceding components */
    hpct_spank_choices choices = {0};
    hpct_spec_out_record record = {.job = plugin->job,
                                   .step = step,
                                   .array = array_of(slurm, environment, config == NULL),
                                   .start = plugin->start};
    HPCT_TRY(hpct_spank_options_resolve(&plugin->options, environment, true, &choices));
    hpct_status status = HPCT_OK;
    if (!hpct_slurm_get(slurm, HPCT_SLURM_NODE, &node) ||
        !hpct_slurm_get(slurm, HPCT_SLURM_RANK, &rank) ||
        !hpct_slurm_get(slurm, HPCT_SLURM_LOCAL_TASKS, &tasks))
        status = hpct_fail(HPCT_ERR_INTERNAL, "Slurm does not say which task this is");
    if (config != NULL) {
        node = (uint32_t) config->node_rank;
        record.nodes = (uint32_t) config->num_nodes;
        before = (uint32_t) config->rank - rank;
    }
    if (status == HPCT_OK && config != NULL && config->num_nodes > 1)
        status = hpct_spec_out_list_check_nodes(&choices.out);
    record.cwd = plugin->folder != NULL ? strdup(plugin->folder) : getcwd(NULL, 0);
    if (status == HPCT_OK && record.cwd != NULL)
        status = check_folder(environment, &choices.out, record.cwd);
    if (status == HPCT_OK && record.cwd != NULL)
        status = hpct_spec_out_list_check_place(
            &choices.out,
            &(hpct_spec_out_names){
                .job = record.job, .array = record.array, .step = "", .node = node, .host = ""},
            record.cwd, tmpdir);
    if (status == HPCT_OK && (config == NULL || !record.array.is)) /* else srun has checked */
        status = hpct_spec_out_list_check_array(&choices.out, &record.array,
                                                config == NULL ? 0 : record.job, record.cwd);
    if (status != HPCT_OK)
        hpct_fail_within(status, "--hpc-train-stage-out");
    hpct_spank_step_name(plugin->step, step);
    record.node = hpct_cluster_node_in_job(environment, record.job, node);
    if (key != NULL && plugin->results_port != 0 &&
        hpct_spank_srun_address(environment, plugin->results_port, address, sizeof address)) {
        record.srun = strdup(address);
        record.key = read_key(key);
    }
    record.list =
        strdup(hpct_spank_options_text(&plugin->options, environment, HPCT_SPANK_OPTION_STAGE_OUT));
    record.tasks = calloc(tasks + 1, sizeof *record.tasks);
    record.umask = umask(0);
    umask(record.umask);
    if (status == HPCT_OK && (record.cwd == NULL || record.list == NULL || record.tasks == NULL))
        status = hpct_fail_memory(0);
    record.step = strdup(step);
    for (; status == HPCT_OK && record.num_tasks < tasks; record.num_tasks++) {
        hpct_slurm_task_of(slurm, record.num_tasks, &record.tasks[record.num_tasks]);
        record.tasks[record.num_tasks] += before;
    }
    if (status == HPCT_OK)
        status =
            record.step == NULL ? hpct_fail_memory(0) : hpct_spec_out_record_write(tmpdir, &record);
    if (status == HPCT_OK && record.srun != NULL)
        tell_begin(&record, key);
    hpct_spec_out_record_free(&record);
    hpct_spank_choices_free(&choices);
    return status;
}

hpct_status hpct_spank_task_record_out(hpct_spank_plugin *plugin, hpct_slurm *slurm,
                                       const hpct_cluster_environment *environment,
                                       const hpct_cluster_config *config, const char *tmpdir,
                                       const char *key)
{
    hpct_status status = HPCT_OK;
    if (plugin->out && hpct_spank_share_first(plugin->share, HPCT_SPANK_SHARE_RECORDED))
        status = record_out(plugin, slurm, environment, config, tmpdir, key);
    if (status == HPCT_OK)
        hpct_spank_share_first(plugin->share, HPCT_SPANK_SHARE_STARTED);
    return status;
}
