/* Writes the content of files, reads it back and hashes it. A sink is a file being written; a lane
 * is one thread's part of it. */
#include <config.h>

#include "spank/stage/tree/writer_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/status.h"
#include "spank/stage/tree/hash.h"
#include "spank/stage/tree/manifest.h"

#define PIECE HPCT_STAGE_LANE_PIECE /* read back while it is still in the CPU cache */

struct hpct_stage_sink {
    hpct_stage_writer *writer;
    int fd;
    char *path;
    mode_t mode;
    struct timespec times[2];
    uint64_t size;
    hpct_stage_lane *lane; /* for hpct_stage_sink_data; allocated on first use */
    uint64_t *hashes;      /* [hpct_stage_hash_count(size)] */
    _Atomic uint64_t blocks_done;
};

struct hpct_stage_lane {
    hpct_stage_sink *sink;
    uint64_t block, at, end; /* bytes of the file */
    bool present;
    hpct_stage_hasher *given, *found; /* hashes of the input and of what was read back */
    char *back;                       /* [PIECE], page-aligned: faster to copy */
};

static hpct_status write_at(const hpct_stage_writer *w, int fd, const char *path, const char *data,
                            size_t size, uint64_t at)
{
    return hpct_fd_write_at(fd, data, size, (off_t) at) ? HPCT_OK
                                                        : hpct_stage_writer_fail_make(w, path);
}

static hpct_status read_at(const hpct_stage_writer *w, int fd, const char *path, char *data,
                           size_t size, uint64_t at)
{
    ssize_t got = hpct_fd_read_at(fd, data, size, (off_t) at);
    if (got < 0)
        return hpct_fail(HPCT_ERR_IO, "%s%s%s: the copy cannot be read back: %s", w->name,
                         *path == '\0' ? "" : "/", path, strerror(errno));
    return (size_t) got == size
               ? HPCT_OK
               : hpct_stage_writer_fail(w, HPCT_ERR_IO, path,
                                        "the copy became shorter while it was written");
}

static hpct_status fail_differs(const hpct_stage_writer *w, const char *path)
{
    return hpct_stage_writer_fail(
        w, HPCT_ERR_IO, path,
        "the copy is not what was written (its hash differs): the disk or the memory "
        "of this node is bad");
}

static hpct_status fail_more(const hpct_stage_sink *sink)
{
    return hpct_stage_writer_fail(sink->writer, HPCT_ERR_DATA, sink->path,
                                  "there is more in it than its size says");
}

static hpct_status set_mode_and_times(const hpct_stage_writer *w, int fd, const char *path,
                                      mode_t mode, const struct timespec times[2])
{
    mode &= 0777;
    if (((mode & w->umask) != 0 && fchmod(fd, mode) != 0) || futimens(fd, times) != 0)
        return hpct_stage_writer_fail_make(w, path);
    return HPCT_OK;
}

hpct_status hpct_stage_writer_whole(hpct_stage_writer *w, const hpct_stage_item *item,
                                    const void *content, uint64_t *hash)
{
    static _Thread_local char back[PIECE];
    int fd = -1;
    size_t size = (size_t) item->size;
    uint64_t given = 0;
    if (item->size > sizeof back) {
        hpct_stage_sink *sink = NULL;
        hpct_status begun = hpct_stage_writer_begin(w, item, &sink);
        if (begun != HPCT_OK)
            return begun;
        begun = hpct_stage_sink_data(sink, content, size);
        if (begun == HPCT_OK)
            return hpct_stage_sink_end(sink, hash);
        hpct_stage_sink_drop(sink);
        return begun;
    }
    HPCT_TRY(hpct_stage_writer_take(w, size));
    HPCT_TRY(hpct_stage_writer_create(w, item, &fd));
    hpct_status status = write_at(w, fd, item->path, content, size, 0);
    if (status == HPCT_OK)
        status = read_at(w, fd, item->path, back, size, 0);
    if (status == HPCT_OK) {
        given = hpct_stage_hash(content, size);
        if (hpct_stage_hash(back, size) != given)
            status = fail_differs(w, item->path);
        if (hash != NULL)
            *hash = given;
    }
    if (status == HPCT_OK)
        status = set_mode_and_times(w, fd, item->path, item->mode, item->times);
    if (close(fd) != 0 && status == HPCT_OK)
        status = hpct_stage_writer_fail_make(w, item->path);
    if (status == HPCT_OK && w->options.manifest != NULL)
        status = hpct_stage_manifest_note(w->options.manifest, item, given);
    return status;
}

/* ---- files in pieces ---- */

hpct_stage_lane *hpct_stage_lane_new(void)
{
    hpct_stage_lane *lane = malloc(sizeof *lane);
    if (lane == NULL)
        return NULL;
    lane->sink = NULL;
    lane->given = hpct_stage_hasher_new();
    lane->found = hpct_stage_hasher_new();
    lane->back = aligned_alloc(4096, PIECE);
    if (lane->given == NULL || lane->found == NULL || lane->back == NULL) {
        hpct_stage_lane_free(lane);
        return NULL;
    }
    return lane;
}

void hpct_stage_lane_free(hpct_stage_lane *lane)
{
    if (lane == NULL)
        return;
    hpct_stage_hasher_free(lane->given);
    hpct_stage_hasher_free(lane->found);
    free(lane->back);
    free(lane);
}

char *hpct_stage_lane_buffer(hpct_stage_lane *lane)
{
    return lane->back;
}

void hpct_stage_lane_begin(hpct_stage_lane *lane, hpct_stage_sink *sink, uint64_t block,
                           bool present)
{
    uint64_t left = sink->size - block * HPCT_STAGE_HASH_BLOCK;
    lane->sink = sink;
    lane->block = block;
    lane->present = present;
    lane->at = block * HPCT_STAGE_HASH_BLOCK;
    lane->end = lane->at + (left < HPCT_STAGE_HASH_BLOCK ? left : HPCT_STAGE_HASH_BLOCK);
    hpct_stage_hasher_reset(lane->given);
    hpct_stage_hasher_reset(lane->found);
}

hpct_status hpct_stage_lane_data(hpct_stage_lane *lane, const void *data, size_t size)
{
    hpct_stage_sink *sink = lane->sink;
    const hpct_stage_writer *w = sink->writer;
    const char *p = data;
    if (size > lane->end - lane->at)
        return fail_more(sink);
    HPCT_TRY(hpct_stage_writer_take(sink->writer, size));
    while (size > 0) {
        size_t part = size < PIECE ? size : PIECE;
        hpct_stage_hasher_add(lane->given, p, part);
        if (!lane->present)
            HPCT_TRY(write_at(w, sink->fd, sink->path, p, part, lane->at));
        HPCT_TRY(read_at(w, sink->fd, sink->path, lane->back, part, lane->at));
        hpct_stage_hasher_add(lane->found, lane->back, part);
        p += part;
        size -= part;
        lane->at += part;
    }
    return HPCT_OK;
}

hpct_status hpct_stage_lane_hole(hpct_stage_lane *lane, uint64_t size)
{
    if (size > lane->end - lane->at)
        return fail_more(lane->sink);
    /* Nothing is written, so nothing is read back. */
    hpct_stage_hasher_add(lane->given, NULL, size);
    hpct_stage_hasher_add(lane->found, NULL, size);
    lane->at += size;
    return HPCT_OK;
}

hpct_status hpct_stage_lane_end(hpct_stage_lane *lane)
{
    hpct_stage_sink *sink = lane->sink;
    uint64_t hash = hpct_stage_hasher_end(lane->found);
    if (lane->at != lane->end)
        return hpct_stage_writer_fail(sink->writer, HPCT_ERR_DATA, sink->path,
                                      "there is less in it than its size says");
    if (hash != hpct_stage_hasher_end(lane->given))
        return fail_differs(sink->writer, sink->path);
    sink->hashes[lane->block] = hash;
    atomic_fetch_add(&sink->blocks_done, 1);
    return HPCT_OK;
}

hpct_status hpct_stage_writer_begin(hpct_stage_writer *w, const hpct_stage_item *item,
                                    hpct_stage_sink **out)
{
    hpct_stage_sink *sink = calloc(1, sizeof *sink);
    hpct_status status = HPCT_OK;
    uint64_t count = hpct_stage_hash_count(item->size);
    if (sink == NULL)
        return hpct_fail_memory(sizeof *sink);
    sink->writer = w;
    sink->fd = -1;
    sink->path = strdup(item->path);
    sink->mode = item->mode;
    sink->times[0] = item->times[0];
    sink->times[1] = item->times[1];
    sink->size = item->size;
    if (item->size > INT64_MAX)
        status = hpct_stage_writer_fail(w, HPCT_ERR_DATA, item->path, "no file can be so large");
    else
        sink->hashes = malloc((size_t) count * sizeof *sink->hashes);
    if (status == HPCT_OK && (sink->path == NULL || sink->hashes == NULL))
        status = hpct_fail_memory((size_t) count * sizeof *sink->hashes);
    if (status == HPCT_OK)
        status = hpct_stage_writer_create(w, item, &sink->fd);
    if (status != HPCT_OK) {
        hpct_stage_sink_drop(sink);
        return status;
    }
    *out = sink;
    return HPCT_OK;
}

void hpct_stage_sink_drop(hpct_stage_sink *sink)
{
    if (sink == NULL)
        return;
    hpct_fd_close(sink->fd);
    hpct_stage_lane_free(sink->lane);
    free(sink->hashes);
    free(sink->path);
    free(sink);
}

int hpct_stage_sink_fd(const hpct_stage_sink *sink)
{
    return sink->fd;
}

/* Splits the data into blocks. */
hpct_status hpct_stage_sink_data(hpct_stage_sink *sink, const void *bytes, uint64_t size)
{
    const char *data = bytes;
    hpct_status status = HPCT_OK;
    if (sink->lane == NULL) {
        sink->lane = hpct_stage_lane_new();
        if (sink->lane == NULL)
            return hpct_fail_memory(sizeof *sink->lane);
        hpct_stage_lane_begin(sink->lane, sink, 0, false);
    }
    if (size > sink->size - sink->lane->at)
        return fail_more(sink);
    while (size > 0 && status == HPCT_OK) {
        hpct_stage_lane *lane = sink->lane;
        if (lane->at == lane->end) {
            status = hpct_stage_lane_end(lane);
            hpct_stage_lane_begin(lane, sink, lane->block + 1, false);
            continue;
        }
        uint64_t left = lane->end - lane->at, part = size < left ? size : left;
        if (data == NULL) {
            status = hpct_stage_lane_hole(lane, part);
        } else {
            status = hpct_stage_lane_data(lane, data, (size_t) part);
            data += part;
        }
        size -= part;
    }
    return status;
}

hpct_status hpct_stage_sink_end(hpct_stage_sink *sink, uint64_t *hash)
{
    hpct_stage_writer *w = sink->writer;
    struct stat info;
    uint64_t count = hpct_stage_hash_count(sink->size), found = 0;
    hpct_status status = HPCT_OK;
    if (sink->lane != NULL || sink->size == 0) {
        status = hpct_stage_sink_data(sink, NULL, 0);
        if (status == HPCT_OK)
            status = hpct_stage_lane_end(sink->lane);
    }
    if (status == HPCT_OK && sink->blocks_done != count)
        status = hpct_stage_writer_fail(w, HPCT_ERR_DATA, sink->path,
                                        "there is less in it than its size says");
    /* the file may end with a hole */
    if (status == HPCT_OK && fstat(sink->fd, &info) != 0)
        status = hpct_stage_writer_fail_make(w, sink->path);
    if (status == HPCT_OK && (uint64_t) info.st_size < sink->size &&
        ftruncate(sink->fd, (off_t) sink->size) != 0)
        status = hpct_stage_writer_fail_make(w, sink->path);
    if (status == HPCT_OK)
        found = hpct_stage_hash_blocks(sink->hashes, count);
    if (status == HPCT_OK)
        status = set_mode_and_times(w, sink->fd, sink->path, sink->mode, sink->times);
    int fd = sink->fd;
    sink->fd = -1;
    if (close(fd) != 0 && status == HPCT_OK)
        status = hpct_stage_writer_fail_make(w, sink->path);
    if (status == HPCT_OK && w->options.manifest != NULL) {
        hpct_stage_item item = {.kind = HPCT_STAGE_ITEM_FILE,
                                .path = sink->path,
                                .size = sink->size,
                                .mode = sink->mode,
                                .times = {sink->times[0], sink->times[1]}};
        status = hpct_stage_manifest_note(w->options.manifest, &item, found);
    }
    if (hash != NULL)
        *hash = found;
    hpct_stage_sink_drop(sink);
    return status;
}
