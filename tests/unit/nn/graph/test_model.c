/* Describing models: shapes, names, counts, messages, summary, initial values, random numbers,
 * memory plan. */
#include "nn/graph/rng.h"
#include "nn/models/builtin.h"
#include "nn/plan/plan.h"
#include "nn/run/run.h"
#include "tests/unit/unit.h"

#include <math.h>

static const hpct_optimizer sgd = {.kind = HPCT_SGD, .learning_rate = 0.1};

static hpct_model *builtin(const char *name)
{
    hpct_model *model;
    assert_int_equal(hpct_model_builtin(&model, name), HPCT_OK);
    return model;
}

static hpct_status compile(hpct_model *model)
{
    return hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, &sgd);
}

TEST(builtin_models_have_keras_counts)
{
    hpct_model *cnn = builtin("mnist-cnn"), *convnet = builtin("mnist-convnet");
    assert_int_equal(hpct_model_count_parameters(cnn), 2770634);
    assert_int_equal(hpct_model_count_parameters(convnet), 62346);
    assert_int_equal(compile(cnn), HPCT_OK);
    assert_int_equal(compile(convnet), HPCT_OK);
    hpct_shape output = hpct_model_output_shape(cnn);
    assert_true(output.rank == 1 && output.size[0] == 10);
    assert_string_equal(hpct_model_name(convnet), "mnist-convnet");
    hpct_model_free(cnn);
    hpct_model_free(convnet);
}

/* keras.applications: model.count_params() and the layers' names. */
TEST(residual_networks_are_keras)
{
    static const struct {
        const char *name;
        size_t parameters, states;
    } nets[] = {
        {"resnet50", 25636712, 53120},
        {"resnet50v2", 25613800, 45440},
        {"resnet101v2", 44675560, 97664},
        {"resnet152v2", 60380648, 143744},
    };
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        hpct_model *m = builtin(nets[i].name);
        assert_int_equal(compile(m), HPCT_OK);
        assert_int_equal(hpct_model_count_parameters(m), nets[i].parameters);
        assert_int_equal(hpct_model_count_parameters(m) - hpct_model_count_trainable(m),
                         nets[i].states);
        hpct_model_free(m);
    }
    hpct_model *m = builtin("resnet50"); /* v1.5: three blocks halve the picture in the 3x3 */
    int pads = 0;
    for (int i = 0; i < m->num_layers; i++)
        pads += strstr(m->layers[i].name, "_block1_2_pad") != NULL;
    assert_int_equal(pads, 3);
    hpct_model_free(m);
    hpct_builtin_options small = {"resnet50v2", HPCT_SHAPE(32, 48, 1), 10};
    assert_int_equal(hpct_model_builtin_with(&m, &small), HPCT_OK);
    assert_int_equal(compile(m), HPCT_OK);
    assert_int_equal(hpct_model_count_parameters(m), 25613800 - 2 * 7 * 7 * 64 - 990 * 2049);
    assert_string_equal(m->layers[0].name, "conv1_pad");
    assert_string_equal(m->layers[m->num_layers - 1].name, "predictions");
    hpct_model_free(m);
    small.input = HPCT_SHAPE(2, 2, 3);
    assert_int_equal(hpct_model_builtin_with(&m, &small), HPCT_OK); /* said by compile */
    assert_int_equal(compile(m), HPCT_OK);
    hpct_model_free(m);
    small.classes = -1;
    assert_int_equal(hpct_model_builtin_with(&m, &small), HPCT_ERR_USAGE);
}

/* keras.applications: model.count_params(), of which not trained, and the first and last layers
 * with weights. */
TEST(image_networks_are_keras)
{
    static const struct {
        const char *name;
        size_t parameters, states;
        const char *first, *last;
    } nets[] = {
        {"vgg16", 138357544, 0, "block1_conv1/kernel", "predictions/bias"},
        {"vgg19", 143667240, 0, "block1_conv1/kernel", "predictions/bias"},
        {"densenet121", 8062504, 83648, "conv1_conv/kernel", "predictions/bias"},
        {"mobilenet", 4253864, 21888, "conv1/kernel", "conv_preds/bias"},
        {"mobilenetv2", 3538984, 34112, "Conv1/kernel", "predictions/bias"},
        {"mobilenetv3small", 2554968, 12112, "conv/kernel", "logits/bias"},
        {"efficientnetb0", 5330571, 42023, "normalization/mean", "predictions/bias"},
        {"efficientnetb0-imagenet", 5330571, 42023, "normalization/mean", "predictions/bias"},
        {"inceptionv3", 23851784, 34432, "conv2d/kernel", "predictions/bias"},
        {"xception", 22910480, 54528, "block1_conv1/kernel", "predictions/bias"},
    };
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        hpct_model *m = builtin(nets[i].name);
        assert_int_equal(compile(m), HPCT_OK);
        assert_int_equal(hpct_model_count_parameters(m), nets[i].parameters);
        assert_int_equal(hpct_model_count_parameters(m) - hpct_model_count_trainable(m),
                         nets[i].states);
        assert_string_equal(m->params[0].name, nets[i].first);
        assert_string_equal(m->params[m->num_params - 1].name, nets[i].last);
        assert_true(hpct_model_ends_in_softmax(m));
        assert_true(hpct_model_rescales_pixels(m) == (strstr(nets[i].name, "v3small") != NULL ||
                                                      strstr(nets[i].name, "efficient") != NULL));
        hpct_model_free(m);
    }
}

/* torchvision.models: numbers of parameters (those of Inception without the auxiliary classifier's
 * 3326696), and names of modules. */
TEST(forms_are_torchvisions)
{
    static const struct {
        const char *name;
        size_t parameters;
        const char *first, *last;
    } nets[] = {
        {"resnet18-torchvision", 11689512, "conv1/kernel", "fc/bias"},
        {"resnet34-torchvision", 21797672, "conv1/kernel", "fc/bias"},
        {"resnet50-torchvision", 25557032, "conv1/kernel", "fc/bias"},
        {"resnet101-torchvision", 44549160, "conv1/kernel", "fc/bias"},
        {"resnet152-torchvision", 60192808, "conv1/kernel", "fc/bias"},
        {"vgg16-torchvision", 138357544, "features.0/kernel", "classifier.6/bias"},
        {"vgg19-torchvision", 143667240, "features.0/kernel", "classifier.6/bias"},
        {"densenet121-torchvision", 7978856, "features.conv0/kernel", "classifier/bias"},
        {"mobilenetv2-torchvision", 3504872, "features.0.0/kernel", "classifier.1/bias"},
        {"mobilenetv3small-torchvision", 2542856, "features.0.0/kernel", "classifier.3/bias"},
        {"efficientnetb0-torchvision", 5288548, "features.0.0/kernel", "classifier.1/bias"},
        {"inceptionv3-torchvision", 23834568, "Conv2d_1a_3x3.conv/kernel", "fc/bias"},
    };
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        hpct_model *m = builtin(nets[i].name);
        assert_string_equal(hpct_builtin_torchvision((int) i), nets[i].name);
        assert_int_equal(compile(m), HPCT_OK);
        assert_int_equal(hpct_model_count_trainable(m), nets[i].parameters);
        assert_string_equal(m->params[0].name, nets[i].first);
        assert_string_equal(m->params[m->num_params - 1].name, nets[i].last);
        assert_true(hpct_model_ends_in_softmax(m) && hpct_model_rescales_pixels(m));
        hpct_model_free(m);
    }
    assert_null(hpct_builtin_torchvision(sizeof nets / sizeof *nets));
}

/* EfficientNet's VarianceScaling: 2 / fan-out for convolutions, 1 / (3 fan-out) for the last layer;
 * the others have Glorot's. */
TEST(initial_weights_are_keras)
{
    hpct_model *m = builtin("efficientnetb0"), *other = builtin("mobilenetv2");
    int seen = 0;
    for (int i = 0; i < m->num_params; i++) {
        const hpct_graph_param *p = &m->params[i];
        double fan = strcmp(p->name, "stem_conv/kernel") == 0        ? 9 * 32
                     : strcmp(p->name, "block1a_dwconv/kernel") == 0 ? 9
                                                                     : 0;
        if (fan > 0) {
            assert_int_equal(p->initializer, HPCT_GRAPH_INIT_TRUNCATED_NORMAL);
            assert_true(fabs(p->init[1] - sqrt(2 / fan) / 0.8796256610342398) < 1e-12);
            seen++;
        }
        if (strcmp(p->name, "predictions/kernel") == 0) {
            assert_int_equal(p->initializer, HPCT_GRAPH_INIT_UNIFORM);
            assert_true(fabs(p->init[1] - sqrt(1 / 1000.0)) < 1e-12 && p->init[0] == -p->init[1]);
            seen++;
        }
    }
    assert_int_equal(seen, 3);
    assert_int_equal(other->params[0].initializer, HPCT_GRAPH_INIT_GLOROT_UNIFORM);
    hpct_model_free(m);
    hpct_model_free(other);
}

static const hpct_layer *layer_named(const hpct_model *model, const char *name)
{
    for (int i = 0; i < model->num_layers; i++) {
        if (strcmp(model->layers[i].name, name) == 0)
            return &model->layers[i];
    }
    fail_msg("%s has no layer %s", model->name, name);
    return NULL;
}

/* What predictions do not show: rates of dropout, epsilon and momentum of normalizations. */
TEST(settings_of_training_are_theirs)
{
    static const struct {
        const char *model, *layer;
        double dropout, momentum, epsilon;
    } cases[] = {
        {"mobilenet", "dropout", 0.001, 0, 0},
        {"mobilenet", "conv_pw_13_bn", 0, 0.99, 1e-3},
        {"mobilenetv2", "block_16_project_BN", 0, 0.999, 1e-3},
        {"mobilenetv2", "bn_Conv1", 0, 0.999, 1e-3},
        {"mobilenetv3small", "dropout", 0.2, 0, 0},
        {"mobilenetv3small", "expanded_conv_10_expand_bn", 0, 0.999, 1e-3},
        {"efficientnetb0", "block2b_drop", 0.2 * 2 / 16, 0, 0},
        {"efficientnetb0", "block6d_drop", 0.2 * 14 / 16, 0, 0},
        {"efficientnetb0", "top_dropout", 0.2, 0, 0},
        {"efficientnetb0", "block7a_bn", 0, 0.99, 1e-3},
        {"densenet121", "conv5_block16_1_bn", 0, 0.99, 1.001e-5},
        {"inceptionv3", "batch_normalization_93", 0, 0.99, 1e-3},
        {"xception", "block14_sepconv2_bn", 0, 0.99, 1e-3},
        {"resnet18-torchvision", "layer2.0.downsample.1", 0, 0.9, 1e-5},
        {"mobilenetv2-torchvision", "features.17.conv.3", 0, 0.9, 1e-5},
        {"mobilenetv3small-torchvision", "features.0.1", 0, 0.99, 1e-3},
        {"mobilenetv3small-torchvision", "features.11.block.3.1", 0, 0.99, 1e-3},
        {"efficientnetb0-torchvision", "features.8.1", 0, 0.9, 1e-5},
        {"efficientnetb0-torchvision", "dropout", 0.2 * 2 / 16, 0, 0},
        {"efficientnetb0-torchvision", "dropout_9", 0.2, 0, 0},
        {"densenet121-torchvision", "features.norm5", 0, 0.9, 1e-5},
        {"inceptionv3-torchvision", "Mixed_7c.branch_pool.bn", 0, 0.9, 1e-3},
        {"inceptionv3-torchvision", "dropout", 0.5, 0, 0},
        {"vgg16-torchvision", "dropout_1", 0.5, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hpct_model *m = builtin(cases[i].model);
        const hpct_layer_config *c = &layer_named(m, cases[i].layer)->config;
        if (cases[i].dropout > 0) {
            assert_true(fabs(c->dropout.rate - cases[i].dropout) < 1e-12);
        } else {
            assert_true(c->batch_normalization.momentum == cases[i].momentum);
            assert_true(c->batch_normalization.epsilon == cases[i].epsilon);
        }
        hpct_model_free(m);
    }
}

/* Padding before stride 2 depends on the parity of the size: Keras' models of other sizes. */
TEST(image_networks_take_any_size)
{
    static const char *const names[] = {"mobilenet",
                                        "mobilenetv2",
                                        "mobilenetv3small",
                                        "vgg16",
                                        "densenet121",
                                        "inceptionv3",
                                        "xception",
                                        "efficientnetb0",
                                        "mobilenetv2-torchvision",
                                        "vgg16-torchvision",
                                        "inceptionv3-torchvision"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        hpct_model *m;
        hpct_builtin_options odd = {names[i], HPCT_SHAPE(97, 82, 3), 7};
        assert_int_equal(hpct_model_builtin_with(&m, &odd), HPCT_OK);
        assert_int_equal(compile(m), HPCT_OK);
        assert_int_equal(hpct_model_output_shape(m).size[0], 7);
        hpct_model_free(m);
        odd.input = HPCT_SHAPE(0, 1, 3); /* said by compile */
        assert_int_equal(hpct_model_builtin_with(&m, &odd), HPCT_OK);
        assert_int_equal(compile(m), HPCT_ERR_USAGE);
        hpct_model_free(m);
    }
}

TEST(unknown_model_lists_the_names)
{
    hpct_model *model;
    assert_int_equal(hpct_model_builtin(&model, "resnet9000"), HPCT_ERR_USAGE);
    assert_string_equal(hpct_last_error(),
                        "there is no model \"resnet9000\"; there are: mnist-cnn, mnist-convnet, "
                        "resnet50, resnet50v2, resnet101v2, resnet152v2, vgg16, vgg19, "
                        "densenet121, mobilenet, mobilenetv2, mobilenetv3small, efficientnetb0, "
                        "efficientnetb0-imagenet, inceptionv3, xception, resnet18-torchvision, "
                        "resnet34-torchvision, resnet50-torchvision, resnet101-torchvision, "
                        "resnet152-torchvision, vgg16-torchvision, vgg19-torchvision, "
                        "densenet121-torchvision, mobilenetv2-torchvision, "
                        "mobilenetv3small-torchvision, efficientnetb0-torchvision, "
                        "inceptionv3-torchvision");
}

/* The first fault of a model is what compile returns, with the layer's name; it is described by the
 * statements, of `m`. */
#define FAULT(message, ...)                                                                        \
    do {                                                                                           \
        hpct_model *m = hpct_model_new("m", HPCT_SHAPE(28, 28, 1));                                \
        __VA_ARGS__;                                                                               \
        assert_int_equal(compile(m), HPCT_ERR_USAGE);                                              \
        assert_string_equal(hpct_last_error(), message);                                           \
        hpct_model_free(m);                                                                        \
    } while (0)

TEST(faults_of_windows_and_products_are_named)
{
    FAULT("conv2d_1: kernel 5x5 does not fit input 3x3x1",
          hpct_model_add_conv2d(m, &(hpct_conv2d){.filters = 1, .kernel = {26, 26}});
          hpct_model_add_conv2d(m, &(hpct_conv2d){.filters = 1, .kernel = {5, 5}});
          hpct_model_add_dense(m, &(hpct_dense){.units = 0}));
    FAULT("conv2d: filters must be at least 1, not 0",
          hpct_model_add_conv2d(m, &(hpct_conv2d){.filters = 0, .kernel = {3, 3}}));
    FAULT("conv2d: kernel 0x3 must be at least 1x1",
          hpct_model_add_conv2d(m, &(hpct_conv2d){.filters = 2, .kernel = {0, 3}}));
    FAULT("conv2d: strides 1x2 and dilation 2x1 cannot both be above 1",
          hpct_model_add_conv2d(
              m, &(hpct_conv2d){
                     .filters = 2, .kernel = {3, 3}, .strides = {1, 2}, .dilation = {2, 1}}));
    FAULT("conv2d: dilation 1x-2 must be at least 1x1",
          hpct_model_add_conv2d(
              m, &(hpct_conv2d){.filters = 2, .kernel = {3, 3}, .dilation = {1, -2}}));
    FAULT("conv2d: kernel 3x15, dilated, does not fit input 28x28x1",
          hpct_model_add_conv2d(
              m, &(hpct_conv2d){.filters = 2, .kernel = {3, 15}, .dilation = {1, 2}}));
    FAULT("conv2d: kernel 3x3, dilated, is too large",
          hpct_model_add_conv2d(m, &(hpct_conv2d){.filters = 2,
                                                  .kernel = {3, 3},
                                                  .dilation = {1, 2147483647},
                                                  .padding = HPCT_SAME}));
    FAULT("conv2d_1: 2 groups do not divide 6 input channels and 9 filters",
          hpct_model_add_conv2d(m, &(hpct_conv2d){.filters = 6, .kernel = {3, 3}});
          hpct_model_add_conv2d(m, &(hpct_conv2d){.filters = 9, .kernel = {3, 3}, .groups = 2}));
    FAULT("conv2d: groups must be at least 1, not -1",
          hpct_model_add_conv2d(m, &(hpct_conv2d){.filters = 9, .kernel = {3, 3}, .groups = -1}));
    FAULT("depthwise_conv2d: the depth multiplier must be at least 1, not -1",
          hpct_model_add_depthwise_conv2d(
              m, &(hpct_depthwise_conv2d){.kernel = {3, 3}, .multiplier = -1}));
    FAULT("depthwise_conv2d: the input must be height x width x channels, but it is 784; put a "
          "reshape before it",
          hpct_model_add_flatten(m);
          hpct_model_add_depthwise_conv2d(m, &(hpct_depthwise_conv2d){.kernel = {3, 3}}));
    FAULT("max_pooling2d: strides -1x1 must be at least 1x1",
          hpct_model_add_max_pool2d(m, &(hpct_max_pool2d){.pool = {2, 2}, .strides = {-1, 1}}));
    FAULT("average_pooling2d: pool 2x-2 must be at least 1x1",
          hpct_model_add_average_pool2d(m, &(hpct_average_pool2d){.pool = {2, -2}}));
    FAULT("average_pooling2d: padding must be HPCT_VALID or HPCT_SAME",
          hpct_model_add_average_pool2d(m, &(hpct_average_pool2d){.pool = {2, 2}, .padding = 7}));
    FAULT("max_pooling2d: the input must be height x width x channels, but it is 784; put a "
          "reshape before it",
          hpct_model_add_flatten(m);
          hpct_model_add_max_pool2d(m, &(hpct_max_pool2d){.pool = {2, 2}}));
    FAULT("dense_1: units must be at least 1, not -1", hpct_model_add_flatten(m);
          hpct_model_add_dense(m, &(hpct_dense){.units = 3});
          hpct_model_add_dense(m, &(hpct_dense){.units = -1}));
    FAULT("cropping2d: cropping 14,14 must not be negative, and leave something of 28",
          hpct_model_add_cropping2d(m, &(hpct_cropping2d){.cropping = {{1, 2}, {14, 14}}}));
    FAULT("cropping2d: cropping -1,2 must not be negative, and leave something of 28",
          hpct_model_add_cropping2d(m, &(hpct_cropping2d){.cropping = {{-1, 2}, {0, 0}}}));
    FAULT("conv2d_transpose: filters must be at least 1, not 0",
          hpct_model_add_conv2d_transpose(m, &(hpct_conv2d_transpose){.kernel = {3, 3}}));
    FAULT("conv2d_transpose: kernel 3x0 must be at least 1x1",
          hpct_model_add_conv2d_transpose(
              m, &(hpct_conv2d_transpose){.filters = 2, .kernel = {3, 0}}));
    FAULT("conv2d_transpose: strides -1x1 must be at least 1x1",
          hpct_model_add_conv2d_transpose(
              m, &(hpct_conv2d_transpose){.filters = 2, .kernel = {3, 3}, .strides = {-1, 1}}));
    FAULT(
        "conv2d_transpose: its output would have 2^31 elements or more",
        hpct_model_add_conv2d_transpose(
            m, &(hpct_conv2d_transpose){.filters = 2, .kernel = {3, 3}, .strides = {1 << 30, 1}}));
    FAULT("separable_conv2d: filters must be at least 1, not 0",
          hpct_model_add_separable_conv2d(m, &(hpct_separable_conv2d){.kernel = {3, 3}}));
    FAULT("separable_conv2d: the depth multiplier must be at least 1, not -2",
          hpct_model_add_separable_conv2d(
              m, &(hpct_separable_conv2d){.filters = 2, .kernel = {3, 3}, .multiplier = -2}));
    FAULT("group_normalization: 4 groups do not divide 6 channels",
          hpct_model_add_conv2d(m, &(hpct_conv2d){.filters = 6, .kernel = {1, 1}});
          hpct_model_add_group_normalization(m, &(hpct_group_normalization){.groups = 4}));
    FAULT("dense: its kernel would have 2^31 elements or more", hpct_model_add_flatten(m);
          hpct_model_add_dense(m, &(hpct_dense){.units = 2147483647}));
    FAULT("conv2d: the model's output must be one row of classes, but it is 26x26x2; add a flatten "
          "and a dense",
          hpct_model_add_conv2d(m, &(hpct_conv2d){.filters = 2, .kernel = {3, 3}}));
}

TEST(faults_of_shapes_are_named)
{
    FAULT("reshape: input 28x28x1 cannot take the shape 28x29",
          hpct_model_add_reshape(m, HPCT_SHAPE(28, 29)));
    FAULT("reshape: input 28x28x1 cannot take the shape -1x5",
          hpct_model_add_reshape(m, HPCT_SHAPE(-1, 5)));
    FAULT("reshape: sizes must be at least 1, or -1 for one of them, not 28x-28x-1",
          hpct_model_add_reshape(m, HPCT_SHAPE(28, -28, -1)));
    FAULT("reshape: sizes must be at least 1, or -1 for one of them, not 0x-1",
          hpct_model_add_reshape(m, HPCT_SHAPE(0, -1)));
    FAULT("reshape: input 28x28x1 cannot take the shape 2147483647x2147483647x2147483647x-1",
          hpct_model_add_reshape(m, HPCT_SHAPE(2147483647, 2147483647, 2147483647, -1)));
    FAULT("reshape: the shape must have 1 to 4 sizes, not 5",
          hpct_model_add_reshape(m, (hpct_shape){.rank = 5}));
    FAULT("reshape: the shape must have 1 to 4 sizes, not 0",
          hpct_model_add_reshape(m, (hpct_shape){0}));
    FAULT("reshape: only one size can be -1, but the shape is -1x-1",
          hpct_model_add_reshape(m, HPCT_SHAPE(-1, -1)));
    FAULT("permute: the axes must be 1 to 3, each once",
          hpct_model_add_permute(m, (int[]){1, 3, 3}));
    FAULT("permute: the axes must be 1 to 3, each once",
          hpct_model_add_permute(m, (int[]){0, 1, 2}));
    FAULT("up_sampling2d: the size 2x0 must be at least 1x1, and not huge",
          hpct_model_add_up_sampling2d(m, &(hpct_up_sampling2d){.size = {2, 0}}));
    FAULT("resizing: the input must be height x width x channels, but it is 784; put a reshape "
          "before it",
          hpct_model_add_flatten(m);
          hpct_model_add_resizing(m, 5, 5));
    FAULT("resizing: the size 0x5 must be at least 1x1", hpct_model_add_resizing(m, 0, 5));
    FAULT("resizing: its output would have 2^31 elements or more",
          hpct_model_add_resizing(m, 65536, 65536));
}

TEST(faults_of_numbers_are_named)
{
    FAULT("activation: there is no activation 77",
          hpct_model_add_activation(m, (hpct_activation) 77));
    FAULT("dropout_1: the rate must lie between 0 and 1, but it is 1.5",
          hpct_model_add_dropout(m, 0.5);
          hpct_model_add_dropout(m, 1.5));
    FAULT("dropout: the rate must lie between 0 and 1, but it is nan",
          hpct_model_add_dropout(m, NAN));
    FAULT("rescaling: scale inf and offset 0 must be numbers",
          hpct_model_add_rescaling(m, INFINITY, 0));
    FAULT("layer_normalization: epsilon -1 must be above 0",
          hpct_model_add_layer_normalization(m, &(hpct_layer_normalization){.epsilon = -1}));
    FAULT("layer_scale: the initial value nan must be a number",
          hpct_model_add_layer_scale(m, NAN));
    FAULT("stochastic_depth: the rate must lie between 0 and 1, but it is -0.5",
          hpct_model_add_stochastic_depth(m, -0.5));
    FAULT("spatial_dropout2d: the input must be height x width x channels, but it is 784; put a "
          "reshape before it",
          hpct_model_add_flatten(m);
          hpct_model_add_spatial_dropout2d(m, 0.5));
    FAULT("gaussian_noise: the standard deviation must be 0 or more, but it is -0.5",
          hpct_model_add_gaussian_noise(m, -0.5));
    FAULT("custom_scale_layer: 28x28x1 and 784 cannot be added", hpct_model_add_flatten(m);
          hpct_model_add_scaled_add(m, (int[]){0, hpct_model_head(m)}, 0.5));
}

static void negative_crop(hpct_model *m)
{
    hpct_model_add_random_crop(m, 5, -5);
}
static void unknown_flip(hpct_model *m)
{
    hpct_model_add_random_flip(m, (hpct_flip) 9);
}
static void flat_rotation(hpct_model *m)
{
    hpct_model_add_flatten(m);
    hpct_model_add_random_rotation(m, &(hpct_random_affine){.height = {-0.1, 0.1}});
}
static void wide_rotation(hpct_model *m)
{
    hpct_model_add_random_rotation(m, &(hpct_random_affine){.height = {-0.1, 1.1}});
}
static void disordered_translation(hpct_model *m)
{
    hpct_model_add_random_translation(m, &(hpct_random_affine){.width = {0.2, 0.1}});
}
static void zoom_to_a_cell(hpct_model *m)
{
    hpct_model_add_random_zoom(m, &(hpct_random_affine){.width = {-1, 0}});
}
static void unknown_fill(hpct_model *m)
{
    hpct_model_add_random_zoom(m, &(hpct_random_affine){.fill_mode = (hpct_fill_mode) 4});
}
static void endless_fill(hpct_model *m)
{
    hpct_model_add_random_zoom(m, &(hpct_random_affine){.fill_value = (double) INFINITY});
}
static void negative_contrast(hpct_model *m)
{
    hpct_model_add_random_contrast(m, &(hpct_random_tone){.factor = {-0.1, 0.1}});
}
static void disordered_contrast(hpct_model *m)
{
    hpct_model_add_random_contrast(m, &(hpct_random_tone){.factor = {0.3, 0.1}});
}
static void bright_beyond(hpct_model *m)
{
    hpct_model_add_random_brightness(m, &(hpct_random_tone){.factor = {-1.5, 0.1}});
}
static void empty_range(hpct_model *m)
{
    hpct_model_add_random_brightness(m, &(hpct_random_tone){.value_range = {1, 1}});
}
#define LATE                                                                                       \
    ": it must come before all layers with trained weights: it changes images of the input, and "  \
    "computes no gradient; move it to the model's beginning, or remove it and train with "         \
    "--augment"
static void late_rotation(hpct_model *m)
{
    hpct_model_add_conv2d(m, &(hpct_conv2d){.filters = 2, .kernel = {3, 3}});
    hpct_model_add_max_pool2d(m, &(hpct_max_pool2d){.pool = {2, 2}});
    hpct_model_add_random_rotation(m, &(hpct_random_affine){.height = {-0.1, 0.1}});
}
static void late_flip(hpct_model *m)
{
    hpct_model_add_conv2d(m, &(hpct_conv2d){.filters = 2, .kernel = {3, 3}});
    hpct_model_add_random_flip(m, HPCT_FLIP_BOTH);
}
static void late_crop(hpct_model *m)
{
    hpct_model_add_conv2d(m, &(hpct_conv2d){.filters = 2, .kernel = {3, 3}});
    hpct_model_add_random_crop(m, 2, 2);
}
static void late_contrast(hpct_model *m)
{
    int input = hpct_model_head(m);
    hpct_model_add_batch_normalization(m, &(hpct_batch_normalization){0});
    hpct_model_add_add(m, (int[]){input, hpct_model_head(m)}, 2);
    hpct_model_add_random_contrast(m, &(hpct_random_tone){.factor = {0.1, 0.1}});
}

TEST(faults_of_random_layers_are_named)
{
    static const struct {
        void (*describe)(hpct_model *);
        const char *message;
    } cases[] = {
        {negative_crop, "random_crop: the size 5x-5 must be at least 1x1"},
        {unknown_flip, "random_flip: there is no flip 9"},
        {flat_rotation,
         "random_rotation: the input must be height x width x channels, but it is 784; put a "
         "reshape before it"},
        {wide_rotation,
         "random_rotation: a factor from -0.1 to 1.1 is not in order and between -1 and 1"},
        {disordered_translation, "random_translation: a width factor from 0.2 to 0.1 is not in "
                                 "order and between -1 and 1"},
        {zoom_to_a_cell, "random_zoom: factors of zoom must be above -1"},
        {unknown_fill, "random_zoom: there is no fill mode 4"},
        {endless_fill, "random_zoom: the fill value inf must fit a float"},
        {negative_contrast,
         "random_contrast: the factors -0.1 and 0.1 must be in order, and between 0 and 1"},
        {disordered_contrast,
         "random_contrast: the factors 0.3 and 0.1 must be in order, and between 0 and 1"},
        {bright_beyond,
         "random_brightness: a factor from -1.5 to 0.1 is not in order and between -1 and 1"},
        {empty_range, "random_brightness: the value range from 1 to 1 must be in order, and fit "
                      "floats"},
        {late_rotation, "random_rotation" LATE},
        {late_flip, "random_flip" LATE},
        {late_crop, "random_crop" LATE},
        {late_contrast, "random_contrast" LATE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hpct_model *model = hpct_model_new("m", HPCT_SHAPE(28, 28, 1));
        cases[i].describe(model);
        assert_int_equal(compile(model), HPCT_ERR_USAGE);
        assert_string_equal(hpct_last_error(), cases[i].message);
        hpct_model_free(model);
    }
}

TEST(faults_of_whole_models_are_named)
{
    FAULT("model m has no layers", (void) m);
    hpct_model *model = hpct_model_new("m", HPCT_SHAPE(0, 3));
    hpct_model_add_flatten(model);
    assert_int_equal(compile(model), HPCT_ERR_USAGE);
    assert_string_equal(
        hpct_last_error(),
        "input: the shape needs 1 to 4 positive sizes and fewer than 2^31 elements");
    hpct_model_free(model);
}

TEST(compile_refuses_bad_settings)
{
    hpct_model *model = builtin("mnist-cnn");
    hpct_optimizer bad[] = {{.kind = HPCT_SGD, .learning_rate = NAN},
                            {.kind = HPCT_SGD, .learning_rate = -1},
                            {.kind = HPCT_SGD, .learning_rate = 1, .momentum = 1},
                            {.kind = HPCT_SGD, .learning_rate = 1, .momentum = NAN},
                            {.kind = HPCT_OPTIMIZER_KINDS}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, &bad[i]),
                         HPCT_ERR_USAGE);
    assert_int_equal(hpct_model_compile(model, HPCT_LOSSES, &sgd), HPCT_ERR_USAGE);
    assert_int_equal(hpct_model_initialize(model, 1), HPCT_ERR_USAGE); /* not compiled */
    assert_int_equal(compile(model), HPCT_OK);
    hpct_model_add_flatten(model); /* too late */
    assert_int_equal(compile(model), HPCT_ERR_USAGE);
    assert_string_equal(hpct_last_error(),
                        "mnist-cnn: the model is compiled already; add flatten before that");
    hpct_model_free(model);
}

/* Names and shapes of a model's first layers. */
static void assert_layers(const hpct_model *m, const char *const layers[][2], int count)
{
    for (int i = 0; i < count; i++) {
        char shape[HPCT_GRAPH_SHAPE_TEXT];
        hpct_graph_shape_format(&m->layers[i].output, shape);
        assert_string_equal(m->layers[i].name, layers[i][0]);
        assert_string_equal(shape, layers[i][1]);
    }
}

TEST(shapes_follow_keras)
{
    hpct_model *m = hpct_model_new("m", HPCT_SHAPE(7, 8, 3));
    hpct_model_add_conv2d(m, &(hpct_conv2d){.filters = 4,
                                            .kernel = {3, 2},
                                            .strides = {2, 3},
                                            .padding = HPCT_SAME});                      /* 4x3x4 */
    hpct_model_add_max_pool2d(m, &(hpct_max_pool2d){.pool = {3, 2}, .strides = {1, 1}}); /* 2x2x4 */
    hpct_model_add_reshape(m, HPCT_SHAPE(2, -1));                                        /* 2x8 */
    hpct_model_add_dense(m, &(hpct_dense){.units = 5, .activation = HPCT_SOFTMAX});      /* 2x5 */
    hpct_model_add_activation(m, HPCT_LINEAR);
    hpct_model_add_reshape(m, HPCT_SHAPE(5, 2, 1));
    hpct_model_add_average_pool2d(m, &(hpct_average_pool2d){.pool = {2, 2}, .padding = HPCT_SAME});
    hpct_model_add_conv2d(
        m, &(hpct_conv2d){.filters = 4, .kernel = {1, 1}, .activation = HPCT_GELU}); /* 3x1x4 */
    hpct_model_add_activation(m, HPCT_TANH);
    hpct_model_add_flatten(m);
    static const char *const layers[][2] = {{"conv2d", "4x3x4"},
                                            {"max_pooling2d", "2x2x4"},
                                            {"reshape", "2x8"},
                                            {"dense", "2x5"},
                                            {"activation", "2x5"},
                                            {"reshape_1", "5x2x1"},
                                            {"average_pooling2d", "3x1x1"},
                                            {"conv2d_1", "3x1x4"},
                                            {"activation_1", "3x1x4"},
                                            {"flatten", "12"}};
    assert_int_equal(compile(m), HPCT_OK);
    assert_int_equal(m->num_layers, 10);
    assert_layers(m, layers, 10);
    assert_string_equal(m->params[2].name, "dense/kernel");
    assert_int_equal(hpct_model_count_parameters(m), 3 * 2 * 3 * 4 + 4 + 8 * 5 + 5 + 8);
    /* conv2d, pool, dense, softmax, pool, conv2d, gelu, tanh; the rest are views */
    assert_int_equal(m->num_nodes, 8);
    assert_int_equal(m->nodes[6].spec.kind, HPCT_OP_GELU);
    assert_string_equal(m->layers[6].name, "average_pooling2d");
    hpct_model_free(m);
}

TEST(operations_have_names)
{
    for (int kind = 0; kind < HPCT_OP_KINDS; kind++)
        assert_non_null(hpct_op_kind_name((hpct_op_kind) kind));
}

/* Of two classes: of all activations only sigmoid, and none, leave one output to train. */
TEST(one_output_is_a_sigmoid_or_a_logit)
{
    int known = 0;
    for (bool more = true; more; known++) {
        hpct_activation activation = (hpct_activation) known;
        hpct_loss loss;
        hpct_model *m = hpct_model_new("m", HPCT_SHAPE(3));
        hpct_model_add_dense(m, &(hpct_dense){.units = 1});
        hpct_model_add_activation(m, activation);
        more = m->status == HPCT_OK;
        bool can = activation == HPCT_LINEAR || activation == HPCT_SIGMOID;
        if (more)
            assert_int_equal(hpct_model_own_loss(m, &loss), can ? HPCT_OK : HPCT_ERR_DATA);
        hpct_model_free(m);
    }
    assert_true(known > HPCT_SELU);
}

TEST(elementwise_layers_have_keras_shapes_and_names)
{
    hpct_model *m = hpct_model_new("m", HPCT_SHAPE(6, 5, 3));
    hpct_model_add_normalization(m);
    hpct_model_add_rescaling_by(m, &(hpct_per_channel){3, {1, 2, 3}, {0, -1, 4}});
    hpct_model_add_relu(m, &(hpct_relu){.max_value = 2, .negative_slope = 0.5});
    hpct_model_add_leaky_relu(m, 0.1);
    hpct_model_add_elu(m, 2);
    hpct_model_add_prelu(m, false);
    hpct_model_add_prelu(m, true);
    int whole = hpct_model_head(m);
    hpct_model_add_global_average_pool2d_keepdims(m);
    int mean = hpct_model_head(m);
    hpct_model_add_multiply(m, (int[]){mean, whole, mean}, 3); /* in any order */
    hpct_model_add_global_max_pool2d_keepdims(m);
    hpct_model_add_sample_dropout(m, 0.5);
    hpct_model_add_activation(m, HPCT_SELU);
    hpct_model_add_flatten(m);
    assert_int_equal(compile(m), HPCT_OK);
    static const char *const layers[][2] = {
        {"normalization", "6x5x3"}, {"rescaling", "6x5x3"},
        {"re_lu", "6x5x3"},         {"leaky_re_lu", "6x5x3"},
        {"elu", "6x5x3"},           {"p_re_lu", "6x5x3"},
        {"p_re_lu_1", "6x5x3"},     {"global_average_pooling2d", "1x1x3"},
        {"multiply", "6x5x3"},      {"global_max_pooling2d", "1x1x3"},
        {"dropout", "1x1x3"},       {"activation", "1x1x3"}};
    assert_layers(m, layers, 12);
    /* mean, variance, count; slopes */
    assert_int_equal(hpct_model_count_parameters(m), 3 + 3 + 1 + 6 * 5 * 3 + 3);
    assert_int_equal(hpct_model_count_trainable(m), 6 * 5 * 3 + 3);
    assert_string_equal(m->params[2].name, "normalization/count");
    hpct_model_free(m);
}

TEST(numbers_per_channel_and_factors_are_checked)
{
    static const struct {
        int kind;
        const char *words;
    } cases[] = {{0, "normalization: 2 numbers do not fit 3 channels"},
                 {1, "rescaling: the numbers of channel 1"},
                 {2, "re_lu: max_value -1"},
                 {3, "multiply: 6x5x3 and 3 cannot be multiplied"},
                 {4, "leaky_re_lu: the negative slope must be a number"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hpct_model *m = hpct_model_new("m", HPCT_SHAPE(6, 5, 3));
        int whole = hpct_model_head(m);
        if (cases[i].kind == 0)
            hpct_model_add_normalization_by(m, &(hpct_per_channel){2, {1, 2}, {1, 1}});
        if (cases[i].kind == 1)
            hpct_model_add_rescaling_by(m, &(hpct_per_channel){3, {1, (double) NAN, 3}, {0}});
        if (cases[i].kind == 2)
            hpct_model_add_relu(m, &(hpct_relu){.max_value = -1});
        if (cases[i].kind == 3) {
            hpct_model_add_global_average_pool2d(m);
            hpct_model_add_multiply(m, (int[]){whole, hpct_model_head(m)}, 2);
        }
        if (cases[i].kind == 4)
            hpct_model_add_leaky_relu(m, (double) INFINITY);
        assert_int_equal(compile(m), HPCT_ERR_USAGE);
        assert_non_null(strstr(hpct_last_error(), cases[i].words));
        hpct_model_free(m);
    }
}

TEST(picture_layers_have_keras_shapes_and_names)
{
    hpct_model *m = hpct_model_new("m", HPCT_SHAPE(30, 32, 3));
    hpct_model_add_rescaling(m, 1.0 / 255, 0);
    hpct_model_add_random_flip(m, HPCT_FLIP_HORIZONTAL);
    hpct_model_add_random_crop(m, 28, 24);
    hpct_model_add_resizing(m, 64, 48);
    hpct_model_add_flatten(m);
    hpct_model_add_dropout(m, 0.5);
    assert_int_equal(compile(m), HPCT_OK);
    static const char *const layers[][2] = {{"rescaling", "30x32x3"},   {"random_flip", "30x32x3"},
                                            {"random_crop", "28x24x3"}, {"resizing", "64x48x3"},
                                            {"flatten", "9216"},        {"dropout", "9216"}};
    assert_layers(m, layers, 6);
    assert_int_equal(hpct_model_count_parameters(m), 0);
    hpct_model_free(m);
}

/* In training images of 0 to 255 are meant, also behind other image layers. */
TEST(pixels_that_are_meant_are_known)
{
    const struct {
        double most, scale;
        bool meant;
    } cases[] = {{0, 1 / 255.0, true}, {0, 1, false}, {1, 1, false}, {255, 1, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hpct_model *m = hpct_model_new("m", HPCT_SHAPE(8, 8, 3));
        hpct_model_add_random_flip(m, HPCT_FLIP_HORIZONTAL);
        hpct_model_add_random_rotation(m, &(hpct_random_affine){.height = {-0.1, 0.1}});
        if (cases[i].most > 0)
            hpct_model_add_random_brightness(
                m, &(hpct_random_tone){.factor = {0, 0.1}, .value_range = {0, cases[i].most}});
        hpct_model_add_rescaling(m, cases[i].scale, 0);
        assert_true(hpct_model_rescales_pixels(m) == cases[i].meant);
        hpct_model_free(m);
    }
}

/* Also after Normalization, whose states are not trained, and beside a branch with weights. */
TEST(random_pictures_come_before_weights)
{
    static const char *const names[] = {"random_rotation", "random_zoom", "random_translation",
                                        "random_contrast", "random_brightness"};
    hpct_model *m = hpct_model_new("m", HPCT_SHAPE(30, 32, 3));
    hpct_model_add_conv2d(m, &(hpct_conv2d){.filters = 3, .kernel = {1, 1}});
    int branch = hpct_model_head(m);
    hpct_model_set_head(m, 0);
    hpct_model_add_normalization(m);
    hpct_model_add_random_rotation(m, &(hpct_random_affine){.height = {-0.1, 0.1}});
    hpct_model_add_random_zoom(m, &(hpct_random_affine){.height = {-0.1, 0.1}, .square = true});
    hpct_model_add_random_translation(m, &(hpct_random_affine){.width = {-0.1, 0.1}});
    hpct_model_add_random_contrast(m, &(hpct_random_tone){.factor = {0.1, 0.5}});
    hpct_model_add_random_brightness(m, &(hpct_random_tone){.factor = {-0.5, 0.1}});
    hpct_model_add_add(m, (int[]){branch, hpct_model_head(m)}, 2);
    hpct_model_add_flatten(m);
    assert_int_equal(compile(m), HPCT_OK);
    for (int i = 0; i < 5; i++) {
        char text[HPCT_GRAPH_SHAPE_TEXT];
        hpct_graph_shape_format(&m->layers[2 + i].output, text);
        assert_string_equal(m->layers[2 + i].name, names[i]);
        assert_string_equal(text, "30x32x3");
    }
    hpct_model_free(m);
}

/* Shapes, names and parameters that Keras gives the same layers. */
TEST(more_layers_have_keras_shapes_and_names)
{
    hpct_model *m = hpct_model_new("m", HPCT_SHAPE(30, 32, 3));
    hpct_model_add_cropping2d(m, &(hpct_cropping2d){.cropping = {{1, 3}, {0, 4}}});
    hpct_model_add_separable_conv2d(m, &(hpct_separable_conv2d){.filters = 8,
                                                                .kernel = {3, 3},
                                                                .strides = {2, 2},
                                                                .multiplier = 2,
                                                                .padding = HPCT_SAME});
    hpct_model_add_group_normalization(m, &(hpct_group_normalization){.groups = -1});
    hpct_model_add_layer_normalization(m, &(hpct_layer_normalization){.no_center = true});
    hpct_model_add_layer_scale(m, 1e-6);
    hpct_model_add_spatial_dropout2d(m, 0.5);
    hpct_model_add_stochastic_depth(m, 0.5);
    hpct_model_add_gaussian_noise(m, 0.5);
    int head = hpct_model_head(m);
    hpct_model_add_layer_scale(m, 1);
    hpct_model_add_scaled_add(m, (int[]){head, hpct_model_head(m)}, 0.17);
    hpct_model_add_up_sampling2d(m, &(hpct_up_sampling2d){.size = {2, 3}});
    hpct_model_add_permute(m, (int[]){3, 1, 2});
    hpct_model_add_conv2d_transpose(
        m, &(hpct_conv2d_transpose){.filters = 3, .kernel = {3, 1}, .strides = {2, 2}});
    hpct_model_add_conv2d_transpose(m, &(hpct_conv2d_transpose){.filters = 1,
                                                                .kernel = {2, 3},
                                                                .strides = {1, 2},
                                                                .no_bias = true,
                                                                .padding = HPCT_SAME,
                                                                .activation = HPCT_RELU});
    hpct_model_add_flatten(m);
    assert_int_equal(compile(m), HPCT_OK);
    static const struct {
        const char *name, *shape;
        int parameters;
    } layers[] = {{"cropping2d", "26x28x3", 0},
                  {"separable_conv2d", "13x14x8", 9 * 6 + 48 + 8},
                  {"group_normalization", "13x14x8", 16},
                  {"layer_normalization", "13x14x8", 8},
                  {"layer_scale", "13x14x8", 8},
                  {"spatial_dropout2d", "13x14x8", 0},
                  {"stochastic_depth", "13x14x8", 0},
                  {"gaussian_noise", "13x14x8", 0},
                  {"layer_scale_1", "13x14x8", 8},
                  {"custom_scale_layer", "13x14x8", 0},
                  {"up_sampling2d", "26x42x8", 0},
                  {"permute", "8x26x42", 0},
                  {"conv2d_transpose", "17x52x3", 3 * 3 * 42 + 3},
                  {"conv2d_transpose_1", "17x104x1", 6 * 3},
                  {"flatten", "1768", 0}};
    for (int i = 0; i < m->num_layers; i++) {
        char text[HPCT_GRAPH_SHAPE_TEXT];
        hpct_graph_shape_format(&m->layers[i].output, text);
        assert_string_equal(m->layers[i].name, layers[i].name);
        assert_string_equal(text, layers[i].shape);
        assert_int_equal(m->layers[i].parameters, layers[i].parameters);
    }
    hpct_model_free(m);
}

/* Output shapes and parameter shapes that Keras gives the same layers. */
TEST(convolutions_have_keras_shapes)
{
    hpct_model *m = hpct_model_new("m", HPCT_SHAPE(11, 12, 6));
    hpct_model_add_conv2d(m, &(hpct_conv2d){.filters = 8,
                                            .kernel = {3, 2},
                                            .dilation = {2, 3},
                                            .groups = 2,
                                            .no_bias = true}); /* 7x9x8 */
    hpct_model_add_depthwise_conv2d(m, &(hpct_depthwise_conv2d){.kernel = {2, 3},
                                                                .strides = {2, 2},
                                                                .multiplier = 3,
                                                                .padding = HPCT_SAME}); /* 4x5x24 */
    hpct_model_add_depthwise_conv2d(
        m, &(hpct_depthwise_conv2d){.kernel = {3, 3}, .dilation = {1, 2}, .no_bias = true});
    hpct_model_add_conv2d(m, &(hpct_conv2d){.filters = 2,
                                            .kernel = {3, 3},
                                            .dilation = {3, 3},
                                            .padding = HPCT_SAME}); /* 2x1x2 */
    hpct_model_add_flatten(m);
    hpct_model_add_dense(m, &(hpct_dense){.units = 3, .no_bias = true});
    assert_int_equal(compile(m), HPCT_OK);
    static const char *const outputs[] = {"7x9x8", "4x5x24", "2x1x24", "2x1x2", "4", "3"};
    for (int i = 0; i < 6; i++) {
        char text[HPCT_GRAPH_SHAPE_TEXT];
        hpct_graph_shape_format(&m->layers[i].output, text);
        assert_string_equal(text, outputs[i]);
    }
    static const struct {
        const char *name, *shape;
        double fan_in, fan_out;
    } params[] = {
        {"conv2d/kernel", "3x2x3x8", 18, 48},
        {"depthwise_conv2d/kernel", "2x3x8x3", 48, 18},
        {"depthwise_conv2d/bias", "24", 0, 0},
        {"depthwise_conv2d_1/kernel", "3x3x24x1", 216, 9},
        {"conv2d_1/kernel", "3x3x24x2", 216, 18},
        {"conv2d_1/bias", "2", 0, 0},
        {"dense/kernel", "4x3", 4, 3},
    };
    assert_int_equal(m->num_params, sizeof params / sizeof *params);
    for (int i = 0; i < m->num_params; i++) {
        char text[HPCT_GRAPH_SHAPE_TEXT];
        hpct_graph_shape_format(&m->params[i].shape, text);
        assert_string_equal(m->params[i].name, params[i].name);
        assert_string_equal(text, params[i].shape);
        assert_true(m->params[i].fan_in == params[i].fan_in);
        assert_true(m->params[i].fan_out == params[i].fan_out);
    }
    hpct_model_free(m);
}

TEST(summary_has_keras_form)
{
    static const char expected[] =
        "Model: \"mnist-cnn\"\n"
        "_________________________________________________________________\n"
        " Layer (type)                Output Shape              Param #   \n"
        "=================================================================\n"
        " reshape (Reshape)           (None, 28, 28, 1)         0         \n"
        "                                                                 \n"
        " conv2d (Conv2D)             (None, 26, 26, 32)        320       \n"
        "                                                                 \n"
        " flatten (Flatten)           (None, 21632)             0         \n"
        "                                                                 \n"
        " dense (Dense)               (None, 128)               2769024   \n"
        "                                                                 \n"
        " dense_1 (Dense)             (None, 10)                1290      \n"
        "                                                                 \n"
        "=================================================================\n"
        "Total params: 2,770,634\n"
        "Trainable params: 2,770,634\n"
        "Non-trainable params: 0\n"
        "_________________________________________________________________\n";
    hpct_model *model = builtin("mnist-cnn");
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    assert_int_equal(hpct_model_summary(model, stream), HPCT_OK);
    fclose(stream);
    assert_string_equal(text, expected);
    free(text);
    FILE *full = fopen("/dev/full", "w");
    setvbuf(full, NULL, _IONBF, 0);
    assert_int_equal(hpct_model_summary(model, full), HPCT_ERR_IO);
    fclose(full);
    hpct_model_free(model);
}

/* The vectors that the Random123 library publishes. */
TEST(philox_gives_the_published_numbers)
{
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t out[4];
        hpct_graph_philox(known[i].counter, known[i].key, out);
        assert_memory_equal(out, known[i].out, sizeof out);
    }
}

static float *values_of(const hpct_model *model, int param)
{
    float *values = malloc(hpct_graph_shape_count(&model->params[param].shape) * sizeof *values);
    assert_int_equal(hpct_run_param_get(model, param, values), HPCT_OK);
    return values;
}

/* Keras: sqrt(6 / (fan_in + fan_out)); of a 3x3 kernel from 1 to 32 channels the fans are 9 and
 * 288. */
TEST(numbers_do_not_depend_on_how_many_are_drawn)
{
    for (size_t count = 0; count < 14; count++) {
        float many[15] = {[14] = 2};
        many[count] = 2;
        hpct_graph_uniforms(5, 6, count, many);
        for (size_t i = 0; i < count; i++)
            assert_true(many[i] == hpct_graph_uniform(5, 6, i));
        assert_true(many[count] == 2);
    }
}

TEST(initial_values_are_glorot_uniform)
{
    static const struct {
        int param;
        double fans;
    } kernels[] = {{0, 9 + 288}, {2, 21632 + 128}, {4, 128 + 10}};
    hpct_model *model = builtin("mnist-cnn");
    assert_int_equal(compile(model), HPCT_OK);
    assert_int_equal(hpct_model_initialize(model, 7), HPCT_OK);
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        size_t count = hpct_graph_shape_count(&model->params[kernels[k].param].shape);
        double limit = sqrt(6 / kernels[k].fans), sum = 0, squares = 0, largest = 0;
        float *values = values_of(model, kernels[k].param),
              *bias = values_of(model, kernels[k].param + 1);
        for (size_t i = 0; i < count; i++) {
            sum += (double) values[i];
            squares += (double) values[i] * (double) values[i];
            largest = fmax(largest, fabs((double) values[i]));
        }
        double n = (double) count;
        assert_true(largest <= limit * 1.00001 && largest > limit * 0.95);
        assert_true(fabs(sum / n) < 4 * limit / sqrt(3 * n));
        assert_true(fabs(sqrt(3 * squares / n) / limit - 1) < 4 / sqrt(n));
        assert_true(bias[0] == 0);
        free(values);
        free(bias);
    }
    hpct_model_free(model);
}

TEST(initial_values_depend_on_the_seed_alone)
{
    hpct_model *models[3];
    int batch = 2;
    for (int i = 0; i < 3; i++) {
        models[i] = builtin("mnist-convnet");
        assert_int_equal(compile(models[i]), HPCT_OK);
    }
    hpct_run_build_options options = {
        .backend = "cpu", .batch_sizes = &batch, .num_batch_sizes = 1};
    assert_int_equal(hpct_model_build(models[1], &options), HPCT_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(hpct_model_initialize(models[i], i == 2 ? 8 : 7), HPCT_OK);
    size_t bytes = hpct_graph_shape_count(&models[0]->params[2].shape) * sizeof(float);
    float *values[3];
    for (int i = 0; i < 3; i++)
        values[i] = values_of(models[i], 2);
    assert_memory_equal(values[0], values[1], bytes); /* drawn before or after the build */
    assert_memory_not_equal(values[0], values[2], bytes);
    for (int i = 0; i < 3; i++) {
        free(values[i]);
        hpct_model_free(models[i]);
    }
}

TEST(plan_shares_but_never_overlaps)
{
    uint64_t draws = 0;
    for (int round = 0; round < 200; round++) {
        hpct_run_plan_item items[24];
        size_t sum = 0;
        int count = 24;
        for (int i = 0; i < count; i++) {
            items[i].first = (int) (hpct_graph_uniform(3, 0, draws++) * 30);
            items[i].last = items[i].first + (int) (hpct_graph_uniform(3, 0, draws++) * 10);
            items[i].bytes = (size_t) (hpct_graph_uniform(3, 0, draws++) * 1000);
            sum += (items[i].bytes + 63) / 64 * 64;
        }
        size_t total = hpct_plan(items, count);
        assert_true(total < sum); /* lives are short: something is shared */
        for (int i = 0; i < count; i++) {
            assert_true(items[i].offset % 64 == 0 && items[i].offset + items[i].bytes <= total);
            for (int k = 0; k < i; k++) {
                bool together = items[i].first <= items[k].last && items[k].first <= items[i].last;
                bool apart = items[i].offset + items[i].bytes <= items[k].offset ||
                             items[k].offset + items[k].bytes <= items[i].offset;
                assert_true(!together || apart || items[i].bytes == 0 || items[k].bytes == 0);
            }
        }
    }
}
