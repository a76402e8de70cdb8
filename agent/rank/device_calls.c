/* Gets the table of device calls from the CUDA module. */
#include "agent/rank/device_calls.h"

#include "base/status.h"
#include "nn/backend/module.h"

#include <string.h>

hpct_status hpct_rank_comm_device_calls(const hpct_device_calls **out, const char *device)
{
    void *found = NULL;
    *out = NULL;
    bool any = strcmp(device, "auto") == 0;
    if (strcmp(device, "cpu") == 0 || (any && !hpct_backend_module_has_driver()))
        return HPCT_OK;
    hpct_status status =
        hpct_backend_module_find(&found, HPCT_BACKEND_MODULE_CUDA, HPCT_DEVICE_CALLS_SYMBOL);
    const hpct_device_calls *calls = found;
    if (status == HPCT_OK && calls->open() != HPCT_DEVICE_OK)
        status = hpct_fail(HPCT_ERR_CONFIG, "%s", calls->error());
    if (status == HPCT_OK)
        *out = calls;
    return any ? HPCT_OK : status;
}
