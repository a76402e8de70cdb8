/* fit with parameters on parameter servers, from which workers pull them and to which they push
 * gradients: the ranks do not step together. */
#include "agent/ps/fit.h"

#include "agent/ps/leader.h"
#include "agent/ps/run.h"
#include "agent/rank/stop.h"
#include "agent/train/fit.h"
#include "agent/train/targets.h"
#include "base/status.h"

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

hpct_status hpct_ps_fit(hpct_context *context, hpct_model *model, const hpct_dataset *train,
                        const hpct_fit_options *options, int64_t max_steps, hpct_fit_result *result)
{
    hpct_ps_run run = {.context = context,
                       .model = model,
                       .train = train,
                       .options = *options,
                       .max_steps = max_steps};
    hpct_fit_result own = {.train = HPCT_RESULTS_NO_METRICS, .validation = HPCT_RESULTS_NO_METRICS};
    HPCT_TRY(hpct_fit_check_apart(options));
    HPCT_TRY(hpct_train_targets_check_apart(train));
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
