/* mnist-cnn: the small image classifier of TensorFlow's multi-worker tutorial; outputs logits. */
#include "nn/graph/model/builtin.h"

static void describe(hpct_model *model, int classes)
{
    hpct_model_add_reshape(model, HPCT_SHAPE(28, 28, 1));
    hpct_model_add_conv2d(model,
                          &(hpct_conv2d){.filters = 32, .kernel = {3, 3}, .activation = HPCT_RELU});
    hpct_model_add_flatten(model);
    hpct_model_add_dense(model, &(hpct_dense){.units = 128, .activation = HPCT_RELU});
    hpct_model_add_dense(model, &(hpct_dense){.units = classes});
}

const hpct_builtin hpct_builtin_mnist_cnn = {
    .name = "mnist-cnn",
    .input = {.rank = 2, .size = {28, 28}},
    .classes = 10,
    .describe = describe,
};
