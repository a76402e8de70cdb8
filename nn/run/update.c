/* End of a step: gradient accumulation and the optimizer's update. Allocates nothing. */
#include "nn/run/clone.h"
#include "nn/run/run.h"

#include "base/status.h"
#include "nn/graph/optimizer.h"
#include "nn/run/emulate.h"
#include "nn/run/penalty.h"
#include "nn/run/replay.h"

#include <math.h>

static hpct_status need_training(const hpct_model *model)
{
    if (model->run == NULL || !model->run->training)
        return hpct_fail(HPCT_ERR_USAGE, "model %s is not built for training", model->name);
    return HPCT_OK;
}

void hpct_model_set_halvings(hpct_model *model, int halvings)
{
    model->halvings = halvings;
}

void hpct_model_set_learning_rate(hpct_model *model, double rate)
{
    model->rate = rate;
}

hpct_status hpct_model_accumulate(hpct_model *model, bool *due)
{
    hpct_status status = need_training(model);
    int cycle = model->optimizer.gradient_accumulation_steps;
    int64_t place = cycle > 0 ? model->steps % cycle : 0;
    *due = place == cycle - 1;
    if (status != HPCT_OK || cycle == 1)
        return status;
    hpct_run *run = model->run;
    float *sum = run->arenas.slot[HPCT_GRAPH_SLOT_ACCUMULATED];
    if (*due)
        return run->backend->accumulate(run->arenas.floats, sum, run->arenas.gradients, false);
    model->steps++;
    return run->backend->accumulate(run->arenas.floats, run->arenas.gradients, sum, place == 0);
}

/* A run's slots are consecutive, without those that RMSprop does not use; a call's have fixed
 * positions. */
static void give_slots(hpct_backend_update_call *call, const hpct_run *run, const hpct_optimizer *o)
{
    for (int k = 0; k < HPCT_GRAPH_MAX_SLOTS; k++)
        call->slot[k] = run->arenas.slot[k];
    if (o->kind != HPCT_RMSPROP)
        return;
    call->slot[0] = o->momentum > 0 ? run->arenas.slot[1] : NULL;
    call->slot[1] = run->arenas.slot[0];
    call->slot[2] = o->centered ? run->arenas.slot[o->momentum > 0 ? 2 : 1] : NULL;
}

hpct_backend_update_call hpct_run_next_update(const hpct_model *model)
{
    const hpct_run *run = model->run;
    const hpct_optimizer *o = &model->optimizer;
    double t = (double) (model->steps / o->gradient_accumulation_steps + 1);
    hpct_backend_update_call call = {
        .kind = o->kind,
        .nesterov = o->nesterov,
        .learning_rate = (float) hpct_model_learning_rate(model),
        .weight_decay = (float) o->weight_decay,
        .momentum = (float) o->momentum,
        .mix_1 = (float) (1 - o->beta_1),
        .mix_2 = (float) (1 - (o->kind == HPCT_RMSPROP ? o->rho : o->beta_2)),
        .epsilon = (float) o->epsilon,
        .trust_coefficient = (float) o->trust_coefficient,
        .bias_1 = (float) (1 - pow(o->beta_1, t)),
        .bias_2 = (float) (1 - pow(o->beta_2, t)),
        .grad_scale = 1.0f / (float) o->gradient_accumulation_steps,
        .scaling = run->arenas.scaling,
        .clipvalue = (float) o->clipvalue,
        .clipnorm = (float) o->clipnorm,
        .global_clipnorm = (float) o->global_clipnorm,
        .param = run->arenas.parameters,
        .grad = run->arenas.gradients,
        .ranges = run->arenas.updates,
        .num_ranges = run->arenas.num_updates,
        .add_up = model->peers.sum,
        .judge = model->peers.judge,
        .argument = model->peers.argument,
    };
    give_slots(&call, run, o);
    return call;
}

/* Emulated update: communicates zeros, as many sums as the update's norms take. */
static hpct_status send_norms(const hpct_model *model)
{
    const hpct_optimizer *o = &model->optimizer;
    const hpct_run *run = model->run;
    int each = (o->global_clipnorm > 0) + (o->clipnorm > 0) +
               (o->kind == HPCT_LARS || o->kind == HPCT_LAMB);
    hpct_status status = HPCT_OK;
    for (int i = 0; i < run->arenas.num_updates && model->peers.sum != NULL; i++) {
        for (int k = 0; k < each && run->arenas.updates[i].split && status == HPCT_OK; k++)
            status = model->peers.sum(model->peers.argument, (float[2]){0}, 2);
    }
    return status;
}

hpct_status hpct_run_tell_rates(const hpct_run *run, const hpct_backend_update_call *call)
{
    const hpct_backend_device *device = run->backend->device;
    return device != NULL && device->set_rates != NULL ? device->set_rates(call) : HPCT_OK;
}

static hpct_status update_all(const hpct_model *model, const hpct_backend_update_call *call)
{
    const hpct_backend *backend = model->run->backend;
    hpct_run_recording_key key = {.part = HPCT_RUN_RECORDED_UPDATE, .gradients = call->grad};
    HPCT_TRY(hpct_run_tell_rates(model->run, call));
    hpct_status status = HPCT_OK;
    if (hpct_run_recording_begin(model, &key, &status) == HPCT_RUN_RECORDING_CALL) {
        do
            status = backend->update(call);
        while (hpct_run_recording_end(model, &status));
    }
    return status;
}

hpct_status hpct_model_update_by(hpct_model *model, const float *gradients)
{
    HPCT_TRY(need_training(model));
    if (model->run->arenas.borrows || model->run->no_slots)
        return hpct_fail(HPCT_ERR_INTERNAL, "another replica of model %s updates", model->name);
    hpct_status status = HPCT_OK;
    hpct_run *run = model->run;
    hpct_backend_update_call call = hpct_run_next_update(model);
    call.grad = gradients;
    double begin = hpct_run_began(run);
    if (hpct_run_emulate_update(run)) {
        status = send_norms(model);
    } else {
        status = update_all(model, &call);
        run->arenas.stale = true;
    }
    hpct_run_ended(run, HPCT_RUN_TIME_UPDATE(run->num_nodes), begin);
    model->steps++;
    return status;
}

hpct_status hpct_model_update(hpct_model *model)
{
    HPCT_TRY(hpct_model_penalize(model));
    return hpct_model_update_by(model, model->run->arenas.gradients);
}

hpct_status hpct_model_update_part(hpct_model *model, size_t begin, size_t end)
{
    HPCT_TRY(need_training(model));
    HPCT_TRY(hpct_run_penalize(model, model->run->arenas.gradients, begin, end));
    hpct_status status = HPCT_OK;
    hpct_run *run = model->run;
    hpct_backend_update_call call = hpct_run_next_update(model);
    for (int i = 0; i < run->arenas.num_updates && status == HPCT_OK; i++) {
        hpct_backend_update_range part = run->arenas.updates[i];
        size_t last = part.offset + part.count;
        if (part.offset < begin)
            part.offset = begin;
        if (last > end)
            last = end;
        if (part.offset >= last)
            continue;
        part.count = last - part.offset;
        call.ranges = &part;
        call.num_ranges = 1;
        status = run->backend->update(&call);
    }
    run->arenas.stale = true;
    model->steps++;
    return status;
}

size_t hpct_model_cut(const hpct_model *model, size_t at)
{
    const hpct_run *run = model->run;
    const hpct_optimizer *o = &model->optimizer;
    if (at >= run->arenas.floats)
        return run->arenas.floats;
    if (o->global_clipnorm > 0)
        return 0;
    if (!hpct_graph_optimizer_by_parameter(o))
        return at / HPCT_BACKEND_ARENA_ALIGN * HPCT_BACKEND_ARENA_ALIGN;
    size_t cut = 0;
    for (int i = 0; i < run->arenas.num_updates; i++) {
        size_t end = run->arenas.updates[i].offset + run->arenas.updates[i].count;
        if (end <= at && end > cut)
            cut = end;
    }
    return cut;
}
