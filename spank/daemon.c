/* Runs in slurmd, as root, when it starts. */
#include <dlfcn.h>
#include <stddef.h>

#include "base/status.h"
#include "spank/contexts.h"
#include "spank/slurm_symbols.h"
#include "spank/timed_child.h"
#include "spank/tmpdir.h"

/* slurmstepd uses these symbols and is from the same Slurm */
static void say_what_is_missing(void)
{
    for (const hpct_slurm_symbol *symbol = hpct_slurm_symbols; symbol->name != NULL; symbol++) {
        if (dlsym(RTLD_DEFAULT, symbol->name) == NULL)
            hpct_slurm_error("this Slurm has no %s: %s", symbol->name, symbol->without);
    }
}

static hpct_status prepare(void *context)
{
    const hpct_spank_plugin *plugin = context;
    HPCT_TRY(hpct_spank_tmpdir_prepare(plugin->settings.tmpdir));
    return hpct_spank_ports_folder_make(HPCT_SPANK_PORTS_FOLDER);
}

void hpct_spank_daemon_start(hpct_spank_plugin *plugin)
{
    say_what_is_missing();
    /* An error does not stop slurmd: only steps that use hpc-train fail, with this message. */
    const hpct_spank_timed_child timed_child = {.what = "making the job directories' parent",
                                                .seconds = HPCT_SPANK_FOLDER_SECONDS,
                                                .work = prepare,
                                                .context = plugin};
    if (plugin->trouble[0] == '\0' && hpct_spank_timed_child_run(timed_child) != HPCT_OK)
        hpct_slurm_error("%s", hpct_last_error());
}
