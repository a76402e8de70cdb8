/* Signatures of data that other programs read, after their specifications. */
#include "agent/data/foreign.h"

#include "agent/data/archive.h"
#include "base/kind.h"
#include "base/status.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_FILES 256 /* looked at below a folder */
#define LEVELS 3       /* as mnist/3.0.1/train.tfrecord */
#define PICTURES "write its pictures to a folder, as train/CLASS/NAME.jpg and test/CLASS/NAME.jpg"
#define ARRAYS "write its arrays to an .npz with numpy.savez: x_train, y_train, x_test and y_test"
#define UNPACK "unpack it, and give the folder"
#define AGAIN "download it again"

typedef struct foreign {
    const char *name, *advice;
} foreign;

static const foreign tf_record = {"a TFRecord file", PICTURES},
                     csv = {"a CSV file",
                            "give the folder of the pictures, and this with --labels"};

static const struct signature {
    size_t at;
    const char *bytes;
    size_t length;
    foreign is;
} signatures[] = {
    {0, "PAR1", 4, {"a Parquet file", PICTURES}},
    {0, "ARROW1", 6, {"an Arrow file", PICTURES}},
    {0, "\x89HDF\r\n\x1a\n", 8, {"an HDF5 file", ARRAYS}},
    {16, "\xde\xc0\xef\xbe", 4, {"an LMDB database", PICTURES}},
    {12, "\xde\xc0\xef\xbe", 4, {"an LMDB database", PICTURES}}, /* of 32 bits */
    {0, "SQLite format 3", 16, {"an SQLite database", PICTURES}},
    {0, "\x0a\x23\xd7\xce", 4, {"a RecordIO file of MXNet", PICTURES}},
    {0, "\x93NUMPY", 6, {"an array of NumPy", ARRAYS}},
    {0, "MATLAB 5.0 MAT-file", 19, {"a MATLAB file", ARRAYS}},
    {0, "Rar!\x1a\x07", 6, {"a RAR archive", UNPACK}},
    {0, "7z\xbc\xaf\x27\x1c", 6, {"a 7-Zip archive", UNPACK}},
    {0, "Obj\x01", 4, {"an Avro file", PICTURES}},
    {0, "%PDF-", 5, {"a PDF document", "give pictures as JPEG or PNG"}},
};

/* Of what base/kind.h knows for models, too; by hpct_kind. */
static const foreign of_kinds[HPCT_KINDS] = {
    [HPCT_KIND_EMPTY] = {"an empty file", AGAIN},
    [HPCT_KIND_LFS] = {"a git-lfs pointer", "run git lfs pull there"},
    [HPCT_KIND_HTML] = {"a page of HTML or XML", AGAIN},
    [HPCT_KIND_PICKLE] = {"a pickle of Python", ARRAYS},
    [HPCT_KIND_TORCH] = {"a file of torch.save", ARRAYS},
    [HPCT_KIND_SAFETENSORS] = {"a safetensors file", ARRAYS},
    [HPCT_KIND_ZIP] = {"a zip archive", "give it the name NAME.zip, or unpack it"},
    [HPCT_KIND_PACKED] = {"a compressed file", UNPACK},
};

static uint32_t crc32c(const uint8_t *bytes, size_t length)
{
    uint32_t crc = ~0U;
    for (size_t i = 0; i < length; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78U : 0);
    }
    return ~crc;
}

/* A record begins with the length of its data and a masked checksum of that length
 * (tensorflow/core/lib/io/record_writer.h). */
static bool is_tf_record(const uint8_t *bytes, size_t length)
{
    if (length < 12)
        return false;
    uint32_t crc = crc32c(bytes, 8), stored = 0;
    for (int i = 0; i < 4; i++)
        stored |= (uint32_t) bytes[8 + i] << 8 * i;
    return stored == (crc >> 15 | crc << 17) + 0xa282ead8U;
}

static const foreign *find(const uint8_t *head, size_t length)
{
    for (size_t i = 0; i < sizeof signatures / sizeof *signatures; i++) {
        const struct signature *s = &signatures[i];
        if (length >= s->at + s->length && memcmp(head + s->at, s->bytes, s->length) == 0)
            return &s->is;
    }
    if (is_tf_record(head, length))
        return &tf_record;
    const foreign *kind = &of_kinds[hpct_kind_of(head, length)];
    return kind->name != NULL ? kind : NULL;
}

const char *hpct_data_foreign_name(const void *head, size_t length)
{
    const foreign *is = find(head, length);
    return is != NULL ? is->name : NULL;
}

static hpct_status refuse_file(const char *path)
{
    uint8_t head[HPCT_KIND_BYTES];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t length = fd >= 0 ? read(fd, head, sizeof head) : -1;
    if (fd >= 0)
        close(fd);
    const foreign *is = length >= 0 ? find(head, (size_t) length) : NULL;
    if (is == NULL && hpct_data_name_ends(path, ".csv"))
        is = &csv;
    return is == NULL ? HPCT_OK
                      : hpct_fail(HPCT_ERR_DATA, "%s is %s, which is not read: %s", path, is->name,
                                  is->advice);
}

hpct_status hpct_data_foreign_misnamed(const char *path, hpct_status status)
{
    hpct_kind kind = HPCT_KIND_UNKNOWN;
    char *why = hpct_error_keep();
    bool archive = hpct_kind_of_file(&kind, path) != HPCT_OK || kind == HPCT_KIND_ZIP ||
                   kind == HPCT_KIND_PACKED || kind == HPCT_KIND_NPZ || kind == HPCT_KIND_TORCH;
    if (archive || refuse_file(path) == HPCT_OK) {
        hpct_error_restore(why);
        return status;
    }
    free(why);
    return HPCT_ERR_DATA;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* `left`: files that may still be looked at. */
static hpct_status refuse_below(const char *path, int levels, int *left)
{
    struct stat info;
    if (--*left < 0 || stat(path, &info) != 0)
        return HPCT_OK;
    if (S_ISREG(info.st_mode))
        return refuse_file(path);
    struct dirent **entries = NULL;
    int count =
        S_ISDIR(info.st_mode) && levels > 0 ? scandir(path, &entries, is_visible, alphasort) : 0;
    hpct_status status = HPCT_OK;
    for (int i = 0; i < count; i++) {
        char *below = NULL;
        if (status == HPCT_OK && *left > 0 &&
            asprintf(&below, "%s/%s", path, entries[i]->d_name) >= 0)
            status = refuse_below(below, levels - 1, left);
        free(below);
        free(entries[i]);
    }
    free(entries);
    return status;
}

hpct_status hpct_data_foreign_refuse(const char *path)
{
    int left = MOST_FILES;
    return refuse_below(path, LEVELS, &left);
}
