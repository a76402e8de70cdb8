/* Sends for each source: first folders and symbolic links, then files by several readers, each
 * filling its own blocks, then hard links. So in any order of the blocks a folder comes before its
 * contents, and a file before its hard links. */
#include <config.h>

#include "spank/stage/net/reader.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/status.h"
#include "spank/stage/net/pack.h"
#include "spank/stage/tree/extract.h"
#include "spank/stage/tree/hash.h"

#define FIRST_READERS 4 /* files opened and read at a time */
#define MOST_READERS 16 /* the same if reads mostly block */
#define LOOK_EVERY 8    /* every 8th file: did its read block? */
#define LOOKS 4
#define CRUMB 4096 /* with less space left in a block, data begins in the next one */
#define SMALL_FILE (HPCT_BLOCK_BYTES / 2) /* up to here one record per file, else pieces */

/* The block that one thread fills. */
typedef struct packer {
    hpct_broadcast *broadcast;
    hpct_pack pack;
    uint32_t entry, stream;
} packer;

typedef struct reader {
    struct hpct_reader *sender;
    packer packer;
    hpct_hasher *hasher;
    pthread_t thread;
} reader;

struct hpct_reader {
    hpct_broadcast *broadcast;
    hpct_reader_source *sources;
    int count;
    hpct_report *report;
    pthread_t thread;
    /* the source whose files are being read */
    hpct_walk *walk;
    uint32_t entry;
    atomic_size_t next;    /* index of the next item */
    pthread_mutex_t mutex; /* protects the following: */
    reader readers[MOST_READERS];
    int num_readers;
};

/* ---- packing ---- */

static hpct_status open_packer(packer *p, hpct_broadcast *broadcast)
{
    *p = (packer){.broadcast = broadcast, .pack.room = HPCT_BLOCK_BYTES};
    p->pack.data = hpct_broadcast_block();
    return p->pack.data == NULL ? hpct_fail_memory(HPCT_BLOCK_BYTES) : HPCT_OK;
}

static hpct_status flush(packer *p)
{
    if (p->pack.size == 0)
        return HPCT_OK;
    hpct_status status = hpct_broadcast_push(p->broadcast, &p->pack.data, p->pack.size);
    p->pack.size = 0;
    return status;
}

/* Appends a record; if this block is full, to the next one. */
static hpct_status pack(packer *p, hpct_pack_record *record, uint8_t **data)
{
    record->entry = p->entry;
    record->stream = p->stream;
    if (hpct_pack_put(&p->pack, record, data))
        return HPCT_OK;
    HPCT_TRY(flush(p));
    if (!hpct_pack_put(&p->pack, record, data))
        return hpct_fail(HPCT_ERR_INTERNAL, "a record is larger than a block");
    return HPCT_OK;
}

/* Returns the space for the data of a DATA record; sends this block first if there is little
 * left. */
static size_t room_for_data(packer *p, hpct_status *status)
{
    const hpct_pack_record record = {.kind = HPCT_PACK_DATA};
    size_t need = hpct_pack_need(&record);
    if (p->pack.room - p->pack.size < need + CRUMB)
        *status = flush(p);
    return p->pack.room - p->pack.size - need;
}

/* ---- files ---- */

static long count_waits(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : 0;
}

/* *waits: voluntary context switches while reading; may be NULL. */
static hpct_status send_small(reader *r, size_t index, const hpct_item *item, long *waits)
{
    uint8_t *content = NULL;
    hpct_pack_record record = {.kind = HPCT_PACK_WHOLE, .item = *item};
    hpct_status status = pack(&r->packer, &record, &content);
    if (waits != NULL)
        *waits = -count_waits();
    if (status == HPCT_OK)
        status = hpct_walk_whole(r->sender->walk, index, content);
    if (waits != NULL)
        *waits += count_waits();
    if (status == HPCT_OK)
        hpct_pack_set_hash(content, hpct_hash(content, (size_t) item->size));
    return status;
}

static hpct_status send_data(reader *r, size_t index, int fd, uint64_t *at, uint64_t end)
{
    packer *p = &r->packer;
    hpct_pack_record record = {.kind = HPCT_PACK_DATA};
    uint8_t *content = NULL;
    hpct_status status = HPCT_OK;
    size_t room = room_for_data(p, &status);
    record.size = end - *at < room ? end - *at : room;
    if (status == HPCT_OK)
        status = pack(p, &record, &content);
    if (status == HPCT_OK)
        status = hpct_walk_read(r->sender->walk, index, fd, content, (size_t) record.size, *at);
    if (status != HPCT_OK)
        return status;
    hpct_hasher_add(r->hasher, content, record.size);
    *at += record.size;
    return HPCT_OK;
}

static hpct_status send_pieces(reader *r, size_t index, const hpct_item *item)
{
    int fd = -1;
    hpct_pack_record record = {.kind = HPCT_PACK_BEGIN, .item = *item};
    HPCT_TRY(hpct_walk_file(r->sender->walk, index, &fd));
    hpct_status status = pack(&r->packer, &record, NULL);
    hpct_hasher_reset(r->hasher);
    for (uint64_t at = 0, end; at < item->size && status == HPCT_OK;) {
        bool hole = false;
        status = hpct_walk_extent(r->sender->walk, index, fd, at, &end, &hole);
        if (status == HPCT_OK && hole) {
            record = (hpct_pack_record){.kind = HPCT_PACK_HOLE, .size = end - at};
            hpct_hasher_add(r->hasher, NULL, end - at);
            status = pack(&r->packer, &record, NULL);
            at = end;
        }
        while (status == HPCT_OK && !hole && at < end)
            status = send_data(r, index, fd, &at, end);
    }
    if (status == HPCT_OK)
        status = hpct_walk_unchanged(r->sender->walk, index, fd);
    if (status == HPCT_OK) {
        record = (hpct_pack_record){.kind = HPCT_PACK_END, .hash = hpct_hasher_end(r->hasher)};
        status = pack(&r->packer, &record, NULL);
    }
    close(fd);
    return status;
}

static void add_reader(hpct_reader *s);

/* Samples whether reads block and, if most do, adds a reader. */
static hpct_status send_small_looking(reader *r, size_t index, const hpct_item *item, int *looks,
                                      int *waits)
{
    if (index % LOOK_EVERY != 0)
        return send_small(r, index, item, NULL);
    long waited = 0;
    hpct_status status = send_small(r, index, item, &waited);
    *waits += waited > 0;
    if (++*looks == LOOKS) {
        if (*waits * 2 > LOOKS)
            add_reader(r->sender);
        *looks = *waits = 0;
    }
    return status;
}

static void *read_files(void *context)
{
    reader *r = context;
    hpct_reader *s = r->sender;
    const size_t count = hpct_walk_count(s->walk);
    char path[PATH_MAX];
    hpct_item item;
    hpct_status status = HPCT_OK;
    bool elsewhere;
    int looks = 0, waits = 0;
    r->packer.entry = s->entry;
    for (size_t i; status == HPCT_OK && (i = atomic_fetch_add(&s->next, 1)) < count;) {
        hpct_walk_item(s->walk, i, &item, path, NULL);
        if (item.kind != HPCT_ITEM_FILE)
            continue;
        status = item.size <= SMALL_FILE ? send_small_looking(r, i, &item, &looks, &waits)
                                         : send_pieces(r, i, &item);
    }
    if (status == HPCT_OK)
        status = flush(&r->packer);
    /* if the broadcast has failed, its failure is reported instead of this one */
    if (status != HPCT_OK && hpct_broadcast_failure(s->broadcast, &elsewhere) == HPCT_OK)
        hpct_broadcast_fail(s->broadcast, status, hpct_last_error());
    return NULL;
}

/* On error the existing readers continue without it. */
static void add_reader(hpct_reader *s)
{
    pthread_mutex_lock(&s->mutex);
    if (s->num_readers < MOST_READERS) {
        reader *r = &s->readers[s->num_readers];
        *r = (reader){.sender = s, .hasher = hpct_hasher_new()};
        hpct_status status = open_packer(&r->packer, s->broadcast);
        r->packer.stream = (uint32_t) s->num_readers;
        if (status == HPCT_OK && r->hasher != NULL &&
            pthread_create(&r->thread, NULL, read_files, r) == 0) {
            s->num_readers++;
        } else {
            hpct_hasher_free(r->hasher);
            free(r->packer.pack.data);
        }
    }
    pthread_mutex_unlock(&s->mutex);
}

static hpct_status send_files(hpct_reader *s)
{
    bool elsewhere;
    atomic_store(&s->next, 0);
    s->num_readers = 0;
    for (int i = 0; i < FIRST_READERS; i++)
        add_reader(s);
    if (s->num_readers == 0)
        hpct_broadcast_fail(s->broadcast, HPCT_ERR_INTERNAL, "no thread can be started to read");
    /* Readers add readers: join also those added meanwhile. */
    for (int i = 0;; i++) {
        pthread_mutex_lock(&s->mutex);
        bool all = i == s->num_readers;
        pthread_mutex_unlock(&s->mutex);
        if (all)
            break;
        pthread_join(s->readers[i].thread, NULL);
        hpct_hasher_free(s->readers[i].hasher);
        free(s->readers[i].packer.pack.data);
    }
    return hpct_broadcast_failure(s->broadcast, &elsewhere);
}

static hpct_status send_others(hpct_reader *s, packer *p, bool hard_links)
{
    hpct_status status = HPCT_OK;
    char path[PATH_MAX], target[PATH_MAX];
    for (size_t i = 0; i < hpct_walk_count(s->walk) && status == HPCT_OK; i++) {
        hpct_pack_record record = {.kind = HPCT_PACK_ITEM};
        hpct_walk_item(s->walk, i, &record.item, path, target);
        if (record.item.kind != HPCT_ITEM_FILE &&
            (record.item.kind == HPCT_ITEM_HARDLINK) == hard_links)
            status = pack(p, &record, NULL);
    }
    return status;
}

/* ---- archives: one thread reads and packs the contents in the archive's order ---- */

typedef struct unpacked {
    packer *packer;
    hpct_hasher *hasher;
    uint64_t items;
} unpacked;

static hpct_status take_item(void *context, const hpct_item *item)
{
    unpacked *u = context;
    hpct_pack_record record = {.kind = HPCT_PACK_ITEM, .item = *item};
    u->items++;
    return pack(u->packer, &record, NULL);
}

static hpct_status take_whole(void *context, const hpct_item *item, const void *content)
{
    unpacked *u = context;
    uint8_t *to = NULL;
    hpct_pack_record record = {
        .kind = HPCT_PACK_WHOLE, .item = *item, .hash = hpct_hash(content, (size_t) item->size)};
    hpct_status status = pack(u->packer, &record, &to);
    if (status == HPCT_OK && item->size > 0)
        memcpy(to, content, (size_t) item->size);
    u->items++;
    return status;
}

static hpct_status take_begin(void *context, const hpct_item *item)
{
    unpacked *u = context;
    hpct_pack_record record = {.kind = HPCT_PACK_BEGIN, .item = *item};
    hpct_hasher_reset(u->hasher);
    u->items++;
    return pack(u->packer, &record, NULL);
}

static hpct_status take_data(void *context, const void *data, size_t size)
{
    unpacked *u = context;
    const uint8_t *from = data;
    hpct_status status = HPCT_OK;
    hpct_hasher_add(u->hasher, data, size);
    while (size > 0 && status == HPCT_OK) {
        hpct_pack_record record = {.kind = HPCT_PACK_DATA};
        uint8_t *to = NULL;
        size_t room = room_for_data(u->packer, &status);
        record.size = size < room ? size : room;
        if (status == HPCT_OK)
            status = pack(u->packer, &record, &to);
        if (status != HPCT_OK)
            break;
        memcpy(to, from, (size_t) record.size);
        from += record.size;
        size -= (size_t) record.size;
    }
    return status;
}

static hpct_status take_hole(void *context, uint64_t size)
{
    unpacked *u = context;
    hpct_pack_record record = {.kind = HPCT_PACK_HOLE, .size = size};
    hpct_hasher_add(u->hasher, NULL, size);
    return pack(u->packer, &record, NULL);
}

static hpct_status take_end(void *context)
{
    unpacked *u = context;
    hpct_pack_record record = {.kind = HPCT_PACK_END, .hash = hpct_hasher_end(u->hasher)};
    return pack(u->packer, &record, NULL);
}

static hpct_status send_archive(hpct_reader *s, const hpct_reader_source *source, packer *p,
                                uint64_t *items)
{
    unpacked u = {.packer = p, .hasher = hpct_hasher_new()};
    const hpct_taker taker = {.context = &u,
                              .add = take_item,
                              .whole = take_whole,
                              .begin = take_begin,
                              .data = take_data,
                              .hole = take_hole,
                              .end = take_end};
    if (u.hasher == NULL)
        return hpct_fail_memory(0);
    hpct_status status = hpct_extract_file(source->walk, source->name, &taker, s->report);
    hpct_hasher_free(u.hasher);
    *items = u.items;
    return status;
}

/* ---- all sources ---- */

static hpct_status send_tree(hpct_reader *s, packer *p, uint64_t *items)
{
    hpct_status status = send_others(s, p, false);
    if (status == HPCT_OK)
        status = flush(p);
    if (status == HPCT_OK)
        status = send_files(s);
    if (status == HPCT_OK)
        status = send_others(s, p, true);
    *items = hpct_walk_count(s->walk);
    return status;
}

static void *send_all(void *context)
{
    hpct_reader *s = context;
    packer p;
    hpct_status status = open_packer(&p, s->broadcast);
    for (int i = 0; i < s->count && status == HPCT_OK; i++) {
        hpct_pack_record done = {.kind = HPCT_PACK_DONE};
        s->walk = s->sources[i].walk;
        s->entry = p.entry = s->sources[i].entry;
        status = s->sources[i].extract ? send_archive(s, &s->sources[i], &p, &done.size)
                                       : send_tree(s, &p, &done.size);
        if (status == HPCT_OK)
            status = pack(&p, &done, NULL);
        if (status == HPCT_OK)
            status = flush(&p);
    }
    if (status == HPCT_OK)
        status = hpct_broadcast_push_end(s->broadcast);
    if (status != HPCT_OK)
        hpct_broadcast_fail(s->broadcast, status, hpct_last_error());
    free(p.pack.data);
    return NULL;
}

hpct_status hpct_reader_start(hpct_broadcast *broadcast, const hpct_reader_source *sources,
                              int count, hpct_report *report, hpct_reader **out)
{
    hpct_reader *s = calloc(1, sizeof *s);
    if (s == NULL)
        return hpct_fail_memory(sizeof *s);
    pthread_mutex_init(&s->mutex, NULL);
    s->broadcast = broadcast;
    s->report = report;
    s->count = count;
    s->sources = calloc((size_t) count + 1, sizeof *s->sources);
    if (s->sources == NULL) {
        pthread_mutex_destroy(&s->mutex);
        free(s);
        return hpct_fail_memory(0);
    }
    memcpy(s->sources, sources, (size_t) count * sizeof *sources);
    if (pthread_create(&s->thread, NULL, send_all, s) != 0) {
        pthread_mutex_destroy(&s->mutex);
        free(s->sources);
        free(s);
        return hpct_fail(HPCT_ERR_INTERNAL, "no thread can be started");
    }
    *out = s;
    return HPCT_OK;
}

void hpct_reader_end(hpct_reader *sender)
{
    if (sender == NULL)
        return;
    pthread_join(sender->thread, NULL);
    pthread_mutex_destroy(&sender->mutex);
    free(sender->sources);
    free(sender);
}
