/* Weak symbols of Slurm's library used by the plugin: see slurm_release.c. */
#include "spank/slurm_symbols.h"

#include <stddef.h>

const hpct_slurm_symbol hpct_slurm_symbols[] = {
    {"slurm_conf", "KillWait is taken for 5 seconds, epilogs for unlimited, nodes do not "
                   "broadcast unless asked to, and srun has any port"},
    {"slurm_conf_get_nodeaddr", "nodes are addressed by their NodeName, which must resolve"},
    {"slurm_conf_get_hostname", "nodes are addressed by their NodeName, which must resolve"},
    {"slurm_conf_get_addr", "cloud and dynamic nodes are addressed by their NodeName, which must "
                            "resolve"},
    {"slurm_signal_job_step", "a task that fails while it is prepared does not end the step's "
                              "components that are other jobs"},
    {"slurm_kill_job_step", "a task that fails while it is prepared does not end the step's tasks "
                            "on other nodes"},
    {"slurm_job_step_layout_get", "srun names a node that is late by its number in the step"},
    {"slurm_job_step_layout_free", "srun frees no memory of the step's layout"},
    {"slurm_complete_job", "a job whose results are missing when its script ends has the script's "
                           "exit code"},
    {NULL, NULL},
};
