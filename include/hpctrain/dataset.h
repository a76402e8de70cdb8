/* hpctrain/dataset.h - labelled pictures, kept in memory as the bytes they were stored as. */
#ifndef HPCTRAIN_DATASET_H
#define HPCTRAIN_DATASET_H

#include <hpctrain/model.h>
#include <hpctrain/status.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hpct_dataset hpct_dataset;
typedef enum hpct_split { HPCT_TRAIN, HPCT_TEST } hpct_split;

/* Opens one split of the data set at PATH: a folder with MNIST's four IDX files (plain or .gz), or
 * an .npz with x_train, y_train, x_test, y_test. Everything is read and checked here:
 * HPCT_ERR_NO_INPUT for what is missing, HPCT_ERR_DATA for wrong magic numbers, truncation, or
 * counts that differ between pictures and labels; the message names the file. The caller owns *out.
 */
HPCT_API hpct_status hpct_dataset_open(hpct_dataset **out, const char *path, hpct_split split);
HPCT_API void hpct_dataset_free(hpct_dataset *dataset);

HPCT_API size_t hpct_dataset_size(const hpct_dataset *dataset);      /* samples */
HPCT_API hpct_shape hpct_dataset_shape(const hpct_dataset *dataset); /* of one sample */
HPCT_API int hpct_dataset_max_label(const hpct_dataset *dataset);    /* largest label present */

#ifdef __cplusplus
}
#endif
#endif
