#include "agent/cost/forecast.h"

#include "agent/cost/compute.h"
#include "agent/cost/payoff.h"
#include "agent/cost/sum_network.h"
#include "agent/data/sampler.h"
#include "agent/rank/context.h"
#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MEDIAN_SECONDS 0.04

static hpct_status predict_all(hpct_cost_forecast *out, const hpct_cost_compute *compute,
                               hpct_cost_payoff_case *payoff, int ranks, double samples)
{
    size_t bytes = 2 * (size_t) compute->num_parts * sizeof(hpct_cost_part_work);
    hpct_cost_part_work *work = calloc(1, bytes);
    hpct_cost_model cost;
    if (work == NULL)
        return hpct_fail_memory(bytes);
    hpct_cost_compute_cost(compute, work, &cost);
    payoff->cost = &cost;
    for (int scheme = 0; scheme < HPCT_COST_SCHEMES; scheme++) {
        hpct_cost_prediction p = hpct_cost_predict((hpct_cost_scheme) scheme, &cost,
                                                   payoff->network, &payoff->how, ranks, samples);
        out->seconds[scheme] = p.possible ? p.step_seconds : NAN;
    }
    out->payoff = hpct_cost_payoff(payoff);
    payoff->cost = NULL;
    free(work);
    return HPCT_OK;
}

hpct_status hpct_cost_forecast_make(hpct_cost_forecast *out, hpct_context *context,
                                    hpct_model *model, const hpct_strategy_options *options,
                                    const bool allowed[HPCT_COST_SCHEMES], int global_batch,
                                    bool same_global)
{
    hpct_comm *comm = hpct_context_comm(context);
    hpct_cost_compute compute = {0};
    hpct_comm_network network, sums;
    bool hybrid = allowed[HPCT_COST_SCHEME_HYBRID_ROWS] ||
                  allowed[HPCT_COST_SCHEME_HYBRID_COLUMNS] || allowed[HPCT_COST_SCHEME_HYBRID_BACK];
    int64_t begin, share = hpct_data_slice(global_batch, 0, comm->size, &begin);
    const hpct_cost_compute_effort effort = {
        .least_steps = 1, .seconds = MEDIAN_SECONDS, .rates = allowed[HPCT_COST_SCHEME_POWERSGD]};
    hpct_cost_payoff_case payoff = {
        .network = &network,
        .how = {.sums = hybrid ? &sums : NULL,
                .bucket_bytes = (double) options->bucket_bytes,
                .float_bytes = options->wire == HPCT_WIRE_FP32 ? 4 : 2,
                .powersgd_rank = HPCT_COST_POWERSGD_RANK,
                .local_steps = options->local_steps > 0 ? options->local_steps : HPCT_LOCAL_STEPS},
        .samples = (double) (same_global ? global_batch : share),
        .same_global = same_global,
    };
    memset(out, 0, sizeof *out); /* padding included: the struct is sent as bytes */
    memcpy(payoff.allowed, allowed, sizeof payoff.allowed);
    hpct_status status = hpct_context_network(context, &network);
    if (status == HPCT_OK && hybrid)
        status = hpct_cost_sum_network_measure(context, HPCT_COMM_NETWORK_QUICKLY, &sums);
    if (status == HPCT_OK)
        status = hpct_context_agree(
            context, hpct_cost_compute_measure(&compute, model, (int) share, &effort));
    if (status == HPCT_OK)
        status = hpct_context_agree(
            context, predict_all(out, &compute, &payoff, comm->size, (double) share));
    if (status == HPCT_OK)
        status = comm->ops->broadcast(comm, out, sizeof *out, 0);
    hpct_cost_compute_free(&compute);
    return status;
}
