/* agent/data: what is read, and what is refused, with a message that names the file. */
#include "config.h"

#include "agent/data/dataset.h"
#include "agent/data/gunzip.h"
#include "agent/data/npy.h"
#include "tests/unit/agent/data/pictures.h"
#include "tests/unit/agent/data/trees.h"
#include "tests/unit/cases.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

TEST(idx_is_read)
{
    for (int gz = 0; gz < 2; gz++) {
        hpct_dataset *dataset;
        const char *folder = pictures_folder();
        pictures_mnist_like(folder, 30, 12, 10, gz == 1);
        assert_int_equal(hpct_dataset_open(&dataset, folder, HPCT_TRAIN), HPCT_OK);
        assert_int_equal(hpct_dataset_size(dataset), 30);
        assert_int_equal(hpct_dataset_max_label(dataset), 9);
        hpct_shape shape = hpct_dataset_shape(dataset);
        assert_int_equal(shape.rank, 2);
        assert_int_equal(shape.size[0], 28);
        assert_int_equal(shape.size[1], 28);

        static float pixels[2 * 784];
        int32_t labels[2];
        hpct_dataset_gather(dataset, (uint32_t[]){7, 13}, 2, pixels, labels);
        assert_int_equal(labels[0], 7);
        assert_int_equal(labels[1], 3);
        assert_true(fabsf(pixels[16 * 28] - 207.0f / 255.0f) < 1e-6f);
        assert_true(fabsf(pixels[784 + 8 * 28] - 213.0f / 255.0f) < 1e-6f);
        assert_true(pixels[0] == 0.0f);
        hpct_dataset_free(dataset);

        assert_int_equal(hpct_dataset_open(&dataset, folder, HPCT_TEST), HPCT_OK);
        assert_int_equal(hpct_dataset_size(dataset), 12);
        hpct_dataset_free(dataset);
    }
}

TEST(missing_files_are_named)
{
    char path[4096];
    const char *folder = pictures_folder();
    tree_refuses("/no/such/folder", HPCT_TRAIN, HPCT_ERR_NO_INPUT, "/no/such/folder",
                 "No such file");
    tree_refuses(folder, HPCT_TRAIN, HPCT_ERR_NO_INPUT, folder, "train-images-idx3-ubyte");
    pictures_mnist_like(folder, 4, 4, 4, true);
    snprintf(path, sizeof path, "%s/train-labels-idx1-ubyte.gz", folder);
    unlink(path);
    tree_refuses(folder, HPCT_TRAIN, HPCT_ERR_NO_INPUT, "train-labels-idx1-ubyte", "No such file");
}

/* Replaces one file of a good folder. */
static const char *folder_with(const char *name, const void *bytes, size_t size, bool gz)
{
    const char *folder = pictures_folder();
    pictures_mnist_like(folder, 4, 4, 4, false);
    pictures_write(folder, name, bytes, size, gz);
    return folder;
}

#define IMAGES "train-images-idx3-ubyte"
#define LABELS "train-labels-idx1-ubyte"

/* A folder whose pictures are this, compressed. */
static const char *only_gzip(const void *bytes, size_t size)
{
    const char *folder = folder_with(IMAGES ".gz", bytes, size, true);
    unlink(tree_below(folder, IMAGES));
    return folder;
}

TEST(invalid_idx_files_are_rejected)
{
    static uint8_t file[8192], pixels[4 * 784];
    const uint32_t sizes[] = {4, 28, 28};
    size_t size = pictures_idx(file, 0x803, 3, sizes, pixels, sizeof pixels);

    tree_names_wrong(folder_with(IMAGES, file, size - 1, false), IMAGES, "truncated");
    tree_names_wrong(only_gzip(file, size - 1), IMAGES ".gz", "truncated");
    tree_names_wrong(only_gzip(file, 7), IMAGES ".gz", "truncated");
    tree_names_wrong(folder_with(IMAGES, file, 7, false), IMAGES, "truncated");
    tree_names_wrong(folder_with(IMAGES, file, 0, false), IMAGES, "truncated");
    file[size] = 0;
    tree_names_wrong(folder_with(IMAGES, file, size + 1, false), IMAGES, "longer");
    tree_names_wrong(only_gzip(file, size + 1), IMAGES ".gz", "longer");
    pictures_idx(file, 0x801, 3, sizes, pixels, sizeof pixels);
    tree_names_wrong(folder_with(IMAGES, file, size, false), IMAGES,
                     "wrong magic number 0x00000801");
    static const struct {
        const char *name, *bytes;
        size_t size;
        const char *file, *why;
    } cases[] = {
        {LABELS, "\0\0\x0d\x01\0\0\0\x01....", 12, LABELS, "wrong magic number 0x00000d01"},
        {LABELS, "\0\0\x08\x01\0\0\0\x03\0\1\2", 11, LABELS, "3 labels"},
        {IMAGES, "\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16, IMAGES,
         "sizes cannot be right"},
        /* 4 GiB - 1 of pictures in a file of 20 bytes ask for little memory */
        {IMAGES, "\0\0\x08\x03\xff\xff\xff\xff\0\0\0\x01\0\0\0\x01....", 20, IMAGES, "truncated"},
        {IMAGES, "\0\0\x08\x03\0\0\0\0\0\0\0\x1c\0\0\0\x1c", 16, LABELS, "4 labels"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        tree_names_wrong(folder_with(cases[i].name, cases[i].bytes, cases[i].size, false),
                         cases[i].file, cases[i].why);
}

TEST(damaged_gzip_is_rejected)
{
    static uint8_t bytes[65536];
    char path[4096];
    const char *folder = pictures_folder();
    pictures_mnist_like(folder, 40, 4, 4, true);
    snprintf(path, sizeof path, "%s/" IMAGES ".gz", folder);
    FILE *file = fopen(path, "rb");
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    const struct {
        size_t keep, flip;
        const char *why;
    } cases[] = {
        {size / 2, 0, "truncated"}, {size - 4, 0, "end is missing"}, {size, size - 6, "damaged"}};
    for (int i = 0; i < 3; i++) {
        bytes[cases[i].flip] ^= cases[i].flip > 0 ? 0x55 : 0;
        file = fopen(path, "wb");
        fwrite(bytes, 1, cases[i].keep, file);
        fclose(file);
        tree_names_wrong(folder, IMAGES ".gz", cases[i].why);
    }
}

/* A gzip member as zlib writes it; returns its length. */
static size_t gzip_member(uint8_t *out, size_t room, const void *bytes, size_t size)
{
    const char *folder = pictures_folder();
    char path[4096];
    pictures_write(folder, "member", bytes, size, true);
    snprintf(path, sizeof path, "%s/member", folder);
    FILE *file = fopen(path, "rb");
    size_t length = fread(out, 1, room, file);
    fclose(file);
    return length;
}

static uint8_t *gunzip(const void *bytes, size_t size, size_t *num)
{
    FILE *file = tmpfile();
    fwrite(bytes, 1, size, file);
    fflush(file);
    uint8_t *content = hpct_data_gunzip(fileno(file), num);
    assert_int_equal(lseek(fileno(file), 0, SEEK_CUR), (off_t) size);
    fclose(file);
    return content;
}

/* What is unusual is left to the stream: NULL. */
TEST(single_member_gzip_is_inflated_in_one_call)
{
    static uint8_t text[5000], file[2 * 6000], changed[2 * 6000];
    size_t num = 0, once, size;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (uint8_t) (i * i / 7);
    once = gzip_member(file, sizeof file / 2, text, sizeof text);
    uint8_t *content = gunzip(file, once, &num);
#ifdef HAVE_LIBDEFLATE
    assert_int_equal(num, sizeof text);
    assert_memory_equal(content, text, sizeof text);
    free(content);
    size = gzip_member(changed, sizeof changed, text, 0);
    content = gunzip(changed, size, &num);
    assert_non_null(content);
    assert_int_equal(num, 0);
    free(content);
#else
    assert_null(content);
#endif
    size = once + gzip_member(file + once, sizeof file / 2, text, sizeof text);
    assert_null(gunzip(file, size, &num));        /* two members */
    assert_null(gunzip(file, once + 1, &num));    /* something behind it */
    assert_null(gunzip(file, once - 1, &num));    /* its end is missing */
    assert_null(gunzip(text, sizeof text, &num)); /* not gzip */
    assert_null(gunzip(text, 0, &num));
    for (size_t at = once - 8; at < once; at++) { /* checksum, length */
        memcpy(changed, file, once);
        changed[at] ^= 0x40;
        assert_null(gunzip(changed, once, &num));
    }
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_null(hpct_data_gunzip(ends[0], &num));
    close(ends[0]);
    close(ends[1]);
}

/* As `cat a.gz b.gz` makes it. */
TEST(gzip_of_two_members_is_read)
{
    static const char labels[] = "\0\0\x08\x01\0\0\0\x04\3\2\1\0";
    uint8_t file[200];
    hpct_dataset *dataset;
    size_t size = gzip_member(file, 100, labels, 10);
    size += gzip_member(file + size, 100, labels + 10, 2);
    const char *folder = folder_with(LABELS ".gz", file, size, false);
    unlink(tree_below(folder, LABELS));
    assert_int_equal(hpct_dataset_open(&dataset, folder, HPCT_TRAIN), HPCT_OK);
    assert_int_equal(dataset->labels[0], 3);
    assert_int_equal(dataset->labels[3], 0);
    hpct_dataset_free(dataset);
}

/* ---- npz ---- */

#define X_TEXT "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2, 2), }  \n"

static const uint8_t x_bytes[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 255};

/* An .npz of x_train and y_train with these headers. */
static const char *npz_with(const char *x_text, size_t x_size, const char *y_text, const void *y,
                            size_t y_size)
{
    static char path[4096];
    static uint8_t members[2][4096];
    const char *const names[] = {"x_train.npy", "y_train.npy"};
    const uint8_t *const pointers[] = {members[0], members[1]};
    const size_t sizes[] = {pictures_npy(members[0], x_text, x_bytes, x_size),
                            pictures_npy(members[1], y_text, y, y_size)};
    snprintf(path, sizeof path, "%s/a.npz", pictures_folder());
    pictures_npz(path, names, pointers, sizes, 2);
    return path;
}

TEST(npz_is_read)
{
    const int64_t wide[] = {2, 0, 1};
    const int16_t columns[] = {2, 0, 1};
    const uint8_t narrow[] = {2, 0, 1};
    const struct {
        const char *text;
        const void *bytes;
        size_t size;
    } labels[] = {
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }", narrow, sizeof narrow},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }", wide, sizeof wide},
        {"{'shape': (3, 1), 'fortran_order': False, 'descr': '<i2'}\n", columns, sizeof columns},
    };
    for (int i = 0; i < 3; i++) {
        hpct_dataset *dataset;
        const char *path = npz_with(X_TEXT, 12, labels[i].text, labels[i].bytes, labels[i].size);
        assert_int_equal(hpct_dataset_open(&dataset, path, HPCT_TRAIN), HPCT_OK);
        assert_int_equal(hpct_dataset_size(dataset), 3);
        assert_int_equal(dataset->labels[0], 2);
        assert_int_equal(dataset->labels[2], 1);
        assert_memory_equal(dataset->pixels, x_bytes, 12);
        hpct_dataset_free(dataset);
        tree_refuses(path, HPCT_TEST, HPCT_ERR_DATA, "a.npz", "no array 'x_test'");
    }
}

TEST(invalid_npz_files_are_rejected)
{
    static const char good[] = "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }";
    const uint8_t y[] = {2, 0, 1, 9};
    const int8_t negative[] = {0, -1, 2};
    const char *folder;
    tree_names_wrong(npz_with(X_TEXT, 11, good, y, 3), "a.npz/x_train", "truncated");
    tree_names_wrong(npz_with(X_TEXT, 12, good, y, 4), "a.npz/y_train", "longer");
    tree_names_wrong(
        npz_with(X_TEXT, 12, "{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }", y, 4),
        "a.npz/y_train", "4 labels");
    tree_names_wrong(
        npz_with(X_TEXT, 12, "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", y, 3),
        "a.npz/y_train", "'<f4'");
    tree_names_wrong(npz_with(X_TEXT, 12,
                              "{'descr': '|i1', 'fortran_order': False, 'shape': (3,), }", negative,
                              3),
                     "a.npz/y_train", "label of sample 1 is out of range");
    tree_names_wrong(
        npz_with("{'descr': '|u1', 'fortran_order': True, 'shape': (3, 2, 2), }", 12, good, y, 3),
        "a.npz/x_train", "Fortran");
    folder = pictures_folder();
    pictures_write(folder, "b.npz", "this is no zip", 14, false);
    tree_names_wrong(tree_below(folder, "b.npz"), "b.npz", "damaged");
}

static hpct_status parse_npy(const parse_case *c, char *got, size_t size)
{
    hpct_data_npy header;
    HPCT_TRY(hpct_data_npy_read_text(&header, c->text, strlen(c->text), "x"));
    snprintf(got, size, "rank %d, %d bytes", header.rank, (int) header.bytes);
    return HPCT_OK;
}

TEST(npy_headers_are_parsed_strictly)
{
    static const parse_case cases[] = {
        {"{'descr': '<u4', 'fortran_order': False, 'shape': (), }", HPCT_OK, "rank 0, 4 bytes"},
        {"", HPCT_ERR_DATA},
        {"{}", HPCT_ERR_DATA},
        {"{'descr': '|u1', 'fortran_order': False}", HPCT_ERR_DATA},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (3)}", HPCT_ERR_DATA},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (3,}", HPCT_ERR_DATA},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (-3,)}", HPCT_ERR_DATA},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (3,)} x", HPCT_ERR_DATA},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (3,), 'more': 1}", HPCT_ERR_DATA},
        {"{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (3,)}", HPCT_ERR_DATA},
        {"{'descr': '|u1', 'fortran_order': 0, 'shape': (3,)}", HPCT_ERR_DATA},
        {"{'descr': '>i8', 'fortran_order': False, 'shape': (3,)}", HPCT_ERR_DATA},
        {"{'descr': [('a', '|u1')], 'fortran_order': False, 'shape': (3,)}", HPCT_ERR_DATA},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (1,2,3,4,5,6,7,8,9)}", HPCT_ERR_DATA},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
         HPCT_ERR_DATA},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (99999999999999999999,)}",
         HPCT_ERR_DATA},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (3,)", HPCT_ERR_DATA},
    };
    RUN_CASES(parse_npy, cases);
}

/* ---- against a model ---- */

TEST(data_of_other_shape_or_labels_are_rejected)
{
    hpct_dataset *dataset;
    const char *folder = pictures_folder();
    pictures_mnist_like(folder, 14, 4, 12, false);
    assert_int_equal(hpct_dataset_open(&dataset, folder, HPCT_TRAIN), HPCT_OK);
    assert_int_equal(hpct_dataset_check(dataset, HPCT_SHAPE(28, 28), 12), HPCT_OK);
    assert_int_equal(hpct_dataset_check(dataset, HPCT_SHAPE(28, 28, 1), 12), HPCT_OK);
    assert_int_equal(hpct_dataset_check(dataset, HPCT_SHAPE(28, 27), 12), HPCT_ERR_DATA);
    assert_int_equal(hpct_dataset_check(dataset, HPCT_SHAPE(784), 12), HPCT_OK); /* a row */
    assert_int_equal(hpct_dataset_check(dataset, HPCT_SHAPE(14, 56), 12), HPCT_ERR_DATA);
    assert_int_equal(hpct_dataset_check(dataset, HPCT_SHAPE(783), 12), HPCT_ERR_DATA);
    assert_non_null(strstr(hpct_last_error(), "28x28"));
    assert_int_equal(hpct_dataset_check(dataset, HPCT_SHAPE(28, 28), 10), HPCT_ERR_DATA);
    assert_non_null(strstr(hpct_last_error(), LABELS));
    assert_non_null(strstr(hpct_last_error(), "label 10 of sample 10 is out of range"));
    hpct_dataset_free(dataset);
}
