/* Tar archives of pictures, also compressed, and zip: read once, from beginning to end. In a
 * WebDataset the files of one sample are consecutive and differ in what follows the first dot of
 * their name: KEY.jpg, KEY.cls (the label as text), and others that are ignored. */
#include "agent/data/tar.h"

#include "agent/data/archive.h"
#include "agent/data/picture.h"
#include "base/alloc.h"
#include "base/status.h"

#include <archive_entry.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_LABEL (-1)

/* ---- one member ---- */

/* Allocates room for `more` bytes after num_bytes. */
static hpct_status make_room(hpct_data_tar *tar, size_t more, const char *path)
{
    if (more > tar->memory - tar->num_bytes)
        return hpct_fail(HPCT_ERR_CONFIG,
                         "%s: its pictures do not fit the %zu MiB of memory that there are for "
                         "them: unpack it, and give the folder",
                         path, tar->memory >> 20);
    return hpct_alloc_room(&tar->bytes, &tar->room, tar->num_bytes + more, 1);
}

/* Reads a member after num_bytes, without trusting the size in its header. */
static hpct_status read_member(hpct_data_tar *tar, struct archive *archive, const char *path,
                               size_t *bytes)
{
    *bytes = 0;
    for (;;) {
        HPCT_TRY(make_room(tar, 16384, path));
        la_ssize_t got = archive_read_data(archive, tar->bytes + tar->num_bytes, 16384);
        if (got < 0)
            return hpct_data_archive_failed(archive, path);
        if (got == 0)
            return HPCT_OK;
        tar->num_bytes += (size_t) got;
        *bytes += (size_t) got;
        if (*bytes > HPCT_DATA_PICTURE_MAX_BYTES)
            return hpct_fail(HPCT_ERR_DATA, "%s: a picture of more than %" PRIu64 " bytes", path,
                             HPCT_DATA_PICTURE_MAX_BYTES);
    }
}

static hpct_status read_picture(hpct_data_tar *tar, struct archive *archive, const char *name,
                                const char *path)
{
    size_t at = tar->num_bytes, bytes;
    HPCT_TRY(read_member(tar, archive, path, &bytes));
    HPCT_TRY(hpct_data_listing_add(&tar->pictures, name, at, bytes));
    tar->pictures.entries[tar->pictures.count - 1].label = NO_LABEL;
    return HPCT_OK;
}

/* ---- WebDataset ---- */

/* Length of the name up to the first dot after the last slash. */
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

/* Compares up to the last dot, as keys may contain dots: 22.05.jpg and 22.05.cls. */
static bool same_stem(const char *a, const char *b)
{
    size_t length = (size_t) (strrchr(a, '.') - a);
    return length == (size_t) (strrchr(b, '.') - b) && memcmp(a, b, length) == 0;
}

/* The label of a sample may come before its picture or after it. */
typedef struct pending {
    char *name; /* name of the .cls without picture so far, or NULL */
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
        return hpct_fail(HPCT_ERR_DATA, "%s: it is not a class number", name);
    *label = (int32_t) value;
    return HPCT_OK;
}

static hpct_status check_labelled(hpct_data_tar *tar, const char *path)
{
    for (; tar->web_dataset && tar->labelled < tar->pictures.count; tar->labelled++) {
        const hpct_data_entry *entry = &tar->pictures.entries[tar->labelled];
        if (entry->label == NO_LABEL && entry->name[strlen(entry->name) - 1] != '/')
            return hpct_fail(HPCT_ERR_DATA, "%s/%s: there is no .cls beside it", path, entry->name);
    }
    return HPCT_OK;
}

/* Error for a label without a picture that can be read. */
static hpct_status fail_alone(const hpct_data_tar *tar, const char *path, const char *name)
{
    const char *other = tar->pictures.other;
    if (other != NULL)
        return hpct_fail(HPCT_ERR_DATA,
                         "%s/%s: its picture, %s, cannot be read: " HPCT_DATA_PICTURE_FORMATS
                         " can",
                         path, name, other);
    return hpct_fail(HPCT_ERR_DATA, "%s/%s: its picture is missing in the archive", path, name);
}

/* Whether the previous picture in this archive has the same key as the last one. */
static bool follows_its_key(const hpct_data_tar *tar)
{
    size_t count = tar->pictures.count;
    const hpct_data_entry *last = &tar->pictures.entries[count - 1];
    return count > tar->labelled + 1 && same_key(last[-1].name, last->name);
}

static hpct_status fail_names(const char *path, const char *picture, const char *other)
{
    return hpct_fail(
        HPCT_ERR_DATA,
        "%s/%s: it cannot be told whether it is of one sample with %s: name a sample's "
        "files KEY.jpg and KEY.cls",
        path, picture, other);
}

/* Sets the label of the last picture, from a file with its key. If only the part up to the first
 * dot agrees (x.left.jpg, x.class.cls), no other picture may have the key x: 22.05.jpg and
 * 22.06.cls would be of two samples. */
static hpct_status set_label(hpct_data_tar *tar, const char *path, const char *name, int32_t label)
{
    hpct_data_entry *last = &tar->pictures.entries[tar->pictures.count - 1];
    last->label = label;
    tar->loose = !same_stem(last->name, name);
    return tar->loose && follows_its_key(tar) ? fail_names(path, last->name, name) : HPCT_OK;
}

static hpct_status read_label(hpct_data_tar *tar, struct archive *archive, const char *name,
                              const char *path, const char *full, pending *waiting)
{
    size_t at = tar->num_bytes, bytes, count = tar->pictures.count;
    const hpct_data_entry *last = count > 0 ? &tar->pictures.entries[count - 1] : NULL;
    hpct_status status = read_member(tar, archive, full, &bytes);
    tar->num_bytes = at;
    tar->web_dataset = true;
    if (status == HPCT_OK)
        status = parse_label(tar->bytes + at, bytes, full, &waiting->label);
    if (status != HPCT_OK)
        return status;
    if (last != NULL && last->label == NO_LABEL && same_key(last->name, name))
        return set_label(tar, path, name, waiting->label);
    if (waiting->name != NULL)
        return fail_alone(tar, path, waiting->name);
    waiting->name = strdup(name);
    return waiting->name != NULL ? HPCT_OK : hpct_fail_memory(0);
}

static hpct_status pair(hpct_data_tar *tar, const char *path, pending *waiting)
{
    const hpct_data_entry *last = &tar->pictures.entries[tar->pictures.count - 1];
    if (tar->loose && follows_its_key(tar))
        return fail_names(path, last->name, last[-1].name);
    if (waiting->name == NULL)
        return HPCT_OK;
    if (!same_key(last->name, waiting->name))
        return fail_alone(tar, path, waiting->name);
    hpct_status status = set_label(tar, path, waiting->name, waiting->label);
    free(waiting->name);
    waiting->name = NULL;
    return status;
}

/* ---- an archive ---- */

static bool is_label_name(const char *name)
{
    return hpct_data_name_ends(name, ".cls");
}

/* Whether this is a WebDataset's .json or .txt of the last picture. */
static bool describes_last(const hpct_data_tar *tar, const char *name)
{
    size_t count = tar->pictures.count;
    const hpct_data_entry *last = count > 0 ? &tar->pictures.entries[count - 1] : NULL;
    return (hpct_data_name_ends(name, ".json") || hpct_data_name_ends(name, ".txt")) &&
           last != NULL && last->label == NO_LABEL && same_stem(last->name, name);
}

/* Normalizes a name: "./a//b" is a/b, and "../a" is a, as tar unpacks it. *plain is NULL for hidden
 * names. */
static hpct_status plain_name(const char *prefix, const char *name, char **plain)
{
    const size_t begin = prefix != NULL ? strlen(prefix) : 0;
    size_t used = begin;
    char *out = malloc(used + strlen(name) + 1);
    *plain = NULL;
    if (out == NULL)
        return hpct_fail_memory(strlen(name));
    if (used > 0)
        memcpy(out, prefix, used);
    while (*name != '\0') {
        size_t length = strcspn(name, "/");
        bool last = name[length] == '\0';
        memcpy(out + used, name, length);
        out[used + length] = '\0';
        bool up = strcmp(out + used, "..") == 0;
        bool itself = up || length == 0 || strcmp(out + used, ".") == 0;
        if (!itself && hpct_data_is_hidden(out + used)) {
            free(out);
            return HPCT_OK;
        }
        used = up ? begin : used + (itself ? 0 : length);
        if (!last && !itself)
            out[used++] = '/';
        name += length + !last;
    }
    out[used] = '\0';
    *plain = out;
    return HPCT_OK;
}

static bool begins_as_picture(struct archive *archive)
{
    uint8_t bytes[HPCT_DATA_PICTURE_MAGIC];
    la_ssize_t got = archive_read_data(archive, bytes, sizeof bytes);
    return got > 0 && hpct_data_picture_begins(bytes, (size_t) got);
}

static hpct_status take_file(hpct_data_tar *tar, struct archive *archive, const char *name,
                             const char *path, pending *waiting)
{
    char *full = NULL;
    hpct_data_named named = hpct_data_picture_named(name);
    if (named == HPCT_DATA_NAMED_OTHER ||
        (named == HPCT_DATA_NAMED_UNKNOWN && begins_as_picture(archive)))
        return hpct_data_listing_add_other(&tar->pictures, name);
    if (named != HPCT_DATA_NAMED_PICTURE && !is_label_name(name)) {
        tar->described = tar->described || describes_last(tar, name);
        return HPCT_OK;
    }
    HPCT_TRY(hpct_alloc_text(&full, "%s/%s", path, name));
    hpct_status status = named == HPCT_DATA_NAMED_PICTURE
                             ? read_picture(tar, archive, name, full)
                             : read_label(tar, archive, name, path, full, waiting);
    if (status == HPCT_OK && named == HPCT_DATA_NAMED_PICTURE)
        status = pair(tar, path, waiting);
    free(full);
    return status;
}

/* Adds a file's class only, by the rules of take_file. */
static hpct_status list_file(hpct_data_tar *tar, const char *name)
{
    hpct_data_named named = hpct_data_picture_named(name);
    if (named == HPCT_DATA_NAMED_OTHER)
        return hpct_data_listing_add_other(&tar->pictures, name);
    return named == HPCT_DATA_NAMED_PICTURE ? hpct_data_listing_add(&tar->pictures, name, 0, 0)
                                            : HPCT_OK;
}

/* A file that was archived twice is a hard link to itself. */
static bool is_link_to_another(struct archive_entry *entry, const char *name)
{
    const char *target = archive_entry_hardlink(entry);
    return target != NULL ? strcmp(target, name) != 0 : archive_entry_filetype(entry) == AE_IFLNK;
}

static void take_link(hpct_data_tar *tar, char *name)
{
    if (tar->names_only || tar->links++ > 0)
        free(name);
    else
        tar->link = name;
}

static hpct_status take_member(hpct_data_tar *tar, struct archive *archive,
                               struct archive_entry *entry, const char *path, pending *waiting)
{
    const char *name = archive_entry_pathname(entry);
    bool is_folder = archive_entry_filetype(entry) == AE_IFDIR;
    char *plain = NULL;
    if (name == NULL)
        name = archive_entry_pathname_utf8(entry);
    if (name == NULL)
        return hpct_fail(HPCT_ERR_DATA,
                         "%s: the name of a file in it is not text: unpack it, and give the folder",
                         path);
    bool is_link = is_link_to_another(entry, name);
    if (!is_link && (archive_entry_hardlink(entry) != NULL ||
                     (!is_folder && archive_entry_filetype(entry) != AE_IFREG)))
        return HPCT_OK;
    hpct_status status = plain_name(tar->prefix, name, &plain);
    if (status != HPCT_OK || plain == NULL)
        return status;
    if (is_link) {
        take_link(tar, plain);
        return HPCT_OK;
    }
    if (!is_folder && tar->names_only)
        status = list_file(tar, plain);
    else if (!is_folder)
        status = take_file(tar, archive, plain, path, waiting);
    else if (plain[0] != '\0' && plain[strlen(plain) - 1] == '/')
        status = hpct_data_listing_add(&tar->pictures, plain, 0, 0);
    free(plain);
    return status;
}

/* libarchive accepts end of file as the end of a tar, which should have two blocks of zeros. */
#define TAR_END 1024

static hpct_status check_end(struct archive *archive, la_int64_t members_end, const char *path)
{
    if ((archive_format(archive) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR &&
        archive_filter_bytes(archive, 0) - members_end < TAR_END)
        return hpct_fail(HPCT_ERR_DATA, "%s: it is damaged: its end is missing", path);
    return HPCT_OK;
}

hpct_status hpct_data_tar_read(hpct_data_tar *tar, struct archive *archive, const char *path)
{
    struct archive_entry *entry;
    pending waiting = {0};
    la_int64_t members_end = 0;
    hpct_status status = HPCT_OK;
    int code = ARCHIVE_OK;
    const size_t first = tar->pictures.count;
    tar->loose = false;
    while (status == HPCT_OK) {
        code = archive_read_next_header(archive, &entry);
        if (code != ARCHIVE_OK && code != ARCHIVE_WARN) /* a warning, e.g.: a name that the */
            break;                                      /* locale cannot represent */
        if (archive_entry_is_encrypted(entry))
            status = hpct_fail(HPCT_ERR_DATA, "%s: it is encrypted", path);
        else
            status = take_member(tar, archive, entry, path, &waiting);
        if (status == HPCT_OK && archive_read_data_skip(archive) < ARCHIVE_WARN)
            status = hpct_data_archive_failed(archive, path);
        members_end = archive_filter_bytes(archive, 0);
    }
    if (status == HPCT_OK && code != ARCHIVE_EOF)
        status = hpct_data_archive_failed(archive, path);
    if (status == HPCT_OK)
        status = check_end(archive, members_end, path);
    if (status == HPCT_OK && waiting.name != NULL)
        status = fail_alone(tar, path, waiting.name);
    free(waiting.name);
    if (status == HPCT_OK && !tar->names_only)
        status = hpct_data_listing_keep_last(&tar->pictures, first);
    return status == HPCT_OK ? check_labelled(tar, path) : status;
}

void hpct_data_tar_free(hpct_data_tar *tar)
{
    hpct_data_listing_free(&tar->pictures);
    free(tar->link);
    free(tar->bytes);
    *tar = (hpct_data_tar){0};
}

static hpct_status read_here(hpct_data_tar *tar, const char *path)
{
    struct archive *archive = hpct_data_archive_reader();
    hpct_status status = hpct_data_archive_open(archive, path);
    if (status == HPCT_OK)
        status = hpct_data_tar_read(tar, archive, path);
    archive_read_free(archive);
    return status;
}

/* libarchive converts names marked as UTF-8 (zip, pax) to the locale, which must be UTF-8. */
hpct_status hpct_data_tar_read_file(hpct_data_tar *tar, const char *path)
{
    locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t) 0);
    locale_t before = utf8 != (locale_t) 0 ? uselocale(utf8) : (locale_t) 0;
    hpct_status status = read_here(tar, path);
    if (utf8 != (locale_t) 0) {
        uselocale(before);
        freelocale(utf8);
    }
    return status;
}
