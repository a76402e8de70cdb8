/* agent/data/cifar.h - what the binary and the Python version of CIFAR share: the same files under
 * names that differ by ".bin". */
#ifndef HPCT_DATA_CIFAR_H
#define HPCT_DATA_CIFAR_H

#include "agent/data/dataset.h"

#include <stdio.h>

#define HPCT_CIFAR_PLANE 1024 /* 32 x 32 */
#define HPCT_CIFAR_BYTES (3 * HPCT_CIFAR_PLANE)

/* 10 or 100 where a folder has the files of that set, with this suffix; else 0. */
int hpct_cifar_kind(const char *folder, const char *suffix);

/* Sets dataset->path and calls `read` for each file of the split. `kind` is 10 or 100. */
typedef hpct_status hpct_cifar_file(hpct_dataset *dataset, FILE *file, int kind, const char *path);
hpct_status hpct_cifar_each_file(hpct_dataset *dataset, const char *folder, const char *suffix,
                                 hpct_split split, hpct_cifar_file *read);

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
