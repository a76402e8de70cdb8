/* Decides what to split: a search over the Dense operations and the positions where the front may
 * end, with the consequences of each choice for tensors and gradients. */
#include "nn/split/shard_plan.h"

#include "base/status.h"
#include "nn/graph/cost.h"
#include "nn/plan/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FLOPS_PER_SECOND 5e10
#define MEMORY_FLOATS_PER_SECOND 5e9
#define WIRE_FLOATS_PER_SECOND (1.25e8 / sizeof(float))
#define MESSAGE_SECONDS 50e-6

/* Which part of a tensor's gradient each replica computes. */
typedef enum gradient_form { NO_GRADIENT, FULL_GRADIENT, PARTIAL_SUM } gradient_form;

static int root_of(const hpct_model *model, int tensor)
{
    return model->tensors[tensor].root;
}

hpct_graph_channel_split hpct_split_shard_plan_out(const hpct_split_shard_plan *plan, int node)
{
    return plan->splits[root_of(plan->model, plan->model->nodes[node].output)];
}

hpct_graph_channel_split hpct_split_shard_plan_in(const hpct_split_shard_plan *plan, int node)
{
    return plan->wants_whole[node]
               ? (hpct_graph_channel_split){0}
               : plan->splits[root_of(plan->model, plan->model->nodes[node].inputs[0])];
}

static hpct_op_spec all_reduce_after(const hpct_split_shard_plan *plan, int node)
{
    const hpct_op_spec *spec = &plan->model->nodes[node].spec;
    return (hpct_op_spec){
        .kind = HPCT_OP_SUM_PARTS,
        .relu = spec->relu,
        .no_bias = spec->no_bias,
        .parts = {.rows = spec->dense.rows,
                  .split = {.channels = spec->dense.out,
                            .unit = 1,
                            .part = plan->part,
                            .parts = plan->parts},
                  .sum_diff = plan->sum_diff[node]},
    };
}

static hpct_op_spec all_gather_after(const hpct_split_shard_plan *plan, int root)
{
    const hpct_graph_channel_split *split = &plan->splits[root];
    size_t floats = hpct_graph_shape_count(&plan->model->tensors[root].shape);
    return (hpct_op_spec){
        .kind = HPCT_OP_GATHER_PARTS,
        .parts = {.rows = (int) (floats / (size_t) split->channels),
                  .split = *split,
                  .sum_diff = plan->gather_sum_diff[root]},
    };
}

/* Its channels are those of the last axis, so that images may be in channel blocks. */
static hpct_op_spec gather_samples_after(const hpct_split_shard_plan *plan, int root)
{
    const hpct_shape *shape = &plan->model->tensors[root].shape;
    int channels = shape->size[shape->rank - 1];
    return (hpct_op_spec){
        .kind = HPCT_OP_GATHER_SAMPLES,
        .parts =
            {.rows = (int) (hpct_graph_shape_count(shape) / (size_t) channels),
             .split = {.channels = channels, .unit = 1, .part = plan->part, .parts = plan->parts},
             .sum_diff = plan->gather_sum_diff[root]},
    };
}

hpct_op_spec hpct_split_shard_plan_meeting(const hpct_split_shard_plan *plan, int node)
{
    int output = plan->model->nodes[node].output;
    if (plan->sums[node])
        return all_reduce_after(plan, node);
    if (plan->gathers[output])
        return all_gather_after(plan, output);
    return plan->collects[output] ? gather_samples_after(plan, output)
                                  : (hpct_op_spec){.kind = HPCT_OP_KINDS};
}

/* ---- consequences of where splits begin ---- */

/* All inputs have the same split. */
static bool same_splits(const hpct_split_shard_plan *plan, const hpct_graph_node *node)
{
    const hpct_model *model = plan->model;
    const hpct_graph_channel_split *first = &plan->splits[root_of(model, node->inputs[0])];
    for (int k = 1; k < node->num_inputs; k++) {
        const hpct_graph_channel_split *other = &plan->splits[root_of(model, node->inputs[k])];
        if (other->channels != first->channels || other->unit != first->unit)
            return false;
    }
    return first->channels > 0;
}

/* Channel blocks of a convolution are not divided if parts are then equal, or nearly. */
static hpct_graph_channel_split channels_of(const hpct_split_shard_plan *plan,
                                            const hpct_op_spec *spec)
{
    int channels = hpct_op_channels(spec), block = HPCT_GRAPH_CHANNEL_BLOCK;
    bool even = channels / block % plan->parts == 0 || channels / block >= 4 * plan->parts,
         blocks = spec->kind == HPCT_OP_CONV2D && channels % block == 0 && even;
    return (hpct_graph_channel_split){
        .channels = channels, .unit = blocks ? block : 1, .part = plan->part, .parts = plan->parts};
}

/* The front splits nothing. Later operations read its tensors gathered, of all samples; false if
 * one reads the model's input, which is not gathered. */
static bool place_front(hpct_split_shard_plan *plan, int i, bool *others)
{
    const hpct_model *model = plan->model;
    const hpct_graph_node *node = &model->nodes[i];
    *others = i >= plan->front;
    if (!*others)
        plan->local[root_of(model, node->output)] = true;
    for (int k = 0; k < node->num_inputs && *others && plan->front > 0; k++) {
        int root = root_of(model, node->inputs[k]);
        plan->collects[root] = plan->collects[root] || plan->local[root];
        if (root == root_of(model, 0))
            return false;
    }
    return true;
}

/* Sets the split of a node's output; false if it has fewer channels (or units) than there are
 * parts. */
static bool split_output(hpct_split_shard_plan *plan, int i)
{
    const hpct_model *model = plan->model;
    const hpct_graph_node *node = &model->nodes[i];
    hpct_graph_channel_split *out = &plan->splits[root_of(model, node->output)], follows;
    bool any = false, others;
    if (!place_front(plan, i, &others) || !others)
        return !others;
    for (int k = 0; k < node->num_inputs; k++)
        any = any || plan->splits[root_of(model, node->inputs[k])].channels > 0;
    if (any && same_splits(plan, node) &&
        hpct_op_takes(&node->spec, &plan->splits[root_of(model, node->inputs[0])], &follows)) {
        *out = follows;
        plan->sums[i] = follows.channels == 0;
        return true;
    }
    plan->wants_whole[i] = any;
    for (int k = 0; any && k < node->num_inputs; k++) {
        int root = root_of(model, node->inputs[k]);
        plan->gathers[root] = plan->gathers[root] || plan->splits[root].channels > 0;
    }
    if (plan->begins[i] == HPCT_SPLIT_SHARD_WHOLE)
        return true;
    *out = plan->begins[i] == HPCT_SPLIT_SHARD_CELLS
               ? hpct_op_cell_split(&node->spec, plan->part, plan->parts)
               : channels_of(plan, &node->spec);
    return out->channels / out->unit >= plan->parts;
}

static bool split_outputs(hpct_split_shard_plan *plan)
{
    const hpct_model *model = plan->model;
    int output = root_of(model, model->output);
    for (int i = 0; i < model->num_nodes; i++) {
        if (!split_output(plan, i))
            return false;
    }
    plan->gathers[output] = plan->gathers[output] || plan->splits[output].channels > 0;
    return !plan->local[output];
}

/* As make_ops in nn/plan/build.c. */
static void find_requires_grad(const hpct_model *model, bool *requires_grad, bool *backward)
{
    int tensor, skipped;
    hpct_backend_loss_form form;
    hpct_run_find_loss(model, &tensor, &form, &skipped);
    for (int i = 0; i < model->num_nodes; i++) {
        const hpct_graph_node *node = &model->nodes[i];
        for (int k = 0; k < node->num_params; k++)
            backward[i] = backward[i] || !model->params[node->first_param + k].state;
        for (int k = 0; k < node->num_inputs; k++)
            backward[i] = backward[i] || requires_grad[root_of(model, node->inputs[k])];
        requires_grad[root_of(model, node->output)] = backward[i];
        backward[i] = backward[i] && i != skipped;
    }
}

/* Records a reader's contribution to a tensor's gradient; false if it differs from another
 * reader's. */
static bool add_contribution(gradient_form *all, gradient_form one)
{
    bool fits = *all == NO_GRADIENT || *all == one;
    *all = one;
    return fits;
}

/* The node's contributions to its inputs' gradients; false if they do not fit others'. */
static bool add_contributions(hpct_split_shard_plan *plan, int i, const bool *requires_grad,
                              gradient_form *own, gradient_form *whole)
{
    const hpct_model *model = plan->model;
    const hpct_graph_node *node = &model->nodes[i];
    int output = root_of(model, node->output);
    bool split = plan->splits[output].channels > 0, fits = true;
    gradient_form of_output = split ? FULL_GRADIENT : own[output];
    if (i < plan->front) {
        plan->partial[i] = true;
        plan->gather_sum_diff[output] = plan->collects[output] && own[output] == PARTIAL_SUM;
        return true;
    }
    if (split)
        plan->gather_sum_diff[output] = whole[output] == PARTIAL_SUM;
    if (plan->sums[i]) {
        plan->sum_diff[i] = own[output] == PARTIAL_SUM;
        of_output = FULL_GRADIENT;
    }
    plan->partial[i] = of_output == PARTIAL_SUM || plan->begins[i] == HPCT_SPLIT_SHARD_CELLS;
    for (int k = 0; k < node->num_inputs; k++) {
        int root = root_of(model, node->inputs[k]);
        bool reads_split = plan->splits[root].channels > 0 && !plan->wants_whole[i];
        gradient_form one = split && !reads_split ? PARTIAL_SUM : of_output;
        if (requires_grad[root] && plan->begins[i] == HPCT_SPLIT_SHARD_CELLS)
            return false;
        if (requires_grad[root])
            fits = add_contribution(plan->splits[root].channels > 0 && plan->wants_whole[i]
                                        ? &whole[root]
                                        : &own[root],
                                    one) &&
                   fits;
    }
    return fits;
}

/* Backward: false if a gradient would add contributions that all parts have to partial ones. In the
 * front each part continues with the whole gradient of its local batch. */
static bool find_partial_sums(hpct_split_shard_plan *plan)
{
    const hpct_model *model = plan->model;
    size_t tensors = (size_t) model->num_tensors, nodes = (size_t) model->num_nodes;
    gradient_form *own = calloc(2 * tensors, sizeof *own),
                  *whole = own != NULL ? own + tensors : NULL;
    bool *requires_grad = calloc(tensors + nodes, sizeof *requires_grad),
         fits = own != NULL && requires_grad != NULL;
    int loss, skipped;
    hpct_backend_loss_form form;
    if (!fits)
        goto end;
    find_requires_grad(model, requires_grad, requires_grad + tensors);
    hpct_run_find_loss(model, &loss, &form, &skipped);
    loss = root_of(model, loss);
    *(plan->splits[loss].channels > 0 ? &whole[loss] : &own[loss]) = FULL_GRADIENT;
    for (int i = model->num_nodes - 1; i >= 0 && fits; i--) {
        if (requires_grad[tensors + (size_t) i])
            fits = add_contributions(plan, i, requires_grad, own, whole);
    }
end:
    free(own);
    free(requires_grad);
    return fits;
}

/* ---- cost ---- */

static double sum_floats(const hpct_split_shard_plan *plan, double floats)
{
    return floats * 2 * (plan->parts - 1) / plan->parts;
}

static void add_message(hpct_split_shard_plan *plan, double floats)
{
    plan->wire_floats += floats;
    plan->seconds += MESSAGE_SECONDS + floats / WIRE_FLOATS_PER_SECOND;
}

/* The gradient of a gather costs half a sum (reduce-scatter): each part sums only its own share,
 * which ranks with direct connections can. */
static void add_collective(hpct_split_shard_plan *plan, const hpct_op_spec *spec, int samples)
{
    double floats = (double) samples * (double) hpct_op_dst_floats(spec);
    if (spec->kind != HPCT_OP_SUM_PARTS)
        floats /= 2;
    add_message(plan, sum_floats(plan, floats));
    if (spec->parts.sum_diff)
        add_message(plan, sum_floats(plan, floats));
}

/* The largest part's, so that all parts predict the same. */
static hpct_graph_channel_split largest(hpct_graph_channel_split split)
{
    split.part = split.parts - 1;
    return split;
}

/* Channel blocks are computed whole. */
static double flops_of(const hpct_op_spec *spec)
{
    int block = HPCT_GRAPH_CHANNEL_BLOCK, channels = hpct_op_channels(spec);
    double padded = spec->kind == HPCT_OP_CONV2D && spec->window.groups == 1
                        ? (double) ((channels + block - 1) / block * block) / channels
                        : 1;
    return padded * hpct_op_flops(spec);
}

static void predict(hpct_split_shard_plan *plan, int samples)
{
    const hpct_model *model = plan->model;
    double partial = 0;
    int all = samples;
    plan->seconds = plan->wire_floats = 0;
    for (int i = 0; i < model->num_nodes; i++) {
        const hpct_graph_node *node = &model->nodes[i];
        hpct_graph_channel_split in = largest(hpct_split_shard_plan_in(plan, i)),
                                 out = largest(hpct_split_shard_plan_out(plan, i));
        hpct_op_spec spec = hpct_op_part(&node->spec, &in, &out), meeting;
        double floats = (double) hpct_op_dst_floats(&spec);
        for (int k = 0; k < node->num_inputs; k++)
            floats += (double) hpct_op_src_floats(&spec, k);
        samples = i < plan->front ? (all + plan->parts - 1) / plan->parts : all;
        plan->seconds +=
            3 * samples * (flops_of(&spec) / FLOPS_PER_SECOND + floats / MEMORY_FLOATS_PER_SECOND);
        for (int k = 0; plan->partial[i] && k < node->num_params; k++)
            partial += model->params[node->first_param + k].state
                           ? 0
                           : (double) hpct_op_param_floats(&node->spec, k);
        meeting = hpct_split_shard_plan_meeting(plan, i);
        if (meeting.kind != HPCT_OP_KINDS)
            add_collective(plan, &meeting, all);
    }
    if (partial > 0)
        add_message(plan, sum_floats(plan, partial));
}

/* Derives the plan from `begins`; false if it is impossible. */
static bool complete(hpct_split_shard_plan *plan, int samples)
{
    const hpct_model *model = plan->model;
    size_t nodes = (size_t) model->num_nodes, tensors = (size_t) model->num_tensors;
    memset(plan->splits, 0, tensors * sizeof *plan->splits);
    memset(plan->sums, 0, nodes);
    memset(plan->wants_whole, 0, nodes);
    memset(plan->gathers, 0, tensors);
    memset(plan->sum_diff, 0, nodes);
    memset(plan->gather_sum_diff, 0, tensors);
    memset(plan->local, 0, tensors);
    memset(plan->collects, 0, tensors);
    memset(plan->partial, 0, nodes);
    if (!split_outputs(plan) || !find_partial_sums(plan))
        return false;
    predict(plan, samples);
    return true;
}

/* ---- the search ---- */

/* Marks in `begins` the operations that must begin a split, as `how`, so that `tensor` is split;
 * false if an operation before it can neither begin such a split nor follow one. */
static bool begin_before(const hpct_model *model, int tensor, hpct_split_shard_begin how,
                         hpct_split_shard_begin *begins)
{
    int root = root_of(model, tensor);
    for (int i = 0; i < model->num_nodes; i++) {
        const hpct_graph_node *node = &model->nodes[i];
        if (root_of(model, node->output) != root)
            continue;
        int ways = hpct_op_parallel(&node->spec);
        if (ways & HPCT_GRAPH_PARALLEL_BEGINS) {
            begins[i] = how;
            return how == HPCT_SPLIT_SHARD_CHANNELS || (ways & HPCT_GRAPH_PARALLEL_CELLS) != 0;
        }
        for (int k = 0; k < node->num_inputs; k++) {
            if (!(ways & HPCT_GRAPH_PARALLEL_FOLLOWS) ||
                !begin_before(model, node->inputs[k], how, begins))
                return false;
        }
        return true;
    }
    return false; /* the model's input */
}

static double sum_of_gradients(const hpct_split_shard_plan *plan)
{
    double floats = 0;
    for (int i = 0; i < plan->model->num_params; i++)
        floats += plan->model->params[i].state
                      ? 0
                      : (double) hpct_graph_shape_count(&plan->model->params[i].shape);
    return sum_floats(plan, floats);
}

/* The best choice so far. */
typedef struct choice {
    hpct_split_shard_begin *begins; /* [nodes] */
    int front;
    double seconds;
} choice;

static bool splits_any(const hpct_split_shard_plan *plan)
{
    for (int t = 0; t < plan->model->num_tensors; t++) {
        if (plan->splits[t].channels > 0)
            return true;
    }
    return false;
}

/* Makes plan->begins and plan->front the best choice if they are valid and faster. */
static void keep_if_faster(hpct_split_shard_plan *plan, int samples, choice *best)
{
    if (!complete(plan, samples) || plan->seconds >= best->seconds || !splits_any(plan) ||
        plan->wire_floats >= sum_of_gradients(plan))
        return;
    memcpy(best->begins, plan->begins, (size_t) plan->model->num_nodes * sizeof *best->begins);
    best->front = plan->front;
    best->seconds = plan->seconds;
}

/* Tries to split this Dense, too, in this form; kept if a step gets faster. how: for rows, the
 * split of the operations that produce its input. */
static void try_dense(hpct_split_shard_plan *plan, int dense, hpct_split_shard_form form,
                      hpct_split_shard_begin how, int samples, choice *best)
{
    const hpct_model *model = plan->model;
    memcpy(plan->begins, best->begins, (size_t) model->num_nodes * sizeof *best->begins);
    if (form == HPCT_SPLIT_SHARD_COLUMNS)
        plan->begins[dense] = HPCT_SPLIT_SHARD_CHANNELS;
    else if (!begin_before(model, model->nodes[dense].inputs[0], how, plan->begins))
        return;
    keep_if_faster(plan, samples, best);
}

/* For each front after which a split can begin at once: every later operation that can begin one
 * does. */
static void try_fronts(hpct_split_shard_plan *plan, int samples, choice *best)
{
    const hpct_model *model = plan->model;
    for (int i = 0; i < model->num_nodes; i++) {
        const hpct_op_spec *spec = &model->nodes[i].spec;
        bool begins = (hpct_op_parallel(spec) & HPCT_GRAPH_PARALLEL_BEGINS) != 0 &&
                      hpct_op_channels(spec) >= plan->parts;
        plan->begins[i] = begins ? HPCT_SPLIT_SHARD_CHANNELS : HPCT_SPLIT_SHARD_WHOLE;
    }
    for (plan->front = 1; plan->front < model->num_nodes; plan->front++) {
        plan->begins[plan->front - 1] = HPCT_SPLIT_SHARD_WHOLE;
        if (plan->begins[plan->front] != HPCT_SPLIT_SHARD_WHOLE)
            keep_if_faster(plan, samples, best);
    }
    plan->front = 0;
}

static int largest_dense(const hpct_model *model, const bool *tried)
{
    int best = -1;
    for (int i = 0; i < model->num_nodes; i++) {
        const hpct_op_spec *spec = &model->nodes[i].spec;
        bool larger = spec->kind == HPCT_OP_DENSE && !tried[i] &&
                      (best < 0 || hpct_op_param_floats(spec, HPCT_OP_KERNEL) >
                                       hpct_op_param_floats(&model->nodes[best].spec, 0));
        best = larger ? i : best;
    }
    return best;
}

static hpct_status nothing_pays(const hpct_model *model, const hpct_split_shard_options *options)
{
    static const struct {
        const char *what, *how;
    } forms[] = {
        {"layers", ""}, {"Dense", " by rows"}, {"Dense", " by columns"}, {"last layers", ""}};
    return hpct_fail(
        HPCT_ERR_CONFIG,
        "model %s has no %s that %d parts could split%s and then send less than the sum "
        "of its gradients takes (at %d samples a step)",
        model->name, forms[options->form].what, options->parts, forms[options->form].how,
        options->samples);
}

static hpct_status search(hpct_split_shard_plan *plan, const hpct_split_shard_options *options,
                          hpct_split_shard_begin *begins, bool *tried)
{
    choice best = {.begins = begins, .seconds = INFINITY};
    bool any = options->form == HPCT_SPLIT_SHARD_AUTO;
    int samples = options->samples;
    for (int dense; (dense = largest_dense(plan->model, tried)) >= 0;) {
        tried[dense] = true;
        for (int how = HPCT_SPLIT_SHARD_CHANNELS; how <= HPCT_SPLIT_SHARD_CELLS; how++) {
            if (any || options->form == HPCT_SPLIT_SHARD_ROWS)
                try_dense(plan, dense, HPCT_SPLIT_SHARD_ROWS, (hpct_split_shard_begin) how, samples,
                          &best);
        }
        if (any || options->form == HPCT_SPLIT_SHARD_COLUMNS)
            try_dense(plan, dense, HPCT_SPLIT_SHARD_COLUMNS, HPCT_SPLIT_SHARD_CHANNELS, samples,
                      &best);
    }
    if ((any && !options->without_front) || options->form == HPCT_SPLIT_SHARD_BACK)
        try_fronts(plan, samples, &best);
    memcpy(plan->begins, best.begins, (size_t) plan->model->num_nodes * sizeof *begins);
    plan->front = best.front;
    if (isinf(best.seconds) || !complete(plan, samples))
        return nothing_pays(plan->model, options);
    return HPCT_OK;
}

hpct_status hpct_split_shard_plan_make(hpct_split_shard_plan *plan, const hpct_model *model,
                                       const hpct_split_shard_options *options)
{
    size_t nodes = (size_t) model->num_nodes, tensors = (size_t) model->num_tensors;
    size_t bytes =
        tensors * sizeof *plan->splits + 2 * nodes * sizeof *plan->begins + 4 * tensors + 5 * nodes;
    *plan = (hpct_split_shard_plan){.model = model, .part = options->part, .parts = options->parts};
    char *at = plan->memory = calloc(1, bytes);
    if (at == NULL)
        return hpct_fail_memory(bytes);
    plan->splits = plan->memory;
    at += tensors * sizeof *plan->splits;
    plan->begins = (void *) at;
    hpct_split_shard_begin *best = plan->begins + nodes;
    at += 2 * nodes * sizeof *best;
    bool **flags[] = {&plan->sums, &plan->wants_whole, &plan->sum_diff, &plan->partial};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++, at += nodes)
        *flags[i] = (bool *) at;
    bool *tried = (bool *) at;
    plan->gathers = tried + nodes;
    plan->gather_sum_diff = plan->gathers + tensors;
    plan->local = plan->gather_sum_diff + tensors;
    plan->collects = plan->local + tensors;
    hpct_status status = search(plan, options, best, tried);
    if (status != HPCT_OK)
        hpct_split_shard_plan_free(plan);
    return status;
}

void hpct_split_shard_plan_free(hpct_split_shard_plan *plan)
{
    free(plan->memory);
    *plan = (hpct_split_shard_plan){0};
}
