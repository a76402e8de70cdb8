/* Gradients through branches: which contribution to a sum is written and which are added, and where
 * an Add needs no copy because its inputs' gradients share its output's memory. */
#include "nn/plan/run.h"

#include "base/status.h"

#include <limits.h>
#include <stdlib.h>

/* Live range of a root tensor's gradient in the plan's times (nn/plan/run.h): first write, last
 * change, last read. */
typedef struct live_range {
    int birth, first_change, last_change, last_use;
} live_range;

static void change(live_range *s, int time)
{
    s->first_change = time < s->first_change ? time : s->first_change;
    s->last_change = time > s->last_change ? time : s->last_change;
}

/* Whether changing `a` corrupts `b` in shared memory. A change at b's first write does not: b is
 * initialized from that memory then. */
static bool spoils(const live_range *a, const live_range *b)
{
    return a->first_change <= b->last_use && a->last_change > b->birth;
}

/* The first reader in backward order writes, others add. */
static void find_live_ranges(const hpct_model *model, hpct_run *run, live_range *live_ranges)
{
    for (int t = 0; t < model->num_tensors; t++)
        live_ranges[t] = (live_range){
            .birth = INT_MAX, .first_change = INT_MAX, .last_change = -1, .last_use = -1};
    live_ranges[hpct_run_root(model, run, run->loss.tensor)].birth = model->num_nodes;
    for (int t = 0; t < model->num_tensors; t++) {
        if (model->tensors[t].stage_output) /* a later stage writes its gradient */
            live_ranges[t].birth = model->num_nodes;
        if (model->tensors[t].stage_input) /* an earlier stage continues backward with it */
            live_ranges[t].last_use = 2 * model->num_nodes + 1;
    }
    for (int i = model->num_nodes - 1; i >= 0; i--) {
        const hpct_graph_node *node = &model->nodes[i];
        hpct_run_node *built = &run->nodes[i];
        int now = 2 * model->num_nodes - i;
        if (!built->backward || built->fused_away)
            continue;
        live_range *dst = &live_ranges[hpct_run_root(model, run, node->output)];
        dst->last_use = now > dst->last_use ? now : dst->last_use;
        if (!built->op->backward_keeps_diff_dst)
            change(dst, now);
        for (int k = 0; k < node->num_inputs; k++) {
            int root = hpct_run_root(model, run, node->inputs[k]);
            live_range *src = &live_ranges[root];
            if (!run->requires_grad[root])
                continue;
            if (src->birth == INT_MAX) {
                src->birth = now;
                built->mode[k] = HPCT_RUN_DIFF_WRITE;
            } else {
                change(src, now);
                built->mode[k] =
                    built->op->adds_diff_src ? HPCT_RUN_DIFF_ADD : HPCT_RUN_DIFF_ADD_AFTER;
            }
        }
    }
}

bool hpct_run_shares_source(const hpct_model *model, const hpct_run *run, int i)
{
    int root = hpct_run_root(model, run, model->nodes[i].inputs[0]);
    for (int behind = i + 1; behind < model->num_nodes; behind++) {
        for (int k = 0; k < model->nodes[behind].num_inputs; k++) {
            if (hpct_run_root(model, run, model->nodes[behind].inputs[k]) == root)
                return true;
        }
    }
    return false;
}

/* Whether the gradient of tensor `t` can share root's memory with those already there. */
static bool can_join(const hpct_model *model, const hpct_run *run, const live_range *live_ranges,
                     const int *diff_root, int t, int root)
{
    for (int other = 0; other < model->num_tensors; other++) {
        if (diff_root[other] == root && hpct_run_root(model, run, other) == other &&
            (spoils(&live_ranges[t], &live_ranges[other]) ||
             spoils(&live_ranges[other], &live_ranges[t])))
            return false;
    }
    return true;
}

hpct_status hpct_run_flow(const hpct_model *model, hpct_run *run, int *diff_root)
{
    live_range *live_ranges = calloc((size_t) model->num_tensors, sizeof *live_ranges);
    if (live_ranges == NULL)
        return hpct_fail_memory((size_t) model->num_tensors * sizeof *live_ranges);
    find_live_ranges(model, run, live_ranges);
    for (int t = 0; t < model->num_tensors; t++)
        diff_root[t] = t;
    for (int i = model->num_nodes - 1; i >= 0; i--) {
        const hpct_graph_node *node = &model->nodes[i];
        hpct_run_node *built = &run->nodes[i];
        int root = diff_root[hpct_run_root(model, run, node->output)];
        for (int k = 0; k < node->num_inputs && built->op->passes_diff_dst; k++) {
            int src = hpct_run_root(model, run, node->inputs[k]);
            if (built->mode[k] != HPCT_RUN_DIFF_WRITE ||
                !can_join(model, run, live_ranges, diff_root, src, root))
                continue;
            built->mode[k] = HPCT_RUN_DIFF_PASS;
            diff_root[src] = root;
        }
    }
    free(live_ranges);
    return HPCT_OK;
}
