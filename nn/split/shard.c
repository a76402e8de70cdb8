/* A shard of a model: its graph, built from a plan, and its weights as slices of the whole's. */
#include "nn/split/shard.h"

#include "base/fnv.h"
#include "base/status.h"
#include "nn/backend/collective.h"
#include "nn/run/run.h"
#include "nn/run/step.h"
#include "nn/split/shard_plan.h"

#include <stdlib.h>
#include <string.h>

struct hpct_split_shard {
    int part, parts;
    hpct_model *model;
    hpct_graph_param_slice *slices; /* [num_params] */
    hpct_split_shard_range *summed; /* [num_params], ranges of the last build */
};

/* ---- the graph ---- */

/* State while the shard's graph is created. */
typedef struct making {
    const hpct_split_shard_plan *plan;
    const hpct_model *whole;
    hpct_model *model; /* the shard's */
    int *gathered;     /* [whole's tensors] gathered version of a tensor, or itself */
    int added;         /* nodes added so far that the whole model does not have */
} making;

static void *copy_of(const void *from, size_t count, size_t room, size_t size)
{
    void *to = calloc(room + 1, size);
    if (to != NULL && count > 0)
        memcpy(to, from, count * size);
    return to;
}

/* Allocates room for what a shard can have beyond the whole: per node a collective and its tensor,
 * and a second version of each view. */
static hpct_status copy_model(making *m)
{
    const hpct_model *whole = m->whole;
    hpct_model *model = m->model = calloc(1, sizeof *model);
    if (model == NULL)
        return hpct_fail_memory(sizeof *model);
    size_t tensors = (size_t) whole->num_tensors, nodes = (size_t) whole->num_nodes;
    *model = *whole;
    model->message = NULL;
    model->class_names = model->trained_with = NULL; /* the whole model saves weights */
    model->run = NULL;
    model->builds = 0;
    model->peers = (hpct_graph_step_peers){0};
    model->num_nodes = 0;
    model->name = strdup(whole->name);
    model->layers = copy_of(whole->layers, (size_t) whole->num_layers, (size_t) whole->num_layers,
                            sizeof *whole->layers);
    model->nests = copy_of(whole->nests, (size_t) whole->num_nests, (size_t) whole->num_nests,
                           sizeof *whole->nests);
    model->params = copy_of(whole->params, (size_t) whole->num_params, (size_t) whole->num_params,
                            sizeof *whole->params);
    model->tensors = copy_of(whole->tensors, tensors, 2 * tensors + nodes, sizeof *whole->tensors);
    model->nodes = copy_of(NULL, 0, 2 * nodes, sizeof *whole->nodes);
    size_t weights = (size_t) whole->num_class_weights;
    model->class_weights =
        weights > 0 ? copy_of(whole->class_weights, weights, weights, sizeof(float)) : NULL;
    m->gathered = calloc(tensors, sizeof *m->gathered);
    for (int i = 0; model->params != NULL && i < whole->num_params; i++) {
        model->params[i].value = NULL; /* owned by the whole */
        memset(model->params[i].slot, 0, sizeof model->params[i].slot);
    }
    bool all = model->name != NULL && model->layers != NULL && model->nests != NULL &&
               model->params != NULL && model->tensors != NULL && model->nodes != NULL &&
               m->gathered != NULL && (weights == 0 || model->class_weights != NULL);
    return all ? HPCT_OK : hpct_fail_memory(tensors * sizeof *whole->tensors);
}

/* The shard's shape of a split tensor. If the last axis is not a multiple of the split's channels,
 * no operation reads the tensor split. */
static hpct_shape part_shape(const hpct_shape *whole, const hpct_graph_channel_split *split)
{
    hpct_shape shape = *whole;
    int *last = &shape.size[shape.rank - 1],
        own = hpct_graph_channel_split_count(split, split->part);
    if (*last % split->channels == 0)
        *last = *last / split->channels * own;
    else
        shape = HPCT_SHAPE((int) (hpct_graph_shape_count(whole) / (size_t) split->channels) * own);
    return shape;
}

static int add_tensor(hpct_model *model, const hpct_shape *shape, int layer)
{
    int tensor = model->num_tensors++;
    model->tensors[tensor] =
        (hpct_graph_tensor){.shape = *shape, .root = tensor, .layer = layer, .read = true};
    return tensor;
}

static void split_tensors(making *m)
{
    const hpct_model *whole = m->whole;
    for (int t = 0; t < whole->num_tensors; t++) {
        const hpct_graph_tensor *tensor = &whole->tensors[t];
        const hpct_graph_channel_split *split = &m->plan->splits[tensor->root];
        m->gathered[t] = t;
        m->model->tensors[t].local = m->plan->local[tensor->root];
        if (m->plan->gathers[tensor->root] || m->plan->collects[tensor->root]) {
            int all = m->gathered[t] = add_tensor(m->model, &tensor->shape, tensor->layer);
            m->model->tensors[all].root = m->gathered[tensor->root];
        }
        if (split->channels > 0)
            m->model->tensors[t].shape = part_shape(&tensor->shape, split);
    }
}

static hpct_graph_node *add_node(making *m, const hpct_graph_node *node)
{
    hpct_graph_node *added = &m->model->nodes[m->model->num_nodes++];
    *added = *node;
    added->added = m->added;
    return added;
}

/* The first collective of forward carries the piggybacked values. */
static void add_collective(making *m, const hpct_op_spec *spec, hpct_graph_node node)
{
    node.spec = *spec;
    node.spec.parts.carries = m->added == 0;
    node.num_inputs = 1;
    add_node(m, &node);
    m->added++;
}

static void own_params(making *m, int first, int count)
{
    for (int k = 0; k < count; k++) {
        m->model->params[first + k].node = m->model->num_nodes - 1;
        m->model->params[first + k].index = k;
    }
}

/* The Dense keeps its kernel; its bias moves to the SUM_PARTS. */
static void add_sum(making *m, int i, const hpct_op_spec *spec)
{
    const hpct_graph_node *node = &m->whole->nodes[i];
    hpct_graph_node *dense = &m->model->nodes[m->model->num_nodes - 1];
    int part = add_tensor(m->model, &m->whole->tensors[node->output].shape, node->layer);
    dense->output = part;
    dense->num_params = 1;
    hpct_graph_node sum = {.inputs = {part},
                           .output = node->output,
                           .layer = node->layer,
                           .first_param = node->first_param + 1,
                           .num_params = node->num_params - 1};
    add_collective(m, spec, sum);
    own_params(m, sum.first_param, sum.num_params);
}

static void add_gather(making *m, int i, const hpct_op_spec *spec)
{
    const hpct_graph_node *node = &m->whole->nodes[i];
    add_collective(m, spec,
                   (hpct_graph_node){.inputs = {node->output},
                                     .output = m->gathered[node->output],
                                     .layer = node->layer});
}

/* The node's operation in this shard: unchanged in the front (local batch), else a part on all
 * samples. Unsynchronized statistics there are computed in groups, of the samples that a
 * data-parallel rank would have. */
static hpct_op_spec part_spec(const hpct_split_shard_plan *plan, int i)
{
    const hpct_op_spec *whole = &plan->model->nodes[i].spec;
    hpct_graph_channel_split in = hpct_split_shard_plan_in(plan, i),
                             out = hpct_split_shard_plan_out(plan, i);
    if (i < plan->front)
        return *whole;
    hpct_op_spec spec = hpct_op_part(whole, &in, &out);
    if (spec.kind == HPCT_OP_BATCH_NORM && !whole->norm.synchronized)
        spec.norm.groups = plan->parts;
    return spec;
}

static bool reads_gathered(const hpct_split_shard_plan *plan, int i, int tensor)
{
    return i >= plan->front &&
           (plan->wants_whole[i] || plan->collects[plan->model->tensors[tensor].root]);
}

static void split_nodes(making *m)
{
    const hpct_split_shard_plan *plan = m->plan;
    for (int i = 0; i < m->whole->num_nodes; i++) {
        const hpct_graph_node *node = &m->whole->nodes[i];
        hpct_graph_node *added = add_node(m, node);
        added->spec = part_spec(plan, i);
        added->partial = plan->partial[i];
        added->local = i < plan->front;
        own_params(m, node->first_param, node->num_params);
        for (int k = 0; k < node->num_inputs; k++) {
            if (reads_gathered(plan, i, node->inputs[k]))
                added->inputs[k] = m->gathered[node->inputs[k]];
        }
        hpct_op_spec meeting = hpct_split_shard_plan_meeting(plan, i);
        if (meeting.kind == HPCT_OP_SUM_PARTS)
            add_sum(m, i, &meeting);
        else if (meeting.kind != HPCT_OP_KINDS)
            add_gather(m, i, &meeting);
    }
    m->model->output = m->gathered[m->whole->output];
}

/* Sets the slice of each parameter. From here on only the size of a parameter's shape is used, and
 * whether its rank is 1. */
static void slice_params(hpct_split_shard *shard, const hpct_split_shard_plan *plan)
{
    const hpct_model *whole = plan->model;
    for (int i = 0; i < whole->num_params; i++) {
        const hpct_graph_param *param = &whole->params[i];
        hpct_graph_channel_split in = hpct_split_shard_plan_in(plan, param->node),
                                 out = hpct_split_shard_plan_out(plan, param->node);
        shard->slices[i] = hpct_op_slice(&whole->nodes[param->node].spec, param->index, &in, &out);
        int floats = (int) hpct_graph_param_slice_floats(&shard->slices[i], shard->part);
        shard->model->params[i].shape =
            param->shape.rank > 1 ? HPCT_SHAPE(floats, 1) : HPCT_SHAPE(floats);
        shard->model->params[i].split = shard->slices[i].split.channels > 0;
    }
}

static hpct_status check(const hpct_model *whole, const hpct_split_shard_options *options)
{
    if (!whole->compiled)
        return hpct_fail(HPCT_ERR_USAGE, "model %s must be compiled before it is split",
                         whole->name);
    if (options->parts < 2 || options->part < 0 || options->part >= options->parts ||
        options->samples < 1)
        return hpct_fail(HPCT_ERR_USAGE, "part %d of %d, with %d samples a step", options->part,
                         options->parts, options->samples);
    return HPCT_OK;
}

hpct_status hpct_split_shard_outline(hpct_split_shard_step *steps, const hpct_model *whole,
                                     const hpct_split_shard_options *options)
{
    hpct_split_shard_plan plan = {0};
    hpct_status status = check(whole, options);
    if (status == HPCT_OK)
        status = hpct_split_shard_plan_make(&plan, whole, options);
    for (int i = 0; i < whole->num_nodes && status == HPCT_OK; i++) {
        hpct_op_spec meeting = hpct_split_shard_plan_meeting(&plan, i);
        bool meets = meeting.kind != HPCT_OP_KINDS,
             split = hpct_split_shard_plan_in(&plan, i).channels > 0 ||
                     hpct_split_shard_plan_out(&plan, i).channels > 0;
        steps[i] = (hpct_split_shard_step){
            .local = i < plan.front,
            .split = split,
            .partial = plan.partial[i],
            .sums = plan.sums[i],
            .gathers = meets && !plan.sums[i],
            .floats = meets ? (double) hpct_op_dst_floats(&meeting) : 0,
            .again = meets && meeting.parts.sum_diff,
        };
    }
    hpct_split_shard_plan_free(&plan);
    return status;
}

hpct_status hpct_split_shard_open(hpct_split_shard **out, const hpct_model *whole,
                                  const hpct_split_shard_options *options)
{
    hpct_split_shard_plan plan = {0};
    making m = {.plan = &plan, .whole = whole};
    hpct_split_shard *shard = NULL;
    size_t params = (size_t) whole->num_params + 1;
    HPCT_TRY(check(whole, options));
    HPCT_TRY(hpct_split_shard_plan_make(&plan, whole, options));
    shard = calloc(1, sizeof *shard);
    hpct_status status = shard != NULL ? copy_model(&m) : hpct_fail_memory(sizeof *shard);
    if (shard != NULL) {
        *shard =
            (hpct_split_shard){.part = options->part, .parts = options->parts, .model = m.model};
        shard->slices = calloc(params, sizeof *shard->slices);
        shard->summed = calloc(params, sizeof *shard->summed);
        if (status == HPCT_OK && (shard->slices == NULL || shard->summed == NULL))
            status = hpct_fail_memory(params * sizeof *shard->slices);
    }
    if (status == HPCT_OK) {
        split_tensors(&m);
        split_nodes(&m);
        m.model->share.part = options->part;
        m.model->share.parts = plan.front > 0 ? options->parts : 0;
        slice_params(shard, &plan);
        *out = shard;
    } else {
        hpct_split_shard_close(shard);
    }
    free(m.gathered);
    hpct_split_shard_plan_free(&plan);
    return status;
}

void hpct_split_shard_close(hpct_split_shard *shard)
{
    if (shard == NULL)
        return;
    hpct_model_free(shard->model);
    free(shard->slices);
    free(shard->summed);
    free(shard);
}

hpct_model *hpct_split_shard_model(hpct_split_shard *shard)
{
    return shard->model;
}

/* ---- weights ---- */

/* Parameter i (slot < 0), or one of its slots; *any: whether it is set. */
static hpct_status get(const hpct_model *model, int i, int slot, float *keras, bool *any)
{
    *any = true;
    return slot < 0 ? hpct_run_param_get(model, i, keras)
                    : hpct_run_param_get_slot(model, i, slot, keras, any);
}

static hpct_status set(hpct_model *model, int i, int slot, const float *keras)
{
    return slot < 0 ? hpct_run_param_set(model, i, keras)
                    : hpct_run_param_set_slot(model, i, slot, keras);
}

/* A buffer for the largest parameter, unsplit. */
static float *room_for(const hpct_model *whole)
{
    size_t most = 1;
    for (int i = 0; i < whole->num_params; i++) {
        size_t count = hpct_graph_shape_count(&whole->params[i].shape);
        most = count > most ? count : most;
    }
    return malloc(most * sizeof(float));
}

/* Number of slots of a parameter in a record; they follow its value, slot -1. */
static int num_slots(const hpct_split_shard *shard, int param)
{
    const hpct_optimizer *optimizer = &shard->model->optimizer;
    return shard->model->params[param].state ? 0 : hpct_graph_optimizer_num_slots(optimizer);
}

static bool in_record(const hpct_split_shard *shard, int param, int part)
{
    return part == 0 || shard->slices[param].split.channels > 0;
}

hpct_status hpct_split_shard_take(hpct_split_shard *shard, const hpct_model *whole)
{
    float *all = room_for(whole), *own = room_for(whole);
    hpct_status status = all != NULL && own != NULL ? HPCT_OK : hpct_fail_memory(0);
    for (int i = 0; i < whole->num_params; i++) {
        for (int slot = -1; slot < num_slots(shard, i) && status == HPCT_OK; slot++) {
            bool any;
            status = get(whole, i, slot, all, &any);
            if (status != HPCT_OK || !any)
                continue;
            hpct_graph_param_slice_cut(&shard->slices[i], shard->part, all, own);
            status = set(shard->model, i, slot, own);
        }
    }
    shard->model->steps = whole->steps;
    free(all);
    free(own);
    return status == HPCT_OK ? hpct_model_copy_scaling(whole, shard->model) : status;
}

size_t hpct_split_shard_record_floats(const hpct_split_shard *shard, int part)
{
    size_t floats = 0;
    for (int i = 0; i < shard->model->num_params; i++) {
        if (in_record(shard, i, part))
            floats += hpct_graph_param_slice_floats(&shard->slices[i], part) *
                      (size_t) (1 + num_slots(shard, i));
    }
    return floats;
}

hpct_status hpct_split_shard_put(const hpct_split_shard *shard, float *record)
{
    hpct_status status = HPCT_OK;
    for (int i = 0; i < shard->model->num_params; i++) {
        if (!in_record(shard, i, shard->part))
            continue;
        size_t count = hpct_graph_param_slice_floats(&shard->slices[i], shard->part);
        for (int slot = -1; slot < num_slots(shard, i) && status == HPCT_OK; slot++) {
            bool any;
            status = get(shard->model, i, slot, record, &any);
            if (!any) /* before the first step: zeros */
                memset(record, 0, count * sizeof *record);
            record += count;
        }
    }
    return status;
}

/* Offset of a parameter's value or slot in the record of `part`. */
static size_t place_in_record(const hpct_split_shard *shard, int part, int param, int slot)
{
    size_t floats = 0;
    for (int i = 0; i < param; i++) {
        if (in_record(shard, i, part))
            floats += hpct_graph_param_slice_floats(&shard->slices[i], part) *
                      (size_t) (1 + num_slots(shard, i));
    }
    return floats +
           (size_t) (slot + 1) * hpct_graph_param_slice_floats(&shard->slices[param], part);
}

static hpct_status spread_one(hpct_split_shard *shard, const float *records, int param, int slot,
                              float *all, hpct_model *whole)
{
    const hpct_graph_param_slice *slice = &shard->slices[param];
    bool split = slice->split.channels > 0;
    const float *record = records;
    for (int part = 0; part < (split ? shard->parts : 1); part++) {
        const float *own = record + place_in_record(shard, part, param, slot);
        hpct_graph_param_slice_paste(slice, part, own, all);
        record += hpct_split_shard_record_floats(shard, part);
    }
    HPCT_TRY(set(whole, param, slot, all));
    return !split ? set(shard->model, param, slot, all) : HPCT_OK;
}

hpct_status hpct_split_shard_spread(hpct_split_shard *shard, const float *records,
                                    hpct_model *whole)
{
    float *all = room_for(whole);
    hpct_status status = all != NULL ? HPCT_OK : hpct_fail_memory(0);
    for (int i = 0; i < whole->num_params; i++) {
        for (int slot = -1; slot < num_slots(shard, i) && status == HPCT_OK; slot++)
            status = spread_one(shard, records, i, slot, all, whole);
    }
    hpct_split_shard_tell_steps(shard, whole);
    free(all);
    return status == HPCT_OK ? hpct_model_copy_scaling(shard->model, whole) : status;
}

size_t hpct_split_shard_part_floats(const hpct_split_shard *shard, int param, int part)
{
    return hpct_graph_param_slice_floats(&shard->slices[param], part);
}

int hpct_split_shard_num_params(const hpct_split_shard *shard)
{
    return shard->model->num_params;
}

void hpct_split_shard_cut(const hpct_split_shard *shard, int param, const float *whole, float *own)
{
    hpct_graph_param_slice_cut(&shard->slices[param], shard->part, whole, own);
}

void hpct_split_shard_paste(const hpct_split_shard *shard, int param, int part, const float *own,
                            float *whole)
{
    hpct_graph_param_slice_paste(&shard->slices[param], part, own, whole);
}

void hpct_split_shard_tell_steps(const hpct_split_shard *shard, hpct_model *whole)
{
    whole->steps = shard->model->steps;
}

/* ---- a step ---- */

static bool is_summed(const hpct_model *model, int param)
{
    return model->nodes[model->params[param].node].partial && !model->params[param].state;
}

hpct_split_shard_hold hpct_split_shard_holds(const hpct_split_shard *shard, int param)
{
    const hpct_model *model = shard->model;
    return (hpct_split_shard_hold){.split = shard->slices[param].split.channels > 0,
                                   .local = model->nodes[model->params[param].node].local,
                                   .summed = is_summed(model, param)};
}

const hpct_split_shard_range *hpct_split_shard_summed(hpct_split_shard *shard, int *num)
{
    const hpct_model *model = shard->model;
    *num = 0;
    for (int i = model->num_nodes - 1; i >= 0; i--) { /* the arena's order */
        const hpct_graph_node *node = &model->nodes[i];
        for (int k = 0; k < node->num_params; k++) {
            int param = node->first_param + k;
            size_t floats = model->run->nodes[i].op->param_floats[k],
                   count = (floats + HPCT_BACKEND_ARENA_ALIGN - 1) / HPCT_BACKEND_ARENA_ALIGN *
                           HPCT_BACKEND_ARENA_ALIGN,
                   offset = model->run->arenas.param_offsets[param];
            if (!is_summed(model, param))
                continue;
            hpct_split_shard_range *last = *num > 0 ? &shard->summed[*num - 1] : NULL;
            if (last != NULL && last->offset + last->count == offset)
                last->count += count;
            else
                shard->summed[(*num)++] = (hpct_split_shard_range){offset, count};
        }
    }
    return shard->summed;
}

size_t hpct_split_shard_front_floats(const hpct_split_shard *shard)
{
    const hpct_model *model = shard->model;
    size_t floats = 0;
    for (int i = 0; i < model->num_params; i++) {
        const hpct_graph_param *param = &model->params[i];
        if (model->nodes[param->node].local && !param->state)
            floats += hpct_graph_param_slice_floats(&shard->slices[i], shard->part);
    }
    return floats;
}

hpct_split_shard_range hpct_split_shard_own_states(const hpct_split_shard *shard)
{
    const hpct_model *model = shard->model;
    const hpct_run *run = model->run;
    hpct_split_shard_range range = {.offset = run->arenas.state_floats};
    for (int i = 0; i < model->num_params; i++) {
        const hpct_graph_param *param = &model->params[i];
        if (param->state && model->nodes[param->node].local &&
            run->arenas.param_offsets[i] < range.offset)
            range.offset = run->arenas.param_offsets[i];
    }
    range.count = run->arenas.state_floats - range.offset;
    return range;
}

uint64_t hpct_split_shard_fingerprint(hpct_split_shard *shard)
{
    const hpct_model *model = shard->model;
    uint64_t hash = HPCT_FNV_START;
    for (int i = 0; i < model->num_params; i++) {
        const hpct_graph_param *param = &model->params[i];
        const hpct_op *op = model->run->nodes[param->node].op;
        uint64_t facts[2] = {op->param_layout[param->index], op->param_floats[param->index]};
        if (is_summed(model, i))
            hash = hpct_fnv(hash, facts, sizeof facts);
    }
    for (int i = 0; i < model->num_nodes; i++) {
        const hpct_op_spec *spec = &model->run->nodes[i].op->spec;
        bool blocks[2] = {spec->src_blocks, spec->dst_blocks};
        if (hpct_op_is_collective(spec))
            hash = hpct_fnv(hash, blocks, sizeof blocks);
    }
    return hash;
}

size_t hpct_split_shard_floats(const hpct_split_shard *shard, int n)
{
    size_t floats = 0;
    for (int i = 0; i < shard->model->num_nodes; i++) {
        const hpct_op_spec *spec = &shard->model->nodes[i].spec;
        if (hpct_op_is_collective(spec))
            floats += hpct_backend_collective_floats(spec, n);
    }
    return floats;
}
