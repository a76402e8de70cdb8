/* agent/data/prepare.h - prepares one sample: decodes, resizes, augments, mixes and scales it, with
 * numbers drawn by (seed, pass, sample). The state of one thread; knows no batches. */
#ifndef HPCT_AGENT_DATA_PREPARE_H
#define HPCT_AGENT_DATA_PREPARE_H

#include "agent/data/dataset.h"
#include "agent/data/resize.h"

typedef struct hpct_preparer hpct_preparer;
hpct_status hpct_preparer_new(hpct_preparer **out, const hpct_dataset *dataset);
void hpct_preparer_free(hpct_preparer *preparer);

typedef struct hpct_to_prepare {
    uint32_t index;
    bool training; /* augment, if the data set's options say so */
    uint64_t seed, pass;
} hpct_to_prepare;

typedef struct hpct_prepared {
    float *pixels; /* the caller's, [elements of the data set] */
    int32_t label;
    int32_t other; /* of a mixed sample, with the share of `label`; else label and 1 */
    float share;
} hpct_prepared;

/* Allocates only for a picture larger than all before. HPCT_ERR_DATA naming one that cannot be
 * decoded. */
hpct_status hpct_prepare(hpct_preparer *preparer, const hpct_to_prepare *what, hpct_prepared *out);

/* Flip and crop of a sample. */
void hpct_prepare_draw(const hpct_dataset_options *options, uint64_t sample_bits,
                       hpct_preparation *how);

#endif
