/* spank/stage/net/pack.h - packs items of trees into blocks, many small files per block, and
 * unpacks them. Each block is self-contained: no record continues in the next. Opens no files.
 * Blocks are untrusted: unpacked records lie within the block, but paths and values are not
 * checked. */
#ifndef HPCT_SPANK_STAGE_NET_PACK_H
#define HPCT_SPANK_STAGE_NET_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spank/stage/tree/item.h"
#include "spank/stage/tree/report.h"
#include "spank/stage/tree/walk.h"

typedef enum hpct_stage_pack_kind {
    HPCT_STAGE_PACK_ITEM = 1, /* folder, symbolic or hard link */
    HPCT_STAGE_PACK_WHOLE,    /* file with its content */
    HPCT_STAGE_PACK_BEGIN,    /* file whose content follows as `stream`, in order */
    HPCT_STAGE_PACK_DATA,
    HPCT_STAGE_PACK_HOLE,
    HPCT_STAGE_PACK_END,
    HPCT_STAGE_PACK_DONE, /* end of an entry */
} hpct_stage_pack_kind;

typedef struct hpct_stage_pack_record {
    hpct_stage_pack_kind kind;
    uint32_t entry;       /* index in the staging list */
    hpct_stage_item item; /* ITEM, WHOLE, BEGIN */
    uint32_t stream;      /* BEGIN, DATA, HOLE, END */
    const uint8_t *data;  /* WHOLE: item.size bytes; DATA: size bytes */
    uint64_t size;        /* DATA, HOLE: bytes; DONE: total number of items */
    uint64_t hash;        /* WHOLE, END: hash of the content (hash.h) */
} hpct_stage_pack_record;

/* A block being filled. */
typedef struct hpct_stage_pack {
    uint8_t *data;
    size_t size, room;
} hpct_stage_pack;

/* Size of a record without the content of WHOLE and DATA. */
size_t hpct_stage_pack_need(const hpct_stage_pack_record *record);

/* Appends a record; false if there is no room. Ignores record->data of WHOLE and DATA; the caller
 * writes the content to *data. */
bool hpct_stage_pack_put(hpct_stage_pack *pack, const hpct_stage_pack_record *record,
                         uint8_t **data);

/* Sets the hash of a WHOLE record after its content at `data` has been read. */
void hpct_stage_pack_set_hash(uint8_t *data, uint64_t hash);

/* Fills one block after the other; used by one thread. */
typedef struct hpct_stage_packer {
    /* Passes on *block with its `size` bytes, and sets *block to one of HPCT_STAGE_BLOCK_BYTES to
     * fill.
     */
    hpct_status (*push)(void *context, uint8_t **block, size_t size);
    void *context;
    hpct_stage_pack
        pack; /* the block, set by the caller: .data, and HPCT_STAGE_BLOCK_BYTES as .room */
    uint32_t entry, stream; /* of all its records */
} hpct_stage_packer;

/* Appends a record; if this block is full, to the next one. *data as in hpct_stage_pack_put. */
hpct_status hpct_stage_packer_put(hpct_stage_packer *packer, hpct_stage_pack_record *record,
                                  uint8_t **data);

/* Passes on what has been packed so far. */
hpct_status hpct_stage_packer_flush(hpct_stage_packer *packer);

/* *room: space for the data of a DATA record; passes on a block in which little is left. */
hpct_status hpct_stage_packer_room(hpct_stage_packer *packer, size_t *room);

/* Reads an archive, the single file of `walk` called `name`, in one thread, and packs its contents
 * in the archive's order; *items counts them. */
hpct_status hpct_stage_packer_archive(hpct_stage_packer *packer, hpct_stage_walk *walk,
                                      const char *name, hpct_stage_report *report, uint64_t *items);

/* Appends the end of an entry of `items` items, and flushes. */
hpct_status hpct_stage_packer_done(hpct_stage_packer *packer, uint64_t items);

/* Reads the record at *at and advances it. 1: a record; 0: the end; -1: invalid. Texts and data
 * point into the block. */
int hpct_stage_pack_next(const uint8_t *block, size_t size, size_t *at,
                         hpct_stage_pack_record *record);

#endif
