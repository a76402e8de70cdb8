/* Compiles a model: checks it, sets loss and optimizer; queries of these. */
#include "nn/graph/compile.h"

#include "base/status.h"
#include "nn/graph/graph.h"
#include "nn/graph/kinds.h"
#include "nn/graph/schedule.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

static const char *const loss_names[HPCT_LOSSES] = {
    [HPCT_SPARSE_CATEGORICAL_CROSSENTROPY] = "sparse_categorical_crossentropy",
    [HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS] =
        "sparse_categorical_crossentropy_from_logits",
    [HPCT_CATEGORICAL_CROSSENTROPY] = "categorical_crossentropy",
    [HPCT_CATEGORICAL_CROSSENTROPY_FROM_LOGITS] = "categorical_crossentropy_from_logits",
    [HPCT_BINARY_CROSSENTROPY] = "binary_crossentropy",
    [HPCT_BINARY_CROSSENTROPY_FROM_LOGITS] = "binary_crossentropy_from_logits",
    [HPCT_MEAN_SQUARED_ERROR] = "mean_squared_error",
    [HPCT_BINARY_FOCAL_CROSSENTROPY] = "binary_focal_crossentropy",
    [HPCT_BINARY_FOCAL_CROSSENTROPY_FROM_LOGITS] = "binary_focal_crossentropy_from_logits",
    [HPCT_CATEGORICAL_FOCAL_CROSSENTROPY] = "categorical_focal_crossentropy",
    [HPCT_CATEGORICAL_FOCAL_CROSSENTROPY_FROM_LOGITS] =
        "categorical_focal_crossentropy_from_logits",
    [HPCT_HUBER] = "huber",
    [HPCT_KL_DIVERGENCE] = "kl_divergence",
};

const char *hpct_loss_name(hpct_loss loss)
{
    return (int) loss >= 0 && loss < HPCT_LOSSES ? loss_names[loss] : "?";
}

/* Every layer's output must be used, or be the model's output. */
static hpct_status check_readers(const hpct_model *model)
{
    for (int t = 0; t < model->num_tensors; t++) {
        const hpct_graph_tensor *tensor = &model->tensors[t];
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
    char text[HPCT_GRAPH_SHAPE_TEXT];
    hpct_graph_shape_format(output, text);
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
                  options->loss == HPCT_BINARY_CROSSENTROPY_FROM_LOGITS ||
                  (options->loss >= HPCT_BINARY_FOCAL_CROSSENTROPY &&
                   options->loss <= HPCT_CATEGORICAL_FOCAL_CROSSENTROPY_FROM_LOGITS);
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

static bool is_binary(hpct_loss loss)
{
    return loss == HPCT_BINARY_CROSSENTROPY || loss == HPCT_BINARY_CROSSENTROPY_FROM_LOGITS ||
           loss == HPCT_BINARY_FOCAL_CROSSENTROPY ||
           loss == HPCT_BINARY_FOCAL_CROSSENTROPY_FROM_LOGITS;
}

static bool is_number(hpct_loss loss)
{
    return loss == HPCT_MEAN_SQUARED_ERROR || loss == HPCT_HUBER;
}

static int count_labels(const hpct_model *model, hpct_loss loss)
{
    const hpct_shape *output = &model->tensors[model->output].shape;
    int outputs = output->size[output->rank - 1];
    if (outputs > 1)
        return outputs;
    return is_binary(loss) ? 2 : is_number(loss) ? INT_MAX : 1;
}

/* Factors of the loss' form; zeros are the defaults. */
static hpct_status check_factors(const hpct_compile_options *o)
{
    bool focal = o->loss >= HPCT_BINARY_FOCAL_CROSSENTROPY &&
                 o->loss <= HPCT_CATEGORICAL_FOCAL_CROSSENTROPY_FROM_LOGITS;
    if (!(o->focal_gamma >= 0 && isfinite(o->focal_gamma)) ||
        !(o->focal_alpha >= 0 && o->focal_alpha <= 1))
        return hpct_fail(HPCT_ERR_USAGE,
                         "a focal loss with gamma %g and alpha %g: gamma must be positive, alpha "
                         "lie in [0, 1]",
                         o->focal_gamma, o->focal_alpha);
    if (!(o->huber_delta >= 0 && isfinite(o->huber_delta)))
        return hpct_fail(HPCT_ERR_USAGE, "huber_delta is %g, it must be positive", o->huber_delta);
    if ((o->focal_gamma > 0 || o->focal_alpha > 0) && !focal)
        return hpct_fail(HPCT_ERR_USAGE, "--focal-gamma and --focal-alpha are for focal losses");
    if (o->huber_delta > 0 && o->loss != HPCT_HUBER)
        return hpct_fail(HPCT_ERR_USAGE, "--huber-delta is for --loss huber");
    return HPCT_OK;
}

static hpct_status set_class_weights(hpct_model *model, const hpct_compile_options *o)
{
    int labels = count_labels(model, o->loss), num = o->class_weights != NULL ? labels : 0;
    if (num == INT_MAX)
        return hpct_fail(HPCT_ERR_USAGE,
                         "weights of classes for a model whose output is a number, not a class");
    if (num > 0 && o->num_class_weights != num)
        return hpct_fail(HPCT_ERR_USAGE, "weights of %d classes, the model has %d",
                         o->num_class_weights, num);
    float *weights = num > 0 ? malloc((size_t) num * sizeof *weights) : NULL;
    if (num > 0 && weights == NULL)
        return hpct_fail_memory((size_t) num * sizeof *weights);
    for (int i = 0; i < num; i++) {
        if (!(o->class_weights[i] >= 0 && isfinite(o->class_weights[i]))) {
            free(weights);
            return hpct_fail(HPCT_ERR_USAGE,
                             "the weight of class %d is %g, it must not be negative", i,
                             o->class_weights[i]);
        }
        weights[i] = (float) o->class_weights[i];
    }
    free(model->class_weights);
    model->class_weights = weights;
    model->num_class_weights = num;
    return HPCT_OK;
}

static void set_factors(hpct_model *model, const hpct_compile_options *o)
{
    bool categorical = o->loss == HPCT_CATEGORICAL_FOCAL_CROSSENTROPY ||
                       o->loss == HPCT_CATEGORICAL_FOCAL_CROSSENTROPY_FROM_LOGITS;
    model->focal_gamma = o->focal_gamma > 0 ? o->focal_gamma : 2;
    model->focal_alpha = o->focal_alpha > 0 || !categorical ? o->focal_alpha : 0.25;
    model->huber_delta = o->huber_delta > 0 ? o->huber_delta : 1;
}

hpct_status hpct_model_compile_with(hpct_model *model, const hpct_compile_options *options)
{
    hpct_optimizer resolved;
    HPCT_TRY(check_layers(model));
    HPCT_TRY(check_loss(options));
    HPCT_TRY(check_factors(options));
    HPCT_TRY(hpct_graph_optimizer_resolve(&resolved, &options->optimizer));
    if (model->run != NULL)
        HPCT_TRY(model->run_class->unbuild(model));
    HPCT_TRY(set_class_weights(model, options));
    set_factors(model, options);
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

/* By deviations of channels, which are smaller than the range. */
static bool scales_pixels(const hpct_op_spec *spec)
{
    bool all = true;
    for (int c = 0; c < spec->line.channels; c++)
        all &= fabsf(spec->line.scale[c]) <= 1 / 32.0F;
    return all;
}

#define MANY_LEVELS 64 /* more than those of scaled pixels */

/* Of images of 0 to 255 makes such ones. */
static bool keeps_pixels(const hpct_op_spec *spec)
{
    return hpct_op_facts_of(spec)->sizes == HPCT_GRAPH_SIZES_PICTURE;
}

static bool has_range_of_pixels(const hpct_op_spec *spec)
{
    const hpct_graph_variation *variation = &spec->picture.variation;
    return spec->kind == HPCT_OP_RANDOM_TONE && variation->most - variation->least > MANY_LEVELS;
}

bool hpct_model_rescales_pixels(const hpct_model *model)
{
    int pixels = 0; /* the tensor that has them */
    for (int i = 0; i < model->num_nodes; i++) {
        const hpct_graph_node *node = &model->nodes[i];
        if (model->tensors[node->inputs[0]].root != pixels)
            continue;
        if (node->spec.kind == HPCT_OP_RESCALING)
            return fabsf(node->spec.scale) <= 1.0F / MANY_LEVELS;
        if (node->spec.kind == HPCT_OP_NORMALIZATION && node->spec.line.given)
            return scales_pixels(&node->spec);
        if (has_range_of_pixels(&node->spec))
            return true;
        if (keeps_pixels(&node->spec))
            pixels = model->tensors[node->output].root;
    }
    return false;
}

int hpct_model_count_labels(const hpct_model *model)
{
    return count_labels(model, model->loss);
}

hpct_target_kind hpct_model_target_kind(const hpct_model *model)
{
    if (is_binary(model->loss))
        return HPCT_TARGETS_BINARY;
    return is_number(model->loss) ? HPCT_TARGETS_NUMBERS : HPCT_TARGETS_CLASS;
}

void hpct_model_take_targets(hpct_model *model, bool rows)
{
    model->has_targets = rows;
}

hpct_target_kind hpct_model_judged(const hpct_model *model)
{
    return model->has_targets ? hpct_model_target_kind(model) : HPCT_TARGETS_CLASS;
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

bool hpct_model_gives_logits(const hpct_model *model)
{
    return model->loss == HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS ||
           model->loss == HPCT_CATEGORICAL_CROSSENTROPY_FROM_LOGITS ||
           model->loss == HPCT_BINARY_CROSSENTROPY_FROM_LOGITS ||
           model->loss == HPCT_BINARY_FOCAL_CROSSENTROPY_FROM_LOGITS ||
           model->loss == HPCT_CATEGORICAL_FOCAL_CROSSENTROPY_FROM_LOGITS;
}

hpct_loss hpct_model_loss_kind(const hpct_model *model)
{
    return model->loss;
}

void hpct_model_loss_factors(const hpct_model *model, double factors[3])
{
    bool focal = model->loss >= HPCT_BINARY_FOCAL_CROSSENTROPY &&
                 model->loss <= HPCT_CATEGORICAL_FOCAL_CROSSENTROPY_FROM_LOGITS;
    factors[0] = focal ? model->focal_gamma : 0;
    factors[1] = focal ? model->focal_alpha : 0;
    factors[2] = model->loss == HPCT_HUBER ? model->huber_delta : 0;
}

const float *hpct_model_class_weights(const hpct_model *model, int *count)
{
    *count = model->num_class_weights;
    return model->class_weights;
}

int hpct_model_top_k(const hpct_model *model)
{
    return model->top_k;
}

const hpct_optimizer *hpct_model_optimizer(const hpct_model *model)
{
    return &model->optimizer;
}

static double rate_of_step(const hpct_model *model, int64_t step)
{
    const hpct_optimizer *optimizer = &model->optimizer;
    if (model->rate > 0)
        return model->rate;
    double rate = hpct_graph_schedule_rate(&optimizer->schedule, optimizer->learning_rate, step);
    return ldexp(rate, -model->halvings);
}

double hpct_model_learning_rate(const hpct_model *model)
{
    return rate_of_step(model, model->steps);
}

double hpct_model_last_learning_rate(const hpct_model *model)
{
    return rate_of_step(model, model->steps > 0 ? model->steps - 1 : 0);
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
