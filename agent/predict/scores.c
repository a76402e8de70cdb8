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

hpct_status hpct_scores_open(hpct_scores *out, const hpct_model *model, int top_k)
{
    hpct_shape shape = hpct_model_output_shape(model);
    hpct_loss loss;
    HPCT_TRY(hpct_model_own_loss(model, &loss));
    if (shape.rank != 1)
        return hpct_fail(HPCT_ERR_DATA,
                         "model %s has outputs of %d dimensions, not one for each class",
                         hpct_model_name(model), shape.rank);
    *out = (hpct_scores){.outputs = shape.size[0], .logits = takes_logits(loss)};
    out->classes = out->outputs == 1 ? 2 : out->outputs;
    if (top_k > out->classes)
        return hpct_fail(HPCT_ERR_USAGE, "--top-k is %d, the model has %d classes", top_k,
                         out->classes);
    out->each = malloc((size_t) out->classes * sizeof *out->each);
    return out->each != NULL ? HPCT_OK
                             : hpct_fail_memory((size_t) out->classes * sizeof *out->each);
}

void hpct_scores_close(hpct_scores *scores)
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
static void fill(const hpct_scores *s, const float *outputs)
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

static bool are_finite(const float *values, int count)
{
    for (int i = 0; i < count; i++) {
        if (!isfinite(values[i]))
            return false;
    }
    return true;
}

/* Insertion into the list of the best so far: k is small. */
void hpct_scores_best(const hpct_scores *scores, const float *outputs, int k,
                      hpct_class_score *best)
{
    int num = 0;
    if (!are_finite(outputs, scores->outputs)) {
        for (int i = 0; i < k; i++)
            best[i] = (hpct_class_score){.class = i, .probability = NAN};
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
        best[at] = (hpct_class_score){.class = c, .probability = probability};
    }
}
