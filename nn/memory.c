/* Copies between the host and a backend's memory. */
#include "nn/backend.h"

#include <string.h>

static hpct_status copy(void *to, const void *from, size_t bytes)
{
    if (bytes > 0)
        memcpy(to, from, bytes);
    return HPCT_OK;
}

hpct_status hpct_memory_to_host(const hpct_backend *backend, void *host, const void *memory,
                                size_t bytes)
{
    return backend->device != NULL ? backend->device->to_host(host, memory, bytes)
                                   : copy(host, memory, bytes);
}

hpct_status hpct_memory_from_host(const hpct_backend *backend, void *memory, const void *host,
                                  size_t bytes)
{
    return backend->device != NULL ? backend->device->from_host(memory, host, bytes)
                                   : copy(memory, host, bytes);
}

hpct_status hpct_memory_zero(const hpct_backend *backend, void *memory, size_t bytes)
{
    if (backend->device != NULL)
        return backend->device->zero(memory, bytes);
    if (bytes > 0)
        memset(memory, 0, bytes);
    return HPCT_OK;
}

hpct_status hpct_memory_wait(const hpct_backend *backend)
{
    return backend->device != NULL ? backend->device->wait() : HPCT_OK;
}
