#include "base/sort.h"

#include <stdlib.h>

static int by_size(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

void hpct_sort_numbers(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_size);
}
