/* ONNX files, read back by a small decoder of Protocol Buffers: operations, weights, names; what
 * cannot be written. That other programs read them is shown by tests/peers/onnx.t. */
#include "nn/file/onnx/nodes.h"
#include "tests/unit/nn/nn_small.h"

#include <hpctrain/export.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- reading ---- */

typedef struct bytes {
    const uint8_t *at, *end;
} bytes;

static uint64_t read_varint(bytes *from)
{
    uint64_t value = 0;
    for (int shift = 0; from->at < from->end && shift < 64; shift += 7) {
        uint8_t byte = *from->at++;
        value |= (uint64_t) (byte & 0x7f) << shift;
        if ((byte & 0x80) == 0)
            return value;
    }
    fail_msg("a number does not end");
    return 0;
}

/* The next field; of one with a length its bytes. False at the end. */
static bool read_field(bytes *from, int *field, bytes *inner, uint64_t *value)
{
    if (from->at == from->end)
        return false;
    uint64_t tag = read_varint(from), size = 4;
    *field = (int) (tag >> 3);
    *inner = (bytes){0};
    if ((tag & 7) == 0) {
        *value = read_varint(from);
        return true;
    }
    assert_true((tag & 7) == 2 || (tag & 7) == 5);
    if ((tag & 7) == 2)
        size = read_varint(from);
    assert_true(size <= (uint64_t) (from->end - from->at));
    *inner = (bytes){from->at, from->at + size};
    from->at += size;
    return true;
}

static bool find(bytes from, int wanted, int number, bytes *out)
{
    int field;
    uint64_t value;
    bytes inner = {0};
    while (read_field(&from, &field, &inner, &value)) {
        if (field == wanted && number-- == 0) {
            *out = inner;
            return true;
        }
    }
    return false;
}

/* A text field, or "". */
static const char *text_of(bytes from, int field)
{
    static char text[128];
    bytes inner = {0};
    find(from, field, 0, &inner);
    snprintf(text, sizeof text, "%.*s", (int) (inner.end - inner.at), (const char *) inner.at);
    return text;
}

/* ---- a model's file ---- */

enum { MODEL_GRAPH = 7, MODEL_METADATA = 14, GRAPH_NODE = 1, GRAPH_TENSOR = 5, GRAPH_OUTPUT = 12 };
enum { NODE_OUTPUT = 2, NODE_ATTRIBUTE = 5, ATTRIBUTE_NAME = 1 };
enum { NODE_TYPE = 4, TENSOR_DIMS = 1, TENSOR_NAME = 8, TENSOR_RAW = 9, VALUE_NAME = 1 };

static char path[] = "/tmp/hpct-onnx-XXXXXX";

static int make_file(void **state)
{
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    return unlink(path);
}

static bytes load(void)
{
    static uint8_t content[1 << 20];
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    size_t size = fread(content, 1, sizeof content, file);
    fclose(file);
    return (bytes){content, content + size};
}

/* The graph that is written for a model. */
static bytes graph_of(hpct_model *model)
{
    bytes graph = {0};
    small_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, 0);
    assert_int_equal(hpct_model_save_onnx(model, path), HPCT_OK);
    assert_true(find(load(), MODEL_GRAPH, 0, &graph));
    return graph;
}

static void assert_nodes(bytes graph, const char *want)
{
    char got[512] = "";
    bytes node = {0};
    for (int i = 0; find(graph, GRAPH_NODE, i, &node); i++) {
        size_t used = strlen(got);
        snprintf(got + used, sizeof got - used, "%s%s", i > 0 ? " " : "", text_of(node, NODE_TYPE));
    }
    assert_string_equal(got, want);
}

static bool find_tensor(bytes graph, const char *wanted, bytes *out)
{
    char name[128];
    snprintf(name, sizeof name, "%s", wanted); /* it may be text_of's */
    for (int i = 0; find(graph, GRAPH_TENSOR, i, out); i++) {
        if (strcmp(text_of(*out, TENSOR_NAME), name) == 0)
            return true;
    }
    return false;
}

/* Frees the model. */
static void write_nodes(hpct_model *model, const char *want)
{
    assert_nodes(graph_of(model), want);
    hpct_model_free(model);
}

/* ---- tests ---- */

TEST(pictures_are_turned_once_at_each_end)
{
    hpct_model *model = hpct_model_new("picture", HPCT_SHAPE(8, 8, 3));
    hpct_model_add_conv2d(model,
                          &(hpct_conv2d){.filters = 4, .kernel = {3, 3}, .activation = HPCT_RELU});
    hpct_model_add_batch_normalization(model, &(hpct_batch_normalization){0});
    hpct_model_add_activation(model, HPCT_SIGMOID);
    hpct_model_add_max_pool2d(model, &(hpct_max_pool2d){.pool = {2, 2}});
    hpct_model_add_dropout(model, 0.5);
    hpct_model_add_flatten(model);
    hpct_model_add_dense(model, &(hpct_dense){.units = 3, .activation = HPCT_SOFTMAX});
    write_nodes(model, "Transpose Conv Relu BatchNormalization Sigmoid MaxPool Transpose "
                       "Reshape Gemm Softmax");
}

TEST(a_pooled_picture_is_not_turned_back)
{
    hpct_model *model = hpct_model_new("pooled", HPCT_SHAPE(8, 8, 3));
    hpct_model_add_global_average_pool2d(model);
    hpct_model_add_dense(model, &(hpct_dense){.units = 3, .activation = HPCT_SOFTMAX});
    write_nodes(model, "Transpose GlobalAveragePool Reshape Gemm Softmax");
}

TEST(what_does_nothing_is_left_out)
{
    hpct_model *model = hpct_model_new("idle", HPCT_SHAPE(8, 8, 3));
    hpct_model_add_random_flip(model, HPCT_FLIP_BOTH);
    hpct_model_add_random_rotation(model, &(hpct_random_affine){.height = {-1, 1}});
    hpct_model_add_random_contrast(model, &(hpct_random_tone){.factor = {0, 1}});
    hpct_model_add_global_average_pool2d(model);
    hpct_model_add_dropout(model, 0.5); /* of a view */
    hpct_model_add_activation(model, HPCT_LINEAR);
    hpct_model_add_dropout(model, 0.5);
    hpct_model_add_dense(model, &(hpct_dense){.units = 3, .activation = HPCT_SOFTMAX});
    write_nodes(model, "Transpose GlobalAveragePool Reshape Gemm Softmax");
}

TEST(a_random_layer_stands_for_a_view)
{
    hpct_model *model = hpct_model_new("dropped", HPCT_SHAPE(8, 8, 3));
    hpct_model_add_global_average_pool2d(model);
    hpct_model_add_dropout(model, 0.5);
    hpct_model_add_reshape(model, HPCT_SHAPE(1, 3));
    hpct_model_add_dropout(model, 0.5);
    hpct_model_add_flatten(model);
    hpct_model_add_dense(model, &(hpct_dense){.units = 3, .activation = HPCT_SOFTMAX});
    write_nodes(model, "Transpose GlobalAveragePool Reshape Reshape Reshape Gemm Softmax");
}

/* Its sizes are of all axes. */
TEST(a_picture_is_resized_with_its_channels)
{
    bytes node = {0}, attribute = {0};
    hpct_model *model = hpct_model_new("resized", HPCT_SHAPE(8, 8, 3));
    hpct_model_add_resizing(model, 4, 6);
    hpct_model_add_dense(model, &(hpct_dense){.units = 2});
    hpct_model_add_flatten(model);
    hpct_model_add_dense(model, &(hpct_dense){.units = 3, .activation = HPCT_SOFTMAX});
    bytes graph = graph_of(model);
    assert_nodes(graph, "Transpose Shape Concat Resize Transpose MatMul Add Reshape Gemm Softmax");
    assert_true(find(graph, GRAPH_NODE, 3, &node));
    for (int i = 0; find(node, NODE_ATTRIBUTE, i, &attribute); i++)
        assert_string_not_equal(text_of(attribute, ATTRIBUTE_NAME), "axes");
    hpct_model_free(model);
}

/* The convolution's own tensor and a constant of its activation have the same number here. */
TEST(a_constant_has_no_layers_name)
{
    bytes tensor = {0}, node = {0};
    hpct_model *model = hpct_model_new("constants", HPCT_SHAPE(4, 4, 2));
    for (int i = 0; i < 3; i++)
        hpct_model_add_dropout(model, 0.5);
    hpct_model_name_layer(model, "constant");
    hpct_model_add_conv2d(model,
                          &(hpct_conv2d){.filters = 2, .kernel = {1, 1}, .activation = HPCT_GELU});
    hpct_model_add_global_max_pool2d(model);
    bytes graph = graph_of(model);
    for (int i = 0; find(graph, GRAPH_NODE, i, &node); i++) {
        if (find_tensor(graph, text_of(node, NODE_OUTPUT), &tensor))
            fail_msg("%s is a node's output and a constant", text_of(node, NODE_OUTPUT));
    }
    hpct_model_free(model);
}

TEST(joined_branches_have_one_layout)
{
    hpct_model *model = hpct_model_new("branches", HPCT_SHAPE(4, 4, 2));
    hpct_model_add_conv2d(model, &(hpct_conv2d){.filters = 2, .kernel = {1, 1}});
    int branch = hpct_model_head(model);
    hpct_model_add_add(model, (int[]){branch, 0}, 2);
    hpct_model_add_activation(model, HPCT_RELU);
    hpct_model_add_global_max_pool2d(model);
    hpct_model_add_dense(model, &(hpct_dense){.units = 3, .activation = HPCT_SOFTMAX});
    write_nodes(model, "Transpose Conv Add Relu GlobalMaxPool Reshape Gemm Softmax");
}

TEST(kernels_are_by_output_channel)
{
    hpct_model *model = hpct_model_new("kernel", HPCT_SHAPE(4, 4, 2));
    hpct_model_add_conv2d(model, &(hpct_conv2d){.filters = 3, .kernel = {1, 2}, .no_bias = true});
    hpct_model_add_global_max_pool2d(model);
    bytes tensor = {0}, raw = {0};
    float keras[1 * 2 * 2 * 3], onnx[3 * 2 * 1 * 2];
    bytes graph = graph_of(model);
    assert_true(find_tensor(graph, "conv2d/kernel", &tensor) && find(tensor, TENSOR_RAW, 0, &raw));
    assert_int_equal(raw.end - raw.at, sizeof onnx);
    memcpy(onnx, raw.at, sizeof onnx);
    memcpy(keras, model->params[0].value, sizeof keras);
    for (int o = 0; o < 3; o++) {
        for (int i = 0; i < 2; i++) {
            for (int w = 0; w < 2; w++)
                assert_true(onnx[(o * 2 + i) * 2 + w] == keras[(w * 2 + i) * 3 + o]);
        }
    }
    hpct_model_free(model);
}

TEST(class_names_are_metadata)
{
    bytes entry = {0};
    hpct_model *model = hpct_model_new("names", HPCT_SHAPE(4));
    hpct_model_add_dense(model, &(hpct_dense){.units = 2, .activation = HPCT_SOFTMAX});
    hpct_model_set_class_names(model, (const char *const[]){"cat", "dog"}, 2);
    bytes graph = graph_of(model), output;
    assert_true(find(load(), MODEL_METADATA, 0, &entry));
    assert_string_equal(text_of(entry, 1), "class_names");
    assert_string_equal(text_of(entry, 2), "[\"cat\",\"dog\"]");
    assert_true(find(graph, GRAPH_OUTPUT, 0, &output));
    assert_string_equal(text_of(output, VALUE_NAME), "dense");
    hpct_model_free(model);
}

TEST(a_model_without_operations_has_one)
{
    hpct_model *model = hpct_model_new("nothing", HPCT_SHAPE(4));
    hpct_model_add_dropout(model, 0.5);
    write_nodes(model, "Identity");
}

/* Random layers are left out, also of a view, whose values nothing has asked for before. */
TEST(random_layers_are_left_out)
{
    hpct_model *model = hpct_model_new("random", HPCT_SHAPE(4, 4, 2));
    hpct_model_add_gaussian_noise(model, 0.1);
    hpct_model_add_spatial_dropout2d(model, 0.5);
    hpct_model_add_stochastic_depth(model, 0.5);
    hpct_model_add_global_average_pool2d(model);
    hpct_model_add_dropout(model, 0.5);
    hpct_model_add_dense(model, &(hpct_dense){.units = 3, .activation = HPCT_SOFTMAX});
    write_nodes(model, "Transpose GlobalAveragePool Reshape Gemm Softmax");
}

TEST(activations_stay_in_the_layout)
{
    static const hpct_relu above = {.max_value = 3, .negative_slope = 0.5, .threshold = 1};
    hpct_model *model = hpct_model_new("activations", HPCT_SHAPE(4, 4, 2));
    hpct_model_add_conv2d(model, &(hpct_conv2d){.filters = 2, .kernel = {1, 1}});
    hpct_model_add_activation(model, HPCT_SILU);
    hpct_model_add_activation(model, HPCT_HARD_SIGMOID);
    hpct_model_add_activation(model, HPCT_HARD_SILU);
    hpct_model_add_activation(model, HPCT_MISH);
    hpct_model_add_leaky_relu(model, 0.1);
    hpct_model_add_elu(model, 1);
    hpct_model_add_prelu(model, false);
    hpct_model_add_relu(model, &above);
    hpct_model_add_global_max_pool2d(model);
    hpct_model_add_dense(model, &(hpct_dense){.units = 3, .activation = HPCT_SOFTMAX});
    write_nodes(model, "Transpose Conv Sigmoid Mul HardSigmoid HardSwish Mish LeakyRelu Elu PRelu "
                       "Min Greater Sub Mul Where GlobalMaxPool Reshape Gemm Softmax");
}

/* Which layers want their channels first, and which last. */
TEST(normalizations_have_their_layout)
{
    hpct_model *model = hpct_model_new("norms", HPCT_SHAPE(4, 4, 2));
    hpct_model_add_normalization(model);
    hpct_model_add_layer_normalization(model, &(hpct_layer_normalization){0});
    hpct_model_add_layer_scale(model, 0.5);
    hpct_model_add_group_normalization(model, &(hpct_group_normalization){.groups = 2});
    hpct_model_add_layer_scale(model, 0.5);
    hpct_model_add_global_max_pool2d(model);
    hpct_model_add_dense(model, &(hpct_dense){.units = 3, .activation = HPCT_SOFTMAX});
    write_nodes(model,
                "Sub Sqrt Max Div LayerNormalization Mul Transpose Reshape InstanceNormalization "
                "Reshape Mul Add Mul GlobalMaxPool Reshape Gemm Softmax");
}

/* The shape of a tensor in the file. */
static void assert_sizes(bytes graph, const char *name, const int *sizes, int rank)
{
    bytes tensor = {0}, inner;
    int field, axis = 0;
    uint64_t value = 0;
    assert_true(find_tensor(graph, name, &tensor));
    while (read_field(&tensor, &field, &inner, &value)) {
        if (field == TENSOR_DIMS)
            assert_true(axis < rank && value == (uint64_t) sizes[axis++]);
    }
    assert_int_equal(axis, rank);
}

TEST(numbers_of_channels_are_broadcast)
{
    hpct_model *model = hpct_model_new("scales", HPCT_SHAPE(4, 5, 2));
    hpct_model_add_layer_scale(model, 0.5);
    hpct_model_add_conv2d_transpose(model,
                                    &(hpct_conv2d_transpose){.filters = 3, .kernel = {1, 2}});
    hpct_model_add_layer_scale(model, 0.5);
    hpct_model_add_prelu(model, false);
    hpct_model_add_global_max_pool2d(model);
    bytes graph = graph_of(model);
    assert_sizes(graph, "layer_scale/gamma", (int[]){2}, 1);
    assert_sizes(graph, "conv2d_transpose/kernel", (int[]){2, 3, 1, 2}, 4);
    assert_sizes(graph, "layer_scale_1/gamma", (int[]){3, 1, 1}, 3);
    assert_sizes(graph, "p_re_lu/alpha", (int[]){3, 4, 6}, 3);
    hpct_model_free(model);
}

/* Each kind that a model can have is written: a new one needs its row. */
TEST(every_operation_has_a_row)
{
    for (int kind = 0; kind < HPCT_OP_KINDS; kind++) {
        const hpct_op_spec spec = {.kind = (hpct_op_kind) kind};
        if (!hpct_op_is_collective(&spec) && !hpct_onnx_has_row(spec.kind))
            fail_msg("%s is not in nn/file/onnx/nodes.c", hpct_op_kind_name(spec.kind));
    }
}

TEST(what_is_not_there_is_not_written)
{
    hpct_model *model = hpct_model_new("early", HPCT_SHAPE(4));
    hpct_optimizer sgd = {.kind = HPCT_SGD, .learning_rate = 0.1};
    hpct_model_add_dense(model, &(hpct_dense){.units = 2, .activation = HPCT_SOFTMAX});
    assert_int_equal(hpct_model_save_onnx(model, path), HPCT_ERR_USAGE);
    assert_int_equal(hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, &sgd),
                     HPCT_OK);
    assert_int_equal(hpct_model_save_onnx(model, path), HPCT_ERR_USAGE);
    assert_int_equal(hpct_model_initialize(model, 1), HPCT_OK);
    assert_int_equal(hpct_model_save_onnx(model, "/none/model.onnx"), HPCT_ERR_IO);
    hpct_model_free(model);
}

int main(void)
{
    return unit_run(make_file, remove_file);
}
