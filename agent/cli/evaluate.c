/* hpc-train evaluate */
#include "agent/cli/cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static hpct_status evaluate(hpct_context *context, hpct_model *model, hpct_cli_common *a)
{
    hpct_dataset *data = NULL;
    hpct_metrics metrics;
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
    if (status == HPCT_OK)
        status = hpct_evaluate(context, model, data, a->batch.size, &metrics);
    if (status == HPCT_OK && hpct_context_rank(context) == 0)
        printf(fabs(metrics.loss) >= 1e6    ? "%zu samples - accuracy: %.4f - loss: %.1e\n"
               : fabs(metrics.loss) <= 1e-3 ? "%zu samples - accuracy: %.4f - loss: %.4e\n"
                                            : "%zu samples - accuracy: %.4f - loss: %.4f\n",
               hpct_dataset_size(data), metrics.accuracy, metrics.loss);
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
    .summary = "loss and accuracy of saved weights",
    .run = run,
};
