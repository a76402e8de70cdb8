/* Finds the cuts: bytes that cross each position, seconds of each operation, and a search over
 * both. */
#include "nn/split/cut.h"

#include "base/status.h"
#include "nn/graph/cost.h"
#include "nn/plan/run.h"

#include <math.h>
#include <stdlib.h>

#define FLOPS_PER_SECOND 5e10
#define MEMORY_FLOATS_PER_SECOND 5e9
#define WIRE_FLOATS_PER_SECOND (1.25e8 / sizeof(float))
#define TOLERANCE 1.05

static int root_of(const hpct_model *model, int tensor)
{
    return model->tensors[tensor].root;
}

int hpct_split_cut_most(const hpct_model *model)
{
    return model->num_nodes;
}

/* As make_ops in nn/plan/build.c. */
void hpct_split_cut_requires_grad(const hpct_model *model, bool *requires_grad)
{
    for (int t = 0; t < model->num_tensors; t++)
        requires_grad[t] = false;
    for (int i = 0; i < model->num_nodes; i++) {
        const hpct_graph_node *node = &model->nodes[i];
        bool any = false;
        for (int k = 0; k < node->num_params; k++)
            any = any || !model->params[node->first_param + k].state;
        for (int k = 0; k < node->num_inputs; k++)
            any = any || requires_grad[root_of(model, node->inputs[k])];
        requires_grad[root_of(model, node->output)] = any;
    }
}

static bool is_read_from(const hpct_model *model, int root, int node)
{
    for (int i = node; i < model->num_nodes; i++) {
        for (int k = 0; k < model->nodes[i].num_inputs; k++) {
            if (root_of(model, model->nodes[i].inputs[k]) == root)
                return true;
        }
    }
    return false;
}

int hpct_split_cut_tensors(const hpct_model *model, int node, int *tensors)
{
    int num = 0;
    for (int i = 0; i < node; i++) {
        int root = root_of(model, model->nodes[i].output);
        if (root != root_of(model, 0) && is_read_from(model, root, node))
            tensors[num++] = root;
    }
    return num;
}

/* ---- input of the search ---- */

typedef struct terrain {
    int nodes;
    double *before;             /* [nodes + 1] seconds of all operations before this one */
    size_t *values, *gradients; /* [nodes] floats that cross before this one */
} terrain;

/* Backward costs one forward for each of the two gradients. */
static double node_seconds(const hpct_model *model, int i, const bool *requires_grad)
{
    const hpct_graph_node *node = &model->nodes[i];
    double floats = (double) hpct_op_dst_floats(&node->spec), times = 1;
    for (int k = 0; k < node->num_inputs; k++)
        floats += (double) hpct_op_src_floats(&node->spec, k);
    times += requires_grad[root_of(model, node->output)];
    times += requires_grad[root_of(model, node->inputs[0])];
    return times *
           (hpct_op_flops(&node->spec) / FLOPS_PER_SECOND + floats / MEMORY_FLOATS_PER_SECOND);
}

static void survey(terrain *t, const hpct_model *model, int *tensors, bool *requires_grad)
{
    hpct_split_cut_requires_grad(model, requires_grad);
    for (int i = 0; i < t->nodes; i++) {
        int num = hpct_split_cut_tensors(model, i, tensors);
        t->before[i + 1] = t->before[i] + node_seconds(model, i, requires_grad);
        for (int k = 0; k < num; k++) {
            size_t floats = hpct_graph_shape_count(&model->tensors[tensors[k]].shape);
            t->values[i] += floats;
            t->gradients[i] += requires_grad[tensors[k]] ? floats : 0;
        }
    }
}

static void terrain_free(terrain *t)
{
    free(t->before);
    free(t->values);
}

static hpct_status terrain_make(terrain *t, const hpct_model *model)
{
    size_t nodes = (size_t) model->num_nodes, tensors = (size_t) model->num_tensors;
    *t = (terrain){.nodes = model->num_nodes,
                   .before = calloc(nodes + 1, sizeof *t->before),
                   .values = calloc(2 * nodes, sizeof *t->values)};
    t->gradients = t->values + nodes;
    int *crossing = calloc(tensors, sizeof *crossing);
    bool *requires_grad = calloc(tensors, sizeof *requires_grad), all = false;
    if (t->before != NULL && t->values != NULL && crossing != NULL && requires_grad != NULL) {
        survey(t, model, crossing, requires_grad);
        all = true;
    }
    free(crossing);
    free(requires_grad);
    if (all)
        return HPCT_OK;
    terrain_free(t);
    return hpct_fail_memory(nodes * sizeof *t->before);
}

/* Links are full duplex. */
static double link_seconds(const terrain *t, int node)
{
    size_t floats = t->values[node] > t->gradients[node] ? t->values[node] : t->gradients[node];
    return (double) floats / WIRE_FLOATS_PER_SECOND;
}

/* The slower of a stage and the link into it. */
static double stage_seconds(const terrain *t, int first, int end)
{
    return fmax(t->before[end] - t->before[first], link_seconds(t, first));
}

/* ---- the search ---- */

/* best[stages][end]: cost of cutting the operations before `end` into this many stages; from[...]:
 * first operation of the last of them. */
typedef struct search {
    double *best;
    int *from;
} search;

static size_t place(const terrain *t, int stages, int end)
{
    return (size_t) stages * (size_t) (t->nodes + 1) + (size_t) end;
}

static void improve(search *s, size_t at, double value, int first)
{
    if (value < s->best[at]) {
        s->best[at] = value;
        s->from[at] = first;
    }
}

/* limit INFINITY: minimizes the slowest stage. Else minimizes the bytes, with no stage slower than
 * limit. */
static void find(const terrain *t, search *s, int stages, double limit)
{
    bool bytes = !isinf(limit);
    for (size_t i = 0; i < place(t, stages + 1, 0); i++)
        s->best[i] = INFINITY;
    s->best[place(t, 0, 0)] = 0;
    for (int stage = 1; stage <= stages; stage++) {
        for (int end = stage; end <= t->nodes; end++) {
            for (int first = stage - 1; first < end; first++) {
                double before = s->best[place(t, stage - 1, first)],
                       seconds = stage_seconds(t, first, end);
                if (isinf(before) || seconds > limit)
                    continue;
                double crossing = (double) (t->values[first] + t->gradients[first]);
                improve(s, place(t, stage, end), bytes ? before + crossing : fmax(before, seconds),
                        first);
            }
        }
    }
}

static void describe(hpct_split_cut *out, const terrain *t, const search *s, int stages)
{
    *out = (hpct_split_cut){.stages = stages};
    out->first[stages] = t->nodes;
    for (int stage = stages; stage > 0; stage--)
        out->first[stage - 1] = s->from[place(t, stage, out->first[stage])];
    for (int stage = 0; stage < stages; stage++) {
        int first = out->first[stage], end = out->first[stage + 1];
        out->values[stage] = t->values[first];
        out->gradients[stage] = t->gradients[first];
        out->seconds[stage] = t->before[end] - t->before[first];
        out->slowest = fmax(out->slowest, stage_seconds(t, first, end));
    }
}

hpct_status hpct_split_cut_find(hpct_split_cut *out, const hpct_model *model, int stages)
{
    terrain t;
    if (stages < 1 || stages > HPCT_SPLIT_MAX_STAGES || stages > model->num_nodes)
        return hpct_fail(HPCT_ERR_CONFIG,
                         "model %s cannot be cut into %d stages: it has %d operations, and %d "
                         "stages are the most",
                         model->name, stages, model->num_nodes, HPCT_SPLIT_MAX_STAGES);
    HPCT_TRY(terrain_make(&t, model));
    hpct_status status = HPCT_OK;
    size_t places = place(&t, stages + 1, 0);
    search s = {calloc(places, sizeof *s.best), calloc(places, sizeof *s.from)};
    if (s.best != NULL && s.from != NULL) {
        find(&t, &s, stages, INFINITY);
        find(&t, &s, stages, TOLERANCE * s.best[place(&t, stages, t.nodes)]);
        describe(out, &t, &s, stages);
    } else {
        status = hpct_fail_memory(places * sizeof *s.best);
    }
    free(s.best);
    free(s.from);
    terrain_free(&t);
    return status;
}
