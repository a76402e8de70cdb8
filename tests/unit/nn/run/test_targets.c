/* nn/run/targets: the loss of mixed labels, its gradient and its metrics against the definition;
 * rows and labels in turns. */
#include "nn/plan/run.h"
#include "nn/run/step.h"
#include "tests/unit/unit.h"

#include <math.h>

#define SAMPLES 3
#define CLASSES 4

static const hpct_optimizer sgd = {.kind = HPCT_SGD, .learning_rate = 0.1};
static const int batch = SAMPLES;
static const int32_t labels[SAMPLES] = {2, 0, 3}, others[SAMPLES] = {1, 0, 2};
static const float shares[SAMPLES] = {0.7f, 0.4f, 0.2f};

typedef struct kind {
    hpct_loss loss;
    bool softmax, last; /* last: of the model, so that the loss is of its input */
} kind;

static const kind kinds[] = {
    {HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, false, false},
    {HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, true, true},
    {HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, true, false},
    {HPCT_CATEGORICAL_CROSSENTROPY, true, false},
};

static hpct_model *model_of(const kind *k, const char *backend, bool dense_targets)
{
    hpct_model *model = hpct_model_new("m", HPCT_SHAPE(5));
    hpct_model_add_dense(model, &(hpct_dense){.units = CLASSES});
    if (k->softmax)
        hpct_model_add_activation(model, HPCT_SOFTMAX);
    if (k->softmax && !k->last)
        hpct_model_add_rescaling(model, 0.5, 0);
    assert_int_equal(hpct_model_compile(model, k->loss, &sgd), HPCT_OK);
    assert_int_equal(hpct_model_initialize(model, 1), HPCT_OK);
    hpct_run_build_options options = {.backend = backend,
                                      .batch_sizes = &batch,
                                      .num_batch_sizes = 1,
                                      .dense_targets = dense_targets};
    assert_int_equal(hpct_model_build(model, &options), HPCT_OK);
    for (int i = 0; i < SAMPLES * 5; i++)
        hpct_model_input(model)[i] = (float) (i * 7 % 5) / 3;
    memcpy(hpct_model_labels(model), labels, sizeof labels);
    return model;
}

static double loss_of(hpct_model *model, hpct_backend_batch_sums *sums)
{
    assert_int_equal(hpct_model_forward(model, SAMPLES, true), HPCT_OK);
    assert_int_equal(hpct_model_loss(model, SAMPLES, 1.0f / SAMPLES, sums), HPCT_OK);
    return sums->loss;
}

/* Sum of -y log q over a row of targets; q: outputs divided by their sum, or softmax of logits. */
static double defined_loss(const kind *k, const float *outputs, double *correct)
{
    double loss = 0;
    *correct = 0;
    for (int s = 0; s < SAMPLES; s++, outputs += CLASSES) {
        double q[CLASSES], sum = 0, y[CLASSES] = {0};
        int best = 0, most = 0;
        y[labels[s]] += (double) shares[s];
        y[others[s]] += 1 - (double) shares[s];
        for (int i = 0; i < CLASSES; i++)
            sum += q[i] = k->softmax ? (double) outputs[i] : exp((double) outputs[i]);
        for (int i = 0; i < CLASSES; i++) {
            loss -= y[i] * log(q[i] / sum);
            best = y[i] > y[best] ? i : best;
            most = q[i] > q[most] ? i : most;
        }
        *correct += best == most;
    }
    return loss;
}

TEST(losses_take_shares_of_classes)
{
    const char *const backends[] = {"cpu", "ref"};
    for (size_t i = 0; i < 2 * sizeof kinds / sizeof *kinds; i++) {
        const kind *k = &kinds[i / 2];
        hpct_model *model = model_of(k, backends[i % 2], true);
        hpct_backend_batch_sums sums;
        assert_int_equal(hpct_model_mix_labels(model, SAMPLES, others, shares), HPCT_OK);
        double correct, loss = loss_of(model, &sums);
        double want = defined_loss(k, hpct_model_output(model), &correct);
        if (fabs(loss - want) > 1e-4)
            fail_msg("loss %d: %g, not %g", (int) k->loss, loss, want);
        assert_true(sums.correct == correct);
        hpct_model_free(model);
    }
}

/* By differences of the loss, on the weights of the dense layer. */
TEST(gradients_are_of_that_loss)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        hpct_model *model = model_of(&kinds[i], "ref", true);
        hpct_backend_batch_sums sums;
        size_t count;
        assert_int_equal(hpct_model_mix_labels(model, SAMPLES, others, shares), HPCT_OK);
        loss_of(model, &sums);
        assert_int_equal(hpct_model_backward(model, SAMPLES), HPCT_OK);
        float *weights = hpct_model_parameters(model, &count), slope[5 * CLASSES];
        memcpy(slope, hpct_model_gradients(model, &count), sizeof slope);
        for (int w = 0; w < 5 * CLASSES; w++) {
            float old = weights[w];
            weights[w] = old + 1e-2f;
            double after = loss_of(model, &sums);
            weights[w] = old - 1e-2f;
            double want = (after - loss_of(model, &sums)) / 2e-2 / SAMPLES;
            weights[w] = old;
            if (fabs((double) slope[w] - want) > 1e-3)
                fail_msg("loss %d: gradient %d is %g, not %g", (int) kinds[i].loss, w,
                         (double) slope[w], want);
        }
        hpct_model_free(model);
    }
}

/* Between training steps the model is evaluated. */
TEST(labels_count_again_without_others)
{
    hpct_model *mixed = model_of(&kinds[1], "cpu", true),
               *plain = model_of(&kinds[1], "cpu", false);
    hpct_backend_batch_sums sums;
    double want = loss_of(plain, &sums);
    assert_int_equal(hpct_model_mix_labels(mixed, SAMPLES, others, shares), HPCT_OK);
    assert_true(fabs(loss_of(mixed, &sums) - want) > 1e-3);
    assert_int_equal(hpct_model_mix_labels(mixed, SAMPLES, NULL, NULL), HPCT_OK);
    assert_true(loss_of(mixed, &sums) == want);
    hpct_model_free(mixed);
    hpct_model_free(plain);
}

TEST(a_model_built_for_labels_refuses_them)
{
    hpct_model *model = model_of(&kinds[0], "cpu", false);
    assert_int_equal(hpct_model_mix_labels(model, SAMPLES, others, shares), HPCT_ERR_INTERNAL);
    hpct_model_free(model);
}
