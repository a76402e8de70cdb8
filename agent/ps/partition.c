/* Minimizes the largest part, by bisection. */
#include "agent/ps/partition.h"

#include <stdbool.h>

/* Whether the total can be divided so that no server owns more than `limit`. */
static bool fill(size_t *bounds, int servers, size_t total, hpct_ps_cut cut, const void *of,
                 size_t limit)
{
    bounds[0] = 0;
    for (int s = 0; s < servers; s++) {
        size_t left = total - bounds[s];
        size_t end = left <= limit ? total : cut(of, bounds[s] + limit);
        bounds[s + 1] = end > bounds[s] ? end : bounds[s];
    }
    return bounds[servers] == total;
}

void hpct_ps_partition(size_t *bounds, int servers, size_t total, hpct_ps_cut cut, const void *of)
{
    size_t too_small = 0, enough = total;
    while (enough - too_small > 1) {
        size_t middle = too_small + (enough - too_small) / 2;
        if (fill(bounds, servers, total, cut, of, middle))
            enough = middle;
        else
            too_small = middle;
    }
    fill(bounds, servers, total, cut, of, enough);
}
