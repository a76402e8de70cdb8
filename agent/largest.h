/* agent/largest.h - the largest of what each rank has measured: the slowest rank decides. */
#ifndef HPCT_AGENT_LARGEST_H
#define HPCT_AGENT_LARGEST_H

#include <hpctrain/context.h>

/* Each of values[count] becomes the largest over the ranks; not a number where it is none on any of
 * them. Collective. */
hpct_status hpct_largest(hpct_context *context, double *values, int count);

#endif
