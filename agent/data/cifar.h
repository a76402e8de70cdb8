/* agent/data/cifar.h - what the binary and the Python version of CIFAR share: the same files under
 * names that differ by ".bin", in a folder of their own or in an archive with that folder. */
#ifndef HPCT_DATA_CIFAR_H
#define HPCT_DATA_CIFAR_H

#include "agent/data/dataset.h"

#include <stdio.h>

#define HPCT_CIFAR_PLANE 1024 /* 32 x 32 */
#define HPCT_CIFAR_BYTES (3 * HPCT_CIFAR_PLANE)

/* One of the two versions. */
typedef struct hpct_cifar_version {
    const char *suffix;    /* of the files */
    const char *folder[2]; /* as the archives of CIFAR-10 and CIFAR-100 call it */
    const char *names[2];  /* the files with the names of the classes */
    /* Adds what a file holds; `kind` is 10 or 100. */
    hpct_status (*add)(hpct_dataset *dataset, const uint8_t *bytes, size_t num_bytes, int kind,
                       const char *path);
    /* Sets the names of the classes; without them nothing fails. */
    void (*add_names)(hpct_dataset *dataset, const uint8_t *bytes, size_t num_bytes, int kind,
                      const char *path);
} hpct_cifar_version;

/* Whether a folder has the files, or the folder with the files, or an archive has that folder. */
bool hpct_cifar_claims(const hpct_cifar_version *version, const char *path, bool is_folder);

/* Reads the split of what was claimed. */
hpct_status hpct_cifar_read(const hpct_cifar_version *version, hpct_dataset *dataset,
                            const char *path, hpct_split split);

/* ---- one file ---- */

/* Room for `more` pictures and labels behind dataset->size. */
hpct_status hpct_cifar_make_room(hpct_dataset *dataset, size_t more);

/* Three planes to [32][32][3]. */
void hpct_cifar_interleave(const uint8_t *planes, uint8_t *out);

/* Adds the records of one binary file, whose labels have label_bytes (the last one counts). */
hpct_status hpct_cifar_read_binary(hpct_dataset *dataset, FILE *file, int label_bytes,
                                   const char *path);

/* Adds the pictures of one pickled batch; the labels are those under "labels", for kind 100 under
 * "fine_labels". HPCT_ERR_DATA for what is no such batch. */
hpct_status hpct_cifar_read_pickle(hpct_dataset *dataset, const uint8_t *bytes, size_t num_bytes,
                                   int kind, const char *path);

#endif
