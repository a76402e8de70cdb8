/* agent/predict/workers.h - forward of a rank's samples in groups of a fixed size, each computed by
 * one thread alone: the kernels of a library, and the order of sums in them, depend on batch size
 * and number of threads, so that results do not. On a device, one group at a time. */
#ifndef HPCT_AGENT_PREDICT_WORKERS_H
#define HPCT_AGENT_PREDICT_WORKERS_H

#include "agent/predict/scores.h"

typedef struct hpct_predict_workers hpct_predict_workers;

/* Samples of a group of this model. */
int hpct_predict_workers_group(const hpct_model *model);

typedef struct hpct_predict_workers_options {
    hpct_model *model; /* becomes built, for inference; has the input */
    int threads;       /* at least 1 */
    int largest;       /* samples of the largest batch: a multiple of the group */
    int top_k;
} hpct_predict_workers_options;

hpct_status hpct_predict_workers_open(hpct_predict_workers **out,
                                      const hpct_predict_workers_options *options);
void hpct_predict_workers_close(hpct_predict_workers *workers); /* NULL is allowed */

/* Predicts the first `count` samples of the model's input, which has whole groups: best[count][k].
 */
hpct_status hpct_predict_workers_run(hpct_predict_workers *workers, int count,
                                     hpct_predict_class_score *best);

#endif
