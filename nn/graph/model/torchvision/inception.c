/* InceptionV3 (Szegedy and others, 2015) of torchvision/models/inception.py, without the auxiliary
 * classifier, and with transform_input=True, as it is with weights for ImageNet: of pictures that
 * are normalized it makes x / 127.5 - 1 of a byte x. Unlike Keras', normalizations have a gamma,
 * and the padding of means counts as zeros. */
#include "nn/graph/model/inception.h"
#include "nn/graph/model/torchvision/parts.h"

#define EPSILON 1e-3
#define DROP 0.5

static void name_conv(hpct_model *model, const char *name)
{
    hpct_builtin_part_name(model, "%s.conv", name);
}

static void add_norm(hpct_model *model, const char *name)
{
    char norm[HPCT_GRAPH_NAME_SIZE + 4];
    snprintf(norm, sizeof norm, "%s.bn", name);
    hpct_vision_norm(model, norm, EPSILON);
}

/* Of a window, of which padding is a part. */
static void add_mean(hpct_model *model)
{
    hpct_vision_pad(model, 1);
    hpct_model_add_average_pool2d(model, &(hpct_average_pool2d){.pool = {3, 3}, .strides = {1, 1}});
}

static void describe_v3(hpct_model *model, int classes)
{
    static const hpct_builtin_inception_form form = {name_conv, add_norm, add_mean, false};
    hpct_model_add_rescaling(model, 1 / 127.5, -1);
    hpct_builtin_inception(model, &form);
    hpct_model_add_global_average_pool2d(model);
    hpct_vision_classifier(model, "fc", classes, DROP);
}

const hpct_builtin hpct_vision_inceptionv3 =
    HPCT_VISION("inceptionv3-torchvision", 299, describe_v3);
