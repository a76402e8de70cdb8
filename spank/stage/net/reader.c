/* Sends for each source: first folders and symbolic links, then files by several readers, each
 * filling its own blocks, then hard links. So in any order of the blocks a folder comes before its
 * contents, and a file before its hard links. */
#include <config.h>

#include "spank/stage/net/reader.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "spank/stage/net/pack.h"
#include "spank/stage/tree/hash.h"
#include "spank/stage/tree/thread_pool.h"

#define FIRST_WORKERS 4 /* files opened and read at a time */
#define MOST_WORKERS 16 /* the same if reads mostly block */
#define SAMPLE_EVERY 8  /* every 8th file: did its read block? */
#define SAMPLES 4
#define SMALL_FILE (HPCT_STAGE_BLOCK_BYTES / 2) /* up to here one record per file, else pieces */

typedef struct worker {
    struct hpct_stage_reader *reader;
    hpct_stage_packer packer;
    hpct_stage_hasher *hasher;
    pthread_t thread;
} worker;

struct hpct_stage_reader {
    hpct_stage_broadcast *broadcast;
    hpct_stage_reader_source *sources;
    int count;
    hpct_stage_report *report;
    pthread_t thread;
    /* the source whose files are being read */
    hpct_stage_walk *walk;
    uint32_t entry;
    atomic_size_t next;    /* index of the next item */
    pthread_mutex_t mutex; /* protects the following: */
    worker workers[MOST_WORKERS];
    int num_workers;
};

static hpct_status push(void *context, uint8_t **block, size_t size)
{
    return hpct_stage_broadcast_push(context, block, size);
}

static hpct_status open_packer(hpct_stage_packer *p, hpct_stage_broadcast *broadcast)
{
    *p = (hpct_stage_packer){
        .push = push,
        .context = broadcast,
        .pack = {.data = hpct_stage_broadcast_block(), .room = HPCT_STAGE_BLOCK_BYTES}};
    return p->pack.data == NULL ? hpct_fail_memory(HPCT_STAGE_BLOCK_BYTES) : HPCT_OK;
}

/* ---- files ---- */

/* *waits: voluntary context switches while reading; may be NULL. */
static hpct_status send_small(worker *w, size_t index, const hpct_stage_item *item, long *waits)
{
    uint8_t *content = NULL;
    hpct_stage_pack_record record = {.kind = HPCT_STAGE_PACK_WHOLE, .item = *item};
    hpct_status status = hpct_stage_packer_put(&w->packer, &record, &content);
    if (waits != NULL)
        *waits = -hpct_stage_pace_waits();
    if (status == HPCT_OK)
        status = hpct_stage_walk_whole(w->reader->walk, index, content);
    if (waits != NULL)
        *waits += hpct_stage_pace_waits();
    if (status == HPCT_OK)
        hpct_stage_pack_set_hash(content, hpct_stage_hash(content, (size_t) item->size));
    return status;
}

static hpct_status send_data(worker *w, size_t index, int fd, uint64_t *at, uint64_t end)
{
    hpct_stage_packer *p = &w->packer;
    hpct_stage_pack_record record = {.kind = HPCT_STAGE_PACK_DATA};
    uint8_t *content = NULL;
    size_t room = 0;
    HPCT_TRY(hpct_stage_packer_room(p, &room));
    record.size = end - *at < room ? end - *at : room;
    HPCT_TRY(hpct_stage_packer_put(p, &record, &content));
    HPCT_TRY(hpct_stage_walk_read(w->reader->walk, index, fd, content, (size_t) record.size, *at));
    hpct_stage_hasher_add(w->hasher, content, record.size);
    *at += record.size;
    return HPCT_OK;
}

static hpct_status send_pieces(worker *w, size_t index, const hpct_stage_item *item)
{
    int fd = -1;
    hpct_stage_pack_record record = {.kind = HPCT_STAGE_PACK_BEGIN, .item = *item};
    HPCT_TRY(hpct_stage_walk_file(w->reader->walk, index, &fd));
    hpct_status status = hpct_stage_packer_put(&w->packer, &record, NULL);
    hpct_stage_hasher_reset(w->hasher);
    for (uint64_t at = 0, end; at < item->size && status == HPCT_OK;) {
        bool hole = false;
        status = hpct_stage_walk_extent(w->reader->walk, index, fd, at, &end, &hole);
        if (status == HPCT_OK && hole) {
            record = (hpct_stage_pack_record){.kind = HPCT_STAGE_PACK_HOLE, .size = end - at};
            hpct_stage_hasher_add(w->hasher, NULL, end - at);
            status = hpct_stage_packer_put(&w->packer, &record, NULL);
            at = end;
        }
        while (status == HPCT_OK && !hole && at < end)
            status = send_data(w, index, fd, &at, end);
    }
    if (status == HPCT_OK)
        status = hpct_stage_walk_unchanged(w->reader->walk, index, fd);
    if (status == HPCT_OK) {
        record = (hpct_stage_pack_record){.kind = HPCT_STAGE_PACK_END,
                                          .hash = hpct_stage_hasher_end(w->hasher)};
        status = hpct_stage_packer_put(&w->packer, &record, NULL);
    }
    close(fd);
    return status;
}

static void add_worker(hpct_stage_reader *s);

/* Samples whether reads block and, if most do, adds a reader. */
static hpct_status send_small_sampled(worker *w, size_t index, const hpct_stage_item *item,
                                      int *samples, int *waits)
{
    if (index % SAMPLE_EVERY != 0)
        return send_small(w, index, item, NULL);
    long waited = 0;
    hpct_status status = send_small(w, index, item, &waited);
    *waits += waited > 0;
    if (++*samples == SAMPLES) {
        if (*waits * 2 > SAMPLES)
            add_worker(w->reader);
        *samples = *waits = 0;
    }
    return status;
}

static void *read_files(void *context)
{
    worker *w = context;
    hpct_stage_reader *s = w->reader;
    const size_t count = hpct_stage_walk_count(s->walk);
    char path[PATH_MAX];
    hpct_stage_item item;
    hpct_status status = HPCT_OK;
    bool elsewhere;
    int samples = 0, waits = 0;
    w->packer.entry = s->entry;
    for (size_t i; status == HPCT_OK && (i = atomic_fetch_add(&s->next, 1)) < count;) {
        hpct_stage_walk_item(s->walk, i, &item, path, NULL);
        if (item.kind != HPCT_STAGE_ITEM_FILE)
            continue;
        status = item.size <= SMALL_FILE ? send_small_sampled(w, i, &item, &samples, &waits)
                                         : send_pieces(w, i, &item);
    }
    if (status == HPCT_OK)
        status = hpct_stage_packer_flush(&w->packer);
    /* if the broadcast has failed, its failure is reported instead of this one */
    if (status != HPCT_OK && hpct_stage_broadcast_failure(s->broadcast, &elsewhere) == HPCT_OK)
        hpct_stage_broadcast_fail(s->broadcast, status, hpct_last_error());
    return NULL;
}

/* On error the existing readers continue without it. */
static void add_worker(hpct_stage_reader *s)
{
    pthread_mutex_lock(&s->mutex);
    if (s->num_workers < MOST_WORKERS) {
        worker *w = &s->workers[s->num_workers];
        *w = (worker){.reader = s, .hasher = hpct_stage_hasher_new()};
        hpct_status status = open_packer(&w->packer, s->broadcast);
        w->packer.stream = (uint32_t) s->num_workers;
        if (status == HPCT_OK && w->hasher != NULL &&
            pthread_create(&w->thread, NULL, read_files, w) == 0) {
            s->num_workers++;
        } else {
            hpct_stage_hasher_free(w->hasher);
            free(w->packer.pack.data);
        }
    }
    pthread_mutex_unlock(&s->mutex);
}

static hpct_status send_files(hpct_stage_reader *s)
{
    bool elsewhere;
    atomic_store(&s->next, 0);
    s->num_workers = 0;
    for (int i = 0; i < FIRST_WORKERS; i++)
        add_worker(s);
    if (s->num_workers == 0)
        hpct_stage_broadcast_fail(s->broadcast, HPCT_ERR_INTERNAL,
                                  "no thread can be started to read");
    /* Readers add readers: join also those added meanwhile. */
    for (int i = 0;; i++) {
        pthread_mutex_lock(&s->mutex);
        bool all = i == s->num_workers;
        pthread_mutex_unlock(&s->mutex);
        if (all)
            break;
        pthread_join(s->workers[i].thread, NULL);
        hpct_stage_hasher_free(s->workers[i].hasher);
        free(s->workers[i].packer.pack.data);
    }
    return hpct_stage_broadcast_failure(s->broadcast, &elsewhere);
}

static hpct_status send_others(hpct_stage_reader *s, hpct_stage_packer *p, bool hard_links)
{
    hpct_status status = HPCT_OK;
    char path[PATH_MAX], target[PATH_MAX];
    for (size_t i = 0; i < hpct_stage_walk_count(s->walk) && status == HPCT_OK; i++) {
        hpct_stage_pack_record record = {.kind = HPCT_STAGE_PACK_ITEM};
        hpct_stage_walk_item(s->walk, i, &record.item, path, target);
        if (record.item.kind != HPCT_STAGE_ITEM_FILE &&
            (record.item.kind == HPCT_STAGE_ITEM_HARDLINK) == hard_links)
            status = hpct_stage_packer_put(p, &record, NULL);
    }
    return status;
}

/* ---- all sources ---- */

static hpct_status send_tree(hpct_stage_reader *s, hpct_stage_packer *p, uint64_t *items)
{
    *items = hpct_stage_walk_count(s->walk);
    HPCT_TRY(send_others(s, p, false));
    HPCT_TRY(hpct_stage_packer_flush(p));
    HPCT_TRY(send_files(s));
    return send_others(s, p, true);
}

static void *send_all(void *context)
{
    hpct_stage_reader *s = context;
    hpct_stage_packer p;
    hpct_status status = open_packer(&p, s->broadcast);
    for (int i = 0; i < s->count && status == HPCT_OK; i++) {
        const hpct_stage_reader_source *source = &s->sources[i];
        uint64_t items = 0;
        s->walk = source->walk;
        s->entry = p.entry = source->entry;
        status = source->extract
                     ? hpct_stage_packer_archive(&p, source->walk, source->name, s->report, &items)
                     : send_tree(s, &p, &items);
        if (status == HPCT_OK)
            status = hpct_stage_packer_done(&p, items);
    }
    if (status == HPCT_OK)
        status = hpct_stage_broadcast_push_end(s->broadcast);
    if (status != HPCT_OK)
        hpct_stage_broadcast_fail(s->broadcast, status, hpct_last_error());
    free(p.pack.data);
    return NULL;
}

hpct_status hpct_stage_reader_start(hpct_stage_broadcast *broadcast,
                                    const hpct_stage_reader_source *sources, int count,
                                    hpct_stage_report *report, hpct_stage_reader **out)
{
    hpct_stage_reader *s = calloc(1, sizeof *s);
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

void hpct_stage_reader_end(hpct_stage_reader *reader)
{
    if (reader == NULL)
        return;
    pthread_join(reader->thread, NULL);
    pthread_mutex_destroy(&reader->mutex);
    free(reader->sources);
    free(reader);
}
