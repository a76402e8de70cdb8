/* tests/unit/agent/strategy/norm_ranks.c - trains a small residual network on the ranks that it was
 * started as, its normalization "synchronized" or "own"; rank 0 prints each step's loss, then the
 * loss of an evaluation. "trainer": a loop of its own, whose moving statistics every rank prints.
 * "lost": the last rank ends itself in the first forward. */
#include "tests/unit/agent/data/pictures.h"

#include <hpctrain/hpctrain.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const hpct_conv2d conv = {
    .filters = 6, .kernel = {3, 3}, .padding = HPCT_SAME, .no_bias = true};

static hpct_status make_model(hpct_model **out, bool synchronized)
{
    hpct_model *model = *out = hpct_model_new("residual", HPCT_SHAPE(28, 28));
    hpct_batch_normalization norm = {.momentum = 0.8};
    hpct_model_add_reshape(model, HPCT_SHAPE(28, 28, 1));
    hpct_model_add_rescaling(model, 1, 5); /* far from 0, where sums of squares would cancel */
    hpct_model_add_conv2d(model, &conv);
    hpct_model_add_average_pool2d(model, &(hpct_average_pool2d){.pool = {4, 4}});
    hpct_model_add_batch_normalization(model, &norm);
    hpct_model_add_activation(model, HPCT_RELU);
    int shortcut = hpct_model_head(model);
    hpct_model_add_conv2d(model, &conv);
    hpct_model_add_batch_normalization(model, &norm);
    hpct_model_add_add(model, (int[]){shortcut, hpct_model_head(model)}, 2);
    hpct_model_add_activation(model, HPCT_RELU);
    hpct_model_add_flatten(model);
    hpct_model_add_dense(model, &(hpct_dense){.units = 10});
    if (synchronized)
        hpct_model_synchronize_batch_normalization(model);
    hpct_status status = hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
                                            &(hpct_optimizer){.learning_rate = 0.002});
    return status == HPCT_OK ? hpct_model_initialize(model, 1) : status;
}

static void print_metrics(const char *folder)
{
    char path[4096], line[512];
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        fputs(line, stdout);
    if (file != NULL)
        fclose(file);
}

/* 62 pictures in batches of 20, the last of 2: with 4 ranks two have none. */
static hpct_status train(hpct_context *context, hpct_model *model)
{
    hpct_dataset *data = NULL;
    hpct_metrics after;
    const char *folder = pictures_folder();
    pictures_mnist_like(folder, 62, 1, 10, false);
    hpct_fit_options options = {.epochs = 2,
                                .global_batch_size = 20,
                                .seed = 5,
                                .log_dir = folder,
                                .strategy = {.name = "multi-worker-mirrored"}};
    hpct_status status = hpct_dataset_open(&data, folder, HPCT_TRAIN);
    options.validation = data;
    hpct_fit_result result = {0};
    if (status == HPCT_OK)
        status = hpct_fit(context, model, data, &options, &result);
    after = result.validation;
    if (status == HPCT_OK && hpct_context_rank(context) == 0) {
        print_metrics(folder);
        printf("\"loss\": %.9g\n", after.loss);
    }
    hpct_dataset_free(data);
    return status;
}

static hpct_status loop(hpct_context *context, hpct_model *model, bool lost)
{
    hpct_trainer *trainer = NULL;
    int rank = hpct_context_rank(context), size = hpct_context_size(context);
    hpct_status status =
        hpct_trainer_open(&trainer, context, model, &(hpct_trainer_options){.batch_sizes = {4}});
    for (int step = 0; step < 3 && status == HPCT_OK; step++) {
        for (int i = 0; i < 4 * 28 * 28; i++)
            hpct_trainer_input(trainer)[i] = (float) ((i * 7 + rank * 31 + step) % 97) / 97;
        for (int i = 0; i < 4; i++)
            hpct_trainer_labels(trainer)[i] = (i + rank) % 10;
        if (lost && rank == size - 1 && step == 1)
            raise(SIGKILL);
        status = hpct_trainer_forward(trainer, 4, true);
        if (status == HPCT_OK)
            status = hpct_trainer_backward(trainer, 4 * size);
        if (status == HPCT_OK)
            status = hpct_trainer_reduce(trainer, NULL);
        if (status == HPCT_OK)
            status = hpct_trainer_apply(trainer);
    }
    hpct_trainer_close(trainer);
    char path[4096];
    snprintf(path, sizeof path, "%s/weights.safetensors", pictures_folder());
    if (status == HPCT_OK)
        status = hpct_model_save_weights(model, path);
    FILE *file = status == HPCT_OK ? fopen(path, "rb") : NULL;
    unsigned long sum = 5381;
    for (int c; file != NULL && (c = fgetc(file)) != EOF;)
        sum = sum * 33 + (unsigned long) c;
    if (file != NULL) {
        fclose(file);
        printf("weights %lx\n", sum);
    }
    return status;
}

int main(int argc, char **argv)
{
    hpct_context *context = NULL;
    hpct_model *model = NULL;
    const char *what = argc > 1 ? argv[1] : "";
    bool lost = strcmp(what, "lost") == 0;
    hpct_status status = hpct_context_open(&context);
    if (status == HPCT_OK)
        status = make_model(&model, lost || strcmp(what, "synchronized") == 0);
    if (status == HPCT_OK && (lost || strcmp(what, "trainer") == 0))
        status = loop(context, model, lost);
    else if (status == HPCT_OK)
        status = train(context, model);
    hpct_model_free(model);
    return (int) hpct_context_finish(context, "norm_ranks", status);
}
