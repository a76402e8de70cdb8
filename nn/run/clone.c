/* Replicas: copies of a model, and copying between them. */
#include "nn/run/clone.h"

#include "base/status.h"
#include "nn/run/resident.h"
#include "nn/run/run.h"

#include <stdlib.h>
#include <string.h>

static void *copy_of(const void *array, int count, size_t size, hpct_status *status)
{
    size_t bytes = (size_t) count * size;
    void *copy = *status == HPCT_OK ? malloc(bytes + 1) : NULL;
    if (copy != NULL && bytes > 0)
        memcpy(copy, array, bytes);
    else if (copy == NULL && *status == HPCT_OK)
        *status = hpct_fail_memory(bytes);
    return copy;
}
#define COPY(model, array, count, status)                                                          \
    copy_of((model)->array, (model)->count, sizeof *(model)->array, status)

hpct_status hpct_model_clone(hpct_model **out, const hpct_model *model)
{
    if (model->status != HPCT_OK || !model->compiled)
        return hpct_fail(HPCT_ERR_USAGE, "model %s must be compiled before it is cloned",
                         model->name);
    hpct_model *clone = malloc(sizeof *clone);
    if (clone == NULL)
        return hpct_fail_memory(sizeof *clone);
    hpct_status status = HPCT_OK;
    *clone = *model;
    clone->run = NULL;
    clone->builds = 0;
    clone->holders = 0;
    clone->freed = false;
    clone->peers = (hpct_graph_step_peers){0};
    clone->message = NULL;
    clone->class_names = clone->trained_with = NULL;
    clone->name = copy_of(model->name, (int) strlen(model->name) + 1, 1, &status);
    if (model->class_names != NULL)
        clone->class_names =
            copy_of(model->class_names, (int) strlen(model->class_names) + 1, 1, &status);
    if (model->trained_with != NULL)
        clone->trained_with =
            copy_of(model->trained_with, (int) strlen(model->trained_with) + 1, 1, &status);
    clone->layers = COPY(model, layers, num_layers, &status);
    clone->nests = COPY(model, nests, num_nests, &status);
    clone->params = COPY(model, params, num_params, &status);
    clone->tensors = COPY(model, tensors, num_tensors, &status);
    clone->nodes = COPY(model, nodes, num_nodes, &status);
    if (model->class_weights != NULL)
        clone->class_weights = COPY(model, class_weights, num_class_weights, &status);
    if (clone->params == NULL)
        clone->num_params = 0;
    for (int i = 0; i < clone->num_params; i++) {
        clone->params[i].value = NULL;
        memset(clone->params[i].slot, 0, sizeof clone->params[i].slot);
    }
    if (status == HPCT_OK)
        *out = clone;
    else
        hpct_model_free(clone);
    return status;
}

static hpct_status check_alike(const hpct_model *a, const hpct_model *b)
{
    if (a->run == NULL || b->run == NULL ||
        a->run->arenas.fingerprint != b->run->arenas.fingerprint ||
        a->run->arenas.floats != b->run->arenas.floats)
        return hpct_fail(HPCT_ERR_INTERNAL, "two replicas of model %s have different layouts",
                         a->name);
    return HPCT_OK;
}

static hpct_status copy_arena(const hpct_run *run, size_t count, const float *from, float *to)
{
    return from == NULL || to == NULL || from == to
               ? HPCT_OK
               : run->backend->accumulate(count, from, to, true);
}

hpct_status hpct_model_copy_from(hpct_model *replica, const hpct_model *model)
{
    HPCT_TRY(check_alike(replica, model));
    hpct_run *to = replica->run;
    const hpct_run *from = model->run;
    hpct_status status =
        copy_arena(to, to->arenas.floats, from->arenas.parameters, to->arenas.parameters);
    for (int k = 0; k < HPCT_GRAPH_MAX_SLOTS && status == HPCT_OK; k++)
        status = copy_arena(to, to->arenas.floats, from->arenas.slot[k], to->arenas.slot[k]);
    if (status == HPCT_OK)
        status = copy_arena(to, to->arenas.state_floats + to->arenas.frozen_floats,
                            from->arenas.states, to->arenas.states);
    to->arenas.stale = true;
    replica->steps = model->steps;
    return status;
}

/* ---- between layouts and devices ---- */

static float *in_arena(const hpct_run *run, hpct_run_arena arena, int param)
{
    float *const arenas[] = {run->arenas.parameters, run->arenas.states, run->arenas.gradients,
                             run->arenas.states};
    return arenas[arena] + run->arenas.param_offsets[param];
}

/* Same layout, at least one side in host memory. */
static hpct_status copy_bytes(const hpct_run *to, const hpct_run *from, float *at,
                              const float *source, size_t bytes)
{
    return from->backend->device != NULL
               ? hpct_backend_memory_to_host(from->backend, at, source, bytes)
               : hpct_backend_memory_from_host(to->backend, at, source, bytes);
}

static hpct_status turn(hpct_op *to, hpct_op *from, int which, float *at, const float *source)
{
    size_t bytes = hpct_op_param_floats(&from->spec, which) * sizeof(float);
    float *keras = malloc(bytes);
    if (keras == NULL)
        return hpct_fail_memory(bytes);
    hpct_status status = hpct_op_export(from, which, source, keras);
    if (status == HPCT_OK)
        status = hpct_op_import(to, which, keras, at);
    free(keras);
    return status;
}

static hpct_status translate(const hpct_model *model, const hpct_model *other, hpct_run_arena arena,
                             int index)
{
    const hpct_graph_param *param = &model->params[index];
    const hpct_run *to = model->run, *from = other->run;
    hpct_op *op = to->nodes[param->node].op, *source = from->nodes[param->node].op;
    uint64_t layout = op->param_layout[param->index], given = source->param_layout[param->index];
    float *at = in_arena(to, arena, index);
    const float *origin = in_arena(from, arena, index);
    bool apart = to->backend->device != NULL && from->backend->device != NULL;
    if (layout == given && !apart)
        return copy_bytes(to, from, at, origin, op->param_floats[param->index] * sizeof *at);
    if (layout == 0 && to->backend->device == NULL)
        return hpct_op_export(source, param->index, origin, at);
    if (given == 0 && from->backend->device == NULL)
        return hpct_op_import(op, param->index, origin, at);
    return turn(op, source, param->index, at, origin);
}

static bool is_in(hpct_run_arena arena, const hpct_graph_param *param)
{
    if (param->frozen || arena == HPCT_RUN_ARENA_FROZEN)
        return param->frozen && arena == HPCT_RUN_ARENA_FROZEN;
    return param->state == (arena == HPCT_RUN_ARENA_STATES);
}

hpct_status hpct_model_translate(hpct_model *model, const hpct_model *other, hpct_run_arena arena)
{
    hpct_status status = HPCT_OK;
    if (model->run == NULL || other->run == NULL || model->num_params != other->num_params)
        return hpct_fail(HPCT_ERR_INTERNAL, "two replicas of model %s differ", model->name);
    for (int i = 0; i < model->num_params && status == HPCT_OK; i++) {
        if (is_in(arena, &model->params[i]))
            status = translate(model, other, arena, i);
    }
    if (arena != HPCT_RUN_ARENA_GRADIENTS)
        model->run->arenas.stale = true;
    return status;
}

void hpct_model_take_part(hpct_model *replica, const hpct_model *model, int begin)
{
    const hpct_run *whole = model->run;
    if (replica == model || whole == NULL || replica->run == NULL)
        return;
    replica->rate = model->rate;
    replica->halvings = model->halvings;
    size_t sample = hpct_graph_shape_count(&model->tensors[0].shape);
    if (whole->input.resident != NULL)
        hpct_model_set_resident_input(replica, hpct_run_resident_of(whole->input.resident, replica),
                                      whole->input.given_drawn + begin);
    const float *input =
        whole->input.given != NULL ? whole->input.given + (size_t) begin * sample : NULL;
    const int32_t *labels =
        whole->input.given_labels != NULL ? whole->input.given_labels + begin : NULL;
    if (whole->input.resident == NULL &&
        (replica->run->input.given != input || replica->run->input.given_labels != labels))
        hpct_model_set_input(replica, input, labels);
    const float *targets = whole->input.given_targets;
    hpct_run_set_targets(replica->run, targets != NULL
                                           ? targets + (size_t) begin * (size_t) whole->loss.classes
                                           : NULL);
    hpct_model_set_position(replica, model->position.seed, model->position.step,
                            model->position.first_sample + begin);
    replica->steps = model->steps;
}

hpct_status hpct_model_add_gradients(hpct_model *model, const hpct_model *replica, size_t first,
                                     size_t count)
{
    HPCT_TRY(check_alike(model, replica));
    return model->run->backend->accumulate(count, replica->run->arenas.gradients + first,
                                           model->run->arenas.gradients + first, false);
}
