/* A client's plugin of our name, as a hostile user would make it: takes every value of every option
 * unread, and so puts it before slurmstepd. plugin_attacks.t has srun load it. */
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdlib.h>
#include <string.h>

#include "spank/options.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT extern const char plugin_name[], plugin_type[];
EXPORT extern const unsigned int plugin_version, spank_plugin_version;
const char plugin_name[] = "spank_hpc_train";
const char plugin_type[] = "spank";
const unsigned int plugin_version = SLURM_VERSION_NUMBER;
const unsigned int spank_plugin_version = 1;

static int take(int value, const char *argument, int remote)
{
    (void) value;
    (void) argument;
    (void) remote;
    return 0;
}

EXPORT int slurm_spank_init(spank_t spank, int count, char *arguments[])
{
    (void) count;
    (void) arguments;
    for (int i = 0; i < HPCT_SPANK_NUM_OPTIONS; i++) {
        char usage[] = "anything";
        struct spank_option option = {.name = strdup(hpct_spank_option_table[i].name),
                                      .arginfo = usage,
                                      .usage = usage,
                                      .has_arg = 2,
                                      .val = i,
                                      .cb = take};
        spank_option_register(spank, &option);
        free(option.name);
    }
    return 0;
}
