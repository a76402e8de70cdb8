/* nn/file/keras/skips.h - what was not loaded from a weight file with hpct_load_options
 * .skip_mismatch, in one line. Private to nn/file/. */
#ifndef HPCT_NN_FILE_KERAS_SKIPS_H
#define HPCT_NN_FILE_KERAS_SKIPS_H

#include <hpctrain/status.h>

/* Ends the error for a weight that does not fit. */
#define HPCT_KERAS_WEIGHTS_HINT "; fit --skip-mismatch loads the layers that fit"

typedef struct hpct_keras_skips {
    char *text; /* "dense (missing), conv2d (3 weights in the file, not 2)"; the caller frees it */
    int count;  /* with those that `text` has no room for */
    int loaded; /* layers */
} hpct_keras_skips;

/* Adds an item, "NAME (WHY)". */
hpct_status hpct_keras_skips_add(hpct_keras_skips *skips, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* After the last one: the number of those left out. HPCT_ERR_DATA if nothing was loaded. */
hpct_status hpct_keras_skips_end(hpct_keras_skips *skips);

#endif
