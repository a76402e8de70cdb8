/* tests/peers/nn_optimizers.c - trains a small model for some steps with the loss and optimizer
 * that KEY=VALUE pairs describe, and leaves what another framework needs to repeat it:
 * FOLDER/first.safetensors, one.safetensors (after the first update), last.safetensors, inputs.f32,
 * labels.i32, targets.f32 (all batches one after the other). Prints one line a step: loss,
 * accuracy, top-k accuracy, learning rate.
 *
 *   nn_optimizers BACKEND STEPS FOLDER KEY=VALUE… */
#include "nn/graph/rng.h"
#include "nn/graph/shape.h"
#include "nn/run/step.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 16

typedef struct settings {
    hpct_compile_options compile;
    int outputs, dense;
    int activation;
    double weights[5];
} settings;

/* Where a key's value goes. */
static const struct key {
    const char *name;
    enum { INT, INT64, BOOL, DOUBLE } type;
    size_t offset;
} keys[] = {
#define OPTIMIZER(name, type)                                                                      \
    {                                                                                              \
#name, type, offsetof(settings, compile.optimizer.name)                                    \
    }
#define SCHEDULE(name, type)                                                                       \
    {                                                                                              \
#name, type, offsetof(settings, compile.optimizer.schedule.name)                           \
    }
    OPTIMIZER(kind, INT),
    OPTIMIZER(learning_rate, DOUBLE),
    OPTIMIZER(momentum, DOUBLE),
    OPTIMIZER(nesterov, BOOL),
    OPTIMIZER(weight_decay, DOUBLE),
    OPTIMIZER(rho, DOUBLE),
    OPTIMIZER(epsilon, DOUBLE),
    OPTIMIZER(centered, BOOL),
    OPTIMIZER(trust_coefficient, DOUBLE),
    OPTIMIZER(clipvalue, DOUBLE),
    OPTIMIZER(clipnorm, DOUBLE),
    OPTIMIZER(global_clipnorm, DOUBLE),
    OPTIMIZER(gradient_accumulation_steps, INT),
    {"schedule", INT, offsetof(settings, compile.optimizer.schedule.kind)},
    SCHEDULE(warmup_steps, INT64),
    SCHEDULE(warmup_start, DOUBLE),
    SCHEDULE(decay_steps, INT64),
    SCHEDULE(decay_rate, DOUBLE),
    SCHEDULE(staircase, BOOL),
    SCHEDULE(alpha, DOUBLE),
    SCHEDULE(power, DOUBLE),
    SCHEDULE(end_learning_rate, DOUBLE),
    SCHEDULE(num_boundaries, INT),
    {"boundary_0", INT64, offsetof(settings, compile.optimizer.schedule.boundaries[0])},
    {"boundary_1", INT64, offsetof(settings, compile.optimizer.schedule.boundaries[1])},
    {"value_0", DOUBLE, offsetof(settings, compile.optimizer.schedule.values[0])},
    {"value_1", DOUBLE, offsetof(settings, compile.optimizer.schedule.values[1])},
    {"value_2", DOUBLE, offsetof(settings, compile.optimizer.schedule.values[2])},
    {"loss", INT, offsetof(settings, compile.loss)},
    {"label_smoothing", DOUBLE, offsetof(settings, compile.label_smoothing)},
    {"focal_gamma", DOUBLE, offsetof(settings, compile.focal_gamma)},
    {"focal_alpha", DOUBLE, offsetof(settings, compile.focal_alpha)},
    {"huber_delta", DOUBLE, offsetof(settings, compile.huber_delta)},
    {"class_weights", INT, offsetof(settings, compile.num_class_weights)},
    {"weight_0", DOUBLE, offsetof(settings, weights[0])},
    {"weight_1", DOUBLE, offsetof(settings, weights[1])},
    {"weight_2", DOUBLE, offsetof(settings, weights[2])},
    {"weight_3", DOUBLE, offsetof(settings, weights[3])},
    {"weight_4", DOUBLE, offsetof(settings, weights[4])},
    {"top_k", INT, offsetof(settings, compile.top_k)},
    {"outputs", INT, offsetof(settings, outputs)},
    {"activation", INT, offsetof(settings, activation)},
    {"dense", INT, offsetof(settings, dense)},
};

static void set(settings *s, const char *pair)
{
    size_t length = strcspn(pair, "=");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (strlen(keys[i].name) != length || strncmp(keys[i].name, pair, length) != 0)
            continue;
        char *field = (char *) s + keys[i].offset;
        double value = atof(pair + length + 1);
        if (keys[i].type == INT)
            memcpy(field, &(int){(int) value}, sizeof(int));
        else if (keys[i].type == INT64)
            memcpy(field, &(int64_t){(int64_t) value}, sizeof(int64_t));
        else if (keys[i].type == BOOL)
            memcpy(field, &(bool){value != 0}, sizeof(bool));
        else
            memcpy(field, &value, sizeof value);
        return;
    }
    fprintf(stderr, "nn_optimizers: there is no key %s\n", pair);
    exit(HPCT_ERR_USAGE);
}

static void check(hpct_status status)
{
    if (status == HPCT_OK)
        return;
    fprintf(stderr, "nn_optimizers: %s\n", hpct_last_error());
    exit((int) status);
}

static const char *path_in(const char *folder, const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static FILE *create(const char *folder, const char *name)
{
    FILE *file = fopen(path_in(folder, name), "wb");
    if (file == NULL) {
        perror(path_in(folder, name));
        exit(HPCT_ERR_IO);
    }
    return file;
}

static hpct_model *make_model(const settings *s)
{
    hpct_model *model = hpct_model_new("small", HPCT_SHAPE(6, 6, 2));
    hpct_model_add_conv2d(model,
                          &(hpct_conv2d){.filters = 7, .kernel = {3, 3}, .activation = HPCT_RELU});
    hpct_model_add_flatten(model);
    hpct_model_add_dense(model, &(hpct_dense){.units = 20, .activation = HPCT_RELU});
    hpct_model_add_dense(
        model, &(hpct_dense){.units = s->outputs, .activation = (hpct_activation) s->activation});
    return model;
}

/* Labels go with the brightness of the picture's parts, targets are any numbers from 0 to 1. */
static void fill(hpct_model *model, size_t size, int outputs, uint32_t t)
{
    int classes = outputs == 1 ? 2 : outputs;
    for (size_t s = 0; s < BATCH; s++) {
        int label = (int) (hpct_graph_uniform(1, t, s) * (float) classes);
        hpct_model_labels(model)[s] = label;
        for (size_t i = 0; i < size; i++)
            hpct_model_input(model)[s * size + i] =
                hpct_graph_uniform(2, t, s * size + i) *
                (i * (size_t) classes / size == (size_t) label ? 1.0f : 0.5f);
        for (int i = 0; hpct_model_targets(model) != NULL && i < outputs; i++)
            hpct_model_targets(model)[s * (size_t) outputs + (size_t) i] =
                hpct_graph_uniform(3, t, s * 100 + (size_t) i);
    }
}

int main(int argc, char **argv)
{
    settings s = {.outputs = 5};
    if (argc < 4) {
        fprintf(stderr, "usage: nn_optimizers BACKEND STEPS FOLDER KEY=VALUE...\n");
        return HPCT_ERR_USAGE;
    }
    for (int i = 4; i < argc; i++)
        set(&s, argv[i]);
    if (s.compile.num_class_weights > 0)
        s.compile.class_weights = s.weights;
    int batch = BATCH, steps = atoi(argv[2]);
    const char *folder = argv[3];
    hpct_model *model = make_model(&s);
    check(hpct_model_compile_with(model, &s.compile));
    check(hpct_model_initialize(model, 1));
    check(hpct_model_save_weights(model, path_in(folder, "first.safetensors")));
    hpct_run_build_options options = {.backend = argv[1],
                                      .batch_sizes = &batch,
                                      .num_batch_sizes = 1,
                                      .fuse_update = true,
                                      .dense_targets = s.dense != 0};
    check(hpct_model_build(model, &options));
    hpct_shape shape = hpct_model_input_shape(model);
    size_t size = hpct_graph_shape_count(&shape);
    FILE *inputs = create(folder, "inputs.f32"), *labels = create(folder, "labels.i32"),
         *targets = create(folder, "targets.f32");
    int updates = 0;
    for (int t = 0; t < steps; t++) {
        bool due;
        hpct_backend_batch_sums sums;
        fill(model, size, s.outputs, (uint32_t) t);
        fwrite(hpct_model_input(model), sizeof(float), BATCH * size, inputs);
        fwrite(hpct_model_labels(model), sizeof(int32_t), BATCH, labels);
        if (s.dense)
            fwrite(hpct_model_targets(model), sizeof(float), BATCH * (size_t) s.outputs, targets);
        double rate = hpct_model_learning_rate(model);
        check(hpct_model_forward(model, BATCH, true));
        check(hpct_model_loss(model, BATCH, 1.0f / BATCH, &sums));
        printf("%.9g %.9g %.9g %.9g\n", sums.loss / BATCH, (double) sums.correct / BATCH,
               (double) sums.in_top_k / BATCH, rate);
        check(hpct_model_backward(model, BATCH));
        check(hpct_model_accumulate(model, &due));
        if (due)
            check(hpct_model_update(model));
        if (due && ++updates == 1)
            check(hpct_model_save_weights(model, path_in(folder, "one.safetensors")));
    }
    check(hpct_model_save_weights(model, path_in(folder, "last.safetensors")));
    int failed = fclose(inputs) | fclose(labels) | fclose(targets);
    hpct_model_free(model);
    return failed ? HPCT_ERR_IO : 0;
}
