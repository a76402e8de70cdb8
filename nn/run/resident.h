/* nn/run/resident.h - a data set as bytes in device memory. One kernel makes a batch from it:
 * gathers, resizes, scales, augments and rounds; the host sends 12 bytes per sample. Results equal
 * hpct_data_resize (agent/data/resize.h) up to rounding. */
#ifndef HPCT_NN_RUN_RESIDENT_H
#define HPCT_NN_RUN_RESIDENT_H

#include "base/drawn.h"
#include "nn/backend/types.h"

#include <hpctrain/model.h>
#include <stddef.h>

typedef struct hpct_run_resident hpct_run_resident;

/* Copies the images; the caller may change them afterwards. *out is NULL, with HPCT_OK, if the
 * model is on the host, or if they need more than half of the free device memory; so build the
 * model first. With replicas on several devices all or none get a copy. The caller closes it after
 * the last forward that uses it and before freeing the replicas. */
hpct_status hpct_run_resident_open(hpct_run_resident **out, hpct_model *model,
                                   const hpct_backend_pictures *pictures);
void hpct_run_resident_close(hpct_run_resident *resident); /* NULL is allowed */

/* The next forwards of n samples, and their losses, use drawn[0..n) as input and labels until
 * another input is set. `drawn` is from hpct_model_take_host and must not change until results of
 * that forward have been read. */
void hpct_model_set_resident_input(hpct_model *model, const hpct_run_resident *resident,
                                   const hpct_drawn *drawn);

#endif
