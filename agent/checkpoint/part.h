/* agent/checkpoint/part.h - part files: tensors and slices of tensors as safetensors. The rows of
 * slices are in the file's metadata, "slices": {"NAME": [first row, rows of the whole tensor]}. */
#ifndef HPCT_AGENT_CHECKPOINT_PART_H
#define HPCT_AGENT_CHECKPOINT_PART_H

#include "agent/checkpoint/store.h"
#include "nn/file/safetensors.h"

#include <hpctrain/status.h>
#include <stddef.h>
#include <stdint.h>

_Static_assert(HPCT_CKPT_STORE_MAX_RANK == HPCT_WEIGHTS_ST_MAX_RANK, "shapes are copied");

const char *hpct_ckpt_part_dtype(hpct_ckpt_store_type type); /* "F32" */
unsigned hpct_ckpt_part_type_bytes(hpct_ckpt_store_type type);

/* Bytes of one row along dimension 0: of the whole tensor if it has no dimensions. */
uint64_t hpct_ckpt_part_row_bytes(const hpct_ckpt_store_tensor *tensor);

/* Entries of a file with these tensors, in their order. Data of larger elements come first, so that
 * all are aligned: offsets rise over the tensors with elements of 8 bytes, then those of 4, 2
 * and 1. HPCT_ERR_USAGE for wrong names, shapes, types or rows. The caller frees *out. */
hpct_status hpct_ckpt_part_lay_out(hpct_weights_st_entry **out,
                                   const hpct_ckpt_store_tensor *tensors, size_t count);
void hpct_ckpt_part_free_entries(hpct_weights_st_entry *entries, size_t count);

typedef struct hpct_ckpt_part {
    char *path;
    hpct_weights_st_index index;     /* owns the names */
    hpct_ckpt_store_tensor *tensors; /* as many, in the same order */
} hpct_ckpt_part;

/* Reads the header of a part file of `bytes` bytes. HPCT_ERR_DATA with the path in the message. The
 * caller frees *out. */
hpct_status hpct_ckpt_part_open(hpct_ckpt_part *out, const char *folder, const char *name,
                                uint64_t bytes);
void hpct_ckpt_part_free(hpct_ckpt_part *part); /* a zeroed one is allowed */

/* The tensors' table of a file with this header and so much data after it; untrusted. */
hpct_status hpct_ckpt_part_parse(hpct_ckpt_part *part, const char *header, size_t length,
                                 uint64_t data_bytes);

#endif
