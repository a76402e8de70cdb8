/* Parameters are on parameter servers, from which workers pull them and to which they push
 * gradients: ranks do not step together, so this strategy replaces fit's loop by its own
 * (agent/ps/). */
#include "agent/strategy/strategy.h"
#include "agent/data/dataset.h"
#include "agent/ps/leader.h"
#include "agent/ps/run.h"
#include "agent/rank/stop.h"
#include "base/status.h"
#include "nn/run/step.h"

#include <math.h>

/* Memory of a worker's model; its copy of the states before the step is not counted. */
static hpct_status servers_need(const hpct_strategy_plan *plan, size_t *bytes)
{
    hpct_run_memory_plan memory;
    int sizes[HPCT_STRATEGY_SIZES], num = plan->num_batch_sizes + plan->num_evaluation_sizes;
    for (int i = 0; i < num; i++)
        sizes[i] = i < plan->num_batch_sizes ? plan->batch_sizes[i]
                                             : plan->evaluation_sizes[i - plan->num_batch_sizes];
    hpct_run_build_options options = {.batch_sizes = sizes,
                                      .num_batch_sizes = num,
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

static hpct_status stopped_too(const hpct_ps_run *run, int signal)
{
    return hpct_fail(HPCT_ERR_STOPPED, "%s: stopped by %s", run->name, hpct_rank_stop_name(signal));
}

static hpct_status serve(hpct_ps_run *run, hpct_fit_result *result)
{
    hpct_ps_leader *leader = NULL;
    hpct_status status = run->index == 0 ? hpct_ps_leader_new(&leader, run) : HPCT_OK;
    if (status == HPCT_OK)
        status = hpct_ps_serve(run, leader, &result->signal);
    if (status == HPCT_OK && leader != NULL)
        status = hpct_ps_leader_finish(leader, result);
    hpct_ps_leader_free(leader);
    return status;
}

static hpct_status servers_fit(hpct_context *context, hpct_model *model, const hpct_dataset *train,
                               const hpct_fit_options *options, int64_t max_steps,
                               hpct_fit_result *result)
{
    hpct_ps_run run = {.context = context,
                       .model = model,
                       .train = train,
                       .options = *options,
                       .max_steps = max_steps};
    hpct_fit_result own = {.train = HPCT_RESULTS_NO_METRICS, .validation = HPCT_RESULTS_NO_METRICS};
    if (!hpct_context_is_apart(context))
        return hpct_fail(HPCT_ERR_USAGE, "--strategy parameter-server needs a context of "
                                         "hpct_context_open_apart");
    hpct_status status = hpct_ps_run_prepare(&run);
    if (status == HPCT_OK) {
        hpct_rank_stop_begin();
        status = run.serves ? serve(&run, &own) : hpct_ps_work(&run, &own.signal);
        if (status == HPCT_ERR_STOPPED && own.signal == 0) /* before the first step */
            own.signal = hpct_rank_stop_signal();
        hpct_rank_stop_end();
    }
    /* of a run that is stopped, the steps since the last checkpoint are lost */
    if (own.signal != 0 && options->checkpoint_dir != NULL && !run.saved)
        own.steps = 0;
    else if (own.signal != 0 && own.steps == 0)
        own.steps = run.saved;
    if (status == HPCT_OK && own.signal != 0)
        status = stopped_too(&run, own.signal);
    hpct_ps_run_free(&run);
    if (result != NULL)
        *result = own;
    return status;
}

const hpct_strategy_ops hpct_ps_parameter_server = {
    .name = "parameter-server",
    .need = servers_need,
    .open = servers_open,
    .fit = servers_fit,
};
