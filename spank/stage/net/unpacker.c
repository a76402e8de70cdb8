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
#include "spank/stage/tree/crew.h"
#include "spank/stage/tree/names.h"
#include "spank/stage/tree/pace.h"

#define MAX_STREAMS 16
#define MAX_THREADS 4

typedef struct taking {
    const hpct_unpacker_target *target;
    hpct_writer *writer;
    uint64_t items;
    bool done;
} taking;

typedef struct stream {
    hpct_sink *sink;
    taking *tree;
    char *path; /* for messages */
} stream;

struct hpct_unpacker {
    taking *trees;
    int count;
    stream streams[MAX_STREAMS];
    hpct_report *report;
    hpct_crew *crew;   /* NULL: no thread pool */
    hpct_names *names; /* from archives: submitted to the pool since the last wait */
};

hpct_unpacker *hpct_unpacker_new(const hpct_unpacker_target *targets, int count,
                                 hpct_report *report)
{
    hpct_unpacker *t = calloc(1, sizeof *t);
    if (t == NULL)
        return NULL;
    t->trees = calloc((size_t) count + 1, sizeof *t->trees);
    if (t->trees == NULL) {
        free(t);
        return NULL;
    }
    t->count = count;
    t->report = report;
    for (int i = 0; i < count; i++)
        t->trees[i].target = &targets[i];
    return t;
}

static void drop(stream *s)
{
    if (s->sink != NULL)
        hpct_sink_drop(s->sink);
    free(s->path);
    *s = (stream){0};
}

void hpct_unpacker_free(hpct_unpacker *receiver)
{
    if (receiver == NULL)
        return;
    hpct_crew_free(receiver->crew); /* first: its threads use the rest */
    hpct_names_drop(receiver->names);
    for (int i = 0; i < MAX_STREAMS; i++)
        drop(&receiver->streams[i]);
    for (int i = 0; i < receiver->count; i++)
        hpct_writer_close(receiver->trees[i].writer);
    free(receiver->trees);
    free(receiver);
}

static hpct_status fail_nonsense(void)
{
    return hpct_fail(HPCT_ERR_DATA, "the data sent by the reading node is invalid");
}

static hpct_status fail_hash(const taking *tree, const char *path)
{
    return hpct_fail(HPCT_ERR_IO, "%s%s%s: the copy differs from what was read",
                     tree->target->options.name, *path == '\0' ? "" : "/", path);
}

static hpct_status find_tree(hpct_unpacker *t, uint32_t entry, taking **out)
{
    for (int i = 0; i < t->count; i++) {
        taking *found = &t->trees[i];
        if (found->target->entry != entry || found->done)
            continue;
        *out = found;
        if (found->writer != NULL || found->target->root == NULL)
            return HPCT_OK;
        return hpct_writer_open(&found->writer, found->target->folder, found->target->root,
                                &found->target->options);
    }
    return fail_nonsense();
}

static hpct_status begin(taking *tree, stream *s, const hpct_item *item)
{
    if (s->sink != NULL)
        return fail_nonsense();
    s->path = strdup(item->path);
    if (s->path == NULL)
        return hpct_fail_memory(0);
    s->tree = tree;
    return hpct_writer_begin(tree->writer, item, &s->sink);
}

static hpct_status end(stream *s, uint64_t want)
{
    uint64_t hash = 0;
    hpct_status status = hpct_sink_end(s->sink, &hash);
    s->sink = NULL;
    if (status == HPCT_OK && hash != want)
        status = fail_hash(s->tree, s->path);
    drop(s);
    return status;
}

static hpct_status end_tree(hpct_unpacker *t, taking *tree, uint64_t items)
{
    for (int i = 0; i < MAX_STREAMS; i++) {
        if (t->streams[i].tree == tree && t->streams[i].sink != NULL)
            return fail_nonsense();
    }
    if (items != tree->items)
        return fail_nonsense();
    tree->done = true;
    return hpct_writer_finish(tree->writer);
}

/* Called by any thread. */
static hpct_status take_whole(hpct_unpacker *t, const taking *tree, const hpct_pack_record *record)
{
    uint64_t hash = 0;
    hpct_status status = hpct_writer_whole(tree->writer, &record->item, record->data, &hash);
    if (status == HPCT_OK && hash != record->hash)
        status = fail_hash(tree, record->item.path);
    t->report->files++;
    return status == HPCT_OK ? hpct_report_tick(t->report, record->item.size) : status;
}

/* Before records that need the files submitted earlier. */
static hpct_status wait_for_crew(hpct_unpacker *t)
{
    if (t->crew == NULL)
        return HPCT_OK;
    hpct_names_clear(t->names);
    return hpct_crew_wait(t->crew);
}

/* In an archive the last item of a name wins. */
static bool comes_again(const hpct_unpacker *t, const hpct_pack_record *record)
{
    return record->item.path != NULL && t->crew != NULL &&
           hpct_names_has(t->names, record->item.path);
}

static hpct_status take(hpct_unpacker *t, const hpct_pack_record *record)
{
    taking *tree = NULL;
    hpct_status status = find_tree(t, record->entry, &tree);
    if (status != HPCT_OK)
        return status;
    if (tree->target->root == NULL) {
        tree->done = record->kind == HPCT_PACK_DONE;
        return hpct_report_tick(t->report, 0);
    }
    if (record->stream >= MAX_STREAMS)
        return fail_nonsense();
    stream *s = &t->streams[record->stream];
    bool goes_on = record->kind == HPCT_PACK_DATA || record->kind == HPCT_PACK_HOLE ||
                   record->kind == HPCT_PACK_END;
    if (goes_on && (s->sink == NULL || s->tree != tree))
        return fail_nonsense();
    if (comes_again(t, record) || record->item.kind == HPCT_ITEM_HARDLINK)
        status = wait_for_crew(t);
    if (status != HPCT_OK)
        return status;
    switch (record->kind) {
    case HPCT_PACK_ITEM:
        status = hpct_writer_add(tree->writer, &record->item);
        t->report->files += record->item.kind != HPCT_ITEM_FOLDER;
        break;
    case HPCT_PACK_WHOLE:
        status = take_whole(t, tree, record);
        break;
    case HPCT_PACK_BEGIN:
        status = begin(tree, s, &record->item);
        t->report->files++;
        break;
    case HPCT_PACK_DATA:
        status = hpct_sink_data(s->sink, record->data, (size_t) record->size);
        if (status == HPCT_OK)
            status = hpct_report_tick(t->report, record->size);
        break;
    case HPCT_PACK_HOLE:
        status = hpct_sink_hole(s->sink, record->size);
        if (status == HPCT_OK)
            status = hpct_report_tick(t->report, 0);
        break;
    case HPCT_PACK_END:
        status = end(s, record->hash);
        break;
    case HPCT_PACK_DONE:
        status = wait_for_crew(t);
        if (status == HPCT_OK)
            status = end_tree(t, tree, record->size);
        break;
    }
    if (record->kind == HPCT_PACK_ITEM || record->kind == HPCT_PACK_WHOLE ||
        record->kind == HPCT_PACK_BEGIN)
        tree->items++;
    return status;
}

hpct_status hpct_unpacker_block(hpct_unpacker *receiver, const uint8_t *data, size_t size)
{
    hpct_pack_record record;
    size_t at = 0;
    hpct_status status = HPCT_OK;
    while (status == HPCT_OK) {
        int got = hpct_pack_next(data, size, &at, &record);
        if (got == 0)
            return HPCT_OK;
        status = got < 0 ? fail_nonsense() : take(receiver, &record);
    }
    return status;
}

/* ---- the thread pool ---- */

static taking *tree_of(hpct_unpacker *t, const hpct_pack_record *record)
{
    for (int i = 0; i < t->count; i++) {
        if (t->trees[i].target->entry == record->entry)
            return &t->trees[i];
    }
    return NULL;
}

static bool is_for_crew(hpct_unpacker *t, const taking *tree, const hpct_pack_record *record)
{
    if (tree == NULL || tree->done || tree->target->root == NULL)
        return false;
    if (record->kind != HPCT_PACK_WHOLE &&
        (record->kind != HPCT_PACK_ITEM || record->item.kind == HPCT_ITEM_HARDLINK))
        return false;
    return !tree->target->options.loose || (!hpct_names_has(t->names, record->item.path) &&
                                            hpct_names_add(t->names, record->item.path));
}

/* Whether the block contains small files, and otherwise only folders and links, which may be
 * created before the files: then the pool can process it. */
static bool fits_crew(hpct_unpacker *t, const uint8_t *data, size_t size)
{
    hpct_pack_record record;
    size_t at = 0;
    bool files = false;
    for (int got; (got = hpct_pack_next(data, size, &at, &record)) != 0;) {
        if (got < 0 || !is_for_crew(t, tree_of(t, &record), &record))
            return false;
        files = files || record.kind == HPCT_PACK_WHOLE;
    }
    return files;
}

/* The caller creates folders and links before it submits the block. */
static hpct_status prepare(hpct_unpacker *t, const uint8_t *data, size_t size)
{
    hpct_pack_record record;
    size_t at = 0;
    hpct_status status = HPCT_OK;
    while (status == HPCT_OK && hpct_pack_next(data, size, &at, &record) > 0) {
        taking *tree = NULL;
        status = find_tree(t, record.entry, &tree);
        if (status != HPCT_OK)
            break;
        tree->items++;
        if (record.kind != HPCT_PACK_ITEM)
            continue;
        status = hpct_writer_add(tree->writer, &record.item);
        t->report->files += record.item.kind != HPCT_ITEM_FOLDER;
    }
    return status;
}

static hpct_status work_off(hpct_unpacker *t, const uint8_t *data, size_t size)
{
    hpct_pack_record record;
    size_t at = 0;
    hpct_status status = HPCT_OK;
    while (status == HPCT_OK && hpct_pack_next(data, size, &at, &record) > 0) {
        if (record.kind == HPCT_PACK_WHOLE)
            status = take_whole(t, tree_of(t, &record), &record);
    }
    return status;
}

hpct_status hpct_unpacker_end(hpct_unpacker *receiver)
{
    for (int i = 0; i < receiver->count; i++) {
        if (!receiver->trees[i].done)
            return fail_nonsense();
    }
    return HPCT_OK;
}

typedef struct giving {
    hpct_unpacker *receiver;
    hpct_broadcast *broadcast;
} giving;

static hpct_status work_off_given(void *context, const uint8_t *data, size_t size)
{
    const giving *g = context;
    return work_off(g->receiver, data, size);
}

static void give_back(void *context)
{
    const giving *g = context;
    hpct_broadcast_release(g->broadcast);
}

static hpct_status take_block(hpct_unpacker *t, const uint8_t *data, size_t size)
{
    const bool for_crew = fits_crew(t, data, size);
    HPCT_TRY(for_crew ? prepare(t, data, size) : hpct_unpacker_block(t, data, size));
    if (for_crew)
        return hpct_crew_give(t->crew, data, size);
    hpct_crew_give_done(t->crew);
    return HPCT_OK;
}

hpct_status hpct_unpacker_run(hpct_broadcast *broadcast, const hpct_unpacker_target *targets,
                              int count, hpct_report *report)
{
    giving g = {.receiver = hpct_unpacker_new(targets, count, report), .broadcast = broadcast};
    const hpct_crew_job job = {.work = work_off_given, .back = give_back, .context = &g};
    hpct_status status = HPCT_OK;
    if (g.receiver != NULL)
        g.receiver->crew = hpct_crew_new(&job, hpct_pace_cores(MAX_THREADS), HPCT_BROADCAST_HELD);
    if (g.receiver != NULL)
        g.receiver->names = hpct_names_new();
    if (g.receiver == NULL || g.receiver->crew == NULL || g.receiver->names == NULL)
        status = hpct_fail_memory(0);
    while (status == HPCT_OK) {
        const uint8_t *data = NULL;
        size_t size = 0;
        status = hpct_broadcast_pop(broadcast, &data, &size);
        if (status != HPCT_OK || size == 0)
            break;
        status = take_block(g.receiver, data, size);
    }
    if (status == HPCT_OK)
        status = hpct_unpacker_end(g.receiver);
    hpct_unpacker_free(g.receiver);
    return status;
}
