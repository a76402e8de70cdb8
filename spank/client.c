/* In srun, sbatch and salloc. */
#include "base/status.h"
#include "spank/contexts.h"

#include <stdlib.h>

static const char *get(void *context, const char *name)
{
    (void) context;
    return getenv(name);
}

hpct_status hpct_client_check(hpct_plugin *plugin)
{
    hpct_environment own = {.get = get};
    hpct_choices choices = {0};
    hpct_status status =
        hpct_options_resolve(&plugin->options, &own, plugin->settings.on_by_default, &choices);
    if (status != HPCT_OK) {
        hpct_slurm_error("%s", hpct_last_error());
        return status;
    }
    bool usable = !choices.on || plugin->trouble[0] == '\0';
    hpct_choices_free(&choices);
    if (!usable)
        hpct_slurm_error("it was asked for, but cannot be used until the administrator has mended "
                         "this");
    return usable ? HPCT_OK : HPCT_ERR_CONFIG;
}
