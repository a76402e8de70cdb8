/* Buffers for transfers between host and device. */
#include "nn/plan/run.h"

#include "base/status.h"

static size_t aligned(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* Bytes of the parts of run->transit.memory, in their order. */
typedef struct parts {
    size_t input, labels, sums, drawn, targets, staged, staged_labels, weights;
} parts;

static parts parts_of(const hpct_model *model, const hpct_run *run)
{
    size_t batch = (size_t) run->batches.largest, in = hpct_model_input_floats(model),
           out = hpct_model_output_floats(model);
    return (parts){
        .input = aligned(batch * in * hpct_backend_precision_bytes(run->values)),
        .labels = aligned(batch * sizeof *run->input.labels),
        .sums = aligned(sizeof *run->sums.last + sizeof *run->sums.turns),
        .drawn = aligned(batch * sizeof *run->input.drawn),
        .targets = aligned(hpct_run_target_bytes(run, run->batches.largest)),
        .staged = aligned(batch * (in > out ? in : out) * sizeof(float)),
        .staged_labels = aligned(batch * sizeof *run->input.labels),
        .weights = aligned((size_t) model->num_class_weights * sizeof *model->class_weights),
    };
}

static size_t bytes_of(const parts *p)
{
    return p->input + p->labels + p->sums + p->drawn + p->targets + p->staged + p->staged_labels +
           p->weights;
}

size_t hpct_run_transit_bytes(const hpct_model *model, const hpct_run *run)
{
    if (run->backend->device == NULL)
        return 0;
    parts p = parts_of(model, run);
    return bytes_of(&p) - hpct_run_target_bytes(run, run->batches.largest);
}

static hpct_status send_weights(const hpct_model *model, hpct_run *run, float *to)
{
    size_t bytes = (size_t) model->num_class_weights * sizeof *to;
    run->loss.class_weights = to;
    return hpct_backend_memory_from_host(run->backend, to, model->class_weights, bytes);
}

static hpct_status make_device_part(const hpct_model *model, hpct_run *run)
{
    parts p = parts_of(model, run);
    size_t bytes = bytes_of(&p);
    char *at = run->transit.memory = run->backend->allocate(bytes);
    if (at == NULL)
        return hpct_backend_memory_fail(run->backend, bytes, "a batch");
    hpct_run_set_input(model, run, (float *) (void *) at);
    run->input.labels = (int32_t *) (void *) (at += p.input);
    run->sums.last = (hpct_backend_batch_sums *) (void *) (at += p.labels);
    run->sums.turns = (uint32_t *) (void *) (run->sums.last + 1);
    run->input.drawn = (hpct_drawn *) (void *) (at += p.sums);
    at += p.drawn;
    run->input.targets = p.targets > 0 ? (float *) (void *) at : NULL;
    run->transit.staged = (float *) (void *) (at += p.targets);
    run->transit.staged_labels = (int32_t *) (void *) (at += p.staged);
    float *weights = (float *) (void *) (at + p.staged_labels);
    bytes = (size_t) run->batches.largest * hpct_model_output_floats(model) * sizeof(float);
    run->transit.output = hpct_backend_memory_take_host(run->backend, bytes);
    run->transit.landing = hpct_backend_memory_take_host(run->backend, 2 * HPCT_RUN_FETCH_BYTES);
    if (run->backend->device->leaves_sums)
        run->sums.left = hpct_backend_memory_take_host(run->backend, 2 * sizeof *run->sums.left);
    if (run->transit.output == NULL || run->transit.landing == NULL ||
        (run->backend->device->leaves_sums && run->sums.left == NULL))
        return hpct_fail_memory(bytes);
    HPCT_TRY(run->backend->device->taken()); /* copies must come after the zeroing */
    return model->class_weights != NULL ? send_weights(model, run, weights) : HPCT_OK;
}

void hpct_run_set_targets(hpct_run *run, const float *targets)
{
    run->input.given_targets = targets;
    if (run->backend->device == NULL)
        run->input.targets = (float *) (uintptr_t) targets;
}

hpct_status hpct_run_make_transit(const hpct_model *model, hpct_run *run)
{
    run->sums.last = &run->sums.host;
    size_t targets = hpct_run_target_bytes(run, run->input.samples);
    if (run->dense_targets) {
        run->input.own_targets = hpct_backend_memory_take_host(run->backend, targets);
        if (run->input.own_targets == NULL)
            return hpct_fail_memory(targets);
    }
    hpct_run_set_targets(run, run->input.own_targets);
    run->loss.class_weights = model->class_weights;
    return run->backend->device != NULL ? make_device_part(model, run) : HPCT_OK;
}

void hpct_run_free_transit(hpct_run *run)
{
    hpct_backend_memory_return_host(run->backend, run->input.own);
    hpct_backend_memory_return_host(run->backend, run->input.own_labels);
    hpct_backend_memory_return_host(run->backend, run->input.own_targets);
    hpct_backend_memory_return_host(run->backend, run->transit.output);
    hpct_backend_memory_return_host(run->backend, run->transit.landing);
    hpct_backend_memory_return_host(run->backend, run->sums.left);
    if (run->transit.memory != NULL)
        run->backend->release(run->transit.memory);
}

_Static_assert(sizeof(hpct_backend_batch_sums) <= HPCT_RUN_FETCH_BYTES, "sums are fetched whole");
