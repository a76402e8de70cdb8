/* Records to the writer of their entry. */
#include <config.h>

#include "spank/stage/broadcast_take.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "spank/stage/pack.h"

#define MAX_STREAMS 16

typedef struct taking {
    const hpct_take_target *target;
    hpct_writer *writer;
    uint64_t items;
    bool done;
} taking;

typedef struct stream {
    hpct_sink *sink;
    taking *tree;
    char *path; /* for messages */
} stream;

struct hpct_receiver {
    taking *trees;
    int count;
    stream streams[MAX_STREAMS];
    hpct_report *report;
};

hpct_receiver *hpct_receiver_new(const hpct_take_target *targets, int count, hpct_report *report)
{
    hpct_receiver *t = calloc(1, sizeof *t);
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

void hpct_receiver_free(hpct_receiver *receiver)
{
    if (receiver == NULL)
        return;
    for (int i = 0; i < MAX_STREAMS; i++)
        drop(&receiver->streams[i]);
    for (int i = 0; i < receiver->count; i++)
        hpct_writer_close(receiver->trees[i].writer);
    free(receiver->trees);
    free(receiver);
}

static hpct_status fail_nonsense(void)
{
    return hpct_fail(HPCT_ERR_DATA, "what the reading node sent makes no sense");
}

static hpct_status fail_hash(const taking *tree, const char *path)
{
    return hpct_fail(HPCT_ERR_IO, "%s%s%s: the copy differs from what was read",
                     tree->target->options.name, *path == '\0' ? "" : "/", path);
}

static hpct_status find_tree(hpct_receiver *t, uint32_t entry, taking **out)
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

static hpct_status end_tree(hpct_receiver *t, taking *tree, uint64_t items)
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

static hpct_status take(hpct_receiver *t, const hpct_pack_record *record)
{
    taking *tree = NULL;
    uint64_t hash = 0;
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
    switch (record->kind) {
    case HPCT_PACK_ITEM:
        status = hpct_writer_add(tree->writer, &record->item);
        break;
    case HPCT_PACK_WHOLE:
        status = hpct_writer_whole(tree->writer, &record->item, record->data, &hash);
        if (status == HPCT_OK && hash != record->hash)
            status = fail_hash(tree, record->item.path);
        if (status == HPCT_OK)
            status = hpct_report_tick(t->report, record->item.size);
        break;
    case HPCT_PACK_BEGIN:
        status = begin(tree, s, &record->item);
        break;
    case HPCT_PACK_DATA:
        status = hpct_sink_data(s->sink, record->data, (size_t) record->size);
        if (status == HPCT_OK)
            status = hpct_report_tick(t->report, record->size);
        break;
    case HPCT_PACK_HOLE:
        status = hpct_sink_hole(s->sink, record->size);
        break;
    case HPCT_PACK_END:
        status = end(s, record->hash);
        break;
    case HPCT_PACK_DONE:
        status = end_tree(t, tree, record->size);
        break;
    }
    if (record->kind == HPCT_PACK_ITEM || record->kind == HPCT_PACK_WHOLE ||
        record->kind == HPCT_PACK_BEGIN) {
        tree->items++;
        t->report->files++;
    }
    return status;
}

hpct_status hpct_receiver_block(hpct_receiver *receiver, const uint8_t *data, size_t size)
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

hpct_status hpct_receiver_end(hpct_receiver *receiver)
{
    for (int i = 0; i < receiver->count; i++) {
        if (!receiver->trees[i].done)
            return fail_nonsense();
    }
    return HPCT_OK;
}

hpct_status hpct_take_all(hpct_broadcast *broadcast, const hpct_take_target *targets, int count,
                          hpct_report *report)
{
    hpct_receiver *receiver = hpct_receiver_new(targets, count, report);
    hpct_status status = receiver == NULL ? hpct_fail_memory(0) : HPCT_OK;
    while (status == HPCT_OK) {
        const uint8_t *data = NULL;
        size_t size = 0;
        status = hpct_broadcast_take(broadcast, &data, &size);
        if (status != HPCT_OK || size == 0)
            break;
        status = hpct_receiver_block(receiver, data, size);
        if (status == HPCT_OK)
            hpct_broadcast_taken(broadcast);
    }
    if (status == HPCT_OK)
        status = hpct_receiver_end(receiver);
    hpct_receiver_free(receiver);
    return status;
}
