/* The table, and the metrics that a run has of it. */
#include "agent/results/metric.h"

#include <stdio.h>
#include <string.h>

#define ROW(name, member, larger, kind, bit)                                                       \
    {name, HPCT_RESULTS_METRIC_VAL name, offsetof(hpct_metrics, member), larger, kind, bit},
const hpct_results_metric hpct_results_metric_table[] = {
    HPCT_RESULTS_METRIC_TABLE(ROW){.name = NULL}};

double hpct_results_metric_get(const hpct_results_metric *metric, const hpct_metrics *values)
{
    return *(const double *) (const void *) ((const char *) values + metric->at);
}

void hpct_results_metric_set(const hpct_results_metric *metric, hpct_metrics *values, double value)
{
    *(double *) (void *) ((char *) values + metric->at) = value;
}

const char *hpct_results_metric_title(const hpct_results_metric *metric, bool of_validation)
{
    return of_validation ? metric->val_name : metric->name;
}

const hpct_results_metric *hpct_results_metric_find(const char *name, bool *of_validation)
{
    const hpct_results_metric *m = hpct_results_metric_table;
    *of_validation = strncmp(name, HPCT_RESULTS_METRIC_VAL, strlen(HPCT_RESULTS_METRIC_VAL)) == 0;
    while (m->name != NULL && strcmp(hpct_results_metric_title(m, *of_validation), name) != 0)
        m++;
    return m->name != NULL && (m->bit == 0 || *of_validation) ? m : NULL;
}

static bool has(const hpct_results_metric_choice *choice, const hpct_results_metric *m,
                bool of_validation)
{
    const bool kinds[] = {[HPCT_RESULTS_METRIC_OF_ALL] = true,
                          [HPCT_RESULTS_METRIC_OF_CLASSES] = choice->classes,
                          [HPCT_RESULTS_METRIC_OF_TOP_K] = choice->top_k,
                          [HPCT_RESULTS_METRIC_OF_NUMBERS] = choice->numbers};
    bool requested = m->bit == 0 || (of_validation && (choice->requested & m->bit) != 0);
    return kinds[m->kind] && requested && (choice->validation || !of_validation);
}

const hpct_results_metric *hpct_results_metric_next(const hpct_results_metric *before,
                                                    const hpct_results_metric_choice *choice,
                                                    bool of_validation)
{
    const hpct_results_metric *m = before != NULL ? before + 1 : hpct_results_metric_table;
    while (m->name != NULL && !has(choice, m, of_validation))
        m++;
    return m->name != NULL ? m : NULL;
}

const char *hpct_results_metric_list(char text[HPCT_RESULTS_METRIC_NAMES],
                                     const hpct_results_metric_choice *choice, bool of_validation)
{
    size_t length = 0;
    text[0] = '\0';
    for (const hpct_results_metric *m = NULL;
         (m = hpct_results_metric_next(m, choice, of_validation)) != NULL &&
         length < HPCT_RESULTS_METRIC_NAMES;)
        length +=
            (size_t) snprintf(text + length, HPCT_RESULTS_METRIC_NAMES - length, "%s%s",
                              length > 0 ? ", " : "", hpct_results_metric_title(m, of_validation));
    return text;
}

/* ---- for programs ---- */

static const hpct_results_metric *nth_requested(int index)
{
    const hpct_results_metric *m = hpct_results_metric_table;
    while (m->name != NULL && (m->bit == 0 || index-- > 0))
        m++;
    return m;
}

const char *hpct_metric_name(int index)
{
    return nth_requested(index)->name;
}

unsigned hpct_metric_bit(int index)
{
    return nth_requested(index)->bit;
}

/* Errors as Keras prints them; a share has four decimals. */
static void print(const hpct_results_metric *metric, double value, FILE *stream)
{
    fprintf(stream,
            metric->larger_is_better ? " - %s: %.4f"
            : fabs(value) >= 1e6     ? " - %s: %.1e"
            : fabs(value) <= 1e-3    ? " - %s: %.4e"
                                     : " - %s: %.4f",
            metric->name, value);
}

void hpct_metrics_print(const hpct_metrics *metrics, unsigned requested, FILE *stream)
{
    bool numbers = isnan(metrics->accuracy);
    const hpct_results_metric_choice choice = {
        .validation = true, .classes = !numbers, .numbers = numbers, .requested = requested};
    HPCT_RESULTS_METRIC_EACH (m, &choice, true)
        print(m, hpct_results_metric_get(m, metrics), stream);
}
