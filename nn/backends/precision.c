/* Names of precisions, and whether this machine supports them. */
#include "base/nearest.h"
#include "base/status.h"
#include "nn/backend/cpu/backend.h"

#include <string.h>

static const char *const names[HPCT_PRECISIONS] = {
    [HPCT_FP32] = "fp32", [HPCT_BF16] = "bf16", [HPCT_FP16] = "fp16"};

static const char *const policies[HPCT_PRECISIONS] = {
    [HPCT_FP32] = "float32", [HPCT_BF16] = "mixed_bfloat16", [HPCT_FP16] = "mixed_float16"};

hpct_status hpct_precision_find(hpct_precision *precision, const char *name)
{
    char hint[HPCT_NEAREST_HINT];
    hpct_nearest best = {0};
    for (int i = 0; i < HPCT_PRECISIONS; i++) {
        if (strcmp(names[i], name) == 0) {
            *precision = (hpct_precision) i;
            return HPCT_OK;
        }
        hpct_nearest_try(&best, name, names[i]);
    }
    return hpct_fail(HPCT_ERR_USAGE, "there is no precision \"%s\"%s; there are: fp32, bf16, fp16",
                     name, hpct_nearest_hint(&best, hint));
}

const char *hpct_precision_name(hpct_precision precision)
{
    return names[precision];
}

const char *hpct_precision_policy(hpct_precision precision)
{
    return policies[precision];
}

bool hpct_precision_of_policy(hpct_precision *precision, const char *policy)
{
    for (int i = 0; i < HPCT_PRECISIONS; i++) {
        if (strcmp(policies[i], policy) == 0) {
            *precision = (hpct_precision) i;
            return true;
        }
    }
    return false;
}

hpct_status hpct_precision_check(hpct_precision precision)
{
    return hpct_cpu_backend.check_precision(precision);
}
