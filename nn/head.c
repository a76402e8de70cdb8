/* Where a model has a head, and what its call is. */
#include "nn/head.h"

static int maker_of(const hpct_model *model, const hpct_run *run, int tensor)
{
    for (int i = 0; i < model->num_nodes; i++) {
        if (hpct_run_root(model, run, model->nodes[i].output) == hpct_run_root(model, run, tensor))
            return i;
    }
    return -1;
}

/* A Dense of which the head can begin the backward: it alone reads what that one makes. */
static bool can_begin(const hpct_model *model, const hpct_run *run, int node, int head)
{
    const hpct_op_spec *spec = &model->nodes[node].spec;
    return spec->kind == HPCT_OP_DENSE && spec->dense.rows == 1 && run->nodes[node].backward &&
           hpct_run_only_reader(model, run, node) == head;
}

/* Whether nobody reads the tensor but the node that the loss leaves out, if there is one. */
static bool is_last(const hpct_model *model, const hpct_run *run, int tensor, int skipped)
{
    for (int i = 0; i < model->num_nodes; i++) {
        for (int k = 0; k < model->nodes[i].num_inputs; k++) {
            if (i != skipped && hpct_run_root(model, run, model->nodes[i].inputs[k]) ==
                                    hpct_run_root(model, run, tensor))
                return false;
        }
    }
    return true;
}

void hpct_run_find_head(const hpct_model *model, hpct_run *run)
{
    int tensor, skipped;
    hpct_loss_form form;
    hpct_run_find_loss(model, &tensor, &form, &skipped);
    int head = maker_of(model, run, tensor);
    if (!run->training || run->backend->head == NULL || model->inner || model->share.parts > 0 ||
        head < 0 || !run->nodes[head].backward || !run->nodes[head].op->takes_loss ||
        !is_last(model, run, tensor, skipped))
        return;
    int before = maker_of(model, run, model->nodes[head].inputs[0]);
    run->head = head + 1;
    run->behind_head = skipped + 1;
    if (before >= 0 && can_begin(model, run, before, head))
        run->before_head = before + 1;
}

hpct_status hpct_run_make_head(const hpct_run *run, const hpct_op_call *call,
                               const hpct_op_call *call_before, const hpct_loss_call *loss)
{
    hpct_head_call head = {.op = run->nodes[run->head - 1].op, .call = call, .loss = loss};
    if (run->before_head > 0) {
        head.before = run->nodes[run->before_head - 1].op;
        head.call_before = call_before;
    }
    return run->backend->head(&head);
}
