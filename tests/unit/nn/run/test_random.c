/* Random layers: what they draw is a function of seed, step and sample, not of the batch that a
 * sample is computed in; how often; and that they do nothing in inference. */
#include "nn/plan/run.h"
#include "nn/run/step.h"
#include "tests/unit/unit.h"

#include <math.h>

#define SAMPLES 12

static const hpct_optimizer sgd = {.kind = HPCT_SGD, .learning_rate = 0.1};
static const char *const backends[] = {"cpu", "ref"};
static const int batches[] = {SAMPLES, SAMPLES / 4};

/* The layer under test, and outputs in one row. */
static hpct_model *model_of(hpct_shape input, void (*add)(hpct_model *), const char *backend)
{
    hpct_model *model = hpct_model_new("m", input);
    add(model);
    hpct_model_add_flatten(model);
    assert_int_equal(
        hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, &sgd), HPCT_OK);
    assert_int_equal(hpct_model_initialize(model, 1), HPCT_OK);
    hpct_build_options options = {.backend = backend, .batch_sizes = batches, .num_batch_sizes = 2};
    assert_int_equal(hpct_model_build(model, &options), HPCT_OK);
    return model;
}

static size_t outputs_of(const hpct_model *model)
{
    return (size_t) hpct_model_output_shape(model).size[0];
}

/* Every cell has a number of its own: 1, 2, 3 and so on, in each sample. */
static size_t number_cells(hpct_model *model, int n)
{
    hpct_shape shape = hpct_model_input_shape(model);
    size_t size = 1;
    for (int i = 0; i < shape.rank; i++)
        size *= (size_t) shape.size[i];
    for (size_t i = 0; i < (size_t) n * size; i++)
        hpct_model_input(model)[i] = (float) (i % size + 1);
    return size;
}

/* A copy of the outputs for n samples that begin at `first` in the global batch. */
static float *outputs(hpct_model *model, int n, uint64_t seed, int64_t step, int64_t first,
                      bool training)
{
    number_cells(model, n);
    hpct_model_set_position(model, seed, step, first);
    assert_int_equal(hpct_model_forward(model, n, training), HPCT_OK);
    size_t bytes = (size_t) n * outputs_of(model) * sizeof(float);
    float *copy = malloc(bytes);
    return memcpy(copy, hpct_model_output(model), bytes);
}

static void drop(hpct_model *model)
{
    hpct_model_add_dropout(model, 0.3);
}

static void flip(hpct_model *model)
{
    hpct_model_add_random_flip(model, HPCT_FLIP_HORIZONTAL);
}

static void crop(hpct_model *model)
{
    hpct_model_add_random_crop(model, 4, 5);
}

static void all(hpct_model *model)
{
    flip(model);
    crop(model);
    drop(model);
    drop(model);
}

static void (*const layers[])(hpct_model *) = {drop, flip, crop, all};

static void draws_do_not_depend_on_the_batch(void **state)
{
    (void) state;
    for (int k = 0; k < 8; k++) {
        hpct_model *model = model_of(HPCT_SHAPE(9, 11, 3), layers[k / 2], backends[k % 2]);
        size_t out = outputs_of(model), part = out * SAMPLES / 4;
        float *whole = outputs(model, SAMPLES, 7, 3, 100, true);
        for (int i = 0; i < 4; i++) {
            float *quarter = outputs(model, SAMPLES / 4, 7, 3, 100 + i * SAMPLES / 4, true);
            assert_memory_equal(quarter, whole + (size_t) i * part, part * sizeof(float));
            free(quarter);
        }
        free(whole);
        hpct_model_free(model);
    }
}

static void backends_draw_the_same(void **state)
{
    (void) state;
    for (int k = 0; k < 4; k++) {
        float *got[2];
        size_t out = 0;
        for (int b = 0; b < 2; b++) {
            hpct_model *model = model_of(HPCT_SHAPE(9, 11, 3), layers[k], backends[b]);
            out = outputs_of(model);
            got[b] = outputs(model, SAMPLES, 5, 1, 2, true);
            hpct_model_free(model);
        }
        assert_memory_equal(got[0], got[1], SAMPLES * out * sizeof(float));
        free(got[0]);
        free(got[1]);
    }
}

static void seed_step_and_sample_make_a_difference(void **state)
{
    (void) state;
    static const struct {
        uint64_t seed;
        int64_t step, first;
    } others[] = {{8, 3, 0}, {7 + (UINT64_C(1) << 32), 3, 0}, {7, 4, 0}, {7, 3, SAMPLES}};
    for (int k = 0; k < 3; k++) {
        hpct_model *model = model_of(HPCT_SHAPE(9, 11, 3), layers[k], "cpu");
        size_t bytes = SAMPLES * outputs_of(model) * sizeof(float);
        float *one = outputs(model, SAMPLES, 7, 3, 0, true);
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
            float *other =
                outputs(model, SAMPLES, others[i].seed, others[i].step, others[i].first, true);
            assert_memory_not_equal(one, other, bytes);
            free(other);
        }
        free(one);
        hpct_model_free(model);
    }
}

static void drop_twice(hpct_model *model)
{
    drop(model);
    drop(model);
}

/* Also of two layers in a row, which draw apart. Shares that the binomial distribution allows
 * in 99.99 % of all runs; this run is always the same.
 */
static void dropout_keeps_its_share_and_the_mean(void **state)
{
    (void) state;
    hpct_model *model = model_of(HPCT_SHAPE(40, 50, 3), drop, "cpu"),
               *twice = model_of(HPCT_SHAPE(40, 50, 3), drop_twice, "cpu");
    size_t out = outputs_of(model), count = SAMPLES * out, kept = 0, kept_twice = 0;
    float *y = outputs(model, SAMPLES, 1, 0, 0, true), *z = outputs(twice, SAMPLES, 1, 0, 0, true);
    for (size_t i = 0; i < count; i++) {
        float x = (float) (i % out + 1);
        assert_true(y[i] == 0 || fabsf(y[i] * 0.7f / x - 1) < 1e-6f);
        kept += y[i] != 0;
        kept_twice += z[i] != 0;
    }
    double n = (double) count;
    assert_true(fabs((double) kept / n - 0.7) < 4 * sqrt(0.7 * 0.3 / n));
    assert_true(fabs((double) kept_twice / n - 0.49) < 4 * sqrt(0.49 * 0.51 / n));
    for (size_t lag = 1; lag <= 64; lag *= 2) { /* neighbours do not share their fate */
        size_t both = 0;
        for (size_t i = 0; i + lag < count; i++)
            both += y[i] != 0 && y[i + lag] != 0;
        assert_true(fabs((double) both / n - 0.49) < 6 * sqrt(0.49 * 0.51 / n));
    }
    free(y);
    free(z);
    hpct_model_free(model);
    hpct_model_free(twice);
}

static void drop_all(hpct_model *model)
{
    hpct_model_add_dropout(model, 1);
}

static void drop_none(hpct_model *model)
{
    hpct_model_add_dropout(model, 0);
}

static void all_or_nothing_can_be_dropped(void **state)
{
    (void) state;
    for (int b = 0; b < 2; b++) {
        hpct_model *model = model_of(HPCT_SHAPE(70), drop_all, backends[b]),
                   *none = model_of(HPCT_SHAPE(70), drop_none, backends[b]);
        float *y = outputs(model, SAMPLES, 1, 0, 0, true),
              *z = outputs(none, SAMPLES, 1, 0, 0, true);
        for (int i = 0; i < 70; i++)
            assert_true(y[i] == 0 && z[i] == (float) (i + 1));
        free(y);
        free(z);
        hpct_model_free(model);
        hpct_model_free(none);
    }
}

static void turn_left(hpct_model *model)
{
    hpct_model_add_random_flip(model, HPCT_FLIP_HORIZONTAL);
}
static void turn_down(hpct_model *model)
{
    hpct_model_add_random_flip(model, HPCT_FLIP_VERTICAL);
}
static void turn_both(hpct_model *model)
{
    hpct_model_add_random_flip(model, HPCT_FLIP_BOTH);
}

static void flips_turn_about_half(void **state)
{
    (void) state;
    static const struct {
        void (*add)(hpct_model *);
        float corner; /* of a turned picture of 2 x 3 cells, numbered from 1 */
        float second;
    } ways[] = {{turn_left, 3, 2}, {turn_down, 4, 5}, {turn_both, 6, 5}};
    for (int k = 0; k < 6; k++) {
        hpct_model *model = model_of(HPCT_SHAPE(2, 3, 1), ways[k / 2].add, backends[k % 2]);
        int turned = 0;
        for (int step = 0; step < 100; step++) {
            float *y = outputs(model, SAMPLES, 1, step, 0, true);
            for (int s = 0; s < SAMPLES; s++) {
                const float *picture = y + s * 6;
                bool turn = picture[0] != 1;
                assert_true(picture[0] == (turn ? ways[k / 2].corner : 1));
                assert_true(picture[1] == (turn ? ways[k / 2].second : 2));
                assert_true(picture[0] + picture[5] == 7);
                turned += turn;
            }
            free(y);
        }
        assert_true(abs(turned - 600) < 4 * 18); /* sqrt(1200) / 2 is 17.3 */
        hpct_model_free(model);
    }
}

/* Every place is taken, each about as often. */
static void crops_come_from_everywhere(void **state)
{
    (void) state;
    hpct_model *model = model_of(HPCT_SHAPE(6, 8, 1), crop, "cpu"); /* 3 x 4 places of 4 x 5 */
    int places[48] = {0};
    for (int step = 0; step < 100; step++) {
        float *y = outputs(model, SAMPLES, 1, step, 0, true);
        for (int s = 0; s < SAMPLES; s++) {
            const float *part = y + s * 20;
            int top = ((int) part[0] - 1) / 8, left = ((int) part[0] - 1) % 8;
            assert_true(top <= 2 && left <= 3);
            for (int i = 0; i < 20; i++)
                assert_true(part[i] == (float) ((top + i / 5) * 8 + left + i % 5 + 1));
            places[top * 8 + left]++;
        }
        free(y);
    }
    for (int place = 0; place < 12; place++)
        assert_true(abs(places[place / 4 * 8 + place % 4] - 100) < 40);
    hpct_model_free(model);
}

static void inference_draws_nothing(void **state)
{
    (void) state;
    for (int k = 0; k < 4; k++) { /* dropout and flip */
        hpct_model *model = model_of(HPCT_SHAPE(5, 7, 2), layers[k / 2], backends[k % 2]);
        float *y = outputs(model, SAMPLES, 1, 0, 0, false);
        assert_memory_equal(y, hpct_model_input(model),
                            SAMPLES * outputs_of(model) * sizeof(float));
        free(y);
        hpct_model_free(model);
    }
    for (int b = 0; b < 2; b++) { /* 8 x 10 has a crop's proportions: all of it, at half the size */
        hpct_model *model = model_of(HPCT_SHAPE(8, 10, 1), crop, backends[b]);
        float *y = outputs(model, SAMPLES, 1, 0, 0, false);
        for (int i = 0; i < 20; i++) {
            int first = i / 5 * 20 + i % 5 * 2 + 1; /* of four neighbours */
            assert_true(y[i] == (float) first + 5.5f);
        }
        free(y);
        hpct_model_free(model);
        model = model_of(HPCT_SHAPE(6, 5, 1), crop, backends[b]); /* the middle: rows 1 to 4 */
        y = outputs(model, SAMPLES, 1, 0, 0, true); /* also in training: it is not wider */
        for (int i = 0; i < 20; i++)
            assert_true(y[i] == (float) (i + 6));
        free(y);
        hpct_model_free(model);
    }
}

/* A dropped unit gets no gradient; a forward that is not for training is followed by none. */
static void backward_drops_what_forward_dropped(void **state)
{
    (void) state;
    enum { UNITS = 150 };
    for (int b = 0; b < 2; b++) {
        hpct_model *model = hpct_model_new("m", HPCT_SHAPE(3));
        hpct_model_add_dense(model, &(hpct_dense){.units = UNITS});
        drop(model);
        assert_int_equal(
            hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, &sgd),
            HPCT_OK);
        assert_int_equal(hpct_model_initialize(model, 1), HPCT_OK);
        int one = 1;
        hpct_build_options options = {
            .backend = backends[b], .batch_sizes = &one, .num_batch_sizes = 1};
        assert_int_equal(hpct_model_build(model, &options), HPCT_OK);
        hpct_batch_sums sums;
        free(outputs(model, 1, 3, 9, 4, false));
        assert_int_equal(hpct_model_loss(model, 1, 1, &sums), HPCT_ERR_USAGE);
        float *y = outputs(model, 1, 3, 9, 4, true);
        assert_int_equal(hpct_model_loss(model, 1, 1, &sums), HPCT_OK);
        assert_int_equal(hpct_model_backward(model, 1), HPCT_OK);
        const float *bias = model->run->nodes[0].grad[HPCT_OP_BIAS];
        int dropped = 0;
        for (int i = 0; i < UNITS; i++) {
            assert_true((y[i] == 0) == (bias[i] == 0));
            dropped += y[i] == 0;
        }
        assert_true(dropped > UNITS / 10);
        free(y);
        hpct_model_free(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_do_not_depend_on_the_batch),
        cmocka_unit_test(backends_draw_the_same),
        cmocka_unit_test(seed_step_and_sample_make_a_difference),
        cmocka_unit_test(dropout_keeps_its_share_and_the_mean),
        cmocka_unit_test(all_or_nothing_can_be_dropped),
        cmocka_unit_test(flips_turn_about_half),
        cmocka_unit_test(crops_come_from_everywhere),
        cmocka_unit_test(inference_draws_nothing),
        cmocka_unit_test(backward_drops_what_forward_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
