/* Builds a model for a backend: operations, arenas, buffers; and unbuilds it, keeping its
 * weights. */
#include "nn/plan/run.h"

#include "base/debug.h"
#include "base/progress.h"
#include "base/status.h"
#include "nn/backends/backends.h"
#include "nn/plan/arenas.h"
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
    hpct_run_free_arenas(run);
    hpct_run_free_transit(run);
    run->backend->release(run->plan.block);
    run->backend->release(run->plan.scratch);
    free(run->plan.root);
    free(run->plan.links);
    free(run->plan.value_offsets);
    free(run->requires_grad);
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

/* What there is among a node's parameters. */
typedef struct params_of {
    bool trained, frozen, penalties;
} params_of;

static params_of find_params(const hpct_model *model, const hpct_graph_node *node)
{
    params_of of = {false};
    for (int k = 0; k < node->num_params; k++) {
        const hpct_graph_param *param = &model->params[node->first_param + k];
        of.trained |= !param->state;
        of.frozen |= param->frozen;
        of.penalties |= hpct_graph_param_has_penalty(param);
    }
    return of;
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

/* Build options common to all operations. A product that updates its kernel itself would leave out
 * the kernel's penalty. */
static hpct_op_build start_build(const hpct_model *model, const hpct_run *run,
                                 const hpct_run_build_options *options, int i)
{
    const hpct_graph_node *node = &model->nodes[i];
    params_of of = find_params(model, node);
    bool own_rate = run->backend->device != NULL && hpct_graph_node_rate_factor(model, node) != 1;
    return (hpct_op_build){
        .precision = options->fp32 ? HPCT_FP32 : hpct_graph_node_precision(model, node),
        .values = run->values,
        .batch_sizes = node->local ? run->batches.local : run->batches.sizes,
        .num_batch_sizes = run->batches.num,
        /* a device has one rate for all fused updates */
        .fuse_update =
            run->fuse_update && !node->partial && !of.frozen && !own_rate && !of.penalties,
        .plain_layout = options->plain_layout,
        .frozen = of.frozen,
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
        bool any = build->needs_diff_src || find_params(model, node).trained;
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

static hpct_status make_fused_away(hpct_op **out, const hpct_op_spec *spec,
                                   const hpct_op_build *build)
{
    static const hpct_op_class class = {
        .forward = nothing, .backward = nothing, .destroy = hpct_op_free};
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

static hpct_status import(const hpct_run *run, const hpct_model *model, int index,
                          const float *kept, float *arena)
{
    if (kept == NULL || arena == NULL)
        return HPCT_OK;
    const hpct_graph_param *param = &model->params[index];
    hpct_op *op = run->nodes[param->node].op;
    return hpct_op_import(op, param->index, kept, arena + run->arenas.param_offsets[index]);
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
    return hpct_op_export(op, param->index, from, *kept);
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
        status = hpct_run_lay_out_arenas(model, run);
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
    hpct_status status = hpct_run_allocate(model, run);
    if (status == HPCT_OK) {
        hpct_run_point_at_params(model, run);
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
