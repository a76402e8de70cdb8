/* agent/data/rand_augment.h - RandAugment (Cubuk et al. 2019) as Keras has it: operations drawn out
 * of eleven, with parameters from 0 up to a strength. Keras draws the operations once for a batch;
 * here each picture has its own. Two draws of one operation have the same parameters. */
#ifndef HPCT_AGENT_DATA_RAND_AUGMENT_H
#define HPCT_AGENT_DATA_RAND_AUGMENT_H

#include "agent/data/affine.h"

#define HPCT_DATA_RAND_AUGMENT_MOST 16 /* operations on a picture */

/* In Keras' order. */
typedef enum hpct_data_rand_operation {
    HPCT_DATA_RAND_SHEAR,
    HPCT_DATA_RAND_TRANSLATION,
    HPCT_DATA_RAND_ROTATION,
    HPCT_DATA_RAND_BRIGHTNESS,
    HPCT_DATA_RAND_COLOR_DEGENERATION,
    HPCT_DATA_RAND_CONTRAST,
    HPCT_DATA_RAND_SHARPNESS,
    HPCT_DATA_RAND_POSTERIZATION,
    HPCT_DATA_RAND_SOLARIZATION,
    HPCT_DATA_RAND_AUTO_CONTRAST,
    HPCT_DATA_RAND_EQUALIZATION,
    HPCT_DATA_RAND_OPERATIONS
} hpct_data_rand_operation;

/* An operation and its parameters: x and y of shear; parts of width and height; degrees; delta;
 * factor; factor; factor; bits; addition and threshold; none; none. */
typedef struct hpct_data_rand_draw {
    hpct_data_rand_operation operation;
    double a, b;
} hpct_data_rand_draw;

/* The parameters that a sample has for this operation. */
hpct_data_rand_draw hpct_data_rand_draw_for(uint64_t sample_bits,
                                            hpct_data_rand_operation operation, double strength);

/* draws[count] of a sample. */
void hpct_data_rand_augment_draw(uint64_t sample_bits, int count, double strength,
                                 hpct_data_rand_draw *draws);

/* Applies one; `room` is for a picture of the same size. */
hpct_status hpct_data_rand_augment_apply(hpct_data_affine_sampler *sampler,
                                         const hpct_data_rand_draw *draw,
                                         const hpct_data_canvas *canvas, float *room);

#endif
