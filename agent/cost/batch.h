/* agent/cost/batch.h - whether a batch fits into memory. */
#ifndef HPCT_AGENT_COST_BATCH_H
#define HPCT_AGENT_COST_BATCH_H

#include <hpctrain/batch.h>

#define HPCT_COST_DEFAULT_BATCH 32     /* samples per rank and step */
#define HPCT_COST_EVALUATION_BATCH 100 /* for evaluation, if it fits and training's is smaller */

/* Whether batches of this many samples per rank fit in the memory of every rank, together with
 * `besides` further bytes on each; collective, after hpct_rank_threads_set. */
hpct_status hpct_cost_batch_fits(hpct_context *context, hpct_model *model,
                                 const hpct_batch_options *options, int batch, size_t besides,
                                 bool *fits);

/* HPCT_OK if so, else HPCT_ERR_CONFIG with need, limit, and what would fit; collective, after
 * hpct_rank_threads_set. *need (or NULL): bytes this rank will use, of its GPU for a model on one.
 */
hpct_status hpct_cost_batch_admit(hpct_context *context, hpct_model *model,
                                  const hpct_batch_options *options, int batch, size_t *need);

/* Prepends to the message of hpct_cost_batch_admit for the batch `tried` the requested one,
 * `global` or, if 0, `own`, if different; returns `status`. */
hpct_status hpct_cost_batch_asked(hpct_status status, int tried, int global, int own,
                                  size_t samples);

#endif
