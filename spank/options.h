/* spank/options.h - the user's options from command line and environment, and their combined
 * meaning. One table; independent of SPANK. */
#ifndef HPCT_SPANK_OPTIONS_H
#define HPCT_SPANK_OPTIONS_H

#include <stdbool.h>

#include "base/cluster/config.h"
#include "base/cluster/ports.h"
#include "base/cluster/roles.h"
#include "spank/gpu.h"
#include "spank/settings.h"
#include "spank/spec/entry.h"
#include "spank/spec/network.h"
#include "spank/spec/out_entry.h"
#include "spank/spec/stage_plan.h"

/* The plugin's name in Slurm's variables; plugin.c exports it. */
#define HPCT_SPANK_PLUGIN_NAME "spank_hpc_train"

typedef enum hpct_spank_option {
    HPCT_SPANK_OPTION_ON, /* --hpc-train */
    HPCT_SPANK_OPTION_ENV,
    HPCT_SPANK_OPTION_PORT,
    HPCT_SPANK_OPTION_ROLES,
    HPCT_SPANK_OPTION_STAGE,
    HPCT_SPANK_OPTION_STAGE_MODE,
    HPCT_SPANK_OPTION_STAGE_OUT,
    HPCT_SPANK_OPTION_BIND,
    HPCT_SPANK_OPTION_HIDE,
    HPCT_SPANK_OPTION_NETWORK,
    HPCT_SPANK_OPTION_REQUEUE,
    HPCT_SPANK_NUM_OPTIONS,
} hpct_spank_option;

typedef enum hpct_spank_argument {
    HPCT_SPANK_ARGUMENT_NONE = 0,
    HPCT_SPANK_ARGUMENT_NEEDED = 1,
    HPCT_SPANK_ARGUMENT_OPTIONAL = 2, /* values of getopt and SPANK */
} hpct_spank_argument;

/* The parsed values of all options. */
typedef struct hpct_spank_choices {
    bool on;
    bool off_by_user; /* disabled by --hpc-train=off or HPC_TRAIN=off */
    unsigned frameworks;
    bool has_port;
    hpct_cluster_port_range port;
    hpct_cluster_roles roles;
    hpct_spec_stage_list stage;
    hpct_spec_stage_request stage_mode;
    hpct_spec_out_list out;
    hpct_spank_gpu_bind bind;
    bool hide;
    bool has_network;
    hpct_spec_network network;
    int requeue; /* how often a job is requeued at most; 0: not */
} hpct_spank_choices;

typedef struct hpct_spank_option_info {
    const char *name;     /* "hpc-train-port" */
    const char *argument; /* as shown by --help; NULL: none */
    hpct_spank_argument has_argument;
    const char *usage;
    const char *variable; /* its environment variable */
    const char *implied;  /* value if the option is given without one */
    hpct_status (*apply)(const char *text, hpct_spank_choices *choices);
} hpct_spank_option_info;

extern const hpct_spank_option_info hpct_spank_option_table[HPCT_SPANK_NUM_OPTIONS];

/* Values from the command line; NULL: not given. */
typedef struct hpct_spank_options {
    char *values[HPCT_SPANK_NUM_OPTIONS];
} hpct_spank_options;

/* Sets a value (the last one wins). `text` is NULL for an option without value. Returns
 * HPCT_ERR_USAGE if out of memory. */
hpct_status hpct_spank_options_set(hpct_spank_options *options, hpct_spank_option option,
                                   const char *text);

/* `text`, or the value implied by the option without one. */
const char *hpct_spank_option_implied(hpct_spank_option option, const char *text);

/* The option's value that sbatch or salloc put into the job's environment; NULL: none. With sbatch
 * --export=NONE it is the only source for the batch script's step. */
const char *hpct_spank_option_forwarded(const hpct_cluster_environment *environment,
                                        hpct_spank_option option);

/* sbatch and salloc within a job, before Slurm reads them: removes the enclosing job's options from
 * this process's environment. */
void hpct_spank_options_forget_forwarded(void);

/* --hpc-train-requeue: "1" to "1000"; HPCT_ERR_USAGE. A number, so that root may parse it. */
#define HPCT_SPANK_REQUEUE_MOST 1000
hpct_status hpct_spank_requeue_parse(const char *text, int *times);

/* Checks one value; HPCT_ERR_USAGE with "--NAME: why". */
hpct_status hpct_spank_option_check(hpct_spank_option option, const char *text);

/* An option's value, else its variable's; NULL if neither. Unchecked; root must not parse it. */
const char *hpct_spank_options_text(const hpct_spank_options *options,
                                    const hpct_cluster_environment *environment,
                                    hpct_spank_option option);

/* Whether hpc-train is on: by command line, `environment`, or `by_default`. "off" overrides options
 * that imply "on". Compares with constants only, so that root may call it. */
void hpct_spank_options_switch(const hpct_spank_options *options,
                               const hpct_cluster_environment *environment, bool by_default,
                               bool *on, bool *off_by_user);

/* Parses all options. Messages name the option or variable. *out is freed with
 * hpct_spank_choices_free. */
hpct_status hpct_spank_options_resolve(const hpct_spank_options *options,
                                       const hpct_cluster_environment *environment, bool by_default,
                                       hpct_spank_choices *out);
/* The network that the user named, else the administrator's. */
const hpct_spec_network *hpct_spank_network_wish(const hpct_spank_choices *choices,
                                                 const hpct_spank_settings *settings);

void hpct_spank_choices_free(hpct_spank_choices *choices);

#endif
