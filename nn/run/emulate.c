/* Emulated steps: sleep for each operation's measured time. */
#include "nn/run/emulate.h"

#include "base/progress.h"
#include "base/status.h"
#include "nn/run/run.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Rounded up to nanoseconds: never wakes early. */
static void sleep_until(double due)
{
    double whole = floor(due);
    struct timespec until = {.tv_sec = (time_t) whole, .tv_nsec = (long) (1e9 * (due - whole)) + 1};
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

static void sleep_for(hpct_run_emulation *emulation, double seconds)
{
    double now = hpct_run_clock(), due = now + seconds - emulation->ahead;
    while (due > now) {
        hpct_count_progress();
        sleep_until(fmin(due, now + 1));
        now = hpct_run_clock();
    }
    emulation->ahead = now - due;
}

/* Synchronized BatchNormalization computes and communicates: sends zeros, of the same counts.
 * Collectives, which only communicate, are executed. */
static hpct_status send_sums(const hpct_model *model, const hpct_op_call *call, size_t first,
                             size_t second)
{
    float *room = call->scratch;
    memset(room, 0, first * sizeof *room);
    HPCT_TRY(model->peers.sum(model->peers.argument, room, first));
    if (second > 0)
        HPCT_TRY(model->peers.sum(model->peers.argument, room, second));
    return HPCT_OK;
}

static bool is_synced(const hpct_model *model, const hpct_op_spec *spec)
{
    return hpct_op_is_synced_norm(spec) && model->peers.sum != NULL;
}

hpct_status hpct_run_emulate_forward(const hpct_model *model, int node, const hpct_op_call *call)
{
    hpct_run *run = model->run;
    hpct_op *op = run->nodes[node].op;
    if (run->emulation == NULL || hpct_op_is_collective(&op->spec))
        return op->class->forward(op, call);
    sleep_for(run->emulation, run->emulation->seconds.parts[node].forward);
    size_t channels = (size_t) op->spec.norm.channels;
    return is_synced(model, &op->spec) && call->training
               ? send_sums(model, call, channels + 1, channels)
               : HPCT_OK;
}

hpct_status hpct_run_emulate_backward(const hpct_model *model, int node, const hpct_op_call *call)
{
    hpct_run *run = model->run;
    hpct_op *op = run->nodes[node].op;
    if (run->emulation == NULL || hpct_op_is_collective(&op->spec))
        return op->class->backward(op, call);
    sleep_for(run->emulation, run->emulation->seconds.parts[node].backward);
    return is_synced(model, &op->spec)
               ? send_sums(model, call, 2 * (size_t) op->spec.norm.channels, 0)
               : HPCT_OK;
}

bool hpct_run_emulate_loss(hpct_run *run, hpct_backend_batch_sums *sums)
{
    if (run->emulation == NULL)
        return false;
    *sums = (hpct_backend_batch_sums){0};
    sleep_for(run->emulation, run->emulation->seconds.loss);
    return true;
}

bool hpct_run_emulate_update(hpct_run *run)
{
    if (run->emulation == NULL)
        return false;
    sleep_for(run->emulation, run->emulation->seconds.update);
    return true;
}

static void free_emulation(hpct_run_emulation *emulation)
{
    if (emulation != NULL)
        free(emulation->seconds.parts);
    free(emulation);
}

static void end_emulation(hpct_run *run)
{
    free_emulation(run->emulation);
    run->emulation = NULL;
}

hpct_status hpct_model_emulate(hpct_model *model, const hpct_run_step_seconds *seconds)
{
    hpct_run *run = model->run;
    if (run == NULL || !run->training)
        return hpct_fail(HPCT_ERR_USAGE, "model %s is not built for training", model->name);
    if (run->backend->device != NULL)
        return hpct_fail(HPCT_ERR_CONFIG, "a GPU's steps are not emulated: take --device cpu");
    end_emulation(run);
    if (seconds == NULL)
        return HPCT_OK;
    size_t bytes = (size_t) run->num_nodes * sizeof *seconds->parts;
    hpct_run_emulation *emulation = calloc(1, sizeof *emulation);
    if (emulation != NULL)
        emulation->seconds.parts = malloc(bytes);
    if (emulation == NULL || emulation->seconds.parts == NULL) {
        free_emulation(emulation);
        return hpct_fail_memory(bytes);
    }
    memcpy(emulation->seconds.parts, seconds->parts, bytes);
    emulation->seconds.loss = seconds->loss;
    emulation->seconds.update = seconds->update;
    run->emulation = emulation;
    hpct_run_at_end(run, end_emulation);
    return HPCT_OK;
}
