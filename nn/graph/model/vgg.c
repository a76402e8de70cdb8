/* VGG16 and VGG19: Simonyan and Zisserman, Very Deep Convolutional Networks for Large-Scale Image
 * Recognition, 2014; as keras.applications. */
#include "nn/graph/model/parts.h"

#define NUM_BLOCKS 5

static void add_block(hpct_model *model, int block, int convs, int filters)
{
    for (int i = 1; i <= convs; i++) {
        hpct_builtin_part_name(model, "block%d_conv%d", block, i);
        hpct_model_add_conv2d(model, &(hpct_conv2d){.filters = filters,
                                                    .kernel = {3, 3},
                                                    .padding = HPCT_SAME,
                                                    .activation = HPCT_RELU});
    }
    hpct_builtin_part_name(model, "block%d_pool", block);
    hpct_model_add_max_pool2d(model, &(hpct_max_pool2d){.pool = {2, 2}});
}

static void describe(hpct_model *model, int classes, const int convs[NUM_BLOCKS])
{
    static const int filters[NUM_BLOCKS] = {64, 128, 256, 512, 512};
    for (int i = 0; i < NUM_BLOCKS; i++)
        add_block(model, i + 1, convs[i], filters[i]);
    hpct_model_name_layer(model, "flatten");
    hpct_model_add_flatten(model);
    for (int i = 1; i <= 2; i++) {
        hpct_builtin_part_name(model, "fc%d", i);
        hpct_model_add_dense(model, &(hpct_dense){.units = 4096, .activation = HPCT_RELU});
    }
    hpct_builtin_part_predictions(model, classes);
}

static void describe_16(hpct_model *model, int classes)
{
    describe(model, classes, (const int[]){2, 2, 3, 3, 3});
}

static void describe_19(hpct_model *model, int classes)
{
    describe(model, classes, (const int[]){2, 2, 4, 4, 4});
}

const hpct_builtin hpct_builtin_vgg16 =
    HPCT_BUILTIN_IMAGENET_AS_TORCHVISION("vgg16", 224, describe_16);
const hpct_builtin hpct_builtin_vgg19 =
    HPCT_BUILTIN_IMAGENET_AS_TORCHVISION("vgg19", 224, describe_19);
