/* libarchive reads the formats; this file checks the items. */
#include <config.h>

#include "spank/stage/tree/extract.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/status.h"
#include "spank/stage/tree/folders.h"

#define PIECE (1u << 20)
#define TAR_END 1024 /* a tar ends with at least that many zero bytes */

typedef struct extracting {
    const hpct_stage_extract_output *output;
    const char *name;
    struct archive *archive;
    hpct_stage_unpack *unpack;
    hpct_status failed; /* read error below libarchive */
    size_t zeros;       /* trailing zero bytes so far */
    char *small;        /* [HPCT_STAGE_EXTRACT_SMALL] */
    /* of a regular file */
    hpct_stage_walk *walk;
    hpct_stage_report *report;
    int fd;
    uint64_t size, at;
    char *piece; /* [PIECE] */
} extracting;

static hpct_status fail_archive(const extracting *e)
{
    if (e->failed != HPCT_OK)
        return e->failed;
    const char *why = archive_error_string(e->archive);
    return hpct_fail(HPCT_ERR_DATA, "%s: it is damaged, or not an archive (tar, zip): %s", e->name,
                     why == NULL ? "it cannot be read" : why);
}

/* ---- reading ---- */

static void count_zeros(extracting *e, const unsigned char *data, size_t size)
{
    size_t n = 0;
    while (n < size && n < TAR_END && data[size - 1 - n] == 0)
        n++;
    e->zeros = n == size ? e->zeros + n : n;
}

static la_ssize_t feed(struct archive *archive, void *context, const void **data)
{
    extracting *e = context;
    size_t size = 0;
    e->failed = hpct_stage_unpack_read(e->unpack, data, &size);
    if (e->failed != HPCT_OK) {
        archive_set_error(archive, EIO, "%s", hpct_last_error());
        return -1;
    }
    count_zeros(e, *data, size);
    return (la_ssize_t) size;
}

static hpct_status read_file(void *context, const void **data, size_t *size)
{
    extracting *e = context;
    uint64_t left = e->size - e->at;
    *size = left < PIECE ? (size_t) left : PIECE;
    *data = e->piece;
    HPCT_TRY(hpct_stage_walk_read(e->walk, 0, e->fd, e->piece, *size, e->at));
    e->at += *size;
    e->report->read = e->at;
    return hpct_stage_report_tick(e->report, 0);
}

/* A zip is read from its end, so it needs seeking. */
static la_ssize_t feed_zip(struct archive *archive, void *context, const void **data)
{
    extracting *e = context;
    size_t size = 0;
    e->failed = read_file(e, data, &size);
    if (e->failed != HPCT_OK) {
        archive_set_error(archive, EIO, "%s", hpct_last_error());
        return -1;
    }
    return (la_ssize_t) size;
}

static la_int64_t seek_zip(struct archive *archive, void *context, la_int64_t offset, int whence)
{
    extracting *e = context;
    la_int64_t at = offset;
    (void) archive;
    if (whence == SEEK_CUR)
        at += (la_int64_t) e->at;
    else if (whence == SEEK_END)
        at += (la_int64_t) e->size;
    if (at < 0 || (uint64_t) at > e->size)
        return ARCHIVE_FATAL;
    e->at = (uint64_t) at;
    return at;
}

/* ---- items ---- */

/* "./a//b/" becomes a/b. The result may still contain "..": the writer rejects it. */
static hpct_status plain_path(const extracting *e, const char *name, char path[PATH_MAX])
{
    size_t used = 0;
    if (name == NULL)
        return hpct_fail(HPCT_ERR_DATA, "%s: it holds a name that cannot be read", e->name);
    if (*name == '/')
        return hpct_fail(HPCT_ERR_DATA, "%s: '%s' in it is an absolute name", e->name, name);
    for (const char *p = name; *p != '\0';) {
        size_t size = strcspn(p, "/");
        if (size > 0 && !(size == 1 && *p == '.')) {
            if (used + size + 2 > PATH_MAX)
                return hpct_fail(HPCT_ERR_DATA, "%s: a name in it is too long", e->name);
            if (used > 0)
                path[used++] = '/';
            memcpy(path + used, p, size);
            used += size;
        }
        p += size;
        p += strspn(p, "/");
    }
    path[used] = '\0';
    if (!hpct_stage_item_path_ok(path))
        return hpct_fail(HPCT_ERR_DATA,
                         "%s: the name '%s' in it leads out of the folder, or is too long", e->name,
                         name);
    return HPCT_OK;
}

static hpct_status fail_size(const extracting *e, const hpct_stage_item *item)
{
    return hpct_fail(HPCT_ERR_DATA, "%s: '%s' in it is not as long as it says", e->name,
                     item->path);
}

/* Data blocks with their offsets; the gaps between them are holes. */
static hpct_status pass_file(extracting *e, const hpct_stage_item *item)
{
    const hpct_stage_extract_output *out = e->output;
    bool small = item->size <= HPCT_STAGE_EXTRACT_SMALL;
    uint64_t at = 0;
    hpct_status status = small ? HPCT_OK : out->begin(out->context, item);
    if (small)
        memset(e->small, 0, (size_t) item->size);
    while (status == HPCT_OK) {
        const void *data = NULL;
        size_t size = 0;
        la_int64_t offset = 0;
        int code = archive_read_data_block(e->archive, &data, &size, &offset);
        if (code == ARCHIVE_EOF)
            break;
        if (code != ARCHIVE_OK)
            return fail_archive(e);
        if (offset < 0 || (uint64_t) offset < at || (uint64_t) offset > item->size ||
            size > item->size - (uint64_t) offset)
            return fail_size(e, item);
        if (small) {
            memcpy(e->small + offset, data, size);
        } else {
            if ((uint64_t) offset > at)
                status = out->data(out->context, NULL, (uint64_t) offset - at);
            if (status == HPCT_OK && size > 0)
                status = out->data(out->context, data, size);
        }
        at = (uint64_t) offset + size;
    }
    if (status != HPCT_OK)
        return status;
    /* libarchive reports truncated files if the format allows it; a sparse file may end with a
     * hole. */
    if (small)
        return out->whole(out->context, item, e->small);
    if (at < item->size)
        status = out->data(out->context, NULL, item->size - at);
    return status == HPCT_OK ? out->end(out->context) : status;
}

static void describe(struct archive_entry *entry, const char *path, hpct_stage_item *item)
{
    struct timespec modified = {.tv_sec = archive_entry_mtime(entry),
                                .tv_nsec = archive_entry_mtime_nsec(entry)};
    *item = (hpct_stage_item){.path = path, .mode = archive_entry_perm(entry) & 0777};
    item->times[0] = item->times[1] = modified;
    if (archive_entry_atime_is_set(entry))
        item->times[0] = (struct timespec){.tv_sec = archive_entry_atime(entry),
                                           .tv_nsec = archive_entry_atime_nsec(entry)};
}

static hpct_status pass_item(extracting *e, struct archive_entry *entry)
{
    char path[PATH_MAX], target[PATH_MAX];
    hpct_stage_item item;
    const char *link = archive_entry_hardlink(entry);
    HPCT_TRY(plain_path(e, archive_entry_pathname(entry), path));
    hpct_status status = HPCT_OK;
    describe(entry, path, &item);
    if (link != NULL) {
        status = plain_path(e, link, target);
        item.kind = HPCT_STAGE_ITEM_HARDLINK;
        item.target = target;
        return status == HPCT_OK ? e->output->add(e->output->context, &item) : status;
    }
    switch (archive_entry_filetype(entry)) {
    case AE_IFDIR:
        item.kind = HPCT_STAGE_ITEM_FOLDER;
        return e->output->add(e->output->context, &item);
    case AE_IFLNK:
        item.kind = HPCT_STAGE_ITEM_SYMLINK;
        item.target = archive_entry_symlink(entry);
        if (item.target == NULL || !hpct_stage_item_link_stays(path, item.target))
            return hpct_fail(HPCT_ERR_DATA, "%s: '%s' in it is a link to '%s', out of the folder",
                             e->name, path, item.target == NULL ? "" : item.target);
        return e->output->add(e->output->context, &item);
    case AE_IFREG:
        if (!archive_entry_size_is_set(entry) || archive_entry_size(entry) < 0)
            return hpct_fail(HPCT_ERR_DATA, "%s: the size of '%s' in it is not known", e->name,
                             path);
        item.kind = HPCT_STAGE_ITEM_FILE;
        item.size = (uint64_t) archive_entry_size(entry);
        if (*path == '\0')
            return hpct_fail(HPCT_ERR_DATA, "%s: it holds a file without a name", e->name);
        return pass_file(e, &item);
    default:
        return hpct_fail(HPCT_ERR_DATA, "%s: '%s' in it is neither a file nor a folder nor a link",
                         e->name, path);
    }
}

static hpct_status pass_all(extracting *e, const struct timespec when[2])
{
    struct archive_entry *entry;
    int code = ARCHIVE_OK;
    const hpct_stage_item root = {
        .kind = HPCT_STAGE_ITEM_FOLDER, .path = "", .mode = 0755, .times = {when[0], when[1]}};
    hpct_status status = e->output->add(e->output->context, &root);
    while (status == HPCT_OK) {
        code = archive_read_next_header(e->archive, &entry);
        if (code == ARCHIVE_EOF)
            break;
        if (code != ARCHIVE_OK && code != ARCHIVE_WARN)
            return fail_archive(e);
        if (archive_entry_is_encrypted(entry))
            return hpct_fail(HPCT_ERR_DATA, "%s: it is encrypted", e->name);
        status = pass_item(e, entry);
    }
    return status;
}

/* libarchive stops at the end of a tar (several may be concatenated), or at the end recorded in a
 * zip. The rest is read too, as its checksums may reveal damage. */
static hpct_status check_end(extracting *e)
{
    const void *data = NULL;
    size_t size = 1;
    while (size > 0) {
        HPCT_TRY(hpct_stage_unpack_read(e->unpack, &data, &size));
        if (size > 0)
            count_zeros(e, data, size);
    }
    if ((archive_format(e->archive) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR &&
        e->zeros < TAR_END)
        return hpct_fail(HPCT_ERR_DATA, "%s: it is damaged: its end is missing", e->name);
    return HPCT_OK;
}

static hpct_status begin(extracting *e, int (*zip)(struct archive *))
{
    e->small = malloc(HPCT_STAGE_EXTRACT_SMALL);
    e->archive = archive_read_new();
    if (e->small == NULL || e->archive == NULL)
        return hpct_fail_memory(HPCT_STAGE_EXTRACT_SMALL);
    if (archive_read_support_format_tar(e->archive) != ARCHIVE_OK ||
        archive_read_set_format_option(e->archive, "tar", "read_concatenated_archives", "1") !=
            ARCHIVE_OK ||
        zip(e->archive) != ARCHIVE_OK)
        return fail_archive(e);
    return HPCT_OK;
}

static void finish(extracting *e)
{
    if (e->archive != NULL)
        archive_read_free(e->archive);
    hpct_stage_unpack_close(e->unpack);
    free(e->small);
}

hpct_status hpct_stage_extract(const hpct_stage_bytes_source *from, const char *name,
                               const struct timespec when[2],
                               const hpct_stage_extract_output *output)
{
    extracting e = {.output = output, .name = name};
    hpct_status status = begin(&e, archive_read_support_format_zip_streamable);
    if (status == HPCT_OK)
        status = hpct_stage_unpack_open(&e.unpack, from, name);
    if (status == HPCT_OK && archive_read_open(e.archive, &e, NULL, feed, NULL) != ARCHIVE_OK)
        status = fail_archive(&e);
    if (status == HPCT_OK)
        status = pass_all(&e, when);
    if (status == HPCT_OK)
        status = check_end(&e);
    finish(&e);
    return status;
}

static hpct_status extract_zip(extracting *e, const struct timespec when[2])
{
    hpct_status status = begin(e, archive_read_support_format_zip_seekable);
    if (status == HPCT_OK && (archive_read_set_seek_callback(e->archive, seek_zip) != ARCHIVE_OK ||
                              archive_read_open(e->archive, e, NULL, feed_zip, NULL) != ARCHIVE_OK))
        status = fail_archive(e);
    if (status == HPCT_OK)
        status = pass_all(e, when);
    finish(e);
    return status;
}

hpct_status hpct_stage_extract_file(hpct_stage_walk *walk, const char *name,
                                    const hpct_stage_extract_output *output,
                                    hpct_stage_report *report)
{
    static const char zip[] = {'P', 'K'};
    hpct_stage_item item;
    char magic[2] = "";
    extracting e = {.output = output, .name = name, .walk = walk, .report = report, .fd = -1};
    hpct_stage_walk_item(walk, 0, &item, NULL, NULL);
    e.size = item.size;
    report->read_total = item.size;
    e.piece = malloc(PIECE);
    hpct_status status = e.piece == NULL ? hpct_fail_memory(PIECE) : HPCT_OK;
    if (status == HPCT_OK)
        status = hpct_stage_walk_file(walk, 0, &e.fd);
    if (status == HPCT_OK) {
        posix_fadvise(e.fd, 0, 0, POSIX_FADV_SEQUENTIAL);
        if (e.size >= sizeof magic)
            status = hpct_stage_walk_read(walk, 0, e.fd, magic, sizeof magic, 0);
    }
    const hpct_stage_bytes_source from = {.context = &e, .read = read_file};
    if (status == HPCT_OK && memcmp(magic, zip, sizeof zip) == 0)
        status = extract_zip(&e, item.times);
    else if (status == HPCT_OK)
        status = hpct_stage_extract(&from, name, item.times, output);
    if (status == HPCT_OK)
        status = hpct_stage_walk_unchanged(walk, 0, e.fd);
    hpct_fd_close(e.fd);
    free(e.piece);
    return status;
}
