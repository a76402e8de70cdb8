/* agent/data/augment.h - which augmentation a data set's options ask for, and the part that works
 * on one picture alone: rotation, zoom and translation as one transform, contrast, RandAugment, in
 * this order, after flip and crop (agent/data/resize.h). What is drawn is a function of (seed,
 * pass, sample).
 */
#ifndef HPCT_AGENT_DATA_AUGMENT_H
#define HPCT_AGENT_DATA_AUGMENT_H

#include "agent/data/rand_augment.h"

#include <hpctrain/dataset.h>

/* HPCT_ERR_USAGE for an option out of its range. */
hpct_status hpct_data_augment_check(const hpct_dataset_options *options);

/* Whether training pictures are more than shifted and mirrored, which only the host does. */
bool hpct_data_augment_is_deep(const hpct_dataset_options *options);

/* Whether they are mixed, so that they have two classes each. */
bool hpct_data_augment_mixes(const hpct_dataset_options *options);

/* What is drawn for one picture. */
typedef struct hpct_data_augmentation {
    bool moves;
    hpct_data_affine geometry;
    double contrast; /* 1: as it is */
    int count;
    hpct_data_rand_draw operations[HPCT_DATA_RAND_AUGMENT_MOST];
} hpct_data_augmentation;

void hpct_data_augment_draw(const hpct_dataset_options *options, uint64_t sample_bits, int height,
                            int width, hpct_data_augmentation *out);

/* In place; `room` is for a picture of the same size. */
hpct_status hpct_data_augment_apply(hpct_data_affine_sampler *sampler,
                                    const hpct_data_augmentation *how,
                                    const hpct_data_canvas *canvas, float *room);

#endif
