/* The plugin's entry points, called by Slurm; they dispatch to the file of each context. */
#include "spank/contexts.h"

#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "spank/forked.h"
#include "spank/marker.h"

#define EXPORT __attribute__((visibility("default")))

/* Slurm gives the arguments to all entry points; few need them. */
#define UNUSED __attribute__((unused))
#define ENTRY(name)                                                                                \
    EXPORT int name(spank_t UNUSED spank, int UNUSED count, char UNUSED *arguments[])

EXPORT extern const char plugin_name[], plugin_type[];
EXPORT extern const unsigned int plugin_version, spank_plugin_version;
const char plugin_name[] = HPCT_SPANK_PLUGIN_NAME;
const char plugin_type[] = "spank";
const unsigned int plugin_version = SLURM_VERSION_NUMBER;
const unsigned int spank_plugin_version = 1;

static hpct_spank_plugin plugin;

static bool in_client(void)
{
    spank_context_t context = spank_context();
    return context == S_CTX_LOCAL || context == S_CTX_ALLOCATOR;
}

/* One callback for all options; `value` is the option's index in the table. slurmstepd would only
 * log an error here, so the tasks check again. */
static int take_option(int value, const char *argument, int remote)
{
    hpct_spank_option option = (hpct_spank_option) value;
    if (!remote && (hpct_spank_option_check(option, argument) != HPCT_OK ||
                    hpct_spank_given_add(&plugin.given, option, argument) != HPCT_OK)) {
        hpct_slurm_error("%s", hpct_last_error());
        return -1;
    }
    return hpct_spank_options_set(&plugin.options, option, argument) == HPCT_OK ? 0 : -1;
}

/* SPANK takes non-const strings and keeps pointers to them. */
static char *keep(const char *text)
{
    return text == NULL ? NULL : strdup(text);
}

static void register_options(spank_t spank)
{
    for (int i = 0; i < HPCT_SPANK_NUM_OPTIONS; i++) {
        const hpct_spank_option_info *info = &hpct_spank_option_table[i];
        struct spank_option option = {
            .name = keep(info->name),
            .arginfo = keep(info->argument),
            .usage = keep(info->usage),
            .has_arg = (int) info->has_argument,
            .val = i,
            .cb = take_option,
        };
        if (spank_option_register(spank, &option) != ESPANK_SUCCESS)
            hpct_slurm_error("option --%s cannot be registered", info->name);
        free(option.name);
        free(option.arginfo);
        free(option.usage);
    }
}

/* Prolog and epilog run in a separate process, where Slurm does not call slurm_spank_init. */
static void read_settings(int count, char *arguments[])
{
    hpct_spank_settings_free(&plugin.settings);
    plugin.trouble[0] = '\0';
    plugin.status = hpct_spank_settings_read(count, arguments, &plugin.settings);
    if (plugin.status != HPCT_OK)
        snprintf(plugin.trouble, sizeof plugin.trouble, "%s", hpct_last_error());
}

ENTRY(slurm_spank_init)
{
    spank_context_t context = spank_context();
    read_settings(count, arguments);
    /* Steps without hpc-train must run all the same, so slurm_spank_init does not fail here. */
    if (plugin.trouble[0] != '\0' && context != S_CTX_REMOTE)
        hpct_slurm_error("%s", plugin.trouble);
    if (context == S_CTX_ALLOCATOR)
        hpct_spank_client_leave_job(&plugin);
    if (in_client() || context == S_CTX_REMOTE)
        register_options(spank);
    if (context == S_CTX_SLURMD)
        hpct_spank_daemon_start(&plugin);
    return 0;
}

ENTRY(slurm_spank_init_post_opt)
{
    if (spank_context() == S_CTX_REMOTE) {
        hpct_spank_step_start(&plugin, spank);
    } else if (in_client()) {
        hpct_status status = hpct_spank_client_check(&plugin, spank_context() == S_CTX_LOCAL);
        hpct_spank_given_free(&plugin.given);
        /* srun, sbatch and salloc continue when an optional plugin fails here, and a job that
         * cannot run must not be queued: so the plugin exits, as these commands do for a wrong
         * option. */
        if (status != HPCT_OK)
            exit(status);
    }
    return 0;
}

ENTRY(slurm_spank_local_user_init)
{
    if (!hpct_spank_client_check_nodes(&plugin, spank))
        exit(HPCT_ERR_USAGE); /* srun releases its allocation at exit */
    hpct_spank_client_results_start();
    return 0;
}

ENTRY(slurm_spank_task_post_fork)
{
    hpct_spank_task_forked(&plugin, spank);
    return 0;
}

ENTRY(slurm_spank_task_exit)
{
    hpct_spank_task_ended(&plugin, spank);
    return 0;
}

/* In the task's own process, while it is still root's, so that no user has stopped it before:
 * proctrack/linuxproc does not kill processes with slurmstepd's name. */
ENTRY(slurm_spank_task_init_privileged)
{
    if (plugin.on)
        hpct_spank_forked_rename();
    hpct_spank_ports_keeper_in_task(plugin.keeper);
    return 0;
}

ENTRY(slurm_spank_task_init)
{
    hpct_status status = hpct_spank_task_start(&plugin, spank);
    /* In the task's own process. A failure of an optional plugin would not keep slurmstepd from
     * starting the program: so the task exits here. */
    if (status != HPCT_OK)
        _exit(status);
    return 0;
}

ENTRY(slurm_spank_job_prolog)
{
    read_settings(count, arguments);
    hpct_spank_job_clean(&plugin, spank, false);
    return 0; /* a failure would drain the node */
}

ENTRY(slurm_spank_job_epilog)
{
    read_settings(count, arguments);
    hpct_spank_job_clean(&plugin, spank, true);
    return 0;
}

ENTRY(slurm_spank_exit)
{
    if (spank_context() == S_CTX_REMOTE)
        hpct_spank_step_end(&plugin);
    for (int i = 0; i < HPCT_SPANK_NUM_OPTIONS; i++)
        free(plugin.options.values[i]);
    hpct_spank_given_free(&plugin.given);
    hpct_spank_settings_free(&plugin.settings);
    hpct_spank_client_end_ports();
    explicit_bzero(&plugin.key, sizeof plugin.key);
    hpct_spank_share_free(plugin.share);
    hpct_spank_person_free(&plugin.user);
    free(plugin.cgroup);
    free(plugin.folder);
    hpct_spank_gpu_meet_free(plugin.gpus);
    hpct_spank_ports_keeper_end(plugin.keeper);
    plugin = (hpct_spank_plugin){0};
    return 0;
}
