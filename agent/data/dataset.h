/* agent/data/dataset.h - a split in memory, and the table of formats it can be read from.
 * Offers gathering of a batch; knows nothing of models or ranks. */
#ifndef HPCT_DATA_DATASET_H
#define HPCT_DATA_DATASET_H

#include "agent/data/encoded.h"
#include "agent/data/picture.h"

#include <hpctrain/dataset.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hpct_format hpct_format;

struct hpct_dataset {
    const hpct_format *format;
    hpct_dataset_options options;
    size_t size;            /* samples */
    hpct_shape stored;      /* of one sample in memory; rank 0 where their sizes differ */
    size_t stored_elements; /* in one sample of that shape */
    uint8_t *pixels;        /* [size][stored_elements], or NULL: they are encoded */
    hpct_encoded encoded;
    hpct_shape shape; /* of one sample as a model gets it */
    size_t elements;
    int32_t *labels; /* [size], each >= 0 */
    int min_label, max_label;
    char **classes; /* [num_classes] names, where there are any */
    int num_classes;
    char *path;   /* the file that the labels came from, for messages */
    char *source; /* what the split was read from, for people; NULL: path */
    char *notes;  /* agent/data/notes.h; NULL: none */
    bool lacking; /* set by a format that fails since nothing of the split is there */
};

/* A format: one file per entry of the table in dataset.c. */
struct hpct_format {
    const char *name;
    const char *looks_like; /* for the message that lists what can be read */
    bool has_validation;    /* else it is never asked for HPCT_VALIDATION, but for HPCT_TEST */

    /* Whether PATH, a folder or not, is of this format, by its name or what lies in it. */
    bool (*claims)(const char *path, bool is_folder);

    /* Fills size, stored, stored_elements, pixels (or encoded), labels, path, and classes, source
     * and notes if there are any, each allocated with malloc; what it has set when it fails is
     * freed by the caller. Pictures and labels are of the same number. */
    hpct_status (*read)(hpct_dataset *dataset, const char *path, hpct_split split);
};

extern const hpct_format hpct_format_idx;
extern const hpct_format hpct_format_npz;
extern const hpct_format hpct_format_cifar_binary;
extern const hpct_format hpct_format_cifar_pickle;
extern const hpct_format hpct_format_tar;
extern const hpct_format hpct_format_folder;

/* Sets the stored shape; HPCT_ERR_DATA naming `file` for sizes that no picture has. */
hpct_status hpct_dataset_set_shape(hpct_dataset *dataset, int rank, const uint64_t *sizes,
                                   const char *file);

/* What a format has filled, checked, and the shape that a model gets. */
hpct_status hpct_dataset_finish(hpct_dataset *dataset);

/* Bytes that this data set's pictures may take. */
size_t hpct_dataset_memory(const hpct_dataset *dataset);

/* Whether a batch is a plain gather: nothing to decode, resize or augment. */
bool hpct_dataset_is_plain(const hpct_dataset *dataset, bool training);

/* A plain data set's samples indices[0..count) to pixels[count][elements], scaled, and their labels
 * to labels[count]. */
void hpct_dataset_gather(const hpct_dataset *dataset, const uint32_t *indices, int count,
                         float *pixels, int32_t *labels);

/* Picture `index` as bytes, where it lies or decoded into the room. */
hpct_status hpct_dataset_fetch(const hpct_dataset *dataset, size_t index, hpct_room *room,
                               hpct_picture *out);

/* x * factor + offset, by the data set's scaling. */
void hpct_dataset_scale(const hpct_dataset *dataset, float *factor, float *offset);

/* Whether the classes of both have the same names, where they have names; HPCT_ERR_DATA when not.
 */
hpct_status hpct_dataset_check_classes(const hpct_dataset *dataset, const hpct_dataset *like);

/* Whether both are the same pictures: in memory, or the same files. */
bool hpct_dataset_is_same(const hpct_dataset *a, const hpct_dataset *b);

/* "28x28x1", into `text`, which is returned. */
const char *hpct_shape_text(char *text, size_t size, hpct_shape shape);

/* Whether samples of this data set can be the input of a model, axes of size 1 aside, and whether
 * its labels are within 0 … outputs-1; HPCT_ERR_DATA, naming the file, when not. */
hpct_status hpct_dataset_check(const hpct_dataset *dataset, hpct_shape input, int outputs);

#endif
