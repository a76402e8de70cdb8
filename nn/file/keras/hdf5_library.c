/* Loads libhdf5. */
#include "nn/file/keras/hdf5_library.h"

#include "base/status.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

/* The library is shared by threads and never unloaded: it cleans up at process exit. */
static hpct_status find_symbols(hpct_keras_hdf5_library *library, void *handle)
{
    const struct {
        size_t place;
        const char *name;
    } functions[] = {
#define ROW(name) {offsetof(hpct_keras_hdf5_library, name), #name},
        HPCT_KERAS_HDF5_FUNCTIONS(ROW)
#undef ROW
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *found = dlsym(handle, functions[i].name);
        if (found == NULL)
            return hpct_fail(HPCT_ERR_CONFIG, HPCT_HDF5_LIBRARY " has no %s", functions[i].name);
        *(void **) (void *) ((char *) library + functions[i].place) = found;
    }
    return HPCT_OK;
}

/* HDF5's constants are macros for global variables, which H5open sets. */
static hpct_status find_constants(hpct_keras_hdf5_library *library, void *handle)
{
    const struct {
        hid_t *place;
        const char *name;
    } constants[] = {
        {&library->float32, "H5T_IEEE_F32LE_g"},
        {&library->int32, "H5T_STD_I32LE_g"},
        {&library->native_float, "H5T_NATIVE_FLOAT_g"},
        {&library->string, "H5T_C_S1_g"},
        {&library->dataset_create, "H5P_CLS_DATASET_CREATE_ID_g"},
        {&library->file_access, "H5P_CLS_FILE_ACCESS_ID_g"},
        {&library->file_create, "H5P_CLS_FILE_CREATE_ID_g"},
        {&library->group_create, "H5P_CLS_GROUP_CREATE_ID_g"},
    };
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++) {
        const hid_t *found = dlsym(handle, constants[i].name);
        if (found == NULL)
            return hpct_fail(HPCT_ERR_CONFIG, HPCT_HDF5_LIBRARY " has no %s", constants[i].name);
        *constants[i].place = *found;
    }
    return HPCT_OK;
}

hpct_status hpct_keras_hdf5_load(const hpct_keras_hdf5_library **out)
{
    static hpct_keras_hdf5_library library;
    static bool loaded;
    *out = &library;
    if (loaded)
        return HPCT_OK;
    void *handle = dlopen(HPCT_HDF5_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return hpct_fail(HPCT_ERR_CONFIG, "HDF5 is not on this machine (" HPCT_HDF5_LIBRARY
                                          "): install it, or use a .safetensors file");
    hpct_status status = find_symbols(&library, handle);
    if (status == HPCT_OK && library.H5open() < 0)
        status = hpct_fail(HPCT_ERR_CONFIG, HPCT_HDF5_LIBRARY " does not start");
    if (status == HPCT_OK)
        status = find_constants(&library, handle);
    loaded = status == HPCT_OK;
    return status;
}
