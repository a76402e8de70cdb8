/* agent/rank/compare.h - whether all ranks have the same settings, given as JSON. */
#ifndef HPCT_AGENT_RANK_COMPARE_H
#define HPCT_AGENT_RANK_COMPARE_H

#include <hpctrain/context.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* One value that differs between two JSON values. */
typedef struct hpct_rank_difference {
    char key[128];              /* of the outermost object */
    char where[256];            /* the key, and where below it: "layers, conv2d, activation" */
    char own[128], others[128]; /* as printed; long ones are cut */
} hpct_rank_difference;

/* Finds the first value that differs between two objects, in the order of `own`. Elements of lists
 * are named by their "name", else counted from 0. False if there is none. */
bool hpct_rank_find_difference(const json_t *own, const json_t *other, hpct_rank_difference *out);

/* Compares `own` of all ranks, whose keys are in the same order, with rank 0's. The first rank that
 * differs, its node, the key and both values are named on all ranks, with the status that `judge`
 * gives the key, and then `advise` says what to do. Collective: a few bytes of each rank, and the
 * texts only if they differ. */
hpct_status hpct_rank_compare_ranks(hpct_context *context, const json_t *own,
                                    hpct_status (*judge)(const char *key),
                                    const char *(*advise)(hpct_status status));

#endif
