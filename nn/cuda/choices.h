/* nn/cuda/choices.h - what was measured to be the best way of computing something, kept on disk so
 * that the next run need not measure again. One file for each identity (device, driver, versions of
 * libraries): ${XDG_CACHE_HOME:-~/.cache}/hpc-train/choices-HASH. It is text: the identity, lines
 * of key, tab, value, and a checksum; whatever else is there is ignored, and replaced when there is
 * something to keep. Knows nothing of CUDA. */
#ifndef HPCT_NN_CUDA_CHOICES_H
#define HPCT_NN_CUDA_CHOICES_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct hpct_choices hpct_choices;

/* The file's path in `path`; false, and an empty one, where no home is known or it does not fit. */
bool hpct_choices_path(char *path, size_t size, const char *identity);

/* Reads the file, if it is there and good. `path` "" keeps everything in memory. Neither identity
 * nor keys and values have tabs or newlines. */
hpct_status hpct_choices_open(hpct_choices **out, const char *path, const char *identity);

/* NULL: none kept. Valid until the next hpct_choices_keep or _write. */
const char *hpct_choices_find(const hpct_choices *choices, const char *key);

/* Replaces what was kept under that key, in memory. */
hpct_status hpct_choices_keep(hpct_choices *choices, const char *key, const char *value);

/* What was kept since the last call comes to the disk, with what other processes have added to the
 * file meanwhile: all of it or nothing. Nothing is tried again after an error. */
hpct_status hpct_choices_write(hpct_choices *choices);

void hpct_choices_close(hpct_choices *choices); /* NULL is allowed */

#endif
