/* agent/rank/largest.h - maximum over the ranks: the slowest rank decides. */
#ifndef HPCT_AGENT_RANK_LARGEST_H
#define HPCT_AGENT_RANK_LARGEST_H

#include <hpctrain/context.h>

/* Each of values[count] becomes the maximum over the ranks, NaN if it is NaN on any. Collective. */
hpct_status hpct_rank_largest(hpct_context *context, double *values, int count);

#endif
