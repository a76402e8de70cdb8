/* A training step: forward, loss, backward. Allocates nothing. */
#include "nn/run/run.h"

#include "base/progress.h"
#include "base/status.h"
#include "nn/run/emulate.h"
#include "nn/run/finite.h"
#include "nn/run/penalty.h"
#include "nn/run/replay.h"
#include "nn/run/step.h"
#include "nn/run/synced.h"

static hpct_status find_batch(const hpct_model *model, int n, int *batch)
{
    if (model->run == NULL)
        return hpct_fail(HPCT_ERR_USAGE, "model %s is not built", model->name);
    for (int i = 0; i < model->run->batches.num; i++) {
        if (model->run->batches.sizes[i] == n) {
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
        .n = hpct_graph_node_samples(model, &model->nodes[i], n),
        .src = node->src,
        .norms = node->norms,
        .bias = node->bias,
        .norm_sums = node->norm_sums,
        .dst = node->dst,
        .diff_dst = node->diff_dst,
        .diff_src = node->diff_src,
        .add = node->add,
        .param = node->param,
        .grad = node->grad,
        .copies = node->copies,
        .workspace = node->workspace,
        .scratch = model->run->plan.scratch,
        .learning_rate = (float) hpct_model_learning_rate(model) *
                         hpct_graph_node_rate_factor(model, &model->nodes[i]),
        .shows_gradients = model->shows_gradients,
        .seed = model->position.seed,
        .step = model->position.step,
        .first_sample =
            model->position.first_sample + hpct_graph_node_first(model, &model->nodes[i], n),
        .replicas = model->peers.sum != NULL ? &model->peers : NULL,
        .training = model->run->stage_training,
    };
}

void hpct_model_show_gradients(hpct_model *model, bool shown)
{
    model->shows_gradients = shown;
}

void hpct_model_set_position(hpct_model *model, uint64_t seed, int64_t step, int64_t first_sample)
{
    model->position.seed = seed;
    model->position.step = step;
    model->position.first_sample = first_sample;
}

void hpct_model_set_peers(hpct_model *model, const hpct_graph_step_peers *peers)
{
    model->peers = peers != NULL ? *peers : (hpct_graph_step_peers){0};
}

const hpct_graph_step_peers *hpct_model_peers(const hpct_model *model)
{
    return &model->peers;
}

/* Profiling waits for the device. */
double hpct_run_began(const hpct_run *run)
{
    if (run->times == NULL)
        return 0;
    hpct_backend_memory_wait(run->backend);
    return hpct_run_clock();
}

void hpct_run_ended(const hpct_run *run, int slot, double begin)
{
    const hpct_run_times *times = run->times;
    if (times != NULL)
        hpct_backend_memory_wait(run->backend);
    if (times != NULL && times->step >= 0 && times->step < times->steps)
        times->seconds[(size_t) times->step * (size_t) times->slots + (size_t) slot] +=
            hpct_run_clock() - begin;
}

#define COPIES_AT_ONCE 320

/* Copies parameters of all nodes that the backend copies in bulk. */
static hpct_status copy_params(const hpct_run *run)
{
    hpct_backend_param_copy copies[COPIES_AT_ONCE];
    int num = 0;
    for (int i = 0; i < run->num_nodes; i++) {
        const hpct_run_node *node = &run->nodes[i];
        for (int k = 0; k < node->op->num_params; k++) {
            if (!node->op->param_copied[k])
                continue;
            copies[num++] =
                (hpct_backend_param_copy){.from = node->param[k],
                                          .to = (char *) node->copies + node->op->copy_offset[k],
                                          .count = node->op->param_floats[k]};
            if (num == COPIES_AT_ONCE) {
                HPCT_TRY(run->backend->copy_params(run->values, copies, num));
                num = 0;
            }
        }
    }
    return num > 0 ? run->backend->copy_params(run->values, copies, num) : HPCT_OK;
}

/* Waits for the side stream. */
static hpct_status join(const hpct_run *run)
{
    const hpct_backend_device *device = run->backend->device;
    return device != NULL && device->join != NULL ? device->join() : HPCT_OK;
}

/* Remakes copies of parameters once after an update, not at each use. */
static hpct_status refresh(const hpct_model *model, int batch, int n)
{
    hpct_run *run = model->run;
    double begin = hpct_run_began(run);
    hpct_status status = run->arenas.stale ? copy_params(run) : HPCT_OK;
    for (int i = 0; i < run->num_nodes && run->arenas.stale && status == HPCT_OK; i++) {
        hpct_op *op = run->nodes[i].op;
        hpct_op_call call = make_call(model, i, batch, n);
        if (op->class->refresh != NULL)
            status = op->class->refresh(op, &call);
    }
    if (status == HPCT_OK)
        run->arenas.stale = false;
    hpct_run_ended(run, HPCT_RUN_TIME_UPDATE(run->num_nodes), begin);
    return status;
}

/* Adds the layer's name to the error, except for HPCT_ERR_PEER. */
static hpct_status named(const hpct_model *model, int node, const char *way, hpct_status status)
{
    char where[160];
    if (status == HPCT_OK || status == HPCT_ERR_PEER)
        return status;
    snprintf(where, sizeof where, "%s of layer %.120s", way,
             model->layers[model->nodes[node].layer].name);
    return hpct_fail_within(status, where);
}

static hpct_status call_forward(hpct_model *model, int batch, int n)
{
    const hpct_run *run = model->run;
    hpct_status status = refresh(model, batch, n);
    for (int i = 0; i < run->num_nodes && status == HPCT_OK; i++) {
        hpct_op_call call = make_call(model, i, batch, n);
        double begin = hpct_run_began(run);
        if (run->nodes[i].op->copies_bytes > 0)
            status = join(run);
        if (status != HPCT_OK)
            break;
        hpct_run_finite_look_before(model, i, call.n);
        if (call.n > 0 && !run->nodes[i].fused_forward)
            status = named(model, i, "forward", hpct_run_emulate_forward(model, i, &call));
        else if (call.training)
            status = hpct_run_norm_forward_absent(model, i);
        if (!run->nodes[i].fused_forward)
            hpct_run_finite_look_after(model, i, call.n);
        hpct_count_progress();
        hpct_run_ended(run, HPCT_RUN_TIME_FORWARD(i), begin);
        if (status == HPCT_OK && model->peers.pause != NULL)
            status = model->peers.pause(model->peers.argument);
    }
    return status;
}

/* The device's values may be another model's. */
static hpct_status tell_draws(const hpct_model *model)
{
    const hpct_backend_device *device = model->run->backend->device;
    return device == NULL || device->set_draws == NULL
               ? HPCT_OK
               : device->set_draws(model->position.seed, model->position.step,
                                   model->position.first_sample);
}

static hpct_status forward_training(hpct_model *model, int batch, int n)
{
    hpct_run *run = model->run;
    hpct_run_recording_key key = {
        .part = HPCT_RUN_RECORDED_FORWARD, .n = n, .stale = run->arenas.stale};
    HPCT_TRY(tell_draws(model));
    hpct_status status = HPCT_OK;
    if (hpct_run_recording_begin(model, &key, &status) == HPCT_RUN_RECORDING_CALL) {
        do {
            run->arenas.stale = key.stale;
            status = call_forward(model, batch, n);
        } while (hpct_run_recording_end(model, &status));
    }
    run->arenas.stale = run->arenas.stale && status != HPCT_OK;
    return status;
}

static hpct_status check_input(const hpct_model *model, int n, bool training, int *batch)
{
    const hpct_run *run = model->run;
    HPCT_TRY(find_batch(model, n, batch));
    if (training && !run->training)
        return hpct_fail(HPCT_ERR_USAGE, "model %s was built for inference only", model->name);
    if (run->input.given == NULL && run->input.resident == NULL)
        return hpct_fail(HPCT_ERR_USAGE, "model %s was given no input", model->name);
    return HPCT_OK;
}

hpct_status hpct_model_forward(hpct_model *model, int n, bool training)
{
    int batch;
    HPCT_TRY(check_input(model, n, training, &batch));
    hpct_run *run = model->run;
    run->stage = HPCT_RUN_STAGE_NONE;
    run->stage_training = training;
    if (model->share.parts > 0)
        hpct_run_set_own_input(model, run, n);
    if (run->times != NULL && training)
        run->times->step++;
    hpct_status status = hpct_run_send_input(model, run, n);
    if (status == HPCT_OK)
        status = hpct_run_make_input(run, n);
    if (status == HPCT_OK)
        status = training ? forward_training(model, batch, n) : call_forward(model, batch, n);
    if (status == HPCT_OK)
        run->stage = HPCT_RUN_STAGE_FORWARD;
    run->stage_n = n;
    return status;
}

static hpct_backend_loss_call loss_call(const hpct_model *model, int n, float scale)
{
    const hpct_run *run = model->run;
    bool wants_diff = scale != 0.0f;
    return (hpct_backend_loss_call){
        .form = run->loss.form,
        .n = n,
        .classes = run->loss.classes,
        .src = run->loss.src,
        .labels = run->input.labels,
        .targets = run->input.given_targets != NULL ? run->input.targets : NULL,
        .judged = hpct_model_judged(model),
        .label_smoothing = (float) model->label_smoothing,
        /* probability 0.5, which is 0 before the sigmoid */
        .threshold = run->loss.form == HPCT_BACKEND_LOSS_BINARY_LOGITS ||
                             run->loss.form == HPCT_BACKEND_LOSS_BINARY_FOCAL_LOGITS
                         ? 0.0f
                         : 0.5f,
        .alpha = (float) model->focal_alpha,
        .gamma = (float) model->focal_gamma,
        .delta = (float) model->huber_delta,
        .penalty = run->arenas.penalty,
        .class_weights = wants_diff ? run->loss.class_weights : NULL,
        .top_k = model->top_k,
        .scale = scale,
        .scaling = wants_diff ? run->arenas.scaling : NULL,
        .diff_src = wants_diff ? run->loss.diff : NULL,
        .values = run->values,
        .sums = run->sums.last,
    };
}

static hpct_status call_loss(const hpct_model *model, const hpct_backend_loss_call *call)
{
    HPCT_TRY(hpct_run_weigh(model));
    return model->run->backend->loss(call);
}

hpct_status hpct_model_loss(hpct_model *model, int n, float scale, hpct_backend_batch_sums *sums)
{
    hpct_run *run = model->run;
    if (run == NULL || run->stage == HPCT_RUN_STAGE_NONE || run->stage_n != n)
        return hpct_fail(HPCT_ERR_USAGE, "model %s: loss needs a forward of %d samples before it",
                         model->name, n);
    bool wants_diff = scale != 0.0f;
    if (wants_diff && !run->training)
        return hpct_fail(HPCT_ERR_USAGE, "model %s was built for inference only", model->name);
    if (wants_diff && !run->stage_training)
        return hpct_fail(HPCT_ERR_USAGE, "model %s: a gradient needs a forward for training",
                         model->name);
    hpct_backend_loss_call call = loss_call(model, n, scale);
    run->sums.last_left = false;
    run->stage = wants_diff ? HPCT_RUN_STAGE_LOSS : HPCT_RUN_STAGE_FORWARD;
    double begin = hpct_run_began(run);
    hpct_status status = hpct_run_send_targets(run, n);
    hpct_run_recording_key key = {.part = HPCT_RUN_RECORDED_LOSS, .n = n, .scale = scale};
    if (status == HPCT_OK && !hpct_run_emulate_loss(run, run->sums.last) &&
        (!wants_diff ||
         hpct_run_recording_begin(model, &key, &status) == HPCT_RUN_RECORDING_CALL)) {
        do
            status = call_loss(model, &call);
        while (wants_diff && hpct_run_recording_end(model, &status));
    }
    hpct_run_ended(run, HPCT_RUN_TIME_LOSS(run->num_nodes), begin);
    return status == HPCT_OK && sums != NULL ? hpct_model_sums(model, sums) : status;
}

/* Adds a gradient that an operation could not accumulate itself. */
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
    HPCT_TRY(hpct_run_norm_backward_absent(model, i));
    for (int k = 0; k < node->op->num_params; k++) {
        if (node->grad[k] != NULL)
            HPCT_TRY(hpct_backend_memory_zero(run->backend, node->grad[k],
                                              node->op->param_floats[k] * sizeof *node->grad[k]));
    }
    return HPCT_OK;
}

static hpct_status call_backward(hpct_model *model, int batch, int n)
{
    hpct_run *run = model->run;
    hpct_status status = HPCT_OK;
    for (int i = run->num_nodes - 1; i >= 0 && status == HPCT_OK; i--) {
        hpct_run_node *node = &run->nodes[i];
        if (!node->backward)
            continue;
        hpct_op_call call = make_call(model, i, batch, n);
        double begin = hpct_run_began(run);
        status = call.n > 0
                     ? named(model, i, "backward", hpct_run_emulate_backward(model, i, &call))
                     : leave_out(model, i);
        if (status == HPCT_OK && call.n > 0 && node->add_after != NULL && run->emulation == NULL)
            status = add_part(run, node, call.n);
        hpct_count_progress();
        hpct_run_ended(run, HPCT_RUN_TIME_BACKWARD(i), begin);
        if (status == HPCT_OK && model->peers.advance != NULL)
            status = model->peers.advance(model->peers.argument, node->done);
        if (status == HPCT_OK && model->peers.pause != NULL)
            status = model->peers.pause(model->peers.argument);
    }
    return status == HPCT_OK ? join(run) : status;
}

hpct_status hpct_model_backward(hpct_model *model, int n)
{
    int batch;
    HPCT_TRY(find_batch(model, n, &batch));
    hpct_run *run = model->run;
    if (run->stage != HPCT_RUN_STAGE_LOSS || run->stage_n != n)
        return hpct_fail(HPCT_ERR_USAGE,
                         "model %s: backward needs a loss with a scale over %d samples before it",
                         model->name, n);
    run->stage = HPCT_RUN_STAGE_NONE; /* gradients of activations are consumed */
    hpct_run_recording_key key = {.part = HPCT_RUN_RECORDED_BACKWARD, .n = n};
    HPCT_TRY(tell_draws(model));
    if (run->fuse_update) {
        hpct_backend_update_call update = hpct_run_next_update(model);
        HPCT_TRY(hpct_run_tell_rates(run, &update));
    }
    hpct_status status = HPCT_OK;
    if (hpct_run_recording_begin(model, &key, &status) == HPCT_RUN_RECORDING_CALL) {
        do
            status = call_backward(model, batch, n);
        while (hpct_run_recording_end(model, &status));
    }
    return status;
}

/* ---- whole steps ---- */

/* With other replicas only: this replica has no samples and contributes zeros. */
static hpct_status call_absent(hpct_model *model)
{
    HPCT_TRY(refresh(model, 0, 0));
    HPCT_TRY(join(model->run));
    HPCT_TRY(hpct_model_forward_absent(model));
    HPCT_TRY(hpct_model_clear_gradients(model));
    return hpct_model_backward_absent(model);
}

static hpct_status reduce(const hpct_model *model)
{
    const hpct_graph_step_peers *peers = &model->peers;
    return peers->reduce != NULL ? peers->reduce(peers->argument) : HPCT_OK;
}

/* Arguments of a whole step. */
typedef struct step_calls {
    int n, batch;
    bool stale;
    hpct_backend_loss_call loss;
    hpct_backend_update_call update;
} step_calls;

static hpct_status call_step(hpct_model *model, const step_calls *calls)
{
    hpct_run *run = model->run;
    run->arenas.stale = calls->stale;
    if (calls->n == 0) {
        HPCT_TRY(call_absent(model));
    } else {
        HPCT_TRY(refresh(model, calls->batch, calls->n)); /* copies run in the side stream */
        HPCT_TRY(hpct_run_make_input(run, calls->n));
        HPCT_TRY(call_forward(model, calls->batch, calls->n));
        HPCT_TRY(call_loss(model, &calls->loss));
        HPCT_TRY(call_backward(model, calls->batch, calls->n));
    }
    HPCT_TRY(reduce(model));
    HPCT_TRY(hpct_run_penalize(model, run->arenas.gradients, 0, run->arenas.floats));
    return run->backend->update(&calls->update);
}

/* Without step callbacks and other replicas. */
static hpct_status rehearse(hpct_model *model, const step_calls *calls)
{
    const hpct_graph_step_peers peers = model->peers;
    model->peers = (hpct_graph_step_peers){0};
    hpct_status status = call_step(model, calls);
    model->peers = peers;
    return status;
}

static hpct_status step_by_parts(hpct_model *model, int n, float scale)
{
    HPCT_TRY(n > 0 ? hpct_model_forward(model, n, true) : call_absent(model));
    if (n > 0) {
        HPCT_TRY(hpct_model_loss(model, n, scale, NULL));
        HPCT_TRY(hpct_model_backward(model, n));
    }
    HPCT_TRY(reduce(model));
    return hpct_model_update(model);
}

static hpct_status check_step(const hpct_model *model, int n, int *batch)
{
    const hpct_run *run = model->run;
    bool in_company = model->peers.agree != NULL;
    HPCT_TRY(n == 0 && in_company && run != NULL ? HPCT_OK : check_input(model, n, true, batch));
    if (run->backend->device == NULL || run->arenas.borrows ||
        model->optimizer.gradient_accumulation_steps != 1)
        return hpct_fail(HPCT_ERR_INTERNAL, "model %s: its steps are made part by part",
                         model->name);
    return HPCT_OK;
}

/* Sends the samples and per-step values to the device first. */
static hpct_status tell_step(hpct_model *model, const step_calls *calls)
{
    if (calls->n > 0) {
        HPCT_TRY(hpct_run_send_input(model, model->run, calls->n));
        HPCT_TRY(hpct_run_send_targets(model->run, calls->n));
    }
    HPCT_TRY(tell_draws(model));
    return hpct_run_tell_rates(model->run, &calls->update);
}

hpct_status hpct_model_step(hpct_model *model, int n, float scale)
{
    step_calls calls = {.n = n};
    hpct_status status = check_step(model, n, &calls.batch);
    hpct_run *run = model->run;
    if (status != HPCT_OK)
        return status;
    if (run->times != NULL) /* profiling */
        return step_by_parts(model, n, scale);
    run->stage = HPCT_RUN_STAGE_NONE;
    run->stage_training = true;
    run->stage_n = n;
    calls.loss = loss_call(model, n, scale);
    calls.loss.left = run->sums.left;
    calls.loss.turns = run->sums.turns;
    calls.update = hpct_run_next_update(model);
    /* replicas that evaluated have fresh copies, others may not: all remake them, recording the
     * same */
    calls.stale = run->arenas.stale || model->peers.agree != NULL;
    status = tell_step(model, &calls);
    if (status != HPCT_OK)
        return status;
    hpct_run_recording_key key = {
        .part = HPCT_RUN_RECORDED_STEP,
        .n = n,
        .stale = calls.stale,
        .scale = scale,
        .gradients = calls.update.grad,
        .resident = run->input.resident != NULL ? run->input.resident->number : 0};
    hpct_run_recording_way way = hpct_run_recording_begin(model, &key, &status);
    if (way == HPCT_RUN_RECORDING_REHEARSE) {
        status = rehearse(model, &calls);
        way = hpct_run_recording_rehearsed(model, &status);
    }
    if (way == HPCT_RUN_RECORDING_CALL) {
        do
            status = call_step(model, &calls);
        while (hpct_run_recording_end(model, &status));
    }
    /* a failed step may or may not have written to left: from then on sums are copied */
    run->sums.left_lost = run->sums.left_lost || status != HPCT_OK;
    run->sums.last_left = n > 0 && run->sums.left != NULL && !run->sums.left_lost;
    run->sums.known_turns += n > 0;
    run->arenas.stale = true;
    model->steps++;
    return status;
}

void hpct_model_drop_recordings(hpct_model *model)
{
    if (model->run != NULL)
        hpct_run_recordings_free(model->run);
}

float *hpct_model_parameters(hpct_model *model, size_t *count)
{
    *count = model->run != NULL ? model->run->arenas.floats : 0;
    if (model->run != NULL)
        model->run->arenas.stale = true; /* the caller may write */
    return model->run != NULL ? model->run->arenas.parameters : NULL;
}

float *hpct_model_gradients(hpct_model *model, size_t *count)
{
    *count = model->run != NULL ? model->run->arenas.floats : 0;
    return model->run != NULL ? model->run->arenas.gradients : NULL;
}

float *hpct_model_states(hpct_model *model, size_t *count)
{
    *count = model->run != NULL ? model->run->arenas.state_floats : 0;
    return model->run != NULL ? model->run->arenas.states : NULL;
}

float *hpct_model_frozen(hpct_model *model, size_t *count)
{
    hpct_run *run = model->run;
    *count = run != NULL ? run->arenas.frozen_floats : 0;
    if (run == NULL)
        return NULL;
    run->arenas.stale = true; /* the caller may write */
    return run->arenas.states + run->arenas.state_floats;
}

float *hpct_model_slots(hpct_model *model, int k, size_t *count)
{
    *count = model->run != NULL ? model->run->arenas.floats : 0;
    for (int slot = 0; model->run != NULL && slot < HPCT_GRAPH_NUM_SLOTS; slot++) {
        if (model->run->arenas.slot[slot] != NULL && k-- == 0)
            return model->run->arenas.slot[slot];
    }
    return NULL;
}

hpct_status hpct_model_scale_states(hpct_model *model, float factor)
{
    const hpct_run *run = model->run;
    return run == NULL ? HPCT_OK
                       : run->backend->scale(run->arenas.state_floats, factor, run->arenas.states);
}

hpct_status hpct_model_scale_parameters(hpct_model *model, float factor)
{
    hpct_run *run = model->run;
    if (run == NULL)
        return HPCT_OK;
    run->arenas.stale = true;
    return run->backend->scale(run->arenas.floats, factor, run->arenas.parameters);
}

uint64_t hpct_model_layout_fingerprint(const hpct_model *model)
{
    return model->run != NULL ? model->run->arenas.fingerprint : 0;
}
