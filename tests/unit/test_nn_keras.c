/* Models as Keras' JSON: what is read, what is refused and how the message names it, what is
 * written; Keras' order of layers; initializers. */
#include "nn/keras/keras.h"
#include "nn/keras/order.h"
#include "nn/run.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <unistd.h>

static const hpct_optimizer sgd = {.kind = HPCT_SGD, .learning_rate = 0.1};

static hpct_model *read_model(const char *text)
{
    hpct_model *model = NULL;
    if (hpct_model_from_json(&model, text, strlen(text)) != HPCT_OK)
        fail_msg("%s", hpct_last_error());
    return model;
}

static void assert_refused(const char *text, const char *message)
{
    hpct_model *model = NULL;
    assert_int_equal(hpct_model_from_json(&model, text, strlen(text)), HPCT_ERR_DATA);
    if (strstr(hpct_last_error(), message) == NULL)
        fail_msg("\"%s\" is not in: %s", message, hpct_last_error());
    assert_null(model);
}

static void assert_same_text(const hpct_model *a, const hpct_model *b)
{
    char *x, *y;
    assert_int_equal(hpct_keras_write(&x, a), HPCT_OK);
    assert_int_equal(hpct_keras_write(&y, b), HPCT_OK);
    assert_string_equal(x, y);
    free(x);
    free(y);
}

/* ---- Sequential ---- */

#define INPUT_3                                                                                    \
    "{\"class_name\":\"InputLayer\",\"config\":{\"batch_shape\":[null,8,8,1],\"name\":\"in\"}}"
#define INPUT_2                                                                                    \
    "{\"class_name\":\"InputLayer\",\"config\":{\"batch_input_shape\":[null,8,8,1],"               \
    "\"dtype\":\"float32\",\"sparse\":false,\"ragged\":false,\"name\":\"in\"}}"
#define SEQUENTIAL(layers)                                                                         \
    "{\"class_name\":\"Sequential\",\"config\":{\"name\":\"s\",\"layers\":[" layers "]}}"
#define LAYER(class, config) "{\"class_name\":\"" class "\",\"config\":{" config "}}"
#define CONV(more)                                                                                 \
    LAYER("Conv2D", "\"name\":\"c\",\"filters\":4,\"kernel_size\":[3,3],\"padding\":"              \
                    "\"same\"" more)
#define FLATTEN LAYER("Flatten", "\"name\":\"f\"")
#define DENSE LAYER("Dense", "\"name\":\"d\",\"units\":5,\"activation\":\"softmax\"")

static void sequential_of_both_kerases(void **state)
{
    (void) state;
    hpct_model *new = read_model(SEQUENTIAL(INPUT_3 "," CONV() "," FLATTEN "," DENSE));
    hpct_model *old = read_model(SEQUENTIAL(INPUT_2 "," CONV(
        ",\"batch_input_shape\":[null,8,8,1],\"dtype\":\"float32\"") "," FLATTEN "," DENSE));
    assert_string_equal(hpct_model_name(new), "s");
    assert_int_equal(new->num_layers, 3);
    assert_string_equal(new->layers[0].name, "c");
    assert_string_equal(new->params[2].name, "d/kernel");
    assert_int_equal(hpct_model_count_parameters(new), 9 * 4 + 4 + 8 * 8 * 4 * 5 + 5);
    assert_true(hpct_model_ends_in_softmax(new));
    assert_same_text(new, old);
    hpct_model_free(new);
    hpct_model_free(old);
}

/* Keras 2 without an Input, and the policy as an object, as Keras 3 writes it. */
static void other_spellings(void **state)
{
    (void) state;
    hpct_model *model = read_model(SEQUENTIAL(LAYER(
        "Conv2D",
        "\"name\":\"c\",\"batch_input_shape\":[null,8,8,1],\"filters\":2,\"kernel_size\":3,"
        "\"strides\":2,\"data_format\":\"channels_last\",\"kernel_regularizer\":null,"
        "\"activation\":{\"module\":\"builtins\",\"class_name\":\"function\",\"config\":\"relu\","
        "\"registered_name\":\"function\"},"
        "\"dtype\":{\"module\":\"keras\",\"class_name\":\"DTypePolicy\",\"config\":"
        "{\"name\":\"float32\"},\"registered_name\":null}")));
    assert_int_equal(model->layers[0].output.size[0], 3);
    assert_true(model->nodes[0].spec.relu);
    assert_false(hpct_model_ends_in_softmax(model));
    hpct_model_free(model);
    model =
        read_model("{\"class_name\":\"Sequential\",\"config\":{\"name\":\"s\",\"layers\":[" FLATTEN
                   "],\"build_input_shape\":[null,2,3]}}");
    assert_int_equal(hpct_model_output_shape(model).size[0], 6);
    hpct_model_free(model);
}

/* Before Keras 2.2.3 the config of a Sequential was the list of its layers. */
static void lists_of_keras_2(void **state)
{
    (void) state;
    hpct_model *model = read_model(
        "{\"class_name\":\"Sequential\",\"keras_version\":\"2.1.6\",\"backend\":\"tensorflow\","
        "\"config\":[" CONV(",\"trainable\":true,\"batch_input_shape\":[null,8,8,1],"
                            "\"dtype\":\"float32\",\"activation\":\"relu\"") "," FLATTEN "," DENSE
                                                                             "]}");
    assert_int_equal(model->num_layers, 3);
    assert_string_equal(model->layers[0].name, "c");
    assert_int_equal(hpct_model_output_shape(model).size[0], 5);
    hpct_model_free(model);
    assert_refused("{\"class_name\":\"Sequential\",\"config\":[" FLATTEN "]}",
                   "the input's shape is not in it");
    assert_refused("{\"class_name\":\"Sequential\",\"config\":[]}", "it has 0 layers");
}

/* json.dump(model.to_json()), and what an editor of Windows makes of a file. */
static void text_in_text(void **state)
{
    (void) state;
    static const char plain[] = SEQUENTIAL(INPUT_3 "," FLATTEN "," DENSE);
    char twice[sizeof plain * 2 + 8], *to = twice;
    *to++ = '"';
    for (const char *c = plain; *c != '\0'; c++) {
        if (*c == '"')
            *to++ = '\\';
        *to++ = *c;
    }
    strcpy(to, "\"");
    hpct_model *model = read_model(plain), *encoded = read_model(twice);
    assert_same_text(model, encoded);
    hpct_model_free(encoded);
    snprintf(twice, sizeof twice, "\xef\xbb\xbf%s", plain);
    encoded = read_model(twice);
    assert_same_text(model, encoded);
    hpct_model_free(encoded);
    hpct_model_free(model);
    assert_refused("\"abc\"", "line 1");
    assert_refused("\"\\\"abc\\\"\"", "line 1"); /* a string in a string */
    assert_refused("7", "not a Keras model");
    assert_refused("{\"name\":\"s\",\"layers\":[" FLATTEN "]}", "what get_config() gives");
    assert_refused("{\"modelTopology\":{}}", "TensorFlow.js");
    assert_refused("{\"class_name\":\"MyModel\",\"config\":{}}",
                   "its class is not Sequential or Functional");
}

/* The loss that the last layer asks for. */
static void the_outputs_ask_for_a_loss(void **state)
{
    (void) state;
#define ENDS(units, activation)                                                                    \
    SEQUENTIAL(INPUT_3 "," FLATTEN "," LAYER("Dense", "\"name\":\"d\",\"units\":" units            \
                                                      ",\"activation\":\"" activation "\""))
    static const struct {
        const char *text;
        hpct_loss loss;
        int labels;
    } good[] = {
        {ENDS("5", "softmax"), HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, 5},
        {ENDS("5", "sigmoid"), HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, 5},
        {ENDS("5", "linear"), HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, 5},
        {ENDS("5", "relu"), HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, 5},
        {ENDS("1", "sigmoid"), HPCT_BINARY_CROSSENTROPY, 2},
        {ENDS("1", "linear"), HPCT_BINARY_CROSSENTROPY_FROM_LOGITS, 2},
    };
    static const char *const bad[][2] = {{ENDS("1", "softmax"), "softmax, which is always 1"},
                                         {ENDS("1", "relu"), "one output of relu"},
                                         {ENDS("1", "tanh"), "one output of tanh"}};
    hpct_loss loss;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        hpct_model *model = read_model(good[i].text);
        assert_int_equal(hpct_model_own_loss(model, &loss), HPCT_OK);
        assert_int_equal(loss, good[i].loss);
        assert_int_equal(hpct_model_compile(model, loss, &sgd), HPCT_OK);
        assert_int_equal(hpct_model_count_labels(model), good[i].labels);
        hpct_model_free(model);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hpct_model *model = read_model(bad[i][0]);
        assert_int_equal(hpct_model_own_loss(model, &loss), HPCT_ERR_DATA);
        assert_non_null(strstr(hpct_last_error(), bad[i][1]));
        hpct_model_free(model);
    }
}

/* ---- dtype policies ---- */

#define POLICY_3(name)                                                                             \
    ",\"dtype\":{\"module\":\"keras\",\"class_name\":\"DTypePolicy\",\"config\":{\"name\":\"" name \
    "\"},\"registered_name\":null}"
#define POLICY_2(name) ",\"dtype\":{\"class_name\":\"Policy\",\"config\":{\"name\":\"" name "\"}}"

/* One layer of mixed_bfloat16 makes the model so, and float32 beside it an exception; the caller
 * may want another precision, which all have then. */
static void policies_are_precisions(void **state)
{
    (void) state;
    static const char *const texts[] = {
        SEQUENTIAL(INPUT_3 "," CONV(POLICY_3("mixed_bfloat16")) "," FLATTEN "," DENSE),
        SEQUENTIAL(INPUT_2 "," CONV(POLICY_2("mixed_bfloat16")) "," FLATTEN "," DENSE),
        SEQUENTIAL(INPUT_3 "," CONV(",\"dtype\":\"mixed_bfloat16\"") "," FLATTEN "," DENSE),
    };
    for (int i = 0; i < 3; i++) {
        hpct_model *model = read_model(texts[i]);
        assert_int_equal(hpct_model_precision(model), HPCT_BF16);
        assert_int_equal(hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, &sgd),
                         HPCT_OK);
        assert_int_equal(hpct_model_precision(model), HPCT_BF16);
        assert_int_equal(hpct_node_precision(model, &model->nodes[0]), HPCT_BF16);
        assert_int_equal(hpct_node_precision(model, &model->nodes[1]), HPCT_FP32); /* d */
        char *text;
        assert_int_equal(hpct_keras_write(&text, model), HPCT_OK);
        hpct_model *again = read_model(text);
        assert_same_text(model, again);
        hpct_model_free(again);
        free(text);
        hpct_compile_options options = {.loss = HPCT_SPARSE_CATEGORICAL_CROSSENTROPY,
                                        .optimizer = sgd};
        assert_int_equal(hpct_model_compile_with(model, &options), HPCT_OK);
        assert_int_equal(hpct_node_precision(model, &model->nodes[0]), HPCT_FP32);
        hpct_model_free(model);
    }
    hpct_model *half =
        read_model(SEQUENTIAL(INPUT_3 "," CONV(POLICY_3("mixed_float16")) "," FLATTEN "," DENSE));
    assert_int_equal(hpct_model_precision(half), HPCT_FP16);
    assert_int_equal(hpct_node_precision(half, &half->nodes[1]), HPCT_FP32);
    char *text;
    assert_int_equal(hpct_keras_write(&text, half), HPCT_OK);
    assert_non_null(strstr(text, "mixed_float16"));
    free(text);
    hpct_model_free(half);
    hpct_model *model = read_model(SEQUENTIAL(INPUT_3 "," CONV() "," FLATTEN "," DENSE));
    assert_int_equal(hpct_model_precision(model), HPCT_FP32);
    hpct_compile_options options = {
        .loss = HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, .optimizer = sgd, .precision = HPCT_BF16};
    assert_int_equal(hpct_model_compile_with(model, &options), HPCT_OK);
    assert_int_equal(hpct_node_precision(model, &model->nodes[1]), HPCT_BF16);
    hpct_model_free(model);
}

/* ---- Functional ---- */

#define FUNCTIONAL(layers, ends)                                                                   \
    "{\"class_name\":\"Functional\",\"config\":{\"name\":\"f\",\"layers\":[" layers "]," ends "}}"
#define ENDS_2 "\"input_layers\":[[\"in\",0,0]],\"output_layers\":[[\"sum\",0,0]]"
#define ENDS_3 "\"input_layers\":[\"in\",0,0],\"output_layers\":[\"sum\",0,0]"
#define NODE(class, config, inbound)                                                               \
    "{\"class_name\":\"" class "\",\"config\":{" config "},\"inbound_nodes\":" inbound "}"
#define IN NODE("InputLayer", "\"batch_shape\":[null,8,8,2],\"name\":\"in\"", "[]")
#define CONV_A(inbound)                                                                            \
    NODE("Conv2D", "\"name\":\"a\",\"filters\":2,\"kernel_size\":[1,1]", inbound)
#define CONV_B(inbound)                                                                            \
    NODE("Conv2D", "\"name\":\"b\",\"filters\":2,\"kernel_size\":[1,1]", inbound)
#define SUM(inbound) NODE("Add", "\"name\":\"sum\"", inbound)
#define OLD(name) "[[[\"" name "\",0,0,{}]]]"
#define TENSOR(name)                                                                               \
    "{\"class_name\":\"__keras_tensor__\",\"config\":{\"shape\":[null,8,8,2],\"dtype\":"           \
    "\"float32\",\"keras_history\":[\"" name "\",0,0]}}"
#define NEW(name) "[{\"args\":[" TENSOR(name) "],\"kwargs\":{\"mask\":null,\"training\":false}}]"
#define OLD_SUM SUM("[[[\"in\",0,0,{}],[\"b\",0,0,{}]]]")
#define NEW_SUM SUM("[{\"args\":[[" TENSOR("in") "," TENSOR("b") "]],\"kwargs\":{}}]")

#define FLAT                                                                                       \
    "{\"class_name\":\"Flatten\",\"config\":{\"name\":\"fl\"},\"inbound_nodes\":[[[\"in\",0,0,{}]" \
    "]]}"

static void functional_of_both_kerases(void **state)
{
    (void) state;
    hpct_model *old =
        read_model(FUNCTIONAL(IN "," CONV_A(OLD("in")) "," CONV_B(OLD("a")) "," OLD_SUM, ENDS_2));
    hpct_model *new =
        read_model(FUNCTIONAL(IN "," CONV_A(NEW("in")) "," CONV_B(NEW("a")) "," NEW_SUM, ENDS_3));
    hpct_model *shuffled =
        read_model(FUNCTIONAL(NEW_SUM "," CONV_B(NEW("a")) "," CONV_A(NEW("in")) "," IN, ENDS_3));
    assert_int_equal(old->num_layers, 3);
    assert_int_equal(old->layers[2].num_inputs, 2);
    assert_int_equal(old->layers[2].inputs[0], 0);
    assert_int_equal(old->output, old->layers[2].tensor);
    assert_same_text(old, new);
    assert_same_text(old, shuffled);
    hpct_model_free(old);
    hpct_model_free(new);
    hpct_model_free(shuffled);
    hpct_model *named =
        read_model(FUNCTIONAL(IN "," FLAT, "\"input_layers\":{\"in\":[\"in\",0,0]},"
                                           "\"output_layers\":{\"y\":[\"fl\",0,0]}"));
    assert_int_equal(named->num_layers, 1);
    hpct_model_free(named);
    assert_refused(FUNCTIONAL(IN "," FLAT,
                              "\"input_layers\":{\"a\":[\"in\",0,0],\"b\":[\"in\",0,0]},"
                              "\"output_layers\":[[\"fl\",0,0]]"),
                   "input_layers: it has 2");
    assert_refused(FUNCTIONAL(IN "," FLAT, "\"input_layers\":{},\"output_layers\":[[\"fl\",0,0]]"),
                   "input_layers: it has 0");
}

/* ---- refusals ---- */

static void what_is_wrong_is_named(void **state)
{
    (void) state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{", "line 1"},
        {"[]", "not a Keras model"},
        {LAYER("Model2", ""), "class_name \"Model2\""},
        {SEQUENTIAL(""), "it has 0 layers"},
        {SEQUENTIAL(INPUT_3), "no layer besides its input"},
        {SEQUENTIAL(FLATTEN), "the input's shape is not in it"},
        {SEQUENTIAL(LAYER("InputLayer", "\"batch_shape\":[null,null,8,1]")), "must be fixed"},
        {SEQUENTIAL(LAYER("InputLayer", "\"batch_shape\":[32,8,8,1]")), "fixed batch size"},
        {SEQUENTIAL(LAYER("InputLayer", "\"batch_shape\":[null,8],\"name\":\"i\",\"sparse\":true")),
         "layer \"i\" (InputLayer): sparse"},
        {SEQUENTIAL(INPUT_3 "," LAYER("LSTM", "\"name\":\"l\"")),
         "layer \"l\" (LSTM): there is no layer of this class"},
        {SEQUENTIAL(INPUT_3 ",{\"class_name\":\"Flatten\",\"config\":{\"name\":\"x\"},"
                            "\"registered_name\":\"mine>Flatten\"}"),
         "layer \"x\" (Flatten): there is no layer of this class"},
        {SEQUENTIAL(INPUT_3 ",{\"class_name\":\"Flatten\",\"config\":{},\"module\":\"mine\"}"),
         "there is no layer of this class"},
        {SEQUENTIAL(INPUT_3 "," CONV(",\"data_format\":\"channels_first\"")),
         "layer \"c\" (Conv2D): data_format \"channels_first\" is not supported"},
        {SEQUENTIAL(INPUT_3 "," CONV(",\"activation\":\"selu\"")), "activation \"selu\""},
        {SEQUENTIAL(INPUT_3 "," CONV(",\"trainable\":false")), "\"c\" (Conv2D): trainable false"},
        {SEQUENTIAL(INPUT_3 "," CONV(POLICY_3("float64"))),
         "layer \"c\" (Conv2D): dtype policy \"float64\" is not supported; there are: float32, "
         "mixed_bfloat16, mixed_float16"},
        {SEQUENTIAL(INPUT_3 "," CONV(
             POLICY_3("mixed_bfloat16")) ",{\"class_name\":\"Flatten\",\"config\":{\"name\":"
                                         "\"x\"" POLICY_3("mixed_float16") "}}"),
         "layer \"x\" (Flatten): dtype policy mixed_float16 beside mixed_bfloat16 of another"},
        {SEQUENTIAL(INPUT_3 "," CONV(POLICY_2("bfloat16"))),
         "\"c\" (Conv2D): dtype policy \"bfloat16\""},
        {SEQUENTIAL(INPUT_3 "," CONV(",\"dtype\":{\"class_name\":\"DTypePolicyMap\"}")),
         "dtype policy \"(without a name)\""},
        {SEQUENTIAL(INPUT_3 "," CONV(",\"kernel_regularizer\":{\"class_name\":\"L2\"}")),
         "kernel_regularizer {\"class_name\":\"L2\"} is not supported"},
        {SEQUENTIAL(INPUT_3 "," CONV(",\"brand_new\":1")), "brand_new 1 is not supported"},
        {SEQUENTIAL(INPUT_3 "," CONV(",\"filters2\":null,\"groups\":3")), "3 groups do not divide"},
        {SEQUENTIAL(INPUT_3 "," CONV(",\"strides\":[1,2,3]")), "strides [1,2,3] is not supported"},
        {SEQUENTIAL(INPUT_3 "," CONV(",\"use_bias\":1")), "use_bias 1 is not supported"},
        {SEQUENTIAL(INPUT_3 "," CONV(",\"groups\":99999999999")), "groups 99999999999"},
        {SEQUENTIAL(INPUT_3 "," CONV(",\"kernel_initializer\":\"orthogonal\"")),
         "kernel_initializer orthogonal is not supported"},
        {SEQUENTIAL(INPUT_3 "," CONV() "," CONV()), "layer c: there is a layer of this name"},
        {SEQUENTIAL(INPUT_3 "," LAYER("ReLU", "\"max_value\":3.0")), "max_value 3"},
        {SEQUENTIAL(INPUT_3 "," LAYER("ReLU", "\"negative_slope\":0.1")), "negative_slope"},
        {SEQUENTIAL(INPUT_3 "," LAYER("Softmax", "\"axis\":1")), "axis other than the last"},
        {SEQUENTIAL(INPUT_3 "," LAYER("Reshape", "\"name\":\"r\",\"target_shape\":[7]")),
         "layer r: input 8x8x1 cannot take"},
        {SEQUENTIAL(INPUT_3 "," LAYER("Reshape", "\"name\":\"r\"")), "target_shape is missing"},
        {SEQUENTIAL(INPUT_3 "," LAYER("Resizing",
                                      "\"height\":4,\"width\":4,\"interpolation\":\"bicubic\"")),
         "interpolation \"bicubic\" is not supported; there is: \"bilinear\""},
        {SEQUENTIAL(INPUT_3 "," LAYER("Resizing", "\"height\":4,\"width\":4,\"antialias\":true")),
         "antialias true"},
        {FUNCTIONAL(IN "," CONV_A(OLD("nowhere")) "," OLD_SUM, ENDS_2),
         "layer \"a\" (Conv2D): it reads layer \"nowhere\", but there is none"},
        {FUNCTIONAL(IN "," CONV_A(OLD("b")) "," CONV_B(OLD("a")) "," OLD_SUM, ENDS_2),
         "in a circle"},
        {FUNCTIONAL(IN "," CONV_A(OLD("in")) "," CONV_A(OLD("in")) "," OLD_SUM, ENDS_2),
         "two layers are called \"a\""},
        {FUNCTIONAL(IN "," CONV_A("[[[\"in\",0,0,{}]],[[\"b\",0,0,{}]]]") "," CONV_B(
                        OLD("in")) "," OLD_SUM,
                    ENDS_2),
         "layer \"a\" (Conv2D): it is called 2 times; shared layers"},
        {FUNCTIONAL(IN "," CONV_A("[[[\"in\",1,0,{}]]]") "," OLD_SUM, ENDS_2), "more than once"},
        {FUNCTIONAL(IN "," CONV_A("[[[\"in\",0,0,{\"training\":true}]]]") "," OLD_SUM, ENDS_2),
         "called with arguments"},
        {FUNCTIONAL(
             IN "," CONV_A("[{\"args\":[" TENSOR("in") "],\"kwargs\":{\"axis\":1}}]") "," OLD_SUM,
             ENDS_2),
         "called with arguments"},
        {FUNCTIONAL(IN "," CONV_A("[{\"args\":[7],\"kwargs\":{}}]") "," OLD_SUM, ENDS_2),
         "something other than tensors"},
        {FUNCTIONAL(IN "," CONV_A(OLD("in")) "," CONV_B(OLD("in")) "," OLD_SUM, ENDS_2),
         "layer \"a\" does not lead to the model's output"},
        {FUNCTIONAL(IN "," CONV_B(OLD("in")) "," SUM(OLD("b")), ENDS_2),
         "layer \"sum\" (Add): it reads 1 tensors"},
        {FUNCTIONAL(IN "," CONV_A(OLD("in")),
                    "\"input_layers\":[[\"in\",0,0]],\"output_layers\":[[\"a\",0,0],[\"in\",0,0]]"),
         "output_layers: it has 2"},
        {FUNCTIONAL(IN "," CONV_A(OLD("in")),
                    "\"input_layers\":[[\"a\",0,0]],\"output_layers\":[[\"a\",0,0]]"),
         "\"a\" is not an InputLayer"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_refused(cases[i].text, cases[i].message);
}

static void a_file_is_named(void **state)
{
    (void) state;
    hpct_model *model = NULL;
    char path[] = "/tmp/hpct-keras-XXXXXX";
    int file = mkstemp(path);
    assert_int_equal(write(file, "{}", 2), 2);
    close(file);
    assert_int_equal(hpct_model_load_json(&model, path), HPCT_ERR_DATA);
    assert_non_null(strstr(hpct_last_error(), path));
    static const char *const others[][2] = {
        {"\x89HDF\r\n\x1a\n", "model.to_json()"},
        {"class_name: Model\n", "in YAML"},
        {"version https://git-lfs.github.com/spec/v1", "git lfs pull"},
        {"<!DOCTYPE html>", "a page of HTML"},
        {"", "an empty file"},
        {"\xff\xfe{", "UTF-16"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        FILE *other = fopen(path, "w");
        fputs(others[i][0], other);
        fclose(other);
        assert_int_equal(hpct_model_load_json(&model, path), HPCT_ERR_DATA);
        if (strstr(hpct_last_error(), others[i][1]) == NULL)
            fail_msg("%s: %s", others[i][0], hpct_last_error());
    }
    unlink(path);
    assert_int_equal(hpct_model_load_json(&model, path), HPCT_ERR_NO_INPUT);
    assert_int_equal(hpct_model_load_json(&model, "/tmp"), HPCT_ERR_NO_INPUT);
}

/* ---- writing ---- */

/* Every class, with settings that are not the defaults. */
static hpct_model *every_layer(void)
{
    hpct_model *model = hpct_model_new("all", HPCT_SHAPE(20, 18, 4));
    hpct_model_add_rescaling(model, 1.0 / 255, -0.5);
    hpct_model_add_random_flip(model, HPCT_FLIP_VERTICAL);
    hpct_model_add_random_crop(model, 17, 16);
    hpct_model_add_resizing(model, 16, 15);
    hpct_model_name_layer(model, "input_layer"); /* the input takes another name */
    hpct_model_add_conv2d(model, &(hpct_conv2d){.filters = 6,
                                                .kernel = {3, 2},
                                                .strides = {2, 1},
                                                .groups = 2,
                                                .padding = HPCT_SAME,
                                                .no_bias = true,
                                                .activation = HPCT_GELU});
    int branch = hpct_model_head(model);
    hpct_model_add_depthwise_conv2d(
        model, &(hpct_depthwise_conv2d){
                   .kernel = {3, 3}, .dilation = {2, 1}, .multiplier = 2, .padding = HPCT_SAME});
    hpct_model_add_conv2d(
        model, &(hpct_conv2d){
                   .filters = 6, .kernel = {1, 1}, .dilation = {1, 3}, .activation = HPCT_TANH});
    hpct_model_add_add(model, (int[]){branch, hpct_model_head(model)}, 2);
    hpct_model_add_activation(model, HPCT_RELU6);
    hpct_model_add_concatenate(model, (int[]){hpct_model_head(model), branch}, 2);
    hpct_model_add_batch_normalization(
        model, &(hpct_batch_normalization){
                   .synchronized = true, .momentum = 0.9, .epsilon = 1e-5, .no_scale = true});
    hpct_model_add_zero_padding2d(model, &(hpct_zero_padding2d){.padding = {{1, 2}, {3, 0}}});
    hpct_model_add_max_pool2d(model, &(hpct_max_pool2d){.pool = {2, 3}, .strides = {1, 2}});
    hpct_model_add_average_pool2d(model,
                                  &(hpct_average_pool2d){.pool = {2, 2}, .padding = HPCT_SAME});
    hpct_model_add_reshape(model, HPCT_SHAPE(-1, 6));
    hpct_model_add_flatten(model);
    hpct_model_add_dropout(model, 0.25);
    hpct_model_add_dense(model, &(hpct_dense){.units = 7, .no_bias = true});
    hpct_model_add_activation(model, HPCT_SOFTMAX);
    assert_int_equal(model->status, HPCT_OK);
    return model;
}

static void what_is_written_is_read_again(void **state)
{
    (void) state;
    char *text;
    hpct_model *model = every_layer();
    assert_int_equal(hpct_keras_write(&text, model), HPCT_OK);
    hpct_model *again = read_model(text);
    assert_same_text(model, again);
    assert_int_equal(model->num_nodes, again->num_nodes);
    for (int i = 0; i < model->num_nodes; i++)
        assert_memory_equal(&model->nodes[i].spec, &again->nodes[i].spec, sizeof(hpct_op_spec));
    for (int i = 0; i < model->num_params; i++)
        assert_string_equal(model->params[i].name, again->params[i].name);
    free(text);
    hpct_model_free(model);
    hpct_model_free(again);
}

static void a_saved_file_is_whole(void **state)
{
    (void) state;
    char folder[] = "/tmp/hpct-keras-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/m.json", folder);
    hpct_model *model = every_layer(), *again = NULL;
    assert_int_equal(hpct_model_save_json(model, path), HPCT_OK);
    assert_int_equal(hpct_model_load_json(&again, path), HPCT_OK);
    assert_same_text(model, again);
    unlink(path);
    assert_int_equal(rmdir(folder), 0); /* nothing is left beside it */
    hpct_model_free(model);
    hpct_model_free(again);
}

/* ---- Keras' order ---- */

/* Two branches, made first to last: by Keras' rule what is nearer to the output comes later, and of
 * two at one distance that which the last layer reads first. */
static void layers_are_ordered_as_keras_does(void **state)
{
    (void) state;
    static const hpct_conv2d one = {.filters = 2, .kernel = {1, 1}};
    static const char *const made[] = {"short", "long1", "long2", "low", "sum"};
    hpct_model *model = hpct_model_new("m", HPCT_SHAPE(4, 4, 2));
    int tensors[4], order[5];
    for (int i = 0; i < 4; i++) {
        if (i != 2)
            hpct_model_set_head(model, i == 3 ? tensors[0] : 0);
        hpct_model_name_layer(model, made[i]);
        hpct_model_add_conv2d(model, &one);
        tensors[i] = hpct_model_head(model);
    }
    hpct_model_name_layer(model, made[4]);
    hpct_model_add_add(model, (int[]){tensors[2], tensors[3]}, 2);
    assert_int_equal(model->status, HPCT_OK);
    assert_int_equal(hpct_keras_order(model, order), HPCT_OK);
    /* depths: long1 2, long2 1, short 2, low 1, sum 0; met: sum long2 long1 low short */
    static const char *const wanted[] = {"long1", "short", "long2", "low", "sum"};
    for (int i = 0; i < 5; i++)
        assert_string_equal(model->layers[order[i]].name, wanted[i]);
    hpct_model_free(model);
}

static void stems_are_keras(void **state)
{
    (void) state;
    static const char *const names[][2] = {
        {"Conv2D", "conv2d"},
        {"DepthwiseConv2D", "depthwise_conv2d"},
        {"GlobalAveragePooling2D", "global_average_pooling2d"},
        {"BatchNormalization", "batch_normalization"},
        {"ReLU", "re_lu"},
        {"Add", "add"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char stem[HPCT_KERAS_STEM_SIZE];
        hpct_keras_stem(names[i][0], stem);
        assert_string_equal(stem, names[i][1]);
    }
}

/* ---- initializers ---- */

#define DRAWN 40000

/* A Dense layer of 200 x 200 with this initializer: mean, standard deviation, extremes. */
static void draw(const char *initializer, double *mean, double *deviation, double *largest)
{
    char text[1024];
    float values[DRAWN];
    double sum = 0, squares = 0;
    snprintf(text, sizeof text,
             SEQUENTIAL(LAYER("InputLayer", "\"batch_shape\":[null,200],\"name\":\"i\"") "," LAYER(
                 "Dense", "\"name\":\"d\",\"units\":200,\"use_bias\":false,"
                          "\"kernel_initializer\":%s")),
             initializer);
    hpct_model *model = read_model(text);
    assert_int_equal(hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, &sgd),
                     HPCT_OK);
    assert_int_equal(hpct_model_initialize(model, 3), HPCT_OK);
    assert_int_equal(hpct_param_get(model, 0, values), HPCT_OK);
    *largest = 0;
    for (int i = 0; i < DRAWN; i++) {
        sum += values[i];
        squares += (double) values[i] * values[i];
        *largest = fmax(*largest, fabs(values[i]));
    }
    *mean = sum / DRAWN;
    *deviation = sqrt(squares / DRAWN - *mean * *mean);
    hpct_model_free(model);
}

#define INITIALIZER(name, config) "{\"class_name\":\"" name "\",\"config\":{" config "}}"

static void initializers_have_their_distribution(void **state)
{
    (void) state;
    static const struct {
        const char *text;
        double mean, deviation, largest; /* largest: the bound; 0 for none */
    } cases[] = {
        {INITIALIZER("GlorotUniform", ""), 0, 0.0707107, 0.122475},
        {INITIALIZER("GlorotNormal", ""), 0, 0.0707107, 0.160773},
        {INITIALIZER("HeNormal", "\"seed\":7"), 0, 0.1, 0.227368},
        {"\"he_uniform\"", 0, 0.1, 0.173206},
        {INITIALIZER("LecunNormal", ""), 0, 0.0707107, 0.160773},
        {INITIALIZER("VarianceScaling", "\"scale\":2,\"mode\":\"fan_out\",\"distribution\":"
                                        "\"untruncated_normal\""),
         0, 0.1, 0},
        {INITIALIZER("VarianceScaling", "\"scale\":2.0,\"mode\":\"fan_in\",\"distribution\":"
                                        "\"normal\""), /* HeNormal in Keras 2.2 and before */
         0, 0.1, 0.227368},
        {INITIALIZER("RandomNormal", "\"mean\":1.0,\"stddev\":0.5"), 1, 0.5, 0},
        {INITIALIZER("TruncatedNormal", "\"mean\":0.0,\"stddev\":1.0"), 0, 0.8796, 2},
        {INITIALIZER("RandomUniform", "\"minval\":-1,\"maxval\":3"), 1, 1.154700, 3},
        {INITIALIZER("Constant", "\"value\":0.5"), 0.5, 0, 0.5},
        {INITIALIZER("Ones", ""), 1, 0, 1},
        {"\"zeros\"", 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double mean, deviation, largest;
        draw(cases[i].text, &mean, &deviation, &largest);
        /* 40,000 draws: both are within 1 % of the deviation in nearly all seeds; this is one */
        double near = 0.02 * cases[i].deviation + 1e-6;
        if (fabs(mean - cases[i].mean) > near || fabs(deviation - cases[i].deviation) > near)
            fail_msg("%s: mean %g, deviation %g", cases[i].text, mean, deviation);
        if (cases[i].largest > 0 && largest > cases[i].largest)
            fail_msg("%s: largest %g", cases[i].text, largest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequential_of_both_kerases),
        cmocka_unit_test(other_spellings),
        cmocka_unit_test(lists_of_keras_2),
        cmocka_unit_test(text_in_text),
        cmocka_unit_test(the_outputs_ask_for_a_loss),
        cmocka_unit_test(policies_are_precisions),
        cmocka_unit_test(functional_of_both_kerases),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(a_file_is_named),
        cmocka_unit_test(what_is_written_is_read_again),
        cmocka_unit_test(a_saved_file_is_whole),
        cmocka_unit_test(layers_are_ordered_as_keras_does),
        cmocka_unit_test(stems_are_keras),
        cmocka_unit_test(initializers_have_their_distribution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
