/* The device of all ranks. */
#include "agent/rank/context.h"
#include "agent/rank/largest.h"
#include "base/status.h"
#include "nn/run/step.h"

#include <hpctrain/train.h>
#include <string.h>

hpct_status hpct_set_device(hpct_context *context, hpct_model *model, const char *device)
{
    hpct_comm *comm = hpct_context_comm(context);
    bool carries = comm->size == 1 || !comm->ops->of_hosts;
    if (!carries && strcmp(device, "auto") == 0)
        device = "cpu";
    if (hpct_context_serves(
            context)) /* a parameter server stores variables only: any precision is possible */
        return hpct_model_set_device(model, "cpu");
    hpct_status status = hpct_model_set_device(model, device);
    if (status == HPCT_OK && !carries && hpct_model_on_device(model))
        status = hpct_fail(HPCT_ERR_CONFIG, "the ranks were joined for processors alone: open the "
                                            "context with hpct_context_open_on(..., \"cuda\")");
    if (status == HPCT_OK)
        status = hpct_model_check_device(model);
    status = hpct_context_agree(context, status);
    double on_cpu = hpct_model_on_device(model) ? 0 : 1;
    if (status == HPCT_OK)
        status = hpct_rank_largest(context, &on_cpu, 1);
    if (status == HPCT_OK && on_cpu > 0 && hpct_model_on_device(model)) {
        status = hpct_model_set_device(model, "cpu");
        if (status == HPCT_OK)
            status = hpct_model_check_device(model);
    }
    return hpct_context_agree(context, status);
}
