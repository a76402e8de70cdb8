/* agent/data/cifar.h - common parts of the binary and the Python version of CIFAR: the same files
 * under names that differ by ".bin", in a folder or in an archive of that folder. */
#ifndef HPCT_AGENT_DATA_CIFAR_H
#define HPCT_AGENT_DATA_CIFAR_H

#include "agent/data/dataset.h"

#include <stdio.h>

#define HPCT_DATA_CIFAR_PLANE 1024 /* 32 x 32 */
#define HPCT_DATA_CIFAR_BYTES (3 * HPCT_DATA_CIFAR_PLANE)

/* One of the two versions. */
typedef struct hpct_data_cifar_version {
    const char *suffix;    /* suffix of the files' names */
    const char *folder[2]; /* folder in the archives of CIFAR-10 and CIFAR-100 */
    const char *names[2];  /* files with the class names */
    /* Appends the contents of a file; `kind` is 10 or 100. */
    hpct_status (*add)(hpct_dataset *dataset, const uint8_t *bytes, size_t num_bytes, int kind,
                       const char *path);
    /* Sets the class names. They are optional: errors are ignored. */
    void (*add_names)(hpct_dataset *dataset, const uint8_t *bytes, size_t num_bytes, int kind,
                      const char *path);
} hpct_data_cifar_version;

/* Whether a folder has the files, or a subfolder with them, or an archive has that folder. */
bool hpct_data_cifar_claims(const hpct_data_cifar_version *version, const char *path,
                            bool is_folder);

/* Reads the split from a path that hpct_data_cifar_claims accepts. */
hpct_status hpct_data_cifar_read(const hpct_data_cifar_version *version, hpct_dataset *dataset,
                                 const char *path, hpct_split split);

/* ---- one file ---- */

/* Allocates room for `more` pictures and labels after dataset->size. */
hpct_status hpct_data_cifar_make_room(hpct_dataset *dataset, size_t more);

/* Converts three planes to [32][32][3]. */
void hpct_data_cifar_interleave(const uint8_t *planes, uint8_t *out);

/* Appends the records of one binary file with label_bytes bytes of labels each, of which the last
 * is used. */
hpct_status hpct_data_cifar_read_binary(hpct_dataset *dataset, FILE *file, int label_bytes,
                                        const char *path);

/* Appends the pictures of one pickled batch; labels are under "labels", for kind 100 under
 * "fine_labels". HPCT_ERR_DATA if it is not such a batch. */
hpct_status hpct_data_cifar_read_pickle(hpct_dataset *dataset, const uint8_t *bytes,
                                        size_t num_bytes, int kind, const char *path);

#endif
