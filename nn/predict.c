/* Outputs for a batch, and what they are. */
#include "nn/run.h"
#include "nn/step.h"

#include "base/status.h"

#include <string.h>

/* The operation that makes the outputs; NULL where the model has none. */
static const hpct_op_spec *last_of(const hpct_model *model)
{
    for (int i = model->num_nodes - 1; i >= 0; i--) {
        if (model->tensors[model->nodes[i].output].root == model->tensors[model->output].root)
            return &model->nodes[i].spec;
    }
    return NULL;
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
    bool alone = hpct_shape_count(&output) == 1, probable;
    const char *what = kind == HPCT_OP_SOFTMAX      ? "softmax, which is always 1"
                       : kind == HPCT_OP_TANH       ? "tanh"
                       : kind == HPCT_OP_GELU       ? "gelu"
                       : kind == HPCT_OP_RELU6      ? "relu6"
                       : kind == HPCT_OP_RELU       ? "relu"
                       : last != NULL && last->relu ? "relu"
                                                    : NULL;
    if (alone && what != NULL)
        return hpct_fail(HPCT_ERR_DATA,
                         "model %s ends in one output of %s: two classes are told apart by one "
                         "output of sigmoid (or without activation), or by two of softmax",
                         model->name, what);
    probable = kind == HPCT_OP_SOFTMAX || kind == HPCT_OP_SIGMOID;
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
    for (int i = 0; run != NULL && i < run->num_batch_sizes; i++) {
        if (run->batch_sizes[i] == n)
            return true;
    }
    return false;
}

hpct_status hpct_model_predict(hpct_model *model, const float *input, int n, float *output)
{
    hpct_status status = HPCT_OK;
    hpct_build_options options = {.batch_sizes = &n, .num_batch_sizes = 1, .inference_only = true};
    if (n < 1)
        return hpct_fail(HPCT_ERR_USAGE, "model %s: a batch has at least 1 sample, not %d",
                         model->name, n);
    if (!is_built_for(model, n))
        status = hpct_model_build(model, &options);
    if (status != HPCT_OK)
        return status;
    hpct_shape in = hpct_model_input_shape(model), out = hpct_model_output_shape(model);
    float *room = hpct_model_input(model);
    if (room == NULL)
        return hpct_fail_memory(0);
    memcpy(room, input, (size_t) n * hpct_shape_count(&in) * sizeof(float));
    status = hpct_model_forward(model, n, false);
    const float *made = status == HPCT_OK ? hpct_model_output(model) : NULL;
    if (status == HPCT_OK && made == NULL)
        return HPCT_ERR_INTERNAL; /* as it said */
    if (status == HPCT_OK)
        memcpy(output, made, (size_t) n * hpct_shape_count(&out) * sizeof(float));
    return status;
}
