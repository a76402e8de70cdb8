/* HPC_TRAIN_GPU among CUDA_VISIBLE_DEVICES. */
#include "nn/cuda/which.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

/* The place of `entry` in a list with commas, -1 when it is not there. */
static int place_in(const char *list, const char *entry)
{
    size_t wanted = strlen(entry);
    for (int place = 0;; place++) {
        size_t length = strcspn(list, ",");
        if (length == wanted && strncmp(list, entry, length) == 0)
            return place;
        if (list[length] == '\0')
            return -1;
        list += length + 1;
    }
}

static int number_of(const char *text)
{
    char *end;
    long number = strtol(text, &end, 10);
    return end == text || *end != '\0' || number < 0 || number > 4095 ? -1 : (int) number;
}

hpct_status hpct_cuda_which(const char *own, const char *visible, int count, int *device)
{
    *device = 0;
    if (own == NULL || own[0] == '\0')
        return HPCT_OK;
    *device = visible != NULL && visible[0] != '\0' ? place_in(visible, own) : number_of(own);
    if (*device >= 0 && *device < count)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_CONFIG,
                     "HPC_TRAIN_GPU is %s, which is none of the %d GPUs here "
                     "(CUDA_VISIBLE_DEVICES is %s)",
                     own, count, visible != NULL ? visible : "not set");
}
