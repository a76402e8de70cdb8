/* Builds a model for a backend: operations, arenas, buffers; and unbuilds it, keeping its
 * weights. */
#include "nn/plan/run.h"

#include "base/debug.h"
#include "base/fnv.h"
#include "base/progress.h"
#include "base/status.h"
#include "nn/backends/backends.h"
#include "nn/plan/fusions.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

/* Form of each loss on the outputs, and on the input of the activation that may precede it. */
static const struct loss_kind {
    hpct_backend_loss_form form;
    hpct_op_kind activation;
    hpct_backend_loss_form before_activation;
} losses[HPCT_LOSSES] = {
    [HPCT_SPARSE_CATEGORICAL_CROSSENTROPY] = {HPCT_BACKEND_LOSS_PROBABILITIES, HPCT_OP_SOFTMAX,
                                              HPCT_BACKEND_LOSS_LOGITS},
    [HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS] = {HPCT_BACKEND_LOSS_LOGITS, HPCT_OP_KINDS,
                                                          0},
    [HPCT_CATEGORICAL_CROSSENTROPY] = {HPCT_BACKEND_LOSS_DISTRIBUTION, HPCT_OP_SOFTMAX,
                                       HPCT_BACKEND_LOSS_LOGITS},
    [HPCT_CATEGORICAL_CROSSENTROPY_FROM_LOGITS] = {HPCT_BACKEND_LOSS_LOGITS, HPCT_OP_KINDS, 0},
    [HPCT_BINARY_CROSSENTROPY] = {HPCT_BACKEND_LOSS_BINARY, HPCT_OP_SIGMOID,
                                  HPCT_BACKEND_LOSS_BINARY_LOGITS},
    [HPCT_BINARY_CROSSENTROPY_FROM_LOGITS] = {HPCT_BACKEND_LOSS_BINARY_LOGITS, HPCT_OP_KINDS, 0},
    [HPCT_MEAN_SQUARED_ERROR] = {HPCT_BACKEND_LOSS_SQUARED, HPCT_OP_KINDS, 0},
    [HPCT_BINARY_FOCAL_CROSSENTROPY] = {HPCT_BACKEND_LOSS_BINARY_FOCAL, HPCT_OP_SIGMOID,
                                        HPCT_BACKEND_LOSS_BINARY_FOCAL_LOGITS},
    [HPCT_BINARY_FOCAL_CROSSENTROPY_FROM_LOGITS] = {HPCT_BACKEND_LOSS_BINARY_FOCAL_LOGITS,
                                                    HPCT_OP_KINDS, 0},
    [HPCT_CATEGORICAL_FOCAL_CROSSENTROPY] = {HPCT_BACKEND_LOSS_FOCAL, HPCT_OP_SOFTMAX,
                                             HPCT_BACKEND_LOSS_FOCAL_LOGITS},
    [HPCT_CATEGORICAL_FOCAL_CROSSENTROPY_FROM_LOGITS] = {HPCT_BACKEND_LOSS_FOCAL_LOGITS,
                                                         HPCT_OP_KINDS, 0},
    [HPCT_HUBER] = {HPCT_BACKEND_LOSS_HUBER, HPCT_OP_KINDS, 0},
    [HPCT_KL_DIVERGENCE] = {HPCT_BACKEND_LOSS_DIVERGENCE, HPCT_OP_KINDS, 0},
};

void hpct_run_find_loss(const hpct_model *model, int *tensor, hpct_backend_loss_form *form,
                        int *skipped)
{
    const struct loss_kind *loss = &losses[model->loss];
    *tensor = model->output;
    *skipped = -1;
    *form = loss->form;
    if (model->inner)
        return;
    for (int i = 0; i < model->num_nodes; i++) {
        const hpct_graph_node *node = &model->nodes[i];
        bool makes_output = model->tensors[node->output].root == model->tensors[model->output].root;
        if (makes_output && node->spec.kind == loss->activation && node->spec.dense.rows == 1) {
            *tensor = node->inputs[0];
            *form = loss->before_activation;
            *skipped = i;
        }
    }
}

void hpct_run_at_end(hpct_run *run, void (*end)(hpct_run *run))
{
    int i = 0;
    while (run->ends[i] != NULL && run->ends[i] != end)
        i++;
    run->ends[i] = end;
}

void hpct_run_free(hpct_run *run)
{
    if (run == NULL)
        return;
    for (int i = 0; i < HPCT_RUN_ENDS && run->ends[i] != NULL; i++)
        run->ends[i](run);
    for (int i = 0; i < run->num_nodes; i++) {
        if (run->nodes[i].op != NULL)
            run->nodes[i].op->class->destroy(run->nodes[i].op);
    }
    const hpct_backend *backend = run->backend;
    if (!run->arenas.borrows)
        backend->release(run->arenas.parameters);
    backend->release(run->arenas.copies);
    backend->release(run->arenas.gradients);
    for (int k = 0; k < HPCT_GRAPH_NUM_SLOTS; k++)
        backend->release(run->arenas.slot[k]);
    backend->release(run->arenas.scaling);
    backend->release(run->arenas.penalty);
    backend->release(run->arenas.states);
    backend->release(run->arenas.spare);
    hpct_run_free_transit(run);
    backend->release(run->plan.block);
    backend->release(run->plan.scratch);
    free(run->arenas.param_offsets);
    free(run->plan.root);
    free(run->plan.links);
    free(run->plan.value_offsets);
    free(run->requires_grad);
    free(run->arenas.updates);
    free(run->arenas.penalties);
    free(run->batches.sizes);
    free(run->nodes);
    free(run);
}

static hpct_status copy_options(const hpct_model *model, hpct_run *run,
                                const hpct_run_build_options *options)
{
    int parts = model->share.parts;
    if (options->num_batch_sizes < 1)
        return hpct_fail(HPCT_ERR_USAGE, "build: at least one batch size is needed");
    size_t num = (size_t) options->num_batch_sizes, bytes = 2 * num * sizeof *run->batches.sizes;
    run->batches.sizes = malloc(bytes);
    if (run->batches.sizes == NULL)
        return hpct_fail_memory(bytes);
    memcpy(run->batches.sizes, options->batch_sizes, num * sizeof *run->batches.sizes);
    run->batches.local = run->batches.sizes + num;
    run->batches.num = options->num_batch_sizes;
    for (int i = 0; i < run->batches.num; i++) {
        if (run->batches.sizes[i] < 1)
            return hpct_fail(HPCT_ERR_USAGE, "batch size %d must be at least 1",
                             run->batches.sizes[i]);
        if (run->batches.sizes[i] > run->batches.largest)
            run->batches.largest = run->batches.sizes[i];
        int own = parts == 0
                      ? run->batches.sizes[i]
                      : hpct_graph_samples_count(run->batches.sizes[i], model->share.part, parts);
        run->batches.local[i] = own > 0 ? own : 1;
        if (run->batches.local[i] > run->batches.largest_local)
            run->batches.largest_local = run->batches.local[i];
    }
    run->input.samples = options->input_samples > run->batches.largest ? options->input_samples
                                                                       : run->batches.largest;
    run->training = !options->inference_only;
    run->no_slots = options->no_slots;
    run->dense_targets = options->dense_targets || model->has_targets;
    return HPCT_OK;
}

/* Operations count elements with ints. */
static hpct_status check_sizes(const hpct_model *model, const hpct_run *run)
{
    for (int i = 0; i < model->num_tensors; i++) {
        size_t count = hpct_graph_shape_count(&model->tensors[i].shape);
        if (count * (size_t) run->batches.largest > INT32_MAX)
            return hpct_fail(HPCT_ERR_USAGE, "batch size %d is too large for model %s: at most %d",
                             run->batches.largest, model->name, (int) (INT32_MAX / count));
    }
    return HPCT_OK;
}

static bool has_trained_params(const hpct_model *model, const hpct_graph_node *node)
{
    for (int k = 0; k < node->num_params; k++) {
        if (!model->params[node->first_param + k].state)
            return true;
    }
    return false;
}

static bool has_frozen_params(const hpct_model *model, const hpct_graph_node *node)
{
    for (int k = 0; k < node->num_params; k++) {
        if (model->params[node->first_param + k].frozen)
            return true;
    }
    return false;
}

/* A product that updates its kernel itself would leave out the kernel's penalty. */
static bool has_penalties(const hpct_model *model, const hpct_graph_node *node)
{
    for (int k = 0; k < node->num_params; k++) {
        if (hpct_graph_param_has_penalty(&model->params[node->first_param + k]))
            return true;
    }
    return false;
}

/* Tensors of one cell count as not blocked; if one side has no others, operations use the flag of
 * the other side. */
static void set_blocks(const hpct_model *model, const hpct_run *run, const hpct_graph_node *node,
                       const bool *blocks, hpct_op_spec *spec)
{
    for (int k = 0; k < node->num_inputs; k++)
        spec->src_blocks |= blocks[model->tensors[node->inputs[k]].root];
    spec->dst_blocks = blocks[hpct_run_root(model, run, node->output)];
}

/* Build options common to all operations. */
static hpct_op_build start_build(const hpct_model *model, const hpct_run *run,
                                 const hpct_run_build_options *options, int i)
{
    const hpct_graph_node *node = &model->nodes[i];
    bool frozen = has_frozen_params(model, node),
         own_rate = run->backend->device != NULL && hpct_graph_node_rate_factor(model, node) != 1;
    return (hpct_op_build){
        .precision = options->fp32 ? HPCT_FP32 : hpct_graph_node_precision(model, node),
        .values = run->values,
        .batch_sizes = node->local ? run->batches.local : run->batches.sizes,
        .num_batch_sizes = run->batches.num,
        /* a device has one rate for all fused updates */
        .fuse_update = run->fuse_update && !node->partial && !frozen && !own_rate &&
                       !has_penalties(model, node),
        .plain_layout = options->plain_layout,
        .frozen = frozen,
        .stream = (uint32_t) (i - node->added),
    };
}

static int *find_roots(const hpct_model *model)
{
    int *root = calloc((size_t) model->num_tensors, sizeof *root);
    for (int t = 0; t < model->num_tensors && root != NULL; t++)
        root[t] = model->tensors[t].root;
    return root;
}

/* Fills the build options before fusion. A node has a backward if it or a node before it has
 * trained parameters; that of `skipped` is the loss's. */
static void describe(const hpct_model *model, hpct_run *run, const hpct_run_build_options *options,
                     int skipped, hpct_op_build *builds)
{
    bool *requires_grad = run->requires_grad;
    for (int t = 0; t < model->num_tensors; t++)
        requires_grad[t] = model->tensors[t].requires_grad && run->training;
    for (int i = 0; i < model->num_nodes; i++) {
        const hpct_graph_node *node = &model->nodes[i];
        hpct_op_build *build = &builds[i];
        *build = start_build(model, run, options, i);
        for (int k = 0; k < node->num_inputs; k++)
            build->needs_diff_src |= requires_grad[model->tensors[node->inputs[k]].root];
        bool any = build->needs_diff_src || has_trained_params(model, node);
        requires_grad[model->tensors[node->output].root] = any && run->training;
        run->nodes[i].backward = any && run->training && i != skipped;
        build->training = run->nodes[i].backward;
        build->needs_diff_src = build->needs_diff_src && build->training;
        build->shares_src = build->needs_diff_src && node->spec.kind == HPCT_OP_CONV2D &&
                            hpct_run_shares_source(model, run, i);
    }
}

/* Placeholder for a node that is fused into another: does nothing. */
static hpct_status nothing(hpct_op *op, const hpct_op_call *call)
{
    (void) op;
    (void) call;
    return HPCT_OK;
}

static void free_fused_away(hpct_op *op)
{
    free(op);
}

static hpct_status make_fused_away(hpct_op **out, const hpct_op_spec *spec,
                                   const hpct_op_build *build)
{
    static const hpct_op_class class = {
        .forward = nothing, .backward = nothing, .destroy = free_fused_away};
    hpct_op *op = *out = calloc(1, sizeof *op);
    if (op == NULL)
        return hpct_fail_memory(sizeof *op);
    op->class = &class;
    op->spec = *spec;
    op->build = *build;
    return HPCT_OK;
}

static hpct_status make_op(const hpct_model *model, hpct_run *run, int i, const bool *blocks,
                           const hpct_op_build *build)
{
    const hpct_graph_node *node = &model->nodes[i];
    hpct_op **op = &run->nodes[i].op;
    hpct_op_spec spec = node->spec;
    set_blocks(model, run, node, blocks, &spec);
    hpct_debug(HPCT_DEBUG_OPS, "node %d, layer %s: %s", i, model->layers[node->layer].name,
               hpct_op_kind_name(spec.kind));
    if (run->nodes[i].fused_away)
        return make_fused_away(op, &spec, build);
    if (spec.kind == HPCT_OP_BATCH_NORM && spec.norm.frozen && run->training)
        return hpct_backend_make_frozen_norm(op, run->backend, &spec, build);
    if (spec.kind == HPCT_OP_BATCH_NORM && spec.norm.groups > 1)
        return hpct_backend_make_grouped_norm(op, run->backend, &spec, build);
    if (hpct_op_is_collective(&spec) && run->backend->device != NULL)
        return hpct_backend_make_host_fallback(op, run->backend, &spec, build);
    return run->backend->make_op(op, &spec, build);
}

static hpct_status make_ops(const hpct_model *model, hpct_run *run,
                            const hpct_run_build_options *options)
{
    int skipped;
    hpct_run_find_loss(model, &run->loss.tensor, &run->loss.form, &skipped);
    if (run->dense_targets && run->loss.form == HPCT_BACKEND_LOSS_PROBABILITIES)
        run->loss.form =
            HPCT_BACKEND_LOSS_DISTRIBUTION; /* sparse labels alone have the other form */
    run->loss.classes = (int) hpct_graph_shape_count(&model->tensors[run->loss.tensor].shape);
    run->requires_grad = calloc((size_t) model->num_tensors, sizeof *run->requires_grad);
    run->plan.root = find_roots(model);
    if (run->requires_grad == NULL || run->plan.root == NULL)
        return hpct_fail_memory((size_t) model->num_tensors * sizeof *run->plan.root);
    bool *blocks = NULL;
    hpct_op_build *builds = calloc((size_t) model->num_nodes + 1, sizeof *builds);
    hpct_status status = builds != NULL
                             ? hpct_run_find_blocks(model, run, options->plain_layout, &blocks)
                             : hpct_fail_memory((size_t) model->num_nodes * sizeof *builds);
    if (status == HPCT_OK) {
        describe(model, run, options, skipped, builds);
        status = hpct_run_fuse(model, run, builds);
    }
    for (int i = 0; i < model->num_nodes && status == HPCT_OK; i++) {
        hpct_count_progress();
        status = make_op(model, run, i, blocks, &builds[i]);
        if (status != HPCT_OK)
            hpct_fail_within(status, model->layers[model->nodes[i].layer].name);
    }
    free(builds);
    free(blocks);
    return status;
}

/* Leaves the parameter to update(), in one range with the one before if the optimizer allows. */
static void add_update(const hpct_model *model, hpct_run *run, const hpct_graph_param *param,
                       size_t offset, size_t count)
{
    const hpct_optimizer *optimizer = &model->optimizer;
    const float factor = hpct_graph_node_rate_factor(model, &model->nodes[param->node]);
    hpct_backend_update_range *last =
        run->arenas.num_updates > 0 ? &run->arenas.updates[run->arenas.num_updates - 1] : NULL;
    if (last != NULL && last->offset + last->count == offset && last->split == param->split &&
        last->rate_factor == factor && !hpct_graph_optimizer_by_parameter(optimizer))
        last->count += count;
    else
        run->arenas.updates[run->arenas.num_updates++] = (hpct_backend_update_range){
            offset, count, .rate_factor = factor,
            .adapt = param->shape.rank > 1 || optimizer->trust_all, .split = param->split};
}

/* Lists the parameter if it has a regularizer. */
static void add_penalty(hpct_run *run, const hpct_graph_param *param, size_t offset, size_t count)
{
    if (!hpct_graph_param_has_penalty(param))
        return;
    run->arenas.penalties[run->arenas.num_penalties++] =
        (hpct_backend_penalty){.offset = offset,
                               .count = count,
                               .l1 = (float) param->l1,
                               .l2 = (float) param->l2,
                               .split = param->split};
}

/* Frozen parameters follow the moving statistics, so that the latter are one range. */
static void lay_out_state(const hpct_model *model, hpct_run *run, int param, size_t count)
{
    size_t *floats =
        model->params[param].frozen ? &run->arenas.frozen_floats : &run->arenas.state_floats;
    run->arenas.param_offsets[param] = *floats;
    *floats += count;
}

static void place_frozen(const hpct_model *model, hpct_run *run)
{
    for (int i = 0; i < model->num_params; i++) {
        if (model->params[i].frozen)
            run->arenas.param_offsets[i] += run->arenas.state_floats;
    }
}

/* Offsets of the parameters, in the order in which backward finishes their gradients. Processes
 * with other frozen layers have another layout. */
static hpct_status lay_out_arena(const hpct_model *model, hpct_run *run)
{
    size_t num = (size_t) model->num_params + 1;
    run->arenas.param_offsets = calloc(num, sizeof *run->arenas.param_offsets);
    run->arenas.updates = calloc(num, sizeof *run->arenas.updates);
    run->arenas.penalties = calloc(num, sizeof *run->arenas.penalties);
    if (run->arenas.param_offsets == NULL || run->arenas.updates == NULL ||
        run->arenas.penalties == NULL)
        return hpct_fail_memory(num * sizeof *run->arenas.updates);
    uint64_t hash = HPCT_FNV_START;
    size_t offset = 0;
    for (int i = model->num_nodes - 1; i >= 0; i--) {
        const hpct_graph_node *node = &model->nodes[i];
        const hpct_op *op = run->nodes[i].op;
        for (int k = 0; k < node->num_params; k++) {
            int param = node->first_param + k;
            size_t count = (op->param_floats[k] + HPCT_BACKEND_ARENA_ALIGN - 1) /
                           HPCT_BACKEND_ARENA_ALIGN * HPCT_BACKEND_ARENA_ALIGN;
            uint64_t facts[3] = {op->param_layout[k], op->param_floats[k], 1};
            hash = hpct_fnv(hash, facts, (model->params[param].frozen ? 3 : 2) * sizeof *facts);
            if (model->params[param].state) {
                lay_out_state(model, run, param, count);
                continue;
            }
            run->arenas.param_offsets[param] = offset;
            add_penalty(run, &model->params[param], offset, count);
            if (k != HPCT_OP_KERNEL || !op->kernel_fused)
                add_update(model, run, &model->params[param], offset, count);
            offset += count;
        }
        run->nodes[i].done = offset;
    }
    place_frozen(model, run);
    run->arenas.floats = offset;
    run->arenas.fingerprint = hash;
    return HPCT_OK;
}

static void *allocate_memory(const hpct_run *run, size_t bytes, const char *what,
                             hpct_status *status)
{
    if (*status != HPCT_OK)
        return NULL;
    void *memory = run->backend->allocate(bytes);
    if (memory == NULL)
        *status = hpct_backend_memory_fail(run->backend, bytes, "%s", what);
    return memory;
}

bool hpct_run_has_slot(const hpct_model *model, const hpct_run *run, int slot)
{
    const hpct_optimizer *optimizer = &model->optimizer;
    if (run->arenas.borrows)
        return false;
    if (slot == HPCT_GRAPH_SLOT_ACCUMULATED)
        return run->training && optimizer->gradient_accumulation_steps > 1;
    return run->training && !run->no_slots && slot < hpct_graph_optimizer_num_slots(optimizer);
}

size_t hpct_run_state_bytes(const hpct_run *run)
{
    return (run->arenas.state_floats + run->arenas.frozen_floats) * sizeof(float);
}

/* Floats of the gradients of a frozen layer that the operation computes all the same. */
static size_t spare_floats(const hpct_run_node *node)
{
    const hpct_op *op = node->op;
    size_t floats = 0;
    if (!node->backward || !op->build.frozen || op->omits_grads)
        return 0;
    for (int k = 0; k < op->num_params; k++)
        floats += (op->param_floats[k] + HPCT_BACKEND_ARENA_ALIGN - 1) / HPCT_BACKEND_ARENA_ALIGN *
                  HPCT_BACKEND_ARENA_ALIGN;
    return floats;
}

size_t hpct_run_spare_bytes(const hpct_run *run)
{
    size_t most = 0;
    for (int i = 0; i < run->num_nodes; i++) {
        size_t floats = spare_floats(&run->nodes[i]);
        most = floats > most ? floats : most;
    }
    return most * sizeof(float);
}

size_t hpct_run_target_bytes(const hpct_run *run, int samples)
{
    return run->dense_targets ? (size_t) samples * (size_t) run->loss.classes * sizeof(float) : 0;
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
    char *copies = allocate_memory(run, hpct_run_copies_bytes(run), "copies of parameters", status),
         *at = copies;
    for (int i = 0; i < run->num_nodes && at != NULL; i++) {
        run->nodes[i].copies = at;
        at += rounded(run->nodes[i].op->copies_bytes);
    }
    run->arenas.stale = true;
    return copies;
}

static hpct_status allocate(const hpct_model *model, hpct_run *run)
{
    hpct_status status = HPCT_OK;
    size_t arena = run->arenas.floats * sizeof(float);
    if (!run->arenas.borrows)
        run->arenas.parameters = allocate_memory(run, arena, "parameters", &status);
    run->arenas.states =
        allocate_memory(run, hpct_run_state_bytes(run), "moving statistics", &status);
    if (run->arenas.num_penalties > 0)
        run->arenas.penalty = allocate_memory(run, 2 * sizeof(float), "penalties", &status);
    if (hpct_run_spare_bytes(run) > 0)
        run->arenas.spare =
            allocate_memory(run, hpct_run_spare_bytes(run), "unused gradients", &status);
    if (run->training)
        run->arenas.gradients = allocate_memory(
            run, arena + HPCT_RUN_ARENA_PIGGYBACK * sizeof(float), "gradients", &status);
    for (int k = 0; k < HPCT_GRAPH_NUM_SLOTS; k++) {
        if (hpct_run_has_slot(model, run, k))
            run->arenas.slot[k] = allocate_memory(run, arena, "the optimizer", &status);
    }
    if (run->training && model->precision == HPCT_FP16)
        run->arenas.scaling =
            allocate_memory(run, sizeof *run->arenas.scaling, "the loss scale", &status);
    run->plan.scratch = allocate_memory(run, hpct_run_scratch_bytes(run), "scratch", &status);
    run->arenas.copies = take_copies(run, &status);
    if (status == HPCT_OK)
        status = hpct_run_place(model, run, NULL);
    return status == HPCT_OK ? hpct_run_make_transit(model, run) : status;
}

float *hpct_run_param(const hpct_model *model, const hpct_run *run, int param)
{
    float *arena = model->params[param].state ? run->arenas.states : run->arenas.parameters;
    return arena + run->arenas.param_offsets[param];
}

static void point_at_spare(const hpct_run *run, hpct_run_node *node)
{
    float *at = run->arenas.spare;
    for (int k = 0; k < node->op->num_params && spare_floats(node) > 0; k++) {
        size_t floats = node->op->param_floats[k];
        node->grad[k] = at;
        at += (floats + HPCT_BACKEND_ARENA_ALIGN - 1) / HPCT_BACKEND_ARENA_ALIGN *
              HPCT_BACKEND_ARENA_ALIGN;
    }
}

static void point_at_params(const hpct_model *model, hpct_run *run)
{
    for (int i = 0; i < run->num_nodes; i++)
        point_at_spare(run, &run->nodes[i]);
    for (int i = 0; i < model->num_params; i++) {
        hpct_run_node *node = &run->nodes[model->params[i].node];
        int index = model->params[i].index;
        node->param[index] = hpct_run_param(model, run, i);
        if (run->arenas.gradients != NULL && !model->params[i].state)
            node->grad[index] = run->arenas.gradients + run->arenas.param_offsets[i];
    }
}

static hpct_status import(const hpct_run *run, const hpct_model *model, int index,
                          const float *kept, float *arena)
{
    if (kept == NULL || arena == NULL)
        return HPCT_OK;
    const hpct_graph_param *param = &model->params[index];
    hpct_op *op = run->nodes[param->node].op;
    return op->class->import_param(op, param->index, kept,
                                   arena + run->arenas.param_offsets[index]);
}

static void drop(float **kept, const float *arena)
{
    if (arena == NULL)
        return;
    free(*kept);
    *kept = NULL;
}

/* Moves parameters and slots from the model into the arenas. What has no arena in this run stays in
 * the model. */
static hpct_status move_in(hpct_model *model, hpct_run *run)
{
    if (run->arenas.scaling != NULL)
        HPCT_TRY(hpct_backend_memory_from_host(run->backend, run->arenas.scaling, &model->scaling,
                                               sizeof model->scaling));
    for (int i = 0; i < model->num_params; i++) {
        bool state = model->params[i].state;
        HPCT_TRY(import(run, model, i, model->params[i].value,
                        state ? run->arenas.states : run->arenas.parameters));
        for (int k = 0; k < HPCT_GRAPH_NUM_SLOTS; k++)
            HPCT_TRY(import(run, model, i, model->params[i].slot[k], run->arenas.slot[k]));
    }
    for (int i = 0; i < model->num_params; i++) {
        drop(&model->params[i].value, run->arenas.parameters);
        for (int k = 0; k < HPCT_GRAPH_NUM_SLOTS; k++)
            drop(&model->params[i].slot[k], run->arenas.slot[k]);
    }
    malloc_trim(0); /* the freed copies are as large as the arenas: return them to the system */
    return HPCT_OK;
}

/* Copies a parameter or slot to *kept, allocated if NULL, in Keras' layout. */
static hpct_status keep(const hpct_model *model, int index, const float *from, float **kept)
{
    const hpct_graph_param *param = &model->params[index];
    hpct_op *op = model->run->nodes[param->node].op;
    size_t bytes = hpct_graph_shape_count(&param->shape) * sizeof(float);
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
        hpct_graph_param *param = &model->params[i];
        if (!run->arenas.borrows || param->state)
            HPCT_TRY(keep(model, i, hpct_run_param(model, run, i), &param->value));
        for (int k = 0; k < HPCT_GRAPH_NUM_SLOTS; k++) {
            if (run->arenas.slot[k] != NULL && !param->state)
                HPCT_TRY(keep(model, i, run->arenas.slot[k] + run->arenas.param_offsets[i],
                              &param->slot[k]));
        }
    }
    if (run->arenas.scaling != NULL)
        HPCT_TRY(hpct_backend_memory_to_host(run->backend, &model->scaling, run->arenas.scaling,
                                             sizeof model->scaling));
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

/* Shares the parameters of options->storage, if given and of equal layout. */
static void borrow(hpct_run *run, const hpct_run_build_options *options)
{
    const hpct_run *storage = options->storage != NULL ? options->storage->run : NULL;
    if (storage == NULL || storage->backend != run->backend ||
        storage->arenas.fingerprint != run->arenas.fingerprint ||
        storage->arenas.floats != run->arenas.floats)
        return;
    run->arenas.borrows = true;
    run->arenas.parameters = storage->arenas.parameters;
}

hpct_status hpct_run_prepare(hpct_run **out, const hpct_model *model,
                             const hpct_run_build_options *options)
{
    const hpct_backend *backend = model->backend != NULL ? model->backend : hpct_backend_table[0];
    HPCT_TRY(check_compiled(model));
    if (options->backend != NULL)
        HPCT_TRY(hpct_backend_find(&backend, options->backend));
    HPCT_TRY(backend->check_precision(options->fp32 ? HPCT_FP32 : model->precision));
    hpct_run *run = calloc(1, sizeof *run);
    if (run == NULL)
        return hpct_fail_memory(sizeof *run);
    run->backend = backend;
    run->values = backend->low_values && !options->fp32 ? model->precision : HPCT_FP32;
    run->fuse_update = options->fuse_update && options->storage == NULL &&
                       model->precision != HPCT_FP16 &&
                       hpct_graph_optimizer_is_plain(&model->optimizer);
    run->nodes = calloc((size_t) model->num_nodes + 1, sizeof *run->nodes);
    hpct_status status = run->nodes != NULL ? HPCT_OK : hpct_fail_memory(0);
    if (status == HPCT_OK) {
        run->num_nodes = model->num_nodes;
        status = copy_options(model, run, options);
    }
    if (status == HPCT_OK)
        status = check_sizes(model, run);
    if (status == HPCT_OK)
        status = make_ops(model, run, options);
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

static const hpct_graph_run_class run_class = {.unbuild = hpct_model_unbuild,
                                               .free = hpct_run_free};

hpct_status hpct_model_build(hpct_model *model, const hpct_run_build_options *options)
{
    hpct_run *run = NULL;
    HPCT_TRY(check_compiled(model));
    HPCT_TRY(hpct_model_unbuild(model));
    HPCT_TRY(hpct_run_prepare(&run, model, options));
    hpct_status status = allocate(model, run);
    if (status == HPCT_OK) {
        point_at_params(model, run);
        status = move_in(model, run);
        if (hpct_debugs(HPCT_DEBUG_PLAN))
            hpct_run_print_plan(model, run, stderr);
    }
    model->builds++;
    if (status == HPCT_OK) {
        model->run = run;
        model->run_class = &run_class;
    } else {
        hpct_run_free(run);
    }
    return status;
}
