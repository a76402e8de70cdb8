/* Trains for a number of steps with an evaluation every so many, as TensorFlow's estimators do:
 *
 *   cc train_and_evaluate.c -lhpctrain -o train_and_evaluate
 *   ./train_and_evaluate DIR [STEPS]
 *   srun -N2 --hpc-train --hpc-train-stage=DIR ./train_and_evaluate
 */
#include <hpctrain/hpctrain.h>
#include <stdio.h>
#include <stdlib.h>

static hpct_status train(hpct_context *context, hpct_model *model, const char *path, int steps)
{
    hpct_dataset *pictures = NULL, *test = NULL;
    hpct_fit_result result;
    hpct_status status = hpct_dataset_open(&pictures, path, HPCT_TRAIN);
    if (status == HPCT_OK)
        status = hpct_dataset_open(&test, path, HPCT_TEST);
    status = hpct_context_agree(context, status); /* missing on one node? then all end */
    if (status == HPCT_OK) {
        hpct_train_and_evaluate_options options = {
            .max_steps = steps,
            .evaluate_every = (steps + 2) / 3,
            .fit = {.batch_size = 64, .verbose = HPCT_VERBOSE_AUTO},
        };
        status = hpct_train_and_evaluate(context, model, pictures, test, &options, &result);
    }
    if (status == HPCT_OK && hpct_context_rank(context) == 0)
        printf("after %ld steps: test accuracy %.4f\n", (long) result.steps,
               result.validation.accuracy);
    hpct_dataset_free(pictures);
    hpct_dataset_free(test);
    return status;
}

int main(int argc, char **argv)
{
    int steps = argc > 2 ? atoi(argv[2]) : 250;
    hpct_optimizer optimizer = {
        .kind = HPCT_ADAM,
        .schedule = {.kind = HPCT_POLYNOMIAL_DECAY, .decay_steps = steps},
    };
    hpct_context *context = NULL;
    hpct_model *model = NULL;
    hpct_status status = hpct_model_builtin(&model, "mnist-convnet");
    if (status == HPCT_OK)
        status = hpct_context_open(&context);
    if (status == HPCT_OK)
        status = hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, &optimizer);
    if (status == HPCT_OK)
        status = hpct_model_initialize(model, 1);
    if (status == HPCT_OK) {
        const char *path = argc > 1 ? argv[1] : hpct_context_data(context);
        status = train(context, model, path != NULL ? path : ".", steps);
    }
    status = hpct_context_finish(context, argv[0], status);
    hpct_model_free(model);
    return (int) status;
}
