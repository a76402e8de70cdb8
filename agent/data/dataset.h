/* agent/data/dataset.h - a split in memory, and the table of formats it can be read from. Offers
 * gathering of a batch. Independent of models and ranks. */
#ifndef HPCT_AGENT_DATA_DATASET_H
#define HPCT_AGENT_DATA_DATASET_H

#include "agent/data/entries.h"
#include "agent/data/fingerprint.h"

#include <hpctrain/dataset.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hpct_data_format hpct_data_format;

/* Encoded pictures (agent/data/encoded.h). */
typedef struct hpct_data_encoded {
    hpct_data_entry *entries; /* [size] of the data set; NULL if it has no encoded pictures. Names
                            only, if the data set is unlabelled and its pictures are decoded */
    uint8_t *bytes;           /* entries[].at are offsets into this; NULL: pictures are in files */
    size_t num_bytes;
    size_t odd; /* first picture whose size differs from the first one's; SIZE_MAX: none */
    size_t seen, colour, deep;     /* headers read; of those in colour, with 16 bits */
    size_t suspect, first_suspect; /* perhaps damaged ones decoded by open; the first one */
} hpct_data_encoded;

void hpct_data_encoded_free(hpct_data_encoded *encoded, size_t count);

struct hpct_dataset {
    const hpct_data_format *format;
    hpct_dataset_options options;
    size_t size;            /* number of samples */
    hpct_shape stored;      /* shape of a sample in memory; rank 0 if sizes differ */
    size_t stored_elements; /* elements of that shape */
    uint8_t *pixels;        /* [size][stored_elements]; NULL: they are encoded */
    hpct_data_encoded encoded;
    hpct_shape shape; /* shape of a sample as the model gets it */
    size_t elements;
    int32_t *labels; /* [size], each >= 0 */
    int min_label, max_label;
    float *targets; /* [size][num_targets], instead of the labels, which are 0; or NULL */
    int num_targets;
    hpct_target_kind kind; /* of the targets */
    char **classes;        /* [num_classes] names, if there are any; with targets [num_targets] */
    int num_classes;
    char *path;                 /* the file that the labels came from, for messages */
    char *label_path;           /* the CSV file that they came from; NULL: another way */
    char *source;               /* what the split was read from, as printed; NULL: path */
    char *notes;                /* agent/data/notes.h; NULL: none */
    hpct_data_fingerprint seen; /* of encoded pictures, at opening; else zeros */
    bool lacking;               /* set by a format that fails because the split is missing */
};

/* A format: one file per entry of the table in dataset.c. */
struct hpct_data_format {
    const char *name;
    const char *looks_like; /* for the message that lists supported formats */
    bool has_validation;    /* false: HPCT_VALIDATION is read as HPCT_TEST */
    bool by_class;          /* samples are listed class by class */

    /* Whether PATH, a folder or not, is of this format, by its name or contents. */
    bool (*claims)(const char *path, bool is_folder);

    /* Fills size, stored, stored_elements, pixels (or encoded), labels, path, and classes, source
     * and notes if there are any, each allocated with malloc; on error the caller frees what was
     * set. There are as many labels as pictures. */
    hpct_status (*read)(hpct_dataset *dataset, const char *path, hpct_split split);
};

extern const hpct_data_format hpct_data_format_idx;
extern const hpct_data_format hpct_data_format_npz;
extern const hpct_data_format hpct_data_format_cifar_binary;
extern const hpct_data_format hpct_data_format_cifar_pickle;
extern const hpct_data_format hpct_data_format_tar;
extern const hpct_data_format hpct_data_format_folder;

/* Sets the stored shape; HPCT_ERR_DATA naming `file` for invalid sizes. */
hpct_status hpct_dataset_set_shape(hpct_dataset *dataset, int rank, const uint64_t *sizes,
                                   const char *file);

/* Checks the fields that a format has filled, and sets the shape for the model. */
hpct_status hpct_dataset_finish(hpct_dataset *dataset);

/* Limit in bytes for this data set's pictures. */
size_t hpct_dataset_memory(const hpct_dataset *dataset);

/* Whether a batch needs no decoding, resizing or augmentation. */
bool hpct_dataset_is_plain(const hpct_dataset *dataset, bool training);

/* For a plain data set: copies samples indices[0..count) to pixels[count][elements], scaled, and
 * their labels to labels[count]. */
void hpct_dataset_gather(const hpct_dataset *dataset, const uint32_t *indices, int count,
                         float *pixels, int32_t *labels);

/* The data set's scaling: x * factor + offset. */
void hpct_dataset_scale(const hpct_dataset *dataset, float *factor, float *offset);

/* Checks that both number classes of the same names alike; HPCT_ERR_DATA if not. */
hpct_status hpct_dataset_check_classes(const hpct_dataset *dataset, const hpct_dataset *like);

/* Checks that targets are of the model's loss, and one for each output: HPCT_ERR_DATA, naming the
 * file, if not. Labels always are. */
hpct_status hpct_dataset_check_targets(const hpct_dataset *dataset, const hpct_model *model);

/* Whether both are the same pictures: equal in memory, or the same files. */
bool hpct_dataset_is_same(const hpct_dataset *a, const hpct_dataset *b);

/* Writes "28x28x1" into `text`, and returns it. */
const char *hpct_data_shape_text(char *text, size_t size, hpct_shape shape);

/* Name of a sample's file below the path; NULL for formats without, and of decoded pictures unless
 * the data set is unlabelled. */
const char *hpct_dataset_sample_name(const hpct_dataset *dataset, size_t index);

/* Checks that samples have one size, or are resized to one; HPCT_ERR_DATA, naming two, if not. */
hpct_status hpct_dataset_check_sizes(const hpct_dataset *dataset);

/* Checks that samples fit the model's input, ignoring axes of size 1, and that labels are 0 …
 * outputs-1; HPCT_ERR_DATA, naming the file, if not. */
hpct_status hpct_dataset_check(const hpct_dataset *dataset, hpct_shape input, int outputs);

#endif
