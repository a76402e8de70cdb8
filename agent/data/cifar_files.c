/* Locates CIFAR's files and selects those of a split. */
#include "agent/data/cifar.h"

#include "agent/data/archive.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"

#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_FILE_BYTES ((size_t) 1 << 30)
#define MAX_FILES 5

/* Location of a data set below a path. */
typedef struct place {
    char *folder; /* folder with the files; NULL: in an archive */
    int kind;     /* 10 or 100 */
} place;

/* A file's bytes. */
typedef struct blob {
    uint8_t *bytes;
    size_t num_bytes;
} blob;

static const char *const ten[] = {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4",
                                  "data_batch_5"};

/* ---- folders ---- */

static bool is_there(const char *folder, const char *name, const char *suffix)
{
    char path[4096];
    struct stat info;
    return snprintf(path, sizeof path, "%s/%s%s", folder, name, suffix) < (int) sizeof path &&
           stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

static int count_batches(const char *folder, const char *suffix)
{
    int count = 0;
    for (int i = 0; i < 5; i++)
        count += is_there(folder, ten[i], suffix);
    return count;
}

/* 10 or 100 if the folder has files of that data set, else 0. "train" alone does not count, as it
 * is too common a name. */
static int kind_of(const hpct_data_cifar_version *version, const char *folder)
{
    const char *suffix = version->suffix;
    if (count_batches(folder, suffix) > 0 || is_there(folder, "test_batch", suffix))
        return 10;
    int hundred = is_there(folder, "train", suffix) + is_there(folder, "test", suffix) +
                  is_there(folder, version->names[1], "");
    return hundred > 1 ? 100 : 0;
}

static bool has_folder(const char *path, const char *name)
{
    char below[4096];
    struct stat info;
    return snprintf(below, sizeof below, "%s/%s", path, name) < (int) sizeof below &&
           stat(below, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Finds PATH or PATH/cifar-10-…; HPCT_ERR_DATA if both data sets are there, in any version. */
static hpct_status find_in_folder(const hpct_data_cifar_version *version, const char *path,
                                  place *out)
{
    static const char *const all[2][2] = {{"cifar-10-batches-bin", "cifar-10-batches-py"},
                                          {"cifar-100-binary", "cifar-100-python"}};
    *out = (place){.kind = kind_of(version, path)};
    if (out->kind != 0) {
        out->folder = strdup(path);
        return out->folder != NULL ? HPCT_OK : hpct_fail_memory(0);
    }
    for (int i = 0; i < 2; i++) {
        char *below = NULL;
        HPCT_TRY(hpct_alloc_text(&below, "%s/%s", path, version->folder[i]));
        *out = (place){below, kind_of(version, below)};
        for (int j = 0; out->kind != 0 && j < 2; j++) {
            if (has_folder(path, all[1 - i][j]))
                return hpct_fail(HPCT_ERR_DATA,
                                 "%s: there are two data sets in it: give %s or %s/%s", path, below,
                                 path, all[1 - i][j]);
        }
        if (out->kind != 0)
            return HPCT_OK;
        free(below);
        out->folder = NULL;
    }
    return HPCT_OK;
}

/* ---- archives ---- */

/* Determines the data set by the folder of the archive's first member. */
static int kind_in_archive(const hpct_data_cifar_version *version, const char *path)
{
    struct archive *archive = hpct_data_archive_reader();
    struct archive_entry *entry;
    int kind = 0;
    const char *name = NULL;
    if (hpct_data_archive_open(archive, path) == HPCT_OK &&
        archive_read_next_header(archive, &entry) == ARCHIVE_OK)
        name = archive_entry_pathname(entry);
    for (int i = 0; name != NULL && i < 2; i++) {
        size_t length = strlen(version->folder[i]);
        if (strncmp(name, version->folder[i], length) == 0 && name[length] == '/')
            kind = i == 0 ? 10 : 100;
    }
    archive_read_free(archive);
    return kind;
}

static hpct_status read_member(struct archive *archive, const char *path, blob *out)
{
    size_t room = 0;
    la_ssize_t got = 1;
    for (; got > 0; out->num_bytes += (size_t) got) {
        if (out->num_bytes > MAX_FILE_BYTES)
            return hpct_fail(HPCT_ERR_DATA, "%s: no batch of CIFAR is so large", path);
        HPCT_TRY(hpct_alloc_room(&out->bytes, &room, out->num_bytes + (1 << 20), 1));
        got = archive_read_data(archive, out->bytes + out->num_bytes, room - out->num_bytes);
        if (got < 0)
            return hpct_data_archive_failed(archive, path);
    }
    return HPCT_OK;
}

/* Index of the name that the member has, or -1. */
static int find_name(const char *member, const char *const *names, int count, const char *suffix)
{
    const char *slash = strrchr(member, '/'), *file = slash != NULL ? slash + 1 : member;
    for (int i = 0; i < count; i++) {
        size_t length = strlen(names[i]);
        if (strncmp(file, names[i], length) == 0 && strcmp(file + length, suffix) == 0)
            return i;
    }
    return -1;
}

static hpct_status read_members(const char *path, const char *const *names, int count,
                                const char *suffix, blob *out)
{
    struct archive *archive = hpct_data_archive_reader();
    struct archive_entry *entry;
    int code = ARCHIVE_OK;
    hpct_status status = hpct_data_archive_open(archive, path);
    while (status == HPCT_OK && (code = archive_read_next_header(archive, &entry)) == ARCHIVE_OK) {
        const char *name = archive_entry_pathname(entry);
        int i = name != NULL ? find_name(name, names, count, suffix) : -1;
        if (i >= 0 && archive_entry_filetype(entry) == AE_IFREG && out[i].bytes == NULL)
            status = read_member(archive, path, &out[i]);
    }
    if (status == HPCT_OK && code != ARCHIVE_EOF)
        status = hpct_data_archive_failed(archive, path);
    archive_read_free(archive);
    return status;
}

/* ---- folders and archives ---- */

/* Loads the files of these names; out[i].bytes is NULL for a missing one. */
static hpct_status load(const place *at, const char *path, const char *const *names, int count,
                        const char *suffix, blob *out)
{
    hpct_status status = HPCT_OK;
    if (at->folder == NULL)
        return read_members(path, names, count, suffix, out);
    for (int i = 0; i < count && status == HPCT_OK; i++) {
        char *file = NULL, *bytes = NULL;
        if (!is_there(at->folder, names[i], suffix))
            continue;
        HPCT_TRY(hpct_alloc_text(&file, "%s/%s%s", at->folder, names[i], suffix));
        status = hpct_file_read(&bytes, &out[i].num_bytes, file, MAX_FILE_BYTES);
        out[i].bytes = status == HPCT_OK ? (uint8_t *) bytes : NULL;
        free(file);
    }
    return status;
}

static hpct_status add_all(const hpct_data_cifar_version *version, hpct_dataset *dataset,
                           const char *const *names, int count, int kind, const blob *blobs)
{
    hpct_status status = HPCT_OK;
    for (int i = 0; i < count && status == HPCT_OK; i++) {
        char *file = NULL;
        HPCT_TRY(hpct_alloc_text(&file, "%s/%s%s", dataset->path, names[i], version->suffix));
        if (blobs[i].bytes == NULL)
            status = hpct_fail(HPCT_ERR_NO_INPUT, "%s: No such file or directory", file);
        else
            status = version->add(dataset, blobs[i].bytes, blobs[i].num_bytes, kind, file);
        free(file);
    }
    return status;
}

static hpct_status set_source(hpct_dataset *dataset, const char *const *names, int count,
                              const char *suffix)
{
    bool one = count == 1;
    return hpct_alloc_text(&dataset->source, "%s/%s%s%s%s%s", dataset->path, names[0], suffix,
                           one ? "" : " to ", one ? "" : names[count - 1], one ? "" : suffix);
}

/* Missing batches mean an incomplete download, an error for either split. */
static hpct_status check_batches(const place *at, const char *suffix)
{
    int count = at->folder != NULL ? count_batches(at->folder, suffix) : 0;
    for (int i = 0; count > 0 && i < 5; i++) {
        if (!is_there(at->folder, ten[i], suffix))
            return hpct_fail(HPCT_ERR_NO_INPUT, "%s/%s%s: No such file or directory", at->folder,
                             ten[i], suffix);
    }
    return HPCT_OK;
}

static void free_blobs(blob *blobs, int count)
{
    for (int i = 0; i < count; i++)
        free(blobs[i].bytes);
}

static hpct_status read_files(const hpct_data_cifar_version *version, hpct_dataset *dataset,
                              const char *path, const place *at, hpct_split split)
{
    static const char *const test[] = {"test_batch"}, *const hundred[][1] = {{"train"}, {"test"}};
    bool batches = at->kind == 10 && split == HPCT_TRAIN;
    const char *const *names = batches ? ten : at->kind == 100 ? hundred[split == HPCT_TEST] : test;
    const char *const *classes = &version->names[at->kind == 100];
    int count = batches ? 5 : 1;
    blob blobs[MAX_FILES] = {{0}}, words = {0};
    hpct_status status = load(at, path, names, count, version->suffix, blobs);
    dataset->lacking = status == HPCT_OK;
    for (int i = 0; i < count; i++)
        dataset->lacking = dataset->lacking && blobs[i].bytes == NULL;
    if (status == HPCT_OK)
        status = add_all(version, dataset, names, count, at->kind, blobs);
    if (status == HPCT_OK)
        status = set_source(dataset, names, count, version->suffix);
    if (status == HPCT_OK)
        status = load(at, path, classes, 1, "", &words);
    if (status == HPCT_OK && words.bytes != NULL)
        version->add_names(dataset, words.bytes, words.num_bytes, at->kind, *classes);
    free(words.bytes);
    free_blobs(blobs, count);
    return status;
}

bool hpct_data_cifar_claims(const hpct_data_cifar_version *version, const char *path,
                            bool is_folder)
{
    place at = {0};
    bool found;
    if (!is_folder)
        return hpct_data_is_archive_name(path) && kind_in_archive(version, path) != 0;
    found = find_in_folder(version, path, &at) != HPCT_OK || at.kind != 0;
    free(at.folder);
    return found;
}

hpct_status hpct_data_cifar_read(const hpct_data_cifar_version *version, hpct_dataset *dataset,
                                 const char *path, hpct_split split)
{
    place at = {0};
    hpct_status status = find_in_folder(version, path, &at);
    if (status == HPCT_OK && at.kind == 0)
        at.kind = kind_in_archive(version, path);
    if (status == HPCT_OK) {
        dataset->path = strdup(at.folder != NULL ? at.folder : path);
        status = dataset->path != NULL ? check_batches(&at, version->suffix) : hpct_fail_memory(0);
    }
    if (status == HPCT_OK)
        status = read_files(version, dataset, path, &at, split);
    free(at.folder);
    return status;
}
