/* A worker: requests items, pulls, computes, pushes; a second thread sends heartbeats. */
#include "agent/ps/run.h"

#include "agent/data/pipeline.h"
#include "agent/ps/channel.h"
#include "agent/ps/connect.h"
#include "agent/rank/stop.h"
#include "agent/train/pace_file.h"
#include "base/net/link.h"
#include "base/process.h"
#include "base/status.h"
#include "base/thread.h"
#include "nn/backend/cpu/backend.h"
#include "nn/run/step.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define JUMP_MS 500 /* poll returned so late: this process was not running */

/* Thread that sends heartbeats to server 0 while the worker computes; exits the process with code
 * 69 and one line if server 0 is lost, or reports that the run cannot continue. */
typedef struct pulse {
    const hpct_ps_run *run;
    hpct_ps_channel channel;
    int wake_fd;
    pthread_t thread;
} pulse;

typedef struct worker {
    hpct_ps_run *run;
    hpct_ps_servers servers;
    pulse *pulse;
    hpct_data_pipeline *pipeline;
    hpct_ps_message item; /* current item */
    int64_t version;      /* of the parameters in the model; -1: none */
    float *states;        /* before the step; then the step's change */
    size_t num_states;
    double spent[HPCT_TRAIN_PACE_MEMORY]; /* seconds of the item's parts */
} worker;

/* ---- heartbeats ---- */

static void give_up(const pulse *p, const char *what, const char *how)
{
    dprintf(STDERR_FILENO, "%shpc-train: %s: %s%s; ending with exit code %d\n",
            isatty(STDERR_FILENO) ? "\n" : "", p->run->name, what, how, HPCT_ERR_PEER);
    _exit(HPCT_ERR_PEER);
}

static void receive_messages(pulse *p)
{
    char server[160];
    hpct_ps_message message;
    hpct_ps_received received;
    hpct_ps_run_server(p->run, 0, server);
    while ((received = hpct_ps_channel_receive(&p->channel, &message)) == HPCT_PS_GOT) {
        if (message.type == HPCT_PS_LOST)
            give_up(p, message.text, "");
    }
    if (received == HPCT_PS_CLOSED)
        give_up(p, server,
                " was lost: its connection closed (the process was killed or ended early)");
    if (received == HPCT_PS_GARBAGE)
        give_up(p, server, " was lost: it sent what no server of this run sends");
}

static void *pulse_main(void *argument)
{
    pulse *p = argument;
    hpct_ps_channel *channel = &p->channel;
    char server[160];
    int64_t turn = hpct_now_ms();
    for (;;) {
        struct pollfd polls[2] = {{p->wake_fd, POLLIN, 0}, {channel->session.fd, POLLIN, 0}};
        poll(polls, 2, HPCT_NET_LINK_BEAT_MS);
        int64_t now = hpct_now_ms();
        if (now - turn > HPCT_NET_LINK_BEAT_MS + JUMP_MS)
            channel->heard_ms += now - turn;
        turn = now;
        if (polls[0].revents != 0)
            return NULL;
        receive_messages(p);
        if (now - channel->heard_ms > channel->silence_ms)
            give_up(p, hpct_ps_run_server(p->run, 0, server), " was lost: " HPCT_NET_LINK_SILENCE);
        hpct_ps_channel_flush(channel);
        hpct_ps_channel_beat(channel, now);
    }
}

static hpct_status start_pulse(pulse **out, const hpct_ps_run *run, hpct_net_session *session)
{
    pulse *p = calloc(1, sizeof *p);
    if (p == NULL) {
        hpct_net_session_close(session);
        return hpct_fail_memory(sizeof *p);
    }
    p->run = run;
    p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    hpct_ps_channel_init(&p->channel, session);
    hpct_ps_message hello = {.type = HPCT_PS_HELLO,
                             .from = HPCT_PS_FROM_PULSE,
                             .index = (uint32_t) run->index,
                             .plan = run->plan};
    hpct_ps_channel_send(&p->channel, &hello, NULL);
    int error = p->wake_fd < 0 ? errno : hpct_thread_start(&p->thread, pulse_main, p);
    if (error != 0) {
        if (p->wake_fd >= 0)
            close(p->wake_fd);
        hpct_ps_channel_close(&p->channel);
        free(p);
        return hpct_fail(HPCT_ERR_INTERNAL, "cannot start a thread: %s", strerror(error));
    }
    *out = p;
    return HPCT_OK;
}

static void stop_pulse(pulse *p)
{
    uint64_t one = 1;
    if (p == NULL)
        return;
    while (write(p->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
    pthread_join(p->thread, NULL);
    hpct_ps_channel_close(&p->channel);
    close(p->wake_fd);
    free(p);
}

/* ---- data ---- */

static hpct_data_batch batch_of_item(void *argument, int64_t number)
{
    worker *w = argument;
    (void) number; /* items come in any order */
    const hpct_ps_schedule_options *schedule = &w->run->schedule;
    int64_t step = (int64_t) w->item.step, begin;
    int count = hpct_ps_slice_samples(schedule, step, (int) w->item.slice, &begin);
    int64_t epoch = w->run->options.initial_epoch + step / schedule->steps_per_epoch;
    hpct_data_batch batch =
        hpct_data_sampler_batch(w->run->sampler, epoch, step % schedule->steps_per_epoch);
    batch.indices += begin;
    batch.position += begin;
    batch.count = count;
    return batch;
}

static hpct_status open_pipeline(worker *w)
{
    const hpct_ps_run *run = w->run;
    int64_t begin;
    hpct_data_input_way way = hpct_data_input_from_host(run->train, true);
    bool direct = way == HPCT_DATA_INPUT_DIRECT;
    hpct_data_pipeline_options options = {
        .way = way,
        .dataset = run->train,
        .batches = INT64_MAX,
        .largest = (int) hpct_data_slice(run->global_batch, 0, run->schedule.slices, &begin),
        .training = true,
        .seed = run->options.seed,
        .threads = hpct_cpu_threads(),
        .batch = batch_of_item,
        .from = w,
        .on_demand = true,
        .pixels = direct ? hpct_model_input(run->model) : NULL,
        .labels = direct ? hpct_model_labels(run->model) : NULL,
    };
    return hpct_data_pipeline_open(&w->pipeline, &options);
}

/* ---- executing an item ---- */

/* Adds the time since `began` to a part of the step; returns the time. */
static double spend(worker *w, hpct_train_pace_part part, double began)
{
    double now = hpct_process_clock();
    w->spent[part] += now - began;
    return now;
}

/* Of a step, in the answer to server 0. Updates are the servers'. */
static void tell_parts(const worker *w, hpct_ps_message *answer)
{
    for (int part = 0; part < HPCT_TRAIN_PACE_MEMORY; part++)
        answer->parts[part] = (float) (1e3 * w->spent[part]);
    answer->parts[HPCT_TRAIN_PACE_MEMORY] = (float) hpct_process_peak_mb();
}

/* *current: whether the parameters have the item's version. */
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

/* Sends its share of the mean change of the states over the step's slices, which is how Keras reads
 * moving statistics. */
static void make_state_changes(worker *w)
{
    size_t count;
    const float *now = hpct_model_states(w->run->host, &count);
    float part = 1.0f / (float) hpct_ps_step_slices(&w->run->schedule, (int64_t) w->item.step);
    for (size_t i = 0; i < count; i++)
        w->states[i] = (now[i] - w->states[i]) * part;
}

/* Computes gradients and states of this slice into run->host. Servers have no loss scale: if fp16
 * gradients are not finite, the worker computes them again with half the scale, from the previous
 * states. */
static hpct_status compute(worker *w, const hpct_data_input *input, hpct_backend_batch_sums *sums)
{
    hpct_model *model = w->run->model;
    size_t count, num_states;
    bool again = true;
    hpct_status status = HPCT_OK;
    while (again && status == HPCT_OK) {
        double began = hpct_process_clock();
        status = hpct_model_forward(model, input->count, true);
        if (status == HPCT_OK)
            status = hpct_model_loss(model, input->count, 1.0f / (float) input->global_count, sums);
        began = spend(w, HPCT_TRAIN_PACE_FORWARD, began);
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
        spend(w, HPCT_TRAIN_PACE_BACKWARD, began);
    }
    return status;
}

static hpct_status train(worker *w, hpct_backend_batch_sums *sums)
{
    hpct_model *model = w->run->model;
    hpct_data_input input;
    size_t count;
    int64_t begin, step = (int64_t) w->item.step;
    double began = hpct_process_clock();
    HPCT_TRY(hpct_data_pipeline_next(w->pipeline, &input));
    spend(w, HPCT_TRAIN_PACE_INPUT, began);
    hpct_model_set_input(model, input.pixels, input.labels);
    HPCT_TRY(hpct_model_mix_labels(model, input.count, input.others, input.shares));
    hpct_ps_slice_samples(&w->run->schedule, step, (int) w->item.slice, &begin);
    int64_t before = w->run->options.initial_epoch * w->run->schedule.steps_per_epoch;
    hpct_model_set_position(model, w->run->options.seed, before + step, begin);
    const float *states = hpct_model_states(w->run->host, &count);
    if (count > 0)
        memcpy(w->states, states, count * sizeof *states);
    HPCT_TRY(compute(w, &input, sums));
    make_state_changes(w);
    if (count > 0) /* the states are not the servers' any more */
        w->version = -1;
    began = hpct_process_clock();
    HPCT_TRY(hpct_ps_servers_push(&w->servers, &w->item, w->states));
    spend(w, HPCT_TRAIN_PACE_WAIT, began);
    return HPCT_OK;
}

static hpct_status evaluate(worker *w, hpct_backend_batch_sums *sums)
{
    return hpct_train_evaluate_slice(w->run->model, NULL, w->run->options.validation,
                                     (int) w->item.slice, w->run->schedule.evaluation_slices,
                                     w->run->evaluation_batch, NULL, sums);
}

/* `began`: when it was asked for. */
static hpct_status do_item(worker *w, double began)
{
    hpct_backend_batch_sums sums = {0};
    bool current;
    HPCT_TRY(pull(w, &current));
    memset(w->spent, 0, sizeof w->spent);
    spend(w, HPCT_TRAIN_PACE_WAIT, began);
    hpct_status status = HPCT_OK;
    hpct_ps_message answer = {.type = current ? HPCT_PS_DONE : HPCT_PS_SKIPPED,
                              .step = w->item.step,
                              .slice = w->item.slice,
                              .version = w->item.version};
    if (current)
        status = w->item.task == HPCT_PS_TRAIN ? train(w, &sums) : evaluate(w, &sums);
    answer.loss = sums.loss;
    answer.correct = (double) sums.correct;
    answer.in_top_k = (double) sums.in_top_k;
    spend(w, HPCT_TRAIN_PACE_STEP, began);
    if (current && w->item.task == HPCT_PS_TRAIN)
        tell_parts(w, &answer);
    return status == HPCT_OK ? hpct_ps_servers_answer(&w->servers, &answer) : status;
}

/* Checks that the item belongs to this run. */
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
                : hpct_fail(HPCT_ERR_PEER, "%s: %s gave out what is not a part of this run",
                            w->run->name, hpct_ps_run_server(w->run, 0, server));
}

static hpct_status open_worker(worker *w)
{
    hpct_net_session session;
    hpct_model_states(w->run->host, &w->num_states);
    w->states = calloc(w->num_states + 1, sizeof *w->states);
    if (w->states == NULL)
        return hpct_fail_memory((w->num_states + 1) * sizeof *w->states);
    HPCT_TRY(open_pipeline(w));
    HPCT_TRY(hpct_ps_servers_reach(&w->servers, w->run, HPCT_PS_FROM_WORKER, NULL, NULL));
    if (w->servers.epochs_done > INT32_MAX)
        return hpct_fail(HPCT_ERR_PEER, "%s: server 0 continues after more epochs than any run has",
                         w->run->name);
    /* Of a checkpoint, perhaps; it may have more epochs than --epochs: then none is left. */
    w->run->options.initial_epoch = (int) w->servers.epochs_done;
    HPCT_TRY(hpct_ps_servers_again(&w->servers, &session));
    return start_pulse(&w->pulse, w->run, &session);
}

hpct_status hpct_ps_work(hpct_ps_run *run, int *signal)
{
    worker w = {.run = run, .version = -1};
    hpct_status status = open_worker(&w);
    *signal = 0;
    while (status == HPCT_OK) {
        bool trained = w.item.task == HPCT_PS_TRAIN;
        double began = hpct_process_clock();
        status = hpct_ps_servers_item(&w.servers, &w.item);
        if (!trained) /* waiting for the begin, or the others' evaluation, is not a part of a step
                       */
            began = hpct_process_clock();
        if (status == HPCT_OK)
            status = check_item(&w);
        if (status != HPCT_OK || w.item.task == HPCT_PS_END)
            break;
        status = do_item(&w, began);
        if (status == HPCT_OK && hpct_rank_stop_signal() != 0)
            break;
    }
    run->saved = status == HPCT_OK && w.item.task == HPCT_PS_END && w.item.step > 0;
    if (status == HPCT_OK)
        *signal = w.item.task == HPCT_PS_END ? w.item.signal : hpct_rank_stop_signal();
    stop_pulse(w.pulse);
    hpct_ps_message last = {.type = HPCT_PS_BYE};
    if (status != HPCT_OK)
        hpct_ps_run_reason(run, &last);
    hpct_ps_servers_leave(&w.servers, &last);
    hpct_data_pipeline_close(w.pipeline);
    free(w.states);
    return status;
}
