/* Replaces the other HDF5 files here if built without HDF5. */
#include "nn/file/keras/weights_h5.h"

#include "base/status.h"

static hpct_status none(void)
{
    return hpct_fail(HPCT_ERR_CONFIG, "this hpc-train was built without HDF5: use a .safetensors "
                                      "file, or build it where libhdf5-dev is installed");
}

hpct_status hpct_keras_h5_available(void)
{
    return none();
}

hpct_status hpct_keras_h5_save(const hpct_model *model, int fd, const char *path)
{
    (void) model;
    (void) fd;
    (void) path;
    return none();
}

hpct_status hpct_keras_h5_read(const hpct_model *model, const char *path, float **values,
                               hpct_keras_h5_texts *texts, hpct_keras_skips *skips)
{
    (void) model;
    (void) path;
    (void) values;
    (void) texts;
    (void) skips;
    return none();
}
