/* Which model: its options, for all subcommands that make one, and the model that they ask for. */
#include "agent/cli/cli.h"
#include "base/nearest.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
    KEY_MODEL = 1024,
    KEY_CLASSES,
    KEY_RESIZE,
    KEY_PRECISION,
    KEY_DEVICE,
};

static const struct argp_option entries[] = {
    {"model", KEY_MODEL, "NAME|FILE", 0,
     "mnist-cnn, mnist-convnet, resnet50, resnet50v2, resnet101v2, resnet152v2, or FILE.json as "
     "Keras' to_json() wrote it",
     1},
    {"classes", KEY_CLASSES, "N", 0, "of the model (default: mnist 10, resnets 1000)", 1},
    {"resize", KEY_RESIZE, "WxH", 0,
     "size of a resnet's input (default 224x224); pictures of data are resized to it, bilinear as "
     "tf.image.resize",
     1},
    {"precision", KEY_PRECISION, "NAME", 0,
     "fp32, or bf16 or fp16 (GPUs only): convolutions and dense layers in 16 bits, weights and "
     "gradients in fp32 (default: that of FILE.json's dtype policy, else fp32)",
     1},
    {"device", KEY_DEVICE, "NAME", 0,
     "cpu, cuda (the GPU of this rank), or auto (default): the GPU where there is one", 1},
    {0},
};

static const char *const devices[] = {"auto", "cpu", "cuda", NULL};

static error_t parse(int key, char *value, struct argp_state *state)
{
    hpct_cli_choice *c = state->input;
    switch (key) {
    case KEY_MODEL:
        c->name = value;
        return 0;
    case KEY_CLASSES:
        c->classes = (int) hpct_cli_integer("classes", value, 1, 1 << 20);
        return 0;
    case KEY_RESIZE:
        hpct_cli_resize(value, &c->width, &c->height);
        return 0;
    case KEY_PRECISION:
        if (hpct_precision_find(&c->precision, value) != HPCT_OK)
            hpct_cli_usage("--precision: %s", hpct_last_error());
        c->has_precision = true;
        return 0;
    case KEY_DEVICE:
        if (strncasecmp(value, "gpu", 3) == 0)
            hpct_cli_usage("--device: '%s' is unknown; GPUs are cuda", value);
        c->device = devices[hpct_cli_name("device", value, devices)];
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp hpct_cli_model_argp = {.options = entries, .parser = parse};

/* ---- models ---- */

static const hpct_cli_model models[] = {
    {"mnist-cnn", 64, 0.2, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, false},
    {"mnist-convnet", 100, 0.01, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, false},
    {"resnet50", 32, 0.01, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, true},
    {"resnet50v2", 32, 0.01, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, true},
    {"resnet101v2", 32, 0.01, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, true},
    {"resnet152v2", 32, 0.01, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, true},
};
#define NUM_MODELS (sizeof models / sizeof models[0])

/* A model of the user's own has Keras' defaults, and the loss that its last layer asks for. */
static hpct_status load_model(hpct_model **out, const hpct_cli_model **defaults,
                              const hpct_cli_choice *choice)
{
    static hpct_cli_model own = {.name = "", .batch_size = 32, .learning_rate = 0.01};
    if (choice->classes > 0)
        hpct_cli_usage("--classes is for built-in models; %s has its own", choice->name);
    hpct_status status = hpct_model_load_json(out, choice->name);
    *defaults = &own;
    if (status != HPCT_OK)
        return status;
    status = hpct_model_own_loss(*out, &own.loss);
    if (status != HPCT_OK) {
        hpct_model_free(*out);
        *out = NULL;
    }
    return status;
}

/* Whether it is one of Keras' rather than one of ours; what the file has in it is seen then. */
static bool is_file(const char *name)
{
    for (size_t i = 0; name != NULL && i < NUM_MODELS; i++) {
        if (strcmp(models[i].name, name) == 0)
            return false;
    }
    return name != NULL &&
           (strchr(name, '.') != NULL || strchr(name, '/') != NULL || access(name, F_OK) == 0);
}

static const hpct_cli_model *find_model(const char *name)
{
    char names[256] = "", hint[HPCT_NEAREST_HINT];
    hpct_nearest best = {0};
    for (size_t i = 0; i < NUM_MODELS; i++) {
        if (name != NULL && strcmp(models[i].name, name) == 0)
            return &models[i];
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i == 0 ? "" : ", ", models[i].name);
        if (name != NULL)
            hpct_nearest_try(&best, name, models[i].name);
    }
    if (name == NULL)
        hpct_cli_usage("--model is missing; there are: %s, and FILE.json of Keras", names);
    hpct_cli_usage("--model: there is no model \"%s\"%s; there are: %s, and FILE.json of Keras",
                   name, hpct_nearest_hint(&best, hint), names);
}

static hpct_status make_builtin(hpct_model **out, const hpct_cli_model **defaults,
                                const hpct_cli_choice *choice)
{
    const hpct_cli_model *found = find_model(choice->name);
    hpct_builtin_options options = {.name = choice->name, .classes = choice->classes};
    if (found->any_size && choice->width > 0)
        options.input = HPCT_SHAPE(choice->height, choice->width, 3);
    *defaults = found;
    return hpct_model_builtin_with(out, &options);
}

hpct_status hpct_cli_make_model(hpct_model **out, const hpct_cli_model **defaults,
                                const hpct_cli_choice *choice, double learning_rate,
                                double momentum)
{
    hpct_status status = is_file(choice->name) ? load_model(out, defaults, choice)
                                               : make_builtin(out, defaults, choice);
    if (status != HPCT_OK)
        return status;
    hpct_compile_options compile = {
        .loss = (*defaults)->loss,
        .precision = choice->has_precision ? choice->precision : hpct_model_precision(*out),
        .optimizer = {.kind = HPCT_SGD,
                      .learning_rate =
                          learning_rate < 0 ? (*defaults)->learning_rate : learning_rate,
                      .momentum = momentum},
    };
    status = hpct_model_compile_with(*out, &compile);
    if (status != HPCT_OK) {
        hpct_model_free(*out);
        *out = NULL;
    }
    return status;
}

hpct_status hpct_cli_load_weights(hpct_model *model, const char *path, bool allow_nan)
{
    return allow_nan ? hpct_model_load_any_weights(model, path)
                     : hpct_model_load_weights(model, path);
}
