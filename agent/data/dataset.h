/* agent/data/dataset.h - a split in memory, and the table of formats it can be read from.
 * Offers gathering of a batch; knows nothing of models or ranks. */
#ifndef HPCT_DATA_DATASET_H
#define HPCT_DATA_DATASET_H

#include <hpctrain/dataset.h>
#include <stdbool.h>
#include <stdint.h>

struct hpct_dataset {
    size_t size;      /* samples */
    hpct_shape shape; /* of one sample */
    size_t elements;  /* in one sample */
    uint8_t *pixels;  /* [size][elements] */
    int32_t *labels;  /* [size], each >= 0 */
    int max_label;
    char *path; /* the file that the labels came from, for messages */
};

/* A format: one file per entry of the table in dataset.c. */
typedef struct hpct_format {
    const char *name;
    const char *looks_like; /* for the message that lists what can be read */

    /* Whether PATH, a folder or not, is of this format, by its name or what lies in it. */
    bool (*claims)(const char *path, bool is_folder);

    /* Fills size, shape, elements, pixels, labels and path, each allocated with malloc; what it has
     * set when it fails is freed by the caller. Pictures and labels are of the same number. */
    hpct_status (*read)(hpct_dataset *dataset, const char *path, hpct_split split);
} hpct_format;

extern const hpct_format hpct_format_idx;
extern const hpct_format hpct_format_npz;

/* Sets shape and elements; HPCT_ERR_DATA naming `file` for sizes that no picture has. */
hpct_status hpct_dataset_set_shape(hpct_dataset *dataset, int rank, const uint64_t *sizes,
                                   const char *file);

/* Writes samples indices[0..count) to pixels[count][elements], scaled from 0…255 to 0…1, and their
 * labels to labels[count]. */
void hpct_dataset_gather(const hpct_dataset *dataset, const uint32_t *indices, int count,
                         float *pixels, int32_t *labels);

/* Whether samples of this data set can be the input of a model, axes of size 1 aside, and whether
 * its labels are within 0 … outputs-1; HPCT_ERR_DATA, naming the file, when not. */
hpct_status hpct_dataset_check(const hpct_dataset *dataset, hpct_shape input, int outputs);

#endif
