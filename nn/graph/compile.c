/* Compiles a model: checks it, sets loss and optimizer; queries of these. */
#include "nn/graph/compile.h"

#include "base/status.h"
#include "nn/graph/graph.h"
#include "nn/graph/schedule.h"

#include <limits.h>
#include <math.h>

/* Every layer's output must be used, or be the model's output. */
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

static hpct_status check_layers(const hpct_model *model)
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
    if (output->rank == 1)
        return check_readers(model);
    char text[HPCT_SHAPE_TEXT];
    hpct_shape_format(output, text);
    return hpct_fail(HPCT_ERR_USAGE,
                     "%s: the model's output must be one row of classes, but it "
                     "is %s; add a flatten and a dense",
                     last->name, text);
}

static hpct_status check_loss(const hpct_compile_options *options)
{
    if ((int) options->loss < 0 || options->loss >= HPCT_LOSSES)
        return hpct_fail(HPCT_ERR_USAGE, "there is no loss %d", (int) options->loss);
    if (!(options->label_smoothing >= 0 && options->label_smoothing <= 1))
        return hpct_fail(HPCT_ERR_USAGE, "label smoothing %g must lie in [0, 1]",
                         options->label_smoothing);
    bool smooth = options->loss == HPCT_CATEGORICAL_CROSSENTROPY ||
                  options->loss == HPCT_CATEGORICAL_CROSSENTROPY_FROM_LOGITS ||
                  options->loss == HPCT_BINARY_CROSSENTROPY ||
                  options->loss == HPCT_BINARY_CROSSENTROPY_FROM_LOGITS;
    if (options->label_smoothing > 0 && !smooth)
        return hpct_fail(HPCT_ERR_USAGE,
                         "the loss has no label smoothing: take categorical cross-entropy, sparse "
                         "labels will do");
    if ((int) options->precision < 0 || options->precision >= HPCT_PRECISIONS)
        return hpct_fail(HPCT_ERR_USAGE, "there is no precision %d", (int) options->precision);
    if (options->top_k < 0)
        return hpct_fail(HPCT_ERR_USAGE, "top_k is %d, it must be positive", options->top_k);
    return HPCT_OK;
}

hpct_status hpct_model_compile_with(hpct_model *model, const hpct_compile_options *options)
{
    hpct_optimizer resolved;
    HPCT_TRY(check_layers(model));
    HPCT_TRY(check_loss(options));
    HPCT_TRY(hpct_optimizer_resolve(&resolved, &options->optimizer));
    if (model->run != NULL)
        HPCT_TRY(model->run_class->unbuild(model));
    model->loss = options->loss;
    model->precision = options->precision;
    model->label_smoothing = options->label_smoothing;
    model->top_k = options->top_k;
    model->optimizer = resolved;
    hpct_model_fuse(model);
    model->compiled = true;
    hpct_model_drop_slots(model);
    return HPCT_OK;
}

hpct_status hpct_model_compile(hpct_model *model, hpct_loss loss, const hpct_optimizer *optimizer)
{
    return hpct_model_compile_with(model, &(hpct_compile_options){.loss = loss,
                                                                  .precision = model->precision,
                                                                  .optimizer = *optimizer});
}

bool hpct_model_rescales_pixels(const hpct_model *model)
{
    for (int i = 0; i < model->num_nodes; i++) {
        const hpct_op_spec *spec = &model->nodes[i].spec;
        if (spec->kind == HPCT_OP_RESCALING && model->tensors[model->nodes[i].inputs[0]].root == 0)
            return fabsf(spec->scale) <= 1 / 64.0F;
    }
    return false;
}

int hpct_model_count_labels(const hpct_model *model)
{
    const hpct_shape *output = &model->tensors[model->output].shape;
    int outputs = output->size[output->rank - 1];
    if (outputs > 1)
        return outputs;
    bool binary = model->loss == HPCT_BINARY_CROSSENTROPY ||
                  model->loss == HPCT_BINARY_CROSSENTROPY_FROM_LOGITS;
    return binary ? 2 : model->loss == HPCT_MEAN_SQUARED_ERROR ? INT_MAX : 1;
}

int hpct_model_gradient_accumulation(const hpct_model *model)
{
    return model->optimizer.gradient_accumulation_steps;
}

hpct_precision hpct_model_precision(const hpct_model *model)
{
    return model->precision;
}

double hpct_model_label_smoothing(const hpct_model *model)
{
    return model->label_smoothing;
}

int hpct_model_top_k(const hpct_model *model)
{
    return model->top_k;
}

const hpct_optimizer *hpct_model_optimizer(const hpct_model *model)
{
    return &model->optimizer;
}

double hpct_model_learning_rate(const hpct_model *model)
{
    const hpct_optimizer *optimizer = &model->optimizer;
    if (model->rate > 0)
        return model->rate;
    double rate = hpct_schedule_rate(&optimizer->schedule, optimizer->learning_rate, model->steps);
    return ldexp(rate, -model->halvings);
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
