/* Tar archives of pictures, also compressed, and zip: read once, from beginning to end. In a
 * WebDataset the files of one sample are consecutive and differ in what follows the first dot of
 * their name: KEY.jpg, KEY.cls (the label as text), and others that are ignored. */
#include "agent/data/tar.h"

#include "agent/data/dataset.h"
#include "agent/data/encoded.h"
#include "agent/data/folder.h"
#include "agent/data/notes.h"
#include "agent/data/split_name.h"
#include "agent/data/unlabelled.h"
#include "base/status.h"

#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define NO_LABEL (-1)

static hpct_status archive_failure(struct archive *archive, const char *path)
{
    const char *why = archive_error_string(archive);
    return hpct_fail(HPCT_ERR_DATA, "%s: it is damaged: %s", path,
                     why == NULL ? "no tar archive" : why);
}

/* ---- one member ---- */

/* Allocates room for `more` bytes after num_bytes. */
static hpct_status make_room(hpct_data_tar *tar, size_t more, const char *path)
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

/* Reads a member after num_bytes, without trusting the size in its header. */
static hpct_status read_member(hpct_data_tar *tar, struct archive *archive, const char *path,
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

static bool ends_in(const char *name, const char *end)
{
    size_t length = strlen(name), tail = strlen(end);
    return length > tail && strcasecmp(name + length - tail, end) == 0;
}

static bool is_label_name(const char *name)
{
    return ends_in(name, ".cls");
}

/* Whether this is a WebDataset's .json or .txt of the last picture. */
static bool describes_last(const hpct_data_tar *tar, const char *name)
{
    size_t count = tar->pictures.count;
    const hpct_data_entry *last = count > 0 ? &tar->pictures.entries[count - 1] : NULL;
    return (ends_in(name, ".json") || ends_in(name, ".txt")) && last != NULL &&
           last->label == NO_LABEL && same_stem(last->name, name);
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
    if (asprintf(&full, "%s/%s", path, name) < 0)
        return hpct_fail_memory(0);
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
            status = archive_failure(archive, path);
        members_end = archive_filter_bytes(archive, 0);
    }
    if (status == HPCT_OK && code != ARCHIVE_EOF)
        status = archive_failure(archive, path);
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

struct archive *hpct_data_tar_new_reader(void)
{
    struct archive *archive = archive_read_new();
    if (archive == NULL)
        return NULL;
    archive_read_support_format_tar(archive);
    archive_read_set_format_option(archive, "tar", "read_concatenated_archives", "1");
    archive_read_support_format_zip_seekable(archive); /* the other accepts truncated zips */
    archive_read_support_filter_gzip(archive);
    archive_read_support_filter_bzip2(archive);
    archive_read_support_filter_xz(archive);
    archive_read_support_filter_zstd(archive);
    return archive;
}

/* ---- files ---- */

/* Length of an archive's extension; 0 for other names. */
static size_t end_of_name(const char *name)
{
    static const char *const ends[] = {".tar",     ".tar.gz", ".tgz",    ".tar.bz2",
                                       ".tbz",     ".tbz2",   ".tar.xz", ".txz",
                                       ".tar.zst", ".tzst",   ".zip"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (ends_in(name, ends[i]))
            return strlen(ends[i]);
    }
    return 0;
}

bool hpct_data_is_tar_name(const char *name)
{
    return end_of_name(name) > 0;
}

/* Such as train-0.tar and train-0.tar.gz. */
static bool are_copies(const char *a, const char *b)
{
    size_t length = strlen(a) - end_of_name(a);
    return length == strlen(b) - end_of_name(b) && memcmp(a, b, length) == 0;
}

static int is_shard(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && hpct_data_is_tar_name(entry->d_name);
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
        return hpct_data_is_tar_name(path);
    int count = scandir(path, &names, is_shard, NULL);
    free_names(names, count);
    return count > 0;
}

static hpct_status read_here(hpct_data_tar *tar, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s: %s", path, strerror(errno));
    struct archive *archive = hpct_data_tar_new_reader();
    hpct_status status;
    if (archive == NULL)
        status = hpct_fail_memory(0);
    else if (archive_read_open_fd(archive, fd, 1 << 18) != ARCHIVE_OK)
        status = archive_failure(archive, path);
    else
        status = hpct_data_tar_read(tar, archive, path);
    archive_read_free(archive);
    close(fd);
    return status;
}

/* libarchive converts names marked as UTF-8 (zip, pax) to the locale, which must be UTF-8. */
static hpct_status read_file(hpct_data_tar *tar, const char *path)
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

/* Names of the archives (shards) in a folder. */
typedef struct shards {
    struct dirent **names;
    int count, of[3], unnamed; /* `of`: by split; `unnamed`: without one */
} shards;

static int split_of(const struct dirent *entry)
{
    return hpct_data_split_within(entry->d_name, strlen(entry->d_name));
}

static hpct_status list_shards(shards *s, const char *folder)
{
    s->count = scandir(folder, &s->names, is_shard, by_name);
    if (s->count < 0)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s: %s", folder, strerror(errno));
    if (hpct_data_folder_has_pictures(folder))
        return hpct_fail(HPCT_ERR_DATA,
                         "%s: there are both archives (%s) and folders with pictures in it: give "
                         "one of them",
                         folder, s->names[0]->d_name);
    for (int i = 0; i < s->count; i++) {
        int split = split_of(s->names[i]);
        if (i > 0 && are_copies(s->names[i - 1]->d_name, s->names[i]->d_name))
            return hpct_fail(HPCT_ERR_DATA, "%s: %s and %s have one name: move one of them away",
                             folder, s->names[i - 1]->d_name, s->names[i]->d_name);
        if (split == HPCT_DATA_MANY_SPLITS)
            return hpct_fail(HPCT_ERR_DATA, "%s/%s: its name has words for two splits", folder,
                             s->names[i]->d_name);
        s->unnamed += split == HPCT_DATA_NO_SPLIT;
        if (split != HPCT_DATA_NO_SPLIT)
            s->of[split]++;
    }
    return HPCT_OK;
}

/* The split to read; HPCT_DATA_NO_SPLIT: all shards, as no name has a split. */
static hpct_status choose_shards(const shards *s, hpct_dataset *dataset, hpct_split wanted,
                                 int *chosen)
{
    *chosen = HPCT_DATA_NO_SPLIT;
    if (s->unnamed == s->count)
        return HPCT_OK;
    *chosen = (int) wanted;
    if (wanted != HPCT_TRAIN && s->of[wanted] == 0)
        *chosen = wanted == HPCT_TEST ? HPCT_VALIDATION : HPCT_TEST;
    dataset->lacking = s->of[*chosen] == 0;
    if (dataset->lacking)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s: there are no %s shards in it", dataset->path,
                         hpct_data_split_text(wanted));
    if (s->unnamed == 0)
        return HPCT_OK;
    for (int i = 0; i < s->count; i++) {
        if (split_of(s->names[i]) == HPCT_DATA_NO_SPLIT)
            return hpct_data_note(
                &dataset->notes,
                "%d archive%s whose name says no split %s left out (the first: %s)", s->unnamed,
                s->unnamed == 1 ? "" : "s", s->unnamed == 1 ? "is" : "are", s->names[i]->d_name);
    }
    return HPCT_OK;
}

/* Sets the source: "FOLDER/FIRST to LAST". */
static hpct_status name_shards(hpct_dataset *dataset, const char *first, const char *last)
{
    bool one = strcmp(first, last) == 0;
    if (asprintf(&dataset->source, "%s/%s%s%s", dataset->path, first, one ? "" : " to ",
                 one ? "" : last) >= 0)
        return HPCT_OK;
    dataset->source = NULL;
    return hpct_fail_memory(0);
}

static hpct_status read_chosen(hpct_data_tar *tar, const shards *s, hpct_dataset *dataset,
                               int chosen)
{
    static const char *const prefixes[] = {
        [HPCT_TRAIN] = "train/", [HPCT_TEST] = "test/", [HPCT_VALIDATION] = "val/"};
    const char *first = NULL, *last = NULL;
    hpct_status status = HPCT_OK;
    tar->prefix =
        chosen != HPCT_DATA_NO_SPLIT && !dataset->options.unlabelled ? prefixes[chosen] : NULL;
    for (int i = 0; i < s->count && status == HPCT_OK; i++) {
        char *path = NULL;
        if (split_of(s->names[i]) != chosen)
            continue;
        last = s->names[i]->d_name;
        first = first == NULL ? last : first;
        if (asprintf(&path, "%s/%s", dataset->path, last) < 0)
            return hpct_fail_memory(0);
        status = read_file(tar, path);
        free(path);
    }
    if (status == HPCT_OK && first != NULL && !tar->names_only)
        status = name_shards(dataset, first, last);
    return status;
}

/* Reads the split's shards, named train, test or val; all of them if no name has a split. */
static hpct_status read_shards(hpct_data_tar *tar, hpct_dataset *dataset, hpct_split split)
{
    shards s = {0};
    int chosen = HPCT_DATA_NO_SPLIT;
    hpct_status status = list_shards(&s, dataset->path);
    if (status == HPCT_OK)
        status = choose_shards(&s, dataset, split, &chosen);
    if (status == HPCT_OK)
        status = read_chosen(tar, &s, dataset, chosen);
    if (status == HPCT_OK && !tar->web_dataset && !dataset->options.unlabelled &&
        chosen > HPCT_TRAIN && s.of[HPCT_TRAIN] > 0) {
        tar->names_only = true; /* the training split's names number the classes */
        status = read_chosen(tar, &s, dataset, HPCT_TRAIN);
    }
    free_names(s.names, s.count);
    return status;
}

static hpct_status note_links(hpct_data_tar *tar)
{
    if (tar->links == 0)
        return HPCT_OK;
    return hpct_data_note(
        &tar->pictures.notes,
        "%zu link%s in archives %s left out: put the files themselves into them (tar "
        "--dereference --hard-dereference) (the first: %s)",
        tar->links, tar->links == 1 ? "" : "s", tar->links == 1 ? "is" : "are", tar->link);
}

/* Chooses the split's pictures, by the rules of the kind of archive. */
static hpct_status choose(hpct_data_tar *tar, hpct_dataset *dataset, hpct_split split)
{
    const char *path = dataset->path;
    if (tar->web_dataset) {
        hpct_data_listing_drop_folders(&tar->pictures);
        if (tar->pictures.count > 0)
            return hpct_data_listing_note_others(&tar->pictures);
        return hpct_fail(HPCT_ERR_DATA, "%s: there are no pictures in it", path);
    }
    if (dataset->options.unlabelled)
        return hpct_data_unlabelled_choose(&tar->pictures, split, path);
    if (tar->described)
        return hpct_fail(HPCT_ERR_DATA,
                         "%s: KEY.json or KEY.txt stand beside pictures, as in a WebDataset, but "
                         "no KEY.cls with the number of their class; if its folders are the "
                         "classes, unpack it and give the folder",
                         path);
    hpct_status status = hpct_data_listing_choose(&tar->pictures, split, path);
    dataset->lacking = dataset->lacking || tar->pictures.lacking;
    if (status == HPCT_OK && tar->prefix != NULL)
        tar->pictures.split[0] = '\0'; /* the shards' names have the split */
    return status;
}

static hpct_status read_split(hpct_dataset *dataset, const char *path, hpct_split split)
{
    hpct_data_tar tar = {.memory = hpct_dataset_memory(dataset) / 2};
    struct stat info;
    bool is_folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    dataset->path = strdup(path);
    hpct_status status = dataset->path == NULL ? hpct_fail_memory(0)
                         : is_folder           ? read_shards(&tar, dataset, split)
                                               : read_file(&tar, path);
    if (status == HPCT_OK)
        status = note_links(&tar);
    if (status == HPCT_OK)
        status = choose(&tar, dataset, split);
    if (status == HPCT_OK) {
        status = hpct_data_encoded_take(dataset, &tar.pictures, tar.bytes, tar.num_bytes);
        tar.bytes = NULL;
    }
    hpct_data_tar_free(&tar);
    return status;
}

const hpct_data_format hpct_data_format_tar = {
    .name = "tar of pictures",
    .looks_like =
        "a .tar[.gz] or .zip with KEY.jpg and KEY.cls (WebDataset) or CLASS/x.jpg, or a folder "
        "with train*.tar and test*.tar",
    .has_validation = true,
    .by_class = true,
    .claims = claims,
    .read = read_split,
};
