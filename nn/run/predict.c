/* Outputs of a batch, and their kind (probabilities, logits). */
#include "nn/plan/run.h"
#include "nn/run/step.h"

#include "base/status.h"

#include <string.h>

/* The node that produces a tensor; NULL if it is the model's input. */
static const hpct_graph_node *maker_of(const hpct_model *model, int tensor)
{
    for (int i = model->num_nodes - 1; i >= 0; i--) {
        if (model->tensors[model->nodes[i].output].root == model->tensors[tensor].root)
            return &model->nodes[i];
    }
    return NULL;
}

/* The operation that produces the outputs; NULL if there is none. */
static const hpct_op_spec *last_of(const hpct_model *model)
{
    const hpct_graph_node *last = maker_of(model, model->output);
    const hpct_graph_node *before = last != NULL ? maker_of(model, last->inputs[0]) : NULL;
    bool selu = before != NULL && before->layer == last->layer &&
                before->spec.kind == HPCT_OP_ELU && last->spec.kind == HPCT_OP_RESCALING;
    return last == NULL ? NULL : selu ? &before->spec : &last->spec;
}

/* Operations without a kernel: of probabilities they make numbers other than logits. */
static bool mixes(hpct_op_kind kind)
{
    return kind == HPCT_OP_DROPOUT || kind == HPCT_OP_ADD || kind == HPCT_OP_CONCATENATE ||
           kind == HPCT_OP_MULTIPLY || kind == HPCT_OP_NORMALIZATION || kind == HPCT_OP_PRELU ||
           kind == HPCT_OP_AVERAGE_POOL2D || kind == HPCT_OP_MAX_POOL2D ||
           kind == HPCT_OP_RESCALING || kind == HPCT_OP_BATCH_NORM || kind == HPCT_OP_GROUP_NORM ||
           kind == HPCT_OP_GAUSSIAN_NOISE;
}

/* Whether softmax or sigmoid lies before the end with nothing but such operations between. */
static bool hides_probabilities(const hpct_model *model)
{
    const hpct_graph_node *node = maker_of(model, model->output);
    while (node != NULL && mixes(node->spec.kind) && !node->spec.relu)
        node = maker_of(model, node->inputs[0]);
    return node != NULL && node != maker_of(model, model->output) &&
           (node->spec.kind == HPCT_OP_SOFTMAX || node->spec.kind == HPCT_OP_SIGMOID);
}

bool hpct_model_ends_in_softmax(const hpct_model *model)
{
    const hpct_op_spec *last = last_of(model);
    return last != NULL && last->kind == HPCT_OP_SOFTMAX;
}

hpct_status hpct_model_own_loss(const hpct_model *model, hpct_loss *loss)
{
    const hpct_op_spec *last = last_of(model);
    hpct_op_kind kind = last != NULL ? last->kind : HPCT_OP_KINDS;
    hpct_shape output = hpct_model_output_shape(model);
    bool alone = hpct_graph_shape_count(&output) == 1;
    bool probable = kind == HPCT_OP_SOFTMAX || kind == HPCT_OP_SIGMOID;
    const char *what = NULL;
    if (hides_probabilities(model))
        return hpct_fail(HPCT_ERR_DATA,
                         "model %s has softmax or sigmoid before its last layer, \"%s\": its "
                         "outputs are neither probabilities nor logits; end it with one of them",
                         model->name, model->layers[maker_of(model, model->output)->layer].name);
    if (kind == HPCT_OP_SOFTMAX)
        what = "softmax, which is always 1";
    else if (last != NULL && last->relu)
        what = "relu";
    else if (last != NULL && hpct_op_is_activation(kind) && !probable)
        what = hpct_op_kind_name(kind);
    if (alone && what != NULL)
        return hpct_fail(HPCT_ERR_DATA,
                         "model %s ends in one output of %s: two classes need one output of "
                         "sigmoid (or without activation), or by two of softmax",
                         model->name, what);
    if (alone)
        *loss = probable ? HPCT_BINARY_CROSSENTROPY : HPCT_BINARY_CROSSENTROPY_FROM_LOGITS;
    else
        *loss = probable ? HPCT_SPARSE_CATEGORICAL_CROSSENTROPY
                         : HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS;
    return HPCT_OK;
}

static bool is_built_for(const hpct_model *model, int n)
{
    const hpct_run *run = model->run;
    for (int i = 0; run != NULL && i < run->batches.num; i++) {
        if (run->batches.sizes[i] == n)
            return true;
    }
    return false;
}

hpct_status hpct_model_predict(hpct_model *model, const float *input, int n, float *output)
{
    hpct_run_build_options options = {
        .batch_sizes = &n, .num_batch_sizes = 1, .inference_only = true};
    if (n < 1)
        return hpct_fail(HPCT_ERR_USAGE, "model %s: a batch has at least 1 sample, not %d",
                         model->name, n);
    if (!is_built_for(model, n))
        HPCT_TRY(hpct_model_build(model, &options));
    hpct_shape in = hpct_model_input_shape(model), out = hpct_model_output_shape(model);
    float *room = hpct_model_input(model);
    if (room == NULL)
        return hpct_fail_memory(0);
    memcpy(room, input, (size_t) n * hpct_graph_shape_count(&in) * sizeof(float));
    hpct_status status = hpct_model_forward(model, n, false);
    const float *made = status == HPCT_OK ? hpct_model_output(model) : NULL;
    if (status == HPCT_OK && made == NULL)
        return HPCT_ERR_INTERNAL; /* hpct_model_output has recorded the message */
    if (status == HPCT_OK)
        memcpy(output, made, (size_t) n * hpct_graph_shape_count(&out) * sizeof(float));
    return status;
}
