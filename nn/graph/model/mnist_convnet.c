/* mnist-convnet: two convolutions with pooling, then a softmax; outputs probabilities. */
#include "nn/graph/model/builtin.h"

static void describe(hpct_model *model, int classes)
{
    hpct_model_add_conv2d(model,
                          &(hpct_conv2d){.filters = 32, .kernel = {5, 5}, .activation = HPCT_RELU});
    hpct_model_add_max_pool2d(model, &(hpct_max_pool2d){.pool = {2, 2}});
    hpct_model_add_conv2d(model,
                          &(hpct_conv2d){.filters = 64, .kernel = {5, 5}, .activation = HPCT_RELU});
    hpct_model_add_max_pool2d(model, &(hpct_max_pool2d){.pool = {2, 2}});
    hpct_model_add_flatten(model);
    hpct_model_add_dense(model, &(hpct_dense){.units = classes, .activation = HPCT_SOFTMAX});
}

const hpct_builtin hpct_builtin_mnist_convnet = {
    .name = "mnist-convnet",
    .input = {.rank = 3, .size = {28, 28, 1}},
    .classes = 10,
    .describe = describe,
};
