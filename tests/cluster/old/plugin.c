/* A plugin of our name, as built for a Slurm of long ago; admin.t puts it where ours should be. */
#include <slurm/slurm.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT extern const char plugin_name[], plugin_type[];
EXPORT extern const unsigned int plugin_version, spank_plugin_version;
const char plugin_name[] = "spank_hpc_train";
const char plugin_type[] = "spank";
const unsigned int plugin_version = SLURM_VERSION_NUM(21, 8, 0);
const unsigned int spank_plugin_version = 1;
