/* agent/data/fingerprint.h - whether a data set is the same on all ranks. */
#ifndef HPCT_AGENT_DATA_FINGERPRINT_H
#define HPCT_AGENT_DATA_FINGERPRINT_H

#include <hpctrain/dataset.h>
#include <stdint.h>

/* A hash of the number of samples, their labels, the names and sizes of their files, and the first
 * and the last picture where these are in memory: not of all pixels, which would take as long as
 * reading them. */
uint64_t hpct_dataset_fingerprint(const hpct_dataset *dataset);

/* Of what a file of labels says: names of classes or columns, and each picture's. 0 without one. */
uint64_t hpct_labels_fingerprint(const hpct_dataset *dataset);

#endif
