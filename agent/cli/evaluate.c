/* hpc-train evaluate */
#include "agent/cli/cli.h"

#include <stdio.h>
#include <stdlib.h>

/* No output may replace an input. */
static void keep_inputs(const hpct_cli_common *a)
{
    const char *data = a->data != NULL ? a->data : getenv("HPC_TRAIN_DATA");
    const hpct_cli_file outputs[] = {{"--confusion-matrix", a->confusion_matrix},
                                     {"--summary-json", a->summary_json}},
                        inputs[] = {{"--weights", a->weights},
                                    {"--model", a->model.name},
                                    {"--data", data},
                                    {"--labels", a->labels}};
    hpct_cli_keep(outputs, 2, inputs, 4);
}

#define FILLS hpct_cli_training
static const hpct_cli_option loss_options[] = {
    {"loss", "NAME",
     "with --labels: the loss of fit, for weights that do not name it (default: that of the "
     "weights, else the one that fits the outputs)",
     1, 0, NAME(loss, hpct_cli_losses)},
    {0},
};
#undef FILLS

/* Sets the loss of --labels: --loss, or else the one that the weights name. */
static hpct_status set_loss(hpct_model *model, const hpct_cli_model *defaults,
                            const hpct_cli_training *training)
{
    char **names;
    int count;
    hpct_compile_options saved = {0};
    if (training->loss != 0)
        return hpct_cli_compile(model, defaults, training, 1, 1, 1);
    hpct_status status = hpct_model_output_names(model, &names, &count, &saved);
    free(names);
    if (status != HPCT_OK || count == 0)
        return status;
    saved.precision = hpct_model_precision(model);
    saved.optimizer = (hpct_optimizer){.learning_rate = defaults->learning_rate};
    return hpct_model_compile_with(model, &saved);
}

/* Opens the test split, or what --validation-split holds out of the training split. */
static hpct_status open_data(hpct_dataset **out, const char *path, const hpct_model *model,
                             const hpct_cli_common *a)
{
    hpct_dataset *part = NULL;
    bool held = a->validation_split > 0;
    hpct_status status = hpct_cli_open_labelled(out, path, a->labels, held ? HPCT_TRAIN : HPCT_TEST,
                                                model, &a->input);
    if (status != HPCT_OK || !held)
        return status;
    status = hpct_dataset_hold_out(*out, a->validation_split, &part);
    hpct_dataset_free(*out);
    *out = part;
    return status;
}

static hpct_status evaluate(hpct_context *context, hpct_model *model,
                            const hpct_cli_model *defaults, const hpct_cli_training *training,
                            hpct_cli_common *a)
{
    hpct_dataset *data = NULL;
    hpct_metrics metrics;
    hpct_evaluate_options options = {.metrics = a->metrics,
                                     .confusion_matrix = a->confusion_matrix,
                                     .summary_json = a->summary_json};
    const char *path = a->data != NULL ? a->data : hpct_context_data(context);
    hpct_status status = hpct_cli_load_weights(model, a->weights, a->allow_nan);
    if (status == HPCT_OK && a->labels != NULL)
        status = set_loss(model, defaults, training);
    if (status == HPCT_OK)
        status = open_data(&data, path, model, a);
    if (status == HPCT_OK)
        status = hpct_dataset_number_for(data, model);
    status = hpct_context_agree(context, status);
    if (status == HPCT_OK && hpct_context_rank(context) == 0)
        hpct_dataset_announce(model, NULL, data, NULL, stderr);
    if (status == HPCT_OK)
        status = hpct_cli_find_batch(context, model,
                                     &(hpct_batch_options){.data = data, .evaluate = true}, true,
                                     &a->batch.size);
    options.batch_size = a->batch.size;
    if (hpct_context_rank(context) == 0)
        options.classes = stdout;
    if (status == HPCT_OK)
        status = hpct_evaluate_with(context, model, data, &options, &metrics);
    if (status == HPCT_OK && hpct_context_rank(context) == 0) {
        printf("%zu samples", hpct_dataset_size(data));
        hpct_metrics_print(&metrics, a->metrics, stdout);
        putchar('\n');
    }
    hpct_dataset_free(data);
    return status;
}

static int run(int argc, char **argv)
{
    static const char doc[] =
        "Prints mean loss and accuracy of saved weights over the test split of a data set.";
    hpct_cli_common a = {0};
    hpct_cli_training training = {0};
    const hpct_cli_table tables[] = {
        {hpct_cli_common_options, &a}, {loss_options, &training}, {NULL, NULL}};
    const hpct_cli_model *defaults;
    hpct_model *model = NULL;
    hpct_context *context = NULL;
    hpct_cli_parse(HPCT_CLI_EVALUATE, doc, tables, argc, argv);
    if (a.weights == NULL)
        hpct_cli_usage("--weights is missing: a file written by fit --save-weights");
    if (training.loss != 0 && a.labels == NULL)
        hpct_cli_usage("--loss is for --labels, which is not given");
    keep_inputs(&a);
    hpct_cli_recall(&a, true);
    hpct_cli_set_input(&a);
    hpct_status status = hpct_cli_make_model(&model, &defaults, &a.model, -1, 0);
    status = hpct_cli_open_context(&context, status, model, a.model.device, &a.context, false);
    if (status == HPCT_OK)
        status = evaluate(context, model, defaults, &training, &a);
    status = hpct_context_finish(context, "hpc-train", status);
    hpct_model_free(model);
    return (int) status;
}

const hpct_command hpct_command_evaluate = {
    .name = "evaluate",
    .summary = "measure loss, accuracy and other metrics of saved weights",
    .run = run,
};
