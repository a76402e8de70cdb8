/* agent/results/metric.h: which metrics a run has, by name and in order. */
#include "agent/results/metric.h"
#include "tests/unit/unit.h"

#include <string.h>

static void assert_listed(hpct_results_metric_choice choice, bool of_validation,
                          const char *expected)
{
    char text[HPCT_RESULTS_METRIC_NAMES];
    assert_string_equal(hpct_results_metric_list(text, &choice, of_validation), expected);
}

TEST(a_run_has_the_metrics_of_its_kind)
{
    hpct_results_metric_choice classes = {.validation = true, .classes = true, .requested = 2 | 8};
    assert_listed(classes, false, "accuracy, loss");
    assert_listed(classes, true, "val_accuracy, val_loss, val_recall, val_auc");
    classes.top_k = true;
    assert_listed(classes, false, "accuracy, loss, top_k_categorical_accuracy");
    assert_listed((hpct_results_metric_choice){.numbers = true}, false, "loss, mae, mse");
    assert_listed((hpct_results_metric_choice){.numbers = true}, true, "");
}

TEST(metrics_are_found_by_name)
{
    bool of_validation;
    hpct_metrics values = HPCT_RESULTS_NO_METRICS;
    assert_true(isnan(values.loss) && isnan(values.auc) && isnan(values.mse));
    const hpct_results_metric *mse = hpct_results_metric_find("val_mse", &of_validation);
    assert_true(mse != NULL && of_validation && !mse->larger_is_better);
    hpct_results_metric_set(mse, &values, 2);
    assert_true(values.mse == 2 && hpct_results_metric_get(mse, &values) == 2);
    assert_null(
        hpct_results_metric_find("precision", &of_validation)); /* of validation data alone */
    assert_non_null(hpct_results_metric_find("val_precision", &of_validation));
    assert_null(hpct_results_metric_find("val_", &of_validation));
}

TEST(programs_have_names_and_bits)
{
    unsigned all = 0;
    for (int i = 0; hpct_metric_name(i) != NULL; i++)
        all |= hpct_metric_bit(i);
    assert_string_equal(hpct_metric_name(2), "f1");
    assert_int_equal(hpct_metric_bit(2), HPCT_METRIC_F1);
    assert_true((all & (all + 1)) == 0); /* no bit is left out */
}
