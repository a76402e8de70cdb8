/* agent/ps/partition.h - which part of an arena each parameter server owns.
 * Knows nothing of models or connections. */
#ifndef HPCT_PS_PARTITION_H
#define HPCT_PS_PARTITION_H

#include <stddef.h>

/* The last place at or before `at` where [0, total) may be cut; 0 and total always are such places.
 */
typedef size_t (*hpct_ps_cut)(const void *of, size_t at);

/* bounds[servers + 1], ascending from 0 to total: server s owns [bounds[s], bounds[s + 1]), which
 * may be empty. Of all ways to cut, one whose largest part is the smallest: bisection of that size,
 * each tried by filling the servers one after the other. */
void hpct_ps_partition(size_t *bounds, int servers, size_t total, hpct_ps_cut cut, const void *of);

#endif
