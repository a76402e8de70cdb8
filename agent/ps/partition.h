/* agent/ps/partition.h - division of an arena among parameter servers.
 * Independent of models and connections. */
#ifndef HPCT_AGENT_PS_PARTITION_H
#define HPCT_AGENT_PS_PARTITION_H

#include <stddef.h>

/* The last position <= `at` where [0, total) may be cut; 0 and total always are such positions. */
typedef size_t (*hpct_ps_cut)(const void *of, size_t at);

/* bounds[servers + 1], ascending from 0 to total: server s owns [bounds[s], bounds[s + 1]), which
 * may be empty. Minimizes the largest part: bisection of its size, each tried by filling the
 * servers in turn. */
void hpct_ps_partition(size_t *bounds, int servers, size_t total, hpct_ps_cut cut, const void *of);

#endif
