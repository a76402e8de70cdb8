/* agent/results/tally.h, and the weights of classes: numbers as scikit-learn's and Keras'
 * definitions give them by hand; tests/peers/scores.t compares many more. */
#include "agent/results/tally.h"
#include "agent/train/class_weights.h"
#include "base/status.h"
#include "tests/unit/unit.h"

#include <unistd.h>

#define ALL_METRICS (HPCT_METRIC_PRECISION | HPCT_METRIC_RECALL | HPCT_METRIC_F1 | HPCT_METRIC_AUC)

static hpct_results_tally *tally_of(hpct_results_tally_options options)
{
    hpct_results_tally *tally;
    assert_int_equal(hpct_results_tally_open(&tally, &options), HPCT_OK);
    return tally;
}

static void assert_near(double value, double expected)
{
    if (!(fabs(value - expected) < 1e-9))
        fail_msg("%.12g, not %.12g", value, expected);
}

static void assert_said(const char *text)
{
    if (strstr(hpct_last_error(), text) == NULL)
        fail_msg("'%s' is not in '%s'", text, hpct_last_error());
}

/* ---- several classes ---- */

/* Six samples of three classes, of which the last is never predicted, and the fourth has none. */
static const float outputs[6][4] = {{.7F, .2F, .1F, 0}, {.6F, .3F, .1F, 0}, {.1F, .8F, .1F, 0},
                                    {.5F, .4F, .1F, 0}, {.2F, .5F, .3F, 0}, {.3F, .3F, .2F, .2F}};
static const int32_t labels[6] = {0, 0, 1, 1, 2, 2};

TEST(classes_have_their_metrics)
{
    hpct_results_tally *tally =
        tally_of((hpct_results_tally_options){.outputs = 4, .labels = 4, .metrics = ALL_METRICS});
    assert_int_equal(hpct_results_tally_add(tally, outputs[0], labels, 6), HPCT_OK);
    hpct_results_class_metrics first = hpct_results_tally_class(tally, 0),
                               third = hpct_results_tally_class(tally, 2);
    assert_int_equal(first.samples, 2);
    assert_near(first.of.precision, 2.0 / 4); /* of equal outputs the first is taken */
    assert_near(first.of.recall, 1);
    assert_near(first.of.f1, 2.0 / 3);
    assert_near(first.of.auc, 1);
    assert_near(third.of.precision, 0);
    assert_near(third.of.recall, 0);
    assert_near(third.of.auc, 1);
    hpct_metrics mean;
    hpct_results_tally_get(tally, &mean);
    assert_near(mean.precision, (0.5 + 0.5 + 0 + 0) / 4);
    assert_near(mean.recall, (1 + 0.5 + 0 + 0) / 4);
    assert_near(mean.f1, (2.0 / 3 + 0.5 + 0 + 0) / 4);
    assert_near(mean.auc, (1 + 7.0 / 8 + 1 + 0) / 4);
    hpct_results_tally_clear(tally);
    hpct_results_tally_get(tally, &mean);
    assert_near(mean.precision + mean.auc, 0);
    hpct_results_tally_close(tally);
}

/* Parts of the samples, added up, are all of them. */
TEST(counts_are_added)
{
    hpct_results_tally_options options = {
        .outputs = 4, .labels = 4, .metrics = ALL_METRICS, .matrix = true};
    hpct_results_tally *whole = tally_of(options),
                       *parts[2] = {tally_of(options), tally_of(options)};
    size_t num, same;
    assert_int_equal(hpct_results_tally_add(whole, outputs[0], labels, 6), HPCT_OK);
    assert_int_equal(hpct_results_tally_add(parts[0], outputs[0], labels, 2), HPCT_OK);
    assert_int_equal(hpct_results_tally_add(parts[1], outputs[2], labels + 2, 4), HPCT_OK);
    int64_t *sum = hpct_results_tally_counts(parts[0], &num),
            *other = hpct_results_tally_counts(parts[1], &same);
    assert_int_equal(num, same);
    for (size_t i = 0; i < num; i++)
        sum[i] += other[i];
    assert_memory_equal(sum, hpct_results_tally_counts(whole, &same), num * sizeof *sum);
    const int64_t row[4] = {1, 1, 0, 0};
    assert_memory_equal(hpct_results_tally_row(whole, 2), row, sizeof row);
    hpct_results_tally_close(whole);
    hpct_results_tally_close(parts[0]);
    hpct_results_tally_close(parts[1]);
}

TEST(logits_become_probabilities)
{
    hpct_results_tally *a =
        tally_of((hpct_results_tally_options){.outputs = 4, .labels = 4, .metrics = ALL_METRICS});
    hpct_results_tally *b = tally_of((hpct_results_tally_options){
        .outputs = 4, .labels = 4, .metrics = ALL_METRICS, .logits = true});
    float logits[6][4];
    size_t num;
    for (int s = 0; s < 6; s++) {
        for (int i = 0; i < 4; i++)
            logits[s][i] = outputs[s][i] > 0 ? 5 + logf(outputs[s][i]) : -200;
    }
    assert_int_equal(hpct_results_tally_add(a, outputs[0], labels, 6), HPCT_OK);
    assert_int_equal(hpct_results_tally_add(b, logits[0], labels, 6), HPCT_OK);
    const int64_t *counts = hpct_results_tally_counts(a, &num);
    assert_memory_equal(counts, hpct_results_tally_counts(b, &num), num * sizeof *counts);
    hpct_results_tally_close(a);
    hpct_results_tally_close(b);
}

/* ---- one output ---- */

TEST(one_output_is_class_1)
{
    const float x[5] = {.9F, .6F, .5F, .2F, NAN};
    const int32_t y[5] = {1, 0, 1, 0, 1};
    hpct_results_tally *tally =
        tally_of((hpct_results_tally_options){.outputs = 1, .labels = 2, .metrics = ALL_METRICS});
    assert_int_equal(hpct_results_tally_add(tally, x, y, 5), HPCT_OK);
    hpct_metrics m;
    hpct_results_tally_get(tally, &m);
    assert_near(m.precision, 1.0 / 2); /* 0.5 is class 0 */
    assert_near(m.recall, 1.0 / 3);
    assert_near(m.f1, 2.0 / 5);
    assert_near(m.auc, 3.0 / 6);
    assert_int_equal(hpct_results_tally_classes(tally), 2);
    assert_near(hpct_results_tally_class(tally, 0).of.recall, 1.0 / 2);
    assert_true(isnan(hpct_results_tally_class(tally, 0).of.auc));
    const float same[2] = {.3F, .3F}; /* at one threshold: half of it counts */
    hpct_results_tally_clear(tally);
    assert_int_equal(hpct_results_tally_add(tally, same, y, 2), HPCT_OK);
    assert_near(hpct_results_tally_class(tally, 1).of.auc, 0.5);
    hpct_results_tally_close(tally);
}

TEST(what_is_not_a_class_is_refused)
{
    hpct_results_tally *tally;
    const float x[2] = {.5F, 1.5F};
    const int32_t y = 0;
    hpct_results_tally_options number = {.outputs = 1,
                                         .labels = INT32_MAX,
                                         .metrics = HPCT_METRIC_F1},
                               many = {.outputs = HPCT_RESULTS_TALLY_CLASSES + 1,
                                       .labels = 9,
                                       .matrix = true};
    assert_int_equal(hpct_results_tally_open(&tally, &number), HPCT_ERR_USAGE);
    assert_int_equal(hpct_results_tally_open(&tally, &many), HPCT_ERR_USAGE);
    tally = tally_of(
        (hpct_results_tally_options){.outputs = 2, .labels = 2, .metrics = HPCT_METRIC_AUC});
    assert_int_equal(hpct_results_tally_add(tally, x, &y, 1), HPCT_ERR_DATA);
    assert_said("an output is 1.5");
    hpct_results_tally_close(tally);
}

/* ---- files ---- */

TEST(the_matrix_names_its_classes)
{
    char path[] = "/tmp/test_tally.XXXXXX", text[128] = "", cat[] = "cat", odd[] = "a \"b\", c";
    char *names[2] = {cat, odd};
    const float x[4] = {.9F, .1F, .8F, .2F};
    const int32_t y[2] = {0, 1};
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    hpct_results_tally *tally =
        tally_of((hpct_results_tally_options){.outputs = 2, .labels = 2, .matrix = true});
    assert_int_equal(hpct_results_tally_add(tally, x, y, 2), HPCT_OK);
    assert_int_equal(hpct_results_tally_write(tally, names, 2, path), HPCT_OK);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    assert_string_equal(text, "true,cat,\"a \"\"b\"\", c\"\ncat,1,0\n\"a \"\"b\"\", c\",1,0\n");
    fclose(file);
    assert_int_equal(hpct_results_tally_write(tally, names, 2, "/none/such.csv"), HPCT_ERR_IO);
    assert_said("/none/such.csv");
    hpct_results_tally_close(tally);
    close(fd);
    remove(path);
}

/* ---- weights of classes ---- */

static const struct weights_case {
    const char *text;
    double first, third; /* of three classes, named cat, dog, 0 */
    const char *says;    /* NULL: they are taken */
} weights_cases[] = {
    {"{\"cat\": 2, \"0\": 0.5}", 2, .5, NULL},
    {"{\"2\": 3.5}", 1, 3.5, NULL},
    {"{}", 1, 1, NULL},
    {"{\"bird\": 1}", 0, 0, "\"bird\" is neither"},
    {"{\"3\": 1}", 0, 0, "from 0 to 2"},
    {"{\"01\": 1}", 0, 0, "\"01\" is neither"},
    {"{\"2\": 1, \"0\": 1}", 0, 0, "by name and by number"},
    {"{\"cat\": -1}", 0, 0, "\"cat\" should be a number"},
    {"{\"cat\": 1e300}", 0, 0, "\"cat\" should be a number"},
    {"{\"cat\": \"2\"}", 0, 0, "\"cat\" should be a number"},
    {"[1, 2, 3]", 0, 0, "expected an object"},
    {"{\"cat\": 1", 0, 0, "line 1"},
};

TEST(weights_are_by_name_or_number)
{
    char cat[] = "cat", dog[] = "dog", zero[] = "0";
    char *names[3] = {cat, dog, zero};
    for (size_t i = 0; i < sizeof weights_cases / sizeof weights_cases[0]; i++) {
        const struct weights_case *c = &weights_cases[i];
        double weights[3];
        hpct_status status =
            hpct_train_class_weights_parse(weights, 3, c->text, names, 3, "w.json");
        assert_int_equal(status, c->says == NULL ? HPCT_OK : HPCT_ERR_DATA);
        if (c->says != NULL) {
            assert_said(c->says);
            assert_said("w.json: ");
            continue;
        }
        assert_near(weights[0], c->first);
        assert_near(weights[1], 1);
        assert_near(weights[2], c->third);
    }
}

/* ---- numbers ---- */

/* Keras' formula, a sample at a time, in the plainest form. */
static double keras_mape(const float *p, const float *y, int samples, int num)
{
    double sum = 0;
    for (int s = 0; s < samples; s++) {
        double of_sample = 0;
        for (int i = 0; i < num; i++) {
            double target = (double) y[s * num + i], size = target < 0 ? -target : target;
            double diff = target - (double) p[s * num + i];
            of_sample += (diff < 0 ? -diff : diff) / (size > 1e-7 ? size : 1e-7);
        }
        sum += 100.0 * of_sample / num;
    }
    return sum / samples;
}

TEST(numbers_have_percentage_errors)
{
    const float p[3][2] = {{1.5F, 2}, {-3, .25F}, {0, 1e-7F}},
                y[3][2] = {{1, 4}, {-2, -.5F}, {8, 0}};
    hpct_metrics m;
    hpct_results_tally *tally = tally_of(
        (hpct_results_tally_options){.outputs = 2, .numbers = true, .metrics = HPCT_METRIC_MAPE});
    hpct_results_tally_add_numbers(tally, p[0], y[0], 2);
    hpct_results_tally_add_numbers(tally, p[2], y[2], 1);
    hpct_results_tally_get(tally, &m);
    assert_near(m.mape, keras_mape(p[0], y[0], 3, 2));
    assert_true(m.mape > 80 && m.mape < 90 && isnan(m.precision));
    hpct_results_tally_clear(tally);
    hpct_results_tally_add_numbers(tally, p[0], y[0], 1);
    hpct_results_tally_get(tally, &m);
    assert_near(m.mape, 50);
    assert_int_equal(hpct_results_tally_classes(tally), 0);
    hpct_results_tally_close(tally);
}
