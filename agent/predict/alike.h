/* agent/predict/alike.h - whether all ranks have the same pictures and the same weights: each has
 * read them itself, and rows of one rank's names with another's classes would be wrong unseen. */
#ifndef HPCT_AGENT_PREDICT_ALIKE_H
#define HPCT_AGENT_PREDICT_ALIKE_H

#include <hpctrain/context.h>
#include <hpctrain/dataset.h>
#include <hpctrain/model.h>

/* HPCT_ERR_DATA on all ranks, naming the first one that differs from rank 0. Collective. */
hpct_status hpct_alike_check(hpct_context *context, const hpct_model *model,
                             const hpct_dataset *dataset);

#endif
