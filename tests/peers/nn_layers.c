/* tests/peers/nn_layers.c - one step of a model that another framework wrote down, without the
 * update: FOLDER/model.json, weights.safetensors, inputs.f32 and labels.i32 are read; outputs.f32
 * and, in training, gradients.safetensors are left there. Prints the mean loss.
 *
 *   nn_layers FOLDER BACKEND BATCH TRAINING SEED STEP FIRST
 *
 * TRAINING is 0 or 1; the last three are what random layers draw from. */
#include "nn/graph/shape.h"
#include "nn/run/step.h"
#include "tests/peers/peers.h"

static void read_all(const char *name, void *to, size_t bytes)
{
    FILE *file = open_file(name, "rb");
    read_next(file, to, bytes);
    fclose(file);
}

int main(int argc, char **argv)
{
    if (argc != 8) {
        fprintf(stderr, "usage: nn_layers FOLDER BACKEND BATCH TRAINING SEED STEP FIRST\n");
        return HPCT_ERR_USAGE;
    }
    folder = argv[1];
    int batch = atoi(argv[3]);
    size_t n = (size_t) batch;
    hpct_model *model;
    must(hpct_model_load_json(&model, in_folder("model.json")));
    must(hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
                            &(hpct_optimizer){.learning_rate = 0.1}));
    must(hpct_model_initialize(model, 1));
    must(hpct_model_load_weights(model, in_folder("weights.safetensors")));
    hpct_run_build_options options = {
        .backend = argv[2], .batch_sizes = &batch, .num_batch_sizes = 1};
    must(hpct_model_build(model, &options));
    hpct_shape input = hpct_model_input_shape(model), output = hpct_model_output_shape(model);
    read_all("inputs.f32", hpct_model_input(model),
             n * hpct_graph_shape_count(&input) * sizeof(float));
    read_all("labels.i32", hpct_model_labels(model), n * sizeof(int32_t));
    hpct_backend_batch_sums sums;
    hpct_model_set_position(model, strtoull(argv[5], NULL, 0), atoll(argv[6]), atoll(argv[7]));
    bool training = atoi(argv[4]) != 0;
    must(hpct_model_forward(model, batch, training));
    must(hpct_model_loss(model, batch, training ? 1.0f / (float) batch : 0, &sums));
    if (training)
        must(hpct_model_backward(model, batch));
    printf("%.9g\n", sums.loss / batch);
    write_file("outputs.f32", hpct_model_output(model),
               n * hpct_graph_shape_count(&output) * sizeof(float));
    size_t count;
    const float *gradients = hpct_model_gradients(model, &count);
    memcpy(hpct_model_parameters(model, &count), gradients, count * sizeof *gradients);
    if (training)
        must(hpct_model_save_weights(model, in_folder("gradients.safetensors")));
    hpct_model_free(model);
    return 0;
}
