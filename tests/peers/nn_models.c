/* tests/peers/nn_models.c - trains a whole model for some steps from weights and batches that
 * another framework wrote down. FOLDER/weights.safetensors, inputs.f32 and labels.i32 (all batches
 * one after the other) are read. What is left there: predictions.f32, of the first batch with the
 * first weights, as in inference; outputs.f32, of the first batch in training;
 * gradients.safetensors, of the first batch, with the states (moving statistics) behind it;
 * last.safetensors, the weights in the end. Prints the mean loss of every step.
 *
 *   nn_models MODEL FOLDER BACKEND BATCH STEPS RATE MOMENTUM [LAST]
 *
 * MODEL: a built-in one, a residual network with its size and classes (resnet50v2:32:10), or
 * model.json, which is in FOLDER too. LAST: where the last weights are saved besides. */
#include "nn/graph/shape.h"
#include "nn/run/step.h"
#include "tests/peers/peers.h"

static hpct_model *make(char *text)
{
    hpct_model *model;
    if (strcmp(text, "model.json") == 0) {
        must(hpct_model_load_json(&model, in_folder(text)));
        return model;
    }
    hpct_builtin_options options = {.name = strtok(text, ":")};
    const char *side = strtok(NULL, ":"), *classes = strtok(NULL, ":");
    if (side != NULL)
        options.input = HPCT_SHAPE(atoi(side), atoi(side), 3);
    if (classes != NULL)
        options.classes = atoi(classes);
    must(hpct_model_builtin_with(&model, &options));
    return model;
}

/* Weights are saved by their names: so the gradients take their place for that. */
static void save_gradients(hpct_model *model)
{
    size_t count;
    const float *gradients = hpct_model_gradients(model, &count);
    float *parameters = hpct_model_parameters(model, &count);
    float *kept = malloc(count * sizeof *kept), *shown = malloc(count * sizeof *shown);
    if (kept == NULL || shown == NULL)
        exit(HPCT_ERR_INTERNAL);
    must(hpct_model_read(model, kept, parameters, count));
    must(hpct_model_read(model, shown, gradients, count));
    must(hpct_model_write(model, parameters, shown, count));
    must(hpct_model_save_weights(model, in_folder("gradients.safetensors")));
    must(hpct_model_write(model, parameters, kept, count));
    free(shown);
    free(kept);
}

int main(int argc, char **argv)
{
    if (argc != 8 && argc != 9) {
        fprintf(stderr, "usage: nn_models MODEL FOLDER BACKEND BATCH STEPS RATE MOMENTUM [LAST]\n");
        return HPCT_ERR_USAGE;
    }
    folder = argv[2];
    int batch = atoi(argv[4]), steps = atoi(argv[5]);
    hpct_model *model = make(argv[1]);
    must(hpct_model_compile(
        model,
        hpct_model_ends_in_softmax(model) ? HPCT_SPARSE_CATEGORICAL_CROSSENTROPY
                                          : HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
        &(hpct_optimizer){.learning_rate = atof(argv[6]), .momentum = atof(argv[7])}));
    must(hpct_model_initialize(model, 1));
    must(hpct_model_load_weights(model, in_folder("weights.safetensors")));
    hpct_run_build_options options = {
        .backend = argv[3], .batch_sizes = &batch, .num_batch_sizes = 1};
    must(hpct_model_build(model, &options));
    hpct_shape input = hpct_model_input_shape(model), output = hpct_model_output_shape(model);
    size_t n = (size_t) batch, inputs = n * hpct_graph_shape_count(&input) * sizeof(float),
           outputs = n * hpct_graph_shape_count(&output) * sizeof(float);
    FILE *pictures = open_file("inputs.f32", "rb"), *labels = open_file("labels.i32", "rb");
    for (int t = 0; t < steps; t++) {
        hpct_backend_batch_sums sums;
        read_next(pictures, hpct_model_input(model), inputs);
        read_next(labels, hpct_model_labels(model), n * sizeof(int32_t));
        if (t == 0) {
            must(hpct_model_forward(model, batch, false));
            write_file("predictions.f32", hpct_model_output(model), outputs);
        }
        must(hpct_model_forward(model, batch, true));
        must(hpct_model_loss(model, batch, 1.0f / (float) batch, &sums));
        must(hpct_model_backward(model, batch));
        printf("%.9g\n", sums.loss / batch);
        if (t == 0) {
            write_file("outputs.f32", hpct_model_output(model), outputs);
            save_gradients(model);
        }
        must(hpct_model_update(model));
    }
    must(hpct_model_save_weights(model, in_folder("last.safetensors")));
    if (argc == 9)
        must(hpct_model_save_weights(model, in_folder(argv[8])));
    fclose(pictures);
    fclose(labels);
    hpct_model_free(model);
    return 0;
}
