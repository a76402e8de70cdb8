/* Fuzz target: weights in Keras' HDF5 files, of a small model. libhdf5 crashes on some of them, in
 * the child process that reads them: the caller goes on, with all weights of a layer or none. */
#include "nn/file/keras/weights_h5.h"
#include "tests/fuzz/fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

/* The model whose weights the corpus holds. */
static hpct_model *make_model(void)
{
    hpct_model *model = hpct_model_new("small", HPCT_SHAPE(4, 4, 1));
    hpct_model_add_conv2d(model, &(hpct_conv2d){.filters = 2, .kernel = {3, 3}});
    hpct_model_add_flatten(model);
    hpct_model_add_dense(model, &(hpct_dense){.units = 3, .no_bias = true});
    return model;
}

/* skips: NULL if all weights must fit. */
static void load(const char *path, const hpct_model *model, hpct_keras_skips *skips)
{
    float *values[3] = {NULL, NULL, NULL};
    hpct_keras_h5_texts texts = {0};
    hpct_status status = hpct_keras_h5_read(model, path, values, &texts, skips);
    bool conv2d = values[0] != NULL && values[1] != NULL, dense = values[2] != NULL;
    if (status != HPCT_OK && status != HPCT_ERR_DATA)
        abort();
    if (status == HPCT_OK && skips == NULL && !(conv2d && dense))
        abort();
    if (status == HPCT_OK && skips != NULL &&
        ((values[0] == NULL) != (values[1] == NULL) || skips->loaded != conv2d + dense ||
         skips->loaded + skips->count != 2))
        abort();
    for (int i = 0; i < 3; i++)
        free(values[i]);
    free(texts.class_names);
    free(texts.trained_with);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static hpct_model *model;
    static int file = -1;
    char path[64];
    hpct_keras_skips skips = {0};
    if (model == NULL) {
        model = make_model();
        file = memfd_create("weights", MFD_CLOEXEC);
    }
    if (model->num_params != 3 || ftruncate(file, 0) != 0 ||
        pwrite(file, data, size, 0) != (ssize_t) size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    load(path, model, NULL);
    load(path, model, &skips);
    free(skips.text);
    return 0;
}
