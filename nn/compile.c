/* Checks a described model, fixes loss and optimizer, and answers questions about it. */
#include "nn/run.h"

#include "base/status.h"
#include "nn/schedule.h"

/* Every layer must lead to the output. */
static hpct_status check_readers(const hpct_model *model)
{
    for (int t = 0; t < model->num_tensors; t++) {
        const hpct_tensor *tensor = &model->tensors[t];
        if (!tensor->read && t != model->output)
            return hpct_fail(
                HPCT_ERR_USAGE, "%s: nothing reads its output, which is not model %s's",
                tensor->layer < 0 ? "input" : model->layers[tensor->layer].name, model->name);
    }
    return HPCT_OK;
}

hpct_status hpct_model_compile(hpct_model *model, hpct_loss loss, const hpct_optimizer *optimizer)
{
    if (model->status != HPCT_OK)
        return hpct_fail(model->status, "%s",
                         model->message != NULL ? model->message : "out of memory");
    if (model->num_layers == 0)
        return hpct_fail(HPCT_ERR_USAGE, "model %s has no layers", model->name);
    const hpct_layer *last = &model->layers[model->num_layers - 1];
    if (model->tensors[model->output].layer >= 0)
        last = &model->layers[model->tensors[model->output].layer];
    const hpct_shape *output = &model->tensors[model->output].shape;
    if (output->rank != 1) {
        char text[HPCT_SHAPE_TEXT];
        hpct_shape_format(output, text);
        return hpct_fail(HPCT_ERR_USAGE,
                         "%s: the model's output must be one row of classes, but it "
                         "is %s; add a flatten and a dense",
                         last->name, text);
    }
    if (loss != HPCT_SPARSE_CATEGORICAL_CROSSENTROPY &&
        loss != HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS)
        return hpct_fail(HPCT_ERR_USAGE, "there is no loss %d", (int) loss);
    hpct_optimizer resolved;
    hpct_status status = check_readers(model);
    if (status == HPCT_OK)
        status = hpct_optimizer_resolve(&resolved, optimizer);
    if (status == HPCT_OK)
        status = hpct_model_unbuild(model);
    if (status != HPCT_OK)
        return status;
    model->loss = loss;
    model->optimizer = resolved;
    hpct_model_forget_slots(model);
    model->compiled = true;
    return HPCT_OK;
}

double hpct_model_learning_rate(const hpct_model *model)
{
    const hpct_optimizer *optimizer = &model->optimizer;
    return hpct_schedule_rate(&optimizer->schedule, optimizer->learning_rate, model->steps);
}

const char *hpct_model_name(const hpct_model *model)
{
    return model->name;
}

size_t hpct_model_count_parameters(const hpct_model *model)
{
    size_t count = 0;
    for (int i = 0; i < model->num_layers; i++)
        count += model->layers[i].parameters;
    return count;
}

size_t hpct_model_count_trainable(const hpct_model *model)
{
    size_t count = hpct_model_count_parameters(model);
    for (int i = 0; i < model->num_layers; i++)
        count -= model->layers[i].states;
    return count;
}

hpct_shape hpct_model_input_shape(const hpct_model *model)
{
    return model->tensors[0].shape;
}

hpct_shape hpct_model_output_shape(const hpct_model *model)
{
    return model->tensors[model->output].shape;
}
