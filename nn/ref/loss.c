/* Sparse categorical cross-entropy, as Keras defines it on TensorFlow, from logits and from
 * probabilities. */
#include "nn/ref/kernels.h"

#include <math.h>

/* Keras' epsilon. */
#define CLIP_LOW 1e-7
#define CLIP_HIGH (1.0 - 1e-7)

static double clip(double p)
{
    return p < CLIP_LOW ? CLIP_LOW : p > CLIP_HIGH ? CLIP_HIGH : p;
}

/* log(sum exp x) - x[label], and softmax(x) - onehot(label). */
static double from_logits(int classes, const hpct_real *x, int label, double scale, hpct_real *diff)
{
    double top = (double) x[0], sum = 0;
    for (int i = 1; i < classes; i++)
        top = fmax(top, (double) x[i]);
    for (int i = 0; i < classes; i++)
        sum += exp((double) x[i] - top);
    for (int i = 0; diff != NULL && i < classes; i++) {
        double p = exp((double) x[i] - top) / sum;
        diff[i] = (hpct_real) (scale * (i == label ? p - 1 : p));
    }
    return log(sum) + top - (double) x[label];
}

/* log(sum q) - log q[label]; an element that was clipped has no gradient. */
static double from_probabilities(int classes, const hpct_real *x, int label, double scale,
                                 hpct_real *diff)
{
    double sum = 0, q_label = clip((double) x[label]);
    for (int i = 0; i < classes; i++)
        sum += clip((double) x[i]);
    for (int i = 0; diff != NULL && i < classes; i++) {
        double p = (double) x[i], slope = 1 / sum - (i == label ? 1 / q_label : 0);
        diff[i] = (hpct_real) (p < CLIP_LOW || p > CLIP_HIGH ? 0 : scale * slope);
    }
    return log(sum) - log(q_label);
}

static int first_largest(int classes, const hpct_real *x)
{
    int best = 0;
    for (int i = 1; i < classes; i++) {
        if (x[i] > x[best])
            best = i;
    }
    return best;
}

void HPCT_REF(cross_entropy)(hpct_loss_form form, int n, int classes, const hpct_real *src,
                             const int32_t *labels, double scale, hpct_real *diff_src,
                             hpct_batch_sums *sums)
{
    *sums = (hpct_batch_sums){0};
    for (int s = 0; s < n; s++) {
        const hpct_real *x = src + (size_t) s * (size_t) classes;
        hpct_real *diff = diff_src != NULL ? diff_src + (size_t) s * (size_t) classes : NULL;
        sums->loss += form == HPCT_LOSS_LOGITS
                          ? from_logits(classes, x, labels[s], scale, diff)
                          : from_probabilities(classes, x, labels[s], scale, diff);
        sums->correct += first_largest(classes, x) == labels[s];
    }
}
