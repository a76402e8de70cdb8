/* Runs in srun, sbatch and salloc. */
#include <config.h>

#include "base/status.h"
#include "spank/contexts.h"

#include "base/cluster/variables.h"
#include "spank/arguments.h"
#include "spank/defaults.h"
#include "spank/network.h"
#include "spank/nodes_asked.h"
#include "spank/script_lines.h"
#include "spank/slurm_release.h"
#include "spank/step_key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Checks destinations against the number of nodes before the job is queued. srun knows its nodes
 * later, but never those of other components of a heterogeneous step. */
static hpct_status check_nodes(const hpct_spank_choices *choices, bool srun)
{
    char *const *arguments = hpct_spank_arguments_here();
    if (choices->out.count == 0 || (srun ? !hpct_spank_nodes_asked_several(arguments) &&
                                               !hpct_spank_nodes_asked_parts(arguments)
                                         : hpct_spank_nodes_asked_one(arguments)))
        return HPCT_OK;
    hpct_status status = hpct_spec_out_list_check_nodes(&choices->out);
    if (status == HPCT_OK)
        return HPCT_OK;
    hpct_fail_within(status, "--hpc-train-stage-out");
    if (srun)
        return status;
    char text[1024];
    snprintf(text, sizeof text, "%s", hpct_last_error());
    return hpct_fail(status, "%s; or ask for one node, with -N1", text);
}

static uint32_t number_of(const char *variable)
{
    return (uint32_t) hpct_cluster_environment_number(&hpct_cluster_environment_own, variable,
                                                      UINT32_MAX, 0);
}

/* All jobs of an array share one script and one list. If it is unknown here whether this is an
 * array, the script's own step checks. */
static hpct_status check_array(const hpct_spank_choices *choices, bool srun)
{
    bool noted = false;
    bool in_job = getenv("SLURM_JOB_ID") != NULL; /* else variables of arrays are stale */
    int said = srun ? in_job && getenv("SLURM_ARRAY_TASK_ID") != NULL
                    : hpct_spank_nodes_asked_array(hpct_spank_arguments_here());
    if (srun && said && hpct_spank_client_script_array(&noted))
        said = noted;
    if (!srun && getenv("SBATCH_ARRAY_INX") != NULL)
        said = 1;
    if (choices->out.count == 0 || said < 0)
        return HPCT_OK;
    const hpct_spec_out_array array = {.is = said == 1,
                                       .task = number_of("SLURM_ARRAY_TASK_ID"),
                                       .first = number_of("SLURM_ARRAY_TASK_MIN"),
                                       .last = number_of("SLURM_ARRAY_TASK_MAX"),
                                       .count = number_of("SLURM_ARRAY_TASK_COUNT")};
    char *cwd = getcwd(NULL, 0);
    hpct_status status = hpct_spec_out_list_check_array(&choices->out, &array,
                                                        srun ? number_of("SLURM_JOB_ID") : 0, cwd);
    free(cwd);
    return status == HPCT_OK ? HPCT_OK : hpct_fail_within(status, "--hpc-train-stage-out");
}

/* The script's slurmstepd does not see options of srun. */
static hpct_status check_requeue(const hpct_spank_plugin *plugin)
{
    if (plugin->options.values[HPCT_SPANK_OPTION_REQUEUE] == NULL ||
        hpct_spank_option_forwarded(&hpct_cluster_environment_own, HPCT_SPANK_OPTION_REQUEUE) !=
            NULL)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_USAGE,
                     "--hpc-train-requeue is for batch jobs: give it to sbatch; the "
                     "job is requeued when its script ends with 75");
}

/* Without it Slurm's own variable is used, which Slurm has from 23.02 on. */
static void send_end_time(uint32_t job)
{
    hpct_spank_step_end_send(job > 0 ? hpct_slurm_end_time(job) : 0);
}

/* In a step over several components srun shows the plugin only the first one's nodes, at a time
 * when the environment of the other components is being built. */
static bool may_have_components(void)
{
    return hpct_spank_nodes_asked_parts(hpct_spank_arguments_here()) ||
           getenv("SLURM_HET_SIZE") != NULL;
}

static bool is_job_folder(const char *path, const char *parent)
{
    size_t size = strlen(parent);
    return strncmp(path, parent, size) == 0 && path[size] == '/';
}

static hpct_status unset(void *context, const char *name, const char *value)
{
    (void) context;
    (void) value;
    unsetenv(name);
    return HPCT_OK;
}

/* The same as slurmstepd does for a step that is switched off. Variables set by the user are
 * kept. */
void hpct_spank_client_leave_job(const hpct_spank_plugin *plugin)
{
    bool inherited = getenv("HPC_TRAIN_CONFIG_FILE") != NULL;
    if (getenv("SLURM_JOB_ID") == NULL)
        return;
    hpct_spank_options_forget_forwarded();
    for (int i = 0; plugin->settings.tmpdir != NULL && hpct_cluster_variable_names[i] != NULL;
         i++) {
        const char *name = hpct_cluster_variable_names[i], *value = getenv(name);
        bool folder = strcmp(name, "TMPDIR") == 0 || strcmp(name, "SLURM_TMPDIR") == 0;
        if (value != NULL && (folder ? is_job_folder(value, plugin->settings.tmpdir) : inherited))
            unsetenv(name);
    }
    hpct_spank_network_forget(&hpct_cluster_environment_own, unset, NULL);
}

static hpct_status check_all(hpct_spank_plugin *plugin, bool srun, hpct_spank_choices *choices)
{
    const hpct_cluster_environment *own = &hpct_cluster_environment_own;
    HPCT_TRY(hpct_spank_given_check(&plugin->given, hpct_spank_arguments_here(), own, !srun));
    if (!srun)
        HPCT_TRY(hpct_spank_script_lines_check(hpct_spank_arguments_here()));
    HPCT_TRY(
        hpct_spank_options_resolve(&plugin->options, own, plugin->settings.on_by_default, choices));
    if (srun)
        HPCT_TRY(check_requeue(plugin));
    if (choices->on) {
        HPCT_TRY(check_nodes(choices, srun));
        HPCT_TRY(check_array(choices, srun));
    }
    HPCT_TRY(hpct_spank_defaults_check(environ));
    HPCT_TRY(hpct_spank_defaults_send());
    return choices->on && srun ? hpct_spank_step_key_send(&plugin->key) : HPCT_OK;
}

hpct_status hpct_spank_client_check(hpct_spank_plugin *plugin, bool srun)
{
    hpct_spank_choices choices = {0};
    hpct_status status = check_all(plugin, srun, &choices);
    if (status != HPCT_OK) {
        hpct_slurm_error("%s", hpct_last_error());
        hpct_spank_choices_free(&choices);
        return status;
    }
    bool usable = !choices.on || plugin->trouble[0] == '\0';
    if (choices.on && usable && srun && may_have_components()) {
        hpct_spank_client_serve_ports(plugin, &choices, 0, 0, 0);
        send_end_time((uint32_t) number_of("SLURM_JOB_ID"));
    }
    if (choices.on && usable && srun)
        hpct_spank_client_hear_results(plugin, &choices);
    hpct_spank_choices_free(&choices);
    if (!usable)
        hpct_slurm_error("it was asked for, but cannot be used until the administrator has mended "
                         "this");
    return usable ? HPCT_OK : HPCT_ERR_CONFIG;
}

bool hpct_spank_client_check_nodes(hpct_spank_plugin *plugin, hpct_slurm *slurm)
{
    uint32_t nodes = 0, job = 0, step = 0;
    hpct_spank_choices choices = {0};
    hpct_status status = HPCT_OK;
    if (hpct_spank_options_resolve(&plugin->options, &hpct_cluster_environment_own,
                                   plugin->settings.on_by_default, &choices) != HPCT_OK)
        return true;
    bool parts = may_have_components();
    bool known = choices.on && hpct_slurm_get(slurm, HPCT_SLURM_JOB, &job) &&
                 hpct_slurm_get(slurm, HPCT_SLURM_STEP, &step) &&
                 hpct_slurm_get(slurm, HPCT_SLURM_NODES, &nodes);
    if (known && !parts)
        send_end_time(job);
    if (known && nodes > 1)
        status = hpct_spec_out_list_check_nodes(&choices.out);
    if (status != HPCT_OK) {
        hpct_fail_within(status, "--hpc-train-stage-out");
        hpct_slurm_error("%s", hpct_last_error());
    } else if (known && !parts) {
        hpct_spank_client_serve_ports(plugin, &choices, job, step, nodes);
    }
    hpct_spank_choices_free(&choices);
    return status == HPCT_OK;
}
