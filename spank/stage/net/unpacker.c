/* Passes records to the writer of their entry. The caller creates folders, links and large files in
 * order; a thread pool creates the small files in any order. The caller waits for the pool where
 * order matters: before hard links, and before an archive's item whose name the pool may still be
 * writing. */
#include <config.h>

#include "spank/stage/net/unpacker.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "spank/stage/net/pack.h"
#include "spank/stage/tree/hash.h"
#include "spank/stage/tree/thread_pool.h"

#define MAX_STREAMS 16
#define MAX_THREADS 4

/* Set of names by hash: open addressing, at most half full, 0 marks a free slot. A wrong yes has
 * probability 2^-64, and costs a wait. */
typedef struct names {
    uint64_t slots[32768];
    size_t count;
} names;

typedef struct unpacking {
    const hpct_stage_unpacker_target *target;
    hpct_stage_writer *writer;
    uint64_t items;
    bool done;
} unpacking;

typedef struct stream {
    hpct_stage_sink *sink;
    unpacking *tree;
    char *path; /* for messages */
} stream;

struct hpct_stage_unpacker {
    unpacking *trees;
    int count;
    stream streams[MAX_STREAMS];
    hpct_stage_report *report;
    hpct_stage_pool *workers;        /* NULL: no thread pool */
    hpct_stage_broadcast *broadcast; /* whose blocks are released; NULL: none */
    names *names;                    /* from archives: submitted to the pool since the last wait */
};

/* ---- names that the pool may still be writing ---- */

static uint64_t hash_name(const char *name)
{
    uint64_t hash = hpct_stage_hash(name, strlen(name));
    return hash == 0 ? 1 : hash;
}

/* Index of the hash, or of the free slot for it. */
static size_t find_slot(const names *n, uint64_t hash)
{
    const size_t room = sizeof n->slots / sizeof *n->slots;
    size_t at = hash % room;
    while (n->slots[at] != 0 && n->slots[at] != hash)
        at = (at + 1) % room;
    return at;
}

/* False: full; clear it first. */
static bool names_add(names *n, const char *name)
{
    const uint64_t hash = hash_name(name);
    uint64_t *slot = &n->slots[find_slot(n, hash)];
    if (*slot == hash)
        return true;
    if (n->count == sizeof n->slots / sizeof *n->slots / 2)
        return false;
    *slot = hash;
    n->count++;
    return true;
}

static bool names_has(const names *n, const char *name)
{
    return n->count > 0 && n->slots[find_slot(n, hash_name(name))] != 0;
}

/* ---- items ---- */

hpct_stage_unpacker *hpct_stage_unpacker_new(const hpct_stage_unpacker_target *targets, int count,
                                             hpct_stage_report *report)
{
    hpct_stage_unpacker *u = calloc(1, sizeof *u);
    if (u == NULL)
        return NULL;
    u->trees = calloc((size_t) count + 1, sizeof *u->trees);
    if (u->trees == NULL) {
        free(u);
        return NULL;
    }
    u->count = count;
    u->report = report;
    for (int i = 0; i < count; i++)
        u->trees[i].target = &targets[i];
    return u;
}

static void drop(stream *s)
{
    if (s->sink != NULL)
        hpct_stage_sink_drop(s->sink);
    free(s->path);
    *s = (stream){0};
}

void hpct_stage_unpacker_free(hpct_stage_unpacker *unpacker)
{
    if (unpacker == NULL)
        return;
    hpct_stage_pool_free(unpacker->workers); /* first: its threads use the rest */
    free(unpacker->names);
    for (int i = 0; i < MAX_STREAMS; i++)
        drop(&unpacker->streams[i]);
    for (int i = 0; i < unpacker->count; i++)
        hpct_stage_writer_close(unpacker->trees[i].writer);
    free(unpacker->trees);
    free(unpacker);
}

static hpct_status fail_nonsense(void)
{
    return hpct_fail(HPCT_ERR_DATA, "the data sent by the reading node is invalid");
}

static hpct_status fail_hash(const unpacking *tree, const char *path)
{
    return hpct_fail(HPCT_ERR_IO, "%s%s%s: the copy differs from what was read",
                     tree->target->options.name, *path == '\0' ? "" : "/", path);
}

static unpacking *tree_of(hpct_stage_unpacker *u, const hpct_stage_pack_record *record)
{
    for (int i = 0; i < u->count; i++) {
        if (u->trees[i].target->entry == record->entry)
            return &u->trees[i];
    }
    return NULL;
}

static hpct_status find_tree(hpct_stage_unpacker *u, const hpct_stage_pack_record *record,
                             unpacking **out)
{
    unpacking *found = *out = tree_of(u, record);
    if (found == NULL || found->done)
        return fail_nonsense();
    if (found->writer != NULL || found->target->root == NULL)
        return HPCT_OK;
    return hpct_stage_writer_open(&found->writer, found->target->folder, found->target->root,
                                  &found->target->options);
}

static hpct_status begin(unpacking *tree, stream *s, const hpct_stage_item *item)
{
    if (s->sink != NULL)
        return fail_nonsense();
    s->path = strdup(item->path);
    if (s->path == NULL)
        return hpct_fail_memory(0);
    s->tree = tree;
    return hpct_stage_writer_begin(tree->writer, item, &s->sink);
}

static hpct_status end(stream *s, uint64_t want)
{
    uint64_t hash = 0;
    hpct_status status = hpct_stage_sink_end(s->sink, &hash);
    s->sink = NULL;
    if (status == HPCT_OK && hash != want)
        status = fail_hash(s->tree, s->path);
    drop(s);
    return status;
}

static hpct_status end_tree(hpct_stage_unpacker *u, unpacking *tree, uint64_t items)
{
    for (int i = 0; i < MAX_STREAMS; i++) {
        if (u->streams[i].tree == tree && u->streams[i].sink != NULL)
            return fail_nonsense();
    }
    if (items != tree->items)
        return fail_nonsense();
    tree->done = true;
    return hpct_stage_writer_finish(tree->writer);
}

/* Called by any thread. */
static hpct_status write_whole(hpct_stage_unpacker *u, const unpacking *tree,
                               const hpct_stage_pack_record *record)
{
    uint64_t hash = 0;
    hpct_status status = hpct_stage_writer_whole(tree->writer, &record->item, record->data, &hash);
    if (status == HPCT_OK && hash != record->hash)
        status = fail_hash(tree, record->item.path);
    u->report->files++;
    return status == HPCT_OK ? hpct_stage_report_tick(u->report, record->item.size) : status;
}

/* Before records that need the files submitted earlier. */
static hpct_status wait_for_pool(hpct_stage_unpacker *u)
{
    if (u->workers == NULL)
        return HPCT_OK;
    memset(u->names, 0, sizeof *u->names);
    return hpct_stage_pool_wait(u->workers);
}

/* In an archive the last item of a name wins. */
static bool comes_again(const hpct_stage_unpacker *u, const hpct_stage_pack_record *record)
{
    return record->item.path != NULL && u->workers != NULL &&
           names_has(u->names, record->item.path);
}

static hpct_status unpack(hpct_stage_unpacker *u, const hpct_stage_pack_record *record)
{
    unpacking *tree = NULL;
    HPCT_TRY(find_tree(u, record, &tree));
    hpct_status status = HPCT_OK;
    if (tree->target->root == NULL) {
        tree->done = record->kind == HPCT_STAGE_PACK_DONE;
        return hpct_stage_report_tick(u->report, 0);
    }
    if (record->stream >= MAX_STREAMS)
        return fail_nonsense();
    stream *s = &u->streams[record->stream];
    bool goes_on = record->kind == HPCT_STAGE_PACK_DATA || record->kind == HPCT_STAGE_PACK_HOLE ||
                   record->kind == HPCT_STAGE_PACK_END;
    if (goes_on && (s->sink == NULL || s->tree != tree))
        return fail_nonsense();
    if (comes_again(u, record) || record->item.kind == HPCT_STAGE_ITEM_HARDLINK)
        status = wait_for_pool(u);
    if (status != HPCT_OK)
        return status;
    switch (record->kind) {
    case HPCT_STAGE_PACK_ITEM:
        status = hpct_stage_writer_add(tree->writer, &record->item);
        u->report->files += record->item.kind != HPCT_STAGE_ITEM_FOLDER;
        break;
    case HPCT_STAGE_PACK_WHOLE:
        status = write_whole(u, tree, record);
        break;
    case HPCT_STAGE_PACK_BEGIN:
        status = begin(tree, s, &record->item);
        u->report->files++;
        break;
    case HPCT_STAGE_PACK_DATA:
    case HPCT_STAGE_PACK_HOLE: /* has no data */
        HPCT_TRY(hpct_stage_sink_data(s->sink, record->data, record->size));
        status = hpct_stage_report_tick(u->report, record->data != NULL ? record->size : 0);
        break;
    case HPCT_STAGE_PACK_END:
        status = end(s, record->hash);
        break;
    case HPCT_STAGE_PACK_DONE:
        HPCT_TRY(wait_for_pool(u));
        status = end_tree(u, tree, record->size);
        break;
    }
    if (record->kind == HPCT_STAGE_PACK_ITEM || record->kind == HPCT_STAGE_PACK_WHOLE ||
        record->kind == HPCT_STAGE_PACK_BEGIN)
        tree->items++;
    return status;
}

hpct_status hpct_stage_unpacker_block(hpct_stage_unpacker *unpacker, const uint8_t *data,
                                      size_t size)
{
    hpct_stage_pack_record record;
    size_t at = 0;
    hpct_status status = HPCT_OK;
    while (status == HPCT_OK) {
        int got = hpct_stage_pack_next(data, size, &at, &record);
        if (got == 0)
            return HPCT_OK;
        status = got < 0 ? fail_nonsense() : unpack(unpacker, &record);
    }
    return status;
}

/* ---- the thread pool ---- */

static bool is_for_pool(hpct_stage_unpacker *u, const unpacking *tree,
                        const hpct_stage_pack_record *record)
{
    if (tree == NULL || tree->done || tree->target->root == NULL)
        return false;
    if (record->kind != HPCT_STAGE_PACK_WHOLE &&
        (record->kind != HPCT_STAGE_PACK_ITEM || record->item.kind == HPCT_STAGE_ITEM_HARDLINK))
        return false;
    return !tree->target->options.loose ||
           (!names_has(u->names, record->item.path) && names_add(u->names, record->item.path));
}

/* Whether the block contains small files, and otherwise only folders and links, which may be
 * created before the files: then the pool can process it. */
static bool fits_pool(hpct_stage_unpacker *u, const uint8_t *data, size_t size)
{
    hpct_stage_pack_record record;
    size_t at = 0;
    bool files = false;
    for (int got; (got = hpct_stage_pack_next(data, size, &at, &record)) != 0;) {
        if (got < 0 || !is_for_pool(u, tree_of(u, &record), &record))
            return false;
        files = files || record.kind == HPCT_STAGE_PACK_WHOLE;
    }
    return files;
}

/* The caller creates folders and links before it submits the block. */
static hpct_status prepare(hpct_stage_unpacker *u, const uint8_t *data, size_t size)
{
    hpct_stage_pack_record record;
    size_t at = 0;
    hpct_status status = HPCT_OK;
    while (status == HPCT_OK && hpct_stage_pack_next(data, size, &at, &record) > 0) {
        unpacking *tree = NULL;
        status = find_tree(u, &record, &tree);
        if (status != HPCT_OK)
            break;
        tree->items++;
        if (record.kind != HPCT_STAGE_PACK_ITEM)
            continue;
        status = hpct_stage_writer_add(tree->writer, &record.item);
        u->report->files += record.item.kind != HPCT_STAGE_ITEM_FOLDER;
    }
    return status;
}

static hpct_status write_small_files(void *context, const uint8_t *data, size_t size)
{
    hpct_stage_unpacker *u = context;
    hpct_stage_pack_record record;
    size_t at = 0;
    hpct_status status = HPCT_OK;
    while (status == HPCT_OK && hpct_stage_pack_next(data, size, &at, &record) > 0) {
        if (record.kind == HPCT_STAGE_PACK_WHOLE)
            status = write_whole(u, tree_of(u, &record), &record);
    }
    return status;
}

hpct_status hpct_stage_unpacker_end(hpct_stage_unpacker *unpacker)
{
    for (int i = 0; i < unpacker->count; i++) {
        if (!unpacker->trees[i].done)
            return fail_nonsense();
    }
    return HPCT_OK;
}

/* The oldest block is written. */
static void release_block(void *context)
{
    hpct_stage_unpacker *u = context;
    if (u->broadcast != NULL)
        hpct_stage_broadcast_release(u->broadcast);
}

/* With a thread pool; `broadcast` NULL: the blocks are the caller's. */
static hpct_stage_unpacker *open_pool(const hpct_stage_unpacker_target *targets, int count,
                                      hpct_stage_broadcast *broadcast, hpct_stage_report *report)
{
    hpct_stage_unpacker *u = hpct_stage_unpacker_new(targets, count, report);
    const hpct_stage_pool_job job = {
        .work = write_small_files, .back = release_block, .context = u};
    if (u == NULL)
        return NULL;
    u->broadcast = broadcast;
    u->workers =
        hpct_stage_pool_new(&job, hpct_stage_pace_cores(MAX_THREADS), HPCT_STAGE_BROADCAST_HELD);
    u->names = calloc(1, sizeof *u->names);
    if (u->workers != NULL && u->names != NULL)
        return u;
    hpct_stage_unpacker_free(u);
    return NULL;
}

static hpct_status unpack_block(void *context, const uint8_t *data, size_t size)
{
    hpct_stage_unpacker *u = context;
    const bool for_pool = fits_pool(u, data, size);
    HPCT_TRY(for_pool ? prepare(u, data, size) : hpct_stage_unpacker_block(u, data, size));
    if (for_pool)
        return hpct_stage_pool_give(u->workers, data, size);
    hpct_stage_pool_give_done(u->workers);
    return HPCT_OK;
}

hpct_status hpct_stage_unpacker_run(hpct_stage_broadcast *broadcast,
                                    const hpct_stage_unpacker_target *targets, int count,
                                    hpct_stage_report *report)
{
    hpct_stage_unpacker *u = open_pool(targets, count, broadcast, report);
    hpct_status status = u == NULL ? hpct_fail_memory(0) : HPCT_OK;
    while (status == HPCT_OK) {
        const uint8_t *data = NULL;
        size_t size = 0;
        status = hpct_stage_broadcast_pop(broadcast, &data, &size);
        if (status != HPCT_OK || size == 0)
            break;
        status = unpack_block(u, data, size);
    }
    if (status == HPCT_OK)
        status = hpct_stage_unpacker_end(u);
    hpct_stage_unpacker_free(u);
    return status;
}

/* ---- an archive on this node: one thread reads and packs, another unpacks ---- */

#define QUEUED 4 /* blocks between the two */
#define NUM_BLOCKS                                                                                 \
    (1 + QUEUED + HPCT_STAGE_BROADCAST_HELD + 1) /* being packed, queued, being written            \
                                                  */

typedef struct queue {
    hpct_stage_pool *unpacking; /* with one thread, which keeps the order */
    uint8_t *blocks;            /* [NUM_BLOCKS], each of HPCT_STAGE_BLOCK_BYTES, used in turn */
    size_t pushed;
} queue;

static uint8_t *current_block(const queue *q)
{
    return q->blocks + q->pushed % NUM_BLOCKS * HPCT_STAGE_BLOCK_BYTES;
}

static hpct_status push(void *context, uint8_t **block, size_t size)
{
    queue *q = context;
    q->pushed++;
    const uint8_t *full = *block;
    *block = current_block(q);
    return hpct_stage_pool_give(q->unpacking, full, size);
}

static hpct_status pack_archive(queue *q, uint32_t entry, hpct_stage_walk *walk, const char *name,
                                hpct_stage_report *report)
{
    uint64_t items = 0;
    hpct_stage_packer packer = {.push = push,
                                .context = q,
                                .pack = {.data = current_block(q), .room = HPCT_STAGE_BLOCK_BYTES},
                                .entry = entry};
    HPCT_TRY(hpct_stage_packer_archive(&packer, walk, name, report, &items));
    HPCT_TRY(hpct_stage_packer_done(&packer, items));
    return hpct_stage_pool_wait(q->unpacking);
}

hpct_status hpct_stage_unpacker_archive(const hpct_stage_unpacker_target *target,
                                        hpct_stage_walk *walk, const char *name,
                                        hpct_stage_report *report)
{
    hpct_stage_unpacker *u = open_pool(target, 1, NULL, report);
    const hpct_stage_pool_job job = {.work = unpack_block, .context = u};
    queue q = {.unpacking = hpct_stage_pool_new(&job, 1, QUEUED),
               .blocks = malloc((size_t) NUM_BLOCKS * HPCT_STAGE_BLOCK_BYTES)};
    hpct_status status =
        u == NULL || q.unpacking == NULL || q.blocks == NULL ? hpct_fail_memory(0) : HPCT_OK;
    if (status == HPCT_OK)
        status = pack_archive(&q, target->entry, walk, name, report);
    if (status == HPCT_OK)
        status = hpct_stage_unpacker_end(u);
    hpct_stage_pool_free(q.unpacking);
    hpct_stage_unpacker_free(u);
    free(q.blocks);
    return status;
}
