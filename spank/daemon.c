/* In slurmd, as root, when it starts. */
#include "base/status.h"
#include "spank/contexts.h"
#include "spank/tmpdir.h"

void hpct_daemon_start(hpct_plugin *plugin)
{
    /* No reason for the node not to start: only steps that want hpc-train will fail, and say why.
     */
    if (plugin->trouble[0] == '\0' && hpct_tmpdir_prepare(plugin->settings.tmpdir) != HPCT_OK)
        hpct_slurm_error("%s", hpct_last_error());
}
