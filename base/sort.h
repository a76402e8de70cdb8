/* base/sort.h - numbers in order. */
#ifndef HPCT_BASE_SORT_H
#define HPCT_BASE_SORT_H

#include <stddef.h>

/* Sorts by size, the smallest first; without NAN. */
void hpct_sort_numbers(double *values, size_t count);

#endif
