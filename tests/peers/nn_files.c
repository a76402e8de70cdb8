/* Predicts with a model and weights from files, and writes both again in other formats.
 *
 * usage: nn_files MODEL WEIGHTS N INPUTS OUTPUTS [FILE…]
 * MODEL: a .json, or a built-in model's name, a residual network's with its size and classes
 * (resnet50v2:32:10); WEIGHTS: a file, or the seed of initial weights;
 * INPUTS, OUTPUTS: raw floats of N samples; FILE: .json for the model, any other for its weights.
 */
#include <hpctrain/model.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(hpct_status status)
{
    if (status == HPCT_OK)
        return;
    fprintf(stderr, "nn_files: %s\n", hpct_last_error());
    exit((int) status);
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), size = strlen(end);
    return length >= size && strcmp(text + length - size, end) == 0;
}

static size_t count(hpct_shape shape)
{
    size_t product = 1;
    for (int i = 0; i < shape.rank; i++)
        product *= (size_t) shape.size[i];
    return product;
}

static void predict(hpct_model *model, int n, const char *from, const char *to)
{
    size_t in = (size_t) n * count(hpct_model_input_shape(model));
    size_t out = (size_t) n * count(hpct_model_output_shape(model));
    float *input = malloc(in * sizeof(float)), *output = malloc(out * sizeof(float));
    FILE *file = fopen(from, "rb");
    if (input == NULL || output == NULL || file == NULL ||
        fread(input, sizeof(float), in, file) != in)
        exit(HPCT_ERR_NO_INPUT);
    fclose(file);
    must(hpct_model_predict(model, input, n, output));
    file = fopen(to, "wb");
    if (file == NULL || fwrite(output, sizeof(float), out, file) != out || fclose(file) != 0)
        exit(HPCT_ERR_IO);
    free(input);
    free(output);
}

static hpct_status make_builtin(hpct_model **out, char *text)
{
    hpct_builtin_options options = {.name = strtok(text, ":")};
    const char *size = strtok(NULL, ":"), *classes = strtok(NULL, ":");
    if (size != NULL)
        options.input = HPCT_SHAPE(atoi(size), atoi(size), 3);
    if (classes != NULL)
        options.classes = atoi(classes);
    return hpct_model_builtin_with(out, &options);
}

int main(int argc, char **argv)
{
    hpct_model *model;
    hpct_optimizer sgd = {.kind = HPCT_SGD, .learning_rate = 0.1};
    if (argc < 6)
        return HPCT_ERR_USAGE;
    must(ends_with(argv[1], ".json") ? hpct_model_load_json(&model, argv[1])
                                     : make_builtin(&model, argv[1]));
    must(hpct_model_compile(model,
                            hpct_model_ends_in_softmax(model)
                                ? HPCT_SPARSE_CATEGORICAL_CROSSENTROPY
                                : HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
                            &sgd));
    if (strspn(argv[2], "0123456789") == strlen(argv[2]))
        must(hpct_model_initialize(model, strtoull(argv[2], NULL, 10)));
    else
        must(hpct_model_load_weights(model, argv[2]));
    predict(model, atoi(argv[3]), argv[4], argv[5]);
    for (int i = 6; i < argc; i++)
        must(ends_with(argv[i], ".json") ? hpct_model_save_json(model, argv[i])
                                         : hpct_model_save_weights(model, argv[i]));
    hpct_model_free(model);
    return HPCT_OK;
}
