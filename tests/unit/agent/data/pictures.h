/* tests/unit/agent/data/pictures.h - small data sets written by tests: IDX folders and .npz files.
 */
#ifndef HPCT_TESTS_UNIT_AGENT_DATA_PICTURES_H
#define HPCT_TESTS_UNIT_AGENT_DATA_PICTURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A fresh folder, removed with all that is in it when the test program ends. */
char *pictures_folder(void);

/* FOLDER/NAME with these bytes, and the folders that NAME names; gzip when `gz`. */
void pictures_write(const char *folder, const char *name, const void *bytes, size_t size, bool gz);

/* A file of tests/fuzz/corpus, which has small ones of every format; returns its length. */
size_t pictures_seed(const char *name, uint8_t *out, size_t room);

/* An IDX file in memory: magic, sizes, elements; returns its length. out has room for it. */
size_t pictures_idx(uint8_t *out, uint32_t magic, int rank, const uint32_t *sizes,
                    const uint8_t *elements, size_t count);

/* The four IDX files with `train` and `test` pictures of 28x28; label i is i % classes, and a
 * picture shows its label as a bright row, so that a model can learn it. */
void pictures_mnist_like(const char *folder, int train, int test, int classes, bool gz);

/* An .npy in memory, its header being `text`. */
size_t pictures_npy(uint8_t *out, const char *text, const void *elements, size_t size);

/* An .npz of `count` members, names ending in ".npy". */
void pictures_npz(const char *path, const char *const *names, const uint8_t *const *members,
                  const size_t *sizes, int count);

#endif
