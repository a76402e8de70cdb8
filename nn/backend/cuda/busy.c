/* How busy the GPU is, as the driver's NVML counts it. NVML is loaded on demand, and declared here:
 * its functions are stable and versioned by name. */
#include "nn/backend/cuda/cuda.h"

#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#define LIBRARY "libnvidia-ml.so.1"

typedef struct utilization {
    unsigned gpu, memory; /* percent of the driver's last sample period, 1/6 s to 1 s */
} utilization;

typedef struct library {
    bool tried, works;
    int (*by_bus)(const char *bus, void **out);
    int (*rates)(void *device, utilization *out);
} library;

static library load(void)
{
    library found = {.tried = true};
    int (*init)(void) = NULL;
    void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return found;
    *(void **) &init = dlsym(handle, "nvmlInit_v2");
    *(void **) &found.by_bus = dlsym(handle, "nvmlDeviceGetHandleByPciBusId_v2");
    *(void **) &found.rates = dlsym(handle, "nvmlDeviceGetUtilizationRates");
    found.works = init != NULL && found.by_bus != NULL && found.rates != NULL && init() == 0;
    return found;
}

double hpct_cuda_busy(void)
{
    static library nvml; /* by the thread that trains alone */
    char bus[32];
    void *device;
    utilization now;
    if (!nvml.tried)
        nvml = load();
    if (!nvml.works ||
        cudaDeviceGetPCIBusId(bus, sizeof bus, hpct_cuda_gpu.device) != cudaSuccess ||
        nvml.by_bus(bus, &device) != 0 || nvml.rates(device, &now) != 0)
        return NAN;
    return now.gpu / 100.0;
}
