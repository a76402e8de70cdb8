/* agent/batch.h - whether a batch fits the memory, before it is taken. */
#ifndef HPCT_AGENT_BATCH_H
#define HPCT_AGENT_BATCH_H

#include <hpctrain/batch.h>

/* Whether batches of this many samples on each rank fit the memory of every rank, with `besides`
 * bytes more of each; collective, after hpct_threads_set. */
hpct_status hpct_batch_fits(hpct_context *context, hpct_model *model,
                            const hpct_batch_options *options, int batch, size_t besides,
                            bool *fits);

/* HPCT_OK when they do, else HPCT_ERR_CONFIG with the need, the memory, and what would fit;
 * collective, after hpct_threads_set. *need (or NULL): bytes that this rank will take, of its GPU
 * where the model is on one. */
hpct_status hpct_batch_admit(hpct_context *context, hpct_model *model,
                             const hpct_batch_options *options, int batch, size_t *need);

/* Puts before what hpct_batch_admit says of the batch that was `tried` the one that was asked for,
 * `global` or, where that is 0, `own`, if it is another one; returns `status`. */
hpct_status hpct_batch_asked(hpct_status status, int tried, int global, int own, size_t samples);

#endif
