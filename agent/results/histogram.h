/* agent/results/histogram.h - how many values are in each of 30 buckets of equal width, as
 * TensorBoard's histogram summaries count them (tensorboard/plugins/histogram/summary_v2.py). */
#ifndef HPCT_AGENT_RESULTS_HISTOGRAM_H
#define HPCT_AGENT_RESULTS_HISTOGRAM_H

#include <stddef.h>

#define HPCT_RESULTS_HISTOGRAM_BUCKETS 30

/* The last bucket includes its right edge. */
typedef struct hpct_results_histogram {
    double left[HPCT_RESULTS_HISTOGRAM_BUCKETS], right[HPCT_RESULTS_HISTOGRAM_BUCKETS],
        count[HPCT_RESULTS_HISTOGRAM_BUCKETS];
} hpct_results_histogram;

/* Values that are not finite are left out; all zeros if none is finite. If all are equal, they are
 * in the last bucket, and all edges are that value. */
void hpct_results_histogram_make(hpct_results_histogram *out, const float *values, size_t count);

#endif
