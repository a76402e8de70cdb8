/* The built-in models by name. */
#include "nn/models/builtin.h"

#include "base/status.h"
#include "nn/graph/graph.h"
#include "nn/graph/model/builtin.h"
#include "nn/graph/model/torchvision/parts.h"

#include <string.h>

static const hpct_builtin *const builtins[] = {
    &hpct_builtin_mnist_cnn,      &hpct_builtin_mnist_convnet,
    &hpct_builtin_resnet50,       &hpct_builtin_resnet50v2,
    &hpct_builtin_resnet101v2,    &hpct_builtin_resnet152v2,
    &hpct_builtin_vgg16,          &hpct_builtin_vgg19,
    &hpct_builtin_densenet121,    &hpct_builtin_mobilenet,
    &hpct_builtin_mobilenetv2,    &hpct_builtin_mobilenetv3small,
    &hpct_builtin_efficientnetb0, &hpct_builtin_efficientnetb0_imagenet,
    &hpct_builtin_inceptionv3,    &hpct_builtin_xception,
    &hpct_vision_resnet18,        &hpct_vision_resnet34,
    &hpct_vision_resnet50,        &hpct_vision_resnet101,
    &hpct_vision_resnet152,       &hpct_vision_vgg16,
    &hpct_vision_vgg19,           &hpct_vision_densenet121,
    &hpct_vision_mobilenetv2,     &hpct_vision_mobilenetv3small,
    &hpct_vision_efficientnetb0,  &hpct_vision_inceptionv3,
};
#define NUM_BUILTINS (sizeof builtins / sizeof *builtins)

static hpct_status make(hpct_model **out, const hpct_builtin *builtin,
                        const hpct_builtin_options *options)
{
    if (options->classes < 0)
        return hpct_fail(HPCT_ERR_USAGE, "%s cannot have %d classes", builtin->name,
                         options->classes);
    hpct_model *model =
        hpct_model_new(builtin->name, options->input.rank > 0 ? options->input : builtin->input);
    if (model == NULL)
        return hpct_fail_memory(0);
    model->torchvision = builtin->torchvision;
    builtin->describe(model, options->classes > 0 ? options->classes : builtin->classes);
    *out = model;
    return HPCT_OK;
}

hpct_status hpct_model_builtin_with(hpct_model **out, const hpct_builtin_options *options)
{
    char names[1024] = "";
    for (size_t i = 0; i < NUM_BUILTINS; i++) {
        if (strcmp(builtins[i]->name, options->name) == 0)
            return make(out, builtins[i], options);
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i == 0 ? "" : ", ", builtins[i]->name);
    }
    return hpct_fail(HPCT_ERR_USAGE, "there is no model \"%s\"; there are: %s", options->name,
                     names);
}

const char *hpct_model_lacks_normalization(const hpct_model *model)
{
    const char *form = model->torchvision;
    bool lacks = model->has_torch_weights && form != NULL && strcmp(form, model->name) != 0;
    return lacks ? form : NULL;
}

const char *hpct_builtin_torchvision(int index)
{
    for (size_t i = 0; i < NUM_BUILTINS; i++) {
        const char *form = builtins[i]->torchvision;
        if (form != NULL && strcmp(form, builtins[i]->name) == 0 && index-- == 0)
            return form;
    }
    return NULL;
}

hpct_status hpct_model_builtin(hpct_model **out, const char *name)
{
    return hpct_model_builtin_with(out, &(hpct_builtin_options){.name = name});
}
