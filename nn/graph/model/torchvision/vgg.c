/* VGG16 and VGG19 (Simonyan and Zisserman, 2014) of torchvision/models/vgg.py, for pictures of 224
 * to 255 pixels: of these its AdaptiveAvgPool2d((7, 7)) leaves the 7 x 7 cells as they are. */
#include "nn/graph/model/torchvision/parts.h"

#define NUM_BLOCKS 5
#define DROP 0.5

static void describe(hpct_model *model, int classes, const int convs[NUM_BLOCKS])
{
    static const int filters[NUM_BLOCKS] = {64, 128, 256, 512, 512};
    int module = 0; /* convolutions, their ReLUs and poolings are counted */
    hpct_vision_normalize(model);
    for (int b = 0; b < NUM_BLOCKS; b++) {
        for (int i = 0; i < convs[b]; i++, module += 2) {
            hpct_builtin_part_name(model, "features.%d", module);
            hpct_model_add_conv2d(model, &(hpct_conv2d){.filters = filters[b],
                                                        .kernel = {3, 3},
                                                        .padding = HPCT_SAME,
                                                        .activation = HPCT_RELU});
        }
        hpct_model_add_max_pool2d(model, &(hpct_max_pool2d){.pool = {2, 2}});
        module++;
    }
    hpct_model_add_flatten(model);
    hpct_model_name_layer(model, "classifier.0");
    hpct_model_add_dense(model, &(hpct_dense){.units = 4096, .activation = HPCT_RELU});
    hpct_model_add_dropout(model, DROP);
    hpct_model_name_layer(model, "classifier.3");
    hpct_model_add_dense(model, &(hpct_dense){.units = 4096, .activation = HPCT_RELU});
    hpct_vision_classifier(model, "classifier.6", classes, DROP);
}

static void describe_16(hpct_model *model, int classes)
{
    describe(model, classes, (const int[]){2, 2, 3, 3, 3});
}

static void describe_19(hpct_model *model, int classes)
{
    describe(model, classes, (const int[]){2, 2, 4, 4, 4});
}

const hpct_builtin hpct_vision_vgg16 = HPCT_VISION("vgg16-torchvision", 224, describe_16);
const hpct_builtin hpct_vision_vgg19 = HPCT_VISION("vgg19-torchvision", 224, describe_19);
