/* agent/data/npz.h - reads a split from an .npz (a zip of .npy arrays) that libarchive has open. */
#ifndef HPCT_AGENT_DATA_NPZ_H
#define HPCT_AGENT_DATA_NPZ_H

#include "agent/data/dataset.h"

#include <archive.h>

/* Reads x_train and y_train (or x_test, y_test) into `dataset` as hpct_data_format.read does.
 * `path` is for messages, such as "mnist.npz/x_train: …". */
hpct_status hpct_data_npz_read(hpct_dataset *dataset, struct archive *archive, const char *path,
                               hpct_split split);

/* A reader with the formats of an .npz, which the caller opens; NULL when out of memory. */
struct archive *hpct_data_npz_new_reader(void);

#endif
