/* Histograms of weights and gradients. */
#include "agent/results/histogram.h"

#include <math.h>

#define LAST (HPCT_RESULTS_HISTOGRAM_BUCKETS - 1)

static size_t find_range(const float *values, size_t count, double *least, double *most)
{
    size_t finite = 0;
    *least = INFINITY;
    *most = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i]))
            continue;
        finite++;
        *least = fmin(*least, (double) values[i]);
        *most = fmax(*most, (double) values[i]);
    }
    return finite;
}

void hpct_results_histogram_make(hpct_results_histogram *out, const float *values, size_t count)
{
    double least, most;
    *out = (hpct_results_histogram){.left = {0}};
    size_t finite = find_range(values, count, &least, &most);
    if (finite == 0)
        return;
    double width = (most - least) / HPCT_RESULTS_HISTOGRAM_BUCKETS;
    for (int i = 0; i < HPCT_RESULTS_HISTOGRAM_BUCKETS; i++) {
        out->left[i] = least + i * width;
        out->right[i] = i == LAST ? most : least + (i + 1) * width;
    }
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i]))
            continue;
        double at = width > 0 ? floor(((double) values[i] - least) / width) : LAST;
        out->count[at < LAST ? (int) at : LAST]++;
    }
}
