/* nn/backend/types.h - types of the backend interface that users of a model need, too. */
#ifndef HPCT_NN_BACKEND_TYPES_H
#define HPCT_NN_BACKEND_TYPES_H

#include <hpctrain/status.h>
#include <stddef.h>
#include <stdint.h>

/* Sums over a batch, not means, so that ranks' can be added. */
typedef struct hpct_backend_batch_sums {
    double loss;
    double correct;  /* samples whose largest output is the label's; with one output: on the
                        label's side of 0.5. BINARY targets: shares of outputs on their targets'
                        sides; NUMBERS: mean absolute errors */
    double in_top_k; /* samples whose label's output is among the k largest; 0 without top_k.
                        NUMBERS: mean squared errors */
} hpct_backend_batch_sums;

/* Images of a data set in memory. */
typedef struct hpct_backend_pictures {
    size_t count;
    int height, width, channels; /* of each image */
    const uint8_t *pixels;       /* [count][height][width][channels] */
    const int32_t *labels;       /* [count] */
    int to_height, to_width;     /* size of the model's input */
    float factor, offset;        /* bytes x are converted to x * factor + offset */
} hpct_backend_pictures;

/* Peak rates of a backend: a large matrix product in the model's precision, and copying memory
 * beyond the caches (bytes read plus written). */
typedef struct hpct_backend_rates {
    double flops, bytes; /* per second */
} hpct_backend_rates;

#endif
