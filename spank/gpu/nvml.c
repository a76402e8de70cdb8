/* NVML: the few functions used are declared here (they are stable and versioned by name), so that
 * the build needs no NVIDIA headers. */
#include "spank/gpu/nvml.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/status.h"

#define LIBRARY "libnvidia-ml.so.1"
#define UUID_SIZE 96
#define MAX_INDEX 4095

typedef void *device;

/* nvmlPciInfo_t of nvmlDeviceGetPciInfo_v3 */
typedef struct pci_info {
    char bus_id_legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} pci_info;

struct hpct_gpus_nvml {
    void *library;
    int (*shut_down)(void);
    const char *(*error_string)(int error);
    int (*count)(unsigned *count);
    int (*by_index)(unsigned index, device *out);
    int (*by_uuid)(const char *uuid, device *out);
    int (*uuid)(device one, char *text, unsigned size);
    int (*pci)(device one, pci_info *info);
    int (*whole)(device slice, device *out); /* GPU of a MIG slice; NULL with drivers without MIG */
};

static hpct_status load_library(hpct_gpus_nvml *n)
{
    int (*init)(void) = NULL;
    const struct {
        void *place;
        const char *name;
    } needed[] = {
        {&init, "nvmlInit_v2"},
        {&n->error_string, "nvmlErrorString"},
        {&n->count, "nvmlDeviceGetCount_v2"},
        {&n->by_index, "nvmlDeviceGetHandleByIndex_v2"},
        {&n->by_uuid, "nvmlDeviceGetHandleByUUID"},
        {&n->uuid, "nvmlDeviceGetUUID"},
        {&n->pci, "nvmlDeviceGetPciInfo_v3"},
        {&n->shut_down, "nvmlShutdown"},
    };
    n->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (n->library == NULL)
        return hpct_fail(HPCT_ERR_CONFIG, "there is no NVML (" LIBRARY ")");
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        void *found = dlsym(n->library, needed[i].name);
        memcpy(needed[i].place, &found, sizeof found);
        if (found == NULL) {
            n->shut_down = NULL;
            return hpct_fail(HPCT_ERR_CONFIG, LIBRARY " has no %s", needed[i].name);
        }
    }
    *(void **) &n->whole = dlsym(n->library, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle");
    int error = init();
    if (error != 0) {
        n->shut_down = NULL;
        return hpct_fail(HPCT_ERR_CONFIG, "NVML does not start: %s", n->error_string(error));
    }
    return HPCT_OK;
}

hpct_status hpct_gpus_nvml_open(hpct_gpus_nvml **out)
{
    hpct_gpus_nvml *n = calloc(1, sizeof *n);
    if (n == NULL)
        return hpct_fail_memory(sizeof *n);
    hpct_status status = load_library(n);
    if (status != HPCT_OK) {
        hpct_gpus_nvml_close(n);
        return status;
    }
    *out = n;
    return HPCT_OK;
}

void hpct_gpus_nvml_close(hpct_gpus_nvml *n)
{
    if (n == NULL)
        return;
    if (n->shut_down != NULL)
        n->shut_down();
    if (n->library != NULL)
        dlclose(n->library);
    free(n);
}

/* The only GPU whose UUID has this prefix; CUDA accepts prefixes, too. */
static bool by_beginning(const hpct_gpus_nvml *n, const char *name, device *out)
{
    unsigned count = 0, matches = 0;
    if (n->count(&count) != 0)
        return false;
    for (unsigned i = 0; i < count; i++) {
        char uuid[UUID_SIZE] = "";
        device one;
        if (n->by_index(i, &one) != 0 || n->uuid(one, uuid, sizeof uuid) != 0 ||
            strncmp(uuid, name, strlen(name)) != 0)
            continue;
        *out = one;
        matches++;
    }
    return matches == 1;
}

static bool find(const hpct_gpus_nvml *n, const char *name, device *out)
{
    long index;
    if (hpct_number_parse(name, 0, MAX_INDEX, &index))
        return n->by_index((unsigned) index, out) == 0;
    if (strncmp(name, "MIG-GPU-", 8) == 0) {
        char whole[UUID_SIZE] = "";
        size_t size = strcspn(name + 4, "/");
        if (size >= sizeof whole)
            return false;
        memcpy(whole, name + 4, size);
        return n->by_uuid(whole, out) == 0;
    }
    if (strncmp(name, "MIG-", 4) == 0) {
        device slice;
        return n->whole != NULL && n->by_uuid(name, &slice) == 0 && n->whole(slice, out) == 0;
    }
    if (strncmp(name, "GPU-", 4) == 0)
        return n->by_uuid(name, out) == 0 || by_beginning(n, name, out);
    return false;
}

hpct_status hpct_gpus_nvml_locate(hpct_gpus_nvml *n, const char *name, hpct_gpus_pci *pci)
{
    device one;
    pci_info info = {0};
    if (!find(n, name, &one))
        return hpct_fail(HPCT_ERR_CONFIG, "NVML knows no GPU '%.100s'", name);
    int error = n->pci(one, &info);
    if (error != 0)
        return hpct_fail(HPCT_ERR_CONFIG, "NVML does not say where GPU '%.100s' is: %s", name,
                         n->error_string(error));
    *pci = (hpct_gpus_pci){.domain = info.domain, .bus = info.bus, .device = info.device};
    return HPCT_OK;
}
