/* Records, big-endian: kind, kind of the item, length of the path, length of the target (each with
 * its '\0'), entry, the fields of the kind, the texts, then (before the content) the hash. */
#include <config.h>

#include "spank/stage/net/pack.h"

#include <limits.h>
#include <string.h>

#include "base/bytes.h"
#include "base/status.h"
#include "spank/stage/net/broadcast_link.h"
#include "spank/stage/tree/extract.h"
#include "spank/stage/tree/hash.h"

#define CRUMB 4096 /* with less space left in a block, data begins in the next one */

enum {
    AT_KIND = 0,
    AT_ITEM = 1,
    AT_PATH = 2,
    AT_TARGET = 4,
    AT_ZERO = 6,
    AT_ENTRY = 8,
    FIXED = 12,
    ITEM_BYTES = 4 + 8 + 2 * 12, /* mode, size, two times */
};

/* The fields of each kind, in this order. */
enum { ITEM = 1, STREAM = 2, SIZE = 4, HASH = 8 };

static const uint8_t fields[] = {
    [HPCT_STAGE_PACK_ITEM] = ITEM,           [HPCT_STAGE_PACK_WHOLE] = ITEM | HASH,
    [HPCT_STAGE_PACK_BEGIN] = ITEM | STREAM, [HPCT_STAGE_PACK_DATA] = STREAM | SIZE,
    [HPCT_STAGE_PACK_HOLE] = STREAM | SIZE,  [HPCT_STAGE_PACK_END] = STREAM | HASH,
    [HPCT_STAGE_PACK_DONE] = SIZE,
};

static bool has(hpct_stage_pack_kind kind, unsigned field)
{
    return (fields[kind] & field) != 0;
}

static bool has_item(hpct_stage_pack_kind kind)
{
    return has(kind, ITEM);
}

/* Size of the fields of a kind besides the item. */
static size_t own_bytes(hpct_stage_pack_kind kind)
{
    return (has(kind, STREAM) ? 4u : 0u) + (has(kind, SIZE | HASH) ? 8u : 0u);
}

/* Bytes that follow the fields. */
static uint64_t content_bytes(const hpct_stage_pack_record *record)
{
    return record->kind == HPCT_STAGE_PACK_WHOLE  ? record->item.size
           : record->kind == HPCT_STAGE_PACK_DATA ? record->size
                                                  : 0;
}

static size_t text_bytes(const char *text)
{
    return text == NULL ? 0 : strlen(text) + 1;
}

size_t hpct_stage_pack_need(const hpct_stage_pack_record *record)
{
    size_t need = FIXED + own_bytes(record->kind);
    if (has_item(record->kind))
        need += ITEM_BYTES + text_bytes(record->item.path) + text_bytes(record->item.target);
    return need;
}

static uint8_t *put_item(uint8_t *out, const hpct_stage_item *item)
{
    hpct_put(out, (uint32_t) item->mode, 4);
    hpct_put(out + 4, item->size, 8);
    out += 12;
    for (int i = 0; i < 2; i++) {
        hpct_put(out, (uint64_t) item->times[i].tv_sec, 8);
        hpct_put(out + 8, (uint32_t) item->times[i].tv_nsec, 4);
        out += 12;
    }
    return out;
}

static uint8_t *put_text(uint8_t *out, const char *text, size_t size)
{
    if (size > 0)
        memcpy(out, text, size);
    return out + size;
}

bool hpct_stage_pack_put(hpct_stage_pack *pack, const hpct_stage_pack_record *record,
                         uint8_t **data)
{
    const hpct_stage_item *item = &record->item;
    size_t path = has_item(record->kind) ? text_bytes(item->path) : 0;
    size_t target = has_item(record->kind) ? text_bytes(item->target) : 0;
    const uint64_t content = content_bytes(record);
    size_t need = hpct_stage_pack_need(record);
    if (path > UINT16_MAX || target > UINT16_MAX || need > pack->room - pack->size ||
        content > pack->room - pack->size - need)
        return false;
    uint8_t *out = pack->data + pack->size;
    memset(out, 0, FIXED);
    out[AT_KIND] = (uint8_t) record->kind;
    out[AT_ITEM] = has_item(record->kind) ? (uint8_t) item->kind : 0;
    hpct_put(out + AT_PATH, path, 2);
    hpct_put(out + AT_TARGET, target, 2);
    hpct_put(out + AT_ENTRY, record->entry, 4);
    out += FIXED;
    if (has_item(record->kind)) {
        out = put_item(out, item);
        out = put_text(out, item->path, path);
        out = put_text(out, item->target, target);
    }
    if (has(record->kind, STREAM))
        hpct_put(out, record->stream, 4);
    if (has(record->kind, SIZE | HASH))
        hpct_put(out + own_bytes(record->kind) - 8,
                 has(record->kind, SIZE) ? record->size : record->hash, 8);
    if (data != NULL)
        *data = out + own_bytes(record->kind);
    pack->size += need + (size_t) content;
    return true;
}

void hpct_stage_pack_set_hash(uint8_t *data, uint64_t hash)
{
    hpct_put(data - 8, hash, 8);
}

static const uint8_t *get_item(const uint8_t *in, hpct_stage_item *item)
{
    item->mode = (mode_t) (uint32_t) hpct_get(in, 4);
    item->size = hpct_get(in + 4, 8);
    in += 12;
    for (int i = 0; i < 2; i++) {
        item->times[i].tv_sec = (time_t) hpct_get(in, 8);
        item->times[i].tv_nsec = (long) (uint32_t) hpct_get(in + 8, 4);
        in += 12;
    }
    return in;
}

/* Whether `in` has exactly one '\0', at its end. */
static bool is_text(const uint8_t *in, size_t size)
{
    return memchr(in, '\0', size) == in + size - 1;
}

static bool item_fits(const hpct_stage_pack_record *record, size_t path, size_t target)
{
    const hpct_stage_item *item = &record->item;
    bool links = item->kind == HPCT_STAGE_ITEM_SYMLINK || item->kind == HPCT_STAGE_ITEM_HARDLINK;
    bool is_file = item->kind == HPCT_STAGE_ITEM_FILE;
    return path > 0 && path <= PATH_MAX && target <= PATH_MAX && links == (target > 0) &&
           is_file == (record->kind != HPCT_STAGE_PACK_ITEM) &&
           (item->mode & ~(mode_t) 07777) == 0 && (is_file || item->size == 0) &&
           item->size <= INT64_MAX && item->times[0].tv_nsec < 1000000000 &&
           item->times[1].tv_nsec < 1000000000;
}

int hpct_stage_pack_next(const uint8_t *block, size_t size, size_t *at,
                         hpct_stage_pack_record *record)
{
    const uint8_t *in = block + *at;
    size_t left = size - *at;
    if (left == 0)
        return 0;
    *record = (hpct_stage_pack_record){0};
    if (left < FIXED || in[AT_KIND] < HPCT_STAGE_PACK_ITEM || in[AT_KIND] > HPCT_STAGE_PACK_DONE ||
        in[AT_ITEM] > HPCT_STAGE_ITEM_HARDLINK || (size_t) hpct_get(in + AT_ZERO, 2) != 0)
        return -1;
    record->kind = (hpct_stage_pack_kind) in[AT_KIND];
    record->item.kind = (hpct_stage_item_kind) in[AT_ITEM];
    record->entry = (uint32_t) hpct_get(in + AT_ENTRY, 4);
    size_t path = (size_t) hpct_get(in + AT_PATH, 2), target = (size_t) hpct_get(in + AT_TARGET, 2);
    size_t need = FIXED + own_bytes(record->kind);
    if (has_item(record->kind))
        need += ITEM_BYTES + path + target;
    else if (path != 0 || target != 0 || in[AT_ITEM] != 0)
        return -1;
    if (need > left)
        return -1;
    in += FIXED;
    if (has_item(record->kind)) {
        in = get_item(in, &record->item);
        if (!item_fits(record, path, target) || !is_text(in, path) ||
            (target > 0 && !is_text(in + path, target)))
            return -1;
        record->item.path = (const char *) in;
        record->item.target = target > 0 ? (const char *) in + path : NULL;
        in += path + target;
    }
    if (has(record->kind, STREAM))
        record->stream = (uint32_t) hpct_get(in, 4);
    if (has(record->kind, SIZE))
        record->size = hpct_get(in + own_bytes(record->kind) - 8, 8);
    if (has(record->kind, HASH))
        record->hash = hpct_get(in + own_bytes(record->kind) - 8, 8);
    if (record->kind == HPCT_STAGE_PACK_WHOLE || record->kind == HPCT_STAGE_PACK_DATA)
        record->data = in + own_bytes(record->kind);
    const uint64_t content = content_bytes(record);
    if (content > left - need)
        return -1;
    *at += need + (size_t) content;
    return 1;
}

/* ---- the packer ---- */

hpct_status hpct_stage_packer_flush(hpct_stage_packer *p)
{
    if (p->pack.size == 0)
        return HPCT_OK;
    hpct_status status = p->push(p->context, &p->pack.data, p->pack.size);
    p->pack.size = 0;
    return status;
}

hpct_status hpct_stage_packer_put(hpct_stage_packer *p, hpct_stage_pack_record *record,
                                  uint8_t **data)
{
    record->entry = p->entry;
    record->stream = p->stream;
    if (hpct_stage_pack_put(&p->pack, record, data))
        return HPCT_OK;
    HPCT_TRY(hpct_stage_packer_flush(p));
    if (!hpct_stage_pack_put(&p->pack, record, data))
        return hpct_fail(HPCT_ERR_INTERNAL, "a record is larger than a block");
    return HPCT_OK;
}

hpct_status hpct_stage_packer_room(hpct_stage_packer *p, size_t *room)
{
    const hpct_stage_pack_record record = {.kind = HPCT_STAGE_PACK_DATA};
    size_t need = hpct_stage_pack_need(&record);
    if (p->pack.room - p->pack.size < need + CRUMB)
        HPCT_TRY(hpct_stage_packer_flush(p));
    *room = p->pack.room - p->pack.size - need;
    return HPCT_OK;
}

hpct_status hpct_stage_packer_done(hpct_stage_packer *p, uint64_t items)
{
    hpct_stage_pack_record record = {.kind = HPCT_STAGE_PACK_DONE, .size = items};
    HPCT_TRY(hpct_stage_packer_put(p, &record, NULL));
    return hpct_stage_packer_flush(p);
}

/* ---- archives ---- */

typedef struct archive {
    hpct_stage_packer *packer;
    hpct_stage_hasher *hasher;
    uint64_t items;
} archive;

static hpct_status pack_item(void *context, const hpct_stage_item *item)
{
    archive *a = context;
    hpct_stage_pack_record record = {.kind = HPCT_STAGE_PACK_ITEM, .item = *item};
    a->items++;
    return hpct_stage_packer_put(a->packer, &record, NULL);
}

static hpct_status pack_whole(void *context, const hpct_stage_item *item, const void *content)
{
    archive *a = context;
    uint8_t *to = NULL;
    hpct_stage_pack_record record = {.kind = HPCT_STAGE_PACK_WHOLE,
                                     .item = *item,
                                     .hash = hpct_stage_hash(content, (size_t) item->size)};
    hpct_status status = hpct_stage_packer_put(a->packer, &record, &to);
    if (status == HPCT_OK && item->size > 0)
        memcpy(to, content, (size_t) item->size);
    a->items++;
    return status;
}

static hpct_status pack_begin(void *context, const hpct_stage_item *item)
{
    archive *a = context;
    hpct_stage_pack_record record = {.kind = HPCT_STAGE_PACK_BEGIN, .item = *item};
    hpct_stage_hasher_reset(a->hasher);
    a->items++;
    return hpct_stage_packer_put(a->packer, &record, NULL);
}

static hpct_status pack_data(void *context, const void *data, uint64_t size)
{
    archive *a = context;
    const uint8_t *from = data;
    hpct_stage_hasher_add(a->hasher, data, size);
    if (data == NULL)
        return hpct_stage_packer_put(
            a->packer, &(hpct_stage_pack_record){.kind = HPCT_STAGE_PACK_HOLE, .size = size}, NULL);
    while (size > 0) {
        hpct_stage_pack_record record = {.kind = HPCT_STAGE_PACK_DATA};
        uint8_t *to = NULL;
        size_t room = 0;
        HPCT_TRY(hpct_stage_packer_room(a->packer, &room));
        record.size = size < room ? size : room;
        HPCT_TRY(hpct_stage_packer_put(a->packer, &record, &to));
        memcpy(to, from, (size_t) record.size);
        from += record.size;
        size -= record.size;
    }
    return HPCT_OK;
}

static hpct_status pack_end(void *context)
{
    archive *a = context;
    hpct_stage_pack_record record = {.kind = HPCT_STAGE_PACK_END,
                                     .hash = hpct_stage_hasher_end(a->hasher)};
    return hpct_stage_packer_put(a->packer, &record, NULL);
}

hpct_status hpct_stage_packer_archive(hpct_stage_packer *packer, hpct_stage_walk *walk,
                                      const char *name, hpct_stage_report *report, uint64_t *items)
{
    archive a = {.packer = packer, .hasher = hpct_stage_hasher_new()};
    const hpct_stage_extract_output output = {.context = &a,
                                              .add = pack_item,
                                              .whole = pack_whole,
                                              .begin = pack_begin,
                                              .data = pack_data,
                                              .end = pack_end};
    if (a.hasher == NULL)
        return hpct_fail_memory(0);
    hpct_status status = hpct_stage_extract_file(walk, name, &output, report);
    hpct_stage_hasher_free(a.hasher);
    *items = a.items;
    return status;
}
