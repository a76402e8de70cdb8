/* agent/data: which folder is a split and which a class, where downloads are found, and what is
 * refused because it cannot be told. After public reports. */
#include "agent/data/dataset.h"
#include "agent/data/levels.h"
#include "agent/data/split_name.h"
#include "tests/unit/agent/data/pictures.h"
#include "tests/unit/agent/data/trees.h"
#include "tests/unit/cases.h"

#include <sys/stat.h>
#include <unistd.h>

/* ---- splits ---- */

static const char *split_text(int split)
{
    return split == HPCT_DATA_NO_SPLIT      ? "none"
           : split == HPCT_DATA_MANY_SPLITS ? "several"
                                            : hpct_data_split_text((hpct_split) split);
}

/* The split that the name is a word for; that of the words in it. */
static hpct_status find_split(const parse_case *c, char *got, size_t size)
{
    size_t length = strlen(c->text);
    snprintf(got, size, "%s, %s", split_text(hpct_data_split_word(c->text, length)),
             split_text(hpct_data_split_within(c->text, length)));
    return HPCT_OK;
}

TEST(splits_are_found_in_names)
{
    static const parse_case cases[] = {
        {"train", HPCT_OK, "training, training"},
        {"Training", HPCT_OK, "training, training"},
        {"TEST", HPCT_OK, "test, test"},
        {"valid", HPCT_OK, "validation, validation"},
        {"training_set", HPCT_OK, "training, training"},
        {"TestSet", HPCT_OK, "test, test"},
        {"seg_train", HPCT_OK, "none, training"},
        {"cifar10-test-0.tar", HPCT_OK, "none, test"},
        {"imagenet-val-000012.tar", HPCT_OK, "none, validation"},
        {"train2017", HPCT_OK, "none, training"},
        {"train_test_split", HPCT_OK, "none, several"},
        {"trains", HPCT_OK, "none, none"},
        {"contest", HPCT_OK, "none, none"},
        {"set", HPCT_OK, "none, none"},
        {"", HPCT_OK, "none, none"},
    };
    RUN_CASES(find_split, cases);
}

TEST(words_for_splits_are_known)
{
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
                tree_put(folder, name, "picture/png");
            }
        }
        tree_is_read(folder, HPCT_TRAIN, 1, "b", words[i][0], "");
        tree_is_read(folder, HPCT_TEST, 2, "b", words[i][1], "");
        tree_is_read(folder, HPCT_VALIDATION, 2, "b", words[i][1], "");
    }
    const char *three = TREE("train/a/1.png", "test/a/1.png", "test/a/2.png", "val/a/1.png",
                             "val/a/2.png", "val/a/3.png");
    tree_is_read(three, HPCT_TEST, 2, "a", "test", "");
    tree_is_read(three, HPCT_VALIDATION, 3, "a", "val", "");
    const char *only = TREE("train/a/1.png", "train/b/1.png");
    tree_is_refused(only, HPCT_TEST, HPCT_ERR_NO_INPUT, "no test pictures");
}

TEST(unknown_levels_are_refused)
{
    const char *folder = TREE("seg_train/cat/1.png", "seg_train/dog/1.png", "seg_test/cat/2.png",
                              "seg_test/dog/2.png");
    tree_is_wrong(folder, "the folder seg_test stands above");
    char train[4096];
    snprintf(train, sizeof train, "%s/seg_train", folder);
    tree_is_read(train, HPCT_TRAIN, 2, "cat,dog", "", "");
    tree_is_read(train, HPCT_TEST, 2, "cat,dog", "", ""); /* as given */

    const char *folds = TREE("f1/cat/1.png", "f1/dog/1.png", "f2/cat/2.png", "f2/dog/2.png");
    tree_is_wrong(folds, "f1/ and f2/ hold the same folders");
    tree_is_read(tree_below(folds, "f1"), HPCT_TRAIN, 2, "cat,dog", "", "");
    const char *digits = TREE("part1/0/1.png", "part1/1/1.png", "part2/0/2.png", "part2/1/2.png");
    tree_is_wrong(digits, "hold the same folders");
    const char *extra = TREE("train/cat/1.png", "test/cat/1.png", "extra/cat/1.png");
    tree_is_wrong(extra, "the folder extra stands above");
    const char *twice = TREE("train/cat/1.png", "Training/cat/1.png");
    tree_is_wrong(twice, "are words for the training split");
    const char *flat = TREE("train/1.png", "test/2.png");
    tree_is_wrong(flat, "no folder that would name their class");
    tree_is_wrong(TREE("train/1.png"), "in train/ lie in no folder");
    tree_is_wrong(TREE("1.png", "2.png"), "no folder that would name");
    /* one folder too many, or one class */
    const char *more = TREE("train/data/cat/1.png", "train/data/dog/1.png", "test/data/cat/1.png");
    tree_is_wrong(more, "train/data holds 2 folders of pictures and stands");
    tree_is_refused(more, HPCT_TEST, HPCT_ERR_DATA,
                    "train/data holds 2 folders of pictures and stands");
    tree_is_read(TREE("train/cat/x/1.png", "test/cat/1.png"), HPCT_TRAIN, 1, "cat", "train", "");
    tree_is_read(TREE("train/cat/1.png", "train/dog/1.png", "test/cat/x/1.png", "test/cat/y/1.png"),
                 HPCT_TEST, 2, "cat,dog", "test", "");
    /* Kaggle's test pictures without labels */
    const char *half = TREE("train/cat/1.png", "test/1.png");
    tree_is_read(half, HPCT_TRAIN, 1, "cat", "train", "1 picture in no class's folder");
    tree_is_refused(half, HPCT_TEST, HPCT_ERR_NO_INPUT, "no test pictures");
}

/* Names of what files are, not of what they show: detection, segmentation, parts of a download. */
TEST(parts_are_no_classes)
{
    static const char *const none = "no folder that would name their class";
    tree_is_wrong(TREE("images/1.png", "masks/1.png"), none);
    tree_is_wrong(TREE("images/1.png", "annotations/trimaps/1.png"), none);
    tree_is_wrong(TREE("HAM_images_part_1/1.png", "HAM_images_part_2/2.png"), none);
    tree_is_wrong(TREE("images_001/images/1.png", "images_002/images/2.png"), none);
    tree_is_wrong(TREE("fold1/1.png", "fold2/2.png"), none);
    tree_is_refused(TREE("train/images/1.png", "valid/images/2.png"), HPCT_TRAIN, HPCT_ERR_NO_INPUT,
                    "no pictures in it: 2 pictures in no class's folder");
    tree_is_wrong(TREE("bounding_box_train/1.png", "bounding_box_test/1.png", "query/1.png"), none);
    tree_is_read(TREE("images/1.png", "others/1.png"), HPCT_TRAIN, 2, "images,others", "", "");
    tree_is_read(TREE("c0/1.png", "c1/1.png"), HPCT_TRAIN, 2, "c0,c1", "", "");
    /* two domains, each with the classes; a copy of all beside the classes */
    tree_is_wrong(TREE("amazon/images/bike/1.png", "amazon/images/mug/1.png",
                       "dslr/images/bike/1.png", "dslr/images/mug/1.png"),
                  "amazon/ and dslr/ hold the same folders");
    tree_is_wrong(TREE("daisy/1.png", "rose/1.png", "flowers/daisy/1.png", "flowers/rose/1.png"),
                  "flowers holds the same folders as stand beside it");
}

/* Pascal's and CIFAR-100's class of trains, and other classes whose names have such words. */
TEST(classes_may_be_called_so)
{
    const char *folder = TREE("cat/1.png", "dog/1.png", "train/1.png");
    tree_is_read(folder, HPCT_TRAIN, 3, "cat,dog,train", "", "");
    const char *trains = TREE("train/train/1.png", "train/cat/1.png", "test/train/2.png");
    tree_is_read(trains, HPCT_TRAIN, 2, "cat,train", "train", "");
    const char *tubes = TREE("flask/1.png", "test tube/1.png", "pipette/1.png");
    tree_is_read(tubes, HPCT_TRAIN, 3, "flask,pipette,test tube", "", "");
}

/* ---- classes ---- */

TEST(the_class_is_the_first_folder)
{
    const char *tiny = TREE("train/n01/images/1.png", "train/n02/images/1.png",
                            "train/n01/n01_boxes.txt", "val/images/1.png");
    tree_is_read(tiny, HPCT_TRAIN, 2, "n01,n02", "train",
                 "1 picture in no class's folder is left out (the first: val/images/1.png)");
    tree_is_refused(tiny, HPCT_VALIDATION, HPCT_ERR_NO_INPUT,
                    "no validation pictures in it: 1 picture in");
    const char *apart = TREE("train/a/1.png", "train/b/1.png", "val/c/1.png");
    tree_is_read(apart, HPCT_TRAIN, 2, "a,b", "train", "1 class of other splits has no folder");
    tree_is_refused(apart, HPCT_VALIDATION, HPCT_ERR_DATA,
                    "the folders of val (the first: c) are not classes of the training");
    const char *years = TREE("a/2019/1.png", "a/2020/1.png", "b/2019/1.png", "b/2020/1.png");
    tree_is_read(years, HPCT_TRAIN, 4, "a,b", "", "");
    const char *mixed = TREE("a/1.png", "a/more/2.png", "b/more/1.png", "b/more/deeper/2.png");
    tree_is_read(mixed, HPCT_TRAIN, 4, "a,b", "", "");
    tree_is_read(TREE("set/cats/1.png", "set/dogs/1.png"), HPCT_TRAIN, 2, "cats,dogs", "set", "");
    /* Places365; pictures and their masks */
    tree_is_read(
        TREE("a/airfield/1.png", "a/alley/1.png", "b/barn/1.png"), HPCT_TRAIN, 3, "a,b", "",
        "1 of the 2 classes has several folders, whose pictures are all taken for the one");
    tree_is_read(TREE("train/a/images/1.png", "train/a/masks/1.png", "train/b/images/1.png"),
                 HPCT_TRAIN, 3, "a,b", "train", "1 of the 2 classes has several folders");
    tree_is_read(TREE("x/x/train/a/1.png", "x/x/test/a/1.png"), HPCT_TEST, 1, "a", "x/x/test", "");
    tree_is_read(TREE("train/train/a/1.png", "train/train/b/1.png", "test/test/a/1.png"),
                 HPCT_TRAIN, 2, "a,b", "train/train", "");
    tree_is_read(TREE("cat/images/1.png"), HPCT_TRAIN, 1, "cat", "", "");
    const char *beside = TREE("Images/a/1.png", "Images/b/1.png");
    tree_empty_folder(beside, "Annotation"); /* Stanford Dogs */
    tree_is_read(beside, HPCT_TRAIN, 2, "a,b", "Images", "");
}

TEST(strays_are_no_classes)
{
    const char *folder =
        TREE("train/cat/1.png", "train/dog/1.png", "assets/logo.png", "train/cover.png",
             "banner.png", ".git/x.png", "train/.cache/1.png", "__MACOSX/train/cat/1.png",
             "train/cat/._1.png", "train/cat/@eaDir/1.png");
    tree_is_read(folder, HPCT_TRAIN, 2, "cat,dog", "train",
                 "3 pictures in no class's folder are left out (the first: assets/logo.png)");
}

TEST(classes_without_pictures_count)
{
    const char *folder = TREE("a/1.png", "c/1.png", "c/2.webp", "b/1.webp");
    tree_is_read(folder, HPCT_TRAIN, 2, "a,b,c", "",
                 "1 of the 3 classes has no pictures (the first: b)");
    tree_is_read(
        folder, HPCT_TRAIN, 2, "a,b,c", "",
        "2 pictures not ending in .jpg, .jpeg, .jpe, .jfif, .png are left out (the first: ");
    TREE_HAS_LABELS(folder, HPCT_TRAIN, 0, 2);
    const char *empty = TREE("train/a/1.png", "train/c/1.png", "test/a/1.png", "test/c/1.png");
    tree_empty_folder(empty, "train/b");
    tree_is_read(empty, HPCT_TEST, 2, "a,b,c", "test",
                 "1 of the 3 classes has no pictures to train on");
    tree_is_refused(TREE("a/1.webp", "b/1.tif"), HPCT_TRAIN, HPCT_ERR_NO_INPUT,
                    "2 not ending in .jpg, .jpeg, .jpe, .jfif, .png (the first: ");
    tree_is_read(TREE("a/1.jfif", "b/1.JPE"), HPCT_TRAIN, 2, "a,b", "", "");
    /* pictures by their first bytes alone, and what is none */
    const char *odd = TREE("a/1.png", "b/1.png", "b/2.jpg:large", "b/3"),
               *archive = pictures_folder();
    pictures_write(odd, "a/Thumbs.db", "x", 1, false);
    pictures_write(odd, "LICENSE", "x", 1, false);
    tree_is_read(odd, HPCT_TRAIN, 2, "a,b", "", "2 pictures not ending in .jpg, ");
    tree_pack(tree_below(archive, "x.tgz"), odd, "a b LICENSE");
    tree_is_read(tree_below(archive, "x.tgz"), HPCT_TRAIN, 2, "a,b", "",
                 "2 pictures not ending in .jpg, ");
}

/* Weights have the names in JSON, and without them a folder that lacks a class is misnumbered. */
TEST(names_need_not_be_text)
{
    const char *folder = TREE("Mu\xf1oz/1.png", "Zo\xc3\xab \xc3/1.png");
    tree_is_read(folder, HPCT_TRAIN, 2, "Mu\\xf1oz,Zo\xc3\xab \\xc3", "", "");
    hpct_dataset *dataset = tree_opened(folder, HPCT_TRAIN);
    hpct_model *model = NULL;
    char **names;
    int count;
    assert_int_equal(hpct_model_builtin(&model, "mnist-cnn"), HPCT_OK);
    assert_int_equal(hpct_model_set_class_names(model, (const char *const *) dataset->classes, 2),
                     HPCT_OK);
    assert_int_equal(hpct_model_class_names(model, &names, &count), HPCT_OK);
    assert_int_equal(count, 2);
    free(names);
    hpct_model_free(model);
    hpct_dataset_free(dataset);
}

TEST(what_cannot_be_read_is_named)
{
    const char *folder = TREE("train/a/1.png", "train/b/1.png");
    assert_int_equal(symlink("/no/such/place", tree_below(folder, "train/c")), 0);
    tree_is_refused(folder, HPCT_TRAIN, HPCT_ERR_NO_INPUT, "train/c: No such file");
    assert_int_equal(unlink(tree_below(folder, "train/c")), 0);
    assert_int_equal(symlink("..", tree_below(folder, "train/b/up")), 0);
    tree_is_wrong(folder, "train/b/up: it is a link to a folder that it lies");
    assert_int_equal(unlink(tree_below(folder, "train/b/up")), 0);
    if (geteuid() == 0)
        return; /* who may read all */
    assert_int_equal(chmod(tree_below(folder, "train/b"), 0), 0);
    tree_is_refused(folder, HPCT_TRAIN, HPCT_ERR_NO_INPUT, "train/b: Permission denied");
    assert_int_equal(chmod(tree_below(folder, "train/b"), 0755), 0);
}

/* Two folders, each with its own classes: the numbers are those of the training pictures. */
TEST(validation_has_the_numbers_of_training)
{
    const char *folder = TREE("Tr/a/1.png", "Tr/b/1.png", "Tr/c/1.png", "Te/c/1.png", "Te/b/1.png",
                              "other/b/1.png", "other/z/1.png");
    hpct_dataset *train = tree_opened(tree_below(folder, "Tr"), HPCT_TRAIN);
    hpct_dataset *test = tree_opened(tree_below(folder, "Te"), HPCT_TEST);
    assert_int_equal(hpct_dataset_check_classes(test, train), HPCT_ERR_DATA);
    assert_int_equal(hpct_dataset_number_as(test, train), HPCT_OK);
    assert_int_equal(test->labels[0], 1);
    assert_int_equal(test->labels[1], 2);
    assert_int_equal(test->max_label, 2);
    assert_string_equal(test->classes[0], "a");
    assert_int_equal(hpct_dataset_check_classes(test, train), HPCT_OK);
    hpct_dataset_free(test);
    test = tree_opened(tree_below(folder, "other"), HPCT_TEST);
    assert_int_equal(hpct_dataset_number_as(test, train), HPCT_ERR_DATA);
    assert_non_null(strstr(hpct_last_error(), "the class z is none of the 3 classes of"));
    hpct_dataset_free(test);
    hpct_dataset_free(train);
}

/* ---- downloads ---- */

TEST(mnist_is_found_where_it_is_put)
{
    static const char *const files[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                        "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
    static const char *const dots[] = {"train-images.idx3-ubyte", "train-labels.idx1-ubyte",
                                       "t10k-images.idx3-ubyte", "t10k-labels.idx1-ubyte"};
    const char *folder = pictures_folder(), *root = pictures_folder();
    pictures_mnist_like(folder, 6, 4, 3, false);
    for (int i = 0; i < 4; i++) {
        char from[4096];
        snprintf(from, sizeof from, "%s/%s", folder, files[i]);
        assert_int_equal(rename(from, tree_below(folder, dots[i])), 0);
    }
    tree_is_read(folder, HPCT_TRAIN, 6, "", "train-images.idx3-ubyte", "");
    tree_is_read(folder, HPCT_VALIDATION, 4, "", "t10k-images.idx3-ubyte", "");
    /* Kaggle's has folders of the same names beside them */
    tree_empty_folder(folder, files[0]);
    tree_is_read(folder, HPCT_TRAIN, 6, "", "train-images.idx3-ubyte", "");

    tree_empty_folder(root, "MNIST");
    tree_empty_folder(root, "MNIST/raw");
    pictures_mnist_like(tree_below(root, "MNIST/raw"), 6, 4, 3, true);
    tree_is_read(root, HPCT_TRAIN, 6, "", "MNIST/raw/train-images-idx3-ubyte.gz", "");
    tree_is_read(tree_below(root, "MNIST"), HPCT_TEST, 4, "", "raw/t10k-images-idx3-ubyte.gz", "");
    tree_empty_folder(root, "KMNIST");
    tree_empty_folder(root, "KMNIST/raw");
    pictures_mnist_like(tree_below(root, "KMNIST/raw"), 6, 4, 3, true);
    tree_is_wrong(root, "there are two data sets in it");

    /* Two sets in one folder: labels are not those of the other set's pictures */
    const char *two = pictures_folder();
    pictures_mnist_like(two, 6, 4, 3, false);
    pictures_mnist_like(two, 6, 4, 3, true);
    unlink(tree_below(two, "train-labels-idx1-ubyte"));
    tree_is_read(two, HPCT_TRAIN, 6, "", "train-images-idx3-ubyte.gz", "");
    tree_is_read(two, HPCT_TEST, 4, "", "t10k-images-idx3-ubyte", "");

    const char *half = pictures_folder();
    pictures_mnist_like(half, 6, 4, 3, true);
    unlink(tree_below(half, "train-labels-idx1-ubyte.gz"));
    for (int split = HPCT_TRAIN; split <= HPCT_TEST; split++)
        tree_is_refused(half, (hpct_split) split, HPCT_ERR_NO_INPUT, "train-labels-idx1-ubyte");
}

TEST(cifar_is_found_where_it_is_put)
{
    const char *root = pictures_folder();
    char archive[4096];
    for (int i = 0; i <= 5; i++) {
        char name[64];
        snprintf(name, sizeof name,
                 i == 0 ? "cifar-10-batches-py/test_batch" : "cifar-10-batches-py/data_batch_%d",
                 i);
        tree_put(root, name, "pickle/numpy4");
    }
    tree_is_read(root, HPCT_TRAIN, 10, "", "cifar-10-batches-py/data_batch_1 to data_batch_5", "");
    tree_is_read(root, HPCT_TEST, 2, "", "cifar-10-batches-py/test_batch", "");
    snprintf(archive, sizeof archive, "%s/cifar-10-python.tar.gz", pictures_folder());
    tree_pack(archive, root, "cifar-10-batches-py");
    tree_is_read(archive, HPCT_TRAIN, 10, "", "data_batch_1 to data_batch_5", "");
    tree_is_read(archive, HPCT_TEST, 2, "", "test_batch", "");
    unlink(tree_below(root, "cifar-10-batches-py/data_batch_3"));
    for (int split = HPCT_TRAIN; split <= HPCT_TEST; split++)
        tree_is_refused(root, (hpct_split) split, HPCT_ERR_NO_INPUT, "data_batch_3: No such file");
    tree_pack(archive, root, "cifar-10-batches-py");
    tree_is_refused(archive, HPCT_TRAIN, HPCT_ERR_NO_INPUT, "data_batch_3: No such file");
    tree_put(root, "cifar-100-python/train", "pickle/numpy4");
    tree_is_refused(root, HPCT_TEST, HPCT_ERR_DATA, "there are two data sets in it");
    const char *both = pictures_folder(); /* torchvision's root */
    tree_empty_folder(both, "raw");
    pictures_mnist_like(tree_below(both, "raw"), 6, 4, 3, true);
    tree_put(both, "cifar-10-batches-py/test_batch", "pickle/numpy4");
    tree_is_refused(both, HPCT_TEST, HPCT_ERR_DATA,
                    "there are two data sets in it, idx and CIFAR pickle");

    const char *bin = pictures_folder();
    size_t size = pictures_seed("cifar/ten", tree_seed, sizeof tree_seed);
    for (int i = 1; i <= 5; i++) {
        char name[64];
        snprintf(name, sizeof name, "cifar-10-batches-bin/data_batch_%d.bin", i);
        pictures_write(bin, name, tree_seed, size, false);
    }
    pictures_write(bin, "cifar-10-batches-bin/batches.meta.txt", "plane\r\ncar\n\n", 12, false);
    tree_pack(archive, bin, "cifar-10-batches-bin");
    tree_is_read(archive, HPCT_TRAIN, 5, "plane,car", "data_batch_1.bin to data_batch_5.bin", "");
    tree_is_refused(archive, HPCT_TEST, HPCT_ERR_NO_INPUT, "test_batch.bin: No such file");
}
