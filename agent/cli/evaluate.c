/* hpc-train evaluate */
#include "agent/cli/cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct arguments {
    hpct_cli_choice model;
    hpct_context_options context;
    const char *weights, *data;
    bool allow_nan;
    int batch_size;
    hpct_dataset_options input;
} arguments;

enum { KEY_WEIGHTS = 256, KEY_ALLOW_NAN, KEY_DATA, KEY_BATCH_SIZE, KEY_SCALE };

static const struct argp_option options[] = {
    {"weights", KEY_WEIGHTS, "FILE", 0,
     "weights as fit --save-weights or Keras wrote them: .safetensors, .weights.h5", 0},
    {"allow-nan", KEY_ALLOW_NAN, NULL, 0, "take weights with NaN or infinity among them", 0},
    {"data", KEY_DATA, "PATH", 0,
     "a data set (see hpc-train data --help); its test pictures are used (default: "
     "$HPC_TRAIN_DATA)",
     1},
    {"scale", KEY_SCALE, "NAME", 0, "unit, symmetric or none, as in fit", 1},
    {"batch-size", KEY_BATCH_SIZE, "N|auto", 0, "pictures at a time on each rank (default 128)", 1},
    {0},
};

static error_t parse(int key, char *value, struct argp_state *state)
{
    arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->model;
        state->child_inputs[1] = &a->context;
        return 0;
    case KEY_WEIGHTS:
        a->weights = value;
        return 0;
    case KEY_ALLOW_NAN:
        a->allow_nan = true;
        return 0;
    case KEY_DATA:
        a->data = hpct_cli_data("data", value);
        return 0;
    case KEY_BATCH_SIZE:
        a->batch_size = hpct_cli_batch_size(value);
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
    hpct_status status = hpct_cli_load_weights(model, a->weights, a->allow_nan);
    if (status == HPCT_OK)
        status = hpct_cli_open_data(&data, path, HPCT_TEST, model, &a->input);
    status = hpct_context_agree(context, status);
    if (status == HPCT_OK && hpct_context_rank(context) == 0)
        hpct_dataset_announce(model, NULL, data, NULL, stderr);
    if (status == HPCT_OK)
        status = hpct_cli_find_batch(context, model,
                                     &(hpct_batch_options){.data = data, .evaluate = true}, true,
                                     &a->batch_size);
    if (status == HPCT_OK)
        status = hpct_evaluate(context, model, data, a->batch_size, &metrics);
    if (status == HPCT_OK && hpct_context_rank(context) == 0)
        printf(fabs(metrics.loss) < 1e6 ? "%zu samples - accuracy: %.4f - loss: %.4f\n"
                                        : "%zu samples - accuracy: %.4f - loss: %.1e\n",
               hpct_dataset_size(data), metrics.accuracy, metrics.loss);
    hpct_dataset_free(data);
    return status;
}

static int run(int argc, char **argv)
{
    static const struct argp_child children[] = {
        {&hpct_cli_model_argp, 0, NULL, 0}, {&hpct_cli_comm_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .children = children,
        .doc = "Mean loss and accuracy of saved weights over the test pictures of a data set.",
    };
    arguments a = {0};
    const hpct_cli_model *defaults;
    hpct_model *model = NULL;
    hpct_context *context = NULL;
    hpct_cli_parse(&argp, argc, argv, &a);
    if (a.weights == NULL)
        hpct_cli_usage("--weights is missing: a file written by fit --save-weights");
    a.input.width = a.model.width;
    a.input.height = a.model.height;
    hpct_status status = hpct_cli_make_model(&model, &defaults, &a.model, -1, 0);
    if (status == HPCT_OK)
        status = hpct_cli_open_context(&context, model, a.model.device, &a.context, false);
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
