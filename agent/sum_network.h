/* agent/sum_network.h - the network as it is for sums within a step, which hybrid waits for: by
 * MPI, or over connections of our own (agent/comm/fabric.h). */
#ifndef HPCT_AGENT_SUM_NETWORK_H
#define HPCT_AGENT_SUM_NETWORK_H

#include "agent/comm/network.h"

#include <hpctrain/context.h>

/* As hpct_network_measure; opens and closes the connections, if any. Collective. */
hpct_status hpct_sum_network_measure(hpct_context *context, double enough, hpct_network *network);

#endif
