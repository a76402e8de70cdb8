/* Penalties of regularizers, over the parameters that have one. A step allocates nothing. */
#include "nn/run/penalty.h"

#include "base/status.h"
#include "nn/plan/run.h"

#include <stdlib.h>

static hpct_backend_penalty_call call_of(const hpct_model *model)
{
    const hpct_run *run = model->run;
    return (hpct_backend_penalty_call){
        .penalties = run->arenas.penalties,
        .num = run->arenas.num_penalties,
        .param = run->arenas.parameters,
        /* the update takes the mean of as many gradients */
        .factor = (float) model->optimizer.gradient_accumulation_steps,
        .scaling = run->arenas.scaling,
    };
}

/* The part of a penalty in [begin, end); its count is 0 if there is none. */
static hpct_backend_penalty cut_out(const hpct_backend_penalty *whole, size_t begin, size_t end)
{
    hpct_backend_penalty part = *whole;
    size_t last = part.offset + part.count < end ? part.offset + part.count : end;
    part.offset = part.offset > begin ? part.offset : begin;
    part.count = last > part.offset ? last - part.offset : 0;
    return part;
}

hpct_status hpct_run_penalize(const hpct_model *model, float *gradients, size_t begin, size_t end)
{
    const hpct_run *run = model->run;
    hpct_backend_penalty_call call = call_of(model);
    call.grad = gradients;
    if (call.num == 0 || run->emulation != NULL)
        return HPCT_OK;
    if (begin == 0 && end >= run->arenas.floats)
        return run->backend->penalize(&call);
    call.num = 1;
    for (int i = 0; i < run->arenas.num_penalties; i++) {
        hpct_backend_penalty part = cut_out(&run->arenas.penalties[i], begin, end);
        call.penalties = &part;
        if (part.count > 0)
            HPCT_TRY(run->backend->penalize(&call));
    }
    return HPCT_OK;
}

hpct_status hpct_model_penalize(hpct_model *model)
{
    if (model->run == NULL || !model->run->training)
        return hpct_fail(HPCT_ERR_USAGE, "model %s is not built for training", model->name);
    return hpct_run_penalize(model, model->run->arenas.gradients, 0, model->run->arenas.floats);
}

size_t hpct_model_penalty_floats(const hpct_model *model)
{
    const hpct_run *run = model->run;
    for (int i = 0; run != NULL && i < run->arenas.num_penalties; i++) {
        if (run->arenas.penalties[i].split)
            return 1;
    }
    return 0;
}

hpct_status hpct_run_weigh(const hpct_model *model)
{
    const hpct_run *run = model->run;
    size_t split = hpct_model_penalty_floats(model);
    if (run->arenas.num_penalties == 0)
        return HPCT_OK;
    hpct_backend_penalty_call call = call_of(model);
    call.sums = run->arenas.penalty;
    HPCT_TRY(run->backend->penalize(&call));
    return split > 0 && model->peers.sum != NULL
               ? model->peers.sum(model->peers.argument, run->arenas.penalty, split)
               : HPCT_OK;
}

hpct_status hpct_model_penalty(const hpct_model *model, double *penalty)
{
    const hpct_run *run = model->run;
    float parts[2] = {0, 0};
    *penalty = 0;
    if (run == NULL || run->arenas.num_penalties == 0 || run->emulation != NULL)
        return HPCT_OK;
    HPCT_TRY(hpct_run_weigh(model));
    HPCT_TRY(hpct_backend_memory_to_host(run->backend, parts, run->arenas.penalty, sizeof parts));
    *penalty = (double) parts[0] + (double) parts[1];
    return HPCT_OK;
}

char *hpct_model_list_penalties(const hpct_model *model)
{
    size_t size = 1 + (size_t) model->num_params * (sizeof model->params->name + 64), used = 0;
    char *list = calloc(size, 1);
    for (int i = 0; list != NULL && i < model->num_params; i++) {
        const hpct_graph_param *param = &model->params[i];
        if (!hpct_graph_param_has_penalty(param))
            continue;
        used +=
            (size_t) snprintf(list + used, size - used, "%s%s", used > 0 ? "," : "", param->name);
        if (param->l1 > 0)
            used += (size_t) snprintf(list + used, size - used, " l1=%g", param->l1);
        if (param->l2 > 0)
            used += (size_t) snprintf(list + used, size - used, " l2=%g", param->l2);
    }
    return list;
}
