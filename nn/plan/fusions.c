/* The fusion rules, as one table. A rule: the kinds of producer and consumer, a condition, the
 * backend query, and the change to the build options of the operations. Nodes are visited in
 * forward order, rules in the order of the table; several may apply to one node. */
#include "nn/plan/fusions.h"

#include "base/progress.h"
#include "base/status.h"
#include "nn/backend/without.h"

#include <stdlib.h>

typedef struct fusing {
    const hpct_model *model;
    hpct_run *run;
    hpct_op_build *builds;
} fusing;

typedef struct rule {
    hpct_backend_fusion fusion;
    hpct_backend_way_out without;
    hpct_op_kind from, to;
    bool shared; /* other nodes and pipeline stages may read the result too; else only `to` does */
    bool (*fits)(const fusing *f, int from, int to);
    bool (*asks)(const fusing *f, hpct_backend_fusion fusion, int from, int to);
    void (*apply)(const fusing *f, int from, int to);
} rule;

/* ---- patterns ---- */

static const hpct_op_spec *spec_of(const fusing *f, int node)
{
    return &f->model->nodes[node].spec;
}

/* The only reader of a node's result, if it reads it unreshaped and the result is neither the
 * model's output nor the loss's source; else -1. */
static int only_reader(const fusing *f, int node)
{
    const hpct_model *model = f->model;
    int made = model->nodes[node].output, root = model->tensors[made].root, reader = -1, count = 0;
    for (int i = 0; i < model->num_nodes; i++) {
        for (int k = 0; k < model->nodes[i].num_inputs; k++) {
            if (model->tensors[model->nodes[i].inputs[k]].root == root) {
                reader = i;
                count++;
            }
        }
    }
    bool kept = root == model->tensors[model->output].root ||
                root == model->tensors[f->run->loss.tensor].root;
    if (count != 1 || kept)
        return -1;
    for (int k = 0; k < model->nodes[reader].num_inputs; k++) {
        if (model->nodes[reader].inputs[k] == made)
            return reader;
    }
    return -1;
}

static int input_of(const fusing *f, int from, int to)
{
    int input = 0;
    while (f->model->nodes[to].inputs[input] != f->model->nodes[from].output)
        input++;
    return input;
}

static bool is_linked(const fusing *f, hpct_backend_fusion fusion, int to, int input)
{
    for (int i = 0; i < f->run->plan.num_links; i++) {
        const hpct_run_link *link = &f->run->plan.links[i];
        if (link->fusion == fusion && link->to == to && link->input == input)
            return true;
    }
    return false;
}

/* Whether `tensor` is the result of a node before `node`; false for the model's input. */
static bool is_there(const fusing *f, int tensor, int node)
{
    int root = hpct_run_root(f->model, f->run, tensor);
    for (int i = 0; i < node && root != hpct_run_root(f->model, f->run, 0); i++) {
        if (hpct_run_root(f->model, f->run, f->model->nodes[i].output) == root)
            return true;
    }
    return false;
}

static bool always(const fusing *f, int from, int to)
{
    (void) f, (void) from, (void) to;
    return true;
}

static bool is_plain_norm(const fusing *f, int node)
{
    const hpct_op_spec *spec = spec_of(f, node);
    return spec->kind == HPCT_OP_BATCH_NORM && spec->norm.groups < 2 &&
           !(spec->norm.frozen && f->run->training);
}

/* The mean that the normalization subtracts cancels the bias. */
static bool bias_fits(const fusing *f, int conv, int norm)
{
    return !spec_of(f, conv)->relu && !spec_of(f, conv)->no_bias && is_plain_norm(f, norm);
}

/* Not on the model's input, whose address may change. */
static bool norm_fits(const fusing *f, int norm)
{
    int source = f->model->nodes[norm].inputs[0];
    return is_plain_norm(f, norm) &&
           hpct_run_root(f->model, f->run, source) != hpct_run_root(f->model, f->run, 0);
}

static bool add_norm_fits(const fusing *f, int norm, int add)
{
    return norm_fits(f, norm) && !spec_of(f, norm)->relu && f->model->nodes[add].num_inputs == 2;
}

/* The ADD's other operand is computed before the convolution. */
static bool sum_fits(const fusing *f, int conv, int add)
{
    const hpct_graph_node *node = &f->model->nodes[add];
    int other = 1 - input_of(f, conv, add);
    return !spec_of(f, conv)->relu && node->num_inputs == 2 &&
           !is_linked(f, HPCT_BACKEND_FUSION_ADD_NORM, add, other) &&
           is_there(f, node->inputs[other], conv);
}

/* ---- backend queries ---- */

static bool ask_from(const fusing *f, hpct_backend_fusion fusion, int from, int to)
{
    return f->run->backend->fuses(fusion, spec_of(f, from), &f->builds[from], spec_of(f, to));
}

/* ---- changes ---- */

static void do_pool(const fusing *f, int conv, int pool)
{
    const hpct_model *model = f->model;
    f->builds[conv].pool = &model->nodes[pool].spec.window;
    f->run->nodes[pool].fused_away = true;
    f->run->plan.root[model->tensors[model->nodes[conv].output].root] =
        model->tensors[model->nodes[pool].output].root;
}

static void leave_bias(const fusing *f, int conv, int norm)
{
    (void) norm;
    f->builds[conv].leaves_bias = true;
}

static void leave_norm_to_add(const fusing *f, int norm, int add)
{
    f->builds[norm].fused_downstream = true;
    f->builds[add].normed = true;
}

static void do_sum(const fusing *f, int conv, int add)
{
    f->builds[conv].adds = true;
    f->builds[conv].adds_relu = spec_of(f, add)->relu;
    f->run->nodes[add].fused_forward = true;
}

static const rule rules[] = {
    {HPCT_BACKEND_FUSION_POOL, HPCT_BACKEND_WITHOUT_POOL, HPCT_OP_CONV2D, HPCT_OP_MAX_POOL2D, false,
     always, ask_from, do_pool},
    {HPCT_BACKEND_FUSION_BIAS, HPCT_BACKEND_WITHOUT_BIAS, HPCT_OP_CONV2D, HPCT_OP_BATCH_NORM, false,
     bias_fits, ask_from, leave_bias},
    {HPCT_BACKEND_FUSION_ADD_NORM, HPCT_BACKEND_WITHOUT_ADD_NORM, HPCT_OP_BATCH_NORM, HPCT_OP_ADD,
     false, add_norm_fits, ask_from, leave_norm_to_add},
    {HPCT_BACKEND_FUSION_SUM, HPCT_BACKEND_WITHOUT_SUM, HPCT_OP_CONV2D, HPCT_OP_ADD, false,
     sum_fits, ask_from, do_sum},
};
#define NUM_RULES ((int) (sizeof rules / sizeof *rules))

/* ---- search ---- */

static bool reads(const hpct_graph_node *node, int tensor)
{
    for (int k = 0; k < node->num_inputs; k++) {
        if (node->inputs[k] == tensor)
            return true;
    }
    return false;
}

/* Whether the rule applies to both nodes. */
static bool holds(const fusing *f, const rule *r, int from, int to)
{
    const hpct_graph_node *node = &f->model->nodes[from], *next = &f->model->nodes[to];
    return next->spec.kind == r->to && next->local == node->local && reads(next, node->output) &&
           r->fits(f, from, to) && r->asks(f, r->fusion, from, to);
}

/* The node that the rule fuses it with, or -1. */
static int partner(const fusing *f, const rule *r, int node)
{
    if (!r->shared) {
        bool stage_output = f->model->tensors[f->model->nodes[node].output].stage_output;
        int to = stage_output ? -1 : only_reader(f, node);
        return to >= 0 && holds(f, r, node, to) ? to : -1;
    }
    for (int to = node + 1; to < f->model->num_nodes; to++) {
        if (holds(f, r, node, to))
            return to;
    }
    return -1;
}

hpct_status hpct_run_fuse(const hpct_model *model, hpct_run *run, hpct_op_build *builds)
{
    fusing f = {model, run, builds};
    size_t most = (size_t) model->num_nodes * NUM_RULES;
    if (run->backend->fuses == NULL)
        return HPCT_OK;
    run->plan.links = calloc(most + 1, sizeof *run->plan.links);
    if (run->plan.links == NULL)
        return hpct_fail_memory((most + 1) * sizeof *run->plan.links);
    for (int i = 0; i < model->num_nodes; i++) {
        hpct_count_progress();
        for (int r = 0; r < NUM_RULES; r++) {
            int to = rules[r].from == model->nodes[i].spec.kind &&
                             !hpct_backend_without(rules[r].without)
                         ? partner(&f, &rules[r], i)
                         : -1;
            if (to < 0)
                continue;
            rules[r].apply(&f, i, to);
            run->plan.links[run->plan.num_links++] =
                (hpct_run_link){rules[r].fusion, i, to, input_of(&f, i, to)};
        }
    }
    return HPCT_OK;
}
