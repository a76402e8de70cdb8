/* A worker: asks, pulls, computes, pushes. */
#include "agent/ps/worker.h"

#include "agent/data/pipeline.h"
#include "agent/ps/connect.h"
#include "agent/ps/pulse.h"
#include "agent/stop.h"
#include "base/status.h"
#include "nn/step.h"

#include <stdlib.h>
#include <string.h>

typedef struct worker {
    hpct_ps_run *run;
    hpct_ps_servers servers;
    hpct_ps_pulse *pulse;
    hpct_pipeline *pipeline;
    hpct_ps_message item; /* in work */
    int64_t version;      /* of the parameters here; -1: of none */
    float *states;        /* before the step; then what it adds to them */
    size_t num_states;
} worker;

/* ---- data ---- */

static hpct_batch batch_of_item(void *argument, int64_t number)
{
    worker *w = argument;
    (void) number; /* items come in any order */
    const hpct_ps_schedule_options *schedule = &w->run->schedule;
    int64_t step = (int64_t) w->item.step, begin;
    int count = hpct_ps_slice_samples(schedule, step, (int) w->item.slice, &begin);
    int64_t epoch = w->run->options.initial_epoch + step / schedule->steps_per_epoch;
    hpct_batch batch = hpct_sampler_batch(w->run->sampler, epoch, step % schedule->steps_per_epoch);
    batch.indices += begin;
    batch.position += begin;
    batch.count = count;
    return batch;
}

static hpct_status open_pipeline(worker *w)
{
    const hpct_ps_run *run = w->run;
    int64_t begin;
    bool plain = hpct_dataset_is_plain(run->train, true);
    hpct_pipeline_options options = {
        .dataset = run->train,
        .batches = INT64_MAX,
        .largest = (int) hpct_slice(run->global_batch, 0, run->schedule.slices, &begin),
        .training = true,
        .seed = run->options.seed,
        .threads = hpct_cpu_threads(),
        .batch = batch_of_item,
        .from = w,
        .on_demand = true,
        .pixels = plain ? hpct_model_input(run->model) : NULL,
        .labels = plain ? hpct_model_labels(run->model) : NULL,
    };
    return hpct_pipeline_open(&w->pipeline, &options);
}

/* ---- an item ---- */

/* *current: whether the parameters are those that the item was given out with. */
static hpct_status pull(worker *w, bool *current)
{
    int64_t version = (int64_t) w->item.version;
    bool exact = w->run->schedule.synchronous || w->item.task == HPCT_PS_EVALUATE;
    *current = true;
    if (exact && w->version == version)
        return HPCT_OK;
    hpct_status status = hpct_ps_servers_pull(&w->servers, version, current);
    if (status == HPCT_OK)
        status = hpct_ps_run_send(w->run);
    if (w->run->schedule.synchronous && !*current)
        w->version = -1;
    else
        w->version = version;
    *current |= !w->run->schedule.synchronous;
    return status;
}

/* The mean over the step's slices of what each moved the states by, as Keras reads moving
 * statistics: each slice sends its part of it. */
static void make_state_changes(worker *w)
{
    size_t count;
    const float *now = hpct_model_states(w->run->host, &count);
    float part = 1.0f / (float) hpct_ps_step_slices(&w->run->schedule, (int64_t) w->item.step);
    for (size_t i = 0; i < count; i++)
        w->states[i] = (now[i] - w->states[i]) * part;
}

/* Gradients and states of this slice, in run->host. Servers know of no loss scale: a gradient of
 * fp16 that is not finite is computed once more with half of it, from the states of before. */
static hpct_status compute(worker *w, const hpct_input *input, hpct_batch_sums *sums)
{
    hpct_model *model = w->run->model;
    size_t count, num_states;
    bool again = true;
    hpct_status status = HPCT_OK;
    while (again && status == HPCT_OK) {
        status = hpct_model_forward(model, input->count, true);
        if (status == HPCT_OK)
            status = hpct_model_loss(model, input->count, 1.0f / (float) input->global_count, sums);
        if (status == HPCT_OK)
            status = hpct_model_backward(model, input->count);
        if (status == HPCT_OK)
            status = hpct_ps_run_fetch(w->run);
        float *gradients = hpct_model_gradients(w->run->host, &count);
        if (status == HPCT_OK)
            status = hpct_model_unscale(model, gradients, count, &again);
        float *states = hpct_model_states(w->run->host, &num_states);
        if (status == HPCT_OK && again && num_states > 0) {
            memcpy(states, w->states, num_states * sizeof *states);
            status = hpct_ps_run_send(w->run);
        }
    }
    return status;
}

static hpct_status train(worker *w, hpct_batch_sums *sums)
{
    hpct_model *model = w->run->model;
    hpct_input input;
    size_t count;
    int64_t begin, step = (int64_t) w->item.step;
    hpct_status status = hpct_pipeline_next(w->pipeline, &input);
    if (status != HPCT_OK)
        return status;
    hpct_model_set_input(model, input.pixels, input.labels);
    hpct_ps_slice_samples(&w->run->schedule, step, (int) w->item.slice, &begin);
    int64_t before = w->run->options.initial_epoch * w->run->schedule.steps_per_epoch;
    hpct_model_set_position(model, w->run->options.seed, before + step, begin);
    const float *states = hpct_model_states(w->run->host, &count);
    if (count > 0)
        memcpy(w->states, states, count * sizeof *states);
    status = compute(w, &input, sums);
    if (status != HPCT_OK)
        return status;
    make_state_changes(w);
    if (count > 0) /* the states are the step's from here on, not the servers' */
        w->version = -1;
    return hpct_ps_servers_push(&w->servers, &w->item, w->states);
}

static hpct_status evaluate(worker *w, hpct_batch_sums *sums)
{
    hpct_status status =
        hpct_evaluate_slice(w->run->model, NULL, w->run->options.validation, (int) w->item.slice,
                            w->run->schedule.evaluation_slices, w->run->evaluation_batch, sums);
    return status;
}

static hpct_status do_item(worker *w)
{
    hpct_batch_sums sums = {0};
    bool current;
    hpct_status status = pull(w, &current);
    if (status != HPCT_OK)
        return status;
    hpct_ps_message answer = {.type = current ? HPCT_PS_DONE : HPCT_PS_SKIPPED,
                              .step = w->item.step,
                              .slice = w->item.slice,
                              .version = w->item.version};
    if (current)
        status = w->item.task == HPCT_PS_TRAIN ? train(w, &sums) : evaluate(w, &sums);
    answer.loss = sums.loss;
    answer.correct = (double) sums.correct;
    answer.in_top_k = (double) sums.in_top_k;
    return status == HPCT_OK ? hpct_ps_servers_answer(&w->servers, &answer) : status;
}

/* What no server 0 of this run would give. */
static hpct_status check_item(const worker *w)
{
    const hpct_ps_schedule_options *s = &w->run->schedule;
    const hpct_ps_message *item = &w->item;
    bool fine = item->task == HPCT_PS_END ||
                (item->task == HPCT_PS_TRAIN && (int64_t) item->step < s->max_steps &&
                 (int) item->slice < hpct_ps_step_slices(s, (int64_t) item->step)) ||
                (item->task == HPCT_PS_EVALUATE && (int) item->slice < s->evaluation_slices);
    char server[160];
    return fine ? HPCT_OK
                : hpct_fail(HPCT_ERR_PEER, "%s: %s gave out what is no part of this run",
                            w->run->name, hpct_ps_run_server(w->run, 0, server));
}

static hpct_status open_worker(worker *w)
{
    hpct_session session;
    hpct_model_states(w->run->host, &w->num_states);
    w->states = calloc(w->num_states + 1, sizeof *w->states);
    if (w->states == NULL)
        return hpct_fail_memory((w->num_states + 1) * sizeof *w->states);
    hpct_status status = open_pipeline(w);
    if (status == HPCT_OK)
        status = hpct_ps_servers_reach(&w->servers, w->run, HPCT_PS_FROM_WORKER, NULL, NULL);
    if (status == HPCT_OK)
        status = hpct_ps_servers_again(&w->servers, &session);
    return status == HPCT_OK ? hpct_ps_pulse_start(&w->pulse, w->run, &session) : status;
}

hpct_status hpct_ps_work(hpct_ps_run *run, int *signal)
{
    worker w = {.run = run, .version = -1};
    hpct_status status = open_worker(&w);
    *signal = 0;
    while (status == HPCT_OK) {
        status = hpct_ps_servers_item(&w.servers, &w.item);
        if (status == HPCT_OK)
            status = check_item(&w);
        if (status != HPCT_OK || w.item.task == HPCT_PS_END)
            break;
        status = do_item(&w);
        if (status == HPCT_OK && hpct_stop_signal() != 0)
            break;
    }
    if (status == HPCT_OK)
        *signal = w.item.task == HPCT_PS_END ? w.item.signal : hpct_stop_signal();
    hpct_ps_pulse_stop(w.pulse);
    hpct_ps_message last = {.type = HPCT_PS_BYE};
    if (status != HPCT_OK)
        hpct_ps_run_reason(run, &last);
    hpct_ps_servers_leave(&w.servers, &last);
    hpct_pipeline_close(w.pipeline);
    free(w.states);
    return status;
}
