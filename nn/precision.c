/* The precisions by name, and whether they can be had here. */
#include "nn/backend.h"

#include "base/status.h"

#include <string.h>

static const char *const names[HPCT_PRECISIONS] = {[HPCT_FP32] = "fp32", [HPCT_BF16] = "bf16"};

hpct_status hpct_precision_find(hpct_precision *precision, const char *name)
{
    for (int i = 0; i < HPCT_PRECISIONS; i++) {
        if (strcmp(names[i], name) == 0) {
            *precision = (hpct_precision) i;
            return HPCT_OK;
        }
    }
    return hpct_fail(HPCT_ERR_USAGE, "there is no precision \"%s\"; there are: fp32, bf16", name);
}

const char *hpct_precision_name(hpct_precision precision)
{
    return names[precision];
}

hpct_status hpct_precision_check(hpct_precision precision)
{
    return hpct_backend_cpu.check_precision(precision);
}
