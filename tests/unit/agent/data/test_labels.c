/* agent/data: labels of a CSV text, and everything that is refused in one. */
#include "agent/data/fingerprint.h"
#include "agent/data/labels.h"
#include "tests/unit/agent/data/pictures.h"
#include "tests/unit/agent/data/trees.h"
#include "tests/unit/cases.h"

#include <hpctrain/model.h>

#define PICTURES 3
#define FILE_NAME "l.csv"

/* Of three pictures without labels. */
static hpct_dataset *unlabelled(void)
{
    static const char *const names[PICTURES] = {"a.png", "b/c.png", "d,\"e\".png"};
    hpct_dataset *dataset = calloc(1, sizeof *dataset);
    dataset->format = &hpct_data_format_folder;
    dataset->options.unlabelled = true;
    dataset->size = PICTURES;
    dataset->stored = HPCT_SHAPE(1, 1, 3);
    dataset->stored_elements = 3;
    dataset->path = strdup("pictures");
    dataset->labels = calloc(PICTURES, sizeof *dataset->labels);
    dataset->encoded.entries = calloc(PICTURES, sizeof *dataset->encoded.entries);
    for (int i = 0; i < PICTURES; i++)
        dataset->encoded.entries[i].name = strdup(names[i]);
    return dataset;
}

/* The text in memory of its own size, so that a sanitizer sees each byte beyond. */
static hpct_status take(hpct_dataset *dataset, const hpct_data_label_form *form, const char *text,
                        size_t size)
{
    char *copy = malloc(size + 1);
    memcpy(copy, text, size);
    hpct_status status = hpct_data_labels_take(dataset, form, FILE_NAME, copy, size);
    free(copy);
    return status;
}

/* "names: row / row / row" */
static void describe(const hpct_dataset *dataset, char *got, size_t size)
{
    size_t at = 0;
    for (int i = 0; i < dataset->num_classes; i++)
        at += (size_t) snprintf(got + at, size - at, "%s%s", i > 0 ? "," : "", dataset->classes[i]);
    at += (size_t) snprintf(got + at, size - at, ":");
    for (size_t i = 0; i < dataset->size; i++) {
        at += (size_t) snprintf(got + at, size - at, "%s", i > 0 ? " /" : "");
        for (int k = 0; k < dataset->num_targets; k++)
            at += (size_t) snprintf(
                got + at, size - at, " %g",
                (double) dataset->targets[i * (size_t) dataset->num_targets + (size_t) k]);
        if (dataset->targets == NULL)
            at += (size_t) snprintf(got + at, size - at, " %d", (int) dataset->labels[i]);
    }
}

static hpct_status read_for(int outputs, hpct_target_kind kind, const parse_case *c, char *got,
                            size_t size)
{
    hpct_dataset *dataset = unlabelled();
    hpct_data_label_form form = {.kind = kind, .outputs = outputs};
    hpct_status status = take(dataset, &form, c->text, strlen(c->text));
    if (status == HPCT_OK)
        describe(dataset, got, size);
    hpct_dataset_free(dataset);
    return status;
}

static hpct_status read_as(hpct_target_kind kind, const parse_case *c, char *got, size_t size)
{
    return read_for(2, kind, c, got, size);
}

static hpct_status read_classes_of_12(const parse_case *c, char *got, size_t size)
{
    return read_for(12, HPCT_TARGETS_CLASS, c, got, size);
}

static hpct_status read_classes(const parse_case *c, char *got, size_t size)
{
    return read_as(HPCT_TARGETS_CLASS, c, got, size);
}

static hpct_status read_binary(const parse_case *c, char *got, size_t size)
{
    return read_as(HPCT_TARGETS_BINARY, c, got, size);
}

static hpct_status read_numbers(const parse_case *c, char *got, size_t size)
{
    return read_as(HPCT_TARGETS_NUMBERS, c, got, size);
}

/* The third picture's row. */
#define D "\"d,\"\"e\"\".png\""

TEST(classes_are_read)
{
    static const parse_case cases[] = {
        {"file,class\na.png,dog\nb/c.png,cat\n" D ",dog\n", HPCT_OK, "cat,dog: 1 / 0 / 1"},
        {"file,label\n" D ",2\nb/c.png,10\na.png,2", HPCT_OK, "10,2: 1 / 0 / 1"},
        {"\xef\xbb\xbf"
         "x,label\r\n\r\na.png,\"c, \"\"d\"\"\r\n\"\r\nb/c.png,b\r\n" D ",b\r\n\r\n",
         HPCT_OK, "b,c, \"d\"\r\n: 1 / 0 / 0"},
        {"file,class,probability\na.png,b,0.5\nb/c.png,a,1\n" D ",a,nan\n", HPCT_OK,
         "a,b: 1 / 0 / 0"},
        {"file,p,q\na.png,0,1\nb/c.png,1,0\n" D ",0.0,1e0\n", HPCT_OK, "p,q: 1 / 0 / 1"},
        {"file,class\na.png,a\nb/c.png,b\n" D ",c\n", HPCT_ERR_DATA,
         "l.csv: there are 3 classes, the model has 2 outputs; give it 3 (--classes 3, or units of "
         "the last layer of FILE.json)"},
        {"file,class\na.png,a\nb/c.png,\n" D ",c\n", HPCT_ERR_DATA,
         "l.csv, line 3, column 2 (class): the cell is empty"},
        {"file,p,q\na.png,1,1\n", HPCT_ERR_DATA, "l.csv, line 2: 2 columns are 1"},
        {"file,p,q\na.png,0,0\n", HPCT_ERR_DATA, "l.csv, line 2: 0 columns are 1"},
        {"file,p,q\na.png,0.5,0.5\n", HPCT_ERR_DATA,
         "l.csv, line 2, column 2 (p): 0.5 is neither 0 nor 1"},
        {"file,p,q,r\na.png,0,1,0\n", HPCT_ERR_DATA, "a column label or class, or one for each"},
        {"file,class,label\na.png,0,1\nb/c.png,1,0\n" D ",0,1\n", HPCT_OK,
         "class,label: 1 / 0 / 1"},
        {"file\na.png\n", HPCT_ERR_DATA, "not these 0"},
    };
    RUN_CASES(read_classes, cases);
}

/* As spreadsheets write them where a comma is the decimal point. */
TEST(other_separators_are_named)
{
    static const parse_case cases[] = {
        {"file;class\na.png;dog\n", HPCT_ERR_DATA,
         "l.csv, line 1: semicolons separate the columns"},
        {"file\tclass\na.png\tdog\n", HPCT_ERR_DATA, "l.csv, line 1: tabs separate the columns"},
        {"file|class\na.png|dog\n", HPCT_ERR_DATA, "l.csv, line 1: bars separate the columns"},
        {"\"file\";\"class\"\n", HPCT_ERR_DATA, "l.csv, line 1: semicolons separate the columns"},
        {"\xef\xbb\xbf"
         "file;class\r\na.png;dog\r\n",
         HPCT_ERR_DATA, "l.csv, line 1: semicolons separate the columns"},
        {"file;x\na.png;0,5\n", HPCT_ERR_DATA, "write it with commas (and numbers with a decimal"},
        {"file,class\na.png;dog\n", HPCT_ERR_DATA,
         "l.csv, line 2: semicolons separate the columns"},
        {"file,class\n\"a.png\";\"dog\"\n", HPCT_ERR_DATA,
         "l.csv, line 2: semicolons separate the columns"},
        {"file,class\na.png,a;b\nb/c.png,\"a|b\"\n" D ",\"a;b\"\n", HPCT_OK, "a;b,a|b: 0 / 1 / 0"},
        {"file,a;b\na.png,1\n", HPCT_ERR_DATA, "a column label or class"},
        {"file\na.png\n", HPCT_ERR_DATA, "not these 0"},
    };
    RUN_CASES(read_classes, cases);
}

/* As hpc-train predict writes those of weights without names. */
TEST(numbers_of_classes_are_read)
{
    static const parse_case cases[] = {
        {"file,class\na.png,2\nb/c.png,11\n" D ",4\n", HPCT_OK,
         "0,1,2,3,4,5,6,7,8,9,10,11: 2 / 11 / 4"},
        {"file,class\na.png,1\nb/c.png,1\n" D ",0\n", HPCT_OK, "0,1: 1 / 1 / 0"},
        {"file,class\na.png,2\nb/c.png,12\n" D ",4\n", HPCT_OK, "12,2,4: 1 / 0 / 2"},
        {"file,class\na.png,2\nb/c.png,x\n" D ",4\n", HPCT_OK, "2,4,x: 0 / 2 / 1"},
        {"file,class\na.png,02\nb/c.png,1\n" D ",4\n", HPCT_OK, "02,1,4: 0 / 1 / 2"},
        {"file,class\na.png,99999999999\nb/c.png,1\n" D ",-1\n", HPCT_OK,
         "-1,1,99999999999: 2 / 1 / 0"},
    };
    RUN_CASES(read_classes_of_12, cases);
}

TEST(numbers_are_read)
{
    static const parse_case cases[] = {
        {"file,x,y\nb/c.png,-1.5,2e3\na.png,+.5,-0\n" D ",1,2\n", HPCT_OK,
         "x,y: 0.5 -0 / -1.5 2000 / 1 2"},
        {"file,label,class\nb/c.png,1,2\na.png,3,4\n" D ",5,6", HPCT_OK,
         "label,class: 3 4 / 1 2 / 5 6"},
        {"file,x\na.png,1\n", HPCT_ERR_DATA,
         "line 1: after the name of the file the loss takes a column of numbers for each of the "
         "model's 2 outputs, not 1"},
        {"file,x,x\na.png,1,2\n", HPCT_ERR_DATA,
         "line 1, column 3: x is the name of column 2, too"},
        {"file,x,\na.png,1,2\n", HPCT_ERR_DATA, "line 1, column 3: it has no name"},
        {"a.png,1,2\nb/c.png,3,4\n", HPCT_ERR_DATA, "line 1: a.png is a picture: the first line"},
        {"", HPCT_ERR_DATA, "l.csv: it is empty"},
        {"\n\r\n\n", HPCT_ERR_DATA, "l.csv: it is empty"},
        {"file,x,y\n", HPCT_ERR_DATA, "no row for 3 of the 3 pictures (the first: a.png)"},
        {"file,x,y\na.png,1,2\n" D ",1,2\n", HPCT_ERR_DATA,
         "no row for 1 of the 3 pictures (the first: b/c.png)"},
        {"file,x,y\na.png,1,2\n\nother.png,1,2\n", HPCT_ERR_DATA,
         "line 4, column 1 (file): other.png is not a picture of the data"},
        {"file,x,y\na.png,1,2\nb/c.png,1,2\na.png,1,2\n", HPCT_ERR_DATA,
         "line 4, column 1 (file): a.png has a row in line 2 already"},
        {"file,x,y\na.png,1\n", HPCT_ERR_DATA, "line 2: there are 2 columns, the header has 3"},
        {"file,x,y\na.png,1,2,\n", HPCT_ERR_DATA, "line 2: there are 4 columns, the header has 3"},
        {"file,x,y\na.png,,2\n", HPCT_ERR_DATA, "line 2, column 2 (x): the cell is empty"},
        {"file,x,y\na.png,1,one\n", HPCT_ERR_DATA,
         "line 2, column 3 (y): 'one' is not a finite number"},
        {"file,x,y\na.png,1,nan\n", HPCT_ERR_DATA, "'nan' is not a finite number"},
        {"file,x,y\na.png,1,inf\n", HPCT_ERR_DATA, "'inf' is not a finite number"},
        {"file,x,y\na.png,1,1e39\n", HPCT_ERR_DATA, "'1e39' is not a finite number"},
        {"file,x,y\na.png,1, 2\n", HPCT_ERR_DATA, "' 2' is not a finite number"},
        {"file,x,y\na.png,1,0x2\n", HPCT_ERR_DATA, "'0x2' is not a finite number"},
        {"file,x,y\na.png,1,2-\n", HPCT_ERR_DATA, "'2-' is not a finite number"},
        {"file,x,y\na.png,1,-\n", HPCT_ERR_DATA, "'-' is not a finite number"},
        {"file,x,y\n\"a.png\"x,1,2\n", HPCT_ERR_DATA,
         "line 2, column 1: there is text after the closing quote"},
        {"file,x,y\na.png,\"1\n,2\n", HPCT_ERR_DATA, "line 2, column 2: its quote is not closed"},
        {"file,x,y\na.png,1\"2\",2\n", HPCT_ERR_DATA, "line 2, column 2: there is a quote within"},
        {"file,x,y\ra.png,1,2\r", HPCT_ERR_DATA, "line 1, column 3: there is a carriage return"},
    };
    RUN_CASES(read_numbers, cases);
}

/* Pictures of a WebDataset have labels, which another model's outputs may not have. */
TEST(numbers_take_the_place_of_labels)
{
    static const char text[] = "file,x,y\na.png,1,2\nb/c.png,3,4\n" D ",5,6\n";
    hpct_dataset *dataset = unlabelled();
    hpct_data_label_form form = {.kind = HPCT_TARGETS_NUMBERS, .outputs = 2};
    dataset->labels[1] = 7;
    assert_int_equal(take(dataset, &form, text, strlen(text)), HPCT_OK);
    assert_int_equal(dataset->labels[1], 0);
    assert_int_equal(dataset->max_label, 0);
    hpct_dataset_free(dataset);
}

TEST(binary_numbers_lie_in_0_to_1)
{
    static const parse_case cases[] = {
        {"file,x,y\nb/c.png,1,0.25\na.png,0,0\n" D ",1,1\n", HPCT_OK, "x,y: 0 0 / 1 0.25 / 1 1"},
        {"file,x,y\na.png,1,1.5\n", HPCT_ERR_DATA,
         "line 2, column 3 (y): 1.5 does not lie in 0 to 1"},
        {"file,x,y\na.png,-1e-3,1\n", HPCT_ERR_DATA, "column 2 (x): -1e-3 does not lie in 0 to 1"},
    };
    RUN_CASES(read_binary, cases);
}

/* A text that its whole length is of, zeros included. */
TEST(text_in_utf_16_is_refused)
{
    hpct_dataset *dataset = unlabelled();
    hpct_data_label_form form = {.kind = HPCT_TARGETS_NUMBERS, .outputs = 2};
    static const char text[] = "file,x,y\na\0.\0p";
    assert_int_equal(take(dataset, &form, text, sizeof text), HPCT_ERR_DATA);
    assert_non_null(strstr(hpct_last_error(), "l.csv, line 2: there is a zero byte"));
    hpct_dataset_free(dataset);
}

TEST(names_that_are_not_utf_8_are_refused)
{
    static const char not_utf8[] = "line 3, column 2 (class): it is not UTF-8",
                      utf16[] = "l.csv is text in UTF-16";
    static const parse_case cases[] = {
        {"file,class\na.png,x\nb/c.png,\xe4\n", HPCT_ERR_DATA, not_utf8},         /* Latin-1 */
        {"file,class\na.png,x\nb/c.png,caf\xe9\n", HPCT_ERR_DATA, not_utf8},      /* at the end */
        {"file,class\na.png,x\nb/c.png,\"\xfc\"\n", HPCT_ERR_DATA, not_utf8},     /* quoted */
        {"file,class\na.png,x\nb/c.png,\x93q\x94\n", HPCT_ERR_DATA, not_utf8},    /* Windows-1252 */
        {"file,class\na.png,x\nb/c.png,\x83\x65\n", HPCT_ERR_DATA, not_utf8},     /* Shift-JIS */
        {"file,class\na.png,x\nb/c.png,\xc0\xaf\n", HPCT_ERR_DATA, not_utf8},     /* overlong */
        {"file,class\na.png,x\nb/c.png,\xed\xa0\x80\n", HPCT_ERR_DATA, not_utf8}, /* surrogate */
        {"file,class\na.png,x\nb/c.png,\xe2\x82\n", HPCT_ERR_DATA, not_utf8},     /* cut */
        {"file,class\na.png,x\nb/c.png,\xf5\x80\x80\x80\n", HPCT_ERR_DATA, not_utf8},
        {"\xff\xfe"
         "file,class\na.png,x\n",
         HPCT_ERR_DATA, utf16},
        {"\xfe\xff"
         "file,class\na.png,x\n",
         HPCT_ERR_DATA, utf16},
    };
    RUN_CASES(read_classes, cases);
    static const parse_case columns[] = {
        {"file,x,\xe4\na.png,1,2\n", HPCT_ERR_DATA, "line 1, column 3 (\xe4): it is not UTF-8"},
    };
    RUN_CASES(read_numbers, columns);
}

static uint64_t fingerprint_of(hpct_target_kind kind, const char *text)
{
    hpct_dataset *dataset = unlabelled();
    hpct_data_label_form form = {.kind = kind, .outputs = 2};
    assert_int_equal(take(dataset, &form, text, strlen(text)), HPCT_OK);
    hpct_data_fingerprint hash;
    hpct_dataset_fingerprint(dataset, &hash);
    hpct_dataset_free(dataset);
    return hash.labels;
}

TEST(the_fingerprint_has_the_labels)
{
    static const char *const texts[] = {
        "file,x,y\na.png,1,2\nb/c.png,3,4\n" D ",5,6\n",
        "file,x,y\na.png,1,2\nb/c.png,3,4\n" D ",5,7\n",
    };
    uint64_t first = fingerprint_of(HPCT_TARGETS_NUMBERS, texts[0]);
    assert_true(first == fingerprint_of(HPCT_TARGETS_NUMBERS,
                                        "n,x,y\r\n" D ",5,6\r\nb/c.png,3,4\r\na.png,1.0,2"));
    assert_true(first != fingerprint_of(HPCT_TARGETS_NUMBERS, texts[1]));
    assert_true(fingerprint_of(HPCT_TARGETS_CLASS, "f,class\na.png,a\nb/c.png,b\n" D ",a\n") !=
                fingerprint_of(HPCT_TARGETS_CLASS, "f,class\na.png,a\nb/c.png,b\n" D ",b\n"));
}

/* A model with two outputs and this loss. */
static hpct_model *model_of(hpct_loss loss)
{
    hpct_model *model = hpct_model_new("m", HPCT_SHAPE(1, 1, 3));
    hpct_model_add_flatten(model);
    hpct_model_add_dense(model, &(hpct_dense){.units = 2});
    assert_int_equal(hpct_model_compile(model, loss, &(hpct_optimizer){.learning_rate = 0.1}),
                     HPCT_OK);
    return model;
}

/* hpct_dataset_read_labels with pictures in a folder, by the loss of the model. */
TEST(the_loss_says_what_labels_are)
{
    static const struct {
        hpct_loss loss;
        const char *text;
        bool targets;
    } cases[] = {
        {HPCT_MEAN_SQUARED_ERROR, "f,u,v\nx.png,1,2\ny/z.png,3,4\n", true},
        {HPCT_HUBER, "f,u,v\nx.png,1,2\ny/z.png,3,4\n", true},
        {HPCT_BINARY_CROSSENTROPY, "f,u,v\nx.png,1,1\ny/z.png,0,0\n", true},
        {HPCT_BINARY_FOCAL_CROSSENTROPY_FROM_LOGITS, "f,u,v\nx.png,1,1\ny/z.png,0,0\n", true},
        {HPCT_CATEGORICAL_CROSSENTROPY, "f,u,v\nx.png,0,1\ny/z.png,1,0\n", false},
        {HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, "f,class\nx.png,v\ny/z.png,u\n", false},
        {HPCT_KL_DIVERGENCE, "f,label\nx.png,v\ny/z.png,u\n", false},
    };
    const char *folder = TREE("x.png", "y/z.png");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hpct_dataset *dataset = NULL;
        hpct_model *model = model_of(cases[i].loss);
        const hpct_dataset_options options = {.unlabelled = true};
        char labels[4096];
        pictures_write(folder, "labels.csv", cases[i].text, strlen(cases[i].text), false);
        snprintf(labels, sizeof labels, "%s/labels.csv", folder);
        assert_int_equal(hpct_dataset_open_as(&dataset, folder, HPCT_TRAIN, &options), HPCT_OK);
        if (hpct_dataset_read_labels(dataset, labels, model) != HPCT_OK)
            fail_msg("%s: %s", hpct_loss_name(cases[i].loss), hpct_last_error());
        assert_int_equal(dataset->targets != NULL, cases[i].targets);
        if (!cases[i].targets)
            assert_true(dataset->labels[0] == 1 && dataset->labels[1] == 0);
        assert_string_equal(dataset->classes[1], "v");
        assert_int_equal(hpct_dataset_read_labels(dataset, labels, model), HPCT_ERR_USAGE);
        hpct_dataset_free(dataset);
        hpct_model_free(model);
    }
}

TEST(data_with_labels_of_their_own_are_refused)
{
    hpct_dataset *dataset = NULL;
    hpct_model *model = model_of(HPCT_HUBER);
    assert_int_equal(hpct_dataset_synthetic(&dataset, HPCT_SHAPE(1, 1, 3), 2, 4, HPCT_TRAIN, NULL),
                     HPCT_OK);
    assert_int_equal(hpct_dataset_read_labels(dataset, FILE_NAME, model), HPCT_ERR_USAGE);
    hpct_dataset_free(dataset);
    dataset = unlabelled();
    assert_int_equal(hpct_dataset_read_labels(dataset, "/nowhere/l.csv", model), HPCT_ERR_NO_INPUT);
    hpct_dataset_free(dataset);
    hpct_model_free(model);
}

/* What an error leaves is no labels, and nothing that is lost (with sanitizers). */
TEST(labels_are_read_again_after_an_error)
{
    static const char *const texts[] = {"f,u,v\nx.png,1,2\n", "f,u,v\nx.png,1,2\ny/z.png,3,what\n",
                                        "f,u,v\nx.png,1,2\ny/z.png,3,4\n"};
    hpct_dataset *dataset = NULL;
    hpct_model *model = model_of(HPCT_HUBER);
    const hpct_dataset_options options = {.unlabelled = true};
    const char *folder = TREE("x.png", "y/z.png");
    char labels[4096];
    assert_int_equal(hpct_dataset_open_as(&dataset, folder, HPCT_TRAIN, &options), HPCT_OK);
    snprintf(labels, sizeof labels, "%s/labels.csv", folder);
    for (int i = 0; i < 3; i++) {
        pictures_write(folder, "labels.csv", texts[i], strlen(texts[i]), false);
        assert_int_equal(hpct_dataset_read_labels(dataset, labels, model),
                         i < 2 ? HPCT_ERR_DATA : HPCT_OK);
        assert_int_equal(dataset->targets != NULL, i == 2);
        assert_int_equal(dataset->num_classes, i == 2 ? 2 : 0);
    }
    assert_true(dataset->targets[3] == 4);
    hpct_dataset_free(dataset);
    hpct_model_free(model);
}

/* The names, and the loss with its factors, come back from the weights. */
TEST(output_names_are_saved_with_their_loss)
{
    static const char *const names[] = {"left, \"x\"", "right"};
    hpct_model *model = model_of(HPCT_MEAN_SQUARED_ERROR), *other = model_of(HPCT_HUBER);
    hpct_compile_options saved = {0}, huber = {.loss = HPCT_HUBER,
                                               .huber_delta = 0.25,
                                               .optimizer = {.learning_rate = 0.1}};
    char path[4096], **found = NULL;
    int count = 0;
    snprintf(path, sizeof path, "%s/w.safetensors", pictures_folder());
    assert_int_equal(hpct_model_compile_with(model, &huber), HPCT_OK);
    assert_int_equal(hpct_model_initialize(model, 1), HPCT_OK);
    assert_int_equal(hpct_model_set_output_names(model, names, 2), HPCT_OK);
    assert_int_equal(hpct_model_save_weights(model, path), HPCT_OK);
    assert_int_equal(hpct_model_load_weights(other, path), HPCT_OK);
    assert_int_equal(hpct_model_output_names(other, &found, &count, &saved), HPCT_OK);
    assert_int_equal(count, 2);
    assert_string_equal(found[0], names[0]);
    assert_string_equal(found[1], names[1]);
    assert_true(saved.loss == HPCT_HUBER && saved.huber_delta == 0.25 && saved.focal_gamma == 0);
    free(found);
    assert_int_equal(hpct_model_class_names(other, &found, &count), HPCT_OK);
    assert_int_equal(count, 0);
    static const char *const odd[] = {"\xff"};
    assert_int_equal(hpct_model_set_output_names(model, odd, 1), HPCT_ERR_DATA);
    hpct_model_free(model);
    hpct_model_free(other);
}
