/* Fuzz target: weights in Keras' HDF5 files, of a small model. The model is changed wholly or not
 * at all. */
#include "nn/file/keras/weights_h5.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The model whose weights the corpus holds. */
static hpct_model *make_model(void)
{
    hpct_model *model = hpct_model_new("small", HPCT_SHAPE(4, 4, 1));
    hpct_model_add_conv2d(model, &(hpct_conv2d){.filters = 2, .kernel = {3, 3}});
    hpct_model_add_flatten(model);
    hpct_model_add_dense(model, &(hpct_dense){.units = 3, .no_bias = true});
    return model;
}

/* The layers that fit: all weights of one, or none. */
static void load_fitting(const char *path, const hpct_model *model)
{
    float *values[3] = {NULL, NULL, NULL};
    char *class_names = NULL;
    hpct_skips skips = {0};
    hpct_status status = hpct_h5_load_fitting(model, path, values, &class_names, &skips);
    if (status == HPCT_OK &&
        ((values[0] == NULL) != (values[1] == NULL) || skips.loaded + skips.count != 2))
        abort();
    for (int i = 0; i < 3; i++)
        free(values[i]);
    free(class_names);
    free(skips.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static hpct_model *model;
    static int file = -1;
    float *values[3] = {NULL, NULL, NULL};
    char path[64];
    if (model == NULL) {
        model = make_model();
        file = memfd_create("weights", MFD_CLOEXEC);
    }
    if (model->num_params != 3 || ftruncate(file, 0) != 0 ||
        pwrite(file, data, size, 0) != (ssize_t) size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    char *class_names = NULL;
    hpct_status status = hpct_h5_load(model, path, values, &class_names);
    free(class_names);
    for (int i = 0; i < 3; i++) {
        if (status == HPCT_OK && values[i] == NULL)
            abort();
        free(values[i]);
    }
    load_fitting(path, model);
    return 0;
}
