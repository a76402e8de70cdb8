/* agent/data/encoded.h - the pictures of a data set as they were stored, JPEG or PNG: decoded once
 * where that fits, else kept as they are, else read from their files when they are needed. */
#ifndef HPCT_DATA_ENCODED_H
#define HPCT_DATA_ENCODED_H

#include "agent/data/listing.h"
#include "agent/data/picture.h"

#include <hpctrain/dataset.h>

typedef struct hpct_encoded {
    hpct_entry *entries; /* [size] of the data set; NULL where it has none of this kind */
    uint8_t *bytes;      /* what entries[].at points into; NULL: they are files */
    size_t num_bytes;
    size_t odd; /* the first picture of another size than the first one's; SIZE_MAX: none */
    size_t seen, colour; /* pictures whose header was read; in colour, of those */
} hpct_encoded;

/* What a thread needs to fetch pictures. */
typedef struct hpct_room {
    hpct_decoder *decoder;
    uint8_t *file;
    size_t file_room;
} hpct_room;

void hpct_room_free(hpct_room *room);

/* Takes the listing's entries, classes and notes over into `dataset`, whose labels it sets.
 * `bytes`, of num_bytes, is what the entries' `at` points into and is taken over too; NULL when
 * they are files, which are then read. All are decoded where they have one size and fit the memory;
 * else their headers are checked, and the stored shape has rank 0 where sizes differ. HPCT_ERR_DATA
 * naming the picture that is damaged. */
hpct_status hpct_encoded_take(hpct_dataset *dataset, hpct_listing *listing, uint8_t *bytes,
                              size_t num_bytes);

/* Picture `index`, decoded into the room. */
hpct_status hpct_encoded_fetch(const hpct_dataset *dataset, size_t index, hpct_room *room,
                               hpct_picture *out);

void hpct_encoded_free(hpct_encoded *encoded, size_t count);

#endif
