/* Memory of host backends, and copies between host and backend memory. */
#include "nn/backend/backend.h"

#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hpct_status copy(void *to, const void *from, size_t bytes)
{
    if (bytes > 0)
        memcpy(to, from, bytes);
    return HPCT_OK;
}

hpct_status hpct_backend_memory_to_host(const hpct_backend *backend, void *host, const void *memory,
                                        size_t bytes)
{
    return backend->device != NULL ? backend->device->to_host(host, memory, bytes)
                                   : copy(host, memory, bytes);
}

hpct_status hpct_backend_memory_from_host(const hpct_backend *backend, void *memory,
                                          const void *host, size_t bytes)
{
    return backend->device != NULL ? backend->device->from_host(memory, host, bytes)
                                   : copy(memory, host, bytes);
}

hpct_status hpct_backend_memory_zero(const hpct_backend *backend, void *memory, size_t bytes)
{
    if (backend->device != NULL)
        return backend->device->zero(memory, bytes);
    if (bytes > 0)
        memset(memory, 0, bytes);
    return HPCT_OK;
}

hpct_status hpct_backend_memory_wait(const hpct_backend *backend)
{
    return backend->device != NULL ? backend->device->wait() : HPCT_OK;
}

void *hpct_backend_memory_take_host(const hpct_backend *backend, size_t bytes)
{
    return backend->device != NULL ? backend->device->allocate_host(bytes)
                                   : backend->allocate(bytes);
}

void hpct_backend_memory_return_host(const hpct_backend *backend, void *memory)
{
    if (memory == NULL)
        return;
    if (backend->device != NULL)
        backend->device->release_host(memory);
    else
        backend->release(memory);
}

hpct_status hpct_backend_memory_fail(const hpct_backend *backend, size_t bytes, const char *format,
                                     ...)
{
    const double mib = 1 << 20;
    char what[256], left[64] = "";
    size_t free_bytes, all;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (backend->device == NULL)
        return hpct_fail(HPCT_ERR_INTERNAL, "out of memory: %.0f MiB are needed for %s",
                         (double) bytes / mib, what);
    if (backend->device->memory(&free_bytes, &all) == HPCT_OK)
        snprintf(left, sizeof left, ", and of its %.0f MiB %.0f are free", (double) all / mib,
                 (double) free_bytes / mib);
    return hpct_fail(HPCT_ERR_CONFIG,
                     "the GPU is out of memory: %.0f MiB are needed for %s%s: take a smaller batch "
                     "(--batch-size auto finds the largest)",
                     (double) bytes / mib, what, left);
}

/* calloc's fresh pages are zero and cost nothing until touched, and are placed on the NUMA node of
 * the thread that touches them. Hence calloc with manual alignment; calloc's own pointer is stored
 * right before the aligned part. */
void *hpct_backend_host_allocate(size_t bytes)
{
    const size_t align = 64;
    if (bytes > SIZE_MAX - 2 * align)
        return NULL;
    char *whole = calloc(1, bytes + 2 * align);
    if (whole == NULL)
        return NULL;
    char *memory = whole + 2 * align - (uintptr_t) whole % align;
    memcpy(memory - sizeof whole, &whole, sizeof whole);
    return memory;
}

void hpct_backend_host_release(void *memory)
{
    char *whole = NULL;
    if (memory != NULL)
        memcpy(&whole, (char *) memory - sizeof whole, sizeof whole);
    free(whole);
}
