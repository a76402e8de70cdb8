#include "agent/cost/sum_network.h"

#include "agent/comm/circulant.h"
#include "agent/comm/fabric.h"
#include "agent/rank/context.h"

static hpct_status sum_by_mpi(void *argument, float *data, size_t count)
{
    hpct_comm *comm = argument;
    return comm->ops->allreduce_sum(comm, data, count);
}

static hpct_status sum_by_own(void *argument, float *data, size_t count)
{
    return hpct_comm_circulant_sum(argument, data, count);
}

hpct_status hpct_cost_sum_network_measure(hpct_context *context, double enough,
                                          hpct_comm_network *network)
{
    hpct_comm *comm = hpct_context_comm(context);
    hpct_comm_circulant *circulant = NULL;
    bool own = false;
    int seconds = 0;
    hpct_status status =
        hpct_comm_fabric_choose(&own, comm, hpct_context_config(context)->num_nodes);
    if (status == HPCT_OK && own)
        status = hpct_context_agree(context, hpct_context_join_seconds(&seconds));
    if (status == HPCT_OK && own)
        status = hpct_comm_circulant_open(&circulant, comm, HPCT_COMM_NETWORK_MOST_FLOATS, seconds);
    if (status == HPCT_OK)
        status =
            own ? hpct_comm_network_measure_sums(comm, sum_by_own, circulant, 1, 1, enough, 0,
                                                 network)
                : hpct_comm_network_measure_sums(comm, sum_by_mpi, comm, 1, 1, enough, 0, network);
    hpct_comm_circulant_close(circulant);
    return status;
}
