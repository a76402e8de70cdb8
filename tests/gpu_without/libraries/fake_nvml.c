/* A library with NVML's names that answers from a description (see tests/fixtures/gpu), named by
 * FAKE_NVML (FAKE_NVML_BUSY: percent of the time): so that what loads and calls NVML runs where
 * there is no GPU. FAKE_NVML_VISIBLE is a list of the GPUs that are not hidden from the process, as
 * by a devices cgroup. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define NOT_FOUND 6
#define MAX 64

typedef struct gpu {
    int index, whole; /* of a slice: its GPU; else -1 */
    unsigned domain, bus, device;
    char uuid[96];
} gpu;

typedef struct pci_info {
    char bus_id_legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} pci_info;

static gpu gpus[MAX];
static int count;

int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int error);
int nvmlDeviceGetCount_v2(unsigned *out);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **out);
int nvmlDeviceGetUUID(void *one, char *text, unsigned size);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **out);
int nvmlDeviceGetUtilizationRates(void *one, unsigned rates[2]);
int nvmlDeviceGetPciInfo_v3(void *one, pci_info *info);
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *slice, void **out);

static int is_visible(int index)
{
    const char *list = getenv("FAKE_NVML_VISIBLE");
    char all[256] = ",", one[16];
    if (list == NULL)
        return 1;
    snprintf(all, sizeof all, ",%s,", list);
    snprintf(one, sizeof one, ",%d,", index);
    return strstr(all, one) != NULL;
}

EXPORT int nvmlInit_v2(void)
{
    const char *path = getenv("FAKE_NVML");
    char line[512];
    FILE *file = path == NULL ? NULL : fopen(path, "r");
    if (file == NULL)
        return 9; /* driver not loaded */
    count = 0;
    while (count < MAX && fgets(line, sizeof line, file) != NULL) {
        gpu *g = &gpus[count];
        memset(g, 0, sizeof *g);
        if (sscanf(line, "gpu %d pci %x:%x:%x.%*x node %*d uuid %95s", &g->index, &g->domain,
                   &g->bus, &g->device, g->uuid) == 5)
            g->whole = -1;
        else if (sscanf(line, "mig %d uuid %95s", &g->whole, g->uuid) == 2)
            g->index = -1;
        else
            continue;
        if (is_visible(g->whole < 0 ? g->index : g->whole))
            count++;
    }
    fclose(file);
    return 0;
}

EXPORT int nvmlShutdown(void)
{
    return 0;
}

EXPORT const char *nvmlErrorString(int error)
{
    return error == 9 ? "Driver Not Loaded" : "Not Found";
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *out)
{
    *out = 0;
    for (int i = 0; i < count; i++)
        *out += gpus[i].whole < 0;
    return 0;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out)
{
    for (int i = 0; i < count; i++) {
        if (gpus[i].whole < 0 && index-- == 0) {
            *out = &gpus[i];
            return 0;
        }
    }
    return NOT_FOUND;
}

EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, void **out)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(gpus[i].uuid, uuid) == 0) {
            *out = &gpus[i];
            return 0;
        }
    }
    return NOT_FOUND;
}

EXPORT int nvmlDeviceGetUUID(void *one, char *text, unsigned size)
{
    snprintf(text, size, "%s", ((gpu *) one)->uuid);
    return 0;
}

EXPORT int nvmlDeviceGetPciInfo_v3(void *one, pci_info *info)
{
    const gpu *g = one;
    if (g->whole >= 0)
        return 2; /* not of a slice */
    memset(info, 0, sizeof *info);
    info->domain = g->domain;
    info->bus = g->bus;
    info->device = g->device;
    return 0;
}

EXPORT int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *slice, void **out)
{
    const gpu *g = slice;
    for (int i = 0; g->whole >= 0 && i < count; i++) {
        if (gpus[i].whole < 0 && gpus[i].index == g->whole) {
            *out = &gpus[i];
            return 0;
        }
    }
    return NOT_FOUND;
}

EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **out)
{
    unsigned domain, at, device;
    if (sscanf(bus, "%x:%x:%x", &domain, &at, &device) != 3)
        return 2; /* invalid argument */
    for (int i = 0; i < count; i++) {
        if (gpus[i].domain == domain && gpus[i].bus == at && gpus[i].device == device) {
            *out = &gpus[i];
            return 0;
        }
    }
    return NOT_FOUND;
}

EXPORT int nvmlDeviceGetUtilizationRates(void *one, unsigned rates[2])
{
    const char *busy = getenv("FAKE_NVML_BUSY");
    (void) one;
    rates[0] = busy != NULL ? (unsigned) atoi(busy) : 0;
    rates[1] = 0;
    return busy != NULL ? 0 : 3; /* not supported */
}
