/* Softmax or sigmoid where the model ends in logits, and the best classes. */
#include "agent/predict/scores.h"

#include "base/status.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool takes_logits(hpct_loss loss)
{
    return loss == HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS ||
           loss == HPCT_BINARY_CROSSENTROPY_FROM_LOGITS;
}

hpct_status hpct_predict_scores_find_outputs(const hpct_model *model, bool *found)
{
    int count;
    char **names;
    HPCT_TRY(hpct_model_output_names(model, &names, &count, NULL));
    int outputs = hpct_model_output_shape(model).size[0];
    free(names);
    *found = count > 0;
    return count == 0 || count == outputs
               ? HPCT_OK
               : hpct_fail(HPCT_ERR_DATA, "the weights name %d outputs, the model has %d", count,
                           outputs);
}

/* Numbers, probabilities, or logits of each output. */
static hpct_status open_outputs(hpct_predict_scores *out, const hpct_model *model)
{
    char **names;
    hpct_compile_options saved = {0};
    *out = (hpct_predict_scores){.each_by_itself = true};
    HPCT_TRY(hpct_model_output_names(model, &names, &out->outputs, &saved));
    free(names);
    out->classes = out->outputs;
    out->logits = saved.loss == HPCT_BINARY_CROSSENTROPY_FROM_LOGITS ||
                  saved.loss == HPCT_BINARY_FOCAL_CROSSENTROPY_FROM_LOGITS;
    return HPCT_OK;
}

static hpct_status open_classes(hpct_predict_scores *out, const hpct_model *model)
{
    hpct_shape shape = hpct_model_output_shape(model);
    hpct_loss loss;
    HPCT_TRY(hpct_model_own_loss(model, &loss));
    if (shape.rank != 1)
        return hpct_fail(HPCT_ERR_DATA,
                         "model %s has outputs of %d dimensions, not one for each class",
                         hpct_model_name(model), shape.rank);
    *out = (hpct_predict_scores){.outputs = shape.size[0], .logits = takes_logits(loss)};
    out->classes = out->outputs == 1 ? 2 : out->outputs;
    return HPCT_OK;
}

hpct_status hpct_predict_scores_open(hpct_predict_scores *out, const hpct_model *model, int top_k)
{
    bool by_itself;
    HPCT_TRY(hpct_predict_scores_find_outputs(model, &by_itself));
    HPCT_TRY(by_itself ? open_outputs(out, model) : open_classes(out, model));
    if (top_k > out->classes)
        return hpct_fail(HPCT_ERR_USAGE, "--top-k is %d, the model has %d classes", top_k,
                         out->classes);
    out->each = malloc((size_t) out->classes * sizeof *out->each);
    return out->each != NULL ? HPCT_OK
                             : hpct_fail_memory((size_t) out->classes * sizeof *out->each);
}

void hpct_predict_scores_close(hpct_predict_scores *scores)
{
    free(scores->each);
    scores->each = NULL;
}

/* The largest logit is subtracted first, so that nothing overflows. */
static void softmax(double *values, int count)
{
    double largest = values[0], sum = 0;
    for (int i = 1; i < count; i++)
        largest = fmax(largest, values[i]);
    for (int i = 0; i < count; i++)
        sum += values[i] = exp(values[i] - largest);
    for (int i = 0; i < count; i++)
        values[i] /= sum;
}

/* One output is the probability of class 1, or its logit. */
static void fill(const hpct_predict_scores *s, const float *outputs)
{
    if (s->outputs == 1) {
        s->each[1] = s->logits ? 1 / (1 + exp(-(double) outputs[0])) : (double) outputs[0];
        s->each[0] = 1 - s->each[1];
        return;
    }
    for (int i = 0; i < s->outputs; i++)
        s->each[i] = (double) outputs[i];
    if (s->logits)
        softmax(s->each, s->outputs);
}

static void take_each(const hpct_predict_scores *s, const float *outputs, int k,
                      hpct_predict_class_score *out)
{
    for (int i = 0; i < k; i++) {
        double x = (double) outputs[i];
        out[i] = (hpct_predict_class_score){
            .class = i, .probability = s->logits ? (float) (1 / (1 + exp(-x))) : outputs[i]};
    }
}

static bool are_finite(const float *values, int count)
{
    for (int i = 0; i < count; i++) {
        if (!isfinite(values[i]))
            return false;
    }
    return true;
}

/* Insertion into the list of the best so far: k is small. */
void hpct_predict_scores_best(const hpct_predict_scores *scores, const float *outputs, int k,
                              hpct_predict_class_score *best)
{
    int num = 0;
    if (!are_finite(outputs, scores->outputs)) {
        for (int i = 0; i < k; i++)
            best[i] = (hpct_predict_class_score){.class = i, .probability = NAN};
        return;
    }
    if (scores->each_by_itself) {
        take_each(scores, outputs, k, best);
        return;
    }
    fill(scores, outputs);
    for (int c = 0; c < scores->classes; c++) {
        float probability = (float) scores->each[c];
        int at = num;
        while (at > 0 && probability > best[at - 1].probability)
            at--;
        if (at == k)
            continue;
        num += num < k;
        memmove(&best[at + 1], &best[at], (size_t) (num - 1 - at) * sizeof *best);
        best[at] = (hpct_predict_class_score){.class = c, .probability = probability};
    }
}
