/* hpctrain/dataset.h - labelled images in memory, and how they are converted to a model's input. */
#ifndef HPCTRAIN_DATASET_H
#define HPCTRAIN_DATASET_H

#include <hpctrain/model.h>
#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hpct_dataset hpct_dataset;
/* Test and validation stand for each other if one of them is missing. */
typedef enum hpct_split { HPCT_TRAIN, HPCT_TEST, HPCT_VALIDATION } hpct_split;

/* Scaling of a byte x. */
typedef enum hpct_scaling {
    HPCT_SCALE_UNIT,      /* x / 255: 0 to 1 */
    HPCT_SCALE_SYMMETRIC, /* x / 127.5 - 1: -1 to 1, as Keras' resnet_v2.preprocess_input does */
    HPCT_SCALE_NONE,      /* 0 to 255 */
} hpct_scaling;

/* Zero means the default named. */
typedef struct hpct_dataset_options {
    int height, width;    /* resize to this: bilinear, half-pixel centres, no antialiasing, as
                             tf.image.resize; default: no resizing, all must have one size */
    int channels;         /* of encoded images: 3 (default; grey is converted to RGB) or 1 */
    hpct_scaling scaling; /* default HPCT_SCALE_UNIT */
    bool flip;            /* training: mirror horizontally with probability 1/2 */
    int crop; /* training: shift by up to this many pixels in each direction (zero-pad, then
                 random crop); default 0 */
    /* Training, with the numbers of Keras' layers of these names, on bytes from 0 to 255 before
     * they are scaled; 0, the default: not. */
    double rotation; /* RandomRotation: by up to this part of a turn in each direction, up to 1 */
    double zoom;     /* RandomZoom: in or out by up to this part, up to 1 */
    double translation; /* RandomTranslation: by up to this part of height and of width, up to 1 */
    double contrast;    /* RandomContrast: times 1 - contrast to 1 + contrast, up to 1 */
    int rand_augment;   /* RandAugment: operations on each image, up to 16, */
    double rand_augment_factor; /* and their strength, 0 to 1 */
    double mixup;               /* MixUp: shares are drawn from Beta(mixup, mixup), up to 100 */
    double cutmix;              /* CutMix: likewise. With both each image is mixed by one of them */
    int threads;     /* that decode, resize and augment; default: number of compute threads */
    bool may_lack;   /* a missing split is not an error: *out becomes NULL */
    bool unlabelled; /* read images without classes: they need not lie in folders of classes,
                        one file is enough, and their names are kept for hpct_predict_classes() */
    bool check;      /* decode images that stay encoded once at opening, too */
    size_t memory;   /* bytes that images may occupy; default: half of the memory limit (cgroup,
                        machine) */
} hpct_dataset_options;

/* Opens one split of the data set at `path`:
 *   - a folder with MNIST's four IDX files (plain or .gz)
 *   - an .npz with x_train, y_train, x_test, y_test
 *   - a folder with CIFAR-10 or CIFAR-100, binary or Python version (pickles are parsed, not
 *     executed)
 *   - a folder with JPEG and PNG images: train/CLASS/x.jpg, test/CLASS/x.jpg, val/CLASS/x.jpg (or
 *     Training/, valid/ and the like), or CLASS/x.jpg; images may be deeper; labels are numbered by
 *     the sorted class names of the training split, empty classes included
 *   - a .tar, plain or compressed, or .zip of such folders; CIFAR's .tar.gz
 *   - with options->unlabelled also one image, and any folder or archive of them
 *   - a WebDataset (KEY.jpg, KEY.cls); a folder of shards named train, test or val
 * MNIST and CIFAR are also found below `path` where torchvision stores them. A data set without
 * splits (CLASS/x.jpg, a single WebDataset) is read as any split.
 *
 * Images of one size are decoded once, here. If sizes differ or decoded images exceed `memory`,
 * they stay encoded, or are read again from files, and are decoded in each step. Different sizes
 * without options->height are an error of hpct_fit().
 *
 * Returns HPCT_ERR_NO_INPUT if something is missing or unreadable; HPCT_ERR_DATA for wrong magic
 * numbers, truncation, damage, or different numbers of images and labels; HPCT_ERR_CONFIG for a
 * format this build cannot read or too little memory. `options` may be NULL. The caller owns *out
 * and frees it with hpct_dataset_free(). */
HPCT_API hpct_status hpct_dataset_open_as(hpct_dataset **out, const char *path, hpct_split split,
                                          const hpct_dataset_options *options);

/* hpct_dataset_open_as() with defaults. */
HPCT_API hpct_status hpct_dataset_open(hpct_dataset **out, const char *path, hpct_split split);

/* `samples` synthetic images of this shape in `classes` classes: a pattern per class plus noise,
 * the same in every call; splits differ in the noise. The caller owns *out and frees it with
 * hpct_dataset_free(). */
HPCT_API hpct_status hpct_dataset_synthetic(hpct_dataset **out, hpct_shape shape, int classes,
                                            size_t samples, hpct_split split,
                                            const hpct_dataset_options *options);

/* Renumbers the classes of `dataset` as in `like`, by name, if both have names. Returns
 * HPCT_ERR_DATA for a class that `like` lacks. */
HPCT_API hpct_status hpct_dataset_number_as(hpct_dataset *dataset, const hpct_dataset *like);

/* hpct_dataset_number_as() by the class names saved with the model's weights, if any. */
HPCT_API hpct_status hpct_dataset_number_for(hpct_dataset *dataset, const hpct_model *model);

/* Reads the labels of a data set, opened with options->unlabelled, from a CSV file (RFC 4180, with
 * a header): first column the name of the picture's file as hpct_predict_classes() writes it, then,
 * as the loss of the compiled model demands (hpct_model_target_kind()):
 *   - CLASS: a column "label" or "class" of class names, numbered in the order of their text, or
 *     of the classes' numbers, if all are below that of outputs; or a column for each output, 1
 *     for the class and 0 for the others
 *   - BINARY, NUMBERS: a column of numbers for each output, named by the header
 * Each picture has one row. A table written by hpc-train predict can be read back: its column
 * "probability" has no meaning here.
 *
 * Returns HPCT_ERR_DATA, naming file, line and column, if anything does not match;
 * HPCT_ERR_NO_INPUT if the file cannot be read; HPCT_ERR_USAGE for data without names of files. */
HPCT_API hpct_status hpct_dataset_read_labels(hpct_dataset *dataset, const char *path,
                                              const hpct_model *model);

/* How the pictures were prepared that saved weights were trained on. */
typedef struct hpct_trained_with {
    bool known; /* false, with zeros: the file does not say, for example another program's */
    hpct_scaling scaling;
    int width, height; /* of hpct_dataset_options; 0: not resized */
    int outputs;       /* of the model */
} hpct_trained_with;

/* Reads it from a file of weights that hpct_fit() saved, or from a folder of checkpoints. Returns
 * HPCT_ERR_NO_INPUT or HPCT_ERR_DATA, naming the file. */
HPCT_API hpct_status hpct_trained_with_read(hpct_trained_with *out, const char *weights);

/* Moves a share of the samples, above 0 and below 1, to a data set of its own for validation, as
 * Keras' validation_split. Of arrays (IDX, .npz, CIFAR, synthetic) it is the last
 * size - floor(size * (1 - share)); of images in folders and archives floor(size * share), drawn
 * from all of them. Which ones depends only on the number of samples and the share: every rank and
 * every run gets the same. Both keep their order.
 *
 * Returns HPCT_ERR_DATA if a part would be empty. The caller owns *out. */
HPCT_API hpct_status hpct_dataset_hold_out(hpct_dataset *dataset, double share, hpct_dataset **out);

HPCT_API void hpct_dataset_free(hpct_dataset *dataset);

HPCT_API size_t hpct_dataset_size(const hpct_dataset *dataset); /* number of samples */
/* Shape of one sample as a model reads it; sizes that vary are 0. */
HPCT_API hpct_shape hpct_dataset_shape(const hpct_dataset *dataset);
HPCT_API int hpct_dataset_max_label(const hpct_dataset *dataset); /* largest label */

/* Number of class names, or largest label + 1, whichever is larger. */
HPCT_API int hpct_dataset_num_classes(const hpct_dataset *dataset);

/* File or folder of the split. */
HPCT_API const char *hpct_dataset_source(const hpct_dataset *dataset);

/* "idx", "npz", "CIFAR binary", … */
HPCT_API const char *hpct_dataset_format(const hpct_dataset *dataset);

/* Prints samples, shape, memory, classes with counts, and warnings. */
HPCT_API hpct_status hpct_dataset_summary(const hpct_dataset *dataset, FILE *stream);

/* Prints to `lines` one line each on training and validation data (samples, classes, source), and
 * to `warnings`: identical splits, skipped images, fewer classes than the model has, classes other
 * than the weights'. All arguments but `model` may be NULL. */
HPCT_API void hpct_dataset_announce(const hpct_model *model, const hpct_dataset *train,
                                    const hpct_dataset *validation, FILE *lines, FILE *warnings);

#ifdef __cplusplus
}
#endif
#endif
