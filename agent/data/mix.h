/* agent/data/mix.h - MixUp (Zhang et al. 2018) and CutMix (Yun et al. 2019) with the numbers of
 * Keras' layers: a picture is mixed with another one, and so are their classes. The other one is
 * drawn out of the whole data set, so that neither batch size nor ranks change it. */
#ifndef HPCT_AGENT_DATA_MIX_H
#define HPCT_AGENT_DATA_MIX_H

#include "agent/data/canvas.h"

#include <hpctrain/dataset.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hpct_data_mixing {
    uint32_t other; /* sample */
    float share;    /* of the own class */
    bool cut;       /* CutMix: the cells from x0, y0 to below x1, y1 are the other's */
    float x0, x1, y0, y1;
} hpct_data_mixing;

/* Out of `size` samples, for a picture of this size. */
hpct_data_mixing hpct_data_mixing_draw(const hpct_dataset_options *options, uint64_t sample_bits,
                                       size_t size, int height, int width);

/* The rectangle for a share; `across` and `down` in [0, 1) place it. Sets the share to the area
 * that is left. */
void hpct_data_mixing_place(hpct_data_mixing *mixing, double across, double down, int height,
                            int width);

/* canvas = share canvas + (1 - share) other, or the other's rectangle. */
void hpct_data_mixing_apply(const hpct_data_mixing *mixing, const hpct_data_canvas *canvas,
                            const float *other);

#endif
