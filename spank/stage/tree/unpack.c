/* zlib decompresses gzip and verifies it; libarchive does the rest. */
#include <config.h>

#include "spank/stage/tree/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/status.h"

#define PIECE (256u << 10)

struct hpct_stage_unpack {
    hpct_stage_bytes_source from;
    char *name;
    const unsigned char *first; /* read ahead to detect the format */
    size_t first_size;
    hpct_status failed; /* read error below libarchive */
    /* gzip */
    bool gzip, within; /* within: inside a gzip member */
    z_stream z;
    unsigned char *out; /* [PIECE] */
    /* the other formats */
    struct archive *archive;
};

static hpct_status fail_damaged(const hpct_stage_unpack *u, const char *why)
{
    return hpct_fail(HPCT_ERR_DATA, "%s: it is damaged: %s", u->name,
                     why == NULL ? "it cannot be unpacked" : why);
}

static hpct_status next_piece(hpct_stage_unpack *u, const void **data, size_t *size)
{
    if (u->first_size > 0) {
        *data = u->first;
        *size = u->first_size;
        u->first_size = 0;
        return HPCT_OK;
    }
    return u->from.read(u->from.context, data, size);
}

/* ---- gzip ---- */

static hpct_status open_gzip(hpct_stage_unpack *u)
{
    u->out = malloc(PIECE);
    if (u->out == NULL || inflateInit2(&u->z, 15 + 16) != Z_OK)
        return hpct_fail_memory(PIECE);
    u->gzip = true;
    u->within = true;
    return HPCT_OK;
}

/* *more: there is input. Skips zero padding at the end and begins the next member. */
static hpct_status next_member(hpct_stage_unpack *u, bool *more)
{
    const void *data = NULL;
    size_t size = 0;
    *more = false;
    for (;;) {
        while (u->z.avail_in > 0 && !u->within && *u->z.next_in == 0) {
            u->z.next_in++;
            u->z.avail_in--;
        }
        if (u->z.avail_in > 0) {
            *more = true;
            if (u->within)
                return HPCT_OK;
            if (*u->z.next_in != 0x1f)
                return fail_damaged(u, "there is something behind the compressed data");
            if (inflateReset(&u->z) != Z_OK)
                return fail_damaged(u, u->z.msg);
            u->within = true;
            return HPCT_OK;
        }
        hpct_status status = next_piece(u, &data, &size);
        if (status != HPCT_OK || size == 0)
            return status;
        u->z.next_in = (z_const Bytef *) (uintptr_t) data;
        u->z.avail_in = (uInt) size;
    }
}

static hpct_status read_gzip(hpct_stage_unpack *u, const void **data, size_t *size)
{
    u->z.next_out = u->out;
    u->z.avail_out = PIECE;
    while (u->z.avail_out == PIECE) {
        bool more = false;
        HPCT_TRY(next_member(u, &more));
        if (!more && u->within)
            return fail_damaged(u, "its end is missing");
        if (!more)
            break;
        int code = inflate(&u->z, Z_NO_FLUSH);
        if (code == Z_STREAM_END)
            u->within = false;
        else if (code == Z_MEM_ERROR)
            return hpct_fail_memory(0);
        else if (code != Z_OK && code != Z_BUF_ERROR)
            return fail_damaged(u, u->z.msg);
    }
    *data = u->out;
    *size = PIECE - u->z.avail_out;
    return HPCT_OK;
}

/* ---- the other formats ---- */

static la_ssize_t feed(struct archive *archive, void *context, const void **data)
{
    hpct_stage_unpack *u = context;
    size_t size = 0;
    u->failed = next_piece(u, data, &size);
    if (u->failed != HPCT_OK) {
        archive_set_error(archive, EIO, "%s", hpct_last_error());
        return -1;
    }
    return (la_ssize_t) size;
}

static hpct_status fail_archive(hpct_stage_unpack *u)
{
    return u->failed != HPCT_OK ? u->failed : fail_damaged(u, archive_error_string(u->archive));
}

static hpct_status open_other(hpct_stage_unpack *u, int (*support)(struct archive *))
{
    struct archive_entry *entry;
    u->archive = archive_read_new();
    if (u->archive == NULL)
        return hpct_fail_memory(0);
    /* ARCHIVE_WARN: libarchive would start an external program. */
    if (support(u->archive) != ARCHIVE_OK)
        return hpct_fail(HPCT_ERR_CONFIG,
                         "%s: the libarchive of this node cannot unpack this compression", u->name);
    if (archive_read_support_format_raw(u->archive) != ARCHIVE_OK ||
        archive_read_support_format_empty(u->archive) != ARCHIVE_OK ||
        archive_read_open(u->archive, u, NULL, feed, NULL) != ARCHIVE_OK)
        return fail_archive(u);
    int code = archive_read_next_header(u->archive, &entry);
    return code == ARCHIVE_OK || code == ARCHIVE_EOF ? HPCT_OK : fail_archive(u);
}

static hpct_status read_other(hpct_stage_unpack *u, const void **data, size_t *size)
{
    la_int64_t offset;
    do {
        int code = archive_read_data_block(u->archive, data, size, &offset);
        if (code == ARCHIVE_EOF) {
            *size = 0;
            return HPCT_OK;
        }
        if (code != ARCHIVE_OK)
            return fail_archive(u);
    } while (*size == 0);
    return HPCT_OK;
}

/* ---- all formats ---- */

hpct_status hpct_stage_unpack_open(hpct_stage_unpack **out, const hpct_stage_bytes_source *from,
                                   const char *name)
{
    static const struct {
        unsigned char magic[6];
        size_t size;
        int (*support)(struct archive *);
    } kinds[] = {
        {{0x28, 0xb5, 0x2f, 0xfd}, 4, archive_read_support_filter_zstd},
        {{0xfd, '7', 'z', 'X', 'Z', 0}, 6, archive_read_support_filter_xz},
        {{'B', 'Z', 'h'}, 3, archive_read_support_filter_bzip2},
    };
    const void *first = NULL;
    hpct_stage_unpack *u = calloc(1, sizeof *u);
    hpct_status status = HPCT_OK;
    if (u == NULL)
        return hpct_fail_memory(sizeof *u);
    u->from = *from;
    u->name = strdup(name);
    if (u->name == NULL)
        status = hpct_fail_memory(0);
    if (status == HPCT_OK)
        status = from->read(from->context, &first, &u->first_size);
    u->first = first;
    if (status == HPCT_OK && u->first_size >= 2 && u->first[0] == 0x1f && u->first[1] == 0x8b)
        status = open_gzip(u);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && status == HPCT_OK; i++) {
        if (u->first_size >= kinds[i].size &&
            memcmp(u->first, kinds[i].magic, kinds[i].size) == 0) {
            status = open_other(u, kinds[i].support);
            break;
        }
    }
    if (status != HPCT_OK) {
        hpct_stage_unpack_close(u);
        return status;
    }
    *out = u;
    return HPCT_OK;
}

void hpct_stage_unpack_close(hpct_stage_unpack *u)
{
    if (u == NULL)
        return;
    if (u->gzip)
        inflateEnd(&u->z);
    if (u->archive != NULL)
        archive_read_free(u->archive);
    free(u->out);
    free(u->name);
    free(u);
}

hpct_status hpct_stage_unpack_read(hpct_stage_unpack *u, const void **data, size_t *size)
{
    if (u->gzip)
        return read_gzip(u, data, size);
    if (u->archive != NULL)
        return read_other(u, data, size);
    return next_piece(u, data, size);
}
