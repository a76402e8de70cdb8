/* Trains a small network on MNIST (or Fashion-MNIST): build the model layer by layer, compile, fit.
 * The same program runs alone, and over all tasks of a Slurm step:
 *
 *   cc mnist.c -lhpctrain -o mnist
 *   ./mnist DIR
 *   srun -N2 --hpc-train ./mnist DIR
 *   srun -N2 --hpc-train --hpc-train-stage=DIR ./mnist        (copies DIR to each node first)
 */
#include <hpctrain/hpctrain.h>
#include <stdio.h>

static hpct_model *make_model(void)
{
    hpct_model *model = hpct_model_new("mnist", HPCT_SHAPE(28, 28));
    hpct_model_add_reshape(model, HPCT_SHAPE(28, 28, 1));
    hpct_model_add_conv2d(model,
                          &(hpct_conv2d){.filters = 32, .kernel = {3, 3}, .activation = HPCT_RELU});
    hpct_model_add_flatten(model);
    hpct_model_add_dense(model, &(hpct_dense){.units = 128, .activation = HPCT_RELU});
    hpct_model_add_dense(model, &(hpct_dense){.units = 10});
    return model;
}

static hpct_status train(hpct_context *context, hpct_model *model, const char *path)
{
    hpct_dataset *pictures = NULL, *test = NULL;
    hpct_metrics metrics;
    hpct_status status = hpct_dataset_open(&pictures, path, HPCT_TRAIN);
    if (status == HPCT_OK)
        status = hpct_dataset_open(&test, path, HPCT_TEST);
    status = hpct_context_agree(context, status); /* missing on one node? then all end */

    if (status == HPCT_OK) {
        hpct_fit_options options = {.epochs = 3, .batch_size = 64, .verbose = HPCT_VERBOSE_AUTO};
        status = hpct_fit(context, model, pictures, &options, NULL);
    }
    if (status == HPCT_OK)
        status = hpct_evaluate(context, model, test, 0, &metrics);
    if (status == HPCT_OK && hpct_context_rank(context) == 0)
        printf("test accuracy: %.4f\n", metrics.accuracy);

    hpct_dataset_free(pictures);
    hpct_dataset_free(test);
    return status;
}

int main(int argc, char **argv)
{
    hpct_context *context = NULL;
    hpct_model *model = make_model();
    hpct_status status = hpct_context_open(&context);
    if (status == HPCT_OK)
        status = hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
                                    &(hpct_optimizer){.kind = HPCT_SGD, .learning_rate = 0.2});
    if (status == HPCT_OK)
        status = hpct_model_initialize(model, 1);
    if (status == HPCT_OK) {
        const char *path = argc > 1 ? argv[1] : hpct_context_data(context);
        status = train(context, model, path != NULL ? path : ".");
    }
    status = hpct_context_finish(context, argv[0], status);
    hpct_model_free(model);
    return (int) status;
}
