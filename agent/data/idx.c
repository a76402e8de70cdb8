/* IDX, the format of MNIST (LeCun), big-endian: two zero bytes, a type, the number of dimensions,
 * their sizes, then the elements. Plain or gzip, four files in a folder. */
#include "agent/data/idx.h"

#include "agent/data/dataset.h"
#include "agent/data/grow.h"
#include "agent/data/gunzip.h"
#include "base/alloc.h"
#include "base/status.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define TYPE_UBYTE 0x08

static const char *const names[2][2] = {
    [HPCT_TRAIN] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"},
    [HPCT_TEST] = {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"},
};

/* Reads exactly `bytes` from the stream; HPCT_ERR_DATA if it is truncated or damaged. */
static hpct_status read_exactly(gzFile stream, void *out, size_t bytes, const char *path)
{
    size_t filled = 0;
    while (filled < bytes) {
        size_t left = bytes - filled;
        int got = gzread(stream, (char *) out + filled, left < INT_MAX ? (unsigned) left : INT_MAX);
        int code = Z_OK;
        if (got > 0) {
            filled += (size_t) got;
            continue;
        }
        const char *why = gzerror(stream, &code);
        if (code == Z_ERRNO)
            return hpct_fail(HPCT_ERR_IO, "%s: reading failed: %s", path, strerror(errno));
        if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
            return hpct_fail(HPCT_ERR_DATA, "%s: it is damaged: %s", path, why);
        return hpct_fail(HPCT_ERR_DATA, "%s: it is truncated: %zu of %zu bytes are missing", path,
                         left, bytes);
    }
    return HPCT_OK;
}

static uint32_t big_endian(const uint8_t *bytes)
{
    return (uint32_t) bytes[0] << 24 | (uint32_t) bytes[1] << 16 | (uint32_t) bytes[2] << 8 |
           bytes[3];
}

typedef struct source {
    gzFile stream;
    const char *path;
} source;

static hpct_status read_some(void *from, void *out, size_t bytes)
{
    source *s = from;
    return read_exactly(s->stream, out, bytes, s->path);
}

static hpct_status check_magic(const uint8_t magic[4], int rank, const char *path)
{
    if (magic[0] == 0 && magic[1] == 0 && magic[2] == TYPE_UBYTE && magic[3] == rank)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_DATA,
                     "%s: wrong magic number 0x%08" PRIx32 ", 0x%08x was expected (IDX, "
                     "unsigned bytes, %d dimension%s)",
                     path, big_endian(magic), TYPE_UBYTE << 8 | rank, rank, rank == 1 ? "" : "s");
}

/* *bytes: product of the sizes. */
static hpct_status take_sizes(hpct_data_idx *out, const uint8_t *sizes, int rank, uint64_t *bytes,
                              const char *path)
{
    *bytes = 1;
    for (int i = 0; i < rank; i++) {
        out->sizes[i] = big_endian(sizes + 4 * i);
        if (__builtin_mul_overflow(*bytes, out->sizes[i], bytes) || *bytes > SIZE_MAX / 2)
            return hpct_fail(HPCT_ERR_DATA, "%s: its header's sizes cannot be right", path);
    }
    return HPCT_OK;
}

static hpct_status read_stream(hpct_data_idx *out, gzFile stream, int rank, const char *path)
{
    uint8_t magic[4], sizes[4 * HPCT_DATA_IDX_MAX_RANK];
    uint64_t bytes;
    source from = {stream, path};
    HPCT_TRY(read_exactly(stream, magic, sizeof magic, path));
    HPCT_TRY(check_magic(magic, rank, path));
    HPCT_TRY(read_exactly(stream, sizes, 4 * (size_t) rank, path));
    HPCT_TRY(take_sizes(out, sizes, rank, &bytes, path));
    HPCT_TRY(hpct_data_read_growing(&out->bytes, (size_t) bytes, read_some, &from));
    uint8_t extra;
    if (gzread(stream, &extra, 1) > 0)
        return hpct_fail(HPCT_ERR_DATA, "%s: it is longer than its header says", path);
    /* zlib verifies the checksum only at the end. */
    int code = Z_OK;
    const char *why = gzerror(stream, &code);
    if (code != Z_OK && code != Z_STREAM_END)
        return hpct_fail(HPCT_ERR_DATA, "%s: it is damaged: %s", path,
                         code == Z_BUF_ERROR ? "its end is missing" : why);
    return HPCT_OK;
}

/* Whether a gzip file has its checksum completely: zlib 1.3.2 reports no error if the file is
 * truncated within the last one. */
static bool ends_whole(int fd)
{
    uint8_t in[16384], out[65536];
    z_stream z = {0};
    ssize_t got = 0;
    int code = Z_OK;
    if (lseek(fd, 0, SEEK_SET) != 0 || inflateInit2(&z, 15 + 16) != Z_OK)
        return false;
    while ((code == Z_OK || code == Z_STREAM_END) && (got = read(fd, in, sizeof in)) > 0) {
        z.next_in = in;
        z.avail_in = (uInt) got;
        do {
            if (code == Z_STREAM_END && *z.next_in != 0x1f) { /* no further member */
                inflateEnd(&z);
                return true;
            }
            if (code == Z_STREAM_END)
                inflateReset(&z);
            z.next_out = out;
            z.avail_out = sizeof out;
            code = inflate(&z, Z_NO_FLUSH);
            if (code == Z_BUF_ERROR) /* input used up */
                code = Z_OK;
        } while ((code == Z_OK && (z.avail_in > 0 || z.avail_out == 0)) ||
                 (code == Z_STREAM_END && z.avail_in > 0));
    }
    inflateEnd(&z);
    return code == Z_STREAM_END && got >= 0;
}

/* Reads a common gzip file at once. False for any other, whose errors read_stream reports. */
static bool read_at_once(hpct_data_idx *out, int fd, int rank, const char *path)
{
    size_t num, header = 4 + 4 * (size_t) rank;
    uint64_t bytes;
    uint8_t *content = hpct_data_gunzip(fd, &num);
    if (content == NULL || num < header || check_magic(content, rank, path) != HPCT_OK ||
        take_sizes(out, content + 4, rank, &bytes, path) != HPCT_OK || bytes != num - header) {
        free(content);
        return false;
    }
    memmove(content, content + header, (size_t) bytes);
    out->bytes = content;
    return true;
}

hpct_status hpct_data_idx_read(hpct_data_idx *out, int fd, int rank, const char *path)
{
    memset(out, 0, sizeof *out);
    if (read_at_once(out, fd, rank, path)) {
        close(fd);
        return HPCT_OK;
    }
    int again = dup(fd);
    gzFile stream = again < 0 ? NULL : gzdopen(fd, "rb");
    if (stream == NULL) {
        close(fd);
        if (again >= 0)
            close(again);
        return hpct_fail_memory(0);
    }
    gzbuffer(stream, 1 << 17);
    hpct_status status = read_stream(out, stream, rank, path);
    if (status == HPCT_OK && !gzdirect(stream) && !ends_whole(again))
        status = hpct_fail(HPCT_ERR_DATA, "%s: it is damaged: its end is missing", path);
    close(again);
    if (status != HPCT_OK) {
        free(out->bytes);
        out->bytes = NULL;
    }
    gzclose_r(stream);
    return status;
}

/* ---- the folder ---- */

#define NUM_FORMS 5

/* Path of one of NAME's usual forms in FOLDER: plain or .gz, with a dot before "idx", or in a
 * folder of the same name; NULL if it does not exist. The caller frees it. */
static char *find_form(const char *folder, const char *name, int number)
{
    static const struct {
        const char *inner, *dot, *end;
    } forms[NUM_FORMS] = {
        {"", "-", ""}, {"", "-", ".gz"}, {"", ".", ""}, {"", ".", ".gz"}, {"/", "-", ""}};
    const char *kind = strstr(name, "idx"), *inner = forms[number].inner;
    int stem = (int) (kind - name) - 1;
    struct stat info;
    char *path = NULL;
    if (asprintf(&path, "%s/%s%s%.*s%s%s%s", folder, inner[0] != '\0' ? name : "", inner, stem,
                 name, forms[number].dot, kind, forms[number].end) < 0)
        return NULL;
    /* Other errors are reported by open(). */
    if (stat(path, &info) == 0 ? S_ISREG(info.st_mode) : errno != ENOENT && errno != ENOTDIR)
        return path;
    free(path);
    return NULL;
}

static char *find_file(const char *folder, const char *name)
{
    char *path = NULL;
    for (int i = 0; path == NULL && i < NUM_FORMS; i++)
        path = find_form(folder, name, i);
    return path;
}

/* Pictures and labels in the same form, if possible: plain and .gz files may be of two data
 * sets. */
static void find_pair(const char *folder, hpct_split split, char **pictures, char **labels)
{
    for (int i = 0; i < NUM_FORMS; i++) {
        *pictures = find_form(folder, names[split][0], i);
        *labels = find_form(folder, names[split][1], i);
        if (*pictures != NULL && *labels != NULL)
            return;
        free(*pictures);
        free(*labels);
    }
    *pictures = find_file(folder, names[split][0]);
    *labels = find_file(folder, names[split][1]);
}

static bool has_file(const char *folder, hpct_split split, int which)
{
    char *path = find_file(folder, names[split][which]);
    free(path);
    return path != NULL;
}

static bool has_any(const char *folder)
{
    /* Any of the files suffices; the message then names the missing one. */
    for (int i = 0; i < 4; i++) {
        if (has_file(folder, (hpct_split) (i / 2), i % 2))
            return true;
    }
    return false;
}

static int is_subfolder(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && entry->d_type != DT_REG;
}

/* Finds the folder with the files: PATH, PATH/raw, or torchvision's PATH/NAME/raw if there is only
 * one. *folder is NULL if there is none; the caller frees it. */
static hpct_status find_folder(const char *path, char **folder)
{
    struct dirent **entries = NULL;
    hpct_status status = HPCT_OK;
    *folder = strdup(path);
    if (*folder == NULL || has_any(path))
        return *folder != NULL ? HPCT_OK : hpct_fail_memory(0);
    free(*folder);
    *folder = NULL;
    int count = scandir(path, &entries, is_subfolder, alphasort);
    for (int i = 0; i < count && status == HPCT_OK; i++) {
        char *below = NULL;
        bool raw = strcmp(entries[i]->d_name, "raw") == 0;
        status = hpct_alloc_text(&below, "%s/%s%s", path, entries[i]->d_name, raw ? "" : "/raw");
        if (status != HPCT_OK)
            break;
        if (access(below, F_OK) != 0 || !has_any(below))
            free(below);
        else if (*folder == NULL)
            *folder = below;
        else {
            status = hpct_fail(HPCT_ERR_DATA, "%s: there are two data sets in it: give %s or %s",
                               path, *folder, below);
            free(below);
        }
    }
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    return status;
}

static bool claims(const char *path, bool is_folder)
{
    char *folder = NULL;
    bool found = is_folder && (find_folder(path, &folder) != HPCT_OK || folder != NULL);
    free(folder);
    return found;
}

/* Pictures without labels, or the reverse, are an incomplete download, an error for either
 * split. */
static hpct_status check_halves(hpct_dataset *dataset, const char *folder, hpct_split split)
{
    for (int s = HPCT_TRAIN; s <= HPCT_TEST; s++) {
        bool pictures = has_file(folder, (hpct_split) s, 0),
             labels = has_file(folder, (hpct_split) s, 1);
        if (pictures != labels)
            return hpct_fail(HPCT_ERR_NO_INPUT, "%s/%s (or .gz): No such file or directory", folder,
                             names[s][pictures ? 1 : 0]);
        if (s == (int) split && !pictures) {
            dataset->lacking = true;
            return hpct_fail(HPCT_ERR_NO_INPUT, "%s/%s (or .gz): No such file or directory", folder,
                             names[s][0]);
        }
    }
    return HPCT_OK;
}

static hpct_status read_one(hpct_data_idx *out, const char *path, int rank)
{
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s: %s", path != NULL ? path : "IDX", strerror(errno));
    return hpct_data_idx_read(out, fd, rank, path);
}

static hpct_status read_folder(hpct_dataset *dataset, const char *folder, hpct_split split)
{
    hpct_data_idx pictures = {0}, labels = {0};
    char *picture_path = NULL;
    hpct_status status = check_halves(dataset, folder, split);
    if (status == HPCT_OK)
        find_pair(folder, split, &picture_path, &dataset->path);
    if (status == HPCT_OK)
        status = read_one(&pictures, picture_path, 3);
    if (status != HPCT_OK)
        goto fail;
    dataset->pixels = pictures.bytes;
    status = hpct_dataset_set_shape(dataset, 2, pictures.sizes + 1, picture_path);
    if (status != HPCT_OK)
        goto fail;
    status = read_one(&labels, dataset->path, 1);
    if (status != HPCT_OK)
        goto fail;
    if (labels.sizes[0] != pictures.sizes[0]) {
        status = hpct_fail(HPCT_ERR_DATA,
                           "%s has %" PRIu64 " labels, but %s has %" PRIu64
                           " pictures: they do not belong together",
                           dataset->path, labels.sizes[0], picture_path, pictures.sizes[0]);
        goto fail;
    }
    dataset->size = (size_t) labels.sizes[0];
    dataset->labels = malloc((dataset->size + 1) * sizeof *dataset->labels);
    if (dataset->labels == NULL) {
        status = hpct_fail_memory(dataset->size * sizeof *dataset->labels);
        goto fail;
    }
    for (size_t i = 0; i < dataset->size; i++)
        dataset->labels[i] = labels.bytes[i];

    dataset->source = picture_path;
    picture_path = NULL;

fail:
    free(labels.bytes);
    free(picture_path);
    return status;
}

static hpct_status read_split(hpct_dataset *dataset, const char *path, hpct_split split)
{
    char *folder = NULL;
    hpct_status status = find_folder(path, &folder);
    if (status == HPCT_OK)
        status = read_folder(dataset, folder, split);
    free(folder);
    return status;
}

const hpct_data_format hpct_data_format_idx = {
    .name = "idx",
    .looks_like = "a folder with train-images-idx3-ubyte[.gz], train-labels-idx1-ubyte[.gz], "
                  "t10k-images-idx3-ubyte[.gz] and t10k-labels-idx1-ubyte[.gz]",
    .claims = claims,
    .read = read_split,
};
