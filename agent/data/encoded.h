/* agent/data/encoded.h - encoded pictures of a data set: decoded once if they fit, else kept
 * encoded in memory, else read from their files when needed. */
#ifndef HPCT_AGENT_DATA_ENCODED_H
#define HPCT_AGENT_DATA_ENCODED_H

#include "agent/data/dataset.h"
#include "agent/data/listing.h"
#include "agent/data/picture.h"

#include <hpctrain/dataset.h>

/* Buffers of one thread that fetches pictures. */
typedef struct hpct_data_room {
    hpct_data_decoder *decoder;
    uint8_t *file;
    size_t file_room;
} hpct_data_room;

void hpct_data_room_free(hpct_data_room *room);

/* Moves the listing's entries, classes and notes to `dataset`, and sets its labels. `bytes`, of
 * num_bytes, is what the entries' `at` points into, and is moved, too; NULL if they are files,
 * which are then read. Decodes all pictures if they have one size and fit the memory; else checks
 * their headers, and sets a stored shape of rank 0 if sizes differ. HPCT_ERR_DATA naming a damaged
 * picture. */
hpct_status hpct_data_encoded_take(hpct_dataset *dataset, hpct_data_listing *listing,
                                   uint8_t *bytes, size_t num_bytes);

/* Picture `index` as it is encoded: valid until the next call with this room. */
hpct_status hpct_dataset_coded(const hpct_dataset *dataset, size_t index, hpct_data_room *room,
                               hpct_data_coded *coded);

/* Returns picture `index` as bytes, in memory or decoded into the room. */
hpct_status hpct_dataset_fetch(const hpct_dataset *dataset, size_t index, hpct_data_room *room,
                               hpct_data_picture *out);

#endif
