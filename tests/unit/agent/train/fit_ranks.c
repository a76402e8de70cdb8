/* tests/unit/agent/train/fit_ranks.c - trains a small model with random layers on the ranks that it
 * was started as; rank 0 prints the lines of metrics.jsonl. Each rank writes the same pictures for
 * itself; with the argument "damaged" the end of one of them is missing, which shows only when it
 * is decoded. */
#include "tests/unit/agent/data/pictures.h"

#include <hpctrain/hpctrain.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static hpct_status make_model(hpct_model **out)
{
    hpct_model *model = *out = hpct_model_new("random", HPCT_SHAPE(28, 28));
    hpct_model_add_reshape(model, HPCT_SHAPE(28, 28, 1));
    hpct_model_add_random_flip(model, HPCT_FLIP_HORIZONTAL);
    hpct_model_add_random_crop(model, 22, 24);
    hpct_model_add_random_zoom(model, &(hpct_random_affine){.height = {-0.2, 0.2}, .square = true});
    hpct_model_add_random_brightness(
        model, &(hpct_random_tone){.factor = {-0.1, 0.1}, .value_range = {0, 1}});
    hpct_model_add_conv2d(model,
                          &(hpct_conv2d){.filters = 8, .kernel = {3, 3}, .activation = HPCT_RELU});
    hpct_model_add_dropout(model, 0.25);
    hpct_model_add_flatten(model);
    hpct_model_add_dense(model, &(hpct_dense){.units = 20, .activation = HPCT_TANH});
    hpct_model_add_dropout(model, 0.5);
    hpct_model_add_dense(model, &(hpct_dense){.units = 10});
    hpct_status status = hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
                                            &(hpct_optimizer){.learning_rate = 0.05});
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

static hpct_status open_good(hpct_dataset **out, const char *folder)
{
    pictures_mnist_like(folder, 103, 1, 10, false);
    return hpct_dataset_open(out, folder, HPCT_TRAIN);
}

static hpct_status open_damaged(hpct_dataset **out, const char *folder)
{
    uint8_t png[4096];
    size_t size = pictures_seed("picture/png_grey", png, sizeof png);
    for (int i = 0; i < 103; i++) {
        char name[32];
        snprintf(name, sizeof name, "train/a/%d.png", i);
        pictures_write(folder, name, png, i == 60 ? size - 20 : size, false);
    }
    /* so little memory that nothing is decoded before it is needed */
    hpct_dataset_options little = {.height = 28, .width = 28, .channels = 1, .memory = 10};
    return hpct_dataset_open_as(out, folder, HPCT_TRAIN, &little);
}

int main(int argc, char **argv)
{
    bool damaged = argc > 1 && strcmp(argv[1], "damaged") == 0;
    hpct_context *context = NULL;
    hpct_model *model = NULL;
    hpct_dataset *train = NULL;
    const char *folder = pictures_folder();
    hpct_status status = hpct_context_open(&context);
    if (status == HPCT_OK)
        status = make_model(&model);
    if (status == HPCT_OK)
        status = damaged ? open_damaged(&train, folder) : open_good(&train, folder);
    hpct_fit_options options = {.epochs = 2,
                                .global_batch_size = 30,
                                .seed = 5,
                                .log_dir = folder,
                                .strategy = {.name = "multi-worker-mirrored"}};
    if (status == HPCT_OK) /* 4 steps an epoch, the last one of 13 samples */
        status = hpct_fit(context, model, train, &options, NULL);
    if (status == HPCT_OK && hpct_context_rank(context) == 0)
        print_metrics(folder);
    hpct_dataset_free(train);
    hpct_model_free(model);
    return (int) hpct_context_finish(context, "fit_ranks", status);
}
