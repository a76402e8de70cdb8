/* hpc-train evaluate */
#include "agent/cli/cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void print(size_t samples, const hpct_metrics *m, unsigned asked)
{
    static const char *const names[] = {"precision", "recall", "f1", "auc"};
    const double values[] = {m->precision, m->recall, m->f1, m->auc};
    printf(fabs(m->loss) >= 1e6    ? "%zu samples - accuracy: %.4f - loss: %.1e"
           : fabs(m->loss) <= 1e-3 ? "%zu samples - accuracy: %.4f - loss: %.4e"
                                   : "%zu samples - accuracy: %.4f - loss: %.4f",
           samples, m->accuracy, m->loss);
    for (int i = 0; i < 4; i++) {
        if (asked & 1U << i)
            printf(" - %s: %.4f", names[i], values[i]);
    }
    putchar('\n');
}

/* No output may replace an input. */
static void keep_inputs(const hpct_cli_common *a)
{
    const char *data = a->data != NULL ? a->data : getenv("HPC_TRAIN_DATA");
    const hpct_cli_file outputs[] = {{"--confusion-matrix", a->confusion_matrix},
                                     {"--summary-json", a->summary_json}},
                        inputs[] = {{"--weights", a->weights},
                                    {"--model", a->model.name},
                                    {"--data", data}};
    hpct_cli_keep(outputs, 2, inputs, 3);
}

static hpct_status evaluate(hpct_context *context, hpct_model *model, hpct_cli_common *a)
{
    hpct_dataset *data = NULL;
    hpct_metrics metrics;
    hpct_evaluate_options options = {.metrics = a->metrics,
                                     .confusion_matrix = a->confusion_matrix,
                                     .summary_json = a->summary_json};
    const char *path = a->data != NULL ? a->data : hpct_context_data(context);
    hpct_status status = hpct_cli_load_weights(model, a->weights, a->allow_nan);
    if (status == HPCT_OK)
        status = hpct_cli_open_data(&data, path, HPCT_TEST, model, &a->input);
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
    if (status == HPCT_OK && hpct_context_rank(context) == 0)
        print(hpct_dataset_size(data), &metrics, a->metrics);
    hpct_dataset_free(data);
    return status;
}

static int run(int argc, char **argv)
{
    static const char doc[] =
        "Mean loss and accuracy of saved weights over the test split of a data set.";
    hpct_cli_common a = {0};
    const hpct_cli_table tables[] = {{hpct_cli_common_options, &a}, {NULL, NULL}};
    const hpct_cli_model *defaults;
    hpct_model *model = NULL;
    hpct_context *context = NULL;
    hpct_cli_parse(HPCT_CLI_EVALUATE, doc, tables, argc, argv);
    if (a.weights == NULL)
        hpct_cli_usage("--weights is missing: a file written by fit --save-weights");
    keep_inputs(&a);
    hpct_cli_set_input(&a);
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
    .summary = "loss and accuracy of saved weights",
    .run = run,
};
