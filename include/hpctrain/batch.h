/* hpctrain/batch.h - the largest batch size that fits into memory. */
#ifndef HPCTRAIN_BATCH_H
#define HPCTRAIN_BATCH_H

#include <hpctrain/context.h>
#include <hpctrain/dataset.h>
#include <hpctrain/model.h>
#include <hpctrain/strategy.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the batches are used for. */
typedef struct hpct_batch_options {
    const hpct_dataset *data;       /* data set; default: none (bench, own loops) */
    const hpct_dataset *validation; /* validation set of fit; default: none */
    bool evaluate;                  /* evaluation only; default: training */
    hpct_strategy_options strategy; /* strategy of training */
} hpct_batch_options;

typedef struct hpct_batch_choice {
    int batch_size; /* samples per rank and step, a power of two */
    size_t need;    /* bytes a rank needs with it */
    size_t memory;  /* bytes available to the rank */
    char line[256]; /* the choice and its reason, for the user */
} hpct_batch_choice;

/* Finds the largest power of two that fits on every rank, at most the rank's share of the data and
 * 2^20. Counted are parameters, gradients, optimizer slots, activations, scratch, input and
 * reduction buffers, and what the process already uses. The limit is the tightest cgroup's, the
 * Slurm job's if no cgroup enforces it, or the machine's, divided among the ranks of a node; a
 * sixteenth of the rest stays free. The model must be compiled; `context` NULL: this process only.
 * Collective.
 *
 * Returns HPCT_ERR_CONFIG if not even one sample fits, as hpct_fit(), hpct_evaluate() and
 * hpct_bench() do for a batch that does not. */
HPCT_API hpct_status hpct_batch_choose(hpct_context *context, hpct_model *model,
                                       const hpct_batch_options *options,
                                       hpct_batch_choice *choice);

#ifdef __cplusplus
}
#endif
#endif
