/* agent/train: early stopping, plateaus, and learning rates from a file: what follows from a
 * sequence of values. tests/peers/callbacks.t compares many more with Keras. */
#include "agent/train/rate_file.h"
#include "agent/train/watch.h"
#include "tests/unit/unit.h"

#include <math.h>

#define ALL HPCT_RESULTS_METRIC_ANY
#define MOST 12

static void assert_said(const char *text)
{
    if (strstr(hpct_last_error(), text) == NULL)
        fail_msg("'%s' is not in '%s'", text, hpct_last_error());
}

/* ---- early stopping ---- */

static const struct stop_case {
    const char *text;
    double values[MOST]; /* ended by 0 */
    int stops, best;     /* epochs from 0; stops -1: never */
} stop_cases[] = {
    {"val_loss", {3, 2, 2, 1}, 2, 1},
    {"val_loss:patience=1", {3, 2, 2, 1}, 2, 1},
    {"val_loss:patience=2", {3, 2, 2, 1}, -1, 3},
    {"val_loss:patience=2", {3, 2, 2.5, 2}, 3, 1},
    {"val_loss:patience=3,min_delta=0.5", {3, 2.6, 2.4, 2.2, 2.2, 2.2}, 5, 2},
    {"val_loss:patience=1,min_delta=-0.5", {3, 2.6, 2.4}, 1, 0},
    {"val_accuracy:patience=1", {.1, .2, .2}, 2, 1},
    {"val_accuracy:patience=1,mode=min", {.3, .2, .3}, 2, 1},
    {"loss:patience=2,baseline=1", {3, 2, 1.5, .5, .6}, -1, 3},
    {"loss:patience=2,baseline=1", {3, 2, 2.1}, 2, 1},
    {"loss:patience=2,baseline=1", {3, .5, .6, .7}, 3, 1},
    {"loss:patience=1,start_from_epoch=3", {3, 4, 5, 6, 7}, 4, 3},
    {"loss:patience=1", {NAN, 2, NAN}, 2, 1},
    {"loss", {3}, -1, 0},
};

TEST(training_ends_where_keras_ends_it)
{
    for (size_t i = 0; i < sizeof stop_cases / sizeof stop_cases[0]; i++) {
        const struct stop_case *c = &stop_cases[i];
        hpct_train_watch_options options;
        hpct_train_watch watch = {0};
        int stops = -1, best = -1;
        assert_int_equal(hpct_train_watch_parse_stopping(&options, c->text, ALL), HPCT_OK);
        for (int epoch = 0; c->values[epoch] != 0 && stops < 0; epoch++) {
            bool is_best;
            if (hpct_train_watch_stops(&watch, &options, epoch, c->values[epoch], &is_best))
                stops = epoch;
            best = is_best ? epoch : best;
        }
        if (stops != c->stops || best != c->best || watch.best_epoch != best)
            fail_msg("case %zu: stops after %d, best %d", i, stops, best);
    }
}

/* ---- plateaus ---- */

static const struct plateau_case {
    const char *text;
    double values[MOST], rates[MOST];
} plateau_cases[] = {
    {"loss:patience=2,factor=0.5", {3, 3, 3, 2, 2, 2}, {1, 1, .5, .5, .5, .25}},
    {"loss:patience=1,factor=0.5", {3, 2.99995, 2.9998}, {1, .5, .5}},
    {"loss:patience=1,factor=0.5,min_delta=0", {3, 2.99995, 2.9998}, {1, 1, 1}},
    {"loss:patience=1,factor=0.5,cooldown=2", {3, 3, 3, 3, 3}, {1, .5, .5, .25, .25}},
    {"loss:patience=1,factor=0.5,min_lr=0.3", {3, 3, 3, 3}, {1, .5, .3, .3}},
    {"val_accuracy:patience=1,factor=0.5", {.5, .6, .6}, {1, 1, .5}},
    {"loss:patience=1", {3, 3}, {1, .1}},
};

TEST(rates_fall_as_in_keras)
{
    for (size_t i = 0; i < sizeof plateau_cases / sizeof plateau_cases[0]; i++) {
        const struct plateau_case *c = &plateau_cases[i];
        hpct_train_watch_options options;
        hpct_train_watch watch = {0};
        double rate = 1;
        assert_int_equal(hpct_train_watch_parse_plateau(&options, c->text, ALL), HPCT_OK);
        for (int epoch = 0; c->values[epoch] != 0; epoch++) {
            rate = hpct_train_watch_rate(&watch, &options, c->values[epoch], rate);
            if (fabs(rate - c->rates[epoch]) > 1e-12)
                fail_msg("case %zu: %g after epoch %d", i, rate, epoch);
        }
    }
}

/* ---- in a checkpoint ---- */

TEST(notes_are_kept)
{
    hpct_train_watch_notes in = {.stopping = {true, 1.0 / 3, "val_loss", 7, 2, 0},
                                 .plateau = {false, 0, "loss", 0, 1, 3},
                                 .rate = 1e-7,
                                 .reached = true};
    json_t *json = hpct_train_watch_to_json(&in);
    char *text = json_dumps(json, JSON_REAL_PRECISION(17));
    json_t *again = json_loads(text, 0, NULL);
    hpct_train_watch_notes out = hpct_train_watch_from_json(again);
    assert_true(out.stopping.has && !out.plateau.has && out.reached && !out.early);
    assert_true(out.stopping.best == in.stopping.best && out.rate == in.rate);
    assert_string_equal(out.stopping.monitor, "val_loss");
    assert_int_equal(out.stopping.best_epoch, 7);
    assert_int_equal(out.stopping.wait, 2);
    assert_int_equal(out.plateau.cooldown, 3);
    out = hpct_train_watch_from_json(NULL);
    assert_false(out.stopping.has || out.plateau.has || out.reached);
    json_decref(json);
    json_decref(again);
    free(text);
}

TEST(another_metric_begins_anew)
{
    hpct_train_watch_options options;
    hpct_train_watch watch = {true, .1, "val_loss", 3, 5, 0};
    bool is_best;
    assert_int_equal(hpct_train_watch_parse_stopping(&options, "loss:patience=2", ALL), HPCT_OK);
    assert_false(hpct_train_watch_stops(&watch, &options, 4, 2, &is_best));
    assert_true(is_best);
}

/* ---- text that is none ---- */

TEST(wrong_text_is_named)
{
    const struct {
        bool plateau;
        const char *text, *message;
    } cases[] = {
        {false, "val_los", "--early-stopping is 'val_los' (did you mean val_loss?)"},
        {false, "", "--early-stopping is ''"},
        {false, "loss:", "--early-stopping has no ''"},
        {false, "loss:patience", "'patience' needs a value"},
        {false, "loss:patience=", "'patience' is '', it must be a number of epochs"},
        {false, "loss:patience=1.5", "'patience' is '1.5', it must be a number of epochs"},
        {false, "loss:patience=-1", "'patience' is '-1'"},
        {false, "loss:patience=nan", "'patience' is 'nan'"},
        {false, "loss:min_delta=1x", "'min_delta' is '1x', it must be a number"},
        {false, "loss:mode=least", "'mode' is 'least', it must be auto, min or max"},
        {false, "loss:restore_best=1", "'restore_best' has no value"},
        {false, "loss:patence=1", "--early-stopping has no 'patence' (did you mean patience?)"},
        {false, "loss:factor=1", "--early-stopping has no 'factor'"},
        {true, "loss:factor=1", "'factor' is 1, it must be between 0 and 1"},
        {true, "loss:factor=0", "'factor' is 0"},
        {true, "loss:min_lr=-1", "'min_lr' is -1, it cannot be negative"},
        {true, "loss:baseline=1", "--reduce-lr-on-plateau has no 'baseline'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hpct_train_watch_options options;
        assert_int_equal(cases[i].plateau
                             ? hpct_train_watch_parse_plateau(&options, cases[i].text, ALL)
                             : hpct_train_watch_parse_stopping(&options, cases[i].text, ALL),
                         HPCT_ERR_USAGE);
        assert_said(cases[i].message);
    }
    hpct_train_monitor monitor;
    double target;
    assert_int_equal(hpct_train_watch_parse_target(&monitor, &target, "val_accuracy=0.99", ALL),
                     HPCT_OK);
    assert_true(monitor.larger && target == 0.99);
    for (const char *const *text = (const char *const[]){"loss", "loss=", "loss=x", "=1", NULL};
         *text != NULL; text++)
        assert_int_equal(hpct_train_watch_parse_target(&monitor, &target, *text, ALL),
                         HPCT_ERR_USAGE);
    assert_int_equal(hpct_train_watch_parse_target(&monitor, &target, "val_loss=1",
                                                   (hpct_results_metric_choice){.classes = true}),
                     HPCT_ERR_USAGE);
    assert_said("--stop-at val_loss needs --validation-data");
}

/* ---- rates by epoch ---- */

static hpct_status parse_rates(hpct_train_rate_file *out, const char *text)
{
    char *copy = strdup(text);
    hpct_status status = hpct_train_rate_file_parse(out, copy, "rates");
    free(copy);
    return status;
}

TEST(rates_hold_until_the_next_line)
{
    const char *const texts[] = {
        "1 0.5\n4 0.1\n", "# epoch rate\n 1,0.5 # begin\n\n4,\t0.1", "1 5e-1\r\n4 1e-1\r\n",
        "epoch,accuracy,learning_rate,loss\n1,0.9,0.5,1\n4,0.91,0.1,0.8\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        hpct_train_rate_file file;
        assert_int_equal(parse_rates(&file, texts[i]), HPCT_OK);
        const double want[] = {0, .5, .5, .5, .1, .1};
        for (int epoch = 0; epoch < 6; epoch++)
            assert_true(hpct_train_rate_file_at(&file, epoch) == want[epoch]);
        free(file.lines);
    }
}

TEST(wrong_rates_are_named_by_line)
{
    const struct {
        const char *text, *message;
    } cases[] = {
        {"", "rates has no learning rate"},
        {"# nothing\n", "rates has no learning rate"},
        {"0 0.1\n1\n", "rates: line 2 is not an epoch and a learning rate"},
        {"0 x\n", "rates: line 1 is not"},
        {"0 nan\n", "rates: line 1 is not"},
        {"0 0\n", "line 1: the epoch must be a whole number from 0 on, and the learning rate"},
        {"0.5 1\n", "line 1: the epoch must be"},
        {"-1 1\n", "line 1: the epoch must be"},
        {"1 1\n1 2\n", "line 2: epoch 1 is not after the line before"},
        {"epoch,loss\n0,1\n", "line 1 has no columns epoch and learning_rate"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hpct_train_rate_file file;
        assert_int_equal(parse_rates(&file, cases[i].text), HPCT_ERR_DATA);
        assert_said(cases[i].message);
        assert_null(file.lines);
    }
}
