/* nn/backend/module.h - modules: shared libraries of this project loaded on demand, so that one
 * installation serves machines with and without their dependencies. A module does not link
 * libhpctrain: it has its own copies of shared code (nn/graph/op.h, nn/backend/picture.h,
 * nn/graph/rng.h), and passes error messages and progress to the process through
 * hpct_backend_module_host.
 */
#ifndef HPCT_NN_BACKEND_MODULE_H
#define HPCT_NN_BACKEND_MODULE_H

#include "base/debug.h"
#include "base/progress.h"
#include "nn/backend/backend.h"

#define HPCT_BACKEND_MODULE_CUDA "hpctrain-cuda.so"

/* Passed by the process to a module; both must be from the same build. */
typedef struct hpct_backend_module_host {
    const char *version; /* of the package */
    size_t bytes;        /* sizeof this struct and hpct_backend */
    hpct_status (*fail)(hpct_status status, const char *message);
    const char *(*last_error)(void);
    void (*progress)(void); /* as in base/progress.h */
    hpct_waits (*enter_wait)(hpct_waits waits);
    bool (*debugs)(hpct_debug_topic topic); /* as in base/debug.h */
    void (*debug)(hpct_debug_topic topic, const char *format, ...);
} hpct_backend_module_host;

/* Exported by every module; returns false if the builds differ. HPCT_BACKEND_MODULE_CUDA also
 * exports a backend. */
HPCT_API bool hpct_backend_module_attach(const hpct_backend_module_host *host);

/* Finds a symbol of a module, which is loaded on first use and kept: from HPC_TRAIN_MODULE_DIR
 * only, if set; else from this library's folder, hpc-train/ in it, or the installation folder.
 * Returns HPCT_ERR_CONFIG in one line if the module, or a library it needs, is missing. */
hpct_status hpct_backend_module_find(void **out, const char *module, const char *symbol);

/* Whether this machine has a GPU driver: without one HPCT_BACKEND_MODULE_CUDA and its libraries,
 * about 100 MB, are not loaded. */
bool hpct_backend_module_has_driver(void);

#endif
