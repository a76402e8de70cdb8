/* Weights in files: what is written, what is refused, and that a failure changes nothing. */
#include "nn/run/run.h"
#include "tests/unit/cases.h"
#include "tests/unit/nn/nn_small.h"

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/hpct-weights-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state)
{
    return mkdtemp(folder) == NULL;
}

static int count_files(void)
{
    int count = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

static int empty_folder(void **state)
{
    DIR *dir = opendir(folder);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] != '.')
            unlink(in_folder(entry->d_name));
    }
    closedir(dir);
    return 0;
}

static int remove_folder(void **state)
{
    empty_folder(state);
    return rmdir(folder);
}

/* Two parameters: dense/kernel [2][3], dense/bias [3]; 36 bytes. */
static hpct_model *tiny(uint64_t seed)
{
    hpct_model *model = hpct_model_new("tiny", HPCT_SHAPE(2));
    hpct_model_add_dense(model, &(hpct_dense){.units = 3});
    small_logits(model, seed);
    return model;
}

TEST_WITH(weights_are_read_back, NULL, empty_folder)
{
    hpct_model *model, *other;
    int batch = 4;
    hpct_optimizer sgd = {.kind = HPCT_SGD, .learning_rate = 0.1};
    hpct_model **both[] = {&model, &other};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hpct_model_builtin(both[i], "mnist-convnet"), HPCT_OK);
        assert_int_equal(hpct_model_compile(*both[i], HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, &sgd),
                         HPCT_OK);
        assert_int_equal(hpct_model_initialize(*both[i], (uint64_t) i + 1), HPCT_OK);
    }
    hpct_run_build_options options = {
        .backend = "cpu", .batch_sizes = &batch, .num_batch_sizes = 1};
    assert_int_equal(hpct_model_build(model, &options), HPCT_OK); /* saved from an arena */
    assert_int_equal(hpct_model_save_weights(model, in_folder("w")), HPCT_OK);
    assert_int_equal(hpct_model_load_weights(other, in_folder("w")), HPCT_OK);
    assert_same_weights(model, other, 0);
    assert_int_equal(hpct_model_initialize(model, 9), HPCT_OK);
    assert_int_equal(hpct_model_load_weights(model, in_folder("w")), HPCT_OK); /* into an arena */
    assert_same_weights(model, other, 0);
    assert_int_equal(count_files(), 1);
    hpct_model_free(model);
    hpct_model_free(other);
}

TEST_WITH(file_is_safetensors, NULL, empty_folder)
{
    static const char header[] = "{\"dense/kernel\":{\"dtype\":\"F32\",\"shape\":[2,3],"
                                 "\"data_offsets\":[0,24]},\"dense/bias\":{\"dtype\":\"F32\","
                                 "\"shape\":[3],\"data_offsets\":[24,36]}}";
    hpct_model *model = tiny(5);
    assert_int_equal(hpct_model_save_weights(model, in_folder("w")), HPCT_OK);
    struct stat info;
    assert_int_equal(stat(in_folder("w"), &info), 0);
    mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(info.st_mode & 0777, 0666 & ~mask);
    unsigned char bytes[400];
    FILE *file = fopen(in_folder("w"), "rb");
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    size_t padded = (sizeof header - 1 + 7) / 8 * 8;
    assert_int_equal(size, 8 + padded + 36);
    assert_true(bytes[0] == padded && bytes[1] == 0 && bytes[7] == 0);
    assert_memory_equal(bytes + 8, header, sizeof header - 1);
    float kernel[6];
    assert_int_equal(hpct_run_param_get(model, 0, kernel), HPCT_OK);
    assert_memory_equal(bytes + 8 + padded, kernel, sizeof kernel);
    hpct_model_free(model);
}

static void write_file(const char *name, uint64_t length, const char *header, size_t data)
{
    FILE *file = fopen(in_folder(name), "wb");
    fwrite(&length, sizeof length, 1, file);
    fwrite(header, 1, strlen(header), file);
    for (size_t i = 0; i < data; i++)
        fputc(0, file);
    fclose(file);
}

#define KERNEL "\"dense/kernel\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}"
#define BIAS "\"dense/bias\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[24,36]}"

/* Text: the header; number: the bytes behind it; with: what is written as the header's length,
 * NULL: the right one. Nothing changes in the model. */
static hpct_status load_header(const parse_case *c, char *got, size_t size)
{
    (void) got;
    (void) size;
    const uint64_t *length = c->with;
    hpct_model *model = tiny(5), *same = tiny(5);
    write_file("bad", length != NULL ? *length : strlen(c->text), c->text, (size_t) c->number);
    hpct_status status = hpct_model_load_weights(model, in_folder("bad"));
    assert_non_null(strstr(hpct_last_error(), in_folder("bad")));
    assert_same_weights(model, same, 0);
    hpct_model_free(model);
    hpct_model_free(same);
    return status;
}
#define LENGTH(bytes) (&(const uint64_t){bytes})

TEST_WITH(malformed_files_are_rejected, NULL, empty_folder)
{
    const parse_case cases[] = {
        {"{" KERNEL "," BIAS "}", HPCT_ERR_DATA, "not a safetensors file", 36, LENGTH(1ll << 40)},
        {"{" KERNEL "," BIAS "}", HPCT_ERR_DATA, "not a safetensors file", 36, LENGTH(100000)},
        {"{" KERNEL "," BIAS, HPCT_ERR_DATA, "not JSON", 36},
        {"[1]", HPCT_ERR_DATA, "not a JSON object", 36},
        {"{" KERNEL "," KERNEL "," BIAS "}", HPCT_ERR_DATA, "not JSON: duplicate", 36},
        {"{" KERNEL "}", HPCT_ERR_DATA, "\"dense/bias\" is missing", 24},
        {"{" KERNEL "," BIAS ",\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[36,40]}}",
         HPCT_ERR_DATA, "the model has no \"x\"", 40},
        {"{" KERNEL "," BIAS "}", HPCT_ERR_DATA, "behind the end of the file", 35},
        {"{" KERNEL "," BIAS "}", HPCT_ERR_DATA, "longer than its tensors", 40},
        {"{" KERNEL ",\"dense/bias\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[20,32]}}",
         HPCT_ERR_DATA, "overlaps", 36},
        {"{" KERNEL ",\"dense/bias\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[28,40]}}",
         HPCT_ERR_DATA, "a gap", 40},
        {"{" KERNEL ",\"dense/bias\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[24,36]}}",
         HPCT_ERR_DATA, "disagree", 36},
        {"{" KERNEL ",\"dense/bias\":{\"dtype\":\"F32\",\"shape\":[1,3],\"data_offsets\":[24,36]}}",
         HPCT_ERR_DATA, "does not have the model's shape 3", 36},
        {"{" KERNEL ",\"dense/bias\":{\"dtype\":\"I32\",\"shape\":[3],\"data_offsets\":[24,36]}}",
         HPCT_ERR_DATA, "is I32, not F32", 36},
        {"{" KERNEL ",\"dense/bias\":{\"dtype\":\"Q9\",\"shape\":[3],\"data_offsets\":[24,36]}}",
         HPCT_ERR_DATA, "dtype is missing or unknown", 36},
        {"{" KERNEL ",\"dense/bias\":{\"dtype\":\"F32\",\"shape\":[-3],\"data_offsets\":[24,36]}}",
         HPCT_ERR_DATA, "not a whole number", 36},
        {"{" KERNEL ",\"dense/bias\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],"
         "\"data_offsets\":[24,36]}}",
         HPCT_ERR_DATA, "too large", 36},
        {"{" KERNEL ",\"dense/bias\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,3],"
         "\"data_offsets\":[24,36]}}",
         HPCT_ERR_DATA, "at most 8 sizes", 36},
        {"{" KERNEL ",\"dense/bias\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[36,24]}}",
         HPCT_ERR_DATA, "not [begin, end]", 36},
        {"{" KERNEL ",\"dense/bias\":7}", HPCT_ERR_DATA, "dtype is missing or unknown", 36},
    };
    RUN_CASES(load_header, cases);
    hpct_model *model = tiny(5);
    write_file("bad", 0, "", 0);
    assert_int_equal(truncate(in_folder("bad"), 5), 0);
    assert_int_equal(hpct_model_load_weights(model, in_folder("bad")), HPCT_ERR_DATA);
    assert_int_equal(hpct_model_load_weights(model, in_folder("absent")), HPCT_ERR_NO_INPUT);
    assert_int_equal(hpct_model_load_weights(model, folder), HPCT_ERR_NO_INPUT);
    write_file("good", strlen("{" KERNEL "," BIAS "}"), "{" KERNEL "," BIAS "}", 36);
    assert_int_equal(hpct_model_load_weights(model, in_folder("good")), HPCT_OK);
    write_file("good", strlen("{\"__metadata__\":{\"a\":\"b\"}," KERNEL "," BIAS "}"),
               "{\"__metadata__\":{\"a\":\"b\"}," KERNEL "," BIAS "}", 36);
    assert_int_equal(hpct_model_load_weights(model, in_folder("good")), HPCT_OK);
    hpct_model_free(model);
}

#define WRAPPED(word)                                                                              \
    "{\"" word                                                                                     \
    "dense/kernel\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},\"" word           \
    "dense/bias\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[24,36]}}"

/* Names of torch.nn.DataParallel and torch.compile; of all tensors, or of none. */
TEST_WITH(words_before_all_names_are_left_out, NULL, empty_folder)
{
    static const char *const good[] = {WRAPPED("module."), WRAPPED("_orig_mod."),
                                       WRAPPED("_orig_mod.module."), WRAPPED("module._orig_mod.")};
    static const char *const bad[] = {
        WRAPPED("model."),
        "{" KERNEL
        ",\"module.dense/bias\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[24,36]}}"};
    hpct_model *model = tiny(5);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        write_file("good", strlen(good[i]), good[i], 36);
        assert_int_equal(hpct_model_load_weights(model, in_folder("good")), HPCT_OK);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_file("bad", strlen(bad[i]), bad[i], 36);
        assert_int_equal(hpct_model_load_weights(model, in_folder("bad")), HPCT_ERR_DATA);
        assert_non_null(strstr(hpct_last_error(), "is missing"));
    }
    hpct_model_free(model);
}

/* Number: the text's bytes; with: the file's name. */
static hpct_status load_other(const parse_case *c, char *got, size_t size)
{
    (void) got;
    (void) size;
    hpct_model *model = tiny(5), *same = tiny(5);
    FILE *file = fopen(in_folder(c->with), "wb");
    fwrite(c->text, 1, (size_t) c->number, file);
    fclose(file);
    hpct_status status = hpct_model_load_weights(model, in_folder(c->with));
    assert_non_null(strstr(hpct_last_error(), in_folder(c->with)));
    assert_same_weights(model, same, 0);
    hpct_model_free(model);
    hpct_model_free(same);
    return status;
}

/* What people have under the names of weights; is said, whatever the name's end. */
TEST_WITH(other_formats_are_named, NULL, empty_folder)
{
    static const char *const names[] = {"x.safetensors", "x.weights.h5", "x"};
    for (int i = 0; i < 3; i++) {
#define BYTES(text, words)                                                                         \
    {                                                                                              \
        text, HPCT_ERR_DATA, words, sizeof(text) - 1, names[i]                                     \
    }
        const parse_case cases[] = {
            BYTES("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n",
                  "git lfs pull"),
            BYTES("<!DOCTYPE html><html>404</html>", "a page of HTML"),
            BYTES("\n <HTML><head>", "a page of HTML"),
            BYTES("<?xml version=\"1.0\"?><Error/>", "a page of HTML or XML"),
            BYTES("PK\3\4\24\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\15\0\0\0metadata.json",
                  "a .keras archive: unzip it"),
            BYTES("PK\3\4\24\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\5\0\0\0a.npy",
                  "an .npz archive"),
            BYTES("PK\3\4\24\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\12\0\0\0x/data.pkl",
                  "a file of torch.save"),
            BYTES("PK\3\4\24\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\377\377\0\0x", "a zip"),
            BYTES("PK\3\4\24", "a zip archive"),
            BYTES("\x80\2}q\0.", "a pickle"),
            BYTES("\x1f\x8b\10\0", "a compressed file"),
            BYTES("\x93NUMPY\1\0", "an array of NumPy"),
            BYTES("{\"weight_map\":{}}", "is JSON"),
            BYTES("", "an empty file"),
        };
        RUN_CASES(load_other, cases);
    }
}

/* Its first bytes are the length of the header, which may be those of any other format. */
TEST_WITH(safetensors_are_not_mistaken_for_other_formats, NULL, empty_folder)
{
    static const unsigned lengths[] = {0x280 /* a pickle's */, 0x8b1f /* gzip's */, 0x22, 0x7b,
                                       0x3c};
    hpct_model *model = tiny(5);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t least = strlen("{" KERNEL "," BIAS "}");
        char header[0x9000];
        memset(header, ' ', sizeof header);
        memcpy(header, "{" KERNEL "," BIAS "}", least);
        header[lengths[i] > least ? lengths[i] : least] = '\0';
        write_file("w", lengths[i], header, 36);
        hpct_status status = hpct_model_load_weights(model, in_folder("w"));
        if (lengths[i] >= least && status != HPCT_OK)
            fail_msg("header of %u bytes: %s", lengths[i], hpct_last_error());
        if (lengths[i] < least) {
            assert_int_equal(status, HPCT_ERR_DATA);
            assert_non_null(strstr(hpct_last_error(), "not JSON"));
        }
    }
    hpct_model_free(model);
}

TEST_WITH(numbers_must_be_finite, NULL, empty_folder)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY};
    static const char text[] = "{" KERNEL "," BIAS "}";
    hpct_model *model = tiny(5), *same = tiny(5);
    for (int i = 0; i < 3; i++) {
        float bias[3];
        write_file("w", sizeof text - 1, text, 36);
        FILE *file = fopen(in_folder("w"), "r+b");
        fseek(file, (long) (8 + sizeof text - 1 + 24 + 4), SEEK_SET); /* the second of bias */
        fwrite(&odd[i], sizeof odd[i], 1, file);
        fclose(file);
        assert_int_equal(hpct_model_load_weights(model, in_folder("w")), HPCT_ERR_DATA);
        assert_non_null(strstr(hpct_last_error(), "1 of the 3 numbers of \"dense/bias\""));
        assert_same_weights(model, same, 0);
        assert_int_equal(hpct_model_load_any_weights(model, in_folder("w")), HPCT_OK);
        assert_int_equal(hpct_run_param_get(model, 1, bias), HPCT_OK);
        assert_memory_equal(&bias[1], &odd[i], sizeof(float));
        assert_int_equal(hpct_model_initialize(model, 5), HPCT_OK);
    }
    hpct_model_free(model);
    hpct_model_free(same);
}

TEST_WITH(names_of_other_formats_are_rejected, NULL, empty_folder)
{
    static const char *const bad[] = {"w.keras", "w.hdf5",  "w.npz", "w.H5",
                                      "w.pt",    "w.Keras", "w.ckpt"};
    static const char *const good[] = {"w", "w.safetensors", "run.v2", ".keras/w"};
    hpct_model *model = tiny(5);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(hpct_model_check_weights_name(bad[i]), HPCT_ERR_USAGE);
        assert_non_null(strstr(hpct_last_error(), ".weights.h5"));
        assert_int_equal(hpct_model_save_weights(model, in_folder(bad[i])), HPCT_ERR_USAGE);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(hpct_model_check_weights_name(good[i]), HPCT_OK);
    assert_int_equal(count_files(), 0);
    hpct_model_free(model);
}

/* As on a full disk: the file that was there stays, and nothing is left beside it. */
TEST_WITH(failed_save_keeps_the_old_file, NULL, empty_folder)
{
    hpct_model *model = tiny(5), *other = tiny(6), *back = tiny(7);
    assert_int_equal(hpct_model_save_weights(model, in_folder("w")), HPCT_OK);
    struct rlimit limit, small;
    getrlimit(RLIMIT_FSIZE, &limit);
    small = limit;
    small.rlim_cur = 100;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    hpct_status status = hpct_model_save_weights(other, in_folder("w"));
    setrlimit(RLIMIT_FSIZE, &limit);
    assert_int_equal(status, HPCT_ERR_IO);
    assert_non_null(strstr(hpct_last_error(), in_folder("w")));
    assert_int_equal(count_files(), 1);
    assert_int_equal(hpct_model_load_weights(back, in_folder("w")), HPCT_OK);
    assert_same_weights(back, model, 0);
    assert_int_equal(hpct_model_save_weights(model, in_folder("no/such/w")), HPCT_ERR_IO);
    hpct_model_free(model);
    hpct_model_free(other);
    hpct_model_free(back);
}

/* Dense layers of these names and sizes, ended by NULL. */
typedef struct dense_layer {
    const char *name;
    int units;
} dense_layer;

static hpct_model *chain(const dense_layer *layers, uint64_t seed)
{
    hpct_model *model = hpct_model_new("chain", HPCT_SHAPE(2));
    for (; layers->name != NULL; layers++) {
        hpct_model_name_layer(model, layers->name);
        hpct_model_add_dense(model, &(hpct_dense){.units = layers->units});
    }
    small_logits(model, seed);
    return model;
}
#define CHAIN(seed, ...) chain((const dense_layer[]){__VA_ARGS__, {NULL, 0}}, seed)

static bool has_values_of(const hpct_model *a, int i, const hpct_model *b, int k)
{
    float x[64], y[64];
    size_t count = hpct_graph_shape_count(&a->params[i].shape);
    assert_true(count <= 64 && count == hpct_graph_shape_count(&b->params[k].shape));
    assert_int_equal(hpct_run_param_get(a, i, x), HPCT_OK);
    assert_int_equal(hpct_run_param_get(b, k, y), HPCT_OK);
    return memcmp(x, y, count * sizeof *x) == 0;
}

/* Layer by layer: of a head of another shape not even the bias that would fit. */
TEST_WITH(layers_that_fit_are_loaded, NULL, empty_folder)
{
    hpct_model *saved = CHAIN(1, {"base", 3}, {"head", 5}),
               *model = CHAIN(2, {"base", 3}, {"wide", 4}, {"head", 5}),
               *initial = CHAIN(2, {"base", 3}, {"wide", 4}, {"head", 5}),
               *other = CHAIN(3, {"x", 3});
    char *skipped = NULL;
    hpct_load_options options = {.skip_mismatch = true, .skipped = &skipped};
    const char *names[] = {"a", "b"};
    assert_int_equal(hpct_model_set_class_names(saved, names, 2), HPCT_OK);
    assert_int_equal(hpct_model_save_weights(saved, in_folder("w")), HPCT_OK);
    assert_int_equal(hpct_model_load_weights(model, in_folder("w")), HPCT_ERR_DATA);
    assert_non_null(strstr(hpct_last_error(), "fit --skip-mismatch loads the layers that fit"));
    assert_same_weights(model, initial, 0);
    assert_int_equal(hpct_model_load_weights_with(model, in_folder("w"), &options), HPCT_OK);
    assert_string_equal(skipped, "wide (kernel is missing), head (kernel: another shape)");
    free(skipped);
    assert_true(has_values_of(model, 0, saved, 0) && has_values_of(model, 1, saved, 1));
    for (int i = 2; i < 6; i++)
        assert_true(has_values_of(model, i, initial, i));
    assert_null(model->class_names); /* they are those of the head */
    assert_int_equal(hpct_model_load_weights_with(other, in_folder("w"), &options), HPCT_ERR_DATA);
    assert_non_null(strstr(hpct_last_error(), "no weights that fit a layer of the model"));
    assert_int_equal(hpct_model_load_weights_with(saved, in_folder("w"), &options), HPCT_OK);
    assert_string_equal(skipped, ""); /* all were loaded */
    free(skipped);
    assert_non_null(saved->class_names);
    hpct_model_free(saved);
    hpct_model_free(model);
    hpct_model_free(initial);
    hpct_model_free(other);
}

/* Also of a file that fits in part. */
TEST_WITH(what_is_loaded_must_be_sound, NULL, empty_folder)
{
    hpct_model *saved = CHAIN(1, {"base", 3}, {"head", 5}),
               *model = CHAIN(2, {"base", 3}, {"head", 4}),
               *initial = CHAIN(2, {"base", 3}, {"head", 4});
    hpct_load_options options = {.skip_mismatch = true}, nan = {true, true, NULL};
    float values[6] = {0, 1, 2, NAN, 4, 5};
    assert_int_equal(hpct_run_param_set(saved, 0, values), HPCT_OK);
    assert_int_equal(hpct_model_save_weights(saved, in_folder("w")), HPCT_OK);
    assert_int_equal(hpct_model_load_weights_with(model, in_folder("w"), &options), HPCT_ERR_DATA);
    assert_non_null(strstr(hpct_last_error(), "are NaN or infinite"));
    assert_same_weights(model, initial, 0);
    assert_int_equal(hpct_model_load_weights_with(model, in_folder("w"), &nan), HPCT_OK);
    assert_true(has_values_of(model, 0, saved, 0));
    assert_int_equal(truncate(in_folder("w"), 250), 0);
    assert_int_equal(hpct_model_load_weights_with(model, in_folder("w"), &nan), HPCT_ERR_DATA);
    hpct_model_free(saved);
    hpct_model_free(model);
    hpct_model_free(initial);
}

/* The line stays readable. */
TEST_WITH(a_long_list_is_cut, NULL, empty_folder)
{
    dense_layer few[] = {{"base", 3}, {NULL, 0}}, many[32] = {{"base", 3}};
    char names[30][8], *skipped = NULL;
    for (int i = 0; i < 30; i++) {
        snprintf(names[i], sizeof names[i], "layer%d", i);
        many[i + 1] = (dense_layer){names[i], 3};
    }
    hpct_model *saved = chain(few, 1), *model = chain(many, 2);
    hpct_load_options options = {.skip_mismatch = true, .skipped = &skipped};
    assert_int_equal(hpct_model_save_weights(saved, in_folder("w")), HPCT_OK);
    assert_int_equal(hpct_model_load_weights_with(model, in_folder("w"), &options), HPCT_OK);
    assert_non_null(strstr(skipped, "layer15 (kernel is missing) and 14 more"));
    assert_null(strstr(skipped, "layer16"));
    free(skipped);
    hpct_model_free(saved);
    hpct_model_free(model);
}

TEST_WITH(there_must_be_weights_to_save, NULL, empty_folder)
{
    hpct_model *model = tiny(0);
    assert_int_equal(hpct_model_save_weights(model, in_folder("w")), HPCT_ERR_USAGE);
    assert_int_equal(count_files(), 0);
    hpct_model_free(model);
}

int main(void)
{
    return unit_run(make_folder, remove_folder);
}
