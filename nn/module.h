/* nn/module.h - shared libraries of this project that are loaded when they are asked for, so that
 * one installation serves machines with and without what they are linked with. A module has no
 * symbols of libhpctrain: it has its own copies of what computes (nn/op.h, nn/picture.h, nn/rng.h,
 * nn/file.h), and gives messages of errors, and its headway, to the process through
 * hpct_module_host. */
#ifndef HPCT_NN_MODULE_H
#define HPCT_NN_MODULE_H

#include "base/headway.h"
#include "nn/backend.h"

#define HPCT_MODULE_CUDA "hpctrain-cuda.so"

/* What the process tells a module: one of the same build must have been loaded. */
typedef struct hpct_module_host {
    const char *version; /* of the package */
    size_t bytes;        /* of this and of an hpct_backend */
    hpct_status (*fail)(hpct_status status, const char *message);
    const char *(*last_error)(void);
    void (*headway)(void); /* as base/headway.h has them */
    hpct_waits (*headway_enter)(hpct_waits waits);
} hpct_module_host;

/* Every module has this function; false: it is of another build. */
HPCT_API bool hpct_module_attach(const hpct_module_host *host);

/* What HPCT_MODULE_CUDA has besides. */
extern HPCT_API const hpct_backend hpct_backend_cuda;

/* A symbol of a module, which is loaded at the first call for it and then stays: from
 * HPC_TRAIN_MODULE_DIR alone where that is set; else beside this library, from hpc-train/ there, or
 * where it was installed. HPCT_ERR_CONFIG in one line when it is not there, or lacks a library. */
hpct_status hpct_module_find(void **out, const char *module, const char *symbol);

/* Whether this machine has a GPU's driver: without one HPCT_MODULE_CUDA, and all it is linked with,
 * a hundred megabytes, need not be looked at. */
bool hpct_module_has_driver(void);

#endif
