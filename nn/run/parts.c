/* The operations of a model as parts of its step: properties and times. */
#include "nn/run/parts.h"

#include "base/fnv.h"
#include "base/sort.h"
#include "base/status.h"
#include "nn/graph/kinds.h"
#include "nn/graph/parallel.h"
#include "nn/plan/run.h"
#include "nn/run/profile.h"
#include "nn/run/step.h"

#include <stdlib.h>
#include <string.h>

int hpct_model_count_parts(const hpct_model *model)
{
    return model->num_nodes;
}

/* The node that produces a tensor or the tensor it is a view of; -1 for the model's input. */
static int maker(const hpct_model *model, int tensor)
{
    int root = model->tensors[tensor].root;
    for (int i = 0; i < model->num_nodes; i++) {
        if (model->tensors[model->nodes[i].output].root == root)
            return i;
    }
    return -1;
}

static hpct_run_part_split split_of(const hpct_op_spec *spec)
{
    if (hpct_op_parallel(spec) & HPCT_GRAPH_PARALLEL_BEGINS)
        return HPCT_RUN_PART_MAKES;
    return hpct_op_facts_of(spec)->predicted_split ? HPCT_RUN_PART_PASSES_ON : HPCT_RUN_PART_WHOLE;
}

hpct_run_part hpct_model_part(const hpct_model *model, int index)
{
    const hpct_graph_node *node = &model->nodes[index];
    const hpct_op_spec *spec = &node->spec;
    hpct_run_part part = {
        .layer = model->layers[node->layer].name,
        .kind = hpct_op_kind_name(spec->kind),
        .split = split_of(spec),
        .dense = spec->kind == HPCT_OP_DENSE,
        .input = maker(model, node->inputs[0]),
        .joins = node->num_inputs > 1,
        .cells = (hpct_op_parallel(spec) & HPCT_GRAPH_PARALLEL_CELLS) != 0
                     ? (size_t) hpct_graph_window_cells(&spec->window)
                     : 0,
        .results = hpct_graph_shape_count(&model->tensors[node->output].shape),
    };
    for (int k = 0; k < node->num_params; k++) {
        const hpct_graph_param *param = &model->params[node->first_param + k];
        size_t floats = hpct_graph_shape_count(&param->shape);
        part.gradients += param->state ? 0 : floats;
        if (k == HPCT_OP_KERNEL && part.split == HPCT_RUN_PART_MAKES) {
            part.cols = (size_t) param->shape.size[param->shape.rank - 1];
            part.rows = floats / part.cols;
        }
    }
    if (hpct_op_is_synced_norm(spec))
        part.synchronize = 4 * (size_t) spec->norm.channels + 1;
    return part;
}

uint64_t hpct_model_parts_fingerprint(const hpct_model *model)
{
    uint64_t hash = HPCT_FNV_START;
    for (int i = 0; i < model->num_nodes; i++) {
        const hpct_run_part part = hpct_model_part(model, i);
        const uint64_t numbers[] = {model->nodes[i].spec.kind, part.results, part.gradients};
        hash = hpct_fnv(hash, numbers, sizeof numbers);
    }
    return hash;
}

/* ---- times ---- */

/* Collectives of a split model without peers. */
static hpct_status add_nothing(void *argument, float *data, size_t count)
{
    (void) argument;
    (void) data;
    (void) count;
    return HPCT_OK;
}

static hpct_status gather_own(void *parts, const float *mine, float *all, size_t count)
{
    for (int part = 0; part < *(const int *) parts; part++)
        memcpy(all + (size_t) part * count, mine, count * sizeof *mine);
    return HPCT_OK;
}

/* Number of parts the model is split into; 0 if not split. */
static int count_splits(const hpct_model *model)
{
    int parts = 0;
    for (int i = 0; i < model->num_nodes; i++) {
        if (hpct_op_is_collective(&model->nodes[i].spec))
            parts = model->nodes[i].spec.parts.split.parts;
    }
    return parts;
}

static hpct_status one_step(hpct_model *model, int n)
{
    bool due;
    hpct_backend_batch_sums sums;
    HPCT_TRY(hpct_model_forward(model, n, true));
    HPCT_TRY(hpct_model_loss(model, n, 1.0f / (float) n, &sums));
    HPCT_TRY(hpct_model_backward(model, n));
    HPCT_TRY(hpct_model_accumulate(model, &due));
    return due ? hpct_model_update(model) : HPCT_OK;
}

/* room: [steps] */
static double median(const hpct_run_times *times, int slot, double *room)
{
    for (int i = 0; i < times->steps; i++)
        room[i] = times->seconds[(size_t) i * (size_t) times->slots + (size_t) slot];
    hpct_sort_numbers(room, (size_t) times->steps);
    return room[times->steps / 2];
}

hpct_status hpct_model_time_parts(hpct_model *model, int n, int steps, hpct_run_step_seconds *out)
{
    hpct_run_profile *profile = NULL;
    const hpct_graph_step_peers others = model->peers;
    const int64_t before = model->steps;
    double *room = malloc((size_t) steps * sizeof *room);
    hpct_status status = room != NULL ? HPCT_OK : hpct_fail_memory((size_t) steps * sizeof *room);
    int splits = count_splits(model);
    model->peers = (hpct_graph_step_peers){0};
    if (splits > 0)
        model->peers =
            (hpct_graph_step_peers){.sum = add_nothing, .gather = gather_own, .argument = &splits};
    if (status == HPCT_OK)
        status = one_step(model, n);
    if (status == HPCT_OK)
        status = hpct_run_profile_start(&profile, model, steps);
    for (int i = 0; i < steps && status == HPCT_OK; i++)
        status = one_step(model, n);
    if (status == HPCT_OK) {
        const hpct_run_times *times = model->run->times;
        for (int i = 0; i < model->num_nodes; i++) {
            out->parts[i] = (hpct_run_part_seconds){0, 0};
            if (hpct_op_is_collective(&model->nodes[i].spec))
                continue;
            out->parts[i] = (hpct_run_part_seconds){median(times, HPCT_RUN_TIME_FORWARD(i), room),
                                                    median(times, HPCT_RUN_TIME_BACKWARD(i), room)};
        }
        out->loss = median(times, HPCT_RUN_TIME_LOSS(model->num_nodes), room);
        out->update = median(times, HPCT_RUN_TIME_UPDATE(model->num_nodes), room);
    }
    hpct_run_profile_stop(profile);
    model->peers = others;
    model->steps = before; /* ranks may have timed different numbers of steps */
    free(room);
    return status;
}
