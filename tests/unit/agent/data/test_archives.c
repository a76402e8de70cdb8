/* agent/data: tars, zips, shards and WebDatasets as people have them. After public reports. */
#include "agent/data/dataset.h"
#include "tests/unit/agent/data/pictures.h"
#include "tests/unit/agent/data/trees.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- archives ---- */

TEST(joined_archives_are_read_whole)
{
    static uint8_t bytes[65536];
    const char *folder = pictures_folder();
    size_t one = tree_tar(bytes, 20000, (const char *const[]){"a/1.png", "b/1.png", NULL});
    size_t two = tree_tar(bytes + one, 20000, (const char *const[]){"a/2.png", "c/1.png", NULL});
    for (int gz = 0; gz < 2; gz++) {
        const char *name = gz ? "ab.tar.gz" : "ab.tar";
        pictures_write(folder, name, bytes, one + two, gz);
        hpct_dataset *dataset = tree_opened(tree_below(folder, name), HPCT_TRAIN);
        assert_int_equal(hpct_dataset_size(dataset), 4);
        assert_int_equal(hpct_dataset_num_classes(dataset), 3);
        hpct_dataset_free(dataset);
        /* without its end, and with half of it: as if cut between two members */
        for (size_t left = 0; left < 1024; left += 512) {
            pictures_write(folder, name, bytes, one - 1024 + left, gz);
            tree_is_wrong(tree_below(folder, name), "its end is missing");
        }
    }
}

/* A zip of a picture in the folder Z\xc3\xbcrich, and that this is UTF-8, as Python's zipfile has
 * it. */
static size_t make_zip(uint8_t *out, size_t room)
{
    size_t size = pictures_seed("picture/png", tree_seed, sizeof tree_seed), used = 0;
    struct archive *archive = archive_write_new();
    struct archive_entry *entry = archive_entry_new();
    archive_write_set_format_zip(archive);
    archive_write_set_bytes_in_last_block(archive, 1);
    assert_int_equal(archive_write_open_memory(archive, out, room, &used), ARCHIVE_OK);
    archive_entry_set_pathname(entry, "Z~~rich/1.png");
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_size(entry, (la_int64_t) size);
    assert_int_equal(archive_write_header(archive, entry), ARCHIVE_OK);
    archive_write_data(archive, tree_seed, size);
    archive_entry_free(entry);
    assert_int_equal(archive_write_free(archive), ARCHIVE_OK);
    for (uint8_t *at = out; (at = memmem(at, used - (size_t) (at - out), "Z~~rich", 7)) != NULL;) {
        memcpy(at, "Z\xc3\xbcrich", 7);
        at[memcmp(out, "PK\3\4", 4) == 0 && at == out + 30 ? 7 - 30 : 9 - 46] |= 0x08;
    }
    return used;
}

/* In any locale. */
TEST(names_in_zips_may_be_utf8)
{
    tree_needs_pictures();
    static uint8_t bytes[65536];
    const char *folder = pictures_folder();
    pictures_write(folder, "x.zip", bytes, make_zip(bytes, sizeof bytes), false);
    tree_is_read(tree_below(folder, "x.zip"), HPCT_TRAIN, 1, "Z\xc3\xbcrich", "", "");
}

/* As tar --append and zip put a mended picture into them: the last of a name counts. */
TEST(the_last_of_a_name_counts)
{
    const char *folder = pictures_folder();
    TREE_TAR(folder, "0.tar", "a/1.png", "b/1.png", "./a/1.png", "a/2.png", "a/1.png", "b/1.png");
    tree_is_read(
        tree_below(folder, "0.tar"), HPCT_TRAIN, 3, "a,b", "",
        "3 pictures whose name comes again in the same archive are left out for the later one "
        "(the first: a/1.png)");
    for (int i = 0; i < 2; i++) /* other shards have names of their own */
        TREE_TAR(folder, i == 0 ? "0.tar" : "1.tar", "1.png", "1.cls", "2.png", "2.cls", "1.png",
                 "1.cls");
    TREE_HAS_LABELS(folder, HPCT_TRAIN, 2, 1, 2, 1);
}

/* Test shards without one of the classes have the numbers of the training shards. */
TEST(shards_are_numbered_by_training)
{
    const char *folder = pictures_folder();
    TREE_TAR(folder, "train-0.tar", "a/1.png", "b/1.png", "b/2.png");
    tree_is_read(folder, HPCT_TRAIN, 3, "a,b", "train-0.tar", "");
    TREE_TAR(folder, "test-0.tar", "test/b/3.png");
    tree_is_read(folder, HPCT_TEST, 1, "a,b", "test-0.tar", "");
    TREE_HAS_LABELS(folder, HPCT_TEST, 1);
    /* also by a class all of whose pictures are of a kind that cannot be read */
    TREE_TAR(folder, "train-0.tar", "a/1.png", "aa/1.webp", "b/1.png");
    tree_is_read(folder, HPCT_TRAIN, 2, "a,aa,b", "train-0.tar", "1 picture");
    tree_is_read(folder, HPCT_TEST, 1, "a,aa,b", "test-0.tar", "1 picture");
}

/* Compressed with bzip2, too. */
TEST(all_shards_are_read)
{
    if (system("command -v bzip2 >/dev/null") != 0)
        skip();
    const char *from = TREE("a/1.png", "b/2.png"), *folder = pictures_folder();
    static const char *const names[] = {"train-0.tar.gz", "train-1.tbz", "train-2.tar.bz2"};
    for (int i = 0; i < 3; i++) {
        char command[16384];
        snprintf(command, sizeof command, "tar -C %s -c%sf %s/%s a b", from, i == 0 ? "z" : "j",
                 folder, names[i]);
        assert_int_equal(system(command), 0);
    }
    tree_is_read(folder, HPCT_TRAIN, 6, "a,b", "train-0.tar.gz to train-2.tar.bz2", "");
    tree_put(folder, "train-1.tar", "tar/classes");
    tree_is_wrong(folder, "train-1.tar and train-1.tbz have one name");
}

TEST(shards_are_of_the_split_they_name)
{
    static const char *const names[] = {"./1.png", "./1.CLS", "._2.png", NULL};
    const char *folder = pictures_folder();
    tree_put_tar(folder, "cifar10-train-0.tar", names);
    tree_put_tar(folder, "cifar10-train-1.tar", names);
    tree_put_tar(folder, "cifar10-test-0.tar", names);
    tree_is_read(folder, HPCT_TRAIN, 2, "", "cifar10-train-0.tar to cifar10-train-1.tar", "");
    tree_is_read(folder, HPCT_TEST, 1, "", "cifar10-test-0.tar", "");
    tree_is_read(folder, HPCT_VALIDATION, 1, "", "cifar10-test-0.tar", "");
    tree_put_tar(folder, "others.tar", names);
    tree_is_read(folder, HPCT_TRAIN, 2, "", "cifar10-train-0.tar to cifar10-train-1.tar",
                 "1 archive whose name says no split is left out (the first: others.tar)");
    tree_put_tar(folder, "train-test.tar", names);
    tree_is_wrong(folder, "words for two splits");
    tree_put(folder, "train/cat/1.png", "picture/png");
    tree_is_wrong(folder, "both archives (cifar10-test-0.tar) and folders");
    const char *webp = pictures_folder();
    TREE_TAR(webp, "w.tar", "1.png", "1.cls", "2.webp", "2.cls");
    tree_is_wrong(tree_below(webp, "w.tar"), "its picture, 2.webp, cannot be read");
}

/* img2dataset's shards have a folder each: it is not a class. */
TEST(descriptions_are_no_labels)
{
    const char *folder = pictures_folder();
    TREE_TAR(folder, "00000.tar", "00000/01.png", "00000/01.json", "00000/01.txt", "00000/02.png",
             "00000/02.json");
    tree_is_wrong(folder, "KEY.json or KEY.txt stand beside pictures");
    TREE_TAR(folder, "00000.tar", "1.png", "1.cls", "1.json", "2.json", "2.png", "2.cls");
    tree_is_read(folder, HPCT_TRAIN, 2, "", "00000.tar", "");
    TREE_TAR(folder, "00000.tar", "a/1.png", "b/2.png", "read.txt");
    tree_is_read(folder, HPCT_TRAIN, 2, "a,b", "00000.tar", "");
}

/* What an archive names but does not hold is counted; "../b/2.png" is b/2.png. */
TEST(links_are_counted)
{
    const char *folder = TREE("set/a/1.png", "b/2.png");
    char archive[4096], *one = strdup(tree_below(folder, "set/a/1.png"));
    assert_int_equal(link(one, tree_below(folder, "b/3.png")), 0);
    free(one);
    assert_int_equal(symlink("/no/such/picture.png", tree_below(folder, "b/4.png")), 0);
    snprintf(archive, sizeof archive, "%s/x.tar.gz", pictures_folder());
    tree_pack(archive, tree_below(folder, "set"), "a a/1.png ../b");
    tree_is_read(archive, HPCT_TRAIN, 2, "a,b", "", "2 links in archives are left out: put");
}

/* A picture gets the label of its own sample, or is refused. */
TEST(labels_are_of_their_sample)
{
    static const char *const twice = "it cannot be told whether it is of one sample with";
    static const struct {
        const char *names[8];
        const char *why; /* NULL: read, with the labels 1, 2 … */
    } cases[] = {
        {{"a.1.png", "a.1.cls", "a.2.png", "a.2.cls"}, NULL},
        {{"a.1.cls", "a.1.png", "a.2.cls", "a.2.png"}, NULL},
        {{"1.input.png", "1.output.cls", "2.input.png", "2.output.cls"}, NULL},
        {{"a.1.cls", "a.1.png", "a.2.cls", "a.2.png", "a.3.cls"},
         "a.3.cls: its picture is missing"},
        {{"a.1.png", "a.2.cls", "a.3.png", "a.3.cls"}, twice},
        {{"a.1.png", "a.1.cls", "a.2.png", "a.3.cls"}, twice},
        {{"1.png", "1.coarse.cls", "1.fine.cls", "2.png", "2.cls"},
         "1.fine.cls: its picture is missing"},
        {{"1.left.png", "1.right.png", "1.cls"}, twice},
    };
    const char *folder = pictures_folder();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tree_put_tar(folder, "w.tar", cases[i].names);
        if (cases[i].why != NULL) {
            tree_is_wrong(tree_below(folder, "w.tar"), cases[i].why);
            continue;
        }
        TREE_HAS_LABELS(tree_below(folder, "w.tar"), HPCT_TRAIN, 1, 2);
    }
}
