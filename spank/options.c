/* The option table. */
#include "spank/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cluster/variables.h"
#include "base/number.h"
#include "base/status.h"

static hpct_status read_switch(const char *text, bool *on)
{
    if (strcmp(text, "on") != 0 && strcmp(text, "off") != 0)
        return hpct_fail(HPCT_ERR_USAGE, "'%.100s' is neither on nor off", text);
    *on = strcmp(text, "on") == 0;
    return HPCT_OK;
}

static hpct_status apply_on(const char *text, hpct_spank_choices *choices)
{
    return read_switch(text, &choices->on);
}

static hpct_status apply_env(const char *text, hpct_spank_choices *choices)
{
    return hpct_cluster_frameworks_parse(text, &choices->frameworks);
}

static hpct_status apply_port(const char *text, hpct_spank_choices *choices)
{
    choices->has_port = true;
    return hpct_cluster_port_range_parse(text, &choices->port);
}

static hpct_status apply_roles(const char *text, hpct_spank_choices *choices)
{
    return hpct_cluster_roles_parse(text, &choices->roles);
}

static hpct_status apply_stage(const char *text, hpct_spank_choices *choices)
{
    hpct_spec_stage_list_free(&choices->stage);
    return hpct_spec_stage_list_parse(text, &choices->stage);
}

static hpct_status apply_stage_mode(const char *text, hpct_spank_choices *choices)
{
    return hpct_spec_stage_request_parse(text, &choices->stage_mode);
}

static hpct_status apply_stage_out(const char *text, hpct_spank_choices *choices)
{
    hpct_spec_out_list_free(&choices->out);
    return hpct_spec_out_list_parse(text, &choices->out);
}

static hpct_status apply_bind(const char *text, hpct_spank_choices *choices)
{
    return hpct_spank_gpu_bind_parse(text, &choices->bind);
}

static hpct_status apply_hide(const char *text, hpct_spank_choices *choices)
{
    return read_switch(text, &choices->hide);
}

static hpct_status apply_network(const char *text, hpct_spank_choices *choices)
{
    choices->has_network = true;
    return hpct_spec_network_parse(text, &choices->network);
}

hpct_status hpct_spank_requeue_parse(const char *text, int *times)
{
    long number;
    if (!hpct_number_parse(text, 1, HPCT_SPANK_REQUEUE_MOST, &number))
        return hpct_fail(HPCT_ERR_USAGE, "'%.100s' is not a number from 1 to %d", text,
                         HPCT_SPANK_REQUEUE_MOST);
    *times = (int) number;
    return HPCT_OK;
}

static hpct_status apply_requeue(const char *text, hpct_spank_choices *choices)
{
    return hpct_spank_requeue_parse(text, &choices->requeue);
}

const hpct_spank_option_info hpct_spank_option_table[HPCT_SPANK_NUM_OPTIONS] = {
    [HPCT_SPANK_OPTION_ON] =
        {"hpc-train", "on|off", HPCT_SPANK_ARGUMENT_OPTIONAL,
         "prepare the tasks for distributed training; every other hpc-train option "
         "implies it",
         "HPC_TRAIN", "on", apply_on},
    [HPCT_SPANK_OPTION_ENV] =
        {"hpc-train-env", "LIST", HPCT_SPANK_ARGUMENT_NEEDED,
         "set the variables of tf, torch, jax, mpi, all (the default) or none", "HPC_TRAIN_ENV",
         NULL, apply_env},
    [HPCT_SPANK_OPTION_PORT] = {"hpc-train-port", "PORT|LO-HI", HPCT_SPANK_ARGUMENT_NEEDED,
                                "where the tasks listen: from PORT on, or within LO-HI",
                                "HPC_TRAIN_PORT", NULL, apply_port},
    [HPCT_SPANK_OPTION_ROLES] = {"hpc-train-roles", "ROLE[:N],...", HPCT_SPANK_ARGUMENT_NEEDED,
                                 "by rank, who is worker, ps, chief and evaluator, such as "
                                 "ps:2,worker:6,chief",
                                 "HPC_TRAIN_ROLES", NULL, apply_roles},
    [HPCT_SPANK_OPTION_STAGE] =
        {"hpc-train-stage", "SRC[:DST],...", HPCT_SPANK_ARGUMENT_NEEDED,
         "copy files or folders to $SLURM_TMPDIR/DST on every node before the "
         "tasks start",
         "HPC_TRAIN_STAGE", NULL, apply_stage},
    [HPCT_SPANK_OPTION_STAGE_MODE] =
        {"hpc-train-stage-mode", "auto|copy|broadcast|extract", HPCT_SPANK_ARGUMENT_NEEDED,
         "each node reads the data, or one node reads and sends it to the "
         "others, or archives are unpacked on the way",
         "HPC_TRAIN_STAGE_MODE", NULL, apply_stage_mode},
    [HPCT_SPANK_OPTION_STAGE_OUT] =
        {"hpc-train-stage-out", "SRC:DST,...", HPCT_SPANK_ARGUMENT_NEEDED,
         "copy $SLURM_TMPDIR/SRC to DST when the node's last task has ended, "
         "in whatever way; %j %s %n %N %t in names as for --output",
         "HPC_TRAIN_STAGE_OUT", NULL, apply_stage_out},
    [HPCT_SPANK_OPTION_BIND] = {"hpc-train-bind", "closest|rank|map:I,J,...|none",
                                HPCT_SPANK_ARGUMENT_NEEDED,
                                "which of the step's GPUs a task calls its own", "HPC_TRAIN_BIND",
                                NULL, apply_bind},
    [HPCT_SPANK_OPTION_HIDE] = {"hpc-train-hide", NULL, HPCT_SPANK_ARGUMENT_NONE,
                                "show each task only its own GPU", "HPC_TRAIN_HIDE", "on",
                                apply_hide},
    [HPCT_SPANK_OPTION_NETWORK] =
        {"hpc-train-network", "auto|INTERFACE,...|ADDRESS/BITS,...|off", HPCT_SPANK_ARGUMENT_NEEDED,
         "the network for gloo, NCCL, MPI, TensorFlow and hpc-train itself; auto changes only what "
         "would fail",
         "HPC_TRAIN_NETWORK", NULL, apply_network},
    [HPCT_SPANK_OPTION_REQUEUE] = {"hpc-train-requeue", "N", HPCT_SPANK_ARGUMENT_OPTIONAL,
                                   "sbatch: requeue the job when its script ends with 75, to be "
                                   "continued, up to N times (10)",
                                   "HPC_TRAIN_REQUEUE", "10", apply_requeue},
};

/* For an option without a value Slurm forwards "(null)" to a job's steps, as printf prints a null
 * pointer. */
const char *hpct_spank_option_implied(hpct_spank_option option, const char *text)
{
    const char *implied = hpct_spank_option_table[option].implied;
    if (text != NULL && *text != '\0' && (implied == NULL || strcmp(text, "(null)") != 0))
        return text;
    return implied != NULL ? implied : "";
}

/* "SLURM_SPANK_", the prefix of variables in the job's environment, then the name of the option by
 * Slurm's spank.c, in which all characters but letters, digits and the underscore are replaced. */
#define OF_A_JOB "SLURM_SPANK_"

typedef char forwarded_name[128];

static const char *name_forwarded(hpct_spank_option option, forwarded_name name)
{
    snprintf(name, sizeof(forwarded_name),
             OF_A_JOB "_SLURM_SPANK_OPTION_" HPCT_SPANK_PLUGIN_NAME "_%s",
             hpct_spank_option_table[option].name);
    for (char *p = name; *p != '\0'; p++)
        *p = *p == '-' ? '_' : *p;
    return name;
}

const char *hpct_spank_option_forwarded(const hpct_cluster_environment *environment,
                                        hpct_spank_option option)
{
    forwarded_name name;
    return environment->get(environment->context, name_forwarded(option, name));
}

void hpct_spank_options_forget_forwarded(void)
{
    forwarded_name name;
    for (int i = 0; i < HPCT_SPANK_NUM_OPTIONS; i++) {
        unsetenv(name_forwarded((hpct_spank_option) i, name));
        unsetenv(name + strlen(OF_A_JOB));
    }
}

hpct_status hpct_spank_options_set(hpct_spank_options *options, hpct_spank_option option,
                                   const char *text)
{
    text = hpct_spank_option_implied(option, text);
    char *copy = strdup(text);
    if (copy == NULL)
        return hpct_fail_memory(strlen(text) + 1);
    free(options->values[option]);
    options->values[option] = copy;
    return HPCT_OK;
}

static hpct_status apply(hpct_spank_option option, const char *text, bool from_variable,
                         hpct_spank_choices *choices)
{
    const hpct_spank_option_info *info = &hpct_spank_option_table[option];
    hpct_status status = info->apply(text, choices);
    if (status == HPCT_OK)
        return HPCT_OK;
    char prefix[64] = "--";
    if (from_variable)
        prefix[0] = '\0';
    strcat(prefix, from_variable ? info->variable : info->name);
    return hpct_fail_within(status, prefix);
}

hpct_status hpct_spank_option_check(hpct_spank_option option, const char *text)
{
    hpct_spank_choices scratch = {0};
    hpct_status status = apply(option, hpct_spank_option_implied(option, text), false, &scratch);
    hpct_spank_choices_free(&scratch);
    return status;
}

/* Value of the option's environment variable; an empty variable counts as not set. */
static const char *default_of(const hpct_cluster_environment *environment, hpct_spank_option option)
{
    const char *text =
        environment->get(environment->context, hpct_spank_option_table[option].variable);
    return text != NULL && *text != '\0' ? text : NULL;
}

const char *hpct_spank_options_text(const hpct_spank_options *options,
                                    const hpct_cluster_environment *environment,
                                    hpct_spank_option option)
{
    const char *given = options->values[option];
    return given != NULL ? given : default_of(environment, option);
}

void hpct_spank_options_switch(const hpct_spank_options *options,
                               const hpct_cluster_environment *environment, bool by_default,
                               bool *on, bool *off_by_user)
{
    const char *said = options->values[HPCT_SPANK_OPTION_ON];
    *on = by_default;
    *off_by_user = false;
    for (int i = HPCT_SPANK_OPTION_ON + 1; i < HPCT_SPANK_NUM_OPTIONS; i++) {
        if (options->values[i] != NULL || default_of(environment, (hpct_spank_option) i) != NULL)
            *on = true;
    }
    if (said == NULL) {
        /* HPC_TRAIN=off is only a default: options on the command line override it. */
        said = default_of(environment, HPCT_SPANK_OPTION_ON);
        for (int i = HPCT_SPANK_OPTION_ON + 1; i < HPCT_SPANK_NUM_OPTIONS; i++)
            said = options->values[i] != NULL ? "on" : said;
    }
    if (said != NULL) {
        *off_by_user = strcmp(said, "off") == 0;
        *on = !*off_by_user;
    }
}

hpct_status hpct_spank_options_resolve(const hpct_spank_options *options,
                                       const hpct_cluster_environment *environment, bool by_default,
                                       hpct_spank_choices *out)
{
    hpct_spank_choices choices = {.frameworks = HPCT_CLUSTER_FRAMEWORK_ALL};
    for (int i = 0; i < HPCT_SPANK_NUM_OPTIONS; i++) {
        hpct_spank_option option = (hpct_spank_option) i;
        const char *text = options->values[i];
        bool from_variable = text == NULL;
        if (from_variable)
            text = default_of(environment, option);
        hpct_status status = text == NULL ? HPCT_OK : apply(option, text, from_variable, &choices);
        if (status != HPCT_OK) {
            hpct_spank_choices_free(&choices);
            return status;
        }
    }
    if (choices.hide && choices.bind.kind == HPCT_SPANK_GPU_BIND_NONE) {
        hpct_spank_choices_free(&choices);
        return hpct_fail(HPCT_ERR_USAGE,
                         "--hpc-train-hide shows a task only its own GPU, and with "
                         "--hpc-train-bind=none it has none: leave out one of the two");
    }
    hpct_spank_options_switch(options, environment, by_default, &choices.on, &choices.off_by_user);
    *out = choices;
    return HPCT_OK;
}

const hpct_spec_network *hpct_spank_network_wish(const hpct_spank_choices *choices,
                                                 const hpct_spank_settings *settings)
{
    return choices->has_network ? &choices->network : &settings->network;
}

void hpct_spank_choices_free(hpct_spank_choices *choices)
{
    hpct_spec_stage_list_free(&choices->stage);
    hpct_spec_out_list_free(&choices->out);
    hpct_spank_gpu_bind_free(&choices->bind);
}
