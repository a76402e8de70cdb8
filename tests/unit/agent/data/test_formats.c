/* agent/data: pictures, folders and tars of them, CIFAR, synthetic data. The files are those of
 * tests/fuzz/corpus; what they hold was read by Pillow, TensorFlow and numpy. */
#include "config.h"

#include "agent/data/dataset.h"
#include "agent/data/encoded.h"
#include "agent/data/pickle.h"
#include "agent/data/picture.h"
#include "base/memory.h"
#include "tests/unit/agent/data/pictures.h"
#include "tests/unit/agent/data/trees.h"
#include "tests/unit/cases.h"

#include <sys/stat.h>
#include <unistd.h>

static uint8_t seed[65536];

/* ---- one picture ---- */

static long sum_of(const uint8_t *bytes, size_t count)
{
    long sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += bytes[i];
    return sum;
}

TEST(pictures_are_decoded_as_others_do)
{
    tree_needs_pictures();
    static const struct {
        const char *name;
        int height, width;
        uint8_t first[6];
        long rgb, grey;
    } cases[] = {
        {"picture/jpeg", 7, 9, {3, 4, 0, 16, 11, 0}, 16707, 6722},
        {"picture/jpeg_grey", 8, 8, {0, 0, 0, 11, 11, 11}, 20349, 6783},
        {"picture/jpeg_progressive", 9, 17, {3, 0, 2, 21, 8, 0}, 46906, 17158},
        {"picture/jpeg_cmyk", 8, 8, {0, 0, 2, 20, 22, 0}, 16549, 6817},
        {"picture/png", 7, 9, {0, 0, 0, 23, 7, 0}, 16632, 6721},
        {"picture/png_grey", 4, 5, {0, 0, 0, 11, 11, 11}, 3150, 1050},
        {"picture/png_palette", 5, 6, {0, 0, 0, 0, 0, 0}, 4845, 2052},
        {"picture/png_alpha", 4, 4, {0, 0, 0, 23, 7, 0}, 1692, 742},
        {"picture/png_16", 4, 4, {0, 0, 0, 0, 0, 0}, 0, 0},
        {"picture/png_1", 3, 9, {0, 0, 0, 0, 0, 0}, 5355, 1785},
    };
    hpct_data_decoder *decoder;
    assert_int_equal(hpct_data_decoder_new(&decoder), HPCT_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hpct_data_coded coded = {seed, pictures_seed(cases[i].name, seed, sizeof seed), "it"};
        hpct_data_picture picture;
        size_t cells = (size_t) cases[i].height * (size_t) cases[i].width;
        assert_int_equal(hpct_data_picture_decode(decoder, &coded, 3, &picture), HPCT_OK);
        assert_int_equal(picture.height, cases[i].height);
        assert_int_equal(picture.width, cases[i].width);
        assert_memory_equal(picture.pixels, cases[i].first, 6);
        assert_int_equal(sum_of(picture.pixels, 3 * cells), cases[i].rgb);
        assert_int_equal(hpct_data_picture_decode(decoder, &coded, 1, &picture), HPCT_OK);
        assert_int_equal(sum_of(picture.pixels, cells), cases[i].grey);
    }
    hpct_data_decoder_free(decoder);
}

/* As Pillow's "L": a gAMA chunk does not change what is read. */
TEST(gamma_does_not_change_grey)
{
    tree_needs_pictures();
    static const uint8_t gamma[] = {0, 0, 0,    4,    'g',  'A',  'M',  'A',
                                    0, 0, 0xb1, 0x8f, 0x0b, 0xfc, 0x61, 0x05};
    enum { HEADER = 33, CELLS = 7 * 9 };
    uint8_t plain[CELLS];
    hpct_data_decoder *decoder;
    hpct_data_picture picture;
    size_t size = pictures_seed("picture/png", seed, sizeof seed);
    assert_int_equal(hpct_data_decoder_new(&decoder), HPCT_OK);
    assert_int_equal(
        hpct_data_picture_decode(decoder, &(hpct_data_coded){seed, size, "it"}, 1, &picture),
        HPCT_OK);
    memcpy(plain, picture.pixels, CELLS);
    memmove(seed + HEADER + sizeof gamma, seed + HEADER, size - HEADER);
    memcpy(seed + HEADER, gamma, sizeof gamma);
    assert_int_equal(hpct_data_picture_decode(
                         decoder, &(hpct_data_coded){seed, size + sizeof gamma, "it"}, 1, &picture),
                     HPCT_OK);
    assert_memory_equal(picture.pixels, plain, CELLS);
    hpct_data_decoder_free(decoder);
}

/* Cut anywhere, a picture is refused, and the decoder goes on with the next. */
TEST(cut_pictures_are_refused)
{
    tree_needs_pictures();
    static const char *const names[] = {"picture/jpeg", "picture/jpeg_progressive", "picture/png"};
    hpct_data_decoder *decoder;
    hpct_data_picture picture;
    assert_int_equal(hpct_data_decoder_new(&decoder), HPCT_OK);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        hpct_data_coded whole = {seed, pictures_seed(names[i], seed, sizeof seed), "it"},
                        cut = whole;
        for (cut.num_bytes = 0; cut.num_bytes + 2 < whole.num_bytes; cut.num_bytes++) {
            assert_int_equal(hpct_data_picture_decode(decoder, &cut, 3, &picture), HPCT_ERR_DATA);
            assert_non_null(strstr(hpct_last_error(), "it: "));
        }
        assert_int_equal(hpct_data_picture_decode(decoder, &whole, 3, &picture), HPCT_OK);
    }
    hpct_data_decoder_free(decoder);
}

/* ---- folders and archives ---- */

static hpct_dataset *opened(const char *path, hpct_split split, const hpct_dataset_options *options)
{
    hpct_dataset *dataset = NULL;
    if (hpct_dataset_open_as(&dataset, path, split, options) != HPCT_OK)
        fail_msg("%s", hpct_last_error());
    return dataset;
}

/* Classes are numbered by the sorted names of the training split, samples sorted by name. */
TEST(folders_are_read_by_class)
{
    tree_needs_pictures();
    static const int32_t train[] = {0, 1, 1, 2}, test[] = {0, 3};
    const char *folder = pictures_folder();
    tree_put(folder, "train/b/2.JPG", "picture/jpeg");
    tree_put(folder, "train/b/1.png", "picture/png");
    tree_put(folder, "train/a b/1.jpeg", "picture/jpeg");
    tree_put(folder, "train/d/1.png", "picture/png");
    tree_put(folder, "test/a b/1.png", "picture/png");
    tree_put(folder, "test/c/1.png", "picture/png");
    pictures_write(folder, "train/d/notes.txt", "x", 1, false);
    hpct_dataset *dataset = opened(folder, HPCT_TRAIN, NULL);
    assert_int_equal(hpct_dataset_size(dataset), 4);
    assert_memory_equal(dataset->labels, train, sizeof train);
    assert_int_equal(hpct_dataset_num_classes(dataset), 3);
    assert_string_equal(dataset->classes[0], "a b");
    assert_string_equal(dataset->classes[2], "d");
    assert_int_equal(dataset->pixels[4 * 0 + 1], 4);    /* "a b/1.jpeg" */
    assert_int_equal(dataset->pixels[1 * 189 + 3], 23); /* "b/1.png" */
    assert_int_equal(dataset->pixels[2 * 189 + 3], 16); /* "b/2.JPG" */
    assert_null(dataset->encoded.bytes);                /* decoded once, all of one size */
    hpct_dataset_free(dataset);
    dataset = opened(folder, HPCT_TEST, NULL);
    assert_int_equal(hpct_dataset_size(dataset), 2);
    assert_memory_equal(dataset->labels, test, sizeof test);
    assert_string_equal(dataset->classes[3], "c");
    hpct_dataset_free(dataset);

    char bare[4096];
    snprintf(bare, sizeof bare, "%s/train", folder);
    for (int split = HPCT_TRAIN; split <= HPCT_TEST; split++) {
        dataset = opened(bare, (hpct_split) split, &(hpct_dataset_options){.channels = 1});
        assert_int_equal(hpct_dataset_size(dataset), 4);
        assert_int_equal(dataset->labels[3], 2);
        assert_int_equal(hpct_dataset_shape(dataset).size[2], 1);
        hpct_dataset_free(dataset);
    }
}

TEST(wrong_pictures_are_named)
{
    tree_needs_pictures();
    const char *folder = pictures_folder();
    tree_put(folder, "train/a/1.png", "picture/png");
    tree_put(folder, "train/a/2.png", "picture/png");
    tree_refuses(folder, HPCT_TEST, HPCT_ERR_NO_INPUT, folder, "no test pictures");
    size_t size = pictures_seed("picture/png", seed, sizeof seed);
    pictures_write(folder, "train/a/2.png", seed, size - 30, false);
    tree_names_wrong(folder, "train/a/2.png", "damaged");
    pictures_write(folder, "train/a/2.png", "GIF89a", 6, false);
    tree_names_wrong(folder, "train/a/2.png", "a GIF: JPEG and PNG can be read");
    pictures_write(folder, "train/a/2.png", "<html>", 6, false);
    tree_names_wrong(folder, "train/a/2.png", "HTML");
    pictures_write(folder, "train/a/2.png", "x", 1, false);
    tree_names_wrong(folder, "train/a/2.png", "of an unknown format: JPEG and PNG");
    pictures_write(folder, "train/a/2.png", "", 0, false);
    tree_names_wrong(folder, "train/a/2.png", "empty");
}

/* Of several sizes: kept as they are, and refused only where a model wants one size. */
TEST(several_sizes_stay_encoded)
{
    tree_needs_pictures();
    const char *folder = pictures_folder();
    tree_put(folder, "a/1.png", "picture/png");
    tree_put(folder, "b/1.jpg", "picture/jpeg_progressive");
    hpct_dataset *dataset = opened(folder, HPCT_TRAIN, NULL);
    assert_null(dataset->pixels);
    assert_int_equal(hpct_dataset_check(dataset, HPCT_SHAPE(7, 9, 3), 2), HPCT_ERR_DATA);
    assert_non_null(strstr(hpct_last_error(), "b/1.jpg"));
    hpct_dataset_free(dataset);
    const hpct_dataset_options sized = {.height = 5, .width = 6};
    dataset = opened(folder, HPCT_TRAIN, &sized);
    assert_int_equal(hpct_dataset_check(dataset, HPCT_SHAPE(5, 6, 3), 2), HPCT_OK);
    hpct_dataset_free(dataset);
}

/* What does not fit the memory decoded stays encoded; what does not fit that way either is read
 * again from its files. */
TEST(memory_decides_what_is_kept)
{
    tree_needs_pictures();
    const char *folder = pictures_folder();
    tree_put(folder, "a/1.png", "picture/png");
    tree_put(folder, "a/2.png", "picture/png");
    for (size_t memory = 0; memory < 3; memory++) {
        const size_t limits[] = {2000, 600, 100};
        hpct_dataset *dataset =
            opened(folder, HPCT_TRAIN, &(hpct_dataset_options){.memory = limits[memory]});
        assert_int_equal(dataset->pixels != NULL, memory == 0);
        assert_int_equal(dataset->encoded.bytes != NULL, memory == 1);
        hpct_data_room room = {0};
        hpct_data_picture picture;
        assert_int_equal(hpct_dataset_fetch(dataset, 1, &room, &picture), HPCT_OK);
        assert_int_equal(picture.width, 9);
        assert_int_equal(picture.pixels[3], 23);
        hpct_data_room_free(&room);
        hpct_dataset_free(dataset);
    }
    assert_true(hpct_memory_share_now().bytes > 1 << 20);
}

static void put_file(const char *folder, const char *name, const char *text)
{
    pictures_write(folder, name, text, strlen(text), false);
}

/* The tightest cgroup above the process counts, its file cache aside. */
TEST(cgroups_limit_the_memory)
{
    const char *folder = pictures_folder();
    char proc[4096], cgroups[4096];
    snprintf(proc, sizeof proc, "%s/proc", folder);
    snprintf(cgroups, sizeof cgroups, "%s/cg", folder);
    put_file(folder, "proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    4000 kB\n");
    assert_int_equal(hpct_memory_share_in(proc, cgroups).bytes, 4000 * 1024);
    put_file(folder, "proc/self/cgroup", "0::/job/step\n");
    put_file(folder, "cg/job/memory.max", "1000000\n");
    put_file(folder, "cg/job/memory.current", "400000\n");
    put_file(folder, "cg/job/memory.stat", "anon 300000\ninactive_file 100000\n");
    put_file(folder, "cg/job/step/memory.max", "max\n");
    assert_int_equal(hpct_memory_share_in(proc, cgroups).bytes, 700000);
    put_file(folder, "cg/job/memory.current", "2000000\n");
    assert_int_equal(hpct_memory_share_in(proc, cgroups).bytes, 0);
    put_file(folder, "proc/self/cgroup", "7:cpu:/x\n5:memory:/slurm/job\n");
    put_file(folder, "cg/memory/slurm/memory.limit_in_bytes", "500000\n");
    put_file(folder, "cg/memory/slurm/memory.usage_in_bytes", "1000\n");
    assert_int_equal(hpct_memory_share_in(proc, cgroups).bytes, 499000);
}

TEST(archives_are_read)
{
    tree_needs_pictures();
    char path[4096];
    const char *folder = pictures_folder();
    tree_put(folder, "a.tar", "tar/classes");
    snprintf(path, sizeof path, "%s/a.tar", folder);
    hpct_dataset *dataset = opened(path, HPCT_TEST, NULL);
    assert_int_equal(hpct_dataset_size(dataset), 1);
    assert_int_equal(hpct_dataset_num_classes(dataset), 2);
    hpct_dataset_free(dataset);
    dataset = opened(path, HPCT_TRAIN, NULL); /* 4x4 and 5x4 */
    assert_int_equal(hpct_dataset_size(dataset), 2);
    assert_int_equal(dataset->stored.rank, 0);
    hpct_dataset_free(dataset);

    const char *shards = pictures_folder();
    tree_put(shards, "train-0.tar.gz", "tar/web");
    tree_put(shards, "train-1.tar.gz", "tar/web");
    TREE_HAS_LABELS(shards, HPCT_TRAIN, 1, 2, 1, 2);
    tree_refuses(shards, HPCT_TEST, HPCT_ERR_NO_INPUT, shards, "no test shards");
    size_t size = pictures_seed("tar/classes", seed, sizeof seed);
    pictures_write(folder, "a.tar", seed, 1600, false);
    tree_names_wrong(path, "a.tar", "damaged");
    assert_true(size > 1600);
}

/* ---- CIFAR ---- */

/* The two pictures of the corpus: byte j of plane order in picture i is (3072 i + j) * 7 % 251. */
static void check_cifar(const hpct_dataset *dataset, int first, int second)
{
    assert_int_equal(hpct_dataset_shape(dataset).size[2], 3);
    assert_int_equal(dataset->labels[0], first);
    assert_int_equal(dataset->labels[1], second);
    for (int i = 0; i < 2; i++) {
        for (int cell = 0; cell < 1024; cell += 77) {
            for (int c = 0; c < 3; c++)
                assert_int_equal(dataset->pixels[i * 3072 + 3 * cell + c],
                                 (3072 * i + 1024 * c + cell) * 7 % 251);
        }
    }
}

TEST(cifar_binary_is_read)
{
    const char *folder = pictures_folder(), *hundred = pictures_folder();
    size_t size = pictures_seed("cifar/ten", seed, sizeof seed);
    for (int i = 0; i < 3072; i++)
        seed[size + 1 + (size_t) i] = (uint8_t) ((3072 + i) * 7 % 251);
    seed[size] = 9;
    tree_put(folder, "test_batch.bin", "cifar/ten");
    pictures_seed("cifar/ten", seed, sizeof seed);
    seed[size] = 9;
    for (int i = 1; i <= 5; i++) {
        char name[32];
        snprintf(name, sizeof name, "data_batch_%d.bin", i);
        pictures_write(folder, name, seed, 2 * size, false);
    }
    put_file(folder, "batches.meta.txt", "airplane\nautomobile\n\n");
    hpct_dataset *dataset = opened(folder, HPCT_TRAIN, NULL);
    assert_int_equal(hpct_dataset_size(dataset), 10);
    check_cifar(dataset, 3, 9);
    assert_string_equal(dataset->classes[1], "automobile");
    hpct_dataset_free(dataset);
    pictures_write(folder, "data_batch_5.bin", seed, 2 * size - 1, false);
    tree_names_wrong(folder, "data_batch_5.bin", "truncated");
    pictures_write(folder, "data_batch_5.bin", seed, 0, false);
    tree_names_wrong(folder, "data_batch_5.bin", "it is empty");
    seed[0] = 10;
    pictures_write(folder, "data_batch_5.bin", seed, size, false);
    tree_names_wrong(folder, "data_batch_5.bin", "is 10");

    tree_put(hundred, "train.bin", "cifar/hundred");
    tree_put(hundred, "test.bin", "cifar/hundred");
    dataset = opened(hundred, HPCT_TEST, NULL);
    assert_int_equal(dataset->labels[0], 99);
    assert_int_equal(dataset->pixels[0], 3072 * 7 % 251);
    hpct_dataset_free(dataset);
}

/* As Python 2 wrote them in 2009, and as numpy writes them in every protocol since. */
TEST(cifar_pickles_are_read)
{
    static const char *const names[] = {
        "pickle/python2", "pickle/numpy2",       "pickle/numpy3",       "pickle/numpy4",
        "pickle/numpy5",  "pickle/array_labels", "pickle/scalar_labels"};
    const char *folder = pictures_folder();
    for (int i = 1; i <= 5; i++) {
        char name[32];
        snprintf(name, sizeof name, "data_batch_%d", i);
        tree_put(folder, name, names[0]);
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        tree_put(folder, "test_batch", names[i]);
        hpct_dataset *dataset = opened(folder, HPCT_TEST, NULL);
        assert_int_equal(hpct_dataset_size(dataset), 2);
        check_cifar(dataset, 3, 9);
        hpct_dataset_free(dataset);
    }
    tree_put(folder, "test_batch", "pickle/evil");
    tree_refuses(folder, HPCT_TEST, HPCT_ERR_DATA, "test_batch",
                 "posix.system, which is not allowed");
}

/* Number: the text's bytes. */
static hpct_status parse_pickle(const parse_case *c, char *got, size_t size)
{
    (void) got;
    (void) size;
    hpct_data_pickle *pickle;
    const hpct_data_pickle_value *value;
    return hpct_data_pickle_read(&pickle, &value, (const uint8_t *) c->text, (size_t) c->number,
                                 "x");
}

/* Each an opcode or a use of one that plain data do not need. */
TEST(other_pickles_are_rejected)
{
    static const parse_case cases[] = {
#define PICKLE(text) {text, HPCT_ERR_DATA, NULL, sizeof text - 1}
        PICKLE(""),
        PICKLE("(dp0\n."),                               /* protocol 0 */
        PICKLE("\x80\x09N."),                            /* a protocol to come */
        PICKLE("\x80\x02"),                              /* no end */
        PICKLE("\x80\x02."),                             /* nothing */
        PICKLE("\x80\x02h\x05."),                        /* what was never put */
        PICKLE("\x80\x02Nr\xff\xff\xff\x7f."),           /* a memo with gaps */
        PICKLE("\x80\x02K\x01K\x02R."),                  /* a number called */
        PICKLE("\x80\x02(e."),                           /* a list missing */
        PICKLE("\x80\x02}(K\x01u."),                     /* a key without value */
        PICKLE("\x80\x02X\xff\xff\xff\xff."),            /* too long */
        PICKLE("\x80\x02(i__builtin__\neval\n."),        /* INST */
        PICKLE("\x80\x02(c__builtin__\neval\nK\x01o."),  /* OBJ */
        PICKLE("\x80\x04\x8c\x02os\x8c\x06system\x93."), /* STACK_GLOBAL */
        PICKLE("\x80\x02"
               "cnumpy\ndtype\nX\x02\0\0\0O8\x85R."),
        PICKLE("\x80\x02"
               "cnumpy\nndarray\n)R."),
        PICKLE("\x80\x02\x82\x01."), /* EXT1 */
        PICKLE("\x80\x02"
               "P1\n."), /* PERSID */
    };
    RUN_CASES(parse_pickle, cases);
}

/* ---- made up ---- */

TEST(synthetic_data_are_always_the_same)
{
    hpct_dataset *a, *b, *test;
    hpct_shape shape = HPCT_SHAPE(8, 6, 3);
    assert_int_equal(hpct_dataset_synthetic(&a, shape, 7, 20, HPCT_TRAIN, NULL), HPCT_OK);
    assert_int_equal(hpct_dataset_synthetic(&b, shape, 7, 20, HPCT_TRAIN, NULL), HPCT_OK);
    assert_int_equal(hpct_dataset_synthetic(&test, shape, 7, 20, HPCT_TEST, NULL), HPCT_OK);
    assert_int_equal(hpct_dataset_num_classes(a), 7);
    assert_memory_equal(a->pixels, b->pixels, 20 * 144);
    assert_memory_not_equal(a->pixels, test->pixels, 144);
    assert_memory_not_equal(a->pixels, a->pixels + 7 * 144, 144); /* of the same class */
    assert_int_equal(a->labels[0], a->labels[7]);
    hpct_dataset_free(a);
    hpct_dataset_free(b);
    hpct_dataset_free(test);
    assert_int_equal(hpct_dataset_synthetic(&a, HPCT_SHAPE(8000, 8000), 2, 1000000, HPCT_TRAIN,
                                            &(hpct_dataset_options){.memory = 1 << 20}),
                     HPCT_ERR_CONFIG);
}

TEST(summaries_say_what_there_is)
{
    tree_needs_pictures();
    char text[1024] = "";
    const char *folder = pictures_folder();
    tree_put(folder, "cat/1.png", "picture/png");
    tree_put(folder, "cat/2.png", "picture/png");
    tree_put(folder, "d\x1bog/1.png", "picture/png");
    hpct_dataset *dataset = opened(folder, HPCT_TRAIN, NULL);
    FILE *stream = fmemopen(text, sizeof text, "w");
    assert_int_equal(hpct_dataset_summary(dataset, stream), HPCT_OK);
    fclose(stream);
    assert_non_null(strstr(text, "samples:   3\n"));
    assert_non_null(strstr(text, "shape:     7x9x3\n"));
    assert_non_null(strstr(text, "0  cat  2\n"));
    assert_non_null(strstr(text, "1  d?og  1\n"));
    hpct_dataset_free(dataset);
}
