/* The description of a run: each setting changes the key of its name alone, and the table says what
 * ranks and checkpoints compare. */
#include "agent/data/dataset.h"
#include "agent/rank/compare.h"
#include "agent/train/identity.h"
#include "base/status.h"
#include "tests/unit/unit.h"

#include <hpctrain/hpctrain.h>

/* What can be varied, with what is usual. */
typedef struct settings {
    hpct_conv2d conv;
    hpct_dense head;
    const char *name;
    hpct_loss loss;
    hpct_compile_options compile;
    hpct_dataset_options data;
    size_t samples;
    hpct_fit_options fit;
    int global_batch;
    const char *frozen;
    hpct_split split;
} settings;

static const settings usual = {
    .conv = {.filters = 2, .kernel = {3, 3}, .activation = HPCT_RELU},
    .head = {.units = 3},
    .name = "m",
    .compile = {.loss = HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
                .optimizer = {.learning_rate = 0.1}},
    .samples = 12,
    .fit = {.epochs = 2},
    .global_batch = 4,
};

static json_t *describe(const settings *s)
{
    json_t *out = NULL;
    hpct_dataset *train = NULL;
    hpct_model *model = hpct_model_new(s->name, HPCT_SHAPE(6, 6, 1));
    hpct_model_add_conv2d(model, &s->conv);
    hpct_model_add_flatten(model);
    hpct_model_add_dense(model, &s->head);
    if (s->frozen != NULL)
        assert_int_equal(hpct_model_set_trainable(model, s->frozen, false), HPCT_OK);
    assert_int_equal(hpct_model_compile_with(model, &s->compile), HPCT_OK);
    assert_int_equal(
        hpct_dataset_synthetic(&train, HPCT_SHAPE(6, 6, 1), 3, s->samples, s->split, &s->data),
        HPCT_OK);
    hpct_train_identity_of of = {.model = model,
                                 .train = train,
                                 .fit = &s->fit,
                                 .global_batch = s->global_batch,
                                 .steps = 3};
    assert_int_equal(hpct_train_identity_describe(&out, &of), HPCT_OK);
    hpct_dataset_free(train);
    hpct_model_free(model);
    return out;
}

static const hpct_train_identity_key *key_of(const char *name)
{
    for (const hpct_train_identity_key *key = hpct_train_identity_keys; key->name != NULL; key++) {
        if (strcmp(key->name, name) == 0)
            return key;
    }
    fail_msg("the table lacks the key %s", name);
    return NULL;
}

static bool ranks_differ(const json_t *a, const json_t *b)
{
    json_t *x = hpct_train_identity_of_ranks(a), *y = hpct_train_identity_of_ranks(b);
    bool equal = json_equal(x, y) == 1;
    json_decref(x);
    json_decref(y);
    return !equal;
}

/* The change is seen under this key first, and as its row says. */
static void assert_seen(const settings *changed, const char *name)
{
    json_t *a = describe(&usual), *b = describe(changed);
    const hpct_train_identity_key *key = key_of(name);
    hpct_rank_difference d;
    char *unknown = NULL;
    assert_true(hpct_rank_find_difference(a, b, &d));
    assert_string_equal(d.key, name);
    assert_int_equal(ranks_differ(a, b), key->ranks);
    hpct_status status = hpct_train_identity_continue(b, a, NULL, "ck", &unknown);
    if (status != (key->continued && strcmp(name, "model") != 0 ? HPCT_ERR_CONFIG : HPCT_OK))
        fail_msg("%s: %d", name, status);
    assert_null(unknown);
    json_decref(a);
    json_decref(b);
}

#define SEEN(NAME, CHANGE)                                                                         \
    do {                                                                                           \
        settings s = usual;                                                                        \
        s.CHANGE;                                                                                  \
        assert_seen(&s, NAME);                                                                     \
    } while (0)

TEST(each_setting_has_its_key)
{
    SEEN("training samples", samples = 13);
    SEEN("training data", split = HPCT_TEST);
    SEEN("model", name = "other");
    SEEN("layers", conv.activation = HPCT_TANH);
    SEEN("layers", conv.filters = 3);
    SEEN("layers", conv.padding = HPCT_SAME);
    SEEN("layers", conv.dilation[0] = 2);
    SEEN("frozen layers", frozen = "conv2d");
    SEEN("precision", compile.precision = HPCT_BF16);
    SEEN("loss", compile.loss = HPCT_MEAN_SQUARED_ERROR);
    SEEN("top-k accuracy", compile.top_k = 2);
    SEEN("scale of images", data.scaling = HPCT_SCALE_SYMMETRIC);
    SEEN("random flip", data.flip = true);
    SEEN("random crop", data.crop = 1);
    SEEN("random rotation", data.rotation = 0.1);
    SEEN("random zoom", data.zoom = 0.1);
    SEEN("random translation", data.translation = 0.1);
    SEEN("random contrast", data.contrast = 0.1);
    SEEN("alpha of mixup", data.mixup = 0.2);
    SEEN("alpha of cutmix", data.cutmix = 0.2);
    SEEN("global batch", global_batch = 5);
    SEEN("seed", fit.seed = 7);
    SEEN("optimizer", compile.optimizer.kind = HPCT_ADAM);
    SEEN("learning rate", compile.optimizer.learning_rate = 0.2);
    SEEN("momentum", compile.optimizer.momentum = 0.9);
    SEEN("weight decay", compile.optimizer.weight_decay = 0.1);
    SEEN("clipvalue", compile.optimizer.clipvalue = 1);
    SEEN("clipnorm", compile.optimizer.clipnorm = 1);
    SEEN("global clipnorm", compile.optimizer.global_clipnorm = 1);
    SEEN("gradient accumulation", compile.optimizer.gradient_accumulation_steps = 2);
    SEEN("numbers of the schedule", compile.optimizer.schedule.warmup_steps = 3);
    SEEN("strategy", fit.strategy.name = "hybrid");
    SEEN("epochs", fit.epochs = 3);
    SEEN("first epoch", fit.initial_epoch = 1);
    SEEN("options", fit.log_dir = "log");
    SEEN("options", fit.early_stopping = "loss");
}

TEST(paths_are_not_part_of_it)
{
    settings one = usual, two = usual;
    one.fit.log_dir = "a";
    two.fit.log_dir = "b";
    json_t *a = describe(&one), *b = describe(&two);
    assert_true(json_equal(a, b));
    json_decref(a);
    json_decref(b);
}

/* Checkpoints of earlier releases have no layers and no names of classes in the description. */
TEST(an_earlier_release_is_compared_by_what_it_noted)
{
    json_t *own = describe(&usual), *theirs = describe(&usual);
    char *unknown = NULL;
    json_object_del(theirs, "layers");
    json_object_del(theirs, "training data");
    json_object_del(theirs, "class names");
    json_object_set_new(own, "class names", json_pack("[s, s]", "cat", "dog"));
    json_t *same = json_pack("[s, s]", "cat", "dog"), *other = json_pack("[s, s]", "ape", "cat");
    assert_int_equal(hpct_train_identity_continue(own, theirs, same, "ck", &unknown), HPCT_OK);
    assert_string_equal(unknown, "training data, layers");
    free(unknown);
    assert_int_equal(hpct_train_identity_continue(own, theirs, other, "ck", &unknown),
                     HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), "class names, number 0 ape, this one has cat"));
    free(unknown);
    json_object_set_new(own, "model", json_string("other"));
    assert_int_equal(hpct_train_identity_continue(own, theirs, same, "ck", &unknown),
                     HPCT_ERR_CONFIG);
    free(unknown);
    json_decref(own);
    json_decref(theirs);
    json_decref(same);
    json_decref(other);
}

TEST(briefs_name_the_first_key)
{
    settings changed = usual;
    char a[HPCT_TRAIN_IDENTITY_BRIEF], b[HPCT_TRAIN_IDENTITY_BRIEF],
        text[HPCT_TRAIN_IDENTITY_VALUE];
    changed.fit.seed = 7;
    json_t *own = describe(&usual), *other = describe(&changed);
    hpct_train_identity_brief(own, a);
    hpct_train_identity_brief(other, b);
    assert_int_equal(hpct_train_identity_compare_briefs(a, a), -1);
    int key = hpct_train_identity_compare_briefs(a, b);
    assert_string_equal(hpct_train_identity_keys[key].name, "seed");
    assert_string_equal(hpct_train_identity_print(other, key, text), "\"7\"");
    assert_int_equal(hpct_train_identity_compare_briefs(a, "abc"), -1);
    assert_int_equal(hpct_train_identity_fail(own, 1 << 20, "x", "worker 0", "server"),
                     HPCT_ERR_CONFIG);
    json_decref(own);
    json_decref(other);
}

TEST(the_manual_has_the_table)
{
    const char *top = getenv("top_srcdir");
    char path[4096];
    if (top == NULL)
        skip();
    snprintf(path, sizeof path, "%s/doc/man/hpc-train-fit.1", top);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *manual = calloc(1, 1 << 20);
    assert_true(fread(manual, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    char *at = strstr(manual, "key\tranks differ\tcontinued with another\n_\n");
    assert_non_null(at);
    at = strstr(at, "_\n") + 2;
    for (const hpct_train_identity_key *key = hpct_train_identity_keys; key->name != NULL; key++) {
        char row[256];
        int length = snprintf(row, sizeof row, "%s\t%s\t%s\n", key->name,
                              !key->ranks                    ? "\\-"
                              : key->status == HPCT_ERR_DATA ? "65"
                                                             : "78",
                              key->continued ? "78" : "\\-");
        if (strncmp(at, row, (size_t) length) != 0)
            fail_msg("the manual lacks, or has elsewhere: %s", row);
        at += length;
    }
    assert_memory_equal(at, ".TE", 3);
    free(manual);
}

TEST(lists_and_objects_differ_where_they_do)
{
    static const struct {
        const char *a, *b, *where, *own, *others;
    } cases[] = {
        {"{\"x\":1}", "{\"x\":2}", "x", "1", "2"},
        {"{\"x\":1}", "{}", "x", "1", "not given"},
        {"{}", "{\"x\":\"a\"}", "x", "not given", "a"},
        {"{\"x\":null}", "{\"x\":[1]}", "x", "none", "[1]"},
        {"{\"x\":[1,2]}", "{\"x\":[1,3]}", "x, number 1", "2", "3"},
        {"{\"x\":[1,2]}", "{\"x\":[1]}", "x, length", "2", "1"},
        {"{\"x\":[{\"name\":\"c\",\"y\":1}]}", "{\"x\":[{\"name\":\"c\",\"y\":2}]}", "x, c, y", "1",
         "2"},
        {"{\"x\":{\"y\":{\"z\":1}}}", "{\"x\":{\"y\":{}}}", "x, y, z", "1", "not given"},
        {"{\"a\":1,\"b\":1}", "{\"a\":1,\"b\":2}", "b", "1", "2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hpct_rank_difference d;
        json_t *a = json_loads(cases[i].a, 0, NULL), *b = json_loads(cases[i].b, 0, NULL);
        assert_false(hpct_rank_find_difference(a, a, &d));
        assert_true(hpct_rank_find_difference(a, b, &d));
        assert_string_equal(d.where, cases[i].where);
        assert_string_equal(d.own, cases[i].own);
        assert_string_equal(d.others, cases[i].others);
        json_decref(a);
        json_decref(b);
    }
}
