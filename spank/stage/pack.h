/* spank/stage/pack.h - the items of trees packed into blocks of bytes, many small files to a block,
 * and taken out again. A block is whole in itself: no record goes on in the next one. Touches no
 * file and trusts no block: what is taken out lies within it, but may name anything. */
#ifndef HPCT_STAGE_PACK_H
#define HPCT_STAGE_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spank/stage/item.h"

typedef enum hpct_pack_kind {
    HPCT_PACK_ITEM = 1, /* a folder, symbolic or hard link */
    HPCT_PACK_WHOLE,    /* a file with its content */
    HPCT_PACK_BEGIN,    /* a file whose content follows, in the order of these, as `stream` */
    HPCT_PACK_DATA,
    HPCT_PACK_HOLE,
    HPCT_PACK_END,
    HPCT_PACK_DONE, /* all of an entry has been sent */
} hpct_pack_kind;

typedef struct hpct_pack_record {
    hpct_pack_kind kind;
    uint32_t entry;      /* of the list of what is staged */
    hpct_item item;      /* ITEM, WHOLE, BEGIN */
    uint32_t stream;     /* BEGIN, DATA, HOLE, END */
    const uint8_t *data; /* WHOLE: item.size bytes; DATA: size bytes */
    uint64_t size;       /* DATA, HOLE: bytes; DONE: items in all */
    uint64_t hash;       /* WHOLE, END: of the content (hash.h) */
} hpct_pack_record;

/* A block being filled. */
typedef struct hpct_pack {
    uint8_t *data;
    size_t size, room;
} hpct_pack;

/* What a record takes, without the content of WHOLE and DATA. */
size_t hpct_pack_need(const hpct_pack_record *record);

/* Appends a record; false when there is no room. record->data of WHOLE and DATA is not used: *data
 * is where the content is to be put. */
bool hpct_pack_put(hpct_pack *pack, const hpct_pack_record *record, uint8_t **data);

/* Sets the hash of a WHOLE record, known only when its content at `data` has been read. */
void hpct_pack_set_hash(uint8_t *data, uint64_t hash);

/* Takes the record at *at, which moves behind it. 1: there was one; 0: the end; -1: what is there
 * is no record. Texts and data point into the block. */
int hpct_pack_next(const uint8_t *block, size_t size, size_t *at, hpct_pack_record *record);

#endif
