/* tests/unit/nn/split/shard_parts.h - one step of a model in parts, on threads of their own,
 * against a step of the whole model: outputs, loss, and what it makes of every parameter. */
#ifndef HPCT_TESTS_UNIT_NN_SPLIT_SHARD_PARTS_H
#define HPCT_TESTS_UNIT_NN_SPLIT_SHARD_PARTS_H

#include "nn/run/step.h"
#include "nn/split/shard.h"

#include <hpctrain/model.h>

#define SHARD_MOST_PARTS 7 /* more than samples: one part has none of its own */

/* What to compute in parts: a model, as for steps of so many samples, of which SHARD_SAMPLES are
 * made. */
typedef struct shard_scenario {
    const char *backend;
    hpct_model *(*make)(uint64_t seed);
    uint64_t seed;
    int parts, samples;
    hpct_split_shard_form form;
    bool fuse;
    int cells;   /* of the picture that the first part has to compute, where not 0 */
    bool blocks; /* channels are gathered in blocks */
} shard_scenario;

/* Whether these parts could be, and whether they added up a gradient of an activation. */
bool shard_try_parts(const shard_scenario *s, bool *adds);

hpct_run_build_options shard_options_for(const char *backend, bool fuse);
int shard_gathers_in_blocks(hpct_split_shard *shard); /* how many */

#endif
