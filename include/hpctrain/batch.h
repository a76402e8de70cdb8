/* hpctrain/batch.h - the batch size that the memory allows, worked out before anything is trained.
 */
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

/* What the batches are for. Zero means the default named. */
typedef struct hpct_batch_options {
    const hpct_dataset *data; /* that they are taken from; default: none, as in bench or a loop of
                                 one's own */
    const hpct_dataset *validation; /* of fit; default: none */
    bool evaluate;                  /* evaluation alone; default: training */
    hpct_strategy_options strategy; /* of training */
} hpct_batch_options;

typedef struct hpct_batch_choice {
    int batch_size; /* samples per rank and step, a power of two */
    size_t need;    /* bytes by which a rank grows with it */
    size_t memory;  /* bytes that it may take */
    char line[256]; /* what was chosen, and why, for the user */
} hpct_batch_choice;

/* The largest power of two whose memory plan fits what every rank may take: parameters, gradients,
 * optimizer, activations, scratch of the operations, buffers of the input, of reductions between
 * ranks; what the process has already (the data set) counts as taken. Of what is left a sixteenth
 * stays free. The memory is that of the tightest cgroup, of the Slurm job where no cgroup holds it
 * to what it asked for, or of the machine; ranks of one node share it. Not more than the samples of
 * a rank's share of the data, nor than 2^20. The same on all ranks; collective. A compiled model;
 * `context` NULL: this process alone. HPCT_ERR_CONFIG when not even one sample fits. hpct_fit,
 * hpct_evaluate and hpct_bench refuse in the same way what does not. */
HPCT_API hpct_status hpct_batch_choose(hpct_context *context, hpct_model *model,
                                       const hpct_batch_options *options,
                                       hpct_batch_choice *choice);

#ifdef __cplusplus
}
#endif
#endif
