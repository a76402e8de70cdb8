/* The step itself: forward, loss, backward over what build prepared. Allocates nothing. */
#include "nn/run.h"

#include "base/headway.h"
#include "base/status.h"
#include "nn/emulate.h"
#include "nn/head.h"
#include "nn/norm_sync.h"
#include "nn/replay.h"

static hpct_status find_batch(const hpct_model *model, int n, int *batch)
{
    if (model->run == NULL)
        return hpct_fail(HPCT_ERR_USAGE, "model %s is not built", model->name);
    for (int i = 0; i < model->run->num_batch_sizes; i++) {
        if (model->run->batch_sizes[i] == n) {
            *batch = i;
            return HPCT_OK;
        }
    }
    return hpct_fail(HPCT_ERR_USAGE, "model %s was not built for batches of %d", model->name, n);
}

static hpct_op_call make_call(const hpct_model *model, int i, int batch, int n)
{
    const hpct_run_node *node = &model->run->nodes[i];
    return (hpct_op_call){
        .batch = batch,
        .n = hpct_node_samples(model, &model->nodes[i], n),
        .src = node->src,
        .norms = node->norms,
        .moments = node->moments,
        .bias = hpct_run_bias(model->run, i),
        .norm_sums = node->norm_sums,
        .dst = node->dst,
        .diff_dst = node->diff_dst,
        .diff_src = node->diff_src,
        .add = node->add,
        .param = node->param,
        .grad = node->grad,
        .copies = node->copies,
        .workspace = node->workspace,
        .scratch = model->run->scratch,
        .scratch_aside = model->run->scratch_aside,
        .learning_rate = (float) hpct_model_learning_rate(model),
        .seed = model->position.seed,
        .step = model->position.step,
        .first_sample = model->position.first_sample + hpct_node_first(model, &model->nodes[i], n),
        .replicas = model->replicas.sum != NULL ? &model->replicas : NULL,
        .training = model->run->stage_training,
    };
}

void hpct_model_set_position(hpct_model *model, uint64_t seed, int64_t step, int64_t first_sample)
{
    model->position.seed = seed;
    model->position.step = step;
    model->position.first_sample = first_sample;
}

void hpct_model_set_watcher(hpct_model *model, const hpct_watcher *watcher)
{
    model->watcher = watcher != NULL ? *watcher : (hpct_watcher){0};
}

/* A device is waited for where it is timed. */
double hpct_run_began(const hpct_run *run)
{
    if (run->times == NULL)
        return 0;
    hpct_memory_wait(run->backend);
    return hpct_run_clock();
}

void hpct_run_ended(const hpct_run *run, int slot, double begin)
{
    const hpct_run_times *times = run->times;
    if (times != NULL)
        hpct_memory_wait(run->backend);
    if (times != NULL && times->step >= 0 && times->step < times->steps)
        times->seconds[(size_t) times->step * (size_t) times->slots + (size_t) slot] +=
            hpct_run_clock() - begin;
}

#define COPIES_AT_ONCE 320

/* Those that the backend makes of all nodes' parameters together. */
static hpct_status copy_params(const hpct_run *run)
{
    hpct_param_copy copies[COPIES_AT_ONCE];
    hpct_status status = HPCT_OK;
    int num = 0;
    for (int i = 0; i < run->num_nodes && status == HPCT_OK; i++) {
        const hpct_run_node *node = &run->nodes[i];
        for (int k = 0; k < node->op->num_params && status == HPCT_OK; k++) {
            if (!node->op->param_copied[k])
                continue;
            copies[num++] =
                (hpct_param_copy){.from = node->param[k],
                                  .to = (char *) node->copies + node->op->copy_offset[k],
                                  .count = node->op->param_floats[k]};
            if (num == COPIES_AT_ONCE) {
                status = run->backend->copy_params(run->values, copies, num);
                num = 0;
            }
        }
    }
    return status == HPCT_OK && num > 0 ? run->backend->copy_params(run->values, copies, num)
                                        : status;
}

/* Of what may go on beside what is called next. */
static hpct_status join(const hpct_run *run, bool but_last)
{
    const hpct_device *device = run->backend->device;
    return device != NULL && device->join != NULL ? device->join(but_last) : HPCT_OK;
}

/* Copies of the parameters follow them: once after an update, not at each use. */
static hpct_status refresh(const hpct_model *model, int batch, int n)
{
    hpct_run *run = model->run;
    double begin = hpct_run_began(run);
    hpct_status status = run->stale ? copy_params(run) : HPCT_OK;
    for (int i = 0; i < run->num_nodes && run->stale && status == HPCT_OK; i++) {
        hpct_op *op = run->nodes[i].op;
        hpct_op_call call = make_call(model, i, batch, n);
        if (op->class->refresh != NULL)
            status = op->class->refresh(op, &call);
    }
    if (status == HPCT_OK)
        run->stale = false;
    hpct_run_ended(run, HPCT_TIME_UPDATE(run->num_nodes), begin);
    return status;
}

/* Where an operation failed; what others' end broke off says enough. */
static hpct_status named(const hpct_model *model, int node, const char *way, hpct_status status)
{
    char where[160];
    if (status == HPCT_OK || status == HPCT_ERR_PEER)
        return status;
    snprintf(where, sizeof where, "%s of layer %.120s", way,
             model->layers[model->nodes[node].layer].name);
    return hpct_fail_within(status, where);
}

/* `head`: that of the model, and what only shows its result, is left out. */
static hpct_status call_forward(hpct_model *model, int batch, int n, bool head)
{
    const hpct_run *run = model->run;
    hpct_status status = refresh(model, batch, n);
    for (int i = 0; i < run->num_nodes && status == HPCT_OK; i++) {
        if (head && (i + 1 == run->head || i + 1 == run->behind_head))
            continue;
        hpct_op_call call = make_call(model, i, batch, n);
        double begin = hpct_run_began(run);
        if (run->nodes[i].op->copies_bytes > 0)
            status = join(run, false);
        if (status != HPCT_OK)
            break;
        if (call.n > 0 && !run->nodes[i].made)
            status = named(model, i, "forward", hpct_emulate_forward(model, i, &call));
        else if (call.training)
            status = hpct_norm_forward_absent(model, i);
        hpct_headway();
        hpct_run_ended(run, HPCT_TIME_FORWARD(i), begin);
        if (status == HPCT_OK && model->watcher.pause != NULL)
            status = model->watcher.pause(model->watcher.argument);
    }
    return status == HPCT_OK ? join(run, false) : status;
}

/* Another model may have told the device others since. */
static hpct_status tell_draws(const hpct_model *model)
{
    const hpct_device *device = model->run->backend->device;
    return device == NULL || device->set_draws == NULL
               ? HPCT_OK
               : device->set_draws(model->position.seed, model->position.step,
                                   model->position.first_sample);
}

static hpct_status forward_training(hpct_model *model, int batch, int n)
{
    hpct_run *run = model->run;
    hpct_status status;
    hpct_recording_key key = {.part = HPCT_RECORDED_FORWARD, .n = n, .stale = run->stale};
    status = tell_draws(model);
    if (status != HPCT_OK)
        return status;
    if (hpct_recording_begin(model, &key, &status) == HPCT_RECORDING_CALL) {
        do {
            run->stale = key.stale;
            status = call_forward(model, batch, n, false);
        } while (hpct_recording_end(model, &status));
    }
    run->stale = run->stale && status != HPCT_OK;
    return status;
}

static hpct_status check_input(const hpct_model *model, int n, bool training, int *batch)
{
    const hpct_run *run = model->run;
    hpct_status status = find_batch(model, n, batch);
    if (status != HPCT_OK)
        return status;
    if (training && !run->training)
        return hpct_fail(HPCT_ERR_USAGE, "model %s was built for inference only", model->name);
    if (run->given == NULL && run->resident == NULL)
        return hpct_fail(HPCT_ERR_USAGE, "model %s was given no input", model->name);
    return HPCT_OK;
}

hpct_status hpct_model_forward(hpct_model *model, int n, bool training)
{
    int batch;
    hpct_status status = check_input(model, n, training, &batch);
    if (status != HPCT_OK)
        return status;
    hpct_run *run = model->run;
    run->stage = HPCT_STAGE_NONE;
    run->stage_training = training;
    if (model->share.parts > 0)
        hpct_run_set_own_input(model, run, n);
    if (run->times != NULL && training)
        run->times->step++;
    status = hpct_run_send_input(model, run, n);
    if (status == HPCT_OK)
        status = hpct_run_make_input(run, n);
    if (status == HPCT_OK)
        status =
            training ? forward_training(model, batch, n) : call_forward(model, batch, n, false);
    if (status == HPCT_OK)
        run->stage = HPCT_STAGE_FORWARD;
    run->stage_n = n;
    return status;
}

static hpct_loss_call loss_call(const hpct_model *model, int n, float scale)
{
    const hpct_run *run = model->run;
    bool wants_diff = scale != 0.0f;
    return (hpct_loss_call){
        .form = run->form,
        .n = n,
        .classes = run->classes,
        .src = run->loss_src,
        .labels = run->labels,
        .targets = run->targets,
        .label_smoothing = (float) model->label_smoothing,
        /* a probability of a half, which is 0 before the sigmoid */
        .threshold = run->form == HPCT_LOSS_BINARY_LOGITS ? 0.0f : 0.5f,
        .top_k = model->top_k,
        .scale = scale,
        .scaling = wants_diff ? run->scaling : NULL,
        .diff_src = wants_diff ? run->loss_diff : NULL,
        .values = run->values,
        .sums = run->sums,
    };
}

hpct_status hpct_model_loss(hpct_model *model, int n, float scale, hpct_batch_sums *sums)
{
    hpct_run *run = model->run;
    if (run == NULL || run->stage == HPCT_STAGE_NONE || run->stage_n != n)
        return hpct_fail(HPCT_ERR_USAGE, "model %s: loss needs a forward of %d samples before it",
                         model->name, n);
    bool wants_diff = scale != 0.0f;
    if (wants_diff && !run->training)
        return hpct_fail(HPCT_ERR_USAGE, "model %s was built for inference only", model->name);
    if (wants_diff && !run->stage_training)
        return hpct_fail(HPCT_ERR_USAGE, "model %s: a gradient needs a forward for training",
                         model->name);
    hpct_loss_call call = loss_call(model, n, scale);
    run->last_left = false;
    run->stage = wants_diff ? HPCT_STAGE_LOSS : HPCT_STAGE_FORWARD;
    double begin = hpct_run_began(run);
    hpct_status status = hpct_run_send_targets(run, n);
    hpct_recording_key key = {.part = HPCT_RECORDED_LOSS, .n = n, .scale = scale};
    if (status == HPCT_OK && !hpct_emulate_loss(run, run->sums) &&
        (!wants_diff || hpct_recording_begin(model, &key, &status) == HPCT_RECORDING_CALL)) {
        do
            status = run->backend->loss(&call);
        while (wants_diff && hpct_recording_end(model, &status));
    }
    hpct_run_ended(run, HPCT_TIME_LOSS(run->num_nodes), begin);
    return status == HPCT_OK && sums != NULL ? hpct_model_sums(model, sums) : status;
}

/* A part of a gradient that an operation could not add by itself. */
static hpct_status add_part(const hpct_run *run, const hpct_run_node *node, int n)
{
    const hpct_backend *backend = run->backend;
    size_t count = (size_t) n * hpct_op_src_floats(&node->op->spec, 0);
    return backend->add_values != NULL
               ? backend->add_values(run->values, count, node->diff_src[0], node->add_after)
               : backend->accumulate(count, node->diff_src[0], node->add_after, false);
}

/* Backward of a node without samples: its gradients are zeros. */
static hpct_status leave_out(const hpct_model *model, int i)
{
    const hpct_run *run = model->run;
    const hpct_run_node *node = &run->nodes[i];
    hpct_status status = hpct_norm_backward_absent(model, i);
    for (int k = 0; k < node->op->num_params && status == HPCT_OK; k++) {
        if (node->grad[k] != NULL)
            status = hpct_memory_zero(run->backend, node->grad[k],
                                      node->op->param_floats[k] * sizeof *node->grad[k]);
    }
    return status;
}

/* What lingers of a node goes on beside the backward of the one before it; others may have its
 * memory then. Gradients that somebody waits for are there at once. `head`: that of the model has
 * been made. */
static hpct_status call_backward(hpct_model *model, int batch, int n, bool head)
{
    hpct_run *run = model->run;
    hpct_status status = HPCT_OK;
    int oldest = -1, newest = -1; /* nodes of which something may go on */
    for (int i = run->num_nodes - 1; i >= 0 && status == HPCT_OK; i--) {
        hpct_run_node *node = &run->nodes[i];
        if (!node->backward)
            continue;
        hpct_op_call call = make_call(model, i, batch, n);
        double begin = hpct_run_began(run);
        if (oldest > i + HPCT_LINGERS) {
            bool goes_on = newest == i + HPCT_LINGERS;
            status = join(run, goes_on);
            oldest = goes_on ? newest : -1;
        }
        call.begun = head && i + 1 == run->before_head;
        bool made = head && i + 1 == run->head;
        if (status == HPCT_OK && !made)
            status = call.n > 0
                         ? named(model, i, "backward", hpct_emulate_backward(model, i, &call))
                         : leave_out(model, i);
        if (status == HPCT_OK && call.n > 0 && node->add_after != NULL && run->emulation == NULL)
            status = add_part(run, node, call.n);
        if (!made && call.n > 0 && node->op->lingers) {
            newest = i;
            oldest = oldest < 0 ? i : oldest;
        }
        if (status == HPCT_OK && model->watcher.advance != NULL) {
            status = join(run, false);
            oldest = -1;
        }
        hpct_headway();
        hpct_run_ended(run, HPCT_TIME_BACKWARD(i), begin);
        if (status == HPCT_OK && model->watcher.advance != NULL)
            status = model->watcher.advance(model->watcher.argument, node->done);
        if (status == HPCT_OK && model->watcher.pause != NULL)
            status = model->watcher.pause(model->watcher.argument);
    }
    return status == HPCT_OK ? join(run, false) : status;
}

hpct_status hpct_model_backward(hpct_model *model, int n)
{
    int batch;
    hpct_status status = find_batch(model, n, &batch);
    if (status != HPCT_OK)
        return status;
    hpct_run *run = model->run;
    if (run->stage != HPCT_STAGE_LOSS || run->stage_n != n)
        return hpct_fail(HPCT_ERR_USAGE,
                         "model %s: backward needs a loss with a scale over %d samples before it",
                         model->name, n);
    run->stage = HPCT_STAGE_NONE; /* gradients of activations are consumed */
    hpct_recording_key key = {.part = HPCT_RECORDED_BACKWARD, .n = n};
    status = tell_draws(model);
    if (status == HPCT_OK && run->fuse_update) {
        hpct_update_call update = hpct_run_next_update(model);
        status = hpct_run_tell_rates(run, &update);
    }
    if (status != HPCT_OK)
        return status;
    if (hpct_recording_begin(model, &key, &status) == HPCT_RECORDING_CALL) {
        do
            status = call_backward(model, batch, n, false);
        while (hpct_recording_end(model, &status));
    }
    return status;
}

/* ---- all of it ---- */

/* In company alone: this replica has no samples, and adds nothing. */
static hpct_status call_absent(hpct_model *model)
{
    hpct_status status = refresh(model, 0, 0);
    if (status == HPCT_OK)
        status = join(model->run, false);
    if (status == HPCT_OK)
        status = hpct_model_forward_absent(model);
    if (status == HPCT_OK)
        status = hpct_model_clear_gradients(model);
    return status == HPCT_OK ? hpct_model_backward_absent(model) : status;
}

static hpct_status reduce(const hpct_model *model)
{
    const hpct_watcher *watcher = &model->watcher;
    return watcher->reduce != NULL ? watcher->reduce(watcher->argument) : HPCT_OK;
}

/* What a step is made of, where it is made at once. */
typedef struct step_calls {
    int n, batch;
    bool stale;
    hpct_loss_call loss;
    hpct_update_call update;
} step_calls;

static hpct_status call_loss(const hpct_model *model, const step_calls *calls)
{
    const hpct_run *run = model->run;
    int head = run->head - 1;
    if (head < 0)
        return run->backend->loss(&calls->loss);
    hpct_op_call call = make_call(model, head, calls->batch, calls->n), before = {0};
    if (run->before_head > 0)
        before = make_call(model, run->before_head - 1, calls->batch, calls->n);
    return named(model, head, "the loss", hpct_run_make_head(run, &call, &before, &calls->loss));
}

static hpct_status call_step(hpct_model *model, const step_calls *calls)
{
    hpct_run *run = model->run;
    hpct_status status = HPCT_OK;
    run->stale = calls->stale;
    if (calls->n == 0) {
        status = call_absent(model);
    } else {
        status = refresh(model, calls->batch, calls->n); /* what it copies goes on meanwhile */
        if (status == HPCT_OK)
            status = hpct_run_make_input(run, calls->n);
        if (status == HPCT_OK)
            status = call_forward(model, calls->batch, calls->n, true);
        if (status == HPCT_OK)
            status = call_loss(model, calls);
        if (status == HPCT_OK)
            status = call_backward(model, calls->batch, calls->n, true);
    }
    if (status == HPCT_OK)
        status = reduce(model);
    return status == HPCT_OK ? run->backend->update(&calls->update) : status;
}

/* Nobody else hears of it. */
static hpct_status rehearse(hpct_model *model, const step_calls *calls)
{
    const hpct_watcher watcher = model->watcher;
    const hpct_replicas replicas = model->replicas;
    model->watcher = (hpct_watcher){0};
    model->replicas = (hpct_replicas){0};
    hpct_status status = call_step(model, calls);
    model->watcher = watcher;
    model->replicas = replicas;
    return status;
}

static hpct_status step_by_parts(hpct_model *model, int n, float scale)
{
    hpct_status status = n > 0 ? hpct_model_forward(model, n, true) : call_absent(model);
    if (status == HPCT_OK && n > 0)
        status = hpct_model_loss(model, n, scale, NULL);
    if (status == HPCT_OK && n > 0)
        status = hpct_model_backward(model, n);
    if (status == HPCT_OK)
        status = reduce(model);
    return status == HPCT_OK ? hpct_model_update(model) : status;
}

static hpct_status check_step(const hpct_model *model, int n, int *batch)
{
    const hpct_run *run = model->run;
    bool in_company = model->watcher.agree != NULL;
    hpct_status status =
        n == 0 && in_company && run != NULL ? HPCT_OK : check_input(model, n, true, batch);
    if (status == HPCT_OK && (run->backend->device == NULL || run->borrows ||
                              model->optimizer.gradient_accumulation_steps != 1))
        status =
            hpct_fail(HPCT_ERR_INTERNAL, "model %s: its steps are made part by part", model->name);
    return status;
}

/* What the device has to know before: the samples, and what differs from step to step. */
static hpct_status tell_step(hpct_model *model, const step_calls *calls)
{
    hpct_status status = HPCT_OK;
    if (calls->n > 0)
        status = hpct_run_send_input(model, model->run, calls->n);
    if (status == HPCT_OK && calls->n > 0)
        status = hpct_run_send_targets(model->run, calls->n);
    if (status == HPCT_OK)
        status = tell_draws(model);
    return status == HPCT_OK ? hpct_run_tell_rates(model->run, &calls->update) : status;
}

hpct_status hpct_model_step(hpct_model *model, int n, float scale)
{
    step_calls calls = {.n = n};
    hpct_status status = check_step(model, n, &calls.batch);
    hpct_run *run = model->run;
    if (status != HPCT_OK)
        return status;
    if (run->times != NULL) /* somebody wants to know how long each takes */
        return step_by_parts(model, n, scale);
    run->stage = HPCT_STAGE_NONE;
    run->stage_training = true;
    run->stage_n = n;
    calls.loss = loss_call(model, n, scale);
    calls.loss.left = run->left;
    calls.loss.turns = run->turns;
    calls.update = hpct_run_next_update(model);
    /* one that evaluated has fresh copies, and the others may not: they all make them */
    calls.stale = run->stale || model->watcher.agree != NULL;
    status = tell_step(model, &calls);
    if (status != HPCT_OK)
        return status;
    hpct_recording_key key = {.part = HPCT_RECORDED_STEP,
                              .n = n,
                              .stale = calls.stale,
                              .scale = scale,
                              .gradients = calls.update.grad,
                              .resident = run->resident != NULL ? run->resident->number : 0};
    hpct_recording_way way = hpct_recording_begin(model, &key, &status);
    if (way == HPCT_RECORDING_REHEARSE) {
        status = rehearse(model, &calls);
        way = hpct_recording_rehearsed(model, &status);
    }
    if (way == HPCT_RECORDING_CALL) {
        do
            status = call_step(model, &calls);
        while (hpct_recording_end(model, &status));
    }
    /* whether the device has left any is not known of a step that failed: they are copied then */
    run->left_lost = run->left_lost || status != HPCT_OK;
    run->last_left = n > 0 && run->left != NULL && !run->left_lost;
    run->known_turns += n > 0;
    run->stale = true;
    model->steps++;
    return status;
}

void hpct_model_drop_recordings(hpct_model *model)
{
    if (model->run != NULL)
        hpct_recordings_free(model->run);
}

float *hpct_model_parameters(hpct_model *model, size_t *count)
{
    *count = model->run != NULL ? model->run->arena_floats : 0;
    if (model->run != NULL)
        model->run->stale = true; /* the caller may write */
    return model->run != NULL ? model->run->parameters : NULL;
}

float *hpct_model_gradients(hpct_model *model, size_t *count)
{
    *count = model->run != NULL ? model->run->arena_floats : 0;
    return model->run != NULL ? model->run->gradients : NULL;
}

float *hpct_model_states(hpct_model *model, size_t *count)
{
    *count = model->run != NULL ? model->run->state_floats : 0;
    return model->run != NULL ? model->run->states : NULL;
}

hpct_status hpct_model_scale_states(hpct_model *model, float factor)
{
    const hpct_run *run = model->run;
    return run == NULL ? HPCT_OK : run->backend->scale(run->state_floats, factor, run->states);
}

hpct_status hpct_model_scale_parameters(hpct_model *model, float factor)
{
    hpct_run *run = model->run;
    if (run == NULL)
        return HPCT_OK;
    run->stale = true;
    return run->backend->scale(run->arena_floats, factor, run->parameters);
}

uint64_t hpct_model_layout_fingerprint(const hpct_model *model)
{
    return model->run != NULL ? model->run->fingerprint : 0;
}
