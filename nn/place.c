/* Where every activation, gradient and workspace lies: lifetimes from the order of the step, then
 * nn/plan.h, then pointers. */
#include "nn/plan.h"
#include "nn/run.h"

#include "base/status.h"

#include <stdint.h>
#include <stdlib.h>

/* Items of the plan: one per tensor for its values, one per tensor for its gradient, one per node
 * for its workspace, and one per node for a gradient that is yet to be added. Unused ones have no
 * bytes. */
typedef struct placing {
    const hpct_model *model;
    hpct_run *run;
    hpct_plan_item *values, *diffs, *workspaces, *parts, *items;
    int num_items;
    int *diff_root; /* hpct_run_flow */
    int end;        /* later than everything */
} placing;

static int root_of(const placing *p, int tensor)
{
    return hpct_run_root(p->model, p->run, tensor);
}

static int diff_root_of(const placing *p, int tensor)
{
    return p->diff_root[root_of(p, tensor)];
}

static void live(hpct_plan_item *item, int time)
{
    if (time < item->first)
        item->first = time;
    if (time > item->last)
        item->last = time;
}

static size_t tensor_bytes(const placing *p, int tensor)
{
    const hpct_tensor *t = &p->model->tensors[tensor];
    int samples = t->own ? p->run->largest_own : p->run->largest_batch;
    return hpct_shape_count(&t->shape) * (size_t) samples * hpct_precision_bytes(p->run->values);
}

/* Of a stage: what it is given lies there before the first operation, and its gradient until after
 * the last; what is taken of it lies there until the loss, when its gradient comes. */
static void find_border_lifetimes(placing *p)
{
    const hpct_model *model = p->model;
    for (int t = 0; t < model->num_tensors; t++) {
        const hpct_tensor *tensor = &model->tensors[t];
        hpct_plan_item *diff = &p->diffs[p->diff_root[t]];
        if (!tensor->given && !tensor->taken)
            continue;
        p->values[t].bytes = tensor_bytes(p, t);
        if (tensor->given)
            live(&p->values[t], 0);
        if (tensor->taken)
            live(&p->values[t], model->num_nodes);
        if (!p->run->learns[t])
            continue;
        diff->bytes = tensor_bytes(p, t);
        if (tensor->given)
            live(diff, p->end);
        if (tensor->taken)
            live(diff, model->num_nodes);
    }
}

/* The tensor that a node's forward writes, and the one besides its inputs that it reads, which
 * stays until the Add that reads it, too; else -1. */
static int written_by(const placing *p, int i, int *other)
{
    const hpct_node *node = &p->model->nodes[i];
    int sum = p->run->nodes[i].sum_node - 1;
    *other = -1;
    if (sum < 0)
        return node->output;
    const int *inputs = p->model->nodes[sum].inputs;
    *other = inputs[inputs[0] == node->output ? 1 : 0];
    return p->model->nodes[sum].output;
}

static void find_lifetimes(placing *p)
{
    const hpct_model *model = p->model;
    const hpct_run *run = p->run;
    int num = model->num_nodes;
    for (int i = 0; i < num; i++) {
        const hpct_node *node = &model->nodes[i];
        const hpct_op *op = run->nodes[i].op;
        if (run->nodes[i].merged)
            continue;
        bool backward = run->nodes[i].backward;
        int back = 2 * num - i, lingers = back + (op->lingers ? HPCT_LINGERS : 0);
        int other, dst = root_of(p, written_by(p, i, &other));
        p->values[dst].bytes = op->build.deferred ? 0 : tensor_bytes(p, dst);
        live(&p->values[dst], i);
        if (run->nodes[i].moments_node > 0)
            live(&p->workspaces[run->nodes[i].moments_node - 1], i);
        if (backward && op->backward_reads_dst)
            live(&p->values[dst], back);
        if (backward)
            live(&p->diffs[diff_root_of(p, node->output)], lingers);
        for (int k = 0; k < node->num_inputs; k++) {
            int src = root_of(p, node->inputs[k]), norm = run->nodes[i].norm_node[k] - 1;
            int read = norm < 0 ? src : root_of(p, model->nodes[norm].inputs[0]);
            live(&p->values[read], i);
            if (norm >= 0)
                live(&p->workspaces[norm], i);
            if (norm >= 0 && op->leaves_norm_sums)
                live(&p->workspaces[i], 2 * num - norm);
            if (backward && op->backward_reads_src)
                live(&p->values[read], lingers);
            if (run->nodes[i].mode[k] != HPCT_DIFF_NONE) {
                hpct_plan_item *diff = &p->diffs[diff_root_of(p, src)];
                diff->bytes = tensor_bytes(p, src); /* the same size for all that share it */
                live(diff, back);
                if (i + 1 == run->head) /* with the loss */
                    live(diff, num);
            }
            if (run->nodes[i].mode[k] == HPCT_DIFF_ADD_AFTER) {
                p->parts[i].bytes = tensor_bytes(p, src);
                live(&p->parts[i], back);
            }
        }
        p->workspaces[i].bytes = op->workspace_bytes;
        live(&p->workspaces[i], i);
        live(&p->workspaces[i], run->training ? back : i);
    }
    find_border_lifetimes(p);
    int output = root_of(p, model->output), loss = root_of(p, run->loss_tensor);
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
        return p->run->input;
    return (float *) (void *) (p->run->block + p->values[root].offset);
}

static float *diff_at(const placing *p, int tensor)
{
    const hpct_plan_item *item = &p->diffs[diff_root_of(p, tensor)];
    return item->bytes == 0 ? NULL : (float *) (void *) (p->run->block + item->offset);
}

static hpct_status note_offsets(const placing *p)
{
    hpct_run *run = p->run;
    size_t num = (size_t) p->model->num_tensors;
    free(run->value_offsets);
    run->value_offsets = calloc(2 * num, sizeof *run->value_offsets);
    if (run->value_offsets == NULL)
        return hpct_fail_memory(2 * num * sizeof *run->value_offsets);
    run->diff_offsets = run->value_offsets + num;
    for (size_t t = 0; t < num; t++) {
        run->value_offsets[t] = p->values[root_of(p, (int) t)].offset;
        run->diff_offsets[t] = p->diffs[diff_root_of(p, (int) t)].offset;
    }
    return HPCT_OK;
}

static void set_pointers(const placing *p)
{
    hpct_run *run = p->run;
    for (int i = 0; i < p->model->num_nodes; i++) {
        const hpct_node *node = &p->model->nodes[i];
        hpct_run_node *placed = &run->nodes[i];
        int other, dst = written_by(p, i, &other);
        placed->dst = value_at(p, dst);
        placed->diff_dst = placed->backward ? diff_at(p, node->output) : NULL;
        placed->workspace = run->block + p->workspaces[i].offset;
        for (int k = 0; k < node->num_inputs; k++) {
            int norm = placed->norm_node[k] - 1;
            placed->src[k] =
                value_at(p, norm < 0 ? node->inputs[k] : p->model->nodes[norm].inputs[0]);
            placed->norms[k] = norm < 0 ? NULL : run->block + p->workspaces[norm].offset;
            if (norm >= 0 && placed->op->leaves_norm_sums)
                run->nodes[norm].norm_sums =
                    (const float *) (const void *) ((const char *) placed->workspace +
                                                    placed->op->norm_sums[k]);
            placed->add[k] = placed->mode[k] == HPCT_DIFF_ADD;
            if (placed->mode[k] != HPCT_DIFF_NONE)
                placed->diff_src[k] = diff_at(p, node->inputs[k]);
            if (placed->mode[k] == HPCT_DIFF_ADD_AFTER) {
                placed->add_after = placed->diff_src[k];
                placed->diff_src[k] = (float *) (void *) (run->block + p->parts[i].offset);
            }
        }
        if (other >= 0)
            placed->src[1] = value_at(p, other);
        int maker = placed->moments_node - 1;
        if (maker >= 0 && run->nodes[maker].op->leaves_moments)
            placed->moments =
                (const float *) (const void *) (run->block + p->workspaces[maker].offset);
    }
    run->output = value_at(p, p->model->output);
    run->loss_src = value_at(p, run->loss_tensor);
    run->loss_diff = diff_at(p, run->loss_tensor);
}

void hpct_run_set_input(const hpct_model *model, hpct_run *run, float *input)
{
    int root = hpct_run_root(model, run, 0);
    run->input = input;
    for (int i = 0; i < model->num_nodes; i++) {
        const hpct_node *node = &model->nodes[i];
        if (hpct_run_root(model, run, node->output) == root)
            run->nodes[i].dst = input;
        for (int k = 0; k < node->num_inputs; k++) {
            if (hpct_run_root(model, run, node->inputs[k]) == root)
                run->nodes[i].src[k] = input;
        }
    }
    if (hpct_run_root(model, run, model->output) == root)
        run->output = input;
    if (hpct_run_root(model, run, run->loss_tensor) == root)
        run->loss_src = input;
}

/* The same place in `to`, of something in run->block; other memory stays. */
static void *moved(const hpct_run *run, char *to, const void *at)
{
    uintptr_t offset = (uintptr_t) at - (uintptr_t) run->block;
    return at != NULL && offset < run->block_bytes ? to + offset : (void *) (uintptr_t) at;
}

void hpct_run_move(hpct_run *run, char *to)
{
    for (int i = 0; i < run->num_nodes; i++) {
        hpct_run_node *node = &run->nodes[i];
        for (int k = 0; k < HPCT_NODE_MAX_INPUTS; k++) {
            node->src[k] = moved(run, to, node->src[k]);
            node->norms[k] = moved(run, to, node->norms[k]);
            node->diff_src[k] = moved(run, to, node->diff_src[k]);
        }
        node->moments = moved(run, to, node->moments);
        node->norm_sums = moved(run, to, node->norm_sums);
        node->add_after = moved(run, to, node->add_after);
        node->dst = moved(run, to, node->dst);
        node->diff_dst = moved(run, to, node->diff_dst);
        node->workspace = moved(run, to, node->workspace);
    }
    run->output = moved(run, to, run->output);
    run->loss_src = moved(run, to, run->loss_src);
    run->loss_diff = moved(run, to, run->loss_diff);
    run->block = to;
}

/* The time at which most is in use. */
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

/* Times are those of find_lifetimes: forward, the loss, backward. */
static void name_peak(const placing *p, hpct_memory_peak *out)
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
    hpct_memory_peak peak;
    run->block = run->backend->allocate(run->block_bytes);
    if (run->block != NULL)
        return HPCT_OK;
    name_peak(p, &peak);
    return hpct_memory_fail(run->backend, run->block_bytes,
                            "activations, most of them in %s, layer %s",
                            peak.backward ? "backward" : "forward", peak.layer);
}

hpct_status hpct_run_place(const hpct_model *model, hpct_run *run, hpct_memory_plan *plan)
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
    run->block_bytes = hpct_plan(p.items, p.num_items);
    if (plan != NULL) {
        plan->activations = run->block_bytes;
        name_peak(&p, &plan->peak);
        goto end;
    }
    status = take_block(&p);
    if (status != HPCT_OK)
        goto end;
    set_pointers(&p);
    status = note_offsets(&p);
end:
    free(p.items);
    free(p.diff_root);
    return status;
}
