/* Weights in Keras' HDF5 files: what is written, what is refused, and that a failure changes
 * nothing. That Keras reads and writes the same is seen in tests/peers/nn_files.t. */
#include "nn/file/keras/groups_h5.h"
#include "nn/file/keras/hdf5.h"
#include "nn/run/run.h"
#include "tests/unit/nn/nn_small.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static char folder[] = "/tmp/hpct-weights-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[4][512];
    static int next;
    next = (next + 1) % 4;
    snprintf(path[next], sizeof path[next], "%s/%s", folder, name);
    return path[next];
}

static int make_folder(void **state)
{
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    unlink(in_folder("w.weights.h5"));
    unlink(in_folder("v.weights.h5"));
    unlink(in_folder("bad.h5"));
    return rmdir(folder); /* fails when a file is left beside them */
}

/* The model of tests/fuzz/corpus/weights_h5. conv2d/kernel [3][3][1][2], conv2d/bias [2],
 * dense/kernel [8][3]. */
static hpct_model *small(uint64_t seed)
{
    hpct_model *model = hpct_model_new("small", HPCT_SHAPE(4, 4, 1));
    hpct_model_add_conv2d(model, &(hpct_conv2d){.filters = 2, .kernel = {3, 3}});
    hpct_model_add_flatten(model);
    hpct_model_add_dense(model, &(hpct_dense){.units = 3, .no_bias = true});
    small_logits(model, seed);
    return model;
}

/* A file that Keras wrote: the weights are 0, 1, 2 … throughout. */
static const char *corpus(const char *name)
{
    static char path[PATH_MAX];
    const char *top = getenv("top_srcdir");
    snprintf(path, sizeof path, "%s/tests/fuzz/corpus/weights_h5/%s", top != NULL ? top : ".",
             name);
    return path;
}

static size_t read_file(const char *path, char *bytes, size_t size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t count = fread(bytes, 1, size, file);
    fclose(file);
    return count;
}

TEST(weights_come_back)
{
    static char first[65536], second[65536];
    hpct_model *model = small(1), *other = small(2);
    assert_int_equal(hpct_model_save_weights(model, in_folder("w.weights.h5")), HPCT_OK);
    time_t saved = time(NULL);
    assert_int_equal(hpct_model_load_weights(other, in_folder("w.weights.h5")), HPCT_OK);
    assert_same_weights(model, other, 0);
    while (time(NULL) == saved) /* HDF5 counts seconds, and 2 does for groups, too */
        usleep(10000);
    assert_int_equal(hpct_model_save_weights(other, in_folder("v.weights.h5")), HPCT_OK);
    size_t size = read_file(in_folder("w.weights.h5"), first, sizeof first);
    assert_int_equal(read_file(in_folder("v.weights.h5"), second, sizeof second), size);
    assert_memory_equal(first, second, size); /* same weights, same bytes: no times */
    hpct_model_free(model);
    hpct_model_free(other);
}

TEST(layout_is_keras_3)
{
    hpct_keras_hdf5 *file;
    hpct_model *model = small(1);
    float bias[2], kept[2];
    assert_int_equal(hpct_model_save_weights(model, in_folder("w.weights.h5")), HPCT_OK);
    assert_int_equal(hpct_keras_hdf5_open(&file, in_folder("w.weights.h5")), HPCT_OK);
    assert_true(hpct_keras_hdf5_has(file, "/vars"));
    assert_true(hpct_keras_hdf5_has(file, "/layers/flatten/vars"));
    assert_true(hpct_keras_hdf5_has_attribute(file, "/layers/conv2d/vars", "name"));
    assert_int_equal(hpct_keras_hdf5_check(file, "/layers/conv2d/vars/0", &HPCT_SHAPE(3, 3, 1, 2)),
                     HPCT_OK);
    assert_int_equal(hpct_keras_hdf5_check(file, "/layers/conv2d/vars/1", &HPCT_SHAPE(2)), HPCT_OK);
    assert_int_equal(hpct_keras_hdf5_check(file, "/layers/dense/vars/0", &HPCT_SHAPE(8, 3)),
                     HPCT_OK);
    assert_false(hpct_keras_hdf5_has(file, "/layers/dense/vars/1"));
    assert_int_equal(hpct_keras_hdf5_read(file, "/layers/conv2d/vars/1", bias), HPCT_OK);
    assert_int_equal(hpct_run_param_get(model, 1, kept), HPCT_OK);
    assert_memory_equal(bias, kept, sizeof bias);
    hpct_keras_hdf5_close(file);
    hpct_model_free(model);
}

/* Normalization's count: a number without a shape, an integer in the file. */
TEST(counters_are_integers)
{
    hpct_keras_hdf5 *file;
    hpct_model *models[2];
    float values[3] = {0.5F, 2, 77}, got = 0;
    for (int k = 0; k < 2; k++) {
        models[k] = hpct_model_new("counter", HPCT_SHAPE(1));
        hpct_model_add_normalization(models[k]);
        hpct_model_add_dense(models[k], &(hpct_dense){.units = 2});
        small_logits(models[k], 1);
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(hpct_run_param_set(models[0], i, &values[i]), HPCT_OK);
    assert_int_equal(hpct_model_save_weights(models[0], in_folder("w.weights.h5")), HPCT_OK);
    assert_int_equal(hpct_model_load_weights(models[1], in_folder("w.weights.h5")), HPCT_OK);
    assert_same_weights(models[0], models[1], 0);
    assert_int_equal(hpct_keras_hdf5_open(&file, in_folder("w.weights.h5")), HPCT_OK);
    assert_int_equal(
        hpct_keras_hdf5_check(file, "/layers/normalization/vars/2", &(hpct_shape){.rank = 0}),
        HPCT_OK);
    assert_int_equal(hpct_keras_hdf5_check(file, "/layers/normalization/vars/2", &HPCT_SHAPE(1)),
                     HPCT_ERR_DATA);
    assert_int_equal(hpct_keras_hdf5_read(file, "/layers/normalization/vars/2", &got), HPCT_OK);
    assert_true(got == 77);
    hpct_keras_hdf5_close(file);
    assert_int_equal(hpct_model_save_weights(models[0], in_folder("bad.h5.safetensors")), HPCT_OK);
    assert_int_equal(hpct_run_param_set(models[1], 2, &values[0]), HPCT_OK);
    assert_int_equal(hpct_model_load_weights(models[1], in_folder("bad.h5.safetensors")), HPCT_OK);
    assert_same_weights(models[0], models[1], 0);
    unlink(in_folder("bad.h5.safetensors"));
    hpct_model_free(models[0]);
    hpct_model_free(models[1]);
}

TEST(keras_own_files_are_read)
{
    static const char *const names[] = {"keras3", "keras2",       "keras2-chunks",
                                        "whole",  "whole-latest", "keras3-15"};
    for (int turn = 0; turn < 12; turn++) {
        const int i = turn % 6;
        char *skipped = NULL;
        float values[64], next = 0;
        static char bytes[65536];
        hpct_model *model = small(1);
        size_t size = read_file(corpus(names[i]), bytes, sizeof bytes);
        FILE *file = fopen(in_folder("bad.h5"), "wb"); /* the name says the format */
        assert_int_equal(fwrite(bytes, 1, size, file), size);
        fclose(file);
        hpct_load_options options = {.skip_mismatch = turn >= 6, .skipped = &skipped};
        if (hpct_model_load_weights_with(model, in_folder("bad.h5"), &options) != HPCT_OK)
            fail_msg("%s", hpct_last_error());
        assert_string_equal(skipped, "");
        free(skipped);
        for (int p = 0; p < model->num_params; p++) {
            assert_int_equal(hpct_run_param_get(model, p, values), HPCT_OK);
            for (size_t k = 0; k < hpct_graph_shape_count(&model->params[p].shape); k++)
                assert_true(values[k] == next++);
        }
        hpct_model_free(model);
    }
}

static void write_damaged(size_t at, unsigned char byte)
{
    static char bytes[65536];
    size_t size = read_file(corpus("whole"), bytes, sizeof bytes);
    bytes[at] = (char) byte;
    FILE *file = fopen(in_folder("bad.h5"), "wb");
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

/* Of a whole model that Keras 3 wrote; each of these bytes makes libhdf5 1.10.8 crash, and the last
 * one makes it read without end. */
TEST(what_crashes_hdf5_is_refused)
{
    static const struct {
        size_t at;
        unsigned char byte;
    } damages[] = {{974, 85},   {1991, 199}, {4827, 6},  {4831, 89},  {4852, 3},  {4874, 84},
                   {4897, 196}, {4957, 56},  {4996, 10}, {7757, 201}, {4952, 178}};
    struct rlimit before, two_seconds;
    getrlimit(RLIMIT_CPU, &before);
    two_seconds = before;
    two_seconds.rlim_cur = 2; /* the child's, too */
    hpct_model *model = small(1), *same = small(1);
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        write_damaged(damages[i].at, damages[i].byte);
        if (i == sizeof damages / sizeof *damages - 1)
            assert_int_equal(setrlimit(RLIMIT_CPU, &two_seconds), 0);
        hpct_status status = hpct_model_load_weights(model, in_folder("bad.h5"));
        if (status != HPCT_ERR_DATA || strstr(hpct_last_error(), "bad.h5: ") == NULL)
            fail_msg("damage %zu: %d %s", i, (int) status, hpct_last_error());
        assert_same_weights(model, same, 0);
    }
    assert_int_equal(setrlimit(RLIMIT_CPU, &before), 0);
    hpct_model_free(model);
    hpct_model_free(same);
}

static void name_layers(hpct_model *model, const char *conv2d, const char *dense)
{
    snprintf(model->layers[0].name, sizeof model->layers[0].name, "%s", conv2d);
    snprintf(model->layers[2].name, sizeof model->layers[2].name, "%s", dense);
}

/* Keras 2's file, with layers conv2d and dense, in models that call them otherwise: numbered
 * otherwise, a layer would be taken for the wrong one by its name. Its weights are 0, 1, 2 … */
TEST(renamed_layers_are_loaded_by_order)
{
    static const char *const names[][2] = {{"first", "last"}, {"dense", "dense_1"}};
    char *whole = realpath(corpus("keras2"), NULL);
    assert_non_null(whole);
    assert_int_equal(symlink(whole, in_folder("renamed.h5")), 0);
    for (int i = 0; i < 3; i++) {
        char *skipped = NULL;
        float next = 0, values[64];
        hpct_model *model = small(1);
        hpct_load_options options = {.skip_mismatch = true, .skipped = &skipped};
        name_layers(model, i < 2 ? names[i][0] : "dense", i < 2 ? names[i][1] : "conv2d");
        hpct_status status = hpct_model_load_weights_with(model, in_folder("renamed.h5"), &options);
        assert_int_equal(status, i < 2 ? HPCT_OK : HPCT_ERR_DATA); /* known names: none fits */
        assert_true(i == 2 || skipped[0] == '\0');
        for (int p = 0; p < model->num_params && i < 2; p++) {
            assert_int_equal(hpct_run_param_get(model, p, values), HPCT_OK);
            for (size_t k = 0; k < hpct_graph_shape_count(&model->params[p].shape); k++)
                assert_true(values[k] == next++);
        }
        free(skipped);
        hpct_model_free(model);
    }
    unlink(in_folder("renamed.h5"));
    free(whole);
}

/* Keras' network has the same layers in the same order, but another padding. */
TEST(forms_of_torchvision_need_their_own_names)
{
    hpct_model *keras = small(1), *model = small(2), *twin = small(3);
    hpct_load_options fitting = {.skip_mismatch = true};
    assert_int_equal(hpct_model_save_weights(keras, in_folder("w.weights.h5")), HPCT_OK);
    name_layers(model, "features.0", "classifier");
    name_layers(twin, "features.0", "classifier");
    model->torchvision = twin->torchvision = "small";
    const char *files[] = {in_folder("w.weights.h5"), corpus("keras2")};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hpct_model_load_weights(model, files[i]), HPCT_ERR_DATA);
        assert_non_null(
            strstr(hpct_last_error(), "it has \"conv2d\" where model small has \"features.0\""));
        assert_int_equal(hpct_model_load_weights_with(model, files[i], &fitting), HPCT_ERR_DATA);
    }
    assert_int_equal(hpct_model_save_weights(model, in_folder("w.weights.h5")), HPCT_OK);
    assert_int_equal(hpct_model_load_weights(twin, in_folder("w.weights.h5")), HPCT_OK);
    assert_same_weights(model, twin, 0);
    hpct_model_free(keras);
    hpct_model_free(model);
    hpct_model_free(twin);
}

/* Keras 2's file with one text in the place of another, which is as long, wherever it is. */
static void assert_changed_is_refused(const char *old, const char *new, const char *message)
{
    static char bytes[65536];
    size_t length = strlen(old), found = 0;
    size_t size = read_file(corpus("keras2"), bytes, sizeof bytes);
    for (size_t i = 0; i + length <= size; i++) {
        if (memcmp(bytes + i, old, length) != 0)
            continue;
        memcpy(bytes + i, new, length);
        found++;
    }
    assert_true(found > 0);
    FILE *file = fopen(in_folder("changed.h5"), "wb");
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
    hpct_model *model = small(1);
    assert_int_equal(hpct_model_load_weights(model, in_folder("changed.h5")), HPCT_ERR_DATA);
    if (strstr(hpct_last_error(), message) == NULL)
        fail_msg("%s", hpct_last_error());
    unlink(in_folder("changed.h5"));
    hpct_model_free(model);
}

/* The same file, had Keras written it on another backend: Keras 1 shows it by its names alone. */
TEST(kernels_of_theano_are_refused)
{
    assert_changed_is_refused("tensorflow", "theano\0\0\0", "Theano");
    assert_changed_is_refused("kernel:0", "kernel_W", "Keras 1 on Theano");
}

/* gamma and beta of a normalization, say, have one shape. */
TEST(weights_in_another_order_are_refused)
{
    assert_changed_is_refused("bias:0", "beta:0", "beta:0\" comes where \"conv2d/bias\" should");
}

/* A file like that of small(), with one thing wrong. */
typedef struct fault {
    const char *top;     /* instead of "layers" */
    const char *without; /* this dataset */
    const char *extra_group, *extra;
    int bias;                   /* instead of 2 */
    const char *conv2d, *dense; /* what the layers are called */
    const char *message;
} fault;

static void write_faulty(const fault *f)
{
    hpct_keras_hdf5 *file;
    char path[128];
    float values[64] = {0};
    const char *top = f->top != NULL ? f->top : "layers";
    const struct {
        const char *name;
        hpct_shape shape;
    } sets[] = {{"conv2d/vars/0", HPCT_SHAPE(3, 3, 1, 2)},
                {"conv2d/vars/1", HPCT_SHAPE(f->bias > 0 ? f->bias : 2)},
                {"dense/vars/0", HPCT_SHAPE(8, 3)}};
    static const char *const groups[] = {"", "/conv2d", "/conv2d/vars", "/dense", "/dense/vars"};
    assert_int_equal(hpct_keras_hdf5_create(&file), HPCT_OK);
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        snprintf(path, sizeof path, "%s%s", top, groups[i]);
        const char *name = i == 2 ? f->conv2d : i == 4 ? f->dense : NULL;
        assert_int_equal(hpct_keras_hdf5_make_group(file, path, name), HPCT_OK);
    }
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        snprintf(path, sizeof path, "%s/%s", top, sets[i].name);
        if (f->without == NULL || strcmp(f->without, sets[i].name) != 0)
            assert_int_equal(hpct_keras_hdf5_write(file, path, &sets[i].shape, values), HPCT_OK);
    }
    if (f->extra_group != NULL) {
        assert_int_equal(hpct_keras_hdf5_make_group(file, f->extra_group, NULL), HPCT_OK);
        snprintf(path, sizeof path, "%s/vars", f->extra_group);
        assert_int_equal(hpct_keras_hdf5_make_group(file, path, NULL), HPCT_OK);
    }
    if (f->extra != NULL)
        assert_int_equal(hpct_keras_hdf5_write(file, f->extra, &HPCT_SHAPE(1), values), HPCT_OK);
    int fd = open(in_folder("bad.h5"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(hpct_keras_hdf5_save(file, fd, "bad.h5"), HPCT_OK);
    close(fd);
    hpct_keras_hdf5_close(file);
}

TEST(faulty_files_are_refused)
{
    static const fault faults[] = {
        {.top = "layer", .message = "neither layers nor layer_names"},
        {.without = "dense/vars/0",
         .message = "layer \"dense\" (Dense) has 1 weights, but the file has 0"},
        {.without = "conv2d/vars/0",
         .message = "layer \"conv2d\" (Conv2D) has 2 weights, but the file has 1"},
        {.without = "conv2d/vars/1",
         .extra = "layers/conv2d/vars/bias",
         .message = "vars/1 is missing"},
        {.extra = "layers/dense/vars/1", .message = "has 1 weights, but the file has 2"},
        {.extra_group = "layers/dense_1",
         .extra = "layers/dense_1/vars/0",
         .message = "no layer for the weights /layers/dense_1"},
        {.bias = 3, .message = "conv2d/vars/1 does not have the model's shape 2"},
        {.extra_group = "layers/flatten",
         .extra = "layers/flatten/vars/0",
         .message = "layer \"flatten\" (Flatten) has 0 weights, but the file has 1"},
        {.extra_group = "layers/dense/lora",
         .extra = "layers/dense/lora/vars/0",
         .message = "no layer for the weights /layers/dense/lora/vars"},
        {.extra_group = "_layer_checkpoint_dependencies", .message = "weights both in"},
        {.conv2d = "dense",
         .dense = "conv2d",
         .message = "names in another order: \"dense\" comes where the model has \"conv2d\""},
    };
    static const fault none = {.extra_group = "layers/activation"},
                       older = {.top = "_layer_checkpoint_dependencies"},
                       state_of_random = {.extra_group = "layers/dense/seed_generator",
                                          .extra = "layers/dense/seed_generator/vars/0"},
                       counted = {.conv2d = "conv2d_1", .dense = "dense"};
    hpct_model *model = small(5), *same = small(5);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        write_faulty(&faults[i]);
        assert_int_equal(hpct_model_load_weights(model, in_folder("bad.h5")), HPCT_ERR_DATA);
        if (strstr(hpct_last_error(), faults[i].message) == NULL ||
            strstr(hpct_last_error(), in_folder("bad.h5")) == NULL)
            fail_msg("case %zu: %s", i, hpct_last_error());
        assert_same_weights(model, same, 0);
    }
    write_faulty(&none);
    assert_int_equal(hpct_model_load_weights(model, in_folder("bad.h5")), HPCT_OK);
    write_faulty(&older);
    assert_int_equal(hpct_model_load_weights(model, in_folder("bad.h5")), HPCT_OK);
    write_faulty(&counted);
    assert_int_equal(hpct_model_load_weights(model, in_folder("bad.h5")), HPCT_OK);
    write_faulty(&state_of_random);
    assert_int_equal(hpct_model_load_weights(model, in_folder("bad.h5")), HPCT_OK);
    FILE *file = fopen(in_folder("bad.h5"), "wb");
    fputs("not HDF5", file);
    fclose(file);
    assert_int_equal(hpct_model_load_weights(model, in_folder("bad.h5")), HPCT_ERR_DATA);
    assert_int_equal(hpct_model_load_weights(model, in_folder("absent.h5")), HPCT_ERR_NO_INPUT);
    hpct_model_free(model);
    hpct_model_free(same);
}

/* Of files with one thing wrong the layers that are right, by name where the file has names. */
TEST(layers_that_fit_are_loaded)
{
    static const struct {
        fault fault;
        const char *skipped;
        bool conv2d, dense; /* loaded */
    } cases[] = {
        {{.bias = 3},
         "conv2d (/layers/conv2d/vars/1 does not have the model's shape 2)",
         false,
         true},
        {{.without = "dense/vars/0"}, "dense (0 weights in the file, not 1)", true, false},
        {{.without = "conv2d/vars/1", .extra = "layers/conv2d/vars/bias"},
         "conv2d (/layers/conv2d/vars/1 is missing)",
         false,
         true},
        {{.extra_group = "layers/dense_1", .extra = "layers/dense_1/vars/0"}, "", true, true},
        {{.conv2d = "conv2d", .dense = "conv2d_7"}, "", true, true},
        {{.conv2d = "dense", .dense = "other"}, NULL, false, false},
        {{.conv2d = "conv2d", .dense = "conv2d"}, "dense (missing)", true, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hpct_model *model = small(5), *same = small(5);
        char *skipped = NULL;
        hpct_load_options options = {.skip_mismatch = true, .skipped = &skipped};
        write_faulty(&cases[i].fault);
        hpct_status status = hpct_model_load_weights_with(model, in_folder("bad.h5"), &options);
        assert_int_equal(status, cases[i].skipped != NULL ? HPCT_OK : HPCT_ERR_DATA);
        if (cases[i].skipped != NULL && strcmp(skipped, cases[i].skipped) != 0)
            fail_msg("case %zu: %s", i, skipped);
        free(skipped);
        for (int p = 0; p < 3; p++) { /* the file has zeros; the first and the last are kernels */
            float now[64], before[64];
            size_t bytes = hpct_graph_shape_count(&model->params[p].shape) * sizeof(float);
            assert_int_equal(hpct_run_param_get(model, p, now), HPCT_OK);
            assert_int_equal(hpct_run_param_get(same, p, before), HPCT_OK);
            bool loaded = p < 2 ? cases[i].conv2d : cases[i].dense;
            if (p != 1 && (memcmp(now, before, bytes) != 0) != loaded)
                fail_msg("case %zu: parameter %d", i, p);
        }
        hpct_model_free(model);
        hpct_model_free(same);
    }
}

/* Loads what fits of w.weights.h5, and sees what is skipped. */
static void load_fitting(hpct_model *model, const char *want)
{
    char *skipped = NULL;
    hpct_load_options options = {.skip_mismatch = true, .skipped = &skipped};
    if (hpct_model_load_weights_with(model, in_folder("w.weights.h5"), &options) != HPCT_OK)
        fail_msg("%s", hpct_last_error());
    assert_string_equal(skipped, want);
    free(skipped);
}

static hpct_model *nested(hpct_model *model, const char *first)
{
    model->layers[0].nest = hpct_model_add_nest(model, "net", true, 0);
    model->nests[0].input = 0;
    model->nests[0].output = model->layers[0].tensor;
    snprintf(model->layers[0].name, sizeof model->layers[0].name, "%s", first);
    return model;
}

/* By name, wherever the model has them, and by order. */
TEST(layers_of_nested_models_that_fit_are_loaded)
{
    hpct_model *from = nested(small(5), "conv2d"), *same = nested(small(6), "conv2d"),
               *flat = small(7), *renamed = nested(small(8), "first");
    assert_int_equal(hpct_model_save_weights(from, in_folder("w.weights.h5")), HPCT_OK);
    hpct_model *const models[] = {same, flat, renamed};
    for (int i = 0; i < 3; i++) {
        load_fitting(models[i], "");
        assert_same_weights(models[i], from, 0);
        hpct_model_free(models[i]);
    }
    hpct_model_free(from);
}

static hpct_model *two_kernels(uint64_t seed, const char *second)
{
    const hpct_conv2d conv = {.filters = 1, .kernel = {2, 2}, .no_bias = true};
    hpct_model *model = hpct_model_new("two", HPCT_SHAPE(4, 4, 1));
    hpct_model_add_conv2d(model, &conv);
    hpct_model_add_conv2d(model, &conv);
    hpct_model_add_flatten(model);
    small_logits(model, seed);
    snprintf(model->layers[1].name, sizeof model->layers[1].name, "%s", second);
    return nested(model, "conv2d");
}

/* Of a.c and b.c, in nested models, the first a functional one; Keras 2 lists the weights of both
 * in one list: by name, or by order, of trained ones before the others. */
TEST(weights_of_a_nested_model_are_told_apart)
{
    hpct_model *model = hpct_model_new("two", HPCT_SHAPE(4, 4, 1));
    const hpct_conv2d conv = {.filters = 1, .kernel = {2, 2}, .no_bias = true};
    const hpct_batch_normalization norm = {.momentum = 0.9, .epsilon = 1e-3};
    hpct_keras_h5_group *groups = NULL;
    int params[5];
    hpct_model_add_nest(model, "a", false, 0);
    hpct_model_add_nest(model, "b", true, 1);
    hpct_model_add_conv2d(model, &conv);
    hpct_model_add_batch_normalization(model, &norm);
    model->layers[0].nest = 1;
    model->layers[1].nest = 2;
    model->nests[1].input = model->layers[0].tensor;
    model->nests[0].output = model->nests[1].output = model->layers[1].tensor;
    assert_int_equal(hpct_keras_h5_list_groups(model, "layers", &groups), HPCT_OK);
    assert_string_equal(groups[0].name, "functional/layers/conv2d");
    assert_string_equal(groups[1].name, "functional/layers/sequential/layers/batch_normalization");
    char *const named[] = {"batch_normalization/gamma", "x/conv2d/kernel:0",
                           "batch_normalization/beta", "batch_normalization/moving_mean",
                           "batch_normalization/moving_variance"};
    char *const ordered[] = {"c_5/kernel", "n_5/gamma", "n_5/beta", "n_5/moving_mean",
                             "n_5/moving_variance"};
    char *const wrong[] = {"n_5/gamma", "c_5/kernel", "n_5/beta", "n_5/moving_mean",
                           "n_5/moving_variance"};
    hpct_keras_h5_list list = {model, groups, 2, named, 5};
    assert_true(hpct_keras_h5_match_list(&list, params));
    assert_true(params[0] == 1 && params[1] == 0 && params[2] == 2);
    list.weights = ordered;
    assert_true(hpct_keras_h5_match_list(&list, params));
    assert_true(params[0] == 0 && params[1] == 1 && params[4] == 4);
    list.weights = wrong;
    assert_false(hpct_keras_h5_match_list(&list, params));
    free(groups);
    hpct_model_free(model);
}

/* A nested model may have a name that the outer one has, too. */
TEST(of_layers_of_one_name_that_of_the_place_is_loaded)
{
    float want[4], got[4];
    hpct_model *from = two_kernels(1, "conv2d"), *to = two_kernels(2, "other");
    assert_int_equal(hpct_model_save_weights(from, in_folder("w.weights.h5")), HPCT_OK);
    load_fitting(to, "other (missing)");
    assert_int_equal(hpct_run_param_get(from, 0, want), HPCT_OK);
    assert_int_equal(hpct_run_param_get(to, 0, got), HPCT_OK);
    assert_memory_equal(got, want, sizeof got);
    hpct_model_free(from);
    hpct_model_free(to);
}

/* As on a full disk; also when the process ends there must be nothing left to fail. */
TEST(a_failed_save_leaves_the_old_file)
{
    hpct_model *model = small(5), *other = small(6), *back = small(7);
    assert_int_equal(hpct_model_save_weights(model, in_folder("w.weights.h5")), HPCT_OK);
    struct rlimit limit, low;
    getrlimit(RLIMIT_FSIZE, &limit);
    low = limit;
    low.rlim_cur = 1000;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &low);
    hpct_status status = hpct_model_save_weights(other, in_folder("w.weights.h5"));
    setrlimit(RLIMIT_FSIZE, &limit);
    assert_int_equal(status, HPCT_ERR_IO);
    assert_non_null(strstr(hpct_last_error(), in_folder("w.weights.h5")));
    assert_int_equal(hpct_model_load_weights(back, in_folder("w.weights.h5")), HPCT_OK);
    assert_same_weights(back, model, 0);
    assert_int_equal(hpct_model_save_weights(other, in_folder("w.weights.h5")), HPCT_OK);
    hpct_model_free(model);
    hpct_model_free(other);
    hpct_model_free(back);
}

/* What a file is decides, not what it is called. */
TEST(it_may_have_another_name)
{
    hpct_model *model = small(5), *back = small(7);
    assert_int_equal(hpct_model_save_weights(model, in_folder("named.weights.h5")), HPCT_OK);
    assert_int_equal(rename(in_folder("named.weights.h5"), in_folder("named.safetensors")), 0);
    assert_int_equal(hpct_model_load_weights(back, in_folder("named.safetensors")), HPCT_OK);
    assert_same_weights(back, model, 0);
    unlink(in_folder("named.safetensors"));
    hpct_model_free(model);
    hpct_model_free(back);
}

TEST(a_name_must_be_one_that_keras_opens)
{
    hpct_model *model = small(5);
    assert_int_equal(hpct_model_save_weights(model, in_folder("w.h5")), HPCT_ERR_USAGE);
    assert_int_equal(hpct_model_check_weights_name("w.h5"), HPCT_ERR_USAGE);
    assert_int_equal(hpct_model_check_weights_name("w.weights.h5"), HPCT_OK);
    assert_int_equal(hpct_model_check_weights_name("w.safetensors"), HPCT_OK);
    hpct_model_free(model);
}

int main(void)
{
    return unit_run(make_folder, remove_folder);
}
