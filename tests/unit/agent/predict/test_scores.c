/* From outputs to the most probable classes. */
#include "agent/predict/scores.h"
#include "tests/unit/unit.h"

#include <hpctrain/status.h>
#include <math.h>

/* A model with this many outputs. */
static hpct_model *model_of(int outputs, hpct_activation last)
{
    hpct_model *model = hpct_model_new("scores", HPCT_SHAPE(2));
    hpct_model_add_dense(model, &(hpct_dense){.units = outputs, .activation = last});
    return model;
}

static void assert_best(int outputs, hpct_activation last, const float *values, int k,
                        const hpct_predict_class_score *want)
{
    hpct_model *model = model_of(outputs, last);
    hpct_predict_scores scores;
    hpct_predict_class_score best[8];
    assert_int_equal(hpct_predict_scores_open(&scores, model, k), HPCT_OK);
    hpct_predict_scores_best(&scores, values, k, best);
    for (int i = 0; i < k; i++) {
        assert_int_equal(best[i].class, want[i].class);
        if (isnan(want[i].probability))
            assert_true(isnan(best[i].probability));
        else
            assert_true(fabsf(best[i].probability - want[i].probability) < 1e-6f);
    }
    hpct_predict_scores_close(&scores);
    hpct_model_free(model);
}

TEST(probabilities_are_taken_as_they_are)
{
    assert_best(4, HPCT_SOFTMAX, (const float[]){0.1f, 0.5f, 0.3f, 0.1f}, 3,
                (const hpct_predict_class_score[]){{1, 0.5f}, {2, 0.3f}, {0, 0.1f}});
}

TEST(of_equal_ones_the_lower_number_comes_first)
{
    assert_best(
        5, HPCT_SOFTMAX, (const float[]){0.2f, 0.2f, 0.2f, 0.2f, 0.2f}, 5,
        (const hpct_predict_class_score[]){{0, 0.2f}, {1, 0.2f}, {2, 0.2f}, {3, 0.2f}, {4, 0.2f}});
}

TEST(logits_get_a_softmax_that_does_not_overflow)
{
    assert_best(3, HPCT_LINEAR, (const float[]){1000, 1001, -1000}, 3,
                (const hpct_predict_class_score[]){{1, 0.731059f}, {0, 0.268941f}, {2, 0}});
}

TEST(one_output_is_the_probability_of_class_1)
{
    assert_best(1, HPCT_SIGMOID, (const float[]){0.2f}, 2,
                (const hpct_predict_class_score[]){{0, 0.8f}, {1, 0.2f}});
    assert_best(1, HPCT_LINEAR, (const float[]){logf(4)}, 1,
                (const hpct_predict_class_score[]){{1, 0.8f}});
}

TEST(outputs_that_are_not_finite_have_no_probability)
{
    const hpct_predict_class_score none[] = {{0, NAN}};
    assert_best(3, HPCT_SOFTMAX, (const float[]){0.5f, NAN, 0.5f}, 1, none);
    assert_best(3, HPCT_LINEAR, (const float[]){0.5f, 1, INFINITY}, 1, none);
}

TEST(refuses_more_classes_than_there_are)
{
    hpct_predict_scores scores = {0};
    hpct_model *model = model_of(1, HPCT_SIGMOID);
    assert_int_equal(hpct_predict_scores_open(&scores, model, 3), HPCT_ERR_USAGE);
    assert_string_equal(hpct_last_error(), "--top-k is 3, the model has 2 classes");
    hpct_model_free(model);
}

TEST(refuses_outputs_that_are_no_classes)
{
    hpct_predict_scores scores = {0};
    hpct_model *model = hpct_model_new("map", HPCT_SHAPE(4, 4, 1));
    hpct_model_add_conv2d(model, &(hpct_conv2d){.filters = 2, .kernel = {1, 1}});
    assert_int_equal(hpct_predict_scores_open(&scores, model, 1), HPCT_ERR_DATA);
    hpct_model_free(model);
}
