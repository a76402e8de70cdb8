/* Transfers between a built model and the host: input, labels, outputs, sums, arenas. On a
 * host backend both share the memory; a device has copies, sent in a step or fetched on demand. */
#include "nn/run/run.h"

#include "base/status.h"
#include "nn/backends/backends.h"
#include "nn/run/step.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static const hpct_backend_device *device_of(const hpct_run *run)
{
    return run->backend->device;
}

/* ---- input ---- */

void hpct_model_set_input(hpct_model *model, const float *input, const int32_t *labels)
{
    hpct_run *run = model->run;
    if (run == NULL)
        return;
    run->input.given = input;
    run->input.given_labels = labels;
    run->input.resident = NULL;
    run->input.keeps = false;
    run->input.kept = 0;
    hpct_run_set_targets(run, run->input.own_targets);
    if (device_of(run) != NULL)
        return;
    hpct_run_set_input(model, run, (float *) (uintptr_t) input);
    run->input.labels = (int32_t *) (uintptr_t) labels;
}

/* Nodes that work on the local batch read only its part of the input. */
void hpct_run_set_own_input(const hpct_model *model, hpct_run *run, int n)
{
    size_t first = (size_t) hpct_graph_samples_first(n, model->share.part, model->share.parts);
    char *all =
        run->transit.memory != NULL ? run->transit.memory : (char *) (uintptr_t) run->input.given;
    size_t size =
        hpct_backend_precision_bytes(run->transit.memory != NULL ? run->values : HPCT_FP32);
    hpct_run_set_input(model, run,
                       (float *) (void *) (all + first * hpct_model_input_floats(model) * size));
    if (run->transit.memory != NULL)
        run->input.src = (float *) (void *) all; /* the whole batch is copied to here */
}

void hpct_model_keep_input(hpct_model *model)
{
    if (model->run != NULL) {
        model->run->input.keeps = true;
        model->run->input.kept = 0;
    }
}

static bool make_own_input(const hpct_model *model, hpct_run *run)
{
    size_t batch = (size_t) run->input.samples;
    if (run->input.own == NULL)
        run->input.own = hpct_backend_memory_take_host(
            run->backend, batch * hpct_model_input_floats(model) * sizeof(float));
    if (run->input.own_labels == NULL)
        run->input.own_labels =
            hpct_backend_memory_take_host(run->backend, batch * sizeof *run->input.own_labels);
    return run->input.own != NULL && run->input.own_labels != NULL;
}

float *hpct_model_input(hpct_model *model)
{
    hpct_run *run = model->run;
    if (run == NULL || !make_own_input(model, run))
        return NULL;
    run->input.keeps = false; /* the caller may write */
    if (run->input.given != run->input.own || run->input.given_labels != run->input.own_labels)
        hpct_model_set_input(model, run->input.own, run->input.own_labels);
    return run->input.own;
}

int32_t *hpct_model_labels(hpct_model *model)
{
    return hpct_model_input(model) != NULL ? model->run->input.own_labels : NULL;
}

hpct_status hpct_run_make_input(const hpct_run *run, int n)
{
    hpct_backend_gather_call call = {
        .pictures = run->input.resident != NULL ? &run->input.resident->pictures : NULL,
        .n = n,
        .drawn = run->input.drawn,
        .values = run->values,
        .dst = run->input.src,
        .labels = run->input.labels,
    };
    return run->input.resident != NULL ? device_of(run)->gather(&call) : HPCT_OK;
}

/* Copies to `staged` in the copy stream while the device computes the step before, which does not
 * read it; then within the device to the input. */
static hpct_status send_batch(const hpct_model *model, const hpct_run *run, int n)
{
    const hpct_backend_device *device = device_of(run);
    size_t count = (size_t) n * hpct_model_input_floats(model),
           labels = (size_t) n * sizeof *run->input.labels;
    HPCT_TRY(device->send_beside(run->transit.staged, run->input.given,
                                 count * sizeof *run->transit.staged));
    if (run->input.given_labels != NULL)
        HPCT_TRY(device->send_beside(run->transit.staged_labels, run->input.given_labels, labels));
    HPCT_TRY(device->mark(HPCT_BACKEND_MARK_INPUT));
    HPCT_TRY(device->take());
    HPCT_TRY(
        run->values != HPCT_FP32
            ? device->to_values(run->values, count, run->transit.staged, run->input.src)
            : device->copy(run->input.src, run->transit.staged, count * sizeof *run->input.src));
    if (run->input.given_labels != NULL)
        HPCT_TRY(device->copy(run->input.labels, run->transit.staged_labels, labels));
    return device->taken();
}

static hpct_status send_drawn(const hpct_run *run, int n)
{
    const hpct_backend_device *device = device_of(run);
    HPCT_TRY(device->send(run->input.drawn, run->input.given_drawn,
                          (size_t) n * sizeof *run->input.drawn));
    return device->mark(HPCT_BACKEND_MARK_DRAWN);
}

hpct_status hpct_run_send_input(const hpct_model *model, hpct_run *run, int n)
{
    if (device_of(run) == NULL || (run->input.keeps && n <= run->input.kept))
        return HPCT_OK;
    hpct_status status =
        run->input.resident != NULL ? send_drawn(run, n) : send_batch(model, run, n);
    run->input.kept = status == HPCT_OK ? n : 0;
    return status;
}

/* ---- output ---- */

static hpct_status fetch_output(const hpct_model *model)
{
    const hpct_run *run = model->run;
    const float *from = run->output;
    size_t count = (size_t) run->stage_n * hpct_model_output_floats(model);
    if (run->values != HPCT_FP32) {
        HPCT_TRY(device_of(run)->from_values(run->values, count, run->output, run->transit.staged));
        from = run->transit.staged;
    }
    return device_of(run)->to_host(run->transit.output, from, count * sizeof *from);
}

const float *hpct_model_output(const hpct_model *model)
{
    const hpct_run *run = model->run;
    if (run == NULL || device_of(run) == NULL)
        return run != NULL ? run->output : NULL;
    return fetch_output(model) == HPCT_OK ? run->transit.output : NULL;
}

hpct_status hpct_model_sums(const hpct_model *model, hpct_backend_batch_sums *sums)
{
    const hpct_run *run = model->run;
    if (run == NULL)
        return hpct_fail(HPCT_ERR_USAGE, "model %s is not built", model->name);
    return hpct_backend_memory_to_host(run->backend, sums, run->sums.last, sizeof *sums);
}

hpct_status hpct_model_put_sums(const hpct_model *model, float *to)
{
    const hpct_run *run = model->run;
    if (device_of(run) != NULL)
        return device_of(run)->put_sums(run->sums.last, to);
    to[0] = (float) run->sums.last->loss;
    to[1] = (float) run->sums.last->correct;
    to[2] = (float) run->sums.last->in_top_k;
    return HPCT_OK;
}

hpct_status hpct_model_send(const hpct_model *model, float *arena, const float *host, size_t count)
{
    const hpct_run *run = model->run;
    return device_of(run) != NULL ? device_of(run)->send(arena, host, count * sizeof *host)
                                  : hpct_model_write(model, arena, host, count);
}

static hpct_status mark_fetch(const hpct_run *run, int which)
{
    return device_of(run)->mark((hpct_backend_mark) (HPCT_BACKEND_MARK_FETCH + which));
}

/* Host backend: no copy until hpct_model_fetched. */
static hpct_status fetch(hpct_run *run, int which, const void *from, size_t bytes)
{
    run->transit.fetched[which] = from;
    if (device_of(run) == NULL)
        return HPCT_OK;
    char *to = run->transit.landing + which * HPCT_RUN_FETCH_BYTES;
    hpct_status status = device_of(run)->fetch(to, from, bytes);
    run->transit.fetched[which] = to;
    return status == HPCT_OK ? mark_fetch(run, which) : status;
}

hpct_status hpct_model_fetch(const hpct_model *model, int which, const float *arena, size_t bytes)
{
    return fetch(model->run, which, arena, bytes);
}

/* A whole step (hpct_model_step) has already written them to sums.left. */
hpct_status hpct_model_fetch_sums(const hpct_model *model, int which)
{
    hpct_run *run = model->run;
    if (!run->sums.last_left)
        return fetch(run, which, run->sums.last, sizeof *run->sums.last);
    run->transit.fetched[which] = &run->sums.left[(run->sums.known_turns - 1) % 2];
    return mark_fetch(run, which);
}

hpct_status hpct_model_fetched(const hpct_model *model, int which, void *to, size_t bytes)
{
    const hpct_run *run = model->run;
    if (device_of(run) != NULL)
        HPCT_TRY(device_of(run)->await((hpct_backend_mark) (HPCT_BACKEND_MARK_FETCH + which)));
    memcpy(to, run->transit.fetched[which], bytes);
    return HPCT_OK;
}

hpct_status hpct_model_await_input(const hpct_model *model)
{
    const hpct_backend_device *device = model->run != NULL ? device_of(model->run) : NULL;
    HPCT_TRY(device != NULL ? device->await(HPCT_BACKEND_MARK_INPUT) : HPCT_OK);
    return device != NULL ? device->await(HPCT_BACKEND_MARK_DRAWN) : HPCT_OK;
}

/* ---- arenas ---- */

hpct_status hpct_model_read(const hpct_model *model, float *host, const float *arena, size_t count)
{
    return hpct_backend_memory_to_host(model->run->backend, host, arena, count * sizeof *host);
}

hpct_status hpct_model_write(const hpct_model *model, float *arena, const float *host, size_t count)
{
    return hpct_backend_memory_from_host(model->run->backend, arena, host, count * sizeof *host);
}

size_t hpct_model_scaling_bytes(const hpct_model *model)
{
    return model->run != NULL && model->run->arenas.scaling != NULL ? sizeof model->scaling : 0;
}

hpct_status hpct_model_read_scaling(const hpct_model *model, void *state)
{
    return hpct_backend_memory_to_host(model->run->backend, state, model->run->arenas.scaling,
                                       hpct_model_scaling_bytes(model));
}

hpct_status hpct_model_write_scaling(hpct_model *model, const void *state)
{
    return hpct_backend_memory_from_host(model->run->backend, model->run->arenas.scaling, state,
                                         hpct_model_scaling_bytes(model));
}

void *hpct_model_scaling(const hpct_model *model)
{
    return model->run != NULL ? model->run->arenas.scaling : NULL;
}

bool hpct_run_are_finite(const float *values, size_t count)
{
    uint32_t found = 0;
#pragma omp simd reduction(| : found)
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        found |= (bits & 0x7f800000U) == 0x7f800000U;
    }
    return found == 0;
}

hpct_status hpct_model_unscale(hpct_model *model, float *gradients, size_t count, bool *again)
{
    hpct_graph_loss_scaling state;
    *again = false;
    if (hpct_model_scaling_bytes(model) == 0)
        return HPCT_OK;
    hpct_status status = hpct_model_read_scaling(model, &state);
    float scale = state.scale;
    bool finite = hpct_run_are_finite(gradients, count);
    if (status != HPCT_OK)
        return status;
    for (size_t i = 0; i < count && finite; i++)
        gradients[i] /= scale;
    hpct_graph_loss_scaling_move(&state, finite, 0, 0);
    *again = !finite && state.scale < scale;
    return hpct_model_write_scaling(model, &state);
}

hpct_status hpct_model_copy_scaling(const hpct_model *from, hpct_model *to)
{
    to->scaling = from->scaling;
    if (hpct_model_scaling_bytes(from) > 0)
        HPCT_TRY(hpct_model_read_scaling(from, &to->scaling));
    if (hpct_model_scaling_bytes(to) > 0)
        HPCT_TRY(hpct_model_write_scaling(to, &to->scaling));
    return HPCT_OK;
}

hpct_status hpct_model_gradient_scale(const hpct_model *model, float *scale)
{
    hpct_graph_loss_scaling state = {.scale = 1};
    hpct_status status = HPCT_OK;
    if (hpct_model_scaling_bytes(model) > 0)
        status = hpct_model_read_scaling(model, &state);
    *scale = state.scale;
    return status;
}

hpct_status hpct_model_wait(const hpct_model *model)
{
    return model->run != NULL ? hpct_backend_memory_wait(model->run->backend) : HPCT_OK;
}

hpct_status hpct_model_clear_gradients(hpct_model *model)
{
    const hpct_run *run = model->run;
    return hpct_backend_memory_zero(run->backend, run->arenas.gradients,
                                    run->arenas.floats * sizeof(float));
}

/* ---- device ---- */

static const hpct_backend *backend_of(const hpct_model *model)
{
    if (model->run != NULL)
        return model->run->backend;
    return model->backend != NULL ? model->backend : hpct_backend_table[0];
}

void *hpct_model_take_host(const hpct_model *model, size_t bytes)
{
    return hpct_backend_memory_take_host(backend_of(model), bytes);
}

void hpct_model_return_host(const hpct_model *model, void *memory)
{
    hpct_backend_memory_return_host(backend_of(model), memory);
}

hpct_status hpct_model_set_device(hpct_model *model, const char *device)
{
    if (strcmp(device, "auto") != 0 && strcmp(device, "cpu") != 0 && strcmp(device, "cuda") != 0)
        return hpct_fail(HPCT_ERR_USAGE, "there is no device \"%s\"; there are: auto, cpu, cuda",
                         device);
    return hpct_backend_choose(&model->backend, device);
}

const char *hpct_model_device(const hpct_model *model)
{
    return model->backend != NULL ? model->backend->name : hpct_backend_table[0]->name;
}

bool hpct_model_on_device(const hpct_model *model)
{
    return backend_of(model)->device != NULL;
}

double hpct_model_device_busy(const hpct_model *model)
{
    const hpct_backend_device *device = backend_of(model)->device;
    return device != NULL && device->busy != NULL ? device->busy() : NAN;
}

hpct_status hpct_model_enter_replica(const hpct_model *model, int replica)
{
    return backend_of(model)->device->enter(replica);
}

bool hpct_model_has_devices(const hpct_model *model, int count)
{
    char text[256];
    return backend_of(model)->device->describe(count - 1, text, sizeof text);
}

hpct_status hpct_model_memory_left(const hpct_model *model, size_t *bytes)
{
    const hpct_backend_device *device = backend_of(model)->device;
    size_t all;
    *bytes = SIZE_MAX;
    return device != NULL ? device->memory(bytes, &all) : HPCT_OK;
}

hpct_status hpct_model_check_device(const hpct_model *model)
{
    return backend_of(model)->check_precision(model->precision);
}
