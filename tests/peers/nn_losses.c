/* tests/peers/nn_losses.c - trains a built-in model for some steps and leaves what another
 * framework needs to repeat it: FOLDER/first.safetensors, last.safetensors, inputs.f32, labels.i32
 * (all batches one after the other), outputs.f32 (of the last batch). Prints one loss (mean) and
 * accuracy per step.
 *
 *   nn_losses MODEL[:SIDE:CLASSES] BACKEND BATCH STEPS RATE MOMENTUM FOLDER */
#include "nn/graph/rng.h"
#include "nn/graph/shape.h"
#include "nn/run/step.h"
#include "tests/peers/peers.h"

/* "resnet50v2:64:10" takes pictures of 64 x 64 x 3 and has 10 classes. */
static hpct_model *make(const char *text)
{
    char name[64] = "";
    int side = 0, classes = 0;
    hpct_model *model;
    sscanf(text, "%63[^:]:%d:%d", name, &side, &classes);
    hpct_builtin_options options = {.name = name, .classes = classes};
    if (side > 0)
        options.input = HPCT_SHAPE(side, side, 3);
    must(hpct_model_builtin_with(&model, &options));
    return model;
}

/* Bright spots whose place goes with the label. */
static void fill(hpct_model *model, int n, size_t size, int classes, uint32_t t)
{
    for (int s = 0; s < n; s++) {
        int label = (int) (hpct_graph_uniform(1, t, (uint64_t) s) * (float) classes);
        hpct_model_labels(model)[s] = label;
        for (size_t i = 0; i < size; i++) {
            float u = hpct_graph_uniform(2, t, (uint64_t) s * size + i);
            bool spot = i * (size_t) classes / size == (size_t) label;
            hpct_model_input(model)[(size_t) s * size + i] = spot ? u : 0.5f * u * u;
        }
    }
}

int main(int argc, char **argv)
{
    if (argc != 8) {
        fprintf(stderr,
                "usage: nn_losses MODEL[:SIDE:CLASSES] BACKEND BATCH STEPS RATE MOMENTUM FOLDER\n");
        return HPCT_ERR_USAGE;
    }
    int batch = atoi(argv[3]), steps = atoi(argv[4]);
    folder = argv[7];
    hpct_model *model = make(argv[1]);
    bool logits = strcmp(argv[1], "mnist-cnn") == 0;
    hpct_optimizer sgd = {
        .kind = HPCT_SGD, .learning_rate = atof(argv[5]), .momentum = atof(argv[6])};
    must(hpct_model_compile(model,
                            logits ? HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS
                                   : HPCT_SPARSE_CATEGORICAL_CROSSENTROPY,
                            &sgd));
    must(hpct_model_initialize(model, 1));
    must(hpct_model_save_weights(model, in_folder("first.safetensors")));
    hpct_run_build_options options = {
        .backend = argv[2], .batch_sizes = &batch, .num_batch_sizes = 1, .fuse_update = true};
    must(hpct_model_build(model, &options));
    hpct_shape shape = hpct_model_input_shape(model);
    size_t size = hpct_graph_shape_count(&shape), n = (size_t) batch;
    int classes = hpct_model_output_shape(model).size[0];
    FILE *inputs = open_file("inputs.f32", "wb"), *labels = open_file("labels.i32", "wb"),
         *outputs = open_file("outputs.f32", "wb");
    for (int t = 0; t < steps; t++) {
        hpct_backend_batch_sums sums;
        fill(model, batch, size, classes, (uint32_t) t);
        fwrite(hpct_model_input(model), sizeof(float), n * size, inputs);
        fwrite(hpct_model_labels(model), sizeof(int32_t), n, labels);
        must(hpct_model_forward(model, batch, true));
        must(hpct_model_loss(model, batch, 1.0f / (float) batch, &sums));
        printf("%.9g %.9g\n", sums.loss / batch, (double) sums.correct / batch);
        if (t == steps - 1)
            fwrite(hpct_model_output(model), sizeof(float), n * (size_t) classes, outputs);
        must(hpct_model_backward(model, batch));
        must(hpct_model_update(model));
    }
    must(hpct_model_save_weights(model, in_folder("last.safetensors")));
    int failed = fclose(inputs) | fclose(labels) | fclose(outputs);
    hpct_model_free(model);
    return failed ? HPCT_ERR_IO : 0;
}
