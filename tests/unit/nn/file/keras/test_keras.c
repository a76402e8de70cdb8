/* Models as Keras' JSON: what is read, what is refused and how the message names it, what is
 * written; Keras' order of layers. */
#include "nn/file/keras/keras.h"
#include "nn/file/keras/order.h"
#include "nn/plan/run.h"
#include "tests/unit/cases.h"

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

static hpct_status parse_model(const parse_case *c, char *got, size_t size)
{
    hpct_model *model = NULL;
    hpct_status status = hpct_model_from_json(&model, c->text, strlen(c->text));
    if (status != HPCT_OK)
        assert_null(model);
    else
        snprintf(got, size, "%s", hpct_model_name(model));
    hpct_model_free(model);
    return status;
}

#define BAD(text, words)                                                                           \
    {                                                                                              \
        text, HPCT_ERR_DATA, words                                                                 \
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
/* A model of one such layer is refused. */
#define BAD_LAYER(class, config, words) BAD(SEQUENTIAL(INPUT_3 "," LAYER(class, config)), words)
#define BAD_CONV(more, words) BAD(SEQUENTIAL(INPUT_3 "," CONV(more)), words)
#define FLATTEN LAYER("Flatten", "\"name\":\"f\"")
#define DENSE LAYER("Dense", "\"name\":\"d\",\"units\":5,\"activation\":\"softmax\"")

TEST(sequential_of_keras_2_and_3)
{
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
TEST(sequential_without_input_layer)
{
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
TEST(sequential_config_as_a_list)
{
    hpct_model *model = read_model(
        "{\"class_name\":\"Sequential\",\"keras_version\":\"2.1.6\",\"backend\":\"tensorflow\","
        "\"config\":[" CONV(",\"trainable\":true,\"batch_input_shape\":[null,8,8,1],"
                            "\"dtype\":\"float32\",\"activation\":\"relu\"") "," FLATTEN "," DENSE
                                                                             "]}");
    assert_int_equal(model->num_layers, 3);
    assert_string_equal(model->layers[0].name, "c");
    assert_int_equal(hpct_model_output_shape(model).size[0], 5);
    hpct_model_free(model);
    static const parse_case cases[] = {
        BAD("{\"class_name\":\"Sequential\",\"config\":[" FLATTEN "]}",
            "the input's shape is not in it"),
        BAD("{\"class_name\":\"Sequential\",\"config\":[]}", "it has 0 layers"),
    };
    RUN_CASES(parse_model, cases);
}

/* json.dump(model.to_json()), and what an editor of Windows makes of a file. */
TEST(json_within_a_json_string)
{
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
    static const parse_case cases[] = {
        BAD("\"abc\"", "line 1"),
        BAD("\"\\\"abc\\\"\"", "line 1"), /* a string in a string */
        BAD("7", "not a Keras model"),
        BAD("{\"name\":\"s\",\"layers\":[" FLATTEN "]}", "what get_config() gives"),
        BAD("{\"modelTopology\":{}}", "TensorFlow.js"),
        BAD("{\"class_name\":\"MyModel\",\"config\":{}}",
            "its class is not Sequential or Functional"),
    };
    RUN_CASES(parse_model, cases);
}

/* Number: the loss that the last layer asks for. How many labels it has. */
static hpct_status find_loss(const parse_case *c, char *got, size_t size)
{
    hpct_loss loss;
    hpct_model *model = read_model(c->text);
    hpct_status status = hpct_model_own_loss(model, &loss);
    if (status == HPCT_OK) {
        assert_int_equal(loss, c->number);
        assert_int_equal(hpct_model_compile(model, loss, &sgd), HPCT_OK);
        snprintf(got, size, "%d", hpct_model_count_labels(model));
    }
    hpct_model_free(model);
    return status;
}

TEST(loss_follows_from_the_last_layer)
{
#define ENDS(units, activation)                                                                    \
    SEQUENTIAL(INPUT_3 "," FLATTEN "," LAYER("Dense", "\"name\":\"d\",\"units\":" units            \
                                                      ",\"activation\":\"" activation "\""))
#define NOT_LAST(class, config) SEQUENTIAL(INPUT_3 "," FLATTEN "," DENSE "," LAYER(class, config))
    static const parse_case cases[] = {
        {ENDS("5", "softmax"), HPCT_OK, "5", HPCT_SPARSE_CATEGORICAL_CROSSENTROPY},
        {ENDS("5", "sigmoid"), HPCT_OK, "5", HPCT_SPARSE_CATEGORICAL_CROSSENTROPY},
        {ENDS("5", "linear"), HPCT_OK, "5", HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS},
        {ENDS("5", "relu"), HPCT_OK, "5", HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS},
        {ENDS("1", "sigmoid"), HPCT_OK, "2", HPCT_BINARY_CROSSENTROPY},
        {ENDS("1", "linear"), HPCT_OK, "2", HPCT_BINARY_CROSSENTROPY_FROM_LOGITS},
        BAD(ENDS("1", "softmax"), "softmax, which is always 1"),
        BAD(ENDS("1", "relu"), "one output of relu"),
        BAD(ENDS("1", "tanh"), "one output of tanh"),
        BAD(NOT_LAST("GaussianNoise", "\"stddev\":0.1"), "softmax or sigmoid before"),
        BAD(NOT_LAST("LayerNormalization", ""), "softmax or sigmoid before"),
    };
    RUN_CASES(find_loss, cases);
}

/* ---- dtype policies ---- */

#define POLICY_3(name)                                                                             \
    ",\"dtype\":{\"module\":\"keras\",\"class_name\":\"DTypePolicy\",\"config\":{\"name\":\"" name \
    "\"},\"registered_name\":null}"
#define POLICY_2(name) ",\"dtype\":{\"class_name\":\"Policy\",\"config\":{\"name\":\"" name "\"}}"

/* One layer of mixed_bfloat16 makes the model so, and float32 beside it an exception; the caller
 * may want another precision, which all have then. */
TEST(dtype_policies_set_the_precision)
{
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
        assert_int_equal(hpct_graph_node_precision(model, &model->nodes[0]), HPCT_BF16);
        assert_int_equal(hpct_graph_node_precision(model, &model->nodes[1]), HPCT_FP32); /* d */
        char *text;
        assert_int_equal(hpct_keras_write(&text, model), HPCT_OK);
        hpct_model *again = read_model(text);
        assert_same_text(model, again);
        hpct_model_free(again);
        free(text);
        hpct_compile_options options = {.loss = HPCT_SPARSE_CATEGORICAL_CROSSENTROPY,
                                        .optimizer = sgd};
        assert_int_equal(hpct_model_compile_with(model, &options), HPCT_OK);
        assert_int_equal(hpct_graph_node_precision(model, &model->nodes[0]), HPCT_FP32);
        hpct_model_free(model);
    }
    hpct_model *half =
        read_model(SEQUENTIAL(INPUT_3 "," CONV(POLICY_3("mixed_float16")) "," FLATTEN "," DENSE));
    assert_int_equal(hpct_model_precision(half), HPCT_FP16);
    assert_int_equal(hpct_graph_node_precision(half, &half->nodes[1]), HPCT_FP32);
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
    assert_int_equal(hpct_graph_node_precision(model, &model->nodes[1]), HPCT_BF16);
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

/* Of a layer, or of the whole model; frozen layers are written as such. */
TEST(trainable_false_freezes)
{
    hpct_model *model =
        read_model(SEQUENTIAL(INPUT_3 "," CONV(",\"trainable\":false") "," FLATTEN "," DENSE));
    for (int turn = 0; turn < 2; turn++) {
        char *names = hpct_model_frozen_layers(model), *text;
        assert_string_equal(names, "c");
        free(names);
        assert_true(model->params[0].state && model->params[0].frozen);
        assert_false(model->params[model->num_params - 1].state);
        assert_int_equal(hpct_keras_write(&text, model), HPCT_OK);
        hpct_model_free(model);
        model = read_model(text);
        free(text);
    }
    hpct_model_free(model);
    model = read_model("{\"class_name\":\"Sequential\",\"config\":{\"trainable\":false,"
                       "\"layers\":[" INPUT_3 "," CONV("") "," FLATTEN "," DENSE "]}}");
    assert_int_equal(hpct_model_count_trainable(model), 0);
    hpct_model_free(model);
    model = read_model(SEQUENTIAL(INPUT_3 "," LAYER(
        "Sequential", "\"name\":\"i\",\"trainable\":false,"
                      "\"layers\":[" CONV(",\"trainable\":false") "]") "," FLATTEN "," DENSE));
    char *nested = hpct_model_frozen_layers(model);
    assert_string_equal(nested, "c");
    free(nested);
    hpct_model_free(model);
}

TEST(functional_of_keras_2_and_3)
{
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
    static const parse_case cases[] = {
        BAD(FUNCTIONAL(IN "," FLAT, "\"input_layers\":{\"a\":[\"in\",0,0],\"b\":[\"in\",0,0]},"
                                    "\"output_layers\":[[\"fl\",0,0]]"),
            "input_layers: it has 2"),
        BAD(FUNCTIONAL(IN "," FLAT, "\"input_layers\":{},\"output_layers\":[[\"fl\",0,0]]"),
            "input_layers: it has 0"),
    };
    RUN_CASES(parse_model, cases);
}

/* Operators of Python between tensors and numbers, as keras.applications' MobileNetV3 has them. */
#define OPERATION(class, name, args)                                                               \
    "{\"module\":\"keras.src.ops.numpy\",\"class_name\":\"" class "\",\"config\":{\"name\":"       \
                                                                  "\"" name                        \
                                                                  "\"},\"registered_name\":"       \
                                                                  "\"" class "\",\"inbound_"       \
                                                                             "nodes\":[{\"args\":" \
                                                                             "[" args              \
                                                                             "],\"kwargs\":{}}]}"

#define OLD_OPERATION(call)                                                                        \
    "{\"module\":\"keras.src.ops.numpy\",\"class_name\":\"Multiply\",\"config\":{\"name\":"        \
    "\"sum\"},\"inbound_nodes\":[[" call "]]}"

TEST(operators_are_layers)
{
    static const struct {
        const char *text;
        float scale, offset;
    } cases[] = {
        {OPERATION("Add", "sum", TENSOR("in") ",3.0"), 1, 3},
        {OPERATION("Add", "sum", "3," TENSOR("in")), 1, 3},
        {OPERATION("Multiply", "sum", TENSOR("in") ",0.5"), 0.5F, 0},
        {OPERATION("Subtract", "sum", TENSOR("in") ",0.5"), 1, -0.5F},
        {OPERATION("Subtract", "sum", "0.5," TENSOR("in")), -1, 0.5F},
        {OPERATION("TrueDivide", "sum", TENSOR("in") ",4"), 0.25F, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[2048];
        snprintf(text, sizeof text, FUNCTIONAL(IN ",%s", ENDS_3), cases[i].text);
        hpct_model *model = read_model(text);
        assert_int_equal(model->num_nodes, 1);
        assert_true(model->nodes[0].spec.scale == cases[i].scale);
        assert_true(model->nodes[0].spec.offset == cases[i].offset);
        hpct_model_free(model);
    }
    hpct_model *model = read_model(
        FUNCTIONAL(IN "," OPERATION("Multiply", "sum", TENSOR("in") "," TENSOR("in")), ENDS_3));
    assert_int_equal(model->nodes[0].spec.kind, HPCT_OP_MULTIPLY);
    hpct_model_free(model);
    static const parse_case refused[] = {
        BAD(FUNCTIONAL(IN "," OPERATION("Add", "sum", TENSOR("in") ",3.0,2.0"), ENDS_3),
            "\"sum\" (Add): it is called with something other than tensors"),
        BAD(FUNCTIONAL(IN "," OPERATION("Add", "sum", TENSOR("in")), ENDS_3),
            "\"sum\" (Add): it must be called with two tensors, or one and a number"),
        /* otherwise than Keras calls one: of Keras 2's form, or in a Sequential */
        BAD(FUNCTIONAL(IN "," OLD_OPERATION("[\"in\",0,0,{}]"), ENDS_3),
            "\"sum\" (Multiply): it must be called with two tensors, or one and a number"),
        BAD(FUNCTIONAL(IN "," OLD_OPERATION("2"), ENDS_3),
            "\"sum\" (Multiply): it must be called with two tensors, or one and a number"),
        BAD(SEQUENTIAL(INPUT_3 "," OLD_OPERATION("2")),
            "\"sum\" (Multiply): it must be called with two tensors, or one and a number"),
        BAD(FUNCTIONAL(IN "," OPERATION("TrueDivide", "sum", "2," TENSOR("in")), ENDS_3),
            "only the division of a tensor by a number"),
        BAD(FUNCTIONAL(IN "," OPERATION("TrueDivide", "sum", TENSOR("in") ",1e-40"), ENDS_3),
            "only the division of a tensor by a number"),
        BAD(FUNCTIONAL(IN "," OPERATION("Multiply", "sum", TENSOR("in") ",1e40"), ENDS_3),
            "a number that no float can hold"),
        BAD(FUNCTIONAL(IN "," OPERATION("Exp", "sum", TENSOR("in")), ENDS_3),
            "1 of its layers is not supported: \"sum\" (Exp)"),
    };
    RUN_CASES(parse_model, refused);
}

/* Keras 2's, as its MobileNetV3 and RegNet have them: TensorFlow's functions. */
#define FUNCTION(function, arguments)                                                              \
    "{\"class_name\":\"TFOpLambda\",\"config\":{\"name\":\"sum\",\"trainable\":true,\"dtype\":"    \
    "\"float32\",\"function\":\"" function "\"},\"name\":\"sum\",\"inbound_nodes\":[[[\"in\",0,0," \
    "{" arguments "}]]]}"

/* A number that comes first. */
#define NUMBER_FIRST(function, number, node)                                                       \
    "{\"class_name\":\"TFOpLambda\",\"config\":{\"name\":\"sum\",\"function\":\"" function         \
    "\"},\"inbound_nodes\":[[\"_CONSTANT_VALUE\"," node "," number ",{\"y\":[\"in\",0,0]}]]}"

TEST(operators_of_keras_2_are_layers)
{
    hpct_model *model = read_model(
        FUNCTIONAL(IN "," FUNCTION("__operators__.add", "\"y\":3.0,\"name\":null"), ENDS_2));
    assert_true(model->nodes[0].spec.scale == 1);
    assert_true(model->nodes[0].spec.offset == 3);
    assert_string_equal(model->layers[0].name, "sum");
    hpct_model_free(model);
    model = read_model(
        FUNCTIONAL(IN "," FUNCTION("math.multiply", "\"y\":[\"in\",0,0],\"name\":null"), ENDS_2));
    assert_int_equal(model->nodes[0].spec.kind, HPCT_OP_MULTIPLY);
    hpct_model_free(model);
    model = read_model(FUNCTIONAL(IN "," NUMBER_FIRST("math.subtract", "5.0", "-1"), ENDS_2));
    assert_true(model->nodes[0].spec.scale == -1);
    assert_true(model->nodes[0].spec.offset == 5);
    hpct_model_free(model);
    static const parse_case refused[] = {
        BAD(FUNCTIONAL(IN "," NUMBER_FIRST("math.truediv", "5.0", "-1"), ENDS_2),
            "only the division of a tensor by a number is supported"),
        BAD(FUNCTIONAL(IN "," NUMBER_FIRST("math.multiply", "\"5\"", "-1"), ENDS_2),
            "it is called with something other than tensors"),
        BAD(FUNCTIONAL(IN "," NUMBER_FIRST("math.multiply", "0", "0"), ENDS_2),
            "it reads layer \"_CONSTANT_VALUE\", but there is none"),
        BAD(FUNCTIONAL(IN "," FUNCTION("math.exp", ""), ENDS_2),
            "1 of its layers is not supported: \"sum\" (TFOpLambda)"),
        BAD(FUNCTIONAL(IN "," FUNCTION("math.multiply", ""), ENDS_2),
            "it must be called with two tensors, or one and a number"),
        BAD(FUNCTIONAL(IN "," FUNCTION("math.multiply", "\"y\":2,\"z\":1"), ENDS_2),
            "it is called with arguments"),
        BAD(FUNCTIONAL(IN "," FUNCTION("math.multiply", "\"y\":[\"b\",0,0]"), ENDS_2),
            "it reads layer \"b\", but there is none"),
    };
    RUN_CASES(parse_model, refused);
}

/* Keras 2 counts a Sequential's own graph before its first call in the model. */
#define IN_2 NODE("InputLayer", "\"batch_input_shape\":[null,8,8,2],\"name\":\"in\"", "[]")
#define FLIPS                                                                                      \
    NODE("Sequential", "\"name\":\"s\",\"layers\":[" LAYER("RandomFlip", "\"name\":\"f\"") "]",    \
         OLD("in"))

TEST(sequentials_of_keras_2_are_read)
{
    hpct_model *model =
        read_model(FUNCTIONAL(IN_2 "," FLIPS "," SUM("[[[\"in\",0,0],[\"s\",1,0]]]"), ENDS_2));
    assert_int_equal(model->num_layers, 2);
    assert_string_equal(model->nests[model->layers[0].nest - 1].name, "s");
    assert_int_equal(model->nodes[1].inputs[1], model->nodes[0].output);
    hpct_model_free(model);
    static const parse_case refused[] = {
        BAD(FUNCTIONAL(IN_2 "," FLIPS "," SUM("[[[\"in\",0,0],[\"s\",2,0]]]"), ENDS_2),
            "it reads layer \"s\", which is called more than once"),
        BAD(FUNCTIONAL(IN_2 "," CONV_A(OLD("in")) "," SUM("[[[\"in\",0,0],[\"a\",1,0]]]"), ENDS_2),
            "it reads layer \"a\", which is called more than once"),
    };
    RUN_CASES(parse_model, refused);
}

/* keras.applications' MobileNetV3 at default arguments: the size is said when it is read. */
TEST(open_sizes_are_filled_in)
{
    static const char text[] =
        SEQUENTIAL(LAYER("InputLayer", "\"batch_shape\":[null,null,null,3]") "," FLATTEN);
    static const char half[] =
        SEQUENTIAL(LAYER("InputLayer", "\"batch_shape\":[null,7,null,3]") "," FLATTEN);
    hpct_model *model = NULL;
    assert_int_equal(hpct_model_from_json(&model, text, sizeof text - 1), HPCT_ERR_DATA);
    assert_non_null(strstr(hpct_last_error(), "--resize WIDTHxHEIGHT"));
    assert_int_equal(hpct_model_from_json_sized(&model, text, sizeof text - 1, 4, 5), HPCT_OK);
    assert_int_equal(hpct_model_input_shape(model).size[0], 4);
    assert_int_equal(hpct_model_input_shape(model).size[1], 5);
    hpct_model_free(model);
    assert_int_equal(hpct_model_from_json_sized(&model, half, sizeof half - 1, 4, 5), HPCT_OK);
    assert_int_equal(hpct_model_input_shape(model).size[0], 7); /* the file's */
    hpct_model_free(model);
}

/* ---- refusals ---- */

/* Four classes that there are not. */
#define MANY(letter)                                                                               \
    LAYER(letter "0", "")                                                                          \
    "," LAYER(letter "1", "") "," LAYER(letter "2", "") "," LAYER(letter "3", "")

#define LSTM(name) LAYER("LSTM", "\"name\":\"" name "\"")
#define MANY_LSTM LSTM("a") "," LSTM("b") "," LSTM("c") "," LSTM("d") "," LSTM("e")

/* With Python's code, as Keras 3 writes it. */
#define CODE                                                                                       \
    LAYER("Lambda", "\"name\":\"f\",\"function\":{\"class_name\":\"__lambda__\",\"config\":{"      \
                    "\"code\":\"4wEAAAA=\",\"defaults\":null,\"closure\":null}}")

TEST(unsupported_models_are_rejected)
{
    static const parse_case cases[] = {
        BAD("{", "line 1"),
        BAD("[]", "not a Keras model"),
        BAD(LAYER("Model2", ""), "class_name \"Model2\""),
        BAD(SEQUENTIAL(""), "it has 0 layers"),
        BAD(SEQUENTIAL(INPUT_3), "no layer besides its input"),
        BAD(SEQUENTIAL(FLATTEN), "the input's shape is not in it"),
        BAD(SEQUENTIAL(LAYER("InputLayer", "\"batch_shape\":[null,null,8,1]")), "is open: say"),
        BAD(SEQUENTIAL(LAYER("InputLayer", "\"batch_shape\":[null,8,8,null]")), "must be fixed"),
        BAD(SEQUENTIAL(LAYER("InputLayer", "\"batch_shape\":[32,8,8,1]")), "fixed batch size"),
        BAD(SEQUENTIAL(
                LAYER("InputLayer", "\"batch_shape\":[null,8],\"name\":\"i\",\"sparse\":true")),
            "layer \"i\" (InputLayer): sparse"),
        BAD_LAYER(
            "LSTM", "\"name\":\"l\"",
            "1 of its layers is not supported: \"l\" (LSTM); there are: InputLayer, Activation, "),
        BAD(SEQUENTIAL(INPUT_3
                       "," LAYER("CutMix", "\"name\":\"z\"") "," LAYER("MixUp", "\"name\":\"x\"")),
            "2 of its layers are not supported: \"z\" (CutMix, in fit: --augment cutmix:ALPHA), "
            "\"x\" (MixUp, in fit: --augment mixup:ALPHA); there are"),
        BAD(SEQUENTIAL(INPUT_3 "," LAYER("LSTM", "\"name\":\"l\"") "," LAYER(
                "Lambda", "\"name\":\"f\"") "," CONV() "," LAYER("LSTM", "\"name\":\"m\"")),
            "3 of its layers are not supported: \"l\", \"m\" (LSTM), \"f\" (Lambda); there"),
        BAD(SEQUENTIAL(INPUT_3 "," MANY_LSTM "," LSTM("f") "," LSTM("g")),
            "7 of its layers are not supported: \"a\", \"b\", \"c\", \"d\", \"e\" and 2 more "
            "(LSTM); "
            "there are"),
        BAD(SEQUENTIAL(INPUT_3 "," LAYER("Embedding", "\"name\":\"e\",\"input_dim\":9") "," LAYER(
                "Attention", "\"name\":\"a\"") "," CODE),
            "3 of its layers are not supported: \"e\" (Embedding), \"a\" (Attention), \"f\" "
            "(Lambda); "
            "there are"),
        BAD(SEQUENTIAL(INPUT_3 "," MANY("A") "," MANY("B") "," MANY("C") "," MANY("D") "," MANY(
                "E") "," LAYER("LSTM", "\"name\":\"l\"")),
            "\"\" (D3), and 5 layers of other classes; there are"),
        BAD(SEQUENTIAL(INPUT_3 ",{\"class_name\":\"Flatten\",\"config\":{\"name\":\"x\"},"
                               "\"registered_name\":\"mine>Flatten\"}"),
            "not supported: \"x\" (Flatten, a custom class)"),
        BAD(SEQUENTIAL(INPUT_3 ",{\"class_name\":\"Flatten\",\"config\":{\"name\":\"x\"},"
                               "\"registered_name\":\"MyFlatten\"}"),
            "not supported: \"x\" (Flatten, a custom class)"),
        BAD_LAYER("InputLayer", "\"batch_shape\":[null,8,8,1]", "only models with one input"),
        BAD(SEQUENTIAL(INPUT_3 ",{\"class_name\":\"Flatten\",\"config\":{},\"module\":\"mine\"}"),
            "\"\" (Flatten, a custom class)"),
        BAD_CONV(",\"data_format\":\"channels_first\"",
                 "layer \"c\" (Conv2D): data_format \"channels_first\" is not supported"),
        BAD_CONV(",\"activation\":\"softplus\"", "activation \"softplus\""),
        BAD_CONV(",\"trainable\":2", "\"c\" (Conv2D): trainable 2"),
        BAD(SEQUENTIAL(INPUT_3 "," CONV(POLICY_3("float64"))),
            "layer \"c\" (Conv2D): dtype policy \"float64\" is not supported; there are: float32, "
            "mixed_bfloat16, mixed_float16"),
        BAD(SEQUENTIAL(INPUT_3 "," CONV(
                POLICY_3("mixed_bfloat16")) ",{\"class_name\":\"Flatten\",\"config\":{\"name\":"
                                            "\"x\"" POLICY_3("mixed_float16") "}}"),
            "layer \"x\" (Flatten): dtype policy mixed_float16 beside mixed_bfloat16 of another"),
        BAD(SEQUENTIAL(INPUT_3 "," CONV(POLICY_2("bfloat16"))),
            "\"c\" (Conv2D): dtype policy \"bfloat16\""),
        BAD_CONV(",\"dtype\":{\"class_name\":\"DTypePolicyMap\"}",
                 "dtype policy \"DTypePolicyMap\""),
        BAD_CONV(",\"activity_regularizer\":{\"class_name\":\"L2\"}",
                 "\"c\" (Conv2D): activity_regularizer {\"class_name\":\"L2\"} is not supported"),
        BAD_CONV(",\"brand_new\":1", "brand_new 1 is not supported"),
        BAD_CONV(",\"filters2\":null,\"groups\":3", "3 groups do not divide"),
        BAD_CONV(",\"strides\":[1,2,3]", "strides [1,2,3] is not supported"),
        BAD_CONV(",\"use_bias\":1", "use_bias 1 is not supported"),
        BAD_CONV(",\"groups\":99999999999", "groups 99999999999"),
        BAD_CONV(",\"kernel_initializer\":\"orthogonal\"",
                 "kernel_initializer orthogonal is not supported"),
        BAD(SEQUENTIAL(INPUT_3 "," CONV() "," CONV()), "two layers are called \"c\""),
        BAD_LAYER("ReLU", "\"max_value\":-3.0", "max_value -3"),
        BAD_LAYER("ReLU", "\"negative_slope\":-0.1", "negative_slope -0.1"),
        BAD_LAYER("LeakyReLU", "\"negative_slope\":\"x\"", "negative_slope \"x\" is not supported"),
        BAD_LAYER("PReLU", "\"shared_axes\":[1]", "shared_axes other"),
        BAD_LAYER("PReLU", "\"shared_axes\":[1,3]", "shared_axes other"),
        BAD_LAYER("Normalization", "\"axis\":1", "axis other than"),
        BAD_LAYER("Normalization", "\"invert\":true", "invert true"),
        BAD_LAYER("Normalization", "\"mean\":[1,2],\"variance\":1",
                  "mean must be a number, or one per channel: 1"),
        BAD_LAYER("Normalization", "\"mean\":1", "variance is missing"),
        BAD_LAYER("Normalization", "\"mean\":1,\"variance\":-1",
                  "the numbers of channel 0, 1 and -1, cannot be used"),
        BAD_LAYER("Rescaling", "\"scale\":[1,2]", "one per channel: 1"),
        BAD_LAYER("Dropout", "\"rate\":0.1,\"noise_shape\":[null,1,1]",
                  "noise_shape is not supported"),
        BAD_LAYER("Dropout", "\"rate\":0.1,\"noise_shape\":[null,1,1,8]",
                  "noise_shape is not supported"),
        BAD_LAYER("Softmax", "\"axis\":1", "axis other than the last"),
        BAD_LAYER("Reshape", "\"name\":\"r\",\"target_shape\":[7]",
                  "layer r: input 8x8x1 cannot take"),
        BAD_LAYER("Reshape", "\"name\":\"r\"", "target_shape is missing"),
        BAD_LAYER("Resizing", "\"height\":4,\"width\":4,\"interpolation\":\"bicubic\"",
                  "interpolation \"bicubic\" is not supported; there is: \"bilinear\""),
        BAD_LAYER("Resizing", "\"height\":4,\"width\":4,\"antialias\":true", "antialias true"),
        BAD(FUNCTIONAL(IN "," CONV_A(OLD("nowhere")) "," OLD_SUM, ENDS_2),
            "layer \"a\" (Conv2D): it reads layer \"nowhere\", but there is none"),
        BAD(FUNCTIONAL(IN "," CONV_A(OLD("b")) "," CONV_B(OLD("a")) "," OLD_SUM, ENDS_2),
            "form a cycle"),
        BAD(FUNCTIONAL(IN "," CONV_A(OLD("in")) "," CONV_A(OLD("in")) "," OLD_SUM, ENDS_2),
            "two layers are called \"a\""),
        BAD(FUNCTIONAL(IN ",{\"class_name\":\"Conv2D\",\"name\":\"b\",\"config\":{\"name\":\"a\","
                          "\"filters\":2,\"kernel_size\":[1,1]},\"inbound_nodes\":[]}",
                       ENDS_2),
            "a layer has two names, \"b\" and \"a\""),
        BAD(FUNCTIONAL(IN "," CONV_A("[[[\"in\",0,0,{}]],[[\"b\",0,0,{}]]]") "," CONV_B(
                           OLD("in")) "," OLD_SUM,
                       ENDS_2),
            "layer \"a\" (Conv2D): it is called 2 times; shared layers"),
        BAD(FUNCTIONAL(IN "," CONV_A("[[[\"in\",1,0,{}]]]") "," OLD_SUM, ENDS_2), "more than once"),
        BAD(FUNCTIONAL(IN "," CONV_A("[[[\"in\",0,0,{\"training\":true}]]]") "," OLD_SUM, ENDS_2),
            "called with arguments"),
        BAD(FUNCTIONAL(IN "," CONV_A(
                           "[{\"args\":[" TENSOR("in") "],\"kwargs\":{\"axis\":1}}]") "," OLD_SUM,
                       ENDS_2),
            "called with arguments"),
        BAD(FUNCTIONAL(IN "," CONV_A("[{\"args\":[7],\"kwargs\":{}}]") "," OLD_SUM, ENDS_2),
            "something other than tensors"),
        BAD(FUNCTIONAL(IN "," CONV_A(OLD("in")) "," CONV_B(OLD("in")) "," OLD_SUM, ENDS_2),
            "layer \"a\" does not lead to the model's output"),
        BAD(FUNCTIONAL(IN "," CONV_B(OLD("in")) "," SUM(OLD("b")), ENDS_2),
            "layer \"sum\" (Add): it reads 1 tensors"),
        BAD(FUNCTIONAL(
                IN "," CONV_A(OLD("in")),
                "\"input_layers\":[[\"in\",0,0]],\"output_layers\":[[\"a\",0,0],[\"in\",0,0]]"),
            "output_layers: it has 2"),
        BAD(FUNCTIONAL(IN "," CONV_A(OLD("in")),
                       "\"input_layers\":[[\"a\",0,0]],\"output_layers\":[[\"a\",0,0]]"),
            "\"a\" is not an InputLayer"),
    };
    RUN_CASES(parse_model, cases);
}

#define INNER_2(layers) LAYER("Sequential", "\"name\":\"second\",\"layers\":[" layers "]")
#define INNER(layers) LAYER("Sequential", "\"name\":\"inner\",\"layers\":[" layers "]")

/* Its layers become the model's, and remember it: what is written has it again. */
TEST(nested_sequentials_are_taken_apart)
{
    char *text;
    hpct_model *model = read_model(
        SEQUENTIAL(INPUT_3 "," INNER(INPUT_3 "," CONV()) "," FLATTEN "," INNER_2(DENSE)));
    assert_int_equal(model->num_layers, 3);
    assert_string_equal(model->nests[model->layers[0].nest - 1].name, "inner");
    assert_int_equal(model->layers[1].nest, 0);
    assert_string_equal(model->nests[model->layers[2].nest - 1].name, "second");
    assert_int_equal(hpct_keras_write(&text, model), HPCT_OK);
    hpct_model *again = read_model(text);
    assert_same_text(model, again);
    assert_string_equal(again->nests[again->layers[2].nest - 1].name, "second");
    free(text);
    hpct_model_free(model);
    hpct_model_free(again);
    static const parse_case cases[] = {
        BAD(SEQUENTIAL(INPUT_3 "," INNER("")), "layer \"inner\" (Sequential): it has 0 layers"),
        BAD(SEQUENTIAL(INPUT_3 "," INNER(INPUT_3)), "it has no layer besides its input"),
        BAD(SEQUENTIAL(INPUT_3 "," LAYER("Sequential", "\"layers\":[" CONV() "]")),
            "it must have a name, layers, and one input"),
        BAD(SEQUENTIAL(INPUT_3
                       "," INNER(LAYER("InputLayer", "\"batch_shape\":[null,8,9,1]") "," CONV())),
            "its input has another shape than it reads"),
        BAD(SEQUENTIAL(INPUT_3 "," LAYER("Sequential", "\"name\":\"i\",\"trainable\":false,"
                                                       "\"layers\":[" CONV() "]")),
            "layer \"i\" (Sequential): trainable false, but its layer c is trainable"),
        BAD(SEQUENTIAL(INPUT_3 "," INNER(CONV()) "," INNER(FLATTEN)),
            "two layers are called \"inner\""),
        BAD(SEQUENTIAL(INPUT_3 "," INNER(CONV(",\"activation\":\"mine\""))),
            "layer \"inner\" (Sequential): layer \"c\" (Conv2D): activation \"mine\""),
    };
    RUN_CASES(parse_model, cases);
}

#define FUNCTIONAL_INNER(name, trainable, layers, ends, calls)                                     \
    NODE("Functional",                                                                             \
         "\"name\":\"" name "\",\"trainable\":" trainable ",\"layers\":[" layers "]," ends, calls)
#define C_INNER                                                                                    \
    IN "," NODE("Conv2D", "\"name\":\"c\",\"filters\":2,\"kernel_size\":[1,1]", NEW("in"))
#define C_ENDS "\"input_layers\":[\"in\",0,0],\"output_layers\":[\"c\",0,0]"
#define TWO_INNERS                                                                                 \
    FUNCTIONAL(                                                                                    \
        IN "," FUNCTIONAL_INNER("one", "true", C_INNER, C_ENDS, NEW("in")) "," NODE(               \
            "Sequential",                                                                          \
            "\"name\":\"two\",\"layers\":[" FUNCTIONAL_INNER("deep", "true", C_INNER, C_ENDS,      \
                                                             "[]") "]",                            \
            NEW("one")) "," SUM("[{\"args\":[[" TENSOR("one") "," TENSOR("two") "]],\"kwargs\":{}" \
                                                                                "}]"),             \
        ENDS_2)

/* Models within models, one of them deeper; names that several layers have are told apart by those
 * of their models, here and in --freeze, and are Keras' own again in what is written. */
TEST(nested_models_are_taken_apart)
{
    char *text;
    hpct_model *model = read_model(TWO_INNERS);
    assert_int_equal(model->num_layers, 3);
    assert_int_equal(model->num_nests, 3);
    assert_string_equal(model->layers[0].name, "one/c");
    assert_string_equal(model->layers[1].name, "two/deep/c");
    assert_string_equal(model->layers[2].name, "sum");
    assert_int_equal(hpct_keras_write(&text, model), HPCT_OK);
    assert_null(strstr(text, "one/c"));
    hpct_model *again = read_model(text);
    assert_same_text(model, again);
    assert_string_equal(again->layers[1].name, "two/deep/c");
    free(text);
    assert_int_equal(hpct_model_set_trainable(model, "two", false), HPCT_OK);
    assert_false(model->layers[0].frozen);
    assert_true(model->layers[1].frozen);
    assert_int_equal(hpct_model_set_trainable(model, "three", false), HPCT_ERR_USAGE);
    assert_non_null(strstr(hpct_last_error(), "there are: one, two, deep, one/c, two/deep/c, sum"));
    assert_int_equal(hpct_keras_write(&text, model), HPCT_OK);
    assert_non_null(strstr(text, "\"name\":\"two\",\"trainable\":false"));
    assert_non_null(strstr(text, "\"name\":\"one\",\"trainable\":true"));
    free(text);
    hpct_model_free(model);
    hpct_model_free(again);
}

#define CALLED_WITH(arguments) "[[[\"in\",0,0," arguments "]]]"
#define NORM_ENDS "\"input_layers\":[[\"in\",0,0]],\"output_layers\":[[\"d\",0,0]]"
#define NORM_INNER(trainable)                                                                      \
    IN_2 "," NODE("BatchNormalization", "\"name\":\"n\",\"trainable\":" trainable,                 \
                  OLD("in")) "," NODE("Dropout", "\"name\":\"d\",\"rate\":0.5", OLD("n"))
#define CALLED(trainable, norm, arguments)                                                         \
    FUNCTIONAL(IN_2 "," FUNCTIONAL_INNER("i", trainable, NORM_INNER(norm), NORM_ENDS,              \
                                         CALLED_WITH(arguments)),                                  \
               "\"input_layers\":[[\"in\",0,0]],\"output_layers\":[[\"i\",1,0]]")

/* Keras 2's base(x, training=False) holds in fit: dropout is off, and moving statistics stay, which
 * is so for a frozen layer only. */
TEST(calls_for_inference_hold_in_keras_2)
{
    hpct_model *model = read_model(CALLED("false", "false", "{\"training\":false}"));
    assert_true(model->layers[0].frozen);
    assert_true(model->layers[1].config.dropout.rate == 0);
    hpct_model_free(model);
    model = read_model(CALLED("true", "true", "{}"));
    assert_true(model->layers[1].config.dropout.rate == 0.5);
    hpct_model_free(model);
    static const parse_case cases[] = {
        BAD(CALLED("true", "true", "{\"training\":false}"),
            "layer \"n\" (BatchNormalization): it is called with training=False, but"),
        BAD(CALLED("true", "true", "{\"training\":true}"), "called with arguments (training)"),
        BAD(CALLED("false", "true", "{}"), "trainable false, but its layer n is trainable"),
    };
    RUN_CASES(parse_model, cases);
}

TEST(nested_models_are_refused)
{
    static const parse_case cases[] = {
        BAD(FUNCTIONAL(
                IN "," FUNCTIONAL_INNER(
                    "one", "true", C_INNER, C_ENDS,
                    "[{\"args\":[" TENSOR("in") "],\"kwargs\":{}},"
                                                "{\"args\":[" TENSOR("one") "],\"kwargs\":{}}]"),
                "\"input_layers\":[\"in\",0,0],\"output_layers\":[\"one\",0,0]"),
            "layer \"one\" (Functional): it is called 2 times; shared layers are not supported"),
        BAD(FUNCTIONAL(IN "," FUNCTIONAL_INNER("one", "true", C_INNER,
                                               "\"input_layers\":[[\"in\",0,0]],\"output_layers\":"
                                               "[[\"c\",0,0],[\"in\",0,0]]",
                                               NEW("in")),
                       "\"input_layers\":[\"in\",0,0],\"output_layers\":[\"one\",0,0]"),
            "layer \"one\" (Functional): output_layers: it has 2"),
        BAD(FUNCTIONAL(IN "," FUNCTIONAL_INNER("one", "true", C_INNER "," CONV_A(NEW("in")), C_ENDS,
                                               NEW("in")),
                       "\"input_layers\":[\"in\",0,0],\"output_layers\":[\"one\",0,0]"),
            "layer \"one\" (Functional): layer \"a\" does not lead to the model's output"),
    };
    RUN_CASES(parse_model, cases);
}

/* Sequentials in Sequentials. */
TEST(nesting_has_a_limit)
{
    char text[4096] = "", end[128] = "";
    for (int i = 0; i < 9; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used,
                 "{\"class_name\":\"Sequential\",\"config\":{\"name\":\"s%d\",\"layers\":[%s", i,
                 i == 0 ? INPUT_3 "," : "");
        strcat(end, "]}}");
    }
    strcat(text, FLATTEN);
    strcat(text, end);
    hpct_model *model = read_model(text);
    assert_int_equal(model->num_nests, 8);
    hpct_model_free(model);
    char deeper[8192];
    snprintf(deeper, sizeof deeper, SEQUENTIAL("%s"), text);
    assert_int_equal(hpct_model_from_json(&model, deeper, strlen(deeper)), HPCT_ERR_DATA);
    assert_non_null(strstr(hpct_last_error(), "models are nested more than 8 times"));
}

/* ---- regularizers ---- */

#define PENALTY(class, config) "{\"class_name\":\"" class "\",\"config\":{" config "}}"
#define PENALIZED(key, value) SEQUENTIAL(INPUT_3 "," CONV(",\"" key "\":" value))

static void check_factors(const char *text, int param, double l1, double l2)
{
    char *written;
    hpct_model *model = read_model(text);
    assert_true(fabs(model->params[param].l1 - l1) < 1e-12);
    assert_true(fabs(model->params[param].l2 - l2) < 1e-12);
    assert_int_equal(hpct_keras_write(&written, model), HPCT_OK);
    hpct_model *again = read_model(written);
    for (int i = 0; i < model->num_params; i++)
        assert_true(again->params[i].l1 == model->params[i].l1 &&
                    again->params[i].l2 == model->params[i].l2);
    assert_same_text(model, again);
    free(written);
    hpct_model_free(model);
    hpct_model_free(again);
}

/* Of each parameter under its own key; as Keras 3, Keras 2 and older files have them. */
TEST(regularizers_are_read_and_written)
{
#define DEPTHWISE(key)                                                                             \
    SEQUENTIAL(INPUT_3 "," LAYER("DepthwiseConv2D", "\"name\":\"d\",\"kernel_size\":[3,3],\"" key  \
                                                    "\":" PENALTY("L2", "\"l2\":0.5")))
#define SEPARABLE(key)                                                                             \
    SEQUENTIAL(INPUT_3 "," LAYER("SeparableConv2D",                                                \
                                 "\"name\":\"d\",\"filters\":2,\"kernel_size\":[3,3],\"" key       \
                                 "\":" PENALTY("L2", "\"l2\":0.5")))
#define NORM_OF(key)                                                                               \
    SEQUENTIAL(INPUT_3 "," LAYER("BatchNormalization",                                             \
                                 "\"name\":\"b\",\"" key "\":" PENALTY("L2", "\"l2\":0.5")))
    check_factors(PENALIZED("kernel_regularizer", PENALTY("L1", "\"l1\":0.25")), 0, 0.25, 0);
    check_factors(PENALIZED("kernel_regularizer", PENALTY("L2", "\"l2\":0.25")), 0, 0, 0.25);
    check_factors(PENALIZED("bias_regularizer", PENALTY("L1L2", "\"l1\":1,\"l2\":2e-4")), 1, 1,
                  2e-4);
    check_factors(PENALIZED("kernel_regularizer", PENALTY("L1L2", "\"l1\":0,\"l2\":0.5")), 0, 0,
                  0.5);
    check_factors(PENALIZED("kernel_regularizer", "{\"module\":\"keras.regularizers\","
                                                  "\"class_name\":\"L2\",\"config\":{\"l2\":3.0},"
                                                  "\"registered_name\":null}"),
                  0, 0, 3);
    check_factors(PENALIZED("kernel_regularizer", "\"l2\""), 0, 0, 0.01);
    check_factors(PENALIZED("kernel_regularizer", PENALTY("L1", "\"l1\":null")), 0, 0.01, 0);
    check_factors(PENALIZED("kernel_regularizer", "\"l1_l2\""), 0, 0.01, 0.01);
    check_factors(PENALIZED("kernel_regularizer", "\"l1l2\""), 0, 0, 0);
    check_factors(PENALIZED("kernel_regularizer", PENALTY("L1", "\"l1\":0.0")), 0, 0, 0);
    check_factors(DEPTHWISE("depthwise_regularizer"), 0, 0, 0.5);
    check_factors(SEPARABLE("depthwise_regularizer"), 0, 0, 0.5);
    check_factors(SEPARABLE("pointwise_regularizer"), 1, 0, 0.5);
    check_factors(NORM_OF("gamma_regularizer"), 0, 0, 0.5);
    check_factors(NORM_OF("beta_regularizer"), 1, 0, 0.5);
    check_factors(SEQUENTIAL(INPUT_3 "," CONV(",\"use_bias\":false,\"bias_regularizer\":\"l2\"")),
                  0, 0, 0); /* Keras ignores it, too */
    static const parse_case refused[] = {
        BAD(PENALIZED("kernel_regularizer", PENALTY("OrthogonalRegularizer", "\"factor\":0.01")),
            "layer \"c\" (Conv2D): kernel_regularizer OrthogonalRegularizer is not supported; "
            "there "
            "are: L1, L2 and L1L2"),
        BAD(PENALIZED("activity_regularizer", PENALTY("L2", "\"l2\":0.5")),
            "layer \"c\" (Conv2D): activity_regularizer"),
        BAD(PENALIZED("kernel_regularizer",
                      "{\"module\":\"mine\",\"class_name\":\"L2\",\"config\":{"
                      "},\"registered_name\":\"mine>L2\"}"),
            "kernel_regularizer L2 is not Keras' own"),
        BAD(PENALIZED("bias_regularizer", PENALTY("L2", "\"l2\":-1")),
            "bias_regularizer L2 must have factors that are finite numbers from 0 on"),
        BAD(PENALIZED("bias_regularizer", PENALTY("L2", "\"l2\":1e300")), "must have factors"),
        BAD(PENALIZED("bias_regularizer", PENALTY("L2", "\"l2\":\"much\"")), "must have factors"),
        BAD(PENALIZED("bias_regularizer", PENALTY("L2", "\"l1\":1")), "must have factors"),
        BAD(PENALIZED("bias_regularizer", PENALTY("L2", "\"l3\":1")),
            "has a setting that is not known"),
        BAD(PENALIZED("bias_regularizer", "{\"class_name\":\"L2\",\"config\":[1]}"),
            "has a setting that is not known"),
        BAD(PENALIZED("bias_regularizer", "7"), "bias_regularizer that has no name is not"),
        BAD(PENALIZED("bias_regularizer", "{}"), "bias_regularizer that has no name is not"),
        BAD(PENALIZED("depthwise_regularizer", "\"l2\""),
            "depthwise_regularizer is of no parameter of this class"),
        BAD(DEPTHWISE("kernel_regularizer"), "kernel_regularizer is of no parameter"),
        BAD_LAYER("Flatten", "\"name\":\"f\",\"bias_regularizer\":\"l2\"",
                  "bias_regularizer is of no parameter"),
    };
    RUN_CASES(parse_model, refused);
}

/* Keras 2 writes its version; its hard sigmoid is another function. */
TEST(the_hard_sigmoid_of_keras_2_is_refused)
{
#define HARD SEQUENTIAL(INPUT_3 "," CONV(",\"activation\":\"hard_sigmoid\""))
#define WITH(more)                                                                                 \
    "{" more ",\"class_name\":\"Sequential\",\"config\":{\"name\":\"s\",\"layers\":[" INPUT_2      \
    "," CONV(",\"activation\":\"hard_sigmoid\"") "]}}"
#define HARD_ALONE(more)                                                                           \
    "{\"class_name\":\"Sequential\",\"config\":{\"name\":\"s\",\"layers\":[" CONV(                 \
        ",\"activation\":\"hard_sigmoid\"" more) "],\"build_input_shape\":[null,8,8,1]}}"
    static const parse_case cases[] = {
        {HARD, HPCT_OK, "s"},
        {WITH("\"keras_version\":\"3.15.0\""), HPCT_OK, "s"},
        BAD(WITH("\"keras_version\":\"2.15.0\""),
            "layer \"c\" (Conv2D): activation \"hard_sigmoid\" of Keras 2"),
        BAD(WITH("\"module\":\"tf_keras\""), "\"hard_sigmoid\" of Keras 2"),
        BAD(WITH("\"module\":\"keras\""), "\"hard_sigmoid\" of Keras 2"), /* by its input */
        BAD(HARD_ALONE(""), "\"hard_sigmoid\" has another slope in Keras 2 than in Keras 3, and "
                            "nothing in the file says which one wrote it"),
        BAD(HARD_ALONE(",\"batch_input_shape\":[null,8,8,1]"), "\"hard_sigmoid\" of Keras 2"),
    };
    RUN_CASES(parse_model, cases);
}

/* What Keras would refuse, or take for something else than the default. */
TEST(invalid_settings_are_rejected)
{
#define INIT(key, text) SEQUENTIAL(INPUT_3 "," CONV(",\"" key "\":" text))
#define CONSTANT(value)                                                                            \
    INIT("bias_initializer", "{\"class_name\":\"Constant\",\"config\":{\"value\":" value "}}")
#define NORM(more) SEQUENTIAL(INPUT_3 "," LAYER("BatchNormalization", "\"name\":\"b\"," more))
#define OTHERS_RELU(module, registered)                                                            \
    INIT("activation", "{\"module\":\"" module "\",\"class_name\":\"function\",\"config\":"        \
                       "\"relu\",\"registered_name\":\"" registered "\"}")
    static const parse_case cases[] = {
        /* null is None, which is false, or an error */
        BAD(INIT("use_bias", "null"), "use_bias null"),
        BAD(INIT("strides", "null"), "strides null"),
        BAD_LAYER("MaxPooling2D", "\"padding\":null", "padding null"),
        BAD(INIT("trainable", "null"), "trainable null"),
        BAD(NORM("\"center\":null"), "center null"),
        BAD(NORM("\"momentum\":null"), "momentum null"),
        BAD(NORM("\"axis\":null"), "axis null"),
        BAD_LAYER("ReLU", "\"threshold\":null", "threshold null"),
        BAD_LAYER("RandomFlip", "\"mode\":null", "mode null"),
        BAD(INIT("bias_initializer", "null"), "bias_initializer null"),
        BAD(NORM("\"gamma_initializer\":null"), "gamma_initializer null"),
        /* images that are changed at random */
        BAD_LAYER("RandomRotation", "\"name\":\"x\"", "factor is missing"),
        BAD_LAYER("RandomZoom", "\"width_factor\":1", "height_factor is missing"),
        BAD_LAYER("RandomTranslation", "\"height_factor\":1", "width_factor is missing"),
        BAD_LAYER("RandomContrast", "\"name\":\"x\"", "factor is missing"),
        BAD_LAYER("RandomRotation", "\"factor\":[1,2,3]", "factor must be one number or two"),
        BAD_LAYER("RandomRotation", "\"factor\":[0,\"1\"]", "factor must be one number or two"),
        BAD_LAYER("RandomRotation", "\"factor\":1e300", "factor must be one number or two"),
        BAD_LAYER("RandomRotation", "\"factor\":1.5", "a factor from -1.5 to 1.5"),
        BAD_LAYER("RandomZoom", "\"height_factor\":1", "factors of zoom must be above -1"),
        BAD_LAYER("RandomRotation",
                  "\"factor\":1,"
                  "\"fill_mode\":\"mirror\"",
                  "fill_mode \"mirror\" is not supported; there is: \"reflect\", \"constant\""),
        BAD_LAYER("RandomRotation",
                  "\"factor\":1,"
                  "\"interpolation\":\"bicubic\"",
                  "interpolation \"bicubic\""),
        BAD_LAYER("RandomRotation", "\"factor\":1,\"data_format\":\"channels_first\"",
                  "data_format \"channels_first\""),
        BAD_LAYER("RandomRotation", "\"factor\":1,\"bounding_box_format\":\"xyxy\"",
                  "bounding_box_format"),
        BAD_LAYER(
            "RandomContrast", "\"factor\":[0.3,0.1]",
            "factor must be two numbers in order: releases of Keras make different contrasts"),
        BAD_LAYER("RandomContrast", "\"factor\":1,\"value_range\":255",
                  "value_range must be two different numbers"),
        BAD_LAYER("RandomContrast", "\"factor\":1,\"value_range\":[0,0]",
                  "value_range must be two different numbers"),
        BAD(SEQUENTIAL(INPUT_3
                       "," CONV() "," LAYER("RandomRotation", "\"name\":\"turn\",\"factor\":1")),
            "turn: it must come before all layers with trained weights"),
        /* what Keras has no default for */
        BAD_LAYER("Dropout", "\"name\":\"x\"", "rate is missing"),
        BAD_LAYER("Rescaling", "\"offset\":1", "scale is missing"),
        BAD_LAYER("Activation", "\"name\":\"x\"", "activation is missing"),
        BAD_LAYER("Dense", "\"output_dim\":5", "units is missing"),
        BAD_LAYER("Conv2D", "\"filters\":4", "kernel_size is missing"),
        BAD_LAYER("Resizing", "\"height\":4", "width is missing"),
        BAD_LAYER("SeparableConv2D", "\"filters\":4", "kernel_size is missing"),
        BAD_LAYER("Conv2DTranspose", "\"filters\":4", "kernel_size is missing"),
        BAD_LAYER("Conv2DTranspose",
                  "\"filters\":4,\"kernel_size\":3,"
                  "\"dilation_rate\":2",
                  "dilation_rate other than 1 is not supported"),
        BAD_LAYER("Conv2DTranspose",
                  "\"filters\":4,\"kernel_size\":3,"
                  "\"output_padding\":[1,1]",
                  "output_padding [1,1] is not supported"),
        BAD_LAYER("Cropping2D", "\"name\":\"x\"", "cropping is missing"),
        BAD_LAYER("Cropping2D", "\"cropping\":[1,-1]", "cropping is not"),
        BAD_LAYER("LayerScale", "\"projection_dim\":1", "init_values is missing"),
        BAD_LAYER("LayerScale", "\"init_values\":1,\"projection_dim\":3",
                  "projection_dim 3 is not the input's number of channels, 1"),
        BAD_LAYER("StochasticDepth", "\"rate\":0.5", "drop_path_rate is missing"),
        BAD_LAYER("GaussianNoise", "\"rate\":0.5", "stddev is missing"),
        BAD_LAYER("LayerNormalization", "\"axis\":1", "axis other than the last"),
        BAD_LAYER("LayerNormalization", "\"rms_scaling\":true", "rms_scaling true"),
        BAD_LAYER("GroupNormalization", "\"groups\":0", "groups 0"),
        BAD_LAYER(
            "UpSampling2D", "\"interpolation\":\"bicubic\"",
            "interpolation \"bicubic\" is not supported; there is: \"nearest\", \"bilinear\""),
        BAD_LAYER("Permute", "\"dims\":[2,1]", "dims must have as many axes as the input"),
        /* 0 or -1, which stand for a default in a structure */
        BAD(INIT("strides", "[0,0]"), "strides [0,0]"),
        BAD(INIT("dilation_rate", "0"), "dilation_rate 0"),
        BAD(INIT("groups", "0"), "groups 0"),
        BAD_LAYER("DepthwiseConv2D", "\"kernel_size\":3,\"depth_multiplier\":0",
                  "depth_multiplier 0"),
        BAD_LAYER("MaxPooling2D", "\"strides\":[0,2]", "strides [0,2]"),
        BAD(NORM("\"momentum\":-1"), "momentum -1"),
        BAD(NORM("\"epsilon\":-1"), "epsilon -1"),
        /* more or other numbers than the setting has */
        BAD_LAYER("ZeroPadding2D", "\"padding\":[[1,1],[1,1],[1,1]]", "padding is not"),
        BAD_LAYER("ZeroPadding2D", "\"padding\":[[1,2,9],[3,4]]", "padding is not"),
        BAD_LAYER("Rescaling", "\"scale\":1e300", "scale 1.0"),
        BAD(CONSTANT("[1,2,3,4]"), "Constant has something other than one number"),
        BAD(CONSTANT("\"0.5\""), "Constant has something other than one number"),
        BAD(CONSTANT("1e300"), "Constant has a number that is not finite"),
        BAD(INIT("kernel_initializer",
                 "{\"class_name\":\"RandomNormal\",\"config\":{\"stddev\":1,\"clip\":2}}"),
            "RandomNormal has a setting that is not known"),
        /* names of Keras' that are somebody else's */
        BAD(OTHERS_RELU("__main__", "relu"), "activation {"),
        BAD(OTHERS_RELU("builtins", "mine>relu"), "activation {"),
        BAD(INIT("kernel_initializer", "{\"module\":\"mine\",\"class_name\":\"Zeros\","
                                       "\"config\":{}}"),
            "kernel_initializer Zeros is not Keras' own"),
        BAD(SEQUENTIAL(INPUT_3
                       ",{\"class_name\":\"Flatten\",\"config\":{},\"module\":\"keras_x\"}"),
            "(Flatten, a custom class)"),
        BAD(INIT("dtype", "{\"class_name\":\"QuantizedDTypePolicy\",\"config\":{\"name\":"
                          "\"float32\"}}"),
            "dtype policy \"QuantizedDTypePolicy\""),
        /* the graph */
        BAD(FUNCTIONAL(IN "," CONV_A("[[[\"in\",\"1\",0,{}]]]") "," OLD_SUM, ENDS_2),
            "more than once"),
        BAD(FUNCTIONAL(IN "," CONV_A("[]") "," OLD_SUM, ENDS_2), "it reads nothing"),
        BAD(SEQUENTIAL(
                LAYER("InputLayer", "\"batch_shape\":[null,8],\"batch_input_shape\":[null,9]")),
            "batch_shape and batch_input_shape differ"),
    };
    RUN_CASES(parse_model, cases);
    /* where null is Keras' default */
#define NULL_CONV                                                                                  \
    CONV(",\"activation\":null,\"dtype\":null,\"kernel_initializer\":null,\"data_format\":null")
#define NULL_POOL LAYER("MaxPooling2D", "\"strides\":null")
#define NULL_DROPOUT LAYER("Dropout", "\"rate\":0,\"noise_shape\":null")
    hpct_model_free(read_model(SEQUENTIAL(INPUT_3 "," NULL_CONV "," NULL_POOL "," NULL_DROPOUT)));
    hpct_model_free(read_model(SEQUENTIAL(INPUT_3 "," LAYER("ReLU", "\"max_value\":null"))));
}

/* With: the file that is written. */
static hpct_status load_model(const parse_case *c, char *got, size_t size)
{
    (void) got;
    (void) size;
    hpct_model *model = NULL;
    FILE *file = fopen(c->with, "w");
    fputs(c->text, file);
    fclose(file);
    return hpct_model_load_json(&model, c->with);
}

TEST(errors_name_the_file_and_its_format)
{
    hpct_model *model = NULL;
    char path[] = "/tmp/hpct-keras-XXXXXX";
    int file = mkstemp(path);
    assert_int_equal(write(file, "{}", 2), 2);
    close(file);
    assert_int_equal(hpct_model_load_json(&model, path), HPCT_ERR_DATA);
    assert_non_null(strstr(hpct_last_error(), path));
    const parse_case cases[] = {
        {"\x89HDF\r\n\x1a\n", HPCT_ERR_DATA, "model.to_json()", 0, path},
        {"class_name: Model\n", HPCT_ERR_DATA, "in YAML", 0, path},
        {"version https://git-lfs.github.com/spec/v1", HPCT_ERR_DATA, "git lfs pull", 0, path},
        {"<!DOCTYPE html>", HPCT_ERR_DATA, "a page of HTML", 0, path},
        {"", HPCT_ERR_DATA, "an empty file", 0, path},
        {"\xff\xfe{", HPCT_ERR_DATA, "UTF-16", 0, path},
    };
    RUN_CASES(load_model, cases);
    unlink(path);
    assert_int_equal(hpct_model_load_json(&model, path), HPCT_ERR_NO_INPUT);
    assert_int_equal(hpct_model_load_json(&model, "/tmp"), HPCT_ERR_NO_INPUT);
}

/* ---- writing ---- */

static void add_more_layers(hpct_model *model)
{
    hpct_model_add_up_sampling2d(model, &(hpct_up_sampling2d){.size = {6, 4}, .bilinear = true});
    hpct_model_add_cropping2d(model, &(hpct_cropping2d){.cropping = {{1, 0}, {2, 1}}});
    hpct_model_add_separable_conv2d(model, &(hpct_separable_conv2d){.filters = 6,
                                                                    .kernel = {3, 2},
                                                                    .multiplier = 2,
                                                                    .padding = HPCT_SAME,
                                                                    .activation = HPCT_RELU});
    hpct_model_add_group_normalization(model,
                                       &(hpct_group_normalization){.groups = 3, .epsilon = 1e-4});
    hpct_model_add_layer_normalization(
        model, &(hpct_layer_normalization){.epsilon = 1e-6, .no_center = true});
    int head = hpct_model_head(model);
    hpct_model_add_layer_scale(model, 0.25);
    hpct_model_add_stochastic_depth(model, 0.125);
    hpct_model_add_scaled_add(model, (int[]){head, hpct_model_head(model)}, 0.17);
    hpct_model_add_spatial_dropout2d(model, 0.5);
    hpct_model_add_gaussian_noise(model, 0.75);
    hpct_model_add_permute(model, (int[]){2, 1, 3});
    hpct_model_add_conv2d_transpose(model, &(hpct_conv2d_transpose){.filters = 6,
                                                                    .kernel = {2, 3},
                                                                    .strides = {2, 1},
                                                                    .padding = HPCT_SAME,
                                                                    .no_bias = true,
                                                                    .activation = HPCT_RELU});
}

/* Every class, with settings that are not the defaults. */
static hpct_model *every_layer(void)
{
    hpct_model *model = hpct_model_new("all", HPCT_SHAPE(20, 18, 4));
    hpct_model_add_rescaling(model, 1.0 / 255, -0.5);
    hpct_model_add_random_flip(model, HPCT_FLIP_VERTICAL);
    hpct_model_add_random_rotation(model, &(hpct_random_affine){.height = {-0.25, 0.5},
                                                                .fill_mode = HPCT_FILL_CONSTANT,
                                                                .fill_value = 0.75});
    hpct_model_add_random_zoom(
        model,
        &(hpct_random_affine){.height = {-0.5, 0.25}, .square = true, .fill_mode = HPCT_FILL_WRAP});
    hpct_model_add_random_zoom(
        model, &(hpct_random_affine){.height = {-0.5, 0.25}, .width = {0, 0.5}, .nearest = true});
    hpct_model_add_random_translation(model, &(hpct_random_affine){.height = {-0.5, 0.25},
                                                                   .width = {0, 0.5},
                                                                   .fill_mode = HPCT_FILL_NEAREST});
    hpct_model_add_random_contrast(
        model, &(hpct_random_tone){.factor = {0.25, 0.5}, .value_range = {-1, 2}});
    hpct_model_add_random_brightness(model, &(hpct_random_tone){.factor = {-0.25, 0.5}});
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
    add_more_layers(model);
    hpct_model_add_reshape(model, HPCT_SHAPE(-1, 6));
    hpct_model_add_flatten(model);
    hpct_model_add_dropout(model, 0.25);
    hpct_model_add_dense(model, &(hpct_dense){.units = 7, .no_bias = true});
    hpct_model_add_activation(model, HPCT_SOFTMAX);
    assert_int_equal(model->status, HPCT_OK);
    return model;
}

/* Those of single elements. */
static hpct_model *every_element(void)
{
    hpct_model *model = hpct_model_new("elements", HPCT_SHAPE(6, 5, 4));
    const hpct_per_channel four = {4, {0.5, 1, 2, 3}, {1, 0.25, 3, 4}};
    hpct_model_add_normalization(model);
    hpct_model_add_normalization_by(model, &four);
    hpct_model_add_rescaling_by(model, &four);
    hpct_model_add_relu(model,
                        &(hpct_relu){.max_value = 3, .negative_slope = 0.25, .threshold = 0.5});
    hpct_model_add_relu(model,
                        &(hpct_relu){.max_value = (double) INFINITY, .negative_slope = 0.25});
    hpct_model_add_leaky_relu(model, 0.125);
    hpct_model_add_elu(model, 1.5);
    hpct_model_add_prelu(model, false);
    hpct_model_add_prelu(model, true);
    for (hpct_activation one = HPCT_SILU; hpct_keras_activation_name(one) != NULL; one++)
        hpct_model_add_activation(model, one);
    int whole = hpct_model_head(model);
    hpct_model_add_global_average_pool2d_keepdims(model);
    hpct_model_add_multiply(model, (int[]){whole, hpct_model_head(model), whole}, 3);
    hpct_model_add_sample_dropout(model, 0.25);
    hpct_model_add_global_max_pool2d(model);
    assert_int_equal(model->status, HPCT_OK);
    return model;
}

static void check_written(hpct_model *model)
{
    char *text;
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

TEST(written_models_are_read_back)
{
    check_written(every_layer());
    check_written(every_element());
}

TEST(files_are_written_atomically)
{
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

/* A nested Sequential has the place of one layer, though its branch is longer. */
TEST(nested_sequentials_are_one_layer_of_the_order)
{
    static const hpct_conv2d one = {.filters = 2, .kernel = {1, 1}};
    static const char *const made[] = {"inner1", "inner2", "inner3", "beside", "sum"};
    hpct_model *model = hpct_model_new("m", HPCT_SHAPE(4, 4, 2));
    int order[5], nest = 0, number = hpct_model_add_nest(model, "nest", true, 0);
    for (int i = 0; i < 4; i++) {
        if (i == 3)
            hpct_model_set_head(model, 0);
        hpct_model_name_layer(model, made[i]);
        hpct_model_add_conv2d(model, &one);
        model->layers[i].nest = i < 3 ? number : 0;
        nest = i == 2 ? hpct_model_head(model) : nest;
        model->nests[0].output = nest;
    }
    hpct_model_name_layer(model, made[4]);
    hpct_model_add_add(model, (int[]){hpct_model_head(model), nest}, 2);
    assert_int_equal(hpct_keras_order(model, order), HPCT_OK);
    /* both at depth 1; met: sum beside inner */
    static const char *const wanted[] = {"beside", "inner1", "inner2", "inner3", "sum"};
    for (int i = 0; i < 5; i++)
        assert_string_equal(model->layers[order[i]].name, wanted[i]);
    hpct_model_free(model);
}

/* Two branches, made first to last: by Keras' rule what is nearer to the output comes later, and of
 * two at one distance that which the last layer reads first. */
TEST(layers_are_ordered_as_in_keras)
{
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

static hpct_status stem(const parse_case *c, char *got, size_t size)
{
    char text[HPCT_KERAS_STEM_SIZE];
    hpct_keras_stem(c->text, text);
    snprintf(got, size, "%s", text);
    return HPCT_OK;
}

TEST(layer_names_are_those_of_keras)
{
    static const parse_case cases[] = {
        {"Conv2D", HPCT_OK, "conv2d"},
        {"DepthwiseConv2D", HPCT_OK, "depthwise_conv2d"},
        {"GlobalAveragePooling2D", HPCT_OK, "global_average_pooling2d"},
        {"BatchNormalization", HPCT_OK, "batch_normalization"},
        {"ReLU", HPCT_OK, "re_lu"},
        {"Add", HPCT_OK, "add"},
    };
    RUN_CASES(stem, cases);
}
