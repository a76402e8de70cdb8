/* Offsets of activations, gradients and workspaces: lifetimes from the order of the step,
 * nn/plan/plan.h, then pointers. */
#include "nn/plan/fusions.h"
#include "nn/plan/plan.h"
#include "nn/plan/run.h"

#include "base/status.h"

#include <stdint.h>
#include <stdlib.h>

/* Items of the plan: per tensor its values, per tensor its gradient, per node its workspace, and
 * per node a gradient that is added afterwards (HPCT_RUN_DIFF_ADD_AFTER). Unused ones have no
 * bytes. */
typedef struct placing {
    const hpct_model *model;
    hpct_run *run;
    hpct_run_plan_item *values, *diffs, *workspaces, *parts, *items;
    int num_items;
    int *diff_root; /* from hpct_run_flow */
    int end;        /* after all other times */
} placing;

static int root_of(const placing *p, int tensor)
{
    return hpct_run_root(p->model, p->run, tensor);
}

static int diff_root_of(const placing *p, int tensor)
{
    return p->diff_root[root_of(p, tensor)];
}

static void live(hpct_run_plan_item *item, int time)
{
    if (time < item->first)
        item->first = time;
    if (time > item->last)
        item->last = time;
}

static size_t tensor_bytes(const placing *p, int tensor)
{
    const hpct_graph_tensor *t = &p->model->tensors[tensor];
    int samples = t->local ? p->run->batches.largest_local : p->run->batches.largest;
    return hpct_graph_shape_count(&t->shape) * (size_t) samples *
           hpct_backend_precision_bytes(p->run->values);
}

/* Pipeline stages: stage inputs exist before the first operation, and their gradients until after
 * the last; stage outputs exist until the loss, when their gradients arrive. */
static void find_border_lifetimes(placing *p)
{
    const hpct_model *model = p->model;
    for (int t = 0; t < model->num_tensors; t++) {
        const hpct_graph_tensor *tensor = &model->tensors[t];
        hpct_run_plan_item *diff = &p->diffs[p->diff_root[t]];
        if (!tensor->stage_input && !tensor->stage_output)
            continue;
        p->values[t].bytes = tensor_bytes(p, t);
        if (tensor->stage_input)
            live(&p->values[t], 0);
        if (tensor->stage_output)
            live(&p->values[t], model->num_nodes);
        if (!p->run->requires_grad[t])
            continue;
        diff->bytes = tensor_bytes(p, t);
        if (tensor->stage_input)
            live(diff, p->end);
        if (tensor->stage_output)
            live(diff, model->num_nodes);
    }
}

/* Result not stored: the consumer computes it, or the convolution writes the ADD's result
 * instead. */
static bool is_fused_away(const hpct_op *op)
{
    return op->build.fused_downstream || op->build.adds;
}

/* The time of a node's backward. */
static int back_of(const placing *p, int node)
{
    return 2 * p->model->num_nodes - node;
}

/* Source and workspace of a BATCH_NORM fused downstream live until its reader has run. */
static void keep_norm(placing *p, const hpct_run_link *link)
{
    const hpct_run_node *reader = &p->run->nodes[link->to];
    hpct_run_plan_item *source = &p->values[root_of(p, p->model->nodes[link->from].inputs[0])];
    live(source, link->to);
    live(&p->workspaces[link->from], link->to);
    if (reader->op->leaves_norm_sums)
        live(&p->workspaces[link->to], back_of(p, link->from));
    if (reader->backward && reader->op->backward_reads_src)
        live(source, back_of(p, link->to));
}

static void find_link_lifetimes(placing *p)
{
    for (int i = 0; i < p->run->plan.num_links; i++) {
        const hpct_run_link *link = &p->run->plan.links[i];
        if (link->fusion == HPCT_BACKEND_FUSION_ADD_NORM)
            keep_norm(p, link);
        else if (link->fusion == HPCT_BACKEND_FUSION_SUM)
            live(&p->values[root_of(p, p->model->nodes[link->to].output)], link->from);
    }
}

static void find_lifetimes(placing *p)
{
    const hpct_model *model = p->model;
    const hpct_run *run = p->run;
    int num = model->num_nodes;
    for (int i = 0; i < num; i++) {
        const hpct_graph_node *node = &model->nodes[i];
        const hpct_op *op = run->nodes[i].op;
        if (run->nodes[i].fused_away)
            continue;
        bool backward = run->nodes[i].backward;
        int back = back_of(p, i), dst = root_of(p, node->output);
        p->values[dst].bytes = is_fused_away(op) ? 0 : tensor_bytes(p, dst);
        live(&p->values[dst], i);
        if (backward && op->backward_reads_dst)
            live(&p->values[dst], back);
        if (backward)
            live(&p->diffs[diff_root_of(p, node->output)], back);
        for (int k = 0; k < node->num_inputs; k++) {
            int src = root_of(p, node->inputs[k]);
            live(&p->values[src], i);
            if (backward && op->backward_reads_src)
                live(&p->values[src], back);
            if (run->nodes[i].mode[k] != HPCT_RUN_DIFF_NONE) {
                hpct_run_plan_item *diff = &p->diffs[diff_root_of(p, src)];
                diff->bytes = tensor_bytes(p, src); /* equal for all that share it */
                live(diff, back);
            }
            if (run->nodes[i].mode[k] == HPCT_RUN_DIFF_ADD_AFTER) {
                p->parts[i].bytes = tensor_bytes(p, src);
                live(&p->parts[i], back);
            }
        }
        p->workspaces[i].bytes = op->workspace_bytes;
        live(&p->workspaces[i], i);
        live(&p->workspaces[i], backward ? back : i);
    }
    find_link_lifetimes(p);
    find_border_lifetimes(p);
    int output = root_of(p, model->output), loss = root_of(p, run->loss.tensor);
    live(&p->values[output], p->end);
    live(&p->values[loss], num);
    if (run->training && loss != root_of(p, 0)) {
        p->diffs[loss].bytes = tensor_bytes(p, loss);
        live(&p->diffs[loss], num);
    }
    p->values[root_of(p, 0)].bytes = 0; /* the input has its own memory */
}

static float *value_at(const placing *p, int tensor)
{
    int root = root_of(p, tensor);
    if (root == root_of(p, 0))
        return p->run->input.src;
    return (float *) (void *) (p->run->plan.block + p->values[root].offset);
}

static float *diff_at(const placing *p, int tensor)
{
    const hpct_run_plan_item *item = &p->diffs[diff_root_of(p, tensor)];
    return item->bytes == 0 ? NULL : (float *) (void *) (p->run->plan.block + item->offset);
}

static hpct_status note_offsets(const placing *p)
{
    hpct_run *run = p->run;
    size_t num = (size_t) p->model->num_tensors;
    free(run->plan.value_offsets);
    run->plan.value_offsets = calloc(2 * num, sizeof *run->plan.value_offsets);
    if (run->plan.value_offsets == NULL)
        return hpct_fail_memory(2 * num * sizeof *run->plan.value_offsets);
    run->plan.diff_offsets = run->plan.value_offsets + num;
    for (size_t t = 0; t < num; t++) {
        run->plan.value_offsets[t] = p->values[root_of(p, (int) t)].offset;
        run->plan.diff_offsets[t] = p->diffs[diff_root_of(p, (int) t)].offset;
    }
    return HPCT_OK;
}

static const float *floats_at(const void *memory, size_t bytes)
{
    return (const float *) (const void *) ((const char *) memory + bytes);
}

static void set_link_pointers(const placing *p, const hpct_run_link *link)
{
    const hpct_graph_node *from = &p->model->nodes[link->from], *to = &p->model->nodes[link->to];
    hpct_run_node *maker = &p->run->nodes[link->from], *reader = &p->run->nodes[link->to];
    switch (link->fusion) {
    case HPCT_BACKEND_FUSION_POOL:
        break;
    case HPCT_BACKEND_FUSION_BIAS:
        reader->bias = hpct_run_param(p->model, p->run, from->first_param + HPCT_OP_BIAS);
        break;
    case HPCT_BACKEND_FUSION_ADD_NORM:
        reader->src[link->input] = value_at(p, from->inputs[0]);
        reader->norms[link->input] = maker->workspace;
        if (reader->op->leaves_norm_sums)
            maker->norm_sums = floats_at(reader->workspace, reader->op->norm_sums[link->input]);
        break;
    case HPCT_BACKEND_FUSION_SUM:
        maker->dst = reader->dst;
        maker->src[1] = value_at(p, to->inputs[1 - link->input]);
        break;
    }
}

static void set_pointers(const placing *p)
{
    hpct_run *run = p->run;
    for (int i = 0; i < p->model->num_nodes; i++) {
        const hpct_graph_node *node = &p->model->nodes[i];
        hpct_run_node *placed = &run->nodes[i];
        placed->dst = value_at(p, node->output);
        placed->diff_dst = placed->backward ? diff_at(p, node->output) : NULL;
        placed->workspace = run->plan.block + p->workspaces[i].offset;
        for (int k = 0; k < node->num_inputs; k++) {
            placed->src[k] = value_at(p, node->inputs[k]);
            placed->add[k] = placed->mode[k] == HPCT_RUN_DIFF_ADD;
            if (placed->mode[k] != HPCT_RUN_DIFF_NONE)
                placed->diff_src[k] = diff_at(p, node->inputs[k]);
            if (placed->mode[k] == HPCT_RUN_DIFF_ADD_AFTER) {
                placed->add_after = placed->diff_src[k];
                placed->diff_src[k] = (float *) (void *) (run->plan.block + p->parts[i].offset);
            }
        }
    }
    for (int i = 0; i < run->plan.num_links; i++)
        set_link_pointers(p, &run->plan.links[i]);
    run->output = value_at(p, p->model->output);
    run->loss.src = value_at(p, run->loss.tensor);
    run->loss.diff = diff_at(p, run->loss.tensor);
}

void hpct_run_set_input(const hpct_model *model, hpct_run *run, float *input)
{
    int root = hpct_run_root(model, run, 0);
    run->input.src = input;
    for (int i = 0; i < model->num_nodes; i++) {
        const hpct_graph_node *node = &model->nodes[i];
        if (hpct_run_root(model, run, node->output) == root)
            run->nodes[i].dst = input;
        for (int k = 0; k < node->num_inputs; k++) {
            if (hpct_run_root(model, run, node->inputs[k]) == root)
                run->nodes[i].src[k] = input;
        }
    }
    if (hpct_run_root(model, run, model->output) == root)
        run->output = input;
    if (hpct_run_root(model, run, run->loss.tensor) == root)
        run->loss.src = input;
}

/* Address at the same offset in `to`; pointers outside run->plan.block are returned unchanged. */
static void *moved(const hpct_run *run, char *to, const void *at)
{
    uintptr_t offset = (uintptr_t) at - (uintptr_t) run->plan.block;
    return at != NULL && offset < run->plan.block_bytes ? to + offset : (void *) (uintptr_t) at;
}

void hpct_run_move(hpct_run *run, char *to)
{
    for (int i = 0; i < run->num_nodes; i++) {
        hpct_run_node *node = &run->nodes[i];
        for (int k = 0; k < HPCT_GRAPH_NODE_MAX_INPUTS; k++) {
            node->src[k] = moved(run, to, node->src[k]);
            node->norms[k] = moved(run, to, node->norms[k]);
            node->diff_src[k] = moved(run, to, node->diff_src[k]);
        }
        node->norm_sums = moved(run, to, node->norm_sums);
        node->add_after = moved(run, to, node->add_after);
        node->dst = moved(run, to, node->dst);
        node->diff_dst = moved(run, to, node->diff_dst);
        node->workspace = moved(run, to, node->workspace);
    }
    run->output = moved(run, to, run->output);
    run->loss.src = moved(run, to, run->loss.src);
    run->loss.diff = moved(run, to, run->loss.diff);
    run->plan.block = to;
}

/* Time of peak memory; *most: its bytes. */
static int find_peak(const placing *p, size_t *most)
{
    int peak = 0;
    *most = 0;
    for (int time = 0; time <= p->end; time++) {
        size_t bytes = 0;
        for (int i = 0; i < p->num_items; i++) {
            if (p->items[i].first <= time && time <= p->items[i].last)
                bytes += p->items[i].bytes;
        }
        if (bytes > *most) {
            *most = bytes;
            peak = time;
        }
    }
    return peak;
}

/* Times as in find_lifetimes: forward, loss, backward. */
static void name_peak(const placing *p, hpct_run_memory_peak *out)
{
    const hpct_model *model = p->model;
    int num = model->num_nodes, time = find_peak(p, &out->bytes);
    int node = time < num ? time : 2 * num - time;
    out->backward = time > num;
    out->layer =
        node >= 0 && node < num ? model->layers[model->nodes[node].layer].name : "the loss";
}

static hpct_status take_block(const placing *p)
{
    hpct_run *run = p->run;
    hpct_run_memory_peak peak;
    run->plan.block = run->backend->allocate(run->plan.block_bytes);
    if (run->plan.block != NULL)
        return HPCT_OK;
    name_peak(p, &peak);
    return hpct_backend_memory_fail(run->backend, run->plan.block_bytes,
                                    "activations, most of them in %s, layer %s",
                                    peak.backward ? "backward" : "forward", peak.layer);
}

hpct_status hpct_run_place(const hpct_model *model, hpct_run *run, hpct_run_memory_plan *plan)
{
    placing p = {.model = model, .run = run, .end = 2 * model->num_nodes + 1};
    p.num_items = 2 * (model->num_tensors + model->num_nodes);
    p.items = calloc((size_t) p.num_items, sizeof *p.items);
    p.diff_root = calloc((size_t) model->num_tensors, sizeof *p.diff_root);
    hpct_status status = HPCT_OK;
    if (p.items == NULL || p.diff_root == NULL)
        status = hpct_fail_memory((size_t) p.num_items * sizeof *p.items);
    if (status == HPCT_OK)
        status = hpct_run_flow(model, run, p.diff_root);
    if (status != HPCT_OK)
        goto end;
    p.values = p.items;
    p.diffs = p.values + model->num_tensors;
    p.workspaces = p.diffs + model->num_tensors;
    p.parts = p.workspaces + model->num_nodes;
    for (int i = 0; i < p.num_items; i++)
        p.items[i].first = p.end;
    find_lifetimes(&p);
    run->plan.block_bytes = hpct_plan(p.items, p.num_items);
    status = note_offsets(&p);
    if (status != HPCT_OK)
        goto end;
    if (plan != NULL) {
        plan->activations = run->plan.block_bytes;
        name_peak(&p, &plan->peak);
        goto end;
    }
    status = take_block(&p);
    if (status != HPCT_OK)
        goto end;
    set_pointers(&p);
end:
    free(p.items);
    free(p.diff_root);
    return status;
}
