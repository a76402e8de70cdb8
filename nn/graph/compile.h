/* nn/graph/compile.h - compiled settings that the public headers do not offer. */
#ifndef HPCT_NN_GRAPH_COMPILE_H
#define HPCT_NN_GRAPH_COMPILE_H

#include <hpctrain/model.h>

/* Set by hpct_model_compile: batches per update, 1 without accumulation; the k of top-k, or 0; the
 * optimizer with defaults resolved; label smoothing. */
int hpct_model_gradient_accumulation(const hpct_model *model);
int hpct_model_top_k(const hpct_model *model);
const hpct_optimizer *hpct_model_optimizer(const hpct_model *model);
double hpct_model_label_smoothing(const hpct_model *model);
/* Whether the loss takes the outputs for logits. */
bool hpct_model_gives_logits(const hpct_model *model);
hpct_loss hpct_model_loss_kind(const hpct_model *model);
/* Whether the data have a row of targets per sample, of the kind of hpct_model_target_kind, instead
 * of a label; for the next build. Metrics are that kind's. judged: that kind, or CLASS. */
void hpct_model_take_targets(hpct_model *model, bool rows);
hpct_target_kind hpct_model_judged(const hpct_model *model);
/* gamma, alpha and delta; 0 where the loss has none. */
void hpct_model_loss_factors(const hpct_model *model, double factors[3]);
/* [*count], or NULL: every class has weight 1. */
const float *hpct_model_class_weights(const hpct_model *model, int *count);

/* Names of classes or outputs as weights files have them: a JSON list or object; NULL: none. */
const char *hpct_model_names_text(const hpct_model *model);
hpct_status hpct_model_set_names_text(hpct_model *model, const char *text);

/* What the weights were trained with, for programs that use them, as weights files have it: a JSON
 * object with "scale", "resize" and "outputs" (hpctrain/dataset.h, hpct_trained_with); NULL: not
 * known. */
const char *hpct_model_trained_with(const hpct_model *model);
hpct_status hpct_model_set_trained_with(hpct_model *model, const char *text);

/* "NAME=FACTOR" of the layers with a learning rate of their own, comma-separated, "" if there are
 * none; the caller frees it. NULL if out of memory. */
char *hpct_model_rate_factors(const hpct_model *model);

/* The learning rate of the last step, of which hpct_model_learning_rate() is the next one's. */
double hpct_model_last_learning_rate(const hpct_model *model);

#endif
