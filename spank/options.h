/* spank/options.h - what a user may say, on the command line or in the environment, and what it
 * means once both are taken together. One table; knows nothing of SPANK. */
#ifndef HPCT_SPANK_OPTIONS_H
#define HPCT_SPANK_OPTIONS_H

#include <stdbool.h>

#include "agent/cluster/config.h"
#include "agent/cluster/ports.h"
#include "agent/cluster/roles.h"
#include "spank/gpu.h"
#include "spank/stage/entry.h"
#include "spank/stage/mode.h"
#include "spank/stage/out_entry.h"

/* As Slurm names the plugin in variables; plugin.c exports it. */
#define HPCT_PLUGIN_NAME "spank_hpc_train"

typedef enum hpct_option {
    HPCT_OPTION_ON, /* --hpc-train */
    HPCT_OPTION_ENV,
    HPCT_OPTION_PORT,
    HPCT_OPTION_ROLES,
    HPCT_OPTION_STAGE,
    HPCT_OPTION_STAGE_MODE,
    HPCT_OPTION_STAGE_OUT,
    HPCT_OPTION_BIND,
    HPCT_OPTION_HIDE,
    HPCT_NUM_OPTIONS,
} hpct_option;

typedef enum hpct_argument {
    HPCT_ARGUMENT_NONE = 0,
    HPCT_ARGUMENT_NEEDED = 1,
    HPCT_ARGUMENT_OPTIONAL = 2, /* as getopt and SPANK count them */
} hpct_argument;

/* What every value together means. */
typedef struct hpct_choices {
    bool on;
    bool off_by_user; /* switched off by --hpc-train=off or HPC_TRAIN=off */
    unsigned frameworks;
    bool has_port;
    hpct_port_range port;
    hpct_roles roles;
    hpct_stage_list stage;
    hpct_stage_mode stage_mode;
    hpct_out_list out;
    hpct_gpu_bind bind;
    bool hide;
} hpct_choices;

typedef struct hpct_option_info {
    const char *name;     /* "hpc-train-port" */
    const char *argument; /* as --help shows it, NULL for none */
    hpct_argument has_argument;
    const char *usage;
    const char *variable; /* its environment default */
    const char *implied;  /* what the option means without a value */
    hpct_status (*apply)(const char *text, hpct_choices *choices);
} hpct_option_info;

extern const hpct_option_info hpct_option_table[HPCT_NUM_OPTIONS];

/* The values as given on the command line; NULL: not given. */
typedef struct hpct_options {
    char *values[HPCT_NUM_OPTIONS];
} hpct_options;

/* Keeps a value (the last one wins; may be called again with the same). `text` is NULL when the
 * option stood alone. HPCT_ERR_USAGE when out of memory. */
hpct_status hpct_options_set(hpct_options *options, hpct_option option, const char *text);

/* What a value stands for: `text`, or what the option means without one. */
const char *hpct_option_implied(hpct_option option, const char *text);

/* The value that sbatch or salloc put into the job's environment for the option; NULL: none. With
 * sbatch --export=NONE it is all that the batch script's step is told of it. */
const char *hpct_option_forwarded(const hpct_environment *environment, hpct_option option);

/* Checks one value; HPCT_ERR_USAGE with "--NAME: why". */
hpct_status hpct_option_check(hpct_option option, const char *text);

/* What was said for an option: its value, else its variable's; NULL when nothing was. Not checked,
 * and not to be looked into by root. */
const char *hpct_options_text(const hpct_options *options, const hpct_environment *environment,
                              hpct_option option);

/* Only whether hpc-train is on: the command line's values, then `environment`'s, then `by_default`.
 * "off" wins over options that would imply "on". Looks at nothing else, so that root may call it.
 */
void hpct_options_switch(const hpct_options *options, const hpct_environment *environment,
                         bool by_default, bool *on, bool *off_by_user);

/* Everything. A message names the option or the variable. *out is freed with hpct_choices_free. */
hpct_status hpct_options_resolve(const hpct_options *options, const hpct_environment *environment,
                                 bool by_default, hpct_choices *out);
void hpct_choices_free(hpct_choices *choices);

#endif
