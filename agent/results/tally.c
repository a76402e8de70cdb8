/* Counts of an evaluation, as Keras' metrics and scikit-learn's define them. */
#include "agent/results/tally.h"

#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 199 /* of outputs; Keras' AUC has a threshold at each end of one: 200 */

struct hpct_results_tally {
    hpct_results_tally_options options;
    int classes;
    int64_t *counts; /* [num] of all: */
    size_t num;
    int64_t *samples, *predicted, *hits; /* [classes] */
    int64_t *buckets;                    /* [outputs][2][BUCKETS]: of the rest, of the class */
    int64_t *matrix;                     /* [classes][classes] true, predicted */
    double *row;                         /* [outputs] probabilities of a sample */
    hpct_metrics sums;                   /* of numbers, over counts[0] samples */
};

static hpct_status check(const hpct_results_tally_options *o)
{
    if (!o->numbers && o->outputs == 1 && o->labels != 2)
        return hpct_fail(HPCT_ERR_USAGE,
                         "--metrics and --confusion-matrix are for classes: the model has one "
                         "output, and a loss for which that is a number");
    if (o->matrix && o->outputs > HPCT_RESULTS_TALLY_CLASSES)
        return hpct_fail(HPCT_ERR_USAGE,
                         "--confusion-matrix: %d classes are too many, it has at most %d",
                         o->outputs, HPCT_RESULTS_TALLY_CLASSES);
    return HPCT_OK;
}

hpct_status hpct_results_tally_open(hpct_results_tally **out,
                                    const hpct_results_tally_options *options)
{
    HPCT_TRY(check(options));
    size_t classes = options->numbers ? 0 : options->outputs == 1 ? 2 : (size_t) options->outputs;
    size_t buckets =
        options->metrics & HPCT_METRIC_AUC ? (size_t) options->outputs * 2 * BUCKETS : 0;
    size_t num = 3 * classes + buckets + (options->matrix ? classes * classes : 0) +
                 (options->numbers ? 1 : 0);
    hpct_results_tally *tally = calloc(1, sizeof *tally);
    if (tally == NULL)
        return hpct_fail_memory(sizeof *tally);
    *tally = (hpct_results_tally){.options = *options, .classes = (int) classes, .num = num};
    tally->counts = calloc(num, sizeof *tally->counts);
    tally->row = calloc((size_t) options->outputs, sizeof *tally->row);
    if (tally->counts == NULL || tally->row == NULL) {
        hpct_results_tally_close(tally);
        return hpct_fail_memory(num * sizeof *tally->counts);
    }
    tally->samples = tally->counts;
    tally->predicted = tally->samples + classes;
    tally->hits = tally->predicted + classes;
    tally->buckets = tally->hits + classes;
    tally->matrix = tally->buckets + buckets;
    *out = tally;
    return HPCT_OK;
}

void hpct_results_tally_close(hpct_results_tally *tally)
{
    if (tally == NULL)
        return;
    free(tally->counts);
    free(tally->row);
    free(tally);
}

void hpct_results_tally_clear(hpct_results_tally *tally)
{
    memset(tally->counts, 0, tally->num * sizeof *tally->counts);
    tally->sums = (hpct_metrics){0};
}

int64_t *hpct_results_tally_counts(hpct_results_tally *tally, size_t *num)
{
    *num = tally->num;
    return tally->counts;
}

hpct_metrics *hpct_results_tally_sums(hpct_results_tally *tally)
{
    return &tally->sums;
}

int hpct_results_tally_classes(const hpct_results_tally *tally)
{
    return tally->classes;
}

/* ---- counting ---- */

/* The first largest output; of one, whether it is above probability 0.5. As accuracy counts. */
static int predict(const hpct_results_tally *tally, const float *x)
{
    int best = 0;
    if (tally->options.outputs == 1)
        return x[0] > (tally->options.logits ? 0.0F : 0.5F);
    for (int i = 1; i < tally->classes; i++)
        best = x[i] > x[best] ? i : best;
    return best;
}

static void find_probabilities(hpct_results_tally *tally, const float *x)
{
    int n = tally->options.outputs;
    double top = (double) x[0], sum = 0;
    for (int i = 1; i < n; i++)
        top = fmax(top, (double) x[i]);
    for (int i = 0; i < n; i++)
        sum += exp((double) x[i] - top);
    for (int i = 0; i < n && tally->options.logits; i++)
        tally->row[i] = n == 1 ? 1 / (1 + exp(-(double) x[i])) : exp((double) x[i] - top) / sum;
    for (int i = 0; i < n && !tally->options.logits; i++)
        tally->row[i] = (double) x[i];
}

/* Keras' bucket: thresholds k / 199 below the output, in floats. */
static hpct_status count_buckets(hpct_results_tally *tally, const float *x, int label)
{
    find_probabilities(tally, x);
    for (int i = 0; i < tally->options.outputs; i++) {
        double p = tally->row[i];
        if (p < 0 || p > 1 + 1e-6)
            return hpct_fail(HPCT_ERR_DATA,
                             "--metrics auc needs probabilities, but an output is %g: end the "
                             "model with a softmax or sigmoid",
                             p);
        float scaled = ceilf((float) p * (float) BUCKETS) - 1;
        int at = scaled > 0 ? (int) fminf(scaled, BUCKETS - 1) : 0; /* NaN: 0 */
        bool own = tally->options.outputs == 1 ? label == 1 : label == i;
        tally->buckets[((size_t) i * 2 + own) * BUCKETS + (size_t) at]++;
    }
    return HPCT_OK;
}

hpct_status hpct_results_tally_add(hpct_results_tally *tally, const float *outputs,
                                   const int32_t *labels, int n)
{
    size_t classes = (size_t) tally->classes;
    for (int s = 0; s < n; s++) {
        const float *x = outputs + (size_t) s * (size_t) tally->options.outputs;
        int label = labels[s], predicted = predict(tally, x);
        tally->samples[label]++;
        tally->predicted[predicted]++;
        tally->hits[label] += predicted == label;
        if (tally->options.matrix)
            tally->matrix[(size_t) label * classes + (size_t) predicted]++;
        if (tally->options.metrics & HPCT_METRIC_AUC)
            HPCT_TRY(count_buckets(tally, x, label));
    }
    return HPCT_OK;
}

/* Keras' backend.epsilon() stands for smaller targets. */
static double percentage_error(double output, double target)
{
    return 100 * fabs(target - output) / fmax(fabs(target), 1e-7);
}

/* The mean over the outputs of each sample counts, as in Keras. */
void hpct_results_tally_add_numbers(hpct_results_tally *tally, const float *outputs,
                                    const float *targets, int n)
{
    int num = tally->options.outputs;
    for (int i = 0; i < n * num; i++)
        tally->sums.mape += percentage_error((double) outputs[i], (double) targets[i]) / num;
    tally->counts[0] += n;
}

/* ---- metrics ---- */

static double ratio(double a, double b)
{
    return b != 0 ? a / b : 0;
}

/* Under the ROC curve, by trapezoids, from the highest threshold to the lowest. */
static double area(const int64_t *rest, const int64_t *own)
{
    double negatives = 0, positives = 0, true_ones = 0, sum = 0;
    for (int i = 0; i < BUCKETS; i++) {
        negatives += (double) rest[i];
        positives += (double) own[i];
    }
    for (int i = BUCKETS - 1; i >= 0; i--) {
        double height = true_ones + (double) own[i] / 2;
        sum += ratio((double) rest[i], negatives) * ratio(height, positives);
        true_ones += (double) own[i];
    }
    return sum;
}

hpct_results_class_metrics hpct_results_tally_class(const hpct_results_tally *tally, int class)
{
    double hits = (double) tally->hits[class], samples = (double) tally->samples[class],
           predicted = (double) tally->predicted[class];
    hpct_results_class_metrics m = {.samples = tally->samples[class],
                                    .of = {.precision = ratio(hits, predicted),
                                           .recall = ratio(hits, samples),
                                           .f1 = ratio(2 * hits, samples + predicted),
                                           .auc = NAN}};
    bool single = tally->options.outputs == 1;
    if (tally->options.metrics & HPCT_METRIC_AUC && !(single && class == 0)) {
        const int64_t *at = tally->buckets + (single ? 0 : (size_t) class) * 2 * BUCKETS;
        m.of.auc = area(at, at + BUCKETS);
    }
    return m;
}

/* Of the metric, over the classes that count. */
static double mean(const hpct_results_tally *tally, const hpct_results_metric *metric)
{
    int first = tally->options.outputs == 1 ? 1 : 0;
    double sum = 0;
    if (tally->options.numbers)
        return hpct_results_metric_get(metric, &tally->sums) / (double) tally->counts[0];
    for (int i = first; i < tally->classes; i++) {
        hpct_results_class_metrics m = hpct_results_tally_class(tally, i);
        sum += hpct_results_metric_get(metric, &m.of);
    }
    return sum / (tally->classes - first);
}

void hpct_results_tally_get(const hpct_results_tally *tally, hpct_metrics *metrics)
{
    for (const hpct_results_metric *m = hpct_results_metric_table; m->name != NULL; m++) {
        if (m->bit != 0)
            hpct_results_metric_set(m, metrics,
                                    hpct_results_tally_has(tally, m) ? mean(tally, m) : NAN);
    }
}

bool hpct_results_tally_has(const hpct_results_tally *tally, const hpct_results_metric *metric)
{
    return tally != NULL && (tally->options.metrics & metric->bit) != 0;
}

const int64_t *hpct_results_tally_row(const hpct_results_tally *tally, int class)
{
    return tally->matrix + (size_t) class * (size_t) tally->classes;
}
