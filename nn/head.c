/* Where a model has a head, and what its call is. */
#include "nn/head.h"

/* Nodes that read what `node` makes, the last of them, and whether it reads that as it is. */
static int count_readers(const hpct_model *model, const hpct_run *run, int node, int *reader,
                         bool *plain)
{
    int made = model->nodes[node].output, root = hpct_run_root(model, run, made), count = 0;
    *reader = -1;
    for (int i = 0; i < model->num_nodes; i++) {
        for (int k = 0; k < model->nodes[i].num_inputs; k++) {
            if (hpct_run_root(model, run, model->nodes[i].inputs[k]) != root)
                continue;
            count++;
            *reader = i;
            *plain = model->nodes[i].inputs[k] == made;
        }
    }
    return count;
}

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
    int reader;
    bool plain;
    return spec->kind == HPCT_OP_DENSE && spec->dense.rows == 1 && run->nodes[node].backward &&
           count_readers(model, run, node, &reader, &plain) == 1 && reader == head && plain;
}

/* An operation that makes the loss, too, and whose result nobody reads but what the loss leaves
 * out. */
static bool is_head(const hpct_model *model, const hpct_run *run, int node, int skipped)
{
    int reader;
    bool plain;
    int readers = count_readers(model, run, node, &reader, &plain);
    return run->nodes[node].backward && run->nodes[node].op->takes_loss && reader == skipped &&
           readers == (skipped >= 0);
}

void hpct_run_find_head(const hpct_model *model, hpct_run *run)
{
    int tensor, skipped;
    hpct_loss_form form;
    hpct_run_find_loss(model, &tensor, &form, &skipped);
    int head = maker_of(model, run, tensor);
    if (!run->training || run->backend->head == NULL || model->inner || model->share.parts > 0 ||
        head < 0 || !is_head(model, run, head, skipped))
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
