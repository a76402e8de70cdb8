/* Losses and metrics as Keras defines them on TensorFlow. */
#include "nn/backend/ref/kernels.h"

#include <math.h>

/* Keras' epsilon. */
#define CLIP_LOW 1e-7
#define CLIP_HIGH (1.0 - 1e-7)

/* Factor of a gradient, without the sample's weight. */
static double factor_of_all(const hpct_backend_loss_call *c)
{
    return (double) c->scale * (c->scaling != NULL ? (double) c->scaling->scale : 1);
}

static double clip(double p)
{
    return p < CLIP_LOW ? CLIP_LOW : p > CLIP_HIGH ? CLIP_HIGH : p;
}

static bool is_clipped(double p)
{
    return p < CLIP_LOW || p > CLIP_HIGH;
}

/* ---- targets ---- */

/* Target of output i of sample s: from the target row, or from the class. */
static double wanted(const hpct_backend_loss_call *c, int s, int i)
{
    if (c->targets != NULL)
        return (double) c->targets[(size_t) s * (size_t) c->classes + (size_t) i];
    if (c->classes == 1)
        return c->labels[s];
    return c->labels[s] == i;
}

static double smoothed(const hpct_backend_loss_call *c, int s, int i)
{
    bool binary = c->form == HPCT_BACKEND_LOSS_BINARY ||
                  c->form == HPCT_BACKEND_LOSS_BINARY_LOGITS ||
                  c->form == HPCT_BACKEND_LOSS_BINARY_FOCAL ||
                  c->form == HPCT_BACKEND_LOSS_BINARY_FOCAL_LOGITS;
    double smoothing = (double) c->label_smoothing;
    return wanted(c, s, i) * (1 - smoothing) + smoothing / (binary ? 2 : c->classes);
}

/* ---- one sample ---- */

/* sum y (log(sum exp x) - x), and sum(y) softmax(x) - y. */
static double from_logits(const hpct_backend_loss_call *c, int s, double factor,
                          const hpct_ref_real *x, hpct_ref_real *diff)
{
    double top = (double) x[0], sum = 0, weight = 0, loss = 0;
    for (int i = 1; i < c->classes; i++)
        top = fmax(top, (double) x[i]);
    for (int i = 0; i < c->classes; i++) {
        sum += exp((double) x[i] - top);
        weight += smoothed(c, s, i);
        loss -= smoothed(c, s, i) * ((double) x[i] - top);
    }
    for (int i = 0; diff != NULL && i < c->classes; i++) {
        double p = exp((double) x[i] - top) / sum;
        diff[i] = (hpct_ref_real) (factor * (weight * p - smoothed(c, s, i)));
    }
    return loss + weight * log(sum);
}

/* log(sum q) - log q[label], q = clipped x; clipped elements have no gradient. */
static double from_probabilities(const hpct_backend_loss_call *c, int s, double factor,
                                 const hpct_ref_real *x, hpct_ref_real *diff)
{
    int label = c->labels[s];
    double sum = 0, q_label = clip((double) x[label]);
    for (int i = 0; i < c->classes; i++)
        sum += clip((double) x[i]);
    for (int i = 0; diff != NULL && i < c->classes; i++) {
        double slope = 1 / sum - (i == label ? 1 / q_label : 0);
        diff[i] = (hpct_ref_real) (is_clipped((double) x[i]) ? 0 : factor * slope);
    }
    return log(sum) - log(q_label);
}

/* - sum y log clip(q), q = x / sum x. */
static double from_distribution(const hpct_backend_loss_call *c, int s, double factor,
                                const hpct_ref_real *x, hpct_ref_real *diff)
{
    double sum = 0, loss = 0, inner = 0;
    for (int i = 0; i < c->classes; i++)
        sum += (double) x[i];
    for (int i = 0; i < c->classes; i++) {
        double q = (double) x[i] / sum;
        loss -= smoothed(c, s, i) * log(clip(q));
        inner += is_clipped(q) ? 0 : smoothed(c, s, i);
    }
    for (int i = 0; diff != NULL && i < c->classes; i++) {
        double q = (double) x[i] / sum, own = is_clipped(q) ? 0 : smoothed(c, s, i) / q;
        diff[i] = (hpct_ref_real) (factor * (inner - own) / sum);
    }
    return loss;
}

static double binary_from_logits(const hpct_backend_loss_call *c, int s, double factor,
                                 const hpct_ref_real *x, hpct_ref_real *diff)
{
    double loss = 0, share = 1.0 / c->classes;
    for (int i = 0; i < c->classes; i++) {
        double v = (double) x[i], y = smoothed(c, s, i);
        loss += share * (fmax(v, 0) - v * y + log1p(exp(-fabs(v))));
        if (diff != NULL)
            diff[i] = (hpct_ref_real) (factor * share * (1 / (1 + exp(-v)) - y));
    }
    return loss;
}

static double binary(const hpct_backend_loss_call *c, int s, double factor, const hpct_ref_real *x,
                     hpct_ref_real *diff)
{
    double loss = 0, share = 1.0 / c->classes;
    for (int i = 0; i < c->classes; i++) {
        double p = clip((double) x[i]), y = smoothed(c, s, i);
        double slope = is_clipped((double) x[i]) ? 0 : (1 - y) / (1 - p) - y / p;
        loss -= share * (y * log(p) + (1 - y) * log(1 - p));
        if (diff != NULL)
            diff[i] = (hpct_ref_real) (factor * share * slope);
    }
    return loss;
}

static double squared(const hpct_backend_loss_call *c, int s, double factor, const hpct_ref_real *x,
                      hpct_ref_real *diff)
{
    double loss = 0, share = 1.0 / c->classes;
    for (int i = 0; i < c->classes; i++) {
        double error = (double) x[i] - wanted(c, s, i);
        loss += share * error * error;
        if (diff != NULL)
            diff[i] = (hpct_ref_real) (factor * share * 2 * error);
    }
    return loss;
}

/* ---- focal losses (Lin et al., Focal Loss for Dense Object Detection, ICCV 2017) ---- */

/* b (y alpha + (1 - y)(1 - alpha)) m^gamma of a binary cross-entropy b with slope db; m = y (1 - p)
 * + (1 - y) p with slope dm. *slope: of all. */
static double focused(const hpct_backend_loss_call *c, double y, double b, double db, double m,
                      double dm, double *slope)
{
    double gamma = (double) c->gamma, alpha = (double) c->alpha, power = pow(m, gamma);
    double weight = alpha > 0 ? y * alpha + (1 - y) * (1 - alpha) : 1;
    *slope = weight * (power * db + (m > 0 ? gamma * pow(m, gamma - 1) * dm * b : 0));
    return weight * power * b;
}

static double binary_focal_from_logits(const hpct_backend_loss_call *c, int s, double factor,
                                       const hpct_ref_real *x, hpct_ref_real *diff)
{
    double loss = 0, share = 1.0 / c->classes, slope;
    for (int i = 0; i < c->classes; i++) {
        double v = (double) x[i], y = smoothed(c, s, i), p = 1 / (1 + exp(-v)),
               q = 1 / (1 + exp(v));
        double b = fmax(v, 0) - v * y + log1p(exp(-fabs(v)));
        loss += share * focused(c, y, b, p - y, y * q + (1 - y) * p, (1 - 2 * y) * p * q, &slope);
        if (diff != NULL)
            diff[i] = (hpct_ref_real) (factor * share * slope);
    }
    return loss;
}

static double binary_focal(const hpct_backend_loss_call *c, int s, double factor,
                           const hpct_ref_real *x, hpct_ref_real *diff)
{
    double loss = 0, share = 1.0 / c->classes, slope;
    for (int i = 0; i < c->classes; i++) {
        double v = (double) x[i], p = clip(v), y = smoothed(c, s, i);
        double b = -(y * log(p) + (1 - y) * log(1 - p));
        double db = is_clipped(v) ? 0 : (1 - y) / (1 - p) - y / p;
        loss += share * focused(c, y, b, db, y * (1 - v) + (1 - y) * v, 1 - 2 * y, &slope);
        if (diff != NULL)
            diff[i] = (hpct_ref_real) (factor * share * slope);
    }
    return loss;
}

/* -alpha (1 - q)^gamma y log q of a probability, clipped; its slope times q. */
static double focal_term(const hpct_backend_loss_call *c, double y, double q, double *slope)
{
    double gamma = (double) c->gamma, p = clip(q), power = pow(1 - p, gamma - 1);
    double weight = (double) c->alpha * y * power;
    *slope = is_clipped(q) ? 0 : weight * (gamma * q * log(q) - (1 - q));
    return -weight * (1 - p) * log(p);
}

static double focal_from_logits(const hpct_backend_loss_call *c, int s, double factor,
                                const hpct_ref_real *x, hpct_ref_real *diff)
{
    double top = (double) x[0], sum = 0, loss = 0, inner = 0, slope;
    for (int i = 1; i < c->classes; i++)
        top = fmax(top, (double) x[i]);
    for (int i = 0; i < c->classes; i++)
        sum += exp((double) x[i] - top);
    for (int i = 0; i < c->classes; i++) {
        loss += focal_term(c, smoothed(c, s, i), exp((double) x[i] - top) / sum, &slope);
        inner += slope;
    }
    for (int i = 0; diff != NULL && i < c->classes; i++) {
        double q = exp((double) x[i] - top) / sum;
        focal_term(c, smoothed(c, s, i), q, &slope);
        diff[i] = (hpct_ref_real) (factor * (slope - q * inner));
    }
    return loss;
}

static double focal(const hpct_backend_loss_call *c, int s, double factor, const hpct_ref_real *x,
                    hpct_ref_real *diff)
{
    double sum = 0, loss = 0, inner = 0, slope;
    for (int i = 0; i < c->classes; i++)
        sum += (double) x[i];
    for (int i = 0; i < c->classes; i++) {
        loss += focal_term(c, smoothed(c, s, i), (double) x[i] / sum, &slope);
        inner += slope;
    }
    for (int i = 0; diff != NULL && i < c->classes; i++) {
        double q = (double) x[i] / sum;
        focal_term(c, smoothed(c, s, i), q, &slope);
        diff[i] =
            (hpct_ref_real) (q > 0 ? factor * (slope / q - inner) / sum : -factor * inner / sum);
    }
    return loss;
}

/* ---- others ---- */

static double huber(const hpct_backend_loss_call *c, int s, double factor, const hpct_ref_real *x,
                    hpct_ref_real *diff)
{
    double loss = 0, share = 1.0 / c->classes, delta = (double) c->delta;
    for (int i = 0; i < c->classes; i++) {
        double error = (double) x[i] - wanted(c, s, i), size = fabs(error);
        loss += share * (size <= delta ? error * error / 2 : delta * (size - delta / 2));
        if (diff != NULL)
            diff[i] =
                (hpct_ref_real) (factor * share * (size <= delta ? error : copysign(delta, error)));
    }
    return loss;
}

static double clip_to_one(double p)
{
    return p < CLIP_LOW ? CLIP_LOW : p > 1 ? 1 : p;
}

static double divergence(const hpct_backend_loss_call *c, int s, double factor,
                         const hpct_ref_real *x, hpct_ref_real *diff)
{
    double loss = 0;
    for (int i = 0; i < c->classes; i++) {
        double v = (double) x[i], y = clip_to_one(wanted(c, s, i));
        loss += y * log(y / clip_to_one(v));
        if (diff != NULL)
            diff[i] = (hpct_ref_real) (v < CLIP_LOW || v > 1 ? 0 : -factor * y / v);
    }
    return loss;
}

/* ---- metrics ---- */

static int first_largest(int classes, const hpct_ref_real *x)
{
    int best = 0;
    for (int i = 1; i < classes; i++) {
        if (x[i] > x[best])
            best = i;
    }
    return best;
}

static int class_of(const hpct_backend_loss_call *c, int s)
{
    int best = 0;
    if (c->targets == NULL)
        return c->labels[s];
    for (int i = 1; i < c->classes; i++) {
        if (wanted(c, s, i) > wanted(c, s, best))
            best = i;
    }
    return best;
}

/* As Keras' class_weight; with one output the class is the target, 0 or 1. */
static double weight_of(const hpct_backend_loss_call *c, int s)
{
    if (c->class_weights == NULL)
        return 1;
    int class = c->classes == 1 ? wanted(c, s, 0) > 0.5 : class_of(c, s);
    return (double) c->class_weights[class];
}

/* Keras' binary_accuracy of a sample: the share of outputs on their targets' sides. */
static double outputs_correct(const hpct_backend_loss_call *c, int s, const hpct_ref_real *x)
{
    int correct = 0;
    for (int i = 0; i < c->classes; i++)
        correct += wanted(c, s, i) == (x[i] > (hpct_ref_real) c->threshold ? 1 : 0);
    return (double) correct / c->classes;
}

static void add_errors(const hpct_backend_loss_call *c, int s, const hpct_ref_real *x)
{
    double absolute = 0, square = 0;
    for (int i = 0; i < c->classes; i++) {
        double error = (double) x[i] - wanted(c, s, i);
        absolute += fabs(error);
        square += error * error;
    }
    c->sums->correct += absolute / c->classes;
    c->sums->in_top_k += square / c->classes;
}

/* Keras' binary accuracy with one output, else whether the class has the largest output. */
static bool is_correct(const hpct_backend_loss_call *c, int s, const hpct_ref_real *x)
{
    if (c->classes == 1)
        return (x[0] > (hpct_ref_real) c->threshold) == (wanted(c, s, 0) != 0) &&
               (wanted(c, s, 0) == 0 || wanted(c, s, 0) == 1);
    return first_largest(c->classes, x) == class_of(c, s);
}

/* Whether fewer than top_k outputs are larger than the class'. */
static bool is_in_top(const hpct_backend_loss_call *c, int s, const hpct_ref_real *x)
{
    int class = class_of(c, s), larger = 0;
    if (c->classes == 1 || !isfinite((double) x[class]))
        return false;
    for (int i = 0; i < c->classes; i++)
        larger += x[i] > x[class];
    return larger < c->top_k;
}

static void judge_sample(const hpct_backend_loss_call *c, int s, const hpct_ref_real *x)
{
    if (c->judged == HPCT_TARGETS_NUMBERS) {
        add_errors(c, s, x);
    } else if (c->judged == HPCT_TARGETS_BINARY) {
        c->sums->correct += outputs_correct(c, s, x);
    } else {
        c->sums->correct += is_correct(c, s, x);
        c->sums->in_top_k += is_in_top(c, s, x);
    }
}

void HPCT_REF(loss_rows)(const hpct_backend_loss_call *call, const hpct_ref_real *src,
                         hpct_ref_real *diff_src)
{
    static double (*const losses[HPCT_BACKEND_LOSS_FORMS])(
        const hpct_backend_loss_call *, int, double, const hpct_ref_real *, hpct_ref_real *) = {
        [HPCT_BACKEND_LOSS_LOGITS] = from_logits,
        [HPCT_BACKEND_LOSS_PROBABILITIES] = from_probabilities,
        [HPCT_BACKEND_LOSS_DISTRIBUTION] = from_distribution,
        [HPCT_BACKEND_LOSS_BINARY_LOGITS] = binary_from_logits,
        [HPCT_BACKEND_LOSS_BINARY] = binary,
        [HPCT_BACKEND_LOSS_SQUARED] = squared,
        [HPCT_BACKEND_LOSS_BINARY_FOCAL_LOGITS] = binary_focal_from_logits,
        [HPCT_BACKEND_LOSS_BINARY_FOCAL] = binary_focal,
        [HPCT_BACKEND_LOSS_FOCAL_LOGITS] = focal_from_logits,
        [HPCT_BACKEND_LOSS_FOCAL] = focal,
        [HPCT_BACKEND_LOSS_HUBER] = huber,
        [HPCT_BACKEND_LOSS_DIVERGENCE] = divergence,
    };
    *call->sums = (hpct_backend_batch_sums){0};
    for (int s = 0; s < call->n; s++) {
        size_t at = (size_t) s * (size_t) call->classes;
        const hpct_ref_real *x = src + at;
        double weight = weight_of(call, s);
        call->sums->loss += weight * losses[call->form](call, s, weight * factor_of_all(call), x,
                                                        diff_src != NULL ? diff_src + at : NULL);
        judge_sample(call, s, x);
    }
}
