/* agent/train/identity.h - what a run is: one description as JSON, which ranks compare before step
 * 1, and which a checkpoint keeps for the run that continues it. Paths, times and the number of
 * ranks are not part of it. */
#ifndef HPCT_AGENT_TRAIN_IDENTITY_H
#define HPCT_AGENT_TRAIN_IDENTITY_H

#include <hpctrain/context.h>
#include <hpctrain/train.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* What is described: a training run, or, without `train`, an evaluation, a prediction or a bench.
 */
typedef struct hpct_train_identity_of {
    const hpct_model *model;
    const hpct_dataset *train, *validation; /* NULL: none */
    const hpct_fit_options *fit;            /* with `train` */
    const hpct_strategy_options *strategy;  /* without; NULL: none */
    int global_batch;                       /* 0: none */
    int64_t steps;                          /* per epoch, or of a bench */
    bool weights; /* also a hash of the weights, of which each rank has read its own */
} hpct_train_identity_of;

/* A key of the description, in its order. */
typedef struct hpct_train_identity_key {
    const char *name;
    hpct_status status; /* of ranks that disagree: HPCT_ERR_DATA or HPCT_ERR_CONFIG */
    bool ranks;         /* must be the same on all ranks */
    bool continued;     /* must be the same when a checkpoint is continued */
    bool newer;         /* checkpoints of releases before it lack it: then it is not compared */
} hpct_train_identity_key;

extern const hpct_train_identity_key hpct_train_identity_keys[]; /* the last one has no name */

/* The key of what a run writes and decides by: parameter servers' processes may differ in it. */
#define HPCT_TRAIN_IDENTITY_OPTIONS "options"

/* HPCT_ERR_INTERNAL if out of memory. The caller frees *out. */
hpct_status hpct_train_identity_describe(json_t **out, const hpct_train_identity_of *of);

/* The part of a description that the ranks must agree on. NULL if out of memory. */
json_t *hpct_train_identity_of_ranks(const json_t *description);

/* Describes and compares the ranks: HPCT_ERR_DATA or HPCT_ERR_CONFIG on all of them, naming the
 * first rank that differs from rank 0, its node, the key and both values. Collective. */
hpct_status hpct_train_identity_agree(hpct_context *context, const hpct_train_identity_of *of);

/* For processes that have no collectives: a few characters for each key, by which one says to
 * another which key differs. */
#define HPCT_TRAIN_IDENTITY_BRIEF 192
void hpct_train_identity_brief(const json_t *description, char text[HPCT_TRAIN_IDENTITY_BRIEF]);

/* The number of the first key that differs between two briefs, -1: none; and how its value is
 * printed: of what is long only that it is another. */
int hpct_train_identity_compare_briefs(const char *own, const char *other);
#define HPCT_TRAIN_IDENTITY_VALUE 64
const char *hpct_train_identity_print(const json_t *description, int key,
                                      char text[HPCT_TRAIN_IDENTITY_VALUE]);

/* Fails with the key's status: `name` has its own value, and `who` another. */
hpct_status hpct_train_identity_fail(const json_t *own, int key, const char *theirs,
                                     const char *name, const char *who);

/* Whether a run may continue the checkpoint in `folder`: HPCT_ERR_CONFIG naming the first key that
 * differs, with both values. `theirs`: the checkpoint's description; `class_names` those beside it,
 * NULL: none. *unknown: keys that it does not have, for a message; the caller frees it. */
hpct_status hpct_train_identity_continue(const json_t *own, const json_t *theirs,
                                         const json_t *class_names, const char *folder,
                                         char **unknown);

#endif
