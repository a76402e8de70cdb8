/* agent/train/run_state.h - the training state of all ranks of a run: copied for a checkpoint, and
 * restored from one. Which rank saves what is the strategy's (agent/strategy/state.h); names and
 * shapes are the model's, so that another number of ranks or another strategy can go on.
 *
 * weights/…, optimizer/…   the model's values, as one rank would have them
 * ranks/values [floats]    values that ranks or replicas have of their own, by rank
 * ranks/numbers [ranks][]  optimizer steps, loss scale, counters of the strategy
 * ranks/layout [floats]    of no use to a run with another layout in memory */
#ifndef HPCT_AGENT_TRAIN_RUN_STATE_H
#define HPCT_AGENT_TRAIN_RUN_STATE_H

#include "agent/checkpoint/store.h"
#include "agent/rank/context.h"
#include "agent/strategy/state.h"

#include <hpctrain/model.h>
#include <jansson.h>
#include <stdbool.h>

typedef struct hpct_train_run_state hpct_train_run_state;

/* `strategy` has been opened for `model`; both outlive *out. Allocates all that taking the state
 * needs. Collective. */
hpct_status hpct_train_run_state_open(hpct_train_run_state **out, hpct_context *context,
                                      hpct_model *model, hpct_strategy *strategy);
void hpct_train_run_state_close(hpct_train_run_state *state); /* NULL is allowed */

bool hpct_train_run_state_ready(
    const hpct_train_run_state *state); /* it can be taken after this step */
int hpct_train_run_state_writers(
    const hpct_train_run_state *state); /* ranks that write a part: 0 is one */
bool hpct_train_run_state_writes(const hpct_train_run_state *state); /* this rank does */

/* Copies the state. Collective. */
hpct_status hpct_train_run_state_take(hpct_train_run_state *state);

/* This rank's part of the copy, [*count]; valid until the next take. */
const hpct_ckpt_store_tensor *hpct_train_run_state_tensors(const hpct_train_run_state *state,
                                                           size_t *count);

/* What restoring needs to know of the copy. NULL if out of memory. */
json_t *hpct_train_run_state_describe(const hpct_train_run_state *state);

/* Puts the state of a checkpoint into the strategy; `from` and `description` on rank 0, else NULL.
 * With the same strategy, ranks and options all ranks continue with the same bits. Collective.
 * HPCT_ERR_DATA, naming the tensor, if it is not of this model. */
hpct_status hpct_train_run_state_restore(hpct_train_run_state *state, hpct_ckpt *from,
                                         const json_t *description);

#endif
