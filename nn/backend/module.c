/* Loads modules: search path and version check. */
#include "config.h"

#include "nn/backend/module.h"

#include "base/status.h"

#include <dlfcn.h>
#include <libgen.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MODULES 4

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    char name[64];
    void *handle;
} loaded[MODULES];

static hpct_status fail(hpct_status status, const char *message)
{
    return hpct_fail(status, "%s", message);
}

static const hpct_backend_module_host host = {
    .version = PACKAGE_VERSION,
    .bytes = sizeof(hpct_backend_module_host) + sizeof(hpct_backend),
    .fail = fail,
    .last_error = hpct_last_error,
    .progress = hpct_count_progress,
    .enter_wait = hpct_enter_wait,
    .debugs = hpct_debugs,
    .debug = hpct_debug,
};

static bool is_there(char path[4096], const char *folder, const char *within, const char *module)
{
    int length = snprintf(path, 4096, "%s/%s%s", folder, within, module);
    return length < 4096 && access(path, R_OK) == 0;
}

/* Folder of the library or program that contains this code. */
static const char *own_folder(char path[4096])
{
    Dl_info info;
    if (dladdr(&lock, &info) == 0 || info.dli_fname == NULL)
        return ".";
    snprintf(path, 4096, "%s", info.dli_fname);
    return dirname(path);
}

static hpct_status locate(char path[4096], const char *module)
{
    char own[4096];
    const char *given = getenv("HPC_TRAIN_MODULE_DIR"), *beside = own_folder(own);
    if (given != NULL && is_there(path, given, "", module))
        return HPCT_OK;
    if (given == NULL &&
        (is_there(path, beside, "", module) || is_there(path, beside, "hpc-train/", module) ||
         is_there(path, HPCT_MODULE_DIR, "", module)))
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_CONFIG,
                     "the GPU module %s is not installed (sought in %s): build with ./configure "
                     "--with-cuda, or take --device cpu",
                     module, given != NULL ? given : HPCT_MODULE_DIR);
}

static hpct_status load(void **handle, const char *module)
{
    char path[4096];
    HPCT_TRY(locate(path, module));
    *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (*handle == NULL)
        return hpct_fail(HPCT_ERR_CONFIG,
                         "the GPU module cannot be loaded: %s: install that library, or take "
                         "--device cpu",
                         dlerror());
    bool (*attach)(const hpct_backend_module_host *) = NULL;
    *(void **) &attach = dlsym(*handle, "hpct_backend_module_attach");
    if (attach != NULL && attach(&host))
        return HPCT_OK;
    dlclose(*handle);
    *handle = NULL;
    return hpct_fail(HPCT_ERR_CONFIG, "%s is not of hpc-train %s: install it anew", path,
                     PACKAGE_VERSION);
}

/* Handle of a module, loaded if necessary; the lock must be held. */
static hpct_status get(void **handle, const char *module)
{
    for (int i = 0; i < MODULES; i++) {
        if (strcmp(loaded[i].name, module) == 0) {
            *handle = loaded[i].handle;
            return HPCT_OK;
        }
        if (loaded[i].name[0] != '\0')
            continue;
        hpct_status status = load(handle, module);
        if (status == HPCT_OK) {
            snprintf(loaded[i].name, sizeof loaded[i].name, "%s", module);
            loaded[i].handle = *handle;
        }
        return status;
    }
    return hpct_fail(HPCT_ERR_INTERNAL, "more than %d modules", MODULES);
}

hpct_status hpct_backend_module_find(void **out, const char *module, const char *symbol)
{
    void *handle = NULL;
    pthread_mutex_lock(&lock);
    hpct_status status = get(&handle, module);
    *out = status == HPCT_OK ? dlsym(handle, symbol) : NULL;
    if (status == HPCT_OK && *out == NULL)
        status = hpct_fail(HPCT_ERR_CONFIG, "%s has no %s: it was built without", module, symbol);
    pthread_mutex_unlock(&lock);
    return status;
}

bool hpct_backend_module_has_driver(void)
{
    static bool found; /* once found it stays loaded */
    pthread_mutex_lock(&lock);
    found = found || dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != NULL;
    bool has = found;
    pthread_mutex_unlock(&lock);
    return has;
}
