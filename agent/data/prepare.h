/* agent/data/prepare.h - prepares one sample: decodes, resizes, augments, mixes and scales it, with
 * numbers drawn by (seed, pass, sample). The state of one thread; knows no batches. */
#ifndef HPCT_AGENT_DATA_PREPARE_H
#define HPCT_AGENT_DATA_PREPARE_H

#include "agent/data/dataset.h"
#include "agent/data/resize.h"

typedef struct hpct_data_preparer hpct_data_preparer;
hpct_status hpct_data_preparer_new(hpct_data_preparer **out, const hpct_dataset *dataset);
void hpct_data_preparer_free(hpct_data_preparer *preparer);

typedef struct hpct_data_to_prepare {
    uint32_t index;
    bool training; /* augment, if the data set's options say so */
    uint64_t seed, pass;
} hpct_data_to_prepare;

typedef struct hpct_data_prepared {
    float *pixels; /* the caller's, [elements of the data set] */
    int32_t label;
    int32_t other; /* of a mixed sample, with the share of `label`; else label and 1 */
    float share;
} hpct_data_prepared;

/* Allocates only for a picture larger than all before. HPCT_ERR_DATA naming one that cannot be
 * decoded. */
hpct_status hpct_data_prepare(hpct_data_preparer *preparer, const hpct_data_to_prepare *what,
                              hpct_data_prepared *out);

/* Flip and crop of a sample. */
void hpct_data_prepare_draw(const hpct_dataset_options *options, uint64_t sample_bits,
                            hpct_data_preparation *how);

#endif
