/* agent/data/fingerprint.h - hashes by which two data sets are compared. */
#ifndef HPCT_AGENT_DATA_FINGERPRINT_H
#define HPCT_AGENT_DATA_FINGERPRINT_H

#include <hpctrain/dataset.h>
#include <stdint.h>

/* In the order of the samples. Independent of the path, and of whether pictures are kept decoded.
 */
typedef struct hpct_data_fingerprint {
    uint64_t labels;   /* numbers of classes, or targets */
    uint64_t files;    /* names from the class's folder on, and sizes; 0: none */
    uint64_t pictures; /* the bytes of some pictures: of all would take as long as reading them */
} hpct_data_fingerprint;

void hpct_dataset_fingerprint(const hpct_dataset *dataset, hpct_data_fingerprint *out);

/* The files and pictures of encoded pictures, into dataset->seen: before they are decoded. Returns
 * HPCT_ERR_NO_INPUT, HPCT_ERR_IO or HPCT_ERR_DATA, naming a file that cannot be read. */
hpct_status hpct_data_fingerprint_encoded(hpct_dataset *dataset);

#endif
