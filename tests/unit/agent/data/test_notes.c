/* agent/data: what a run says of its data set before step 1. */
#include "agent/data/dataset.h"
#include "tests/unit/agent/data/pictures.h"
#include "tests/unit/agent/data/trees.h"

#include <unistd.h>

/* ---- what is said ---- */

TEST(a_run_says_what_it_reads)
{
    char lines[4096] = "", warnings[4096] = "";
    const char *folder = TREE("train/a/1.png", "train/b/1.png", "train/c/1.png", "train/d/1.png",
                              "test/a/1.png", "test/d/1.png", "logo/1.png");
    hpct_model *model = NULL;
    assert_int_equal(hpct_model_builtin(&model, "mnist-cnn"), HPCT_OK);
    hpct_dataset *train = tree_opened(folder, HPCT_TRAIN), *test = tree_opened(folder, HPCT_TEST);
    FILE *out = fmemopen(lines, sizeof lines, "w"), *err = fmemopen(warnings, sizeof warnings, "w");
    hpct_dataset_announce(model, train, test, out, err);
    fclose(out);
    fclose(err);
    char want[4096];
    snprintf(want, sizeof want,
             "training: 4 pictures, 4 classes (a, b, c, ...), from %s/train\n"
             "validation: 2 pictures, 4 classes (a, b, c, ...), from %s/test\n",
             folder, folder);
    assert_string_equal(lines, want);
    assert_string_equal(
        warnings,
        "hpc-train: warning: training: 1 picture in no class's folder is left out "
        "(the first: logo/1.png)\n"
        "hpc-train: warning: training: there are 4 classes, the model has 10 (--classes 4, "
        "if it is a built-in one)\n");
    assert_false(hpct_dataset_is_same(train, test));
    hpct_dataset_free(test);
    test = tree_opened(tree_below(folder, "train"), HPCT_TEST);
    assert_true(hpct_dataset_is_same(train, test));
    err = fmemopen(warnings, sizeof warnings, "w");
    hpct_dataset_announce(model, train, test, NULL, err);
    fclose(err);
    assert_non_null(strstr(warnings, "THE VALIDATION PICTURES ARE THE TRAINING PICTURES"));
    hpct_dataset_free(test);
    hpct_dataset_free(train);
    hpct_model_free(model);
}

/* Training by folders, validation by numbers, or the reverse. */
TEST(numbers_beside_names_are_said)
{
    static uint8_t bytes[65536];
    char warnings[4096] = "";
    const char *folder = TREE("cat/1.png", "dog/1.png"), *shards = pictures_folder();
    size_t size = tree_tar(bytes, sizeof bytes,
                           (const char *const[]){"0.png", "0.cls", "1.png", "1.cls", NULL});
    pictures_write(shards, "w.tar", bytes, size, false);
    hpct_model *model = NULL;
    assert_int_equal(hpct_model_builtin(&model, "mnist-cnn"), HPCT_OK);
    hpct_dataset *named = tree_opened(folder, HPCT_TRAIN),
                 *numbered = tree_opened(shards, HPCT_TEST);
    assert_int_equal(hpct_model_set_class_names(model, (const char *const *) named->classes, 2),
                     HPCT_OK);
    const hpct_dataset *pairs[][2] = {{named, numbered}, {numbered, named}, {NULL, numbered}};
    for (int i = 0; i < 3; i++) {
        FILE *err = fmemopen(warnings, sizeof warnings, "w");
        hpct_dataset_announce(model, pairs[i][0], pairs[i][1], NULL, err);
        fclose(err);
        assert_non_null(strstr(warnings, "w.tar are numbers, those of "));
        assert_non_null(strstr(warnings, " have names: 0 is taken for cat, and so on"));
    }
    hpct_dataset_free(numbered);
    hpct_dataset_free(named);
    hpct_model_free(model);
}

TEST(odd_labels_are_said)
{
    static const uint8_t pixels[3 * 784], labels[] = {1, 2, 3};
    static uint8_t file[4096];
    char warnings[1024] = "";
    const char *folder = pictures_folder();
    size_t size = pictures_idx(file, 0x803, 3, (uint32_t[]){3, 28, 28}, pixels, sizeof pixels);
    pictures_write(folder, "train-images-idx3-ubyte", file, size, false);
    size = pictures_idx(file, 0x801, 1, (uint32_t[]){3}, labels, sizeof labels);
    pictures_write(folder, "train-labels-idx1-ubyte", file, size, false);
    hpct_model *model = NULL;
    assert_int_equal(hpct_model_builtin(&model, "mnist-cnn"), HPCT_OK);
    hpct_dataset *dataset = tree_opened(folder, HPCT_TRAIN);
    FILE *err = fmemopen(warnings, sizeof warnings, "w");
    hpct_dataset_announce(model, dataset, NULL, NULL, err);
    fclose(err);
    assert_non_null(strstr(warnings, "no picture has the label 0, the first label is 1"));
    assert_non_null(strstr(warnings, "there are 4 classes, the model has 10"));
    assert_int_equal(hpct_dataset_check(dataset, HPCT_SHAPE(28, 28), 3), HPCT_ERR_DATA);
    assert_non_null(strstr(hpct_last_error(), "no label is 0: do they begin at 1?"));
    hpct_dataset_free(dataset);
    hpct_model_free(model);
}

/* Colour for a model of one channel. */
TEST(turning_grey_is_said)
{
    const char *folder = TREE("a/1.png", "b/1.png");
    tree_put(folder, "b/2.png", "picture/png_grey");
    hpct_dataset *dataset = NULL;
    assert_int_equal(
        hpct_dataset_open_as(&dataset, folder, HPCT_TRAIN,
                             &(hpct_dataset_options){.channels = 1, .height = 7, .width = 9}),
        HPCT_OK);
    assert_non_null(strstr(dataset->notes, "2 of the 3 pictures looked at are in colour"));
    assert_int_equal(hpct_dataset_check(dataset, HPCT_SHAPE(28, 28, 1), 10), HPCT_ERR_DATA);
    assert_non_null(strstr(hpct_last_error(), "samples are 7x9x3 (turned grey: 7x9x1)"));
    hpct_dataset_free(dataset);
}

/* A camera's 12 bits in 16: the upper 8 of them are nearly black. */
TEST(lost_bits_are_said)
{
    const char *folder = TREE("a/1.png");
    tree_put(folder, "b/1.png", "picture/png_16");
    tree_put(folder, "b/2.png", "picture/png_16");
    tree_is_read(folder, HPCT_TRAIN, 3, "a,b", "", "2 of the 3 pictures looked at have 16 bits");
    unlink(tree_below(folder, "a/1.png"));
    tree_put(folder, "a/1.png", "picture/png_16"); /* of one size: decoded at once */
    tree_is_read(folder, HPCT_TRAIN, 3, "a,b", "", "3 of the 3 pictures looked at have 16 bits");
}

/* libjpeg's word for what may be damage: bytes in front of the end. */
TEST(bytes_too_many_are_said)
{
    tree_needs_pictures();
    const char *folder = pictures_folder();
    tree_put(folder, "a/1.jpg", "picture/jpeg");
    size_t size = pictures_seed("picture/jpeg", tree_seed, sizeof tree_seed);
    memcpy(tree_seed + size - 2, "abc\xff\xd9", 5);
    pictures_write(folder, "b/2.jpg", tree_seed, size + 3, false);
    tree_is_read(folder, HPCT_TRAIN, 2, "a,b", "", "1 picture has bytes that are not image data");
    tree_put(folder, "b/3.jpg", "picture/jpeg_grey"); /* of another size: decoded where asked for */
    hpct_dataset *dataset = NULL;
    assert_int_equal(
        hpct_dataset_open_as(&dataset, folder, HPCT_TRAIN, &(hpct_dataset_options){.check = true}),
        HPCT_OK);
    assert_non_null(strstr(dataset->notes, "may be damaged (the first: b/2.jpg)"));
    hpct_dataset_free(dataset);
}
