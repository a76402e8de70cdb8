/* hpctrain/predict.h - the classes of pictures, predicted on all ranks of a context. */
#ifndef HPCTRAIN_PREDICT_H
#define HPCTRAIN_PREDICT_H

#include <hpctrain/context.h>
#include <hpctrain/dataset.h>
#include <hpctrain/model.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hpct_predict_options {
    int batch_size;     /* samples that a rank reads at once; default 128. On a GPU always 64. */
    int top_k;          /* classes per sample, the most probable first; default 1 */
    const char *output; /* file, written by rank 0 at the end: NAME.csv, a header and a row per
                           sample, or NAME.jsonl, an object per sample; default: none */
    FILE *table;        /* stream for the same as text, written by rank 0; default: none */
} hpct_predict_options;

/* Predicts the class of every sample, each once, and writes them in the data's order: the name of
 * its file (of pictures in folders and archives) or its index, then class and probability. Classes
 * have the names saved with the weights, else numbers. Labels are not used; for pictures without
 * class folders open the data set with hpct_dataset_options.unlabelled.
 *
 * The ranks share the samples. Samples are computed in groups that depend on the data only, each by
 * one thread, so that results are the same bits whatever the batch size and the number of ranks and
 * threads, on processors of one type. Logits get a softmax or sigmoid first. Collective.
 *
 * Returns HPCT_ERR_USAGE for invalid options; HPCT_ERR_DATA if the data do not fit the model, a
 * picture is damaged, probabilities or weights are not finite, or the ranks have different data or
 * weights; HPCT_ERR_IO if the output cannot be written, which is tried first: it is complete, or as
 * before. */
HPCT_API hpct_status hpct_predict_classes(hpct_context *context, hpct_model *model,
                                          const hpct_dataset *dataset,
                                          const hpct_predict_options *options);

/* Checks options independently of model and data, before these are read. */
HPCT_API hpct_status hpct_predict_check(const hpct_predict_options *options);

#ifdef __cplusplus
}
#endif
#endif
