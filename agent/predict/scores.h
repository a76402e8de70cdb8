/* agent/predict/scores.h - from a model's outputs to the most probable classes. Independent of
 * ranks, data sets and files. */
#ifndef HPCT_AGENT_PREDICT_SCORES_H
#define HPCT_AGENT_PREDICT_SCORES_H

#include <hpctrain/model.h>
#include <stdint.h>

typedef struct hpct_predict_class_score {
    int32_t class;
    float probability; /* NaN if the outputs are not finite */
} hpct_predict_class_score;

/* How a model's outputs are read. */
typedef struct hpct_predict_scores {
    int outputs; /* per sample */
    int classes; /* 2 with one output */
    bool logits; /* else probabilities */
    bool
        each_by_itself; /* outputs with names of their own, in their order; of logits the sigmoid */
    double *each;       /* [classes], of one sample */
} hpct_predict_scores;

/* Whether the weights are of outputs with names of their own (hpct_model_output_names): predictions
 * are all of them. */
hpct_status hpct_predict_scores_find_outputs(const hpct_model *model, bool *found);

/* Returns HPCT_ERR_DATA for a model whose outputs are not classes; HPCT_ERR_USAGE if it has fewer
 * than top_k. The caller frees *out. */
hpct_status hpct_predict_scores_open(hpct_predict_scores *out, const hpct_model *model, int top_k);
void hpct_predict_scores_close(hpct_predict_scores *scores);

/* The k most probable classes of one sample, from its outputs; of equal ones the lower number
 * first. Outputs by themselves: the first k of them. */
void hpct_predict_scores_best(const hpct_predict_scores *scores, const float *outputs, int k,
                              hpct_predict_class_score *best);

#endif
