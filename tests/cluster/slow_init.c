/* Another plugin, before ours in plugstack.conf, whose task_init takes three seconds: time for a
 * user to stop a task before our own begins. plugin_waits.t loads it. */
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT extern const char plugin_name[], plugin_type[];
EXPORT extern const unsigned int plugin_version, spank_plugin_version;
const char plugin_name[] = "slow_init";
const char plugin_type[] = "spank";
const unsigned int plugin_version = SLURM_VERSION_NUMBER;
const unsigned int spank_plugin_version = 1;

EXPORT int slurm_spank_task_init(spank_t spank, int count, char *arguments[])
{
    (void) spank;
    (void) count;
    (void) arguments;
    sleep(3);
    return 0;
}
