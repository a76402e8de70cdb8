/* hpctrain/dataset.h - labelled pictures, kept in memory as the bytes they were stored as, and how
 * they become the numbers that a model reads. */
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
/* Where there are only test pictures, or only validation pictures, they are both. */
typedef enum hpct_split { HPCT_TRAIN, HPCT_TEST, HPCT_VALIDATION } hpct_split;

/* What becomes of a byte x. */
typedef enum hpct_scaling {
    HPCT_SCALE_UNIT,      /* x / 255: 0 to 1 */
    HPCT_SCALE_SYMMETRIC, /* x / 127.5 - 1: -1 to 1, as Keras' resnet_v2.preprocess_input does */
    HPCT_SCALE_NONE,      /* 0 to 255 */
} hpct_scaling;

/* Zero means the default named. */
typedef struct hpct_dataset_options {
    int height,
        width;            /* pictures are resized to this: bilinear, half-pixel centres, no
                             antialiasing, as tf.image.resize; default: all have one size and keep it */
    int channels;         /* of JPEG and PNG pictures: 3 (default; grey ones become RGB) or 1 */
    hpct_scaling scaling; /* default HPCT_SCALE_UNIT */
    bool flip;            /* training: half of the pictures are mirrored, left to right */
    int crop;      /* training: pictures are moved by up to so many pixels each way, what comes
                      in being black (pad on all sides, then crop at random); default 0 */
    int threads;   /* that decode, resize and augment beside the training; default: as many as
                      compute */
    bool may_lack; /* a split of which nothing is there is no failure: *out is NULL then */
    size_t memory; /* bytes that the pictures may take; default: half of what this process may
                      have (of its cgroup, of the machine) */
} hpct_dataset_options;

/* Opens one split of the data set at PATH:
 *   - a folder with MNIST's four IDX files (plain or .gz)
 *   - an .npz with x_train, y_train, x_test, y_test
 *   - a folder with CIFAR-10 or CIFAR-100, binary version or Python version (nothing in a pickle is
 *     ever called)
 *   - a folder with JPEG and PNG pictures, train/CLASS/x.jpg, test/CLASS/x.jpg, val/CLASS/x.jpg
 *     (or Training/, valid/ and the like), or CLASS/x.jpg, which may lie in folders of their class;
 *     labels are numbered by the sorted names of the training split's classes, empty ones, too
 *   - a .tar, plain or compressed, or .zip, of such folders, or a WebDataset (KEY.jpg, KEY.cls), or
 *     a folder with shards whose names say train, test or val; or CIFAR's own .tar.gz
 * The files of MNIST and CIFAR may lie where torchvision puts them, below PATH.
 * What has no splits (CLASS/x.jpg, a single WebDataset) is read whole, as any split.
 *
 * Pictures of one size are decoded here once. Where sizes differ, or the decoded ones do not fit
 * the memory, they stay JPEG or PNG and are decoded for each step; where not even those fit, files
 * are read again for each step. Everything else is read and checked here: HPCT_ERR_NO_INPUT for
 * what is missing or may not be read, HPCT_ERR_DATA for wrong magic numbers, truncation, damage, or
 * counts that differ between pictures and labels; HPCT_ERR_CONFIG for what this build cannot read,
 * or the memory not hold; the message names the file. (Sizes that differ are refused by hpct_fit,
 * without options->height.) `options` may be NULL. The caller owns *out. */
HPCT_API hpct_status hpct_dataset_open_as(hpct_dataset **out, const char *path, hpct_split split,
                                          const hpct_dataset_options *options);

/* The same with the defaults. */
HPCT_API hpct_status hpct_dataset_open(hpct_dataset **out, const char *path, hpct_split split);

/* `samples` pictures of this shape in `classes` classes, which a model can learn: noise over a
 * pattern of the class. Always the same ones; the splits differ in the noise. */
HPCT_API hpct_status hpct_dataset_synthetic(hpct_dataset **out, hpct_shape shape, int classes,
                                            size_t samples, hpct_split split,
                                            const hpct_dataset_options *options);

/* Gives the classes of `dataset` the numbers that they have in `like`, by their names, where both
 * have names. HPCT_ERR_DATA for a class that `like` does not have. */
HPCT_API hpct_status hpct_dataset_number_as(hpct_dataset *dataset, const hpct_dataset *like);

HPCT_API void hpct_dataset_free(hpct_dataset *dataset);

HPCT_API size_t hpct_dataset_size(const hpct_dataset *dataset); /* samples */
/* Of one sample as a model gets it; sizes that differ from sample to sample are 0. */
HPCT_API hpct_shape hpct_dataset_shape(const hpct_dataset *dataset);
HPCT_API int hpct_dataset_max_label(const hpct_dataset *dataset); /* largest label present */

/* Classes that are named, or that labels are present of, whichever is more. */
HPCT_API int hpct_dataset_num_classes(const hpct_dataset *dataset);

/* The file or folder that the split was read from. */
HPCT_API const char *hpct_dataset_source(const hpct_dataset *dataset);

/* "idx", "npz", "CIFAR binary", … */
HPCT_API const char *hpct_dataset_format(const hpct_dataset *dataset);

/* Prints samples, shape, memory taken, each class with its name and number of samples, and what a
 * user should know of them. */
HPCT_API hpct_status hpct_dataset_summary(const hpct_dataset *dataset, FILE *stream);

/* What a run is about to read, before its first step: to `lines`, for each of the two a line with
 * pictures, classes and where they are from; to `warnings`, what may not be what its user thinks:
 * the same pictures for both, pictures left out, fewer classes than the model has. Any may be NULL,
 * but for the model. */
HPCT_API void hpct_dataset_announce(const hpct_model *model, const hpct_dataset *train,
                                    const hpct_dataset *validation, FILE *lines, FILE *warnings);

#ifdef __cplusplus
}
#endif
#endif
