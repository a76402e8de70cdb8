/* In the prolog and epilog of a job on a node, as root. */
#include "base/status.h"
#include "spank/contexts.h"
#include "spank/tmpdir.h"

void hpct_job_clean(hpct_plugin *plugin, hpct_slurm *slurm)
{
    uint32_t job = 0;
    /* with a wrong argument, which other could be trusted? */
    if (plugin->trouble[0] != '\0') {
        hpct_slurm_error("%s", plugin->trouble);
        return;
    }
    if (!hpct_slurm_get(slurm, HPCT_SLURM_JOB, &job))
        return;
    if (hpct_tmpdir_remove(plugin->settings.tmpdir, job) != HPCT_OK)
        hpct_slurm_error("%s", hpct_last_error());
}

void hpct_job_sweep(hpct_plugin *plugin)
{
    if (plugin->trouble[0] == '\0')
        hpct_tmpdir_sweep(plugin->settings.tmpdir);
}
