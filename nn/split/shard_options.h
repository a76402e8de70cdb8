/* nn/split/shard_options.h - which shard of a model to create (nn/split/shard.h). */
#ifndef HPCT_NN_SPLIT_SHARD_OPTIONS_H
#define HPCT_NN_SPLIT_SHARD_OPTIONS_H

#include <stdbool.h>

typedef enum hpct_split_shard_form {
    HPCT_SPLIT_SHARD_AUTO, /* for each Dense, the form predicted to be faster */
    HPCT_SPLIT_SHARD_ROWS,
    HPCT_SPLIT_SHARD_COLUMNS,
    HPCT_SPLIT_SHARD_BACK, /* only the last layers are split; those before are data parallel */
} hpct_split_shard_form;

typedef struct hpct_split_shard_options {
    int part, parts; /* index from 0, and number */
    int samples;     /* samples per step over all shards: determines costs */
    hpct_split_shard_form form;
    bool without_front; /* HPCT_SPLIT_SHARD_AUTO does not try fronts */
} hpct_split_shard_options;

#endif
