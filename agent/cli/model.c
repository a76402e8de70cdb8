/* Creates the model that the options select. */
#include "agent/cli/cli.h"
#include "base/nearest.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define IMAGENET(NAME, SCALE)                                                                      \
    {                                                                                              \
        NAME, 32, 0.01, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, true, HPCT_SCALE_##SCALE             \
    }
static const hpct_cli_model models[] = {
    {"mnist-cnn", 64, 0.2, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, false,
     HPCT_SCALE_UNIT},
    {"mnist-convnet", 100, 0.01, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, false, HPCT_SCALE_UNIT},
    IMAGENET("resnet50", UNIT),
    IMAGENET("resnet50v2", UNIT),
    IMAGENET("resnet101v2", UNIT),
    IMAGENET("resnet152v2", UNIT),
    IMAGENET("vgg16", UNIT),
    IMAGENET("vgg19", UNIT),
    IMAGENET("densenet121", UNIT),
    IMAGENET("mobilenet", SYMMETRIC),
    IMAGENET("mobilenetv2", SYMMETRIC),
    IMAGENET("mobilenetv3small", NONE),
    IMAGENET("efficientnetb0", NONE),
    IMAGENET("efficientnetb0-imagenet", NONE),
    IMAGENET("inceptionv3", SYMMETRIC),
    IMAGENET("xception", SYMMETRIC),
    IMAGENET("resnet18-torchvision", NONE),
    IMAGENET("resnet34-torchvision", NONE),
    IMAGENET("resnet50-torchvision", NONE),
    IMAGENET("resnet101-torchvision", NONE),
    IMAGENET("resnet152-torchvision", NONE),
    IMAGENET("vgg16-torchvision", NONE),
    IMAGENET("vgg19-torchvision", NONE),
    IMAGENET("densenet121-torchvision", NONE),
    IMAGENET("mobilenetv2-torchvision", NONE),
    IMAGENET("mobilenetv3small-torchvision", NONE),
    IMAGENET("efficientnetb0-torchvision", NONE),
    IMAGENET("inceptionv3-torchvision", NONE),
};
#define NUM_MODELS (sizeof models / sizeof models[0])

/* A model file gets Keras' defaults, and the loss that matches its last layer. */
static hpct_status load_model(hpct_model **out, const hpct_cli_model **defaults,
                              const hpct_cli_choice *choice)
{
    static hpct_cli_model own = {.name = "", .batch_size = 32, .learning_rate = 0.01};
    if (choice->classes > 0)
        hpct_cli_usage("--classes is for built-in models; %s has its own", choice->name);
    hpct_status status =
        hpct_model_load_json_sized(out, choice->name, choice->height, choice->width);
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

static const hpct_cli_model *find_builtin(const char *name)
{
    for (size_t i = 0; name != NULL && i < NUM_MODELS; i++) {
        if (strcmp(models[i].name, name) == 0)
            return &models[i];
    }
    return NULL;
}

/* Whether the name is that of a file, not of a built-in model; the file is checked later. */
static bool is_file(const char *name)
{
    return name != NULL && find_builtin(name) == NULL &&
           (strchr(name, '.') != NULL || strchr(name, '/') != NULL || access(name, F_OK) == 0);
}

static const hpct_cli_model *find_model(const char *name)
{
    char names[1024] = "", hint[HPCT_NEAREST_HINT];
    hpct_nearest best = {0};
    const hpct_cli_model *found = find_builtin(name);
    if (found != NULL)
        return found;
    for (size_t i = 0; i < NUM_MODELS; i++) {
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

static hpct_scaling default_scaling(const hpct_cli_choice *choice)
{
    const hpct_cli_model *builtin = find_builtin(choice->name);
    return builtin != NULL ? builtin->scaling : HPCT_SCALE_UNIT;
}

void hpct_cli_set_input(hpct_cli_common *options)
{
    const hpct_cli_choice *choice = &options->model;
    options->input.width = choice->width;
    options->input.height = choice->height;
    options->input.scaling = choice->has_scaling ? choice->scaling : default_scaling(choice);
}

/* ---- from saved weights ---- */

/* Prints "hpc-train: FILE: WHAT" as rank 0 alone. */
__attribute__((format(printf, 2, 3))) static void print_note(const char *file, const char *format,
                                                             ...)
{
    va_list args;
    if (hpct_context_rank_hint() != 0)
        return;
    fprintf(stderr, "hpc-train: %s: ", file);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

static void recall_scaling(hpct_cli_choice *choice, const char *weights,
                           const hpct_trained_with *trained)
{
    const char *usual = hpct_cli_scales[default_scaling(choice)];
    if (!trained->known && !choice->has_scaling)
        print_note(weights, "does not say how its pictures were scaled: using --scale %s", usual);
    if (!trained->known)
        return;
    const char *name = hpct_cli_scales[trained->scaling];
    if (choice->has_scaling && choice->scaling != trained->scaling)
        print_note(weights, "--scale %s is given, but it was trained with --scale %s",
                   hpct_cli_scales[choice->scaling], name);
    if (choice->has_scaling)
        return;
    if (trained->scaling != default_scaling(choice))
        print_note(weights, "--scale %s, as in training", name);
    choice->has_scaling = true;
    choice->scaling = trained->scaling;
}

static void recall_size(hpct_cli_choice *choice, const char *weights,
                        const hpct_trained_with *trained)
{
    bool given = choice->width > 0,
         differs = choice->width != trained->width || choice->height != trained->height;
    if (trained->width == 0 || !differs)
        return;
    if (given) {
        print_note(weights, "--resize %dx%d is given, but it was trained with --resize %dx%d",
                   choice->width, choice->height, trained->width, trained->height);
        return;
    }
    choice->width = trained->width;
    choice->height = trained->height;
    print_note(weights, "--resize %dx%d, as in training", choice->width, choice->height);
}

/* A file that cannot be read is refused when its weights are loaded. */
void hpct_cli_recall(hpct_cli_common *options, bool pictures)
{
    hpct_cli_choice *choice = &options->model;
    hpct_trained_with trained;
    if (hpct_trained_with_read(&trained, options->weights) != HPCT_OK)
        return;
    if (pictures)
        recall_scaling(choice, options->weights, &trained);
    recall_size(choice, options->weights, &trained);
    if (choice->classes == 0 && find_builtin(choice->name) != NULL)
        choice->classes = trained.outputs;
}

void hpct_cli_freeze(hpct_model *model, const hpct_cli_choice *choice)
{
    for (int i = 0; i < HPCT_CLI_PATTERNS && choice->freeze[i] != NULL; i++) {
        hpct_status status = hpct_model_set_trainable(model, choice->freeze[i], false);
        if (status != HPCT_OK)
            hpct_cli_usage("--freeze: %s", hpct_last_error());
    }
}

hpct_status hpct_cli_make_model(hpct_model **out, const hpct_cli_model **defaults,
                                const hpct_cli_choice *choice, double learning_rate,
                                double momentum)
{
    hpct_status status = is_file(choice->name) ? load_model(out, defaults, choice)
                                               : make_builtin(out, defaults, choice);
    if (status != HPCT_OK)
        return status;
    hpct_cli_freeze(*out, choice);
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

static void warn_of_rescaling(const hpct_model *model, const char *path)
{
    const char *form = hpct_model_lacks_normalization(model);
    if (form != NULL)
        fprintf(stderr,
                "hpc-train: warning: %s: weights of torchvision; the model lacks the normalization "
                "of pixels of those for ImageNet, which --model %s has\n",
                path, form);
    if (hpct_model_lacks_rescaling(model))
        fprintf(stderr,
                "hpc-train: warning: %s: weights of keras.applications' EfficientNetB0 for "
                "ImageNet; the model lacks its second Rescaling, which --model "
                "efficientnetb0-imagenet has\n",
                path);
}

hpct_status hpct_cli_load_weights(hpct_model *model, const char *path, bool allow_nan)
{
    struct stat info;
    bool speaks = hpct_context_rank_hint() == 0;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return hpct_checkpoint_load_weights(path, model, allow_nan, speaks ? stderr : NULL);
    hpct_status status =
        allow_nan ? hpct_model_load_any_weights(model, path) : hpct_model_load_weights(model, path);
    if (status == HPCT_OK && speaks)
        warn_of_rescaling(model, path);
    return status;
}

hpct_status hpct_cli_load_weights_of(hpct_model *model, const hpct_cli_common *options, bool speaks)
{
    char *skipped = NULL;
    hpct_load_options load = {.allow_nan = options->allow_nan,
                              .skip_mismatch = options->skip_mismatch,
                              .skipped = &skipped};
    hpct_status status = hpct_model_load_weights_with(model, options->weights, &load);
    if (status == HPCT_OK && skipped[0] != '\0' && speaks)
        fprintf(stderr, "hpc-train: %s: not loaded, with initial values: %s\n", options->weights,
                skipped);
    if (status == HPCT_OK && speaks)
        warn_of_rescaling(model, options->weights);
    free(skipped);
    return status;
}
