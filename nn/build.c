/* Building a model for a backend: operations, arenas, buffers; and taking it apart again without
 * losing its weights. */
#include "nn/blocks.h"
#include "nn/run.h"

#include "base/headway.h"
#include "base/status.h"
#include "nn/emulate.h"
#include "nn/grouped_norm.h"
#include "nn/head.h"
#include "nn/hosted.h"
#include "nn/merged.h"
#include "nn/replay.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

/* The loss on outputs as they are, and on the inputs of an activation that may come before it. */
static const struct loss_kind {
    hpct_loss_form form;
    hpct_op_kind activation;
    hpct_loss_form before_activation;
} losses[HPCT_LOSSES] = {
    [HPCT_SPARSE_CATEGORICAL_CROSSENTROPY] = {HPCT_LOSS_PROBABILITIES, HPCT_OP_SOFTMAX,
                                              HPCT_LOSS_LOGITS},
    [HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS] = {HPCT_LOSS_LOGITS, HPCT_OP_KINDS, 0},
    [HPCT_CATEGORICAL_CROSSENTROPY] = {HPCT_LOSS_DISTRIBUTION, HPCT_OP_SOFTMAX, HPCT_LOSS_LOGITS},
    [HPCT_CATEGORICAL_CROSSENTROPY_FROM_LOGITS] = {HPCT_LOSS_LOGITS, HPCT_OP_KINDS, 0},
    [HPCT_BINARY_CROSSENTROPY] = {HPCT_LOSS_BINARY, HPCT_OP_SIGMOID, HPCT_LOSS_BINARY_LOGITS},
    [HPCT_BINARY_CROSSENTROPY_FROM_LOGITS] = {HPCT_LOSS_BINARY_LOGITS, HPCT_OP_KINDS, 0},
    [HPCT_MEAN_SQUARED_ERROR] = {HPCT_LOSS_SQUARED, HPCT_OP_KINDS, 0},
};

void hpct_run_find_loss(const hpct_model *model, int *tensor, hpct_loss_form *form, int *skipped)
{
    const struct loss_kind *loss = &losses[model->loss];
    *tensor = model->output;
    *skipped = -1;
    *form = loss->form;
    if (model->inner)
        return;
    for (int i = 0; i < model->num_nodes; i++) {
        const hpct_node *node = &model->nodes[i];
        bool makes_output = model->tensors[node->output].root == model->tensors[model->output].root;
        if (makes_output && node->spec.kind == loss->activation && node->spec.dense.rows == 1) {
            *tensor = node->inputs[0];
            *form = loss->before_activation;
            *skipped = i;
        }
    }
}

void hpct_run_free(hpct_run *run)
{
    if (run == NULL)
        return;
    hpct_recordings_free(run);
    for (int i = 0; i < run->num_nodes; i++) {
        if (run->nodes[i].op != NULL)
            run->nodes[i].op->class->destroy(run->nodes[i].op);
    }
    const hpct_backend *backend = run->backend;
    if (!run->borrows)
        backend->release(run->parameters);
    backend->release(run->copies);
    backend->release(run->gradients);
    for (int k = 0; k < HPCT_NUM_SLOTS; k++)
        backend->release(run->slot[k]);
    backend->release(run->scaling);
    backend->release(run->states);
    hpct_run_free_transit(run);
    backend->release(run->block);
    backend->release(run->scratch);
    hpct_emulation_free(run->emulation);
    free(run->param_offsets);
    free(run->root);
    free(run->value_offsets);
    free(run->learns);
    free(run->updates);
    free(run->batch_sizes);
    free(run->nodes);
    free(run);
}

static hpct_status copy_options(const hpct_model *model, hpct_run *run,
                                const hpct_build_options *options)
{
    int parts = model->share.parts;
    if (options->num_batch_sizes < 1)
        return hpct_fail(HPCT_ERR_USAGE, "build: at least one batch size is needed");
    size_t num = (size_t) options->num_batch_sizes, bytes = 2 * num * sizeof *run->batch_sizes;
    run->batch_sizes = malloc(bytes);
    if (run->batch_sizes == NULL)
        return hpct_fail_memory(bytes);
    memcpy(run->batch_sizes, options->batch_sizes, num * sizeof *run->batch_sizes);
    run->own_sizes = run->batch_sizes + num;
    run->num_batch_sizes = options->num_batch_sizes;
    for (int i = 0; i < run->num_batch_sizes; i++) {
        if (run->batch_sizes[i] < 1)
            return hpct_fail(HPCT_ERR_USAGE, "batch size %d must be at least 1",
                             run->batch_sizes[i]);
        if (run->batch_sizes[i] > run->largest_batch)
            run->largest_batch = run->batch_sizes[i];
        int own = parts == 0 ? run->batch_sizes[i]
                             : hpct_samples_count(run->batch_sizes[i], model->share.part, parts);
        run->own_sizes[i] = own > 0 ? own : 1;
        if (run->own_sizes[i] > run->largest_own)
            run->largest_own = run->own_sizes[i];
    }
    run->input_samples =
        options->input_samples > run->largest_batch ? options->input_samples : run->largest_batch;
    run->training = !options->inference_only;
    run->no_slots = options->no_slots;
    run->dense_targets = options->dense_targets;
    return HPCT_OK;
}

/* Operations count elements with ints. */
static hpct_status check_sizes(const hpct_model *model, const hpct_run *run)
{
    for (int i = 0; i < model->num_tensors; i++) {
        size_t count = hpct_shape_count(&model->tensors[i].shape);
        if (count * (size_t) run->largest_batch > INT32_MAX)
            return hpct_fail(HPCT_ERR_USAGE, "batch size %d is too large for model %s: at most %d",
                             run->largest_batch, model->name, (int) (INT32_MAX / count));
    }
    return HPCT_OK;
}

static bool has_trained_params(const hpct_model *model, const hpct_node *node)
{
    for (int k = 0; k < node->num_params; k++) {
        if (!model->params[node->first_param + k].state)
            return true;
    }
    return false;
}

/* Where a picture of one cell is the only one on its side, the other side decides. */
static void set_blocks(const hpct_model *model, const hpct_run *run, const hpct_node *node,
                       const bool *blocks, hpct_op_spec *spec)
{
    for (int k = 0; k < node->num_inputs; k++)
        spec->src_blocks |= blocks[model->tensors[node->inputs[k]].root];
    spec->dst_blocks = blocks[hpct_run_root(model, run, node->output)];
}

/* Lets node i do the work of the pooling behind it, too, where the backend can. */
static void merge(const hpct_model *model, hpct_run *run, int i, hpct_op_build *build,
                  const hpct_op_spec *spec)
{
    int next = hpct_run_only_reader(model, run, i);
    if (run->backend->merges == NULL || next < 0 ||
        !run->backend->merges(spec, build, &model->nodes[next].spec))
        return;
    build->pool = &model->nodes[next].spec.window;
    run->nodes[next].merged = true;
    run->root[model->tensors[model->nodes[i].output].root] =
        model->tensors[model->nodes[next].output].root;
}

/* What all operations of a node are made with. */
static hpct_op_build start_build(const hpct_model *model, const hpct_run *run,
                                 const hpct_build_options *options, int i)
{
    const hpct_node *node = &model->nodes[i];
    return (hpct_op_build){
        .precision = options->fp32 ? HPCT_FP32 : hpct_node_precision(model, node),
        .values = run->values,
        .batch_sizes = node->own ? run->own_sizes : run->batch_sizes,
        .num_batch_sizes = run->num_batch_sizes,
        .fuse_update = run->fuse_update && !node->partial,
        .plain_layout = options->plain_layout,
        .stream = (uint32_t) (i - node->added),
    };
}

static bool is_add_of_two(const hpct_model *model, int node)
{
    return model->nodes[node].spec.kind == HPCT_OP_ADD && model->nodes[node].num_inputs == 2;
}

/* The BATCH_NORM that alone reads what a convolution makes, or -1. */
static int norm_behind(const hpct_model *model, const hpct_run *run, int conv)
{
    const hpct_node *node = &model->nodes[conv];
    int next = hpct_run_only_reader(model, run, conv);
    if (node->spec.kind != HPCT_OP_CONV2D || node->spec.relu ||
        model->tensors[node->output].taken || next < 0)
        return -1;
    const hpct_node *norm = &model->nodes[next];
    return norm->spec.kind == HPCT_OP_BATCH_NORM && norm->spec.norm.groups < 2 &&
                   norm->own == node->own
               ? next
               : -1;
}

/* Where one is, the convolution need not add its bias. */
static bool leave_bias(const hpct_model *model, hpct_run *run, int conv)
{
    int norm = norm_behind(model, run, conv);
    if (norm < 0 || !run->backend->leaves_biases || model->nodes[conv].spec.no_bias)
        return false;
    run->nodes[norm].bias_node = conv + 1;
    return true;
}

/* Whether a convolution takes over what the BATCH_NORM before it makes: one with another behind it.
 */
static bool takes_norm(const hpct_model *model, const hpct_run *run,
                       const hpct_build_options *options, int norm, int conv)
{
    const hpct_node *node = &model->nodes[conv];
    if (run->backend->takes_norm == NULL || norm_behind(model, run, conv) < 0 ||
        !run->learns[model->tensors[model->nodes[norm].output].root])
        return false;
    hpct_op_build build = start_build(model, run, options, conv);
    build.training = build.needs_diff_src = build.moments = true;
    build.leaves_bias = !node->spec.no_bias;
    build.norm = &model->nodes[norm].spec;
    return run->backend->takes_norm(&node->spec, &build);
}

/* Leaves the result of a BATCH_NORM to the Add or convolution that alone reads it, where the
 * backend can: one pass over it less is written, and one less read. */
static bool defer(const hpct_model *model, hpct_run *run, const hpct_build_options *options, int i)
{
    const hpct_node *node = &model->nodes[i];
    const hpct_tensor *made = &model->tensors[node->output];
    int source = hpct_run_root(model, run, node->inputs[0]);
    if (node->spec.kind != HPCT_OP_BATCH_NORM || node->spec.norm.groups > 1 || made->taken ||
        source == hpct_run_root(model, run, 0))
        return false;
    int next = hpct_run_only_reader(model, run, i), input = 0;
    if (next < 0 || model->nodes[next].own != node->own)
        return false;
    if (is_add_of_two(model, next) ? !run->backend->defers_norms || node->spec.relu
                                   : !takes_norm(model, run, options, i, next))
        return false;
    while (model->nodes[next].inputs[input] != node->output)
        input++;
    run->nodes[next].norm_node[input] = i + 1;
    return true;
}

/* Whether it is there when node i begins, and another node's result. */
static bool is_there(const hpct_model *model, const hpct_run *run, int tensor, int i)
{
    int root = hpct_run_root(model, run, tensor);
    for (int before = 0; before < i && root != hpct_run_root(model, run, 0); before++) {
        if (hpct_run_root(model, run, model->nodes[before].output) == root)
            return true;
    }
    return false;
}

/* Lets a convolution make the sum that the Add behind it would, where the backend can. */
static void absorb(const hpct_model *model, hpct_run *run, int i, hpct_op_build *build)
{
    const hpct_node *node = &model->nodes[i];
    if (node->spec.kind != HPCT_OP_CONV2D || !run->backend->makes_sums || node->spec.relu ||
        build->pool != NULL || model->tensors[node->output].taken)
        return;
    int next = hpct_run_only_reader(model, run, i);
    if (next < 0 || model->nodes[next].spec.kind != HPCT_OP_ADD ||
        model->nodes[next].num_inputs != 2 || model->nodes[next].own != node->own)
        return;
    int other = model->nodes[next].inputs[0] == node->output ? 1 : 0;
    if (run->nodes[next].norm_node[other] != 0 ||
        !is_there(model, run, model->nodes[next].inputs[other], i))
        return;
    build->adds = true;
    build->adds_relu = model->nodes[next].spec.relu;
    run->nodes[i].sum_node = next + 1;
    run->nodes[next].made = true;
}

/* Asks a convolution for what the statistics of a BATCH_NORM behind it are made of. */
static bool ask_for_moments(const hpct_model *model, hpct_run *run, int i, bool adds)
{
    const hpct_node *node = &model->nodes[i];
    if (node->spec.kind != HPCT_OP_CONV2D || !run->backend->leaves_moments || !run->training ||
        node->spec.relu || adds)
        return false;
    for (int next = i + 1; next < model->num_nodes; next++) {
        const hpct_node *norm = &model->nodes[next];
        if (norm->spec.kind == HPCT_OP_BATCH_NORM && norm->spec.norm.groups < 2 &&
            norm->inputs[0] == node->output && norm->own == node->own) {
            run->nodes[next].moments_node = i + 1;
            return true;
        }
    }
    return false;
}

static int *find_roots(const hpct_model *model)
{
    int *root = calloc((size_t) model->num_tensors, sizeof *root);
    for (int t = 0; t < model->num_tensors && root != NULL; t++)
        root[t] = model->tensors[t].root;
    return root;
}

/* Makes the operations. A node has a backward part when something at or before it learns. */
static hpct_status make_ops(const hpct_model *model, hpct_run *run,
                            const hpct_build_options *options)
{
    int skipped;
    hpct_run_find_loss(model, &run->loss_tensor, &run->form, &skipped);
    run->classes = (int) hpct_shape_count(&model->tensors[run->loss_tensor].shape);
    bool *learns = run->learns = calloc((size_t) model->num_tensors, sizeof *learns), *blocks;
    run->root = find_roots(model);
    if (learns == NULL || run->root == NULL)
        return hpct_fail_memory((size_t) model->num_tensors * sizeof *learns);
    for (int t = 0; t < model->num_tensors; t++)
        learns[t] = model->tensors[t].learns && run->training;
    hpct_status status = hpct_run_find_blocks(model, run, options->plain_layout, &blocks);
    for (int i = 0; i < model->num_nodes && status == HPCT_OK; i++) {
        const hpct_node *node = &model->nodes[i];
        hpct_op_build build = start_build(model, run, options, i);
        hpct_headway();
        for (int k = 0; k < node->num_inputs; k++)
            build.needs_diff_src |= learns[model->tensors[node->inputs[k]].root];
        bool any = build.needs_diff_src || has_trained_params(model, node);
        learns[model->tensors[node->output].root] = any && run->training;
        run->nodes[i].backward = any && run->training && i != skipped;
        build.training = run->nodes[i].backward;
        build.needs_diff_src = build.needs_diff_src && build.training;
        hpct_op_spec spec = node->spec;
        merge(model, run, i, &build, &spec);
        build.leaves_bias = leave_bias(model, run, i);
        build.deferred = defer(model, run, options, i);
        if (node->spec.kind == HPCT_OP_CONV2D && run->nodes[i].norm_node[0] != 0)
            build.norm = &model->nodes[run->nodes[i].norm_node[0] - 1].spec;
        build.normed = is_add_of_two(model, i) &&
                       (run->nodes[i].norm_node[0] != 0 || run->nodes[i].norm_node[1] != 0);
        absorb(model, run, i, &build);
        build.moments = ask_for_moments(model, run, i, build.adds);
        build.shares_src = build.needs_diff_src && node->spec.kind == HPCT_OP_CONV2D &&
                           hpct_run_shares_source(model, run, i);
        set_blocks(model, run, node, blocks, &spec);
        if (run->nodes[i].merged)
            status = hpct_make_merged(&run->nodes[i].op, &spec, &build);
        else if (spec.kind == HPCT_OP_BATCH_NORM && spec.norm.groups > 1)
            status = hpct_make_grouped_norm(&run->nodes[i].op, run->backend, &spec, &build);
        else if (hpct_op_is_collective(&spec) && run->backend->device != NULL)
            status = hpct_make_hosted(&run->nodes[i].op, run->backend, &spec, &build);
        else
            status = run->backend->make_op(&run->nodes[i].op, &spec, &build);
        if (status != HPCT_OK)
            hpct_fail_within(status, model->layers[node->layer].name);
    }
    free(blocks);
    return status;
}

/* Leaves the parameter for update(), together with the one before it where the optimizer allows. */
static void add_update(const hpct_model *model, hpct_run *run, const hpct_param *param,
                       size_t offset, size_t count)
{
    const hpct_optimizer *optimizer = &model->optimizer;
    hpct_update_range *last = run->num_updates > 0 ? &run->updates[run->num_updates - 1] : NULL;
    if (last != NULL && last->offset + last->count == offset && last->split == param->split &&
        !hpct_optimizer_by_parameter(optimizer))
        last->count += count;
    else
        run->updates[run->num_updates++] = (hpct_update_range){
            offset, count, .adapt = param->shape.rank > 1 || optimizer->trust_all,
            .split = param->split};
}

/* Offsets of the parameters, in the order in which backward finishes their gradients. */
static hpct_status lay_out_arena(const hpct_model *model, hpct_run *run)
{
    size_t num = (size_t) model->num_params + 1;
    run->param_offsets = calloc(num, sizeof *run->param_offsets);
    run->updates = calloc(num, sizeof *run->updates);
    if (run->param_offsets == NULL || run->updates == NULL)
        return hpct_fail_memory(num * sizeof *run->updates);
    uint64_t hash = HPCT_HASH_START;
    size_t offset = 0;
    for (int i = model->num_nodes - 1; i >= 0; i--) {
        const hpct_node *node = &model->nodes[i];
        const hpct_op *op = run->nodes[i].op;
        for (int k = 0; k < node->num_params; k++) {
            int param = node->first_param + k;
            size_t count =
                (op->param_floats[k] + HPCT_ARENA_ALIGN - 1) / HPCT_ARENA_ALIGN * HPCT_ARENA_ALIGN;
            uint64_t facts[2] = {op->param_layout[k], op->param_floats[k]};
            hash = hpct_hash(hash, facts, sizeof facts);
            if (model->params[param].state) {
                run->param_offsets[param] = run->state_floats;
                run->state_floats += count;
                continue;
            }
            run->param_offsets[param] = offset;
            if (!op->param_fused[k])
                add_update(model, run, &model->params[param], offset, count);
            offset += count;
        }
        run->nodes[i].done = offset;
    }
    run->arena_floats = offset;
    run->fingerprint = hash;
    return HPCT_OK;
}

static void *take(const hpct_run *run, size_t bytes, const char *what, hpct_status *status)
{
    if (*status != HPCT_OK)
        return NULL;
    void *memory = run->backend->allocate(bytes);
    if (memory == NULL)
        *status = hpct_memory_fail(run->backend, bytes, "%s", what);
    return memory;
}

bool hpct_run_has_slot(const hpct_model *model, const hpct_run *run, int slot)
{
    const hpct_optimizer *optimizer = &model->optimizer;
    if (run->borrows)
        return false;
    if (slot == HPCT_SLOT_ACCUMULATED)
        return run->training && optimizer->gradient_accumulation_steps > 1;
    return run->training && !run->no_slots && slot < hpct_optimizer_num_slots(optimizer);
}

size_t hpct_run_target_bytes(const hpct_run *run)
{
    return run->dense_targets ? (size_t) run->largest_batch * (size_t) run->classes * sizeof(float)
                              : 0;
}

static size_t rounded(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

size_t hpct_run_copies_bytes(const hpct_run *run)
{
    size_t bytes = 0;
    for (int i = 0; i < run->num_nodes; i++)
        bytes += rounded(run->nodes[i].op->copies_bytes);
    return bytes;
}

static char *take_copies(hpct_run *run, hpct_status *status)
{
    char *copies = take(run, hpct_run_copies_bytes(run), "copies of parameters", status),
         *at = copies;
    for (int i = 0; i < run->num_nodes && at != NULL; i++) {
        run->nodes[i].copies = at;
        at += rounded(run->nodes[i].op->copies_bytes);
    }
    run->stale = true;
    return copies;
}

static hpct_status allocate(const hpct_model *model, hpct_run *run)
{
    hpct_status status = HPCT_OK;
    size_t arena = run->arena_floats * sizeof(float);
    if (!run->borrows)
        run->parameters = take(run, arena, "parameters", &status);
    run->states = take(run, run->state_floats * sizeof(float), "moving statistics", &status);
    if (run->training)
        run->gradients = take(run, arena + HPCT_ARENA_TAIL * sizeof(float), "gradients", &status);
    for (int k = 0; k < HPCT_NUM_SLOTS; k++) {
        if (hpct_run_has_slot(model, run, k))
            run->slot[k] = take(run, arena, "the optimizer", &status);
    }
    if (run->training && model->precision == HPCT_FP16)
        run->scaling = take(run, sizeof *run->scaling, "the loss scale", &status);
    run->scratch = take(run, hpct_run_scratch_bytes(run), "scratch", &status);
    run->scratch_aside = (char *) run->scratch + hpct_run_scratch_aside(run);
    run->copies = take_copies(run, &status);
    if (status == HPCT_OK)
        status = hpct_run_place(model, run, NULL);
    return status == HPCT_OK ? hpct_run_make_transit(model, run) : status;
}

float *hpct_run_param(const hpct_model *model, const hpct_run *run, int param)
{
    float *arena = model->params[param].state ? run->states : run->parameters;
    return arena + run->param_offsets[param];
}

static void point_at_params(const hpct_model *model, hpct_run *run)
{
    for (int i = 0; i < model->num_params; i++) {
        hpct_run_node *node = &run->nodes[model->params[i].node];
        int index = model->params[i].index;
        node->param[index] = hpct_run_param(model, run, i);
        if (run->gradients != NULL && !model->params[i].state)
            node->grad[index] = run->gradients + run->param_offsets[i];
    }
}

static hpct_status import(const hpct_run *run, const hpct_model *model, int index,
                          const float *kept, float *arena)
{
    if (kept == NULL || arena == NULL)
        return HPCT_OK;
    const hpct_param *param = &model->params[index];
    hpct_op *op = run->nodes[param->node].op;
    return op->class->import_param(op, param->index, kept, arena + run->param_offsets[index]);
}

static void drop(float **kept, const float *arena)
{
    if (arena == NULL)
        return;
    free(*kept);
    *kept = NULL;
}

/* From the model into the arenas. What the run has no arena for stays in the model. */
static hpct_status move_in(hpct_model *model, hpct_run *run)
{
    hpct_status status = HPCT_OK;
    if (run->scaling != NULL)
        status = hpct_memory_from_host(run->backend, run->scaling, &model->scaling,
                                       sizeof model->scaling);
    for (int i = 0; i < model->num_params && status == HPCT_OK; i++) {
        bool state = model->params[i].state;
        status =
            import(run, model, i, model->params[i].value, state ? run->states : run->parameters);
        for (int k = 0; k < HPCT_NUM_SLOTS && status == HPCT_OK; k++)
            status = import(run, model, i, model->params[i].slot[k], run->slot[k]);
    }
    for (int i = 0; i < model->num_params && status == HPCT_OK; i++) {
        drop(&model->params[i].value, run->parameters);
        for (int k = 0; k < HPCT_NUM_SLOTS; k++)
            drop(&model->params[i].slot[k], run->slot[k]);
    }
    malloc_trim(0); /* they are as much as the arenas: back to the system, not only to malloc */
    return status;
}

/* One parameter or its slot into *kept, which is allocated if need be. */
static hpct_status keep(const hpct_model *model, int index, const float *from, float **kept)
{
    const hpct_param *param = &model->params[index];
    hpct_op *op = model->run->nodes[param->node].op;
    size_t bytes = hpct_shape_count(&param->shape) * sizeof(float);
    if (*kept == NULL)
        *kept = malloc(bytes);
    if (*kept == NULL)
        return hpct_fail_memory(bytes);
    return op->class->export_param(op, param->index, from, *kept);
}

hpct_status hpct_model_unbuild(hpct_model *model)
{
    hpct_run *run = model->run;
    if (run == NULL)
        return HPCT_OK;
    for (int i = 0; i < model->num_params; i++) {
        hpct_param *param = &model->params[i];
        hpct_status status = HPCT_OK;
        if (!run->borrows || param->state)
            status = keep(model, i, hpct_run_param(model, run, i), &param->value);
        for (int k = 0; k < HPCT_NUM_SLOTS && status == HPCT_OK; k++) {
            if (run->slot[k] != NULL && !param->state)
                status = keep(model, i, run->slot[k] + run->param_offsets[i], &param->slot[k]);
        }
        if (status != HPCT_OK)
            return status;
    }
    if (run->scaling != NULL) {
        hpct_status status =
            hpct_memory_to_host(run->backend, &model->scaling, run->scaling, sizeof model->scaling);
        if (status != HPCT_OK)
            return status;
    }
    model->run = NULL;
    hpct_run_free(run);
    return HPCT_OK;
}

int64_t hpct_model_builds(const hpct_model *model)
{
    return model->builds;
}

static hpct_status check_compiled(const hpct_model *model)
{
    if (!model->compiled)
        return hpct_fail(HPCT_ERR_USAGE, "model %s must be compiled before it is built",
                         model->name);
    if (model->status != HPCT_OK) /* a layer was added after compile */
        return hpct_fail(model->status, "%s",
                         model->message != NULL ? model->message : "out of memory");
    return HPCT_OK;
}

/* Takes the parameters of options->storage, if there is one and it is laid out alike. */
static void borrow(hpct_run *run, const hpct_build_options *options)
{
    const hpct_run *storage = options->storage != NULL ? options->storage->run : NULL;
    if (storage == NULL || storage->backend != run->backend ||
        storage->fingerprint != run->fingerprint || storage->arena_floats != run->arena_floats)
        return;
    run->borrows = true;
    run->parameters = storage->parameters;
}

hpct_status hpct_run_prepare(hpct_run **out, const hpct_model *model,
                             const hpct_build_options *options)
{
    const hpct_backend *backend = model->backend != NULL ? model->backend : &hpct_backend_cpu;
    hpct_status status = check_compiled(model);
    if (status == HPCT_OK && options->backend != NULL)
        status = hpct_backend_find(&backend, options->backend);
    if (status == HPCT_OK)
        status = backend->check_precision(options->fp32 ? HPCT_FP32 : model->precision);
    if (status != HPCT_OK)
        return status;
    hpct_run *run = calloc(1, sizeof *run);
    if (run == NULL)
        return hpct_fail_memory(sizeof *run);
    run->backend = backend;
    run->values = backend->low_values && !options->fp32 ? model->precision : HPCT_FP32;
    run->fuse_update = options->fuse_update && options->storage == NULL &&
                       model->precision != HPCT_FP16 && hpct_optimizer_is_plain(&model->optimizer);
    run->nodes = calloc((size_t) model->num_nodes + 1, sizeof *run->nodes);
    status = run->nodes != NULL ? HPCT_OK : hpct_fail_memory(0);
    if (status == HPCT_OK) {
        run->num_nodes = model->num_nodes;
        status = copy_options(model, run, options);
    }
    if (status == HPCT_OK)
        status = check_sizes(model, run);
    if (status == HPCT_OK)
        status = make_ops(model, run, options);
    if (status == HPCT_OK)
        hpct_run_find_head(model, run);
    if (backend->made_ops != NULL)
        backend->made_ops();
    if (status == HPCT_OK)
        status = lay_out_arena(model, run);
    if (status == HPCT_OK) {
        borrow(run, options);
        *out = run;
    } else {
        hpct_run_free(run);
    }
    return status;
}

hpct_status hpct_model_build(hpct_model *model, const hpct_build_options *options)
{
    hpct_run *run = NULL;
    hpct_status status = check_compiled(model);
    if (status == HPCT_OK)
        status = hpct_model_unbuild(model);
    if (status == HPCT_OK)
        status = hpct_run_prepare(&run, model, options);
    if (status != HPCT_OK)
        return status;
    status = allocate(model, run);
    if (status == HPCT_OK) {
        point_at_params(model, run);
        status = move_in(model, run);
    }
    model->builds++;
    if (status == HPCT_OK)
        model->run = run;
    else
        hpct_run_free(run);
    return status;
}
