/* agent/checkpoint/tensors.h - the tensors of a checkpoint, joined from the tables of its parts. */
#ifndef HPCT_AGENT_CHECKPOINT_TENSORS_H
#define HPCT_AGENT_CHECKPOINT_TENSORS_H

#include "agent/checkpoint/part.h"
#include "agent/checkpoint/store.h"

#include <hpctrain/status.h>
#include <stddef.h>
#include <stdint.h>

/* Rows of a tensor in a part. */
typedef struct hpct_ckpt_tensors_slice {
    const hpct_ckpt_store_tensor *tensor; /* the part's */
    size_t part;
    uint64_t at; /* offset of the data in the part's file */
} hpct_ckpt_tensors_slice;

typedef struct hpct_ckpt_tensors_whole {
    hpct_ckpt_store_tensor tensor; /* without rows and data */
    size_t first, count;           /* slices, by rows */
} hpct_ckpt_tensors_whole;

typedef struct hpct_ckpt_tensors {
    hpct_ckpt_tensors_slice *slices;
    hpct_ckpt_tensors_whole *wholes; /* by name */
    size_t num_slices, count;
} hpct_ckpt_tensors;

/* HPCT_ERR_DATA if a name occurs twice, or the slices of one disagree, overlap or leave rows out.
 * Points to the parts. The caller frees *out. */
hpct_status hpct_ckpt_tensors_join(hpct_ckpt_tensors *out, const hpct_ckpt_part *parts,
                                   size_t count);
void hpct_ckpt_tensors_free(hpct_ckpt_tensors *tensors); /* a zeroed one is allowed */

/* NULL: there is none. */
const hpct_ckpt_tensors_whole *hpct_ckpt_tensors_find(const hpct_ckpt_tensors *tensors,
                                                      const char *name);

#endif
