/* Finds backends by name. */
#include "nn/backends/backends.h"

#include "base/status.h"
#include "nn/backend/cpu/backend.h"
#include "nn/backend/module.h"
#include "nn/backend/ref/ref.h"

#include <stdio.h>
#include <string.h>

const hpct_backend *const hpct_backend_table[] = {&hpct_cpu_backend, &hpct_ref_backend, NULL};

/* cuda is a module. */
static hpct_status load_cuda(const hpct_backend **out)
{
    void *found = NULL;
    hpct_status status =
        hpct_backend_module_find(&found, HPCT_BACKEND_MODULE_CUDA, "hpct_cuda_backend");
    *out = found;
    return status;
}

static hpct_status find_cuda(const hpct_backend **out)
{
    const hpct_backend *cuda;
    hpct_status status = load_cuda(&cuda);
    if (status == HPCT_OK)
        status = cuda->device->open();
    if (status == HPCT_OK)
        *out = cuda;
    return status;
}

hpct_status hpct_backend_find_device(const hpct_backend_device **out, const char *name)
{
    const hpct_backend *backend = NULL;
    hpct_status status =
        strcmp(name, "cuda") == 0 ? load_cuda(&backend) : hpct_backend_find(&backend, name);
    if (status == HPCT_OK)
        *out = backend->device;
    return status;
}

hpct_status hpct_backend_find(const hpct_backend **out, const char *name)
{
    char names[128] = "";
    for (int i = 0; hpct_backend_table[i] != NULL; i++) {
        if (strcmp(hpct_backend_table[i]->name, name) == 0) {
            *out = hpct_backend_table[i];
            return HPCT_OK;
        }
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s, ", hpct_backend_table[i]->name);
    }
    if (strcmp(name, "cuda") == 0)
        return find_cuda(out);
    return hpct_fail(HPCT_ERR_USAGE, "there is no backend \"%s\"; there are: %scuda", name, names);
}

hpct_status hpct_backend_choose(const hpct_backend **out, const char *name)
{
    if (strcmp(name, "auto") != 0)
        return hpct_backend_find(out, name);
    if (!hpct_backend_module_has_driver() || find_cuda(out) != HPCT_OK)
        *out = &hpct_cpu_backend;
    return HPCT_OK;
}
