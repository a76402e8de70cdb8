/* agent/cost/sum_network.h - measures the network for hybrid's sums within a step: over MPI or own
 * connections (agent/comm/fabric.h). */
#ifndef HPCT_AGENT_COST_SUM_NETWORK_H
#define HPCT_AGENT_COST_SUM_NETWORK_H

#include "agent/comm/network.h"

#include <hpctrain/context.h>

/* As hpct_comm_network_measure; opens and closes connections if needed. Collective. */
hpct_status hpct_cost_sum_network_measure(hpct_context *context, double enough,
                                          hpct_comm_network *network);

#endif
