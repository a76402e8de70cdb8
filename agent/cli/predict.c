/* hpc-train predict */
#include "agent/cli/cli.h"

#include <stdio.h>

#define FILLS hpct_predict_options
static const hpct_cli_option predict_options[] = {
    {"top-k", "K", "classes per picture, the most probable first (default 1)", 1, 0,
     INTEGER(top_k, 1, 1 << 20)},
    {"output", "FILE", "write a row per picture: .csv or .jsonl (default: a table on stdout)", 1, 0,
     TEXT(output)},
    {"batch-size", "N", "pictures that a rank reads at once (default 128); results are the same", 1,
     0, INTEGER(batch_size, 1, 1 << 20)},
    {0},
};
#undef FILLS

static hpct_status predict(hpct_context *context, hpct_model *model, hpct_cli_common *a,
                           hpct_predict_options *options)
{
    hpct_dataset *data = NULL;
    const char *path = a->data != NULL ? a->data : hpct_context_data(context);
    hpct_status status = hpct_cli_load_weights(model, a->weights, a->allow_nan);
    if (status == HPCT_OK)
        status = hpct_cli_open_data(&data, path, HPCT_TEST, model, &a->input);
    status = hpct_context_agree(context, status);
    if (status == HPCT_OK && hpct_context_rank(context) == 0)
        hpct_dataset_announce(model, NULL, data, NULL, stderr);
    if (status == HPCT_OK)
        status = hpct_predict_classes(context, model, data, options);
    if (status == HPCT_OK && hpct_context_rank(context) == 0 && options->output != NULL)
        printf("%s: %zu predictions\n", options->output, hpct_dataset_size(data));
    hpct_dataset_free(data);
    return status;
}

static void check(const hpct_cli_common *a, const hpct_predict_options *options)
{
    const hpct_cli_file output = {"--output", options->output};
    const hpct_cli_file inputs[] = {
        {"--weights", a->weights}, {"--model", a->model.name}, {"--data", a->data}};
    if (a->weights == NULL)
        hpct_cli_usage("--weights is missing: a file written by fit --save-weights");
    if (hpct_predict_check(options) != HPCT_OK)
        hpct_cli_usage("%s", hpct_last_error());
    hpct_cli_keep(&output, 1, inputs, sizeof inputs / sizeof inputs[0]);
}

static int run(int argc, char **argv)
{
    static const char doc[] =
        "Prints the class of each picture and its probability, by saved weights: pictures of a "
        "data set's test split, of any folder or archive, or one picture.";
    hpct_cli_common a = {0};
    hpct_predict_options options = {0};
    const hpct_cli_table tables[] = {
        {hpct_cli_common_options, &a}, {predict_options, &options}, {NULL, NULL}};
    const hpct_cli_model *defaults;
    hpct_model *model = NULL;
    hpct_context *context = NULL;
    hpct_cli_parse(HPCT_CLI_PREDICT, doc, tables, argc, argv);
    check(&a, &options);
    if (options.output == NULL)
        options.table = stdout;
    a.input.unlabelled = true;
    hpct_cli_recall(&a, true);
    hpct_cli_set_input(&a);
    hpct_status status = hpct_cli_make_model(&model, &defaults, &a.model, -1, 0);
    status = hpct_cli_open_context(&context, status, model, a.model.device, &a.context, false);
    if (status == HPCT_OK)
        status = predict(context, model, &a, &options);
    status = hpct_context_finish(context, "hpc-train", status);
    hpct_model_free(model);
    return (int) status;
}

const hpct_command hpct_command_predict = {
    .name = "predict",
    .summary = "predict the classes of pictures by saved weights",
    .run = run,
};
