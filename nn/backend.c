/* The table of backends, and host memory for those that compute there. */
#include "nn/backend.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

const hpct_backend *const hpct_backends[] = {&hpct_backend_cpu, &hpct_backend_ref, NULL};

hpct_status hpct_backend_find(const hpct_backend **out, const char *name)
{
    char names[128] = "";
    for (int i = 0; hpct_backends[i] != NULL; i++) {
        if (strcmp(hpct_backends[i]->name, name) == 0) {
            *out = hpct_backends[i];
            return HPCT_OK;
        }
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i == 0 ? "" : ", ",
                 hpct_backends[i]->name);
    }
    return hpct_fail(HPCT_ERR_USAGE, "there is no backend \"%s\"; there are: %s", name, names);
}

void *hpct_host_allocate(size_t bytes)
{
    if (bytes > SIZE_MAX - 63)
        return NULL;
    size_t rounded = (bytes + 63) & ~(size_t) 63;
    if (rounded == 0)
        rounded = 64;
    void *memory = aligned_alloc(64, rounded);
    if (memory != NULL)
        memset(memory, 0, rounded);
    return memory;
}

void hpct_host_release(void *memory)
{
    free(memory);
}
