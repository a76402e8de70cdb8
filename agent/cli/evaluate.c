/* hpc-train evaluate */
#include "agent/cli/cli.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct arguments {
    const char *model, *weights, *data;
    int batch_size, classes;
    hpct_precision precision;
    hpct_dataset_options input;
} arguments;

enum {
    KEY_MODEL = 256,
    KEY_WEIGHTS,
    KEY_DATA,
    KEY_BATCH_SIZE,
    KEY_CLASSES,
    KEY_RESIZE,
    KEY_SCALE,
    KEY_PRECISION
};

static const struct argp_option options[] = {
    {"model", KEY_MODEL, "NAME|FILE", 0,
     "mnist-cnn, mnist-convnet, resnet50, resnet50v2, resnet101v2, resnet152v2, or FILE.json as "
     "Keras' to_json() wrote it",
     0},
    {"weights", KEY_WEIGHTS, "FILE", 0,
     "weights as fit --save-weights or Keras wrote them: .safetensors, .weights.h5", 0},
    {"data", KEY_DATA, "PATH", 0,
     "a data set (see hpc-train data --help); its test pictures are used (default: "
     "$HPC_TRAIN_DATA)",
     0},
    {"classes", KEY_CLASSES, "N", 0, "of the model, as in fit", 0},
    {"resize", KEY_RESIZE, "WxH", 0, "resize the pictures, as in fit", 0},
    {"scale", KEY_SCALE, "NAME", 0, "unit, symmetric or none, as in fit", 0},
    {"precision", KEY_PRECISION, "NAME", 0, "fp32 or bf16, as in fit", 0},
    {"batch-size", KEY_BATCH_SIZE, "N|auto", 0, "pictures at a time on each rank (default 128)", 0},
    {0},
};

static error_t parse(int key, char *value, struct argp_state *state)
{
    arguments *a = state->input;
    switch (key) {
    case KEY_MODEL:
        a->model = value;
        return 0;
    case KEY_WEIGHTS:
        a->weights = value;
        return 0;
    case KEY_DATA:
        a->data = value;
        return 0;
    case KEY_BATCH_SIZE:
        a->batch_size = hpct_cli_batch_size(value);
        return 0;
    case KEY_RESIZE:
        hpct_cli_resize(value, &a->input);
        return 0;
    case KEY_CLASSES:
        a->classes = (int) hpct_cli_integer("classes", value, 1, 1 << 20);
        return 0;
    case KEY_PRECISION:
        a->precision = hpct_cli_precision(value);
        return 0;
    case KEY_SCALE:
        hpct_cli_scale(value, &a->input);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static hpct_status evaluate(hpct_context *context, hpct_model *model, arguments *a)
{
    hpct_dataset *data = NULL;
    hpct_metrics metrics;
    const char *path = a->data != NULL ? a->data : hpct_context_data(context);
    hpct_status status = hpct_model_load_weights(model, a->weights);
    if (status == HPCT_OK)
        status = hpct_cli_open_data(&data, path, HPCT_TEST, model, &a->input);
    status = hpct_context_agree(context, status);
    if (status == HPCT_OK)
        status = hpct_cli_find_batch(context, model,
                                     &(hpct_batch_options){.data = data, .evaluate = true}, true,
                                     &a->batch_size);
    if (status == HPCT_OK)
        status = hpct_evaluate(context, model, data, a->batch_size, &metrics);
    if (status == HPCT_OK && hpct_context_rank(context) == 0)
        printf("%zu samples - accuracy: %.4f - loss: %.4f\n", hpct_dataset_size(data),
               metrics.accuracy, metrics.loss);
    hpct_dataset_free(data);
    return status;
}

static int run(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .doc = "Mean loss and accuracy of saved weights over the test pictures of a data set.",
    };
    arguments a = {0};
    const hpct_cli_model *defaults;
    hpct_model *model = NULL;
    hpct_context *context = NULL;
    hpct_cli_parse(&argp, argc, argv, &a);
    if (a.weights == NULL)
        hpct_cli_usage("--weights is missing: a file written by fit --save-weights");
    hpct_status status = hpct_cli_make_model(
        &model, &defaults,
        &(hpct_cli_choice){a.model, a.classes, a.input.width, a.input.height, a.precision}, -1, 0);
    if (status == HPCT_OK)
        status = hpct_cli_open_context(&context, model);
    if (status == HPCT_OK)
        status = evaluate(context, model, &a);
    status = hpct_context_finish(context, "hpc-train", status);
    hpct_model_free(model);
    return (int) status;
}

const hpct_command hpct_command_evaluate = {
    .name = "evaluate",
    .summary = "loss and accuracy of saved weights over test pictures",
    .run = run,
};
