/* agent/data: what people's folders, shards and downloads are taken for: which folder is a split,
 * which a class, and what is refused because it cannot be told. After public reports. */
#include "config.h"

#include "agent/data/dataset.h"
#include "agent/data/levels.h"
#include "agent/data/split_name.h"
#include "tests/unit/pictures.h"
#include "tests/unit/unit.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>
#include <unistd.h>

static uint8_t seed[65536];

static void needs_pictures(void)
{
#if !defined(HAVE_LIBJPEG) || !defined(HAVE_LIBPNG)
    skip();
#endif
}

/* Pictures of a fresh folder. */
static const char *tree(const char *const *names)
{
    const char *folder = pictures_folder();
    size_t size = pictures_seed("picture/png", seed, sizeof seed);
    for (; *names != NULL; names++)
        pictures_write(folder, *names, seed, size, false);
    return folder;
}
#define TREE(...) tree((const char *const[]){__VA_ARGS__, NULL})

static void put(const char *folder, const char *name, const char *from)
{
    size_t size = pictures_seed(from, seed, sizeof seed);
    pictures_write(folder, name, seed, size, false);
}

static char *below(const char *folder, const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void empty_folder(const char *folder, const char *name)
{
    assert_int_equal(mkdir(below(folder, name), 0755), 0);
}

static hpct_dataset *opened(const char *path, hpct_split split)
{
    hpct_dataset *dataset = NULL;
    if (hpct_dataset_open(&dataset, path, split) != HPCT_OK)
        fail_msg("%s", hpct_last_error());
    return dataset;
}

/* The split has so many pictures, of these classes (joined by ','), from PATH/FROM, and these words
 * in its notes ("": none). */
static void is_read(const char *path, hpct_split split, size_t pictures, const char *classes,
                    const char *from, const char *notes)
{
    char have[4096] = "";
    hpct_dataset *dataset = opened(path, split);
    assert_int_equal(hpct_dataset_size(dataset), pictures);
    for (int i = 0; i < dataset->num_classes; i++)
        snprintf(have + strlen(have), sizeof have - strlen(have), "%s%s", i > 0 ? "," : "",
                 dataset->classes[i]);
    assert_string_equal(have, classes);
    const char *source = hpct_dataset_source(dataset);
    assert_true(strncmp(source, path, strlen(path)) == 0);
    assert_string_equal(source + strlen(path) + (from[0] != '\0'), from);
    if (notes[0] == '\0' ? dataset->notes != NULL
                         : dataset->notes == NULL || strstr(dataset->notes, notes) == NULL)
        fail_msg("the notes are '%s', not '%s'", dataset->notes, notes);
    hpct_dataset_free(dataset);
}

static void refused(const char *path, hpct_split split, hpct_status status, const char *why)
{
    hpct_dataset *dataset = NULL;
    assert_int_equal(hpct_dataset_open(&dataset, path, split), status);
    if (strstr(hpct_last_error(), why) == NULL)
        fail_msg("'%s' should say '%s'", hpct_last_error(), why);
}

/* ---- splits ---- */

static void names_tell_the_split(void **state)
{
    (void) state;
    static const struct {
        const char *name;
        int word, within;
    } cases[] = {
        {"train", HPCT_TRAIN, HPCT_TRAIN},
        {"Training", HPCT_TRAIN, HPCT_TRAIN},
        {"TEST", HPCT_TEST, HPCT_TEST},
        {"valid", HPCT_VALIDATION, HPCT_VALIDATION},
        {"training_set", HPCT_TRAIN, HPCT_TRAIN},
        {"TestSet", HPCT_TEST, HPCT_TEST},
        {"seg_train", HPCT_NO_SPLIT, HPCT_TRAIN},
        {"cifar10-test-0.tar", HPCT_NO_SPLIT, HPCT_TEST},
        {"imagenet-val-000012.tar", HPCT_NO_SPLIT, HPCT_VALIDATION},
        {"train2017", HPCT_NO_SPLIT, HPCT_TRAIN},
        {"train_test_split", HPCT_NO_SPLIT, HPCT_MANY_SPLITS},
        {"trains", HPCT_NO_SPLIT, HPCT_NO_SPLIT},
        {"contest", HPCT_NO_SPLIT, HPCT_NO_SPLIT},
        {"set", HPCT_NO_SPLIT, HPCT_NO_SPLIT},
        {"", HPCT_NO_SPLIT, HPCT_NO_SPLIT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t length = strlen(cases[i].name);
        assert_int_equal(hpct_split_word(cases[i].name, length), cases[i].word);
        assert_int_equal(hpct_split_within(cases[i].name, length), cases[i].within);
    }
}

static void words_for_splits_are_known(void **state)
{
    (void) state;
    needs_pictures();
    static const char *const words[][2] = {{"Training", "Testing"},
                                           {"Train", "Test"},
                                           {"train", "valid"},
                                           {"TRAIN", "Validation"},
                                           {"training_set", "test_set"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const char *folder = pictures_folder();
        for (int s = 0; s < 2; s++) {
            for (int n = 0; n <= s; n++) {
                char name[64];
                snprintf(name, sizeof name, "%s/b/%d.png", words[i][s], n);
                put(folder, name, "picture/png");
            }
        }
        is_read(folder, HPCT_TRAIN, 1, "b", words[i][0], "");
        is_read(folder, HPCT_TEST, 2, "b", words[i][1], "");
        is_read(folder, HPCT_VALIDATION, 2, "b", words[i][1], "");
    }
    const char *three = TREE("train/a/1.png", "test/a/1.png", "test/a/2.png", "val/a/1.png",
                             "val/a/2.png", "val/a/3.png");
    is_read(three, HPCT_TEST, 2, "a", "test", "");
    is_read(three, HPCT_VALIDATION, 3, "a", "val", "");
    const char *only = TREE("train/a/1.png", "train/b/1.png");
    refused(only, HPCT_TEST, HPCT_ERR_NO_INPUT, "no test pictures");
}

static void unknown_levels_are_refused(void **state)
{
    (void) state;
    needs_pictures();
    const char *folder = TREE("seg_train/cat/1.png", "seg_train/dog/1.png", "seg_test/cat/2.png",
                              "seg_test/dog/2.png");
    refused(folder, HPCT_TRAIN, HPCT_ERR_DATA, "the folder seg_test stands above");
    char train[4096];
    snprintf(train, sizeof train, "%s/seg_train", folder);
    is_read(train, HPCT_TRAIN, 2, "cat,dog", "", "");
    is_read(train, HPCT_TEST, 2, "cat,dog", "", ""); /* as given */

    const char *folds = TREE("f1/cat/1.png", "f1/dog/1.png", "f2/cat/2.png", "f2/dog/2.png");
    refused(folds, HPCT_TRAIN, HPCT_ERR_DATA, "f1/ and f2/ hold the same folders");
    is_read(below(folds, "f1"), HPCT_TRAIN, 2, "cat,dog", "", "");
    const char *digits = TREE("part1/0/1.png", "part1/1/1.png", "part2/0/2.png", "part2/1/2.png");
    refused(digits, HPCT_TRAIN, HPCT_ERR_DATA, "hold the same folders");
    const char *extra = TREE("train/cat/1.png", "test/cat/1.png", "extra/cat/1.png");
    refused(extra, HPCT_TRAIN, HPCT_ERR_DATA, "the folder extra stands above");
    const char *twice = TREE("train/cat/1.png", "Training/cat/1.png");
    refused(twice, HPCT_TRAIN, HPCT_ERR_DATA, "are words for the training split");
    const char *flat = TREE("train/1.png", "test/2.png");
    refused(flat, HPCT_TRAIN, HPCT_ERR_DATA, "no folder that would name their class");
    refused(TREE("train/1.png"), HPCT_TRAIN, HPCT_ERR_DATA, "in train/ lie in no folder");
    refused(TREE("1.png", "2.png"), HPCT_TRAIN, HPCT_ERR_DATA, "no folder that would name");
    /* Kaggle's test pictures without labels */
    const char *half = TREE("train/cat/1.png", "test/1.png");
    is_read(half, HPCT_TRAIN, 1, "cat", "train", "1 picture in no class's folder");
    refused(half, HPCT_TEST, HPCT_ERR_NO_INPUT, "no test pictures");
}

/* Names of what files are, not of what they show: detection, segmentation, parts of a download. */
static void parts_are_no_classes(void **state)
{
    (void) state;
    needs_pictures();
    static const char *const none = "no folder that would name their class";
    refused(TREE("images/1.png", "masks/1.png"), HPCT_TRAIN, HPCT_ERR_DATA, none);
    refused(TREE("images/1.png", "annotations/trimaps/1.png"), HPCT_TRAIN, HPCT_ERR_DATA, none);
    refused(TREE("HAM_images_part_1/1.png", "HAM_images_part_2/2.png"), HPCT_TRAIN, HPCT_ERR_DATA,
            none);
    refused(TREE("images_001/images/1.png", "images_002/images/2.png"), HPCT_TRAIN, HPCT_ERR_DATA,
            none);
    refused(TREE("fold1/1.png", "fold2/2.png"), HPCT_TRAIN, HPCT_ERR_DATA, none);
    refused(TREE("train/images/1.png", "valid/images/2.png"), HPCT_TRAIN, HPCT_ERR_NO_INPUT,
            "no pictures in it: 2 pictures in no class's folder");
    refused(TREE("bounding_box_train/1.png", "bounding_box_test/1.png", "query/1.png"), HPCT_TRAIN,
            HPCT_ERR_DATA, none);
    is_read(TREE("images/1.png", "others/1.png"), HPCT_TRAIN, 2, "images,others", "", "");
    is_read(TREE("c0/1.png", "c1/1.png"), HPCT_TRAIN, 2, "c0,c1", "", "");
    /* two domains, each with the classes; a copy of all beside the classes */
    refused(TREE("amazon/images/bike/1.png", "amazon/images/mug/1.png", "dslr/images/bike/1.png",
                 "dslr/images/mug/1.png"),
            HPCT_TRAIN, HPCT_ERR_DATA, "amazon/ and dslr/ hold the same folders");
    refused(TREE("daisy/1.png", "rose/1.png", "flowers/daisy/1.png", "flowers/rose/1.png"),
            HPCT_TRAIN, HPCT_ERR_DATA, "flowers holds the same folders as stand beside it");
}

/* Pascal's and CIFAR-100's class of trains, and other classes whose names have such words. */
static void classes_may_be_called_so(void **state)
{
    (void) state;
    needs_pictures();
    const char *folder = TREE("cat/1.png", "dog/1.png", "train/1.png");
    is_read(folder, HPCT_TRAIN, 3, "cat,dog,train", "", "");
    const char *trains = TREE("train/train/1.png", "train/cat/1.png", "test/train/2.png");
    is_read(trains, HPCT_TRAIN, 2, "cat,train", "train", "");
    const char *tubes = TREE("flask/1.png", "test tube/1.png", "pipette/1.png");
    is_read(tubes, HPCT_TRAIN, 3, "flask,pipette,test tube", "", "");
}

/* ---- classes ---- */

static void the_class_is_the_first_folder(void **state)
{
    (void) state;
    needs_pictures();
    const char *tiny = TREE("train/n01/images/1.png", "train/n02/images/1.png",
                            "train/n01/n01_boxes.txt", "val/images/1.png");
    is_read(tiny, HPCT_TRAIN, 2, "n01,n02", "train",
            "1 picture in no class's folder is left out (the first: val/images/1.png)");
    refused(tiny, HPCT_VALIDATION, HPCT_ERR_NO_INPUT, "no validation pictures in it: 1 picture in");
    const char *apart = TREE("train/a/1.png", "train/b/1.png", "val/c/1.png");
    is_read(apart, HPCT_TRAIN, 2, "a,b", "train", "1 class of other splits has no folder");
    refused(apart, HPCT_VALIDATION, HPCT_ERR_DATA,
            "the folders of val (the first: c) are no classes of the training");
    const char *years = TREE("a/2019/1.png", "a/2020/1.png", "b/2019/1.png", "b/2020/1.png");
    is_read(years, HPCT_TRAIN, 4, "a,b", "", "");
    const char *mixed = TREE("a/1.png", "a/more/2.png", "b/more/1.png", "b/more/deeper/2.png");
    is_read(mixed, HPCT_TRAIN, 4, "a,b", "", "");
    is_read(TREE("set/cats/1.png", "set/dogs/1.png"), HPCT_TRAIN, 2, "cats,dogs", "set", "");
    is_read(TREE("x/x/train/a/1.png", "x/x/test/a/1.png"), HPCT_TEST, 1, "a", "x/x/test", "");
    is_read(TREE("train/train/a/1.png", "train/train/b/1.png", "test/test/a/1.png"), HPCT_TRAIN, 2,
            "a,b", "train/train", "");
    is_read(TREE("cat/images/1.png"), HPCT_TRAIN, 1, "cat", "", "");
    const char *beside = TREE("Images/a/1.png", "Images/b/1.png");
    empty_folder(beside, "Annotation"); /* Stanford Dogs */
    is_read(beside, HPCT_TRAIN, 2, "a,b", "Images", "");
}

static void strays_are_no_classes(void **state)
{
    (void) state;
    needs_pictures();
    const char *folder =
        TREE("train/cat/1.png", "train/dog/1.png", "assets/logo.png", "train/cover.png",
             "banner.png", ".git/x.png", "train/.cache/1.png", "__MACOSX/train/cat/1.png",
             "train/cat/._1.png", "train/cat/@eaDir/1.png");
    is_read(folder, HPCT_TRAIN, 2, "cat,dog", "train",
            "3 pictures in no class's folder are left out (the first: assets/logo.png)");
}

static void classes_without_pictures_count(void **state)
{
    (void) state;
    needs_pictures();
    static const int32_t labels[] = {0, 2};
    const char *folder = TREE("a/1.png", "c/1.png", "c/2.webp", "b/1.webp");
    is_read(folder, HPCT_TRAIN, 2, "a,b,c", "",
            "1 of the 3 classes has no pictures (the first: b)");
    is_read(folder, HPCT_TRAIN, 2, "a,b,c", "",
            "2 pictures of a kind that cannot be read are left out");
    hpct_dataset *dataset = opened(folder, HPCT_TRAIN);
    assert_memory_equal(dataset->labels, labels, sizeof labels);
    hpct_dataset_free(dataset);
    const char *empty = TREE("train/a/1.png", "train/c/1.png", "test/a/1.png", "test/c/1.png");
    empty_folder(empty, "train/b");
    is_read(empty, HPCT_TEST, 2, "a,b,c", "test", "1 of the 3 classes has no pictures to train on");
    refused(TREE("a/1.webp", "b/1.tif"), HPCT_TRAIN, HPCT_ERR_NO_INPUT,
            "2 are neither JPEG nor PNG (the first: ");
    is_read(TREE("a/1.jfif", "b/1.JPE"), HPCT_TRAIN, 2, "a,b", "", "");
}

static void what_cannot_be_read_is_named(void **state)
{
    (void) state;
    needs_pictures();
    const char *folder = TREE("train/a/1.png", "train/b/1.png");
    assert_int_equal(symlink("/no/such/place", below(folder, "train/c")), 0);
    refused(folder, HPCT_TRAIN, HPCT_ERR_NO_INPUT, "train/c: No such file");
    assert_int_equal(unlink(below(folder, "train/c")), 0);
    assert_int_equal(symlink("..", below(folder, "train/b/up")), 0);
    refused(folder, HPCT_TRAIN, HPCT_ERR_DATA, "train/b/up: it is a link to a folder that it lies");
    assert_int_equal(unlink(below(folder, "train/b/up")), 0);
    if (geteuid() == 0)
        return; /* who may read all */
    assert_int_equal(chmod(below(folder, "train/b"), 0), 0);
    refused(folder, HPCT_TRAIN, HPCT_ERR_NO_INPUT, "train/b: Permission denied");
    assert_int_equal(chmod(below(folder, "train/b"), 0755), 0);
}

/* Two folders, each with its own classes: the numbers are those of the training pictures. */
static void validation_has_the_numbers_of_training(void **state)
{
    (void) state;
    needs_pictures();
    const char *folder = TREE("Tr/a/1.png", "Tr/b/1.png", "Tr/c/1.png", "Te/c/1.png", "Te/b/1.png",
                              "other/b/1.png", "other/z/1.png");
    hpct_dataset *train = opened(below(folder, "Tr"), HPCT_TRAIN);
    hpct_dataset *test = opened(below(folder, "Te"), HPCT_TEST);
    assert_int_equal(hpct_dataset_check_classes(test, train), HPCT_ERR_DATA);
    assert_int_equal(hpct_dataset_number_as(test, train), HPCT_OK);
    assert_int_equal(test->labels[0], 1);
    assert_int_equal(test->labels[1], 2);
    assert_int_equal(test->max_label, 2);
    assert_string_equal(test->classes[0], "a");
    assert_int_equal(hpct_dataset_check_classes(test, train), HPCT_OK);
    hpct_dataset_free(test);
    test = opened(below(folder, "other"), HPCT_TEST);
    assert_int_equal(hpct_dataset_number_as(test, train), HPCT_ERR_DATA);
    assert_non_null(strstr(hpct_last_error(), "the class z is none of the 3 classes of"));
    hpct_dataset_free(test);
    hpct_dataset_free(train);
}

/* ---- archives ---- */

/* TAR/NAME: one picture for each name. */
static size_t make_tar(uint8_t *out, size_t room, const char *const *names)
{
    size_t size = pictures_seed("picture/png", seed, sizeof seed), used = 0;
    struct archive *archive = archive_write_new();
    archive_write_set_format_ustar(archive);
    archive_write_set_bytes_in_last_block(archive, 512);
    assert_int_equal(archive_write_open_memory(archive, out, room, &used), ARCHIVE_OK);
    for (; *names != NULL; names++) {
        bool label = strcasecmp(strrchr(*names, '.'), ".cls") == 0;
        struct archive_entry *entry = archive_entry_new();
        archive_entry_set_pathname(entry, *names);
        archive_entry_set_filetype(entry, AE_IFREG);
        archive_entry_set_perm(entry, 0644);
        archive_entry_set_size(entry, label ? 1 : (la_int64_t) size);
        assert_int_equal(archive_write_header(archive, entry), ARCHIVE_OK);
        archive_write_data(archive, label ? (const void *) "1" : seed, label ? 1 : size);
        archive_entry_free(entry);
    }
    assert_int_equal(archive_write_free(archive), ARCHIVE_OK);
    return used;
}

static void joined_archives_are_read_whole(void **state)
{
    (void) state;
    needs_pictures();
    static uint8_t bytes[65536];
    const char *folder = pictures_folder();
    size_t one = make_tar(bytes, 20000, (const char *const[]){"a/1.png", "b/1.png", NULL});
    size_t two = make_tar(bytes + one, 20000, (const char *const[]){"a/2.png", "c/1.png", NULL});
    for (int gz = 0; gz < 2; gz++) {
        const char *name = gz ? "ab.tar.gz" : "ab.tar";
        pictures_write(folder, name, bytes, one + two, gz);
        hpct_dataset *dataset = opened(below(folder, name), HPCT_TRAIN);
        assert_int_equal(hpct_dataset_size(dataset), 4);
        assert_int_equal(hpct_dataset_num_classes(dataset), 3);
        hpct_dataset_free(dataset);
        /* without its end, and with half of it: as if cut between two members */
        for (size_t left = 0; left < 1024; left += 512) {
            pictures_write(folder, name, bytes, one - 1024 + left, gz);
            refused(below(folder, name), HPCT_TRAIN, HPCT_ERR_DATA, "its end is missing");
        }
    }
}

/* Test shards without one of the classes have the numbers of the training shards. */
static void shards_are_numbered_by_training(void **state)
{
    (void) state;
    needs_pictures();
    static uint8_t bytes[65536];
    const char *folder = pictures_folder();
    size_t size =
        make_tar(bytes, sizeof bytes, (const char *const[]){"a/1.png", "b/1.png", "b/2.png", NULL});
    pictures_write(folder, "train-0.tar", bytes, size, false);
    is_read(folder, HPCT_TRAIN, 3, "a,b", "train-0.tar", "");
    size = make_tar(bytes, sizeof bytes, (const char *const[]){"test/b/3.png", NULL});
    pictures_write(folder, "test-0.tar", bytes, size, false);
    is_read(folder, HPCT_TEST, 1, "a,b", "test-0.tar", "");
    hpct_dataset *dataset = opened(folder, HPCT_TEST);
    assert_int_equal(dataset->labels[0], 1);
    hpct_dataset_free(dataset);
}

static void shards_are_of_the_split_they_name(void **state)
{
    (void) state;
    needs_pictures();
    static uint8_t bytes[65536];
    size_t size =
        make_tar(bytes, sizeof bytes, (const char *const[]){"./1.png", "./1.CLS", "._2.png", NULL});
    const char *folder = pictures_folder();
    pictures_write(folder, "cifar10-train-0.tar", bytes, size, false);
    pictures_write(folder, "cifar10-train-1.tar", bytes, size, false);
    pictures_write(folder, "cifar10-test-0.tar", bytes, size, false);
    is_read(folder, HPCT_TRAIN, 2, "", "cifar10-train-0.tar to cifar10-train-1.tar", "");
    is_read(folder, HPCT_TEST, 1, "", "cifar10-test-0.tar", "");
    is_read(folder, HPCT_VALIDATION, 1, "", "cifar10-test-0.tar", "");
    pictures_write(folder, "others.tar", bytes, size, false);
    is_read(folder, HPCT_TRAIN, 2, "", "cifar10-train-0.tar to cifar10-train-1.tar",
            "1 archive whose name says no split is left out (the first: others.tar)");
    pictures_write(folder, "train-test.tar", bytes, size, false);
    refused(folder, HPCT_TRAIN, HPCT_ERR_DATA, "words for two splits");
    put(folder, "train/cat/1.png", "picture/png");
    refused(folder, HPCT_TRAIN, HPCT_ERR_DATA, "both archives (cifar10-test-0.tar) and folders");
    const char *webp = pictures_folder();
    size = make_tar(bytes, sizeof bytes,
                    (const char *const[]){"1.png", "1.cls", "2.webp", "2.cls", NULL});
    pictures_write(webp, "w.tar", bytes, size, false);
    refused(below(webp, "w.tar"), HPCT_TRAIN, HPCT_ERR_DATA, "others as 2.webp cannot");
}

/* ---- downloads ---- */

static void mnist_is_found_where_it_is_put(void **state)
{
    (void) state;
    static const char *const files[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                        "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
    static const char *const dots[] = {"train-images.idx3-ubyte", "train-labels.idx1-ubyte",
                                       "t10k-images.idx3-ubyte", "t10k-labels.idx1-ubyte"};
    const char *folder = pictures_folder(), *root = pictures_folder();
    pictures_mnist_like(folder, 6, 4, 3, false);
    for (int i = 0; i < 4; i++) {
        char from[4096];
        snprintf(from, sizeof from, "%s/%s", folder, files[i]);
        assert_int_equal(rename(from, below(folder, dots[i])), 0);
    }
    is_read(folder, HPCT_TRAIN, 6, "", "train-images.idx3-ubyte", "");
    is_read(folder, HPCT_VALIDATION, 4, "", "t10k-images.idx3-ubyte", "");
    /* Kaggle's has folders of the same names beside them */
    empty_folder(folder, files[0]);
    is_read(folder, HPCT_TRAIN, 6, "", "train-images.idx3-ubyte", "");

    empty_folder(root, "MNIST");
    empty_folder(root, "MNIST/raw");
    pictures_mnist_like(below(root, "MNIST/raw"), 6, 4, 3, true);
    is_read(root, HPCT_TRAIN, 6, "", "MNIST/raw/train-images-idx3-ubyte.gz", "");
    is_read(below(root, "MNIST"), HPCT_TEST, 4, "", "raw/t10k-images-idx3-ubyte.gz", "");
    empty_folder(root, "KMNIST");
    empty_folder(root, "KMNIST/raw");
    pictures_mnist_like(below(root, "KMNIST/raw"), 6, 4, 3, true);
    refused(root, HPCT_TRAIN, HPCT_ERR_DATA, "there are two data sets in it");

    const char *half = pictures_folder();
    pictures_mnist_like(half, 6, 4, 3, true);
    unlink(below(half, "train-labels-idx1-ubyte.gz"));
    for (int split = HPCT_TRAIN; split <= HPCT_TEST; split++)
        refused(half, (hpct_split) split, HPCT_ERR_NO_INPUT, "train-labels-idx1-ubyte");
}

/* All that is in `from`, as it is, in an archive below `folder`. */
static void pack(const char *archive, const char *folder, const char *name)
{
    char command[8192];
    snprintf(command, sizeof command, "tar -C %s -czf %s %s", folder, archive, name);
    assert_int_equal(system(command), 0);
}

static void cifar_is_found_where_it_is_put(void **state)
{
    (void) state;
    const char *root = pictures_folder();
    char archive[4096];
    for (int i = 0; i <= 5; i++) {
        char name[64];
        snprintf(name, sizeof name,
                 i == 0 ? "cifar-10-batches-py/test_batch" : "cifar-10-batches-py/data_batch_%d",
                 i);
        put(root, name, "pickle/numpy4");
    }
    is_read(root, HPCT_TRAIN, 10, "", "cifar-10-batches-py/data_batch_1 to data_batch_5", "");
    is_read(root, HPCT_TEST, 2, "", "cifar-10-batches-py/test_batch", "");
    snprintf(archive, sizeof archive, "%s/cifar-10-python.tar.gz", pictures_folder());
    pack(archive, root, "cifar-10-batches-py");
    is_read(archive, HPCT_TRAIN, 10, "", "data_batch_1 to data_batch_5", "");
    is_read(archive, HPCT_TEST, 2, "", "test_batch", "");
    unlink(below(root, "cifar-10-batches-py/data_batch_3"));
    for (int split = HPCT_TRAIN; split <= HPCT_TEST; split++)
        refused(root, (hpct_split) split, HPCT_ERR_NO_INPUT, "data_batch_3: No such file");
    pack(archive, root, "cifar-10-batches-py");
    refused(archive, HPCT_TRAIN, HPCT_ERR_NO_INPUT, "data_batch_3: No such file");
    put(root, "cifar-100-python/train", "pickle/numpy4");
    refused(root, HPCT_TEST, HPCT_ERR_DATA, "there are two data sets in it");

    const char *bin = pictures_folder();
    size_t size = pictures_seed("cifar/ten", seed, sizeof seed);
    for (int i = 1; i <= 5; i++) {
        char name[64];
        snprintf(name, sizeof name, "cifar-10-batches-bin/data_batch_%d.bin", i);
        pictures_write(bin, name, seed, size, false);
    }
    pictures_write(bin, "cifar-10-batches-bin/batches.meta.txt", "plane\r\ncar\n\n", 12, false);
    pack(archive, bin, "cifar-10-batches-bin");
    is_read(archive, HPCT_TRAIN, 5, "plane,car", "data_batch_1.bin to data_batch_5.bin", "");
    refused(archive, HPCT_TEST, HPCT_ERR_NO_INPUT, "test_batch.bin: No such file");
}

/* ---- what is said ---- */

static void a_run_says_what_it_reads(void **state)
{
    (void) state;
    needs_pictures();
    char lines[4096] = "", warnings[4096] = "";
    const char *folder = TREE("train/a/1.png", "train/b/1.png", "train/c/1.png", "train/d/1.png",
                              "test/a/1.png", "test/d/1.png", "logo/1.png");
    hpct_model *model = NULL;
    assert_int_equal(hpct_model_builtin(&model, "mnist-cnn"), HPCT_OK);
    hpct_dataset *train = opened(folder, HPCT_TRAIN), *test = opened(folder, HPCT_TEST);
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
    assert_string_equal(warnings,
                        "hpc-train: warning: training: 1 picture in no class's folder is left out "
                        "(the first: logo/1.png)\n"
                        "hpc-train: warning: training: there are 4 classes, the model has 10\n");
    assert_false(hpct_dataset_is_same(train, test));
    hpct_dataset_free(test);
    test = opened(below(folder, "train"), HPCT_TEST);
    assert_true(hpct_dataset_is_same(train, test));
    err = fmemopen(warnings, sizeof warnings, "w");
    hpct_dataset_announce(model, train, test, NULL, err);
    fclose(err);
    assert_non_null(strstr(warnings, "THE VALIDATION PICTURES ARE THE TRAINING PICTURES"));
    hpct_dataset_free(test);
    hpct_dataset_free(train);
    hpct_model_free(model);
}

static void odd_labels_are_said(void **state)
{
    (void) state;
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
    hpct_dataset *dataset = opened(folder, HPCT_TRAIN);
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
static void turning_grey_is_said(void **state)
{
    (void) state;
    needs_pictures();
    const char *folder = TREE("a/1.png", "b/1.png");
    put(folder, "b/2.png", "picture/png_grey");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_tell_the_split),
        cmocka_unit_test(words_for_splits_are_known),
        cmocka_unit_test(unknown_levels_are_refused),
        cmocka_unit_test(parts_are_no_classes),
        cmocka_unit_test(classes_may_be_called_so),
        cmocka_unit_test(the_class_is_the_first_folder),
        cmocka_unit_test(strays_are_no_classes),
        cmocka_unit_test(classes_without_pictures_count),
        cmocka_unit_test(what_cannot_be_read_is_named),
        cmocka_unit_test(validation_has_the_numbers_of_training),
        cmocka_unit_test(joined_archives_are_read_whole),
        cmocka_unit_test(shards_are_of_the_split_they_name),
        cmocka_unit_test(shards_are_numbered_by_training),
        cmocka_unit_test(mnist_is_found_where_it_is_put),
        cmocka_unit_test(cifar_is_found_where_it_is_put),
        cmocka_unit_test(a_run_says_what_it_reads),
        cmocka_unit_test(odd_labels_are_said),
        cmocka_unit_test(turning_grey_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
