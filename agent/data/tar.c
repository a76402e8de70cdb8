/* Tar archives of pictures, also compressed: read once, from the beginning to the end. In a
 * WebDataset the files of one sample stand together and differ in what follows the first dot of
 * their name: KEY.jpg, KEY.cls (the label as text), and others that are of no use here. */
#include "agent/data/tar.h"

#include "agent/data/dataset.h"
#include "agent/data/encoded.h"
#include "base/status.h"

#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define NO_LABEL (-1)

static hpct_status archive_failure(struct archive *archive, const char *path)
{
    const char *why = archive_error_string(archive);
    return hpct_fail(HPCT_ERR_DATA, "%s: it is damaged: %s", path,
                     why == NULL ? "no tar archive" : why);
}

/* ---- one member ---- */

/* Room for `more` bytes behind what there is. */
static hpct_status make_room(hpct_tar *tar, size_t more, const char *path)
{
    if (more > tar->memory - tar->num_bytes)
        return hpct_fail(HPCT_ERR_CONFIG,
                         "%s: its pictures do not fit the %zu MiB of memory that there are for "
                         "them: unpack it, and give the folder",
                         path, tar->memory >> 20);
    if (more <= tar->room - tar->num_bytes)
        return HPCT_OK;
    size_t room = tar->room > 0 ? 2 * tar->room : (size_t) 1 << 20;
    room = room < tar->num_bytes + more ? tar->num_bytes + more : room;
    uint8_t *grown = realloc(tar->bytes, room);
    if (grown == NULL)
        return hpct_fail_memory(room);
    tar->bytes = grown;
    tar->room = room;
    return HPCT_OK;
}

/* All of a member behind what there is; its header's size is not believed. */
static hpct_status read_member(hpct_tar *tar, struct archive *archive, const char *path,
                               size_t *bytes)
{
    *bytes = 0;
    for (;;) {
        hpct_status status = make_room(tar, 16384, path);
        if (status != HPCT_OK)
            return status;
        la_ssize_t got = archive_read_data(archive, tar->bytes + tar->num_bytes, 16384);
        if (got < 0)
            return archive_failure(archive, path);
        if (got == 0)
            return HPCT_OK;
        tar->num_bytes += (size_t) got;
        *bytes += (size_t) got;
        if (*bytes > HPCT_PICTURE_MAX_BYTES)
            return hpct_fail(HPCT_ERR_DATA, "%s: a picture of more than %" PRIu64 " bytes", path,
                             HPCT_PICTURE_MAX_BYTES);
    }
}

static hpct_status read_picture(hpct_tar *tar, struct archive *archive, const char *name,
                                const char *path)
{
    size_t at = tar->num_bytes, bytes;
    hpct_status status = read_member(tar, archive, path, &bytes);
    if (status == HPCT_OK)
        status = hpct_listing_add(&tar->pictures, name, at, bytes);
    if (status == HPCT_OK)
        tar->pictures.entries[tar->pictures.count - 1].label = NO_LABEL;
    return status;
}

/* ---- WebDataset ---- */

/* The name up to the first dot behind the last slash. */
static size_t key_length(const char *name)
{
    const char *slash = strrchr(name, '/');
    const char *file = slash != NULL ? slash + 1 : name;
    return (size_t) (file - name) + strcspn(file, ".");
}

static bool same_key(const char *a, const char *b)
{
    size_t length = key_length(a);
    return length == key_length(b) && memcmp(a, b, length) == 0;
}

/* The label of a sample may come before its picture or after it. */
typedef struct pending {
    char *name; /* of the .cls that waits for its picture, or NULL */
    int32_t label;
} pending;

static hpct_status parse_label(const uint8_t *text, size_t bytes, const char *name, int32_t *label)
{
    char copy[16] = "", *end;
    if (bytes < sizeof copy)
        memcpy(copy, text, bytes);
    long value = strtol(copy, &end, 10);
    end += strspn(end, " \t\r\n");
    if (copy[0] < '0' || copy[0] > '9' || *end != '\0' || value > INT32_MAX)
        return hpct_fail(HPCT_ERR_DATA, "%s: it is no class number", name);
    *label = (int32_t) value;
    return HPCT_OK;
}

static hpct_status check_labelled(hpct_tar *tar, const char *path)
{
    for (; tar->web_dataset && tar->labelled < tar->pictures.count; tar->labelled++) {
        const hpct_entry *entry = &tar->pictures.entries[tar->labelled];
        if (entry->label == NO_LABEL)
            return hpct_fail(HPCT_ERR_DATA, "%s/%s: there is no .cls beside it", path, entry->name);
    }
    return HPCT_OK;
}

static hpct_status read_label(hpct_tar *tar, struct archive *archive, const char *name,
                              const char *path, pending *waiting)
{
    size_t at = tar->num_bytes, bytes, count = tar->pictures.count;
    hpct_status status = read_member(tar, archive, path, &bytes);
    tar->num_bytes = at;
    tar->web_dataset = true;
    if (status == HPCT_OK)
        status = parse_label(tar->bytes + at, bytes, path, &waiting->label);
    if (status != HPCT_OK)
        return status;
    if (count > 0 && same_key(tar->pictures.entries[count - 1].name, name)) {
        tar->pictures.entries[count - 1].label = waiting->label;
        return HPCT_OK;
    }
    if (waiting->name != NULL)
        return hpct_fail(HPCT_ERR_DATA, "%s: there is no picture beside it", waiting->name);
    waiting->name = strdup(name);
    return waiting->name != NULL ? HPCT_OK : hpct_fail_memory(0);
}

static hpct_status pair(hpct_tar *tar, pending *waiting)
{
    hpct_entry *last = &tar->pictures.entries[tar->pictures.count - 1];
    if (waiting->name == NULL)
        return HPCT_OK;
    if (!same_key(last->name, waiting->name))
        return hpct_fail(HPCT_ERR_DATA, "%s: there is no picture beside it", waiting->name);
    last->label = waiting->label;
    free(waiting->name);
    waiting->name = NULL;
    return HPCT_OK;
}

/* ---- an archive ---- */

static bool is_label_name(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot != NULL && strcmp(dot, ".cls") == 0;
}

hpct_status hpct_tar_read(hpct_tar *tar, struct archive *archive, const char *path)
{
    struct archive_entry *entry;
    pending waiting = {0};
    hpct_status status = HPCT_OK;
    int code; /* a warning: of a name, say, that the locale cannot write */
    while ((code = archive_read_next_header(archive, &entry)) == ARCHIVE_OK ||
           code == ARCHIVE_WARN) {
        char *full = NULL;
        const char *name = archive_entry_pathname(entry);
        if (name == NULL)
            name = archive_entry_pathname_utf8(entry);
        if (name == NULL || archive_entry_filetype(entry) != AE_IFREG ||
            archive_entry_hardlink(entry) != NULL)
            continue;
        bool picture = hpct_is_picture_name(name);
        if (!picture && !is_label_name(name))
            continue;
        if (asprintf(&full, "%s/%s", path, name) < 0) {
            status = hpct_fail_memory(0);
            break;
        }
        status = picture ? read_picture(tar, archive, name, full)
                         : read_label(tar, archive, name, full, &waiting);
        if (status == HPCT_OK && picture)
            status = pair(tar, &waiting);
        free(full);
        if (status != HPCT_OK)
            break;
    }
    if (status == HPCT_OK && code != ARCHIVE_EOF)
        status = archive_failure(archive, path);
    if (status == HPCT_OK && waiting.name != NULL)
        status =
            hpct_fail(HPCT_ERR_DATA, "%s/%s: there is no picture beside it", path, waiting.name);
    free(waiting.name);
    return status == HPCT_OK ? check_labelled(tar, path) : status;
}

void hpct_tar_free(hpct_tar *tar)
{
    hpct_listing_free(&tar->pictures);
    free(tar->bytes);
    *tar = (hpct_tar){0};
}

struct archive *hpct_tar_new_reader(void)
{
    struct archive *archive = archive_read_new();
    if (archive != NULL) {
        archive_read_support_format_tar(archive);
        archive_read_support_filter_gzip(archive);
        archive_read_support_filter_xz(archive);
        archive_read_support_filter_zstd(archive);
    }
    return archive;
}

/* ---- files ---- */

static bool ends_in(const char *name, const char *end)
{
    size_t length = strlen(name), tail = strlen(end);
    return length > tail && strcasecmp(name + length - tail, end) == 0;
}

static bool is_tar_name(const char *name)
{
    return ends_in(name, ".tar") || ends_in(name, ".tar.gz") || ends_in(name, ".tgz") ||
           ends_in(name, ".tar.xz") || ends_in(name, ".tar.zst");
}

static int is_shard(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && is_tar_name(entry->d_name);
}

static int is_train_shard(const struct dirent *entry)
{
    return is_shard(entry) && strncmp(entry->d_name, "train", 5) == 0;
}

static int is_test_shard(const struct dirent *entry)
{
    return is_shard(entry) &&
           (strncmp(entry->d_name, "test", 4) == 0 || strncmp(entry->d_name, "val", 3) == 0);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void free_names(struct dirent **names, int count)
{
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

static bool claims(const char *path, bool is_folder)
{
    struct dirent **names = NULL;
    if (!is_folder)
        return is_tar_name(path);
    int count = scandir(path, &names, is_shard, NULL);
    free_names(names, count);
    return count > 0;
}

static hpct_status read_file(hpct_tar *tar, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s: %s", path, strerror(errno));
    struct archive *archive = hpct_tar_new_reader();
    hpct_status status;
    if (archive == NULL)
        status = hpct_fail_memory(0);
    else if (archive_read_open_fd(archive, fd, 1 << 18) != ARCHIVE_OK)
        status = archive_failure(archive, path);
    else
        status = hpct_tar_read(tar, archive, path);
    archive_read_free(archive);
    close(fd);
    return status;
}

/* Shards train*.tar, and test*.tar or val*.tar; without such names all of them, as either split. */
static hpct_status read_shards(hpct_tar *tar, const char *folder, hpct_split split)
{
    struct dirent **names = NULL;
    hpct_status status = HPCT_OK;
    int others, count = scandir(folder, &names,
                                split == HPCT_TRAIN ? is_train_shard : is_test_shard, by_name);
    if (count == 0) {
        free_names(names, count);
        others =
            scandir(folder, &names, split == HPCT_TRAIN ? is_test_shard : is_train_shard, by_name);
        free_names(names, others);
        if (others != 0)
            return hpct_fail(HPCT_ERR_NO_INPUT, "%s: there are no %s shards in it", folder,
                             split == HPCT_TRAIN ? "training" : "test");
        count = scandir(folder, &names, is_shard, by_name);
    }
    for (int i = 0; i < count && status == HPCT_OK; i++) {
        char *path = NULL;
        if (asprintf(&path, "%s/%s", folder, names[i]->d_name) < 0)
            status = hpct_fail_memory(0);
        else
            status = read_file(tar, path);
        free(path);
    }
    free_names(names, count);
    return status;
}

static hpct_status read_split(hpct_dataset *dataset, const char *path, hpct_split split)
{
    hpct_tar tar = {.memory = hpct_dataset_memory(dataset) / 2};
    dataset->path = strdup(path);
    hpct_status status = dataset->path == NULL ? hpct_fail_memory(0)
                         : is_tar_name(path)   ? read_file(&tar, path)
                                               : read_shards(&tar, path, split);
    if (status == HPCT_OK && tar.pictures.count == 0)
        status = hpct_fail(HPCT_ERR_DATA, "%s: there are no pictures in it", path);
    if (status == HPCT_OK && !tar.web_dataset)
        status = hpct_listing_choose(&tar.pictures, split, path);
    if (status == HPCT_OK) {
        status = hpct_encoded_take(dataset, &tar.pictures, tar.bytes, tar.num_bytes);
        tar.bytes = NULL;
    }
    hpct_tar_free(&tar);
    return status;
}

const hpct_format hpct_format_tar = {
    .name = "tar of pictures",
    .looks_like =
        "a .tar[.gz] with KEY.jpg and KEY.cls (WebDataset) or CLASS/x.jpg, or a folder with "
        "train*.tar and test*.tar",
    .claims = claims,
    .read = read_split,
};
