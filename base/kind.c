/* File signatures. */
#include "base/kind.h"

#include "base/file.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const sayings[HPCT_KINDS] = {
    [HPCT_KIND_SAFETENSORS] = "weights as safetensors",
    [HPCT_KIND_HDF5] = "an HDF5 file, which Keras writes weights to; the model itself must be in a "
                       "file of its own: write model.to_json() to it",
    [HPCT_KIND_JSON] =
        "JSON, which describes a model, or says which files have its weights, and has "
        "none itself: name the one file that has them all",
    [HPCT_KIND_EMPTY] = "an empty file",
    [HPCT_KIND_LFS] = "a git-lfs pointer in the place of the file itself: run git lfs pull there",
    [HPCT_KIND_HTML] = "a page of HTML or XML, such as a server's error or a request to sign in, "
                       "not what should have been downloaded",
    [HPCT_KIND_KERAS] = "a .keras archive: unzip it, its config.json is the model, and its "
                        "model.weights.h5 the weights",
    [HPCT_KIND_NPZ] = "an .npz archive of NumPy, not weights that can be read here: "
                      "save_weights(\"NAME.weights.h5\") of Keras writes those",
    [HPCT_KIND_TORCH] = "a file of torch.save: write model.state_dict() with "
                        "safetensors.torch.save_file instead",
    [HPCT_KIND_ZIP] = "a zip archive: unpack it",
    [HPCT_KIND_PACKED] = "a compressed file: unpack it",
    [HPCT_KIND_NPY] = "an array of NumPy, not weights that can be read here: "
                      "save_weights(\"NAME.weights.h5\") of Keras writes those",
    [HPCT_KIND_PICKLE] = "a pickle of Python, which is not read: save weights as safetensors or "
                         "as .weights.h5",
    [HPCT_KIND_TFLITE] = "a model of TensorFlow Lite, which cannot be trained",
    [HPCT_KIND_YAML] = "a model in YAML, which Keras itself reads no more: write model.to_json()",
    [HPCT_KIND_UTF16] = "text in UTF-16 or UTF-32: save it as UTF-8",
};

const char *hpct_kind_says(hpct_kind kind)
{
    return sayings[kind];
}

typedef struct bytes {
    const unsigned char *at;
    size_t length;
} bytes;

static bool has(bytes b, size_t offset, const void *what, size_t length)
{
    return b.length >= offset + length && memcmp(b.at + offset, what, length) == 0;
}

#define HAS(b, offset, text) has(b, offset, text, sizeof(text) - 1)

/* Header length, then JSON. Tested first, as that length can look like any signature. */
static bool is_safetensors(bytes b)
{
    uint64_t header = 0;
    for (size_t i = 0; i < 8 && i < b.length; i++)
        header |= (uint64_t) b.at[i] << 8 * i;
    return HAS(b, 8, "{") && header < UINT64_C(1) << 40;
}

/* By the name of the first member. */
static hpct_kind kind_of_zip(bytes b)
{
    size_t length = b.length >= 30 ? (size_t) (b.at[26] | b.at[27] << 8) : 0;
    bytes name = {b.at + 30, length <= b.length - 30 ? length : b.length - 30};
    static const char *const of_keras[] = {"metadata.json", "config.json", "model.weights.h5"};
    if (length == 0)
        return HPCT_KIND_ZIP;
    for (size_t i = 0; i < sizeof of_keras / sizeof *of_keras; i++) {
        if (has(name, 0, of_keras[i], strlen(of_keras[i])))
            return HPCT_KIND_KERAS;
    }
    if (length > 4 && has(name, length - 4, ".npy", 4))
        return HPCT_KIND_NPZ;
    if (memmem(name.at, name.length, "/data.pkl", 9) != NULL ||
        memmem(name.at, name.length, "/.format_version", 16) != NULL)
        return HPCT_KIND_TORCH;
    return HPCT_KIND_ZIP;
}

static hpct_kind kind_of_text(bytes b)
{
    static const struct {
        const char *begin;
        hpct_kind kind;
    } begins[] = {
        {"version https://git-lfs", HPCT_KIND_LFS},
        {"{", HPCT_KIND_JSON},
        {"[", HPCT_KIND_JSON},
        {"\"", HPCT_KIND_JSON},
        {"<!doctype", HPCT_KIND_HTML},
        {"<html", HPCT_KIND_HTML},
        {"<?xml", HPCT_KIND_HTML},
        {"<!--", HPCT_KIND_HTML},
        {"backend:", HPCT_KIND_YAML},
        {"class_name:", HPCT_KIND_YAML},
    };
    if (HAS(b, 0, "\xef\xbb\xbf")) /* byte order mark */
        b = (bytes){b.at + 3, b.length - 3};
    while (b.length > 0 && strchr(" \t\r\n", b.at[0]) != NULL && b.at[0] != '\0')
        b = (bytes){b.at + 1, b.length - 1};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        size_t length = strlen(begins[i].begin);
        if (b.length >= length && strncasecmp((const char *) b.at, begins[i].begin, length) == 0)
            return begins[i].kind;
    }
    return HPCT_KIND_UNKNOWN;
}

hpct_kind hpct_kind_of(const void *head, size_t length)
{
    bytes b = {head, length};
    if (length == 0)
        return HPCT_KIND_EMPTY;
    if (is_safetensors(b))
        return HPCT_KIND_SAFETENSORS;
    if (HAS(b, 0, "\x89HDF\r\n\x1a\n"))
        return HPCT_KIND_HDF5;
    if (HAS(b, 0, "PK\x03\x04"))
        return kind_of_zip(b);
    if (HAS(b, 0, "\x1f\x8b") || HAS(b, 0, "BZh") ||
        HAS(b, 0,
            "\xfd"
            "7zXZ") ||
        HAS(b, 0, "\x28\xb5\x2f\xfd") || HAS(b, 257, "ustar"))
        return HPCT_KIND_PACKED;
    if (HAS(b, 0, "\x93NUMPY"))
        return HPCT_KIND_NPY;
    if (length > 2 && b.at[0] == 0x80 && b.at[1] >= 2 && b.at[1] <= 5)
        return HPCT_KIND_PICKLE;
    if (HAS(b, 4, "TFL3"))
        return HPCT_KIND_TFLITE;
    if (HAS(b, 0, "\xff\xfe") || HAS(b, 0, "\xfe\xff") || HAS(b, 0, "\0\0\xfe\xff"))
        return HPCT_KIND_UTF16;
    return kind_of_text(b);
}

hpct_status hpct_kind_read_text(char **data, char **text, const char *path, size_t max)
{
    size_t size;
    HPCT_TRY(hpct_file_read(data, &size, path, max));
    bytes b = {(const unsigned char *) *data, size};
    *text = *data + (HAS(b, 0, "\xef\xbb\xbf") ? 3 : 0);
    hpct_status status = HPCT_OK;
    if (hpct_kind_of(*data, size) == HPCT_KIND_UTF16)
        status = hpct_fail(HPCT_ERR_DATA, "%s is %s", path, hpct_kind_says(HPCT_KIND_UTF16));
    else if (strlen(*data) != size)
        status = hpct_fail(HPCT_ERR_DATA, "%s is not text: it has a zero byte", path);
    if (status != HPCT_OK)
        free(*data);
    return status;
}

hpct_status hpct_kind_of_file(hpct_kind *kind, const char *path)
{
    char head[HPCT_KIND_BYTES];
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s cannot be opened: %s", path, strerror(errno));
    hpct_status status = HPCT_OK;
    size_t length = 0;
    if (fstat(fd, &info) != 0)
        status = hpct_file_failed("reading", path);
    else if (!S_ISREG(info.st_mode))
        status = hpct_fail(HPCT_ERR_NO_INPUT, "%s is not a file", path);
    else
        length = info.st_size < HPCT_KIND_BYTES ? (size_t) info.st_size : HPCT_KIND_BYTES;
    if (status == HPCT_OK)
        status = hpct_file_read_all(fd, head, length, 0, path);
    close(fd);
    if (status == HPCT_OK)
        *kind = hpct_kind_of(head, length);
    return status;
}
