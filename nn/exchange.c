/* What a built model and the host hand each other: input, labels, targets, outputs, sums, arenas.
 * Where the backend's memory is the host's they are one thing; of a device there is a copy, which a
 * step sends or which is fetched when it is asked for. */
#include "nn/run.h"

#include "base/status.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static const hpct_device *device_of(const hpct_run *run)
{
    return run->backend->device;
}

/* ---- memory ---- */

/* Zeroed memory of the host, near the device if there is one. */
static void *take_host(const hpct_backend *backend, size_t bytes)
{
    return backend->device != NULL ? backend->device->allocate_host(bytes)
                                   : backend->allocate(bytes);
}

static void drop_host(const hpct_backend *backend, void *memory)
{
    if (memory == NULL)
        return;
    if (backend->device != NULL)
        backend->device->release_host(memory);
    else
        backend->release(memory);
}

static size_t sample_floats(const hpct_model *model)
{
    return hpct_shape_count(&model->tensors[0].shape);
}

static size_t output_floats(const hpct_model *model)
{
    return hpct_shape_count(&model->tensors[model->output].shape);
}

static size_t aligned(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* Bytes of the parts of run->transit, in their order. */
typedef struct parts {
    size_t input, labels, sums, drawn, targets, staged, staged_labels;
} parts;

static parts parts_of(const hpct_model *model, const hpct_run *run)
{
    size_t batch = (size_t) run->largest_batch, in = sample_floats(model),
           out = output_floats(model);
    return (parts){
        .input = aligned(batch * in * hpct_precision_bytes(run->values)),
        .labels = aligned(batch * sizeof *run->labels),
        .sums = aligned(sizeof *run->sums + sizeof *run->turns),
        .drawn = aligned(batch * sizeof *run->drawn),
        .targets = aligned(hpct_run_target_bytes(run)),
        .staged = aligned(batch * (in > out ? in : out) * sizeof(float)),
        .staged_labels = aligned(batch * sizeof *run->labels),
    };
}

static size_t bytes_of(const parts *p)
{
    return p->input + p->labels + p->sums + p->drawn + p->targets + p->staged + p->staged_labels;
}

size_t hpct_run_transit_bytes(const hpct_model *model, const hpct_run *run)
{
    if (device_of(run) == NULL)
        return 0;
    parts p = parts_of(model, run);
    return bytes_of(&p) - hpct_run_target_bytes(run);
}

static hpct_status make_device_part(const hpct_model *model, hpct_run *run)
{
    parts p = parts_of(model, run);
    size_t bytes = bytes_of(&p);
    char *at = run->transit = run->backend->allocate(bytes);
    if (at == NULL)
        return hpct_memory_fail(run->backend, bytes, "a batch");
    hpct_run_set_input(model, run, (float *) (void *) at);
    run->labels = (int32_t *) (void *) (at += p.input);
    run->sums = (hpct_batch_sums *) (void *) (at += p.labels);
    run->turns = (uint32_t *) (void *) (run->sums + 1);
    run->drawn = (hpct_drawn *) (void *) (at += p.sums);
    at += p.drawn;
    run->targets = p.targets > 0 ? (float *) (void *) at : NULL;
    run->staged = (float *) (void *) (at += p.targets);
    run->staged_labels = (int32_t *) (void *) (at + p.staged);
    bytes = (size_t) run->largest_batch * output_floats(model) * sizeof(float);
    run->host_output = take_host(run->backend, bytes);
    run->landing = take_host(run->backend, 2 * HPCT_FETCH_BYTES);
    if (device_of(run)->leaves_sums)
        run->left = take_host(run->backend, 2 * sizeof *run->left);
    if (run->host_output == NULL || run->landing == NULL ||
        (device_of(run)->leaves_sums && run->left == NULL))
        return hpct_fail_memory(bytes);
    return device_of(run)->taken(); /* what is sent there first comes behind its zeros */
}

hpct_status hpct_run_make_transit(const hpct_model *model, hpct_run *run)
{
    run->sums = &run->host_sums;
    if (run->dense_targets) {
        run->own_targets = take_host(run->backend, hpct_run_target_bytes(run));
        if (run->own_targets == NULL)
            return hpct_fail_memory(hpct_run_target_bytes(run));
    }
    run->targets = run->own_targets;
    return device_of(run) != NULL ? make_device_part(model, run) : HPCT_OK;
}

void hpct_run_free_transit(hpct_run *run)
{
    drop_host(run->backend, run->own_input);
    drop_host(run->backend, run->own_labels);
    drop_host(run->backend, run->own_targets);
    drop_host(run->backend, run->host_output);
    drop_host(run->backend, run->landing);
    drop_host(run->backend, run->left);
    if (run->transit != NULL)
        run->backend->release(run->transit);
}

_Static_assert(sizeof(hpct_batch_sums) <= HPCT_FETCH_BYTES, "sums are fetched whole");

/* ---- what goes in ---- */

void hpct_model_set_input(hpct_model *model, const float *input, const int32_t *labels)
{
    hpct_run *run = model->run;
    if (run == NULL)
        return;
    run->given = input;
    run->given_labels = labels;
    run->resident = NULL;
    run->keeps_input = false;
    run->kept = 0;
    if (device_of(run) != NULL)
        return;
    hpct_run_set_input(model, run, (float *) (uintptr_t) input);
    run->labels = (int32_t *) (uintptr_t) labels;
}

/* Who has samples of its own reads no others of the input. */
void hpct_run_set_own_input(const hpct_model *model, hpct_run *run, int n)
{
    size_t first = (size_t) hpct_samples_first(n, model->share.part, model->share.parts);
    char *all = run->transit != NULL ? run->transit : (char *) (uintptr_t) run->given;
    size_t size = hpct_precision_bytes(run->transit != NULL ? run->values : HPCT_FP32);
    hpct_run_set_input(model, run, (float *) (void *) (all + first * sample_floats(model) * size));
    if (run->transit != NULL)
        run->input = (float *) (void *) all; /* where the whole batch comes */
}

void hpct_model_keep_input(hpct_model *model)
{
    if (model->run != NULL) {
        model->run->keeps_input = true;
        model->run->kept = 0;
    }
}

static bool make_own_input(const hpct_model *model, hpct_run *run)
{
    size_t batch = (size_t) run->input_samples;
    if (run->own_input == NULL)
        run->own_input = take_host(run->backend, batch * sample_floats(model) * sizeof(float));
    if (run->own_labels == NULL)
        run->own_labels = take_host(run->backend, batch * sizeof *run->own_labels);
    return run->own_input != NULL && run->own_labels != NULL;
}

float *hpct_model_input(hpct_model *model)
{
    hpct_run *run = model->run;
    if (run == NULL || !make_own_input(model, run))
        return NULL;
    run->keeps_input = false; /* the caller may write */
    if (run->given != run->own_input || run->given_labels != run->own_labels)
        hpct_model_set_input(model, run->own_input, run->own_labels);
    return run->own_input;
}

int32_t *hpct_model_labels(hpct_model *model)
{
    return hpct_model_input(model) != NULL ? model->run->own_labels : NULL;
}

float *hpct_model_targets(hpct_model *model)
{
    return model->run != NULL ? model->run->own_targets : NULL;
}

hpct_status hpct_run_make_input(const hpct_run *run, int n)
{
    hpct_gather_call call = {
        .pictures = run->resident != NULL ? &run->resident->pictures : NULL,
        .n = n,
        .drawn = run->drawn,
        .values = run->values,
        .dst = run->input,
        .labels = run->labels,
    };
    return run->resident != NULL ? device_of(run)->gather(&call) : HPCT_OK;
}

/* While the device is busy with the step before, to where nothing of that step reads; then within
 * the device to where it is read. */
static hpct_status send_batch(const hpct_model *model, const hpct_run *run, int n)
{
    const hpct_device *device = device_of(run);
    size_t count = (size_t) n * sample_floats(model), labels = (size_t) n * sizeof *run->labels;
    hpct_status status = device->send_beside(run->staged, run->given, count * sizeof *run->staged);
    if (status == HPCT_OK && run->given_labels != NULL)
        status = device->send_beside(run->staged_labels, run->given_labels, labels);
    if (status == HPCT_OK)
        status = device->mark(HPCT_MARK_INPUT);
    if (status == HPCT_OK)
        status = device->take();
    if (status == HPCT_OK)
        status = run->values != HPCT_FP32
                     ? device->to_values(run->values, count, run->staged, run->input)
                     : device->copy(run->input, run->staged, count * sizeof *run->input);
    if (status == HPCT_OK && run->given_labels != NULL)
        status = device->copy(run->labels, run->staged_labels, labels);
    return status == HPCT_OK ? device->taken() : status;
}

static hpct_status send_drawn(const hpct_run *run, int n)
{
    const hpct_device *device = device_of(run);
    hpct_status status =
        device->send(run->drawn, run->given_drawn, (size_t) n * sizeof *run->drawn);
    return status == HPCT_OK ? device->mark(HPCT_MARK_DRAWN) : status;
}

hpct_status hpct_run_send_input(const hpct_model *model, hpct_run *run, int n)
{
    if (device_of(run) == NULL || (run->keeps_input && n <= run->kept))
        return HPCT_OK;
    hpct_status status = run->resident != NULL ? send_drawn(run, n) : send_batch(model, run, n);
    run->kept = status == HPCT_OK ? n : 0;
    return status;
}

hpct_status hpct_run_send_targets(hpct_run *run, int n)
{
    size_t bytes = (size_t) n * (size_t) run->classes * sizeof(float);
    return device_of(run) != NULL && run->targets != NULL
               ? device_of(run)->send(run->targets, run->own_targets, bytes)
               : HPCT_OK;
}

/* ---- what comes out ---- */

static hpct_status fetch_output(const hpct_model *model)
{
    const hpct_run *run = model->run;
    const float *from = run->output;
    size_t count = (size_t) run->stage_n * output_floats(model);
    hpct_status status = HPCT_OK;
    if (run->values != HPCT_FP32) {
        status = device_of(run)->from_values(run->values, count, run->output, run->staged);
        from = run->staged;
    }
    return status == HPCT_OK ? device_of(run)->to_host(run->host_output, from, count * sizeof *from)
                             : status;
}

const float *hpct_model_output(const hpct_model *model)
{
    const hpct_run *run = model->run;
    if (run == NULL || device_of(run) == NULL)
        return run != NULL ? run->output : NULL;
    return fetch_output(model) == HPCT_OK ? run->host_output : NULL;
}

hpct_status hpct_model_sums(const hpct_model *model, hpct_batch_sums *sums)
{
    const hpct_run *run = model->run;
    if (run == NULL)
        return hpct_fail(HPCT_ERR_USAGE, "model %s is not built", model->name);
    return hpct_memory_to_host(run->backend, sums, run->sums, sizeof *sums);
}

hpct_status hpct_model_put_sums(const hpct_model *model, float *to)
{
    return device_of(model->run)->put_sums(model->run->sums, to);
}

hpct_status hpct_model_send(const hpct_model *model, float *arena, const float *host, size_t count)
{
    return device_of(model->run)->send(arena, host, count * sizeof *host);
}

static hpct_status mark_fetch(const hpct_run *run, int which)
{
    return device_of(run)->mark((hpct_mark) (HPCT_MARK_FETCH + which));
}

static hpct_status fetch(hpct_run *run, int which, const void *from, size_t bytes)
{
    char *to = run->landing + which * HPCT_FETCH_BYTES;
    hpct_status status = device_of(run)->fetch(to, from, bytes);
    run->fetched[which] = to;
    return status == HPCT_OK ? mark_fetch(run, which) : status;
}

hpct_status hpct_model_fetch(const hpct_model *model, int which, const float *arena, size_t bytes)
{
    return fetch(model->run, which, arena, bytes);
}

/* A step that was made whole has left them. */
hpct_status hpct_model_fetch_sums(const hpct_model *model, int which)
{
    hpct_run *run = model->run;
    if (!run->last_left)
        return fetch(run, which, run->sums, sizeof *run->sums);
    run->fetched[which] = &run->left[(run->known_turns - 1) % 2];
    return mark_fetch(run, which);
}

hpct_status hpct_model_fetched(const hpct_model *model, int which, void *to, size_t bytes)
{
    const hpct_run *run = model->run;
    hpct_status status = device_of(run)->await((hpct_mark) (HPCT_MARK_FETCH + which));
    if (status == HPCT_OK)
        memcpy(to, run->fetched[which], bytes);
    return status;
}

hpct_status hpct_model_await_input(const hpct_model *model)
{
    const hpct_device *device = model->run != NULL ? device_of(model->run) : NULL;
    hpct_status status = device != NULL ? device->await(HPCT_MARK_INPUT) : HPCT_OK;
    return status == HPCT_OK && device != NULL ? device->await(HPCT_MARK_DRAWN) : status;
}

/* ---- arenas ---- */

hpct_status hpct_model_read(const hpct_model *model, float *host, const float *arena, size_t count)
{
    return hpct_memory_to_host(model->run->backend, host, arena, count * sizeof *host);
}

hpct_status hpct_model_write(const hpct_model *model, float *arena, const float *host, size_t count)
{
    return hpct_memory_from_host(model->run->backend, arena, host, count * sizeof *host);
}

size_t hpct_model_scaling_bytes(const hpct_model *model)
{
    return model->run != NULL && model->run->scaling != NULL ? sizeof model->scaling : 0;
}

hpct_status hpct_model_read_scaling(const hpct_model *model, void *state)
{
    return hpct_memory_to_host(model->run->backend, state, model->run->scaling,
                               hpct_model_scaling_bytes(model));
}

hpct_status hpct_model_write_scaling(hpct_model *model, const void *state)
{
    return hpct_memory_from_host(model->run->backend, model->run->scaling, state,
                                 hpct_model_scaling_bytes(model));
}

void *hpct_model_scaling(const hpct_model *model)
{
    return model->run != NULL ? model->run->scaling : NULL;
}

bool hpct_are_finite(const float *values, size_t count)
{
    bool finite = true;
    for (size_t i = 0; i < count; i++)
        finite = finite && isfinite(values[i]);
    return finite;
}

hpct_status hpct_model_unscale(hpct_model *model, float *gradients, size_t count, bool *again)
{
    hpct_loss_scaling state;
    *again = false;
    if (hpct_model_scaling_bytes(model) == 0)
        return HPCT_OK;
    hpct_status status = hpct_model_read_scaling(model, &state);
    float scale = state.scale;
    bool finite = hpct_are_finite(gradients, count);
    if (status != HPCT_OK)
        return status;
    for (size_t i = 0; i < count && finite; i++)
        gradients[i] /= scale;
    hpct_loss_scaling_move(&state, finite, 0, 0);
    *again = !finite && state.scale < scale;
    return hpct_model_write_scaling(model, &state);
}

hpct_status hpct_model_copy_scaling(const hpct_model *from, hpct_model *to)
{
    to->scaling = from->scaling;
    hpct_status status = HPCT_OK;
    if (hpct_model_scaling_bytes(from) > 0)
        status = hpct_model_read_scaling(from, &to->scaling);
    if (status == HPCT_OK && hpct_model_scaling_bytes(to) > 0)
        status = hpct_model_write_scaling(to, &to->scaling);
    return status;
}

hpct_status hpct_model_gradient_scale(const hpct_model *model, float *scale)
{
    hpct_loss_scaling state = {.scale = 1};
    hpct_status status = HPCT_OK;
    if (hpct_model_scaling_bytes(model) > 0)
        status = hpct_model_read_scaling(model, &state);
    *scale = state.scale;
    return status;
}

hpct_status hpct_model_wait(const hpct_model *model)
{
    return model->run != NULL ? hpct_memory_wait(model->run->backend) : HPCT_OK;
}

hpct_status hpct_model_clear_gradients(hpct_model *model)
{
    const hpct_run *run = model->run;
    return hpct_memory_zero(run->backend, run->gradients, run->arena_floats * sizeof(float));
}

/* ---- where ---- */

static const hpct_backend *backend_of(const hpct_model *model)
{
    if (model->run != NULL)
        return model->run->backend;
    return model->backend != NULL ? model->backend : &hpct_backend_cpu;
}

void *hpct_model_take_host(const hpct_model *model, size_t bytes)
{
    return take_host(backend_of(model), bytes);
}

void hpct_model_return_host(const hpct_model *model, void *memory)
{
    drop_host(backend_of(model), memory);
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
    return model->backend != NULL ? model->backend->name : hpct_backend_cpu.name;
}

bool hpct_model_on_device(const hpct_model *model)
{
    return backend_of(model)->device != NULL;
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

void hpct_model_divide_input(hpct_model *model, const hpct_division *division)
{
    model->division = division != NULL ? *division : (hpct_division){0};
}

hpct_status hpct_model_memory_left(const hpct_model *model, size_t *bytes)
{
    const hpct_device *device = backend_of(model)->device;
    size_t all;
    *bytes = SIZE_MAX;
    return device != NULL ? device->memory(bytes, &all) : HPCT_OK;
}

hpct_status hpct_model_check_device(const hpct_model *model)
{
    return backend_of(model)->check_precision(model->precision);
}
