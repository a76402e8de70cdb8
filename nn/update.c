/* The end of a step: gradients that accumulate, and the optimizer's update. Allocates nothing. */
#include "nn/clone.h"
#include "nn/run.h"

#include "base/status.h"
#include "nn/emulate.h"
#include "nn/optimizer.h"
#include "nn/replay.h"

#include <math.h>

static hpct_status need_training(const hpct_model *model)
{
    if (model->run == NULL || !model->run->training)
        return hpct_fail(HPCT_ERR_USAGE, "model %s is not built for training", model->name);
    return HPCT_OK;
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
    float *sum = run->slot[HPCT_SLOT_ACCUMULATED];
    if (*due)
        return run->backend->accumulate(run->arena_floats, sum, run->gradients, false);
    model->steps++;
    return run->backend->accumulate(run->arena_floats, run->gradients, sum, place == 0);
}

/* The run's slots are those there are, one after the other; the call's have each its place. */
static void give_slots(hpct_update_call *call, const hpct_run *run, const hpct_optimizer *o)
{
    for (int k = 0; k < HPCT_MAX_SLOTS; k++)
        call->slot[k] = run->slot[k];
    if (o->kind != HPCT_RMSPROP)
        return;
    call->slot[0] = o->momentum > 0 ? run->slot[1] : NULL;
    call->slot[1] = run->slot[0];
    call->slot[2] = o->centered ? run->slot[o->momentum > 0 ? 2 : 1] : NULL;
}

hpct_update_call hpct_run_next_update(const hpct_model *model)
{
    const hpct_run *run = model->run;
    const hpct_optimizer *o = &model->optimizer;
    double t = (double) (model->steps / o->gradient_accumulation_steps + 1);
    hpct_update_call call = {
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
        .scaling = run->scaling,
        .clipvalue = (float) o->clipvalue,
        .clipnorm = (float) o->clipnorm,
        .global_clipnorm = (float) o->global_clipnorm,
        .param = run->parameters,
        .grad = run->gradients,
        .ranges = run->updates,
        .num_ranges = run->num_updates,
        .add_up = model->replicas.sum,
        .judge = model->replicas.judge,
        .argument = model->replicas.argument,
    };
    give_slots(&call, run, o);
    return call;
}

/* In the place of an update that is slept: as many sums as it makes of norms, of zeros. */
static hpct_status send_norms(const hpct_model *model)
{
    const hpct_optimizer *o = &model->optimizer;
    const hpct_run *run = model->run;
    int each = (o->global_clipnorm > 0) + (o->clipnorm > 0) +
               (o->kind == HPCT_LARS || o->kind == HPCT_LAMB);
    hpct_status status = HPCT_OK;
    for (int i = 0; i < run->num_updates && model->replicas.sum != NULL; i++) {
        for (int k = 0; k < each && run->updates[i].split && status == HPCT_OK; k++)
            status = model->replicas.sum(model->replicas.argument, (float[2]){0}, 2);
    }
    return status;
}

hpct_status hpct_run_tell_rates(const hpct_run *run, const hpct_update_call *call)
{
    const hpct_device *device = run->backend->device;
    return device != NULL && device->set_rates != NULL ? device->set_rates(call) : HPCT_OK;
}

static hpct_status update_all(const hpct_model *model, const hpct_update_call *call)
{
    const hpct_backend *backend = model->run->backend;
    hpct_recording_key key = {.part = HPCT_RECORDED_UPDATE, .gradients = call->grad};
    hpct_status status = hpct_run_tell_rates(model->run, call);
    if (status != HPCT_OK)
        return status;
    if (hpct_recording_begin(model, &key, &status) == HPCT_RECORDING_CALL) {
        do
            status = backend->update(call);
        while (hpct_recording_end(model, &status));
    }
    return status;
}

hpct_status hpct_model_update_by(hpct_model *model, const float *gradients)
{
    hpct_status status = need_training(model);
    if (status == HPCT_OK && (model->run->borrows || model->run->no_slots))
        status = hpct_fail(HPCT_ERR_INTERNAL, "another replica of model %s updates", model->name);
    if (status != HPCT_OK)
        return status;
    hpct_run *run = model->run;
    hpct_update_call call = hpct_run_next_update(model);
    call.grad = gradients;
    double begin = hpct_run_began(run);
    if (hpct_emulate_update(run)) {
        status = send_norms(model);
    } else {
        status = update_all(model, &call);
        run->stale = true;
    }
    hpct_run_ended(run, HPCT_TIME_UPDATE(run->num_nodes), begin);
    model->steps++;
    return status;
}

hpct_status hpct_model_update(hpct_model *model)
{
    return hpct_model_update_by(model, model->run != NULL ? model->run->gradients : NULL);
}

hpct_status hpct_model_update_part(hpct_model *model, size_t begin, size_t end)
{
    hpct_status status = need_training(model);
    if (status != HPCT_OK)
        return status;
    hpct_run *run = model->run;
    hpct_update_call call = hpct_run_next_update(model);
    for (int i = 0; i < run->num_updates && status == HPCT_OK; i++) {
        hpct_update_range part = run->updates[i];
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
    run->stale = true;
    model->steps++;
    return status;
}

size_t hpct_model_cut(const hpct_model *model, size_t at)
{
    const hpct_run *run = model->run;
    const hpct_optimizer *o = &model->optimizer;
    if (at >= run->arena_floats)
        return run->arena_floats;
    if (o->global_clipnorm > 0)
        return 0;
    if (!hpct_optimizer_by_parameter(o))
        return at / HPCT_ARENA_ALIGN * HPCT_ARENA_ALIGN;
    size_t cut = 0;
    for (int i = 0; i < run->num_updates; i++) {
        size_t end = run->updates[i].offset + run->updates[i].count;
        if (end <= at && end > cut)
            cut = end;
    }
    return cut;
}
