/* nn/resident.h - a data set's pictures in the memory of a model's device, as bytes, and batches
 * that are made of them there: gathered, resized, scaled, augmented and rounded in one go, while
 * the host sends 12 bytes a sample. What becomes of a picture is what hpct_resize
 * (agent/data/resize.h) makes of it, up to rounding. */
#ifndef HPCT_NN_RESIDENT_H
#define HPCT_NN_RESIDENT_H

#include "nn/drawn.h"

#include <hpctrain/model.h>
#include <stddef.h>

typedef struct hpct_pictures {
    size_t count;
    int height, width, channels; /* of each */
    const uint8_t *pixels;       /* [count][height][width][channels] */
    const int32_t *labels;       /* [count] */
    int to_height, to_width;     /* as the model reads them */
    float factor, offset;        /* bytes x become x * factor + offset */
} hpct_pictures;

typedef struct hpct_resident hpct_resident;

/* Copies the pictures, which the caller may then change. *out is NULL, with HPCT_OK, where the
 * model computes on the host, or where they would take more than half of what the device has left,
 * or cannot be had; so the model should be built before. Where replicas on other devices take parts
 * of its input, every one of those gets all pictures, or none does. The caller closes it after the
 * last forward that reads it, while the replicas are there.
 */
hpct_status hpct_resident_open(hpct_resident **out, hpct_model *model,
                               const hpct_pictures *pictures);
void hpct_resident_close(hpct_resident *resident); /* allows NULL */

/* The next forwards of n samples, and their losses, take drawn[0..n) of the pictures as their input
 * and labels, until the input is set otherwise. `drawn` is the caller's, from
 * hpct_model_take_host, and stays as it is until the forward's results are read. */
void hpct_model_set_resident_input(hpct_model *model, const hpct_resident *resident,
                                   const hpct_drawn *drawn);

#endif
