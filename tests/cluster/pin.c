/* A SPANK plugin for tests: binds the tasks of a node to CPUs, as Slurm's task plugins do where
 * they can (the sandbox's tasks share one machine). TEST_CPUS has a CPU for each local task: "1,0".
 */
#include <sched.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT extern const char plugin_name[], plugin_type[];
EXPORT extern const unsigned int plugin_version, spank_plugin_version;
const char plugin_name[] = "pin";
const char plugin_type[] = "spank";
const unsigned int plugin_version = SLURM_VERSION_NUMBER;
const unsigned int spank_plugin_version = 1;

EXPORT int slurm_spank_task_init(spank_t spank, int count, char *arguments[])
{
    char list[64], visible[1024], *p = list;
    uint32_t task;
    cpu_set_t one;
    (void) count;
    (void) arguments;
    if (spank_getenv(spank, "TEST_VISIBLE", visible, sizeof visible) == ESPANK_SUCCESS)
        spank_setenv(spank, "CUDA_VISIBLE_DEVICES", visible, 1);
    if (spank_getenv(spank, "TEST_CPUS", list, sizeof list) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_TASK_ID, &task) != ESPANK_SUCCESS)
        return 0;
    for (; task > 0 && p != NULL; task--)
        p = strchr(p, ',') == NULL ? NULL : strchr(p, ',') + 1;
    if (p == NULL || *p == '\0')
        return 0;
    CPU_ZERO(&one);
    CPU_SET((size_t) atoi(p), &one);
    return sched_setaffinity(0, sizeof one, &one);
}
