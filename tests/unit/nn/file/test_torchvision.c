/* A state_dict of torchvision as weights: which values go where, and whose files are whose. Beside
 * torchvision itself: tests/peers/torchvision.t. */
#include "nn/file/torchvision.h"
#include "nn/models/builtin.h"
#include "tests/unit/unit.h"

#include <math.h>

static void add(hpct_weights_st_index *index, const char *name, const hpct_shape *shape)
{
    index->entries = realloc(index->entries, (index->count + 1) * sizeof *index->entries);
    hpct_weights_st_entry *entry = &index->entries[index->count++];
    *entry = (hpct_weights_st_entry){
        .name = strdup(name), .is_f32 = true, .dtype = "F32", .rank = shape->rank};
    for (int k = 0; k < shape->rank; k++)
        entry->shape[k] = shape->size[k];
}

/* torch's name and shape of a parameter of a model in its form. */
static void add_param(hpct_weights_st_index *index, const hpct_graph_param *param, bool depthwise)
{
    const char *slash = strrchr(param->name, '/'), *word = slash + 1;
    const char *torch = strcmp(word, "beta") == 0 || strcmp(word, "bias") == 0 ? "bias"
                        : strcmp(word, "moving_mean") == 0                     ? "running_mean"
                        : strcmp(word, "moving_variance") == 0                 ? "running_var"
                                                                               : "weight";
    char name[2 * HPCT_GRAPH_NAME_SIZE];
    const int *s = param->shape.size;
    hpct_shape shape = param->shape;
    snprintf(name, sizeof name, "%.*s.%s", (int) (slash - param->name), param->name, torch);
    if (shape.rank == 4)
        shape = depthwise ? HPCT_SHAPE(s[2], s[3], s[0], s[1]) : HPCT_SHAPE(s[3], s[2], s[0], s[1]);
    else if (shape.rank == 2)
        shape = HPCT_SHAPE(s[1], s[0]);
    add(index, name, &shape);
}

static hpct_weights_st_index state_dict(const hpct_model *form)
{
    hpct_weights_st_index index = {0};
    for (int i = 0; i < form->num_params; i++) {
        const hpct_op_spec *spec = &form->nodes[form->params[i].node].spec;
        add_param(&index, &form->params[i],
                  spec->kind == HPCT_OP_CONV2D && spec->window.groups > 1);
    }
    return index;
}

static const hpct_weights_st_entry *find(const hpct_weights_st_index *index, const char *name)
{
    for (size_t i = 0; i < index->count; i++) {
        if (strcmp(index->entries[i].name, name) == 0)
            return &index->entries[i];
    }
    return NULL;
}

static hpct_model *builtin(const char *name)
{
    hpct_model *model;
    hpct_builtin_options options = {.name = name, .classes = 3};
    assert_int_equal(hpct_model_builtin_with(&model, &options), HPCT_OK);
    return model;
}

static hpct_status adopt(hpct_weights_torch *torch, const hpct_model *model,
                         hpct_weights_st_index *index)
{
    return hpct_weights_torch_adopt(torch, model, index, "x.safetensors", false);
}

static void end(hpct_model *model, hpct_weights_st_index *index, hpct_weights_torch *torch)
{
    hpct_weights_torch_free(torch);
    hpct_weights_st_free(index);
    hpct_model_free(model);
}

/* Has the names and shapes of all parameters now, and nothing else. */
static void assert_fits(const hpct_model *model, const hpct_weights_st_index *index)
{
    for (int i = 0; i < model->num_params; i++) {
        const hpct_graph_param *param = &model->params[i];
        const hpct_weights_st_entry *entry = find(index, param->name);
        if (entry == NULL)
            fail_msg("%s: %s is missing", model->name, param->name);
        assert_int_equal(entry->rank, param->shape.rank);
        for (int k = 0; k < entry->rank; k++)
            assert_int_equal(entry->shape[k], param->shape.size[k]);
    }
    assert_int_equal(index->count, model->num_params);
}

/* The forms; with HPC_TRAIN_SHORT, as under valgrind, the first two. */
static const char *form_name(int i)
{
    return i < unit_cases(20) ? hpct_builtin_torchvision(i) : NULL;
}

TEST(files_of_all_forms_fit)
{
    for (int i = 0; form_name(i) != NULL; i++) {
        hpct_model *model = builtin(hpct_builtin_torchvision(i));
        hpct_weights_st_index index = state_dict(model);
        hpct_weights_torch torch;
        add(&index, "bn1.num_batches_tracked", &(hpct_shape){.rank = 0});
        add(&index, "AuxLogits.fc.bias", &HPCT_SHAPE(3));
        assert_int_equal(adopt(&torch, model, &index), HPCT_OK);
        assert_non_null(torch.sources);
        assert_fits(model, &index);
        end(model, &index, &torch);
    }
}

/* Each form's file is refused by models of other networks, which name the form: by two of them, or
 * all (HPC_TRAIN_LONG). */
TEST(files_of_others_are_refused)
{
    static const char *const others[] = {"resnet50v2", "mobilenetv2", "inceptionv3",
                                         "efficientnetb0-imagenet", "mnist-cnn"};
    const bool all = getenv("HPC_TRAIN_LONG") != NULL;
    for (int i = 0; form_name(i) != NULL; i++) {
        const char *is = hpct_builtin_torchvision(i);
        hpct_model *form = builtin(is);
        for (size_t k = 0; k < sizeof others / sizeof *others + 12; k++) {
            const char *name = k < 12 ? hpct_builtin_torchvision((int) k) : others[k - 12];
            char words[160];
            hpct_weights_torch torch;
            if (strcmp(name, is) == 0 ||
                (!all && k != (size_t) (i + 1) % 12 && k != 12 + (size_t) i % 5))
                continue;
            hpct_model *model = builtin(name);
            hpct_weights_st_index index = state_dict(form);
            snprintf(words, sizeof words, "which --model %s takes; this model is %s", is, name);
            assert_int_equal(adopt(&torch, model, &index), HPCT_ERR_DATA);
            assert_non_null(strstr(hpct_last_error(), words));
            end(model, &index, &torch);
        }
        hpct_model_free(form);
    }
}

/* Not torchvision's: own names, or nothing that is known. */
TEST(other_files_are_left_alone)
{
    hpct_model *model = builtin("resnet18-torchvision");
    hpct_weights_st_index own = {0}, foreign = {0};
    hpct_weights_torch torch;
    add(&own, "fc/bias", &HPCT_SHAPE(3));
    add(&own, "fc.weight", &HPCT_SHAPE(3, 512));
    assert_int_equal(adopt(&torch, model, &own), HPCT_OK);
    assert_null(torch.sources);
    assert_non_null(find(&own, "fc.weight"));
    add(&foreign, "encoder.weight", &HPCT_SHAPE(3));
    assert_int_equal(adopt(&torch, model, &foreign), HPCT_OK);
    assert_null(torch.sources);
    hpct_weights_st_free(&own);
    end(model, &foreign, &torch);
}

TEST(old_names_of_densenet_are_read)
{
    hpct_model *model = builtin("densenet121-torchvision");
    hpct_weights_st_index index = state_dict(model);
    hpct_weights_torch torch;
    for (size_t i = 0; i < index.count; i++) {
        char *name = index.entries[i].name, *at = strstr(name, ".denselayer");
        char *digit = at != NULL ? strpbrk(strchr(at + 1, '.'), "12") : NULL;
        char changed[160];
        if (digit == NULL)
            continue;
        snprintf(changed, sizeof changed, "%.*s.%s", (int) (digit - name), name, digit);
        free(name);
        index.entries[i].name = strdup(changed);
    }
    assert_non_null(find(&index, "features.denseblock2.denselayer12.conv.1.weight"));
    assert_int_equal(adopt(&torch, model, &index), HPCT_OK);
    assert_fits(model, &index);
    end(model, &index, &torch);
}

/* ---- values ---- */

static float *counted(size_t count)
{
    float *values = malloc(count * sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = (float) i;
    return values;
}

static int number_of(const hpct_model *model, const char *name)
{
    for (int i = 0; i < model->num_params; i++) {
        if (strcmp(model->params[i].name, name) == 0)
            return i;
    }
    fail_msg("%s has no %s", model->name, name);
    return -1;
}

/* Values of one parameter as they are in the file, 0, 1, 2, …, after conversion. */
static float *converted(const hpct_model *model, const char *name)
{
    hpct_model *form = builtin(model->torchvision);
    hpct_weights_st_index index = state_dict(form);
    hpct_weights_torch torch;
    int i = number_of(model, name);
    float **values = calloc((size_t) model->num_params, sizeof *values), *result;
    values[i] = counted(hpct_graph_shape_count(&model->params[i].shape));
    assert_int_equal(adopt(&torch, model, &index), HPCT_OK);
    assert_int_equal(hpct_weights_torch_convert(&torch, model, values), HPCT_OK);
    result = values[i];
    free(values);
    end(form, &index, &torch);
    return result;
}

/* [out][in / groups][height][width] is [height][width][in][out] here. */
TEST(kernels_are_transposed)
{
    hpct_model *model = builtin("mobilenetv2-torchvision");
    float *stem = converted(model, "features.0.0/kernel");
    assert_true(stem[((2 * 3 + 1) * 3 + 2) * 32 + 30] == ((30 * 3 + 2) * 3 + 2) * 3 + 1);
    float *depthwise = converted(model, "features.1.conv.0.0/kernel");
    assert_true(depthwise[(2 * 3 + 1) * 32 + 30] == (30 * 3 + 2) * 3 + 1);
    float *dense = converted(model, "classifier.1/kernel");
    assert_true(dense[1000 * 3 + 2] == 2 * 1280 + 1000);
    free(stem);
    free(depthwise);
    free(dense);
    hpct_model_free(model);
}

/* VGG16 with two filters each: the same parameters in the same order. */
static hpct_model *little_vgg(int height, int width)
{
    static const int convs[] = {2, 2, 3, 3, 3};
    hpct_model *model = hpct_model_new("vgg16", HPCT_SHAPE(height, width, 3));
    for (int b = 0; b < 5; b++) {
        for (int i = 0; i < convs[b]; i++)
            hpct_model_add_conv2d(
                model, &(hpct_conv2d){.filters = 2, .kernel = {3, 3}, .padding = HPCT_SAME});
        hpct_model_add_max_pool2d(model, &(hpct_max_pool2d){.pool = {2, 2}});
    }
    hpct_model_add_flatten(model);
    for (int i = 0; i < 3; i++)
        hpct_model_add_dense(model, &(hpct_dense){.units = 3});
    model->torchvision = "vgg16-torchvision";
    return model;
}

/* Channels first in the file, last here. */
TEST(rows_of_flattened_pictures_are_permuted)
{
    hpct_model *model = little_vgg(224, 255);
    float *first = converted(model, "dense/kernel"), *second = converted(model, "dense_1/kernel");
    for (int y = 0; y < 7; y++) {
        for (int x = 0; x < 7; x++) {
            for (int c = 0; c < 2; c++)
                assert_true(first[((y * 7 + x) * 2 + c) * 3 + 1] ==
                            (float) (98 + c * 49 + y * 7 + x));
        }
    }
    assert_true(second[2 * 3 + 1] == 3 + 2);
    free(first);
    free(second);
    hpct_model_free(model);
}

/* torch pools them to 7 x 7, whatever they are; 1 x 49 would have as many weights. */
TEST(pictures_of_other_sizes_are_refused)
{
    static const int sizes[][2] = {{32, 32}, {32, 49 * 32}, {448, 448}, {192, 224}};
    hpct_model *form = builtin("vgg16-torchvision");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        hpct_model *model = little_vgg(sizes[i][0], sizes[i][1]);
        hpct_weights_st_index index = state_dict(form), again = state_dict(form);
        hpct_weights_torch torch;
        assert_int_equal(adopt(&torch, model, &index), HPCT_ERR_DATA);
        assert_non_null(strstr(hpct_last_error(), "classifier.0.weight is of pictures of 224x224"));
        assert_non_null(strstr(hpct_last_error(), "give --resize 224x224"));
        hpct_weights_torch_free(&torch);
        assert_int_equal(hpct_weights_torch_adopt(&torch, model, &again, "x", true), HPCT_OK);
        assert_int_equal(find(&again, "dense/kernel")->rank, 0); /* does not fit */
        assert_int_equal(find(&again, "dense_1/kernel")->rank, 2);
        hpct_weights_st_free(&again);
        end(model, &index, &torch);
    }
    hpct_model_free(form);
}

/* Keras' resnet50 has biases, and another epsilon. */
TEST(models_with_keras_names_have_what_torch_has_not)
{
    hpct_model *model = builtin("resnet50");
    float *bias = converted(model, "conv1_conv/bias");
    float *variance = converted(model, "conv1_bn/moving_variance");
    float *mean = converted(model, "conv1_bn/moving_mean");
    for (int i = 0; i < 64; i++)
        assert_true(bias[i] == 0 && mean[i] == (float) i);
    assert_true(fabsf(variance[0] - (1e-5F - 1.001e-5F)) < 1e-12F);
    free(bias);
    free(variance);
    free(mean);
    hpct_model_free(model);
}
