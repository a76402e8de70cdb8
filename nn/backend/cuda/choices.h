/* nn/backend/cuda/choices.h - tuning results kept on disk, so that the next run need not measure
 * again. One file per identity (device, driver, library versions):
 * ${XDG_CACHE_HOME:-~/.cache}/hpc-train/choices-HASH. Text: the identity, lines of key, tab, value,
 * and a checksum; a file with other content is ignored, and replaced when there is something to
 * keep. Independent of CUDA. */
#ifndef HPCT_NN_BACKEND_CUDA_CHOICES_H
#define HPCT_NN_BACKEND_CUDA_CHOICES_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct hpct_cuda_choices hpct_cuda_choices;

/* Sets `path`; false, and "", if no home directory is known or the path does not fit. */
bool hpct_cuda_choices_path(char *path, size_t size, const char *identity);

/* Reads the file if it exists and is valid. path "": memory only. Identity, keys and values must
 * not contain tabs or newlines. */
hpct_status hpct_cuda_choices_open(hpct_cuda_choices **out, const char *path, const char *identity);

/* NULL: not kept. Valid until the next hpct_cuda_choices_keep or _write. */
const char *hpct_cuda_choices_find(const hpct_cuda_choices *choices, const char *key);

/* Sets or replaces the key's value, in memory. */
hpct_status hpct_cuda_choices_keep(hpct_cuda_choices *choices, const char *key, const char *value);

/* Writes changes since the last call to disk, merged with what other processes have added to the
 * file meanwhile; atomically. After an error there is no retry. */
hpct_status hpct_cuda_choices_write(hpct_cuda_choices *choices);

void hpct_cuda_choices_close(hpct_cuda_choices *choices); /* NULL is allowed */

#endif
