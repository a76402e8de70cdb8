/* What other strategies' callers need of parameter-server, whose loop is in agent/ps/. */
#include "agent/strategy/strategy.h"
#include "base/status.h"

/* Memory of a worker's model; its copy of the states before the step is not counted. */
static hpct_status servers_need(const hpct_strategy_plan *plan, size_t *bytes)
{
    hpct_run_memory_plan memory;
    int sizes[HPCT_STRATEGY_SIZES];
    hpct_run_build_options options = {.batch_sizes = sizes,
                                      .num_batch_sizes = hpct_strategy_plan_sizes(plan, sizes),
                                      .dense_targets = plan->dense_targets,
                                      .plain_layout = true};
    hpct_status status = hpct_model_plan(plan->model, &options, &memory);
    *bytes = hpct_run_memory_plan_growth(&memory);
    return status;
}

static hpct_status servers_open(hpct_strategy **out, const hpct_strategy_plan *plan)
{
    (void) out;
    (void) plan;
    return hpct_fail(HPCT_ERR_USAGE, "--strategy parameter-server is for fit alone");
}

const hpct_strategy_ops hpct_strategy_parameter_server = {
    .name = "parameter-server",
    .apart = true,
    .need = servers_need,
    .open = servers_open,
};
