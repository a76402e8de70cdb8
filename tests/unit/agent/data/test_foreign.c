/* agent/data: data of other programs are named. The first bytes are those of files by pyarrow,
 * h5py, TensorFlow, lmdb, numpy and sqlite3; tests/peers/data.t has whole files. */
#include "agent/data/foreign.h"
#include "tests/unit/agent/data/pictures.h"
#include "tests/unit/agent/data/trees.h"

#include <stdio.h>
#include <string.h>

typedef struct file {
    const char *bytes;
    size_t size;
    const char *name; /* NULL: none of them */
} file;

#define FILE_OF(bytes, name)                                                                       \
    {                                                                                              \
        bytes, sizeof(bytes) - 1, name                                                             \
    }
static const file files[] = {
    FILE_OF("PAR1\x15\x04\x15\x4c", "a Parquet file"),
    FILE_OF("ARROW1\0\0\xff\xff\xff\xff", "an Arrow file"),
    FILE_OF("\x89HDF\r\n\x1a\n\0", "an HDF5 file"),
    FILE_OF("\x2c\x01\0\0\0\0\0\0\xf2\xfe\x5b\x9d"
            "abcabc",
            "a TFRecord file"),
    FILE_OF("\0\0\0\0\0\0\0\0\0\0\x08\0\0\0\0\0\xde\xc0\xef\xbe\x01\0\0\0", "an LMDB database"),
    FILE_OF("SQLite format 3\0\x10\0", "an SQLite database"),
    FILE_OF("\x93NUMPY\x01\0", "an array of NumPy"),
    FILE_OF("\x0a\x23\xd7\xce\x10\0\0\0", "a RecordIO file of MXNet"),
    FILE_OF("MATLAB 5.0 MAT-file, Platform: GLNXA64", "a MATLAB file"),
    FILE_OF("Rar!\x1a\x07\x01\0", "a RAR archive"),
    FILE_OF("7z\xbc\xaf\x27\x1c\0\x04", "a 7-Zip archive"),
    FILE_OF("\x80\x04\x95\x0b", "a pickle of Python"),
    FILE_OF("<!DOCTYPE html><html>", "a page of HTML or XML"),
    FILE_OF("version https://git-lfs.github.com/spec/v1\n", "a git-lfs pointer"),
    FILE_OF("file,class\na.png,dog\n", NULL),
    FILE_OF("\"file\",\"class\"\n", NULL),
    FILE_OF("PAR,class\n", NULL),
    /* a length whose checksum is another's */
    FILE_OF("\x2d\x01\0\0\0\0\0\0\xf2\xfe\x5b\x9d", NULL),
    FILE_OF("\x2c\x01\0\0\0\0\0\0\xf2\xfe\x5b", NULL),
};
#define NUM_FILES (sizeof files / sizeof files[0])

TEST(files_are_known_by_their_first_bytes)
{
    for (size_t i = 0; i < NUM_FILES; i++) {
        const char *name = hpct_data_foreign_name(files[i].bytes, files[i].size);
        if (files[i].name == NULL)
            assert_null(name);
        else
            assert_string_equal(name, files[i].name);
    }
}

static void put(const char *folder, const char *name, const file *one)
{
    pictures_write(folder, name, one->bytes, one->size, false);
}

TEST(they_are_named_where_data_are_sought)
{
    for (size_t i = 0; i < NUM_FILES; i++) {
        static const char *const names[] = {"some.data", "a/b/some.data", "mnist.npz", "d.tar",
                                            "d.zip"};
        for (size_t k = 0; k < sizeof names / sizeof names[0] && files[i].name != NULL; k++) {
            const char *folder = pictures_folder();
            put(folder, "a/README.md", &files[14]);
            put(folder, names[k], &files[i]);
            const char *path = k == 1 ? folder : tree_below(folder, names[k]);
            tree_is_wrong(path, files[i].name);
        }
    }
    const char *folder = pictures_folder();
    put(folder, "notes.txt", &files[14]);
    tree_is_refused(folder, HPCT_TRAIN, HPCT_ERR_NO_INPUT, "no data set is there that can be read");
    put(folder, "labels.csv", &files[14]);
    tree_is_wrong(tree_below(folder, "labels.csv"),
                  "is a CSV file, which is not read: give the folder of the pictures");
}

/* Beside pictures they are nothing. */
TEST(beside_pictures_they_are_left_out)
{
    const char *folder = TREE("train/cat/1.png", "train/dog/1.png");
    put(folder, "train.parquet", &files[0]);
    tree_is_read(folder, HPCT_TRAIN, 2, "cat,dog", "train", "");
}
