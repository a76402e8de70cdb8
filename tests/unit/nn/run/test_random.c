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
    hpct_run_build_options options = {
        .backend = backend, .batch_sizes = batches, .num_batch_sizes = 2};
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

static void move(hpct_model *model)
{
    hpct_random_affine both = {.height = {-0.2, 0.2}, .width = {-0.1, 0.3}};
    hpct_model_add_random_rotation(model, &both);
    hpct_model_add_random_zoom(model, &both);
    hpct_model_add_random_translation(model, &both);
}

static void tone(hpct_model *model)
{
    hpct_model_add_random_contrast(model, &(hpct_random_tone){.factor = {0.3, 0.5}});
    hpct_model_add_random_brightness(model, &(hpct_random_tone){.factor = {-0.1, 0.1}});
}

static void all(hpct_model *model)
{
    flip(model);
    crop(model);
    drop(model);
    drop(model);
}

static void (*const layers[])(hpct_model *) = {drop, flip, crop, all, move, tone};
#define LAYERS (int) (sizeof layers / sizeof *layers)

TEST(draws_do_not_depend_on_the_batch)
{
    for (int k = 0; k < 2 * LAYERS; k++) {
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

TEST(backends_draw_the_same)
{
    for (int k = 0; k < LAYERS; k++) {
        float *got[2];
        size_t out = 0;
        for (int b = 0; b < 2; b++) {
            hpct_model *model = model_of(HPCT_SHAPE(9, 11, 3), layers[k], backends[b]);
            out = outputs_of(model);
            got[b] = outputs(model, SAMPLES, 5, 1, 2, true);
            hpct_model_free(model);
        }
        bool rounds = layers[k] == move || layers[k] == tone;
        for (size_t i = 0; rounds && i < SAMPLES * out; i++)
            assert_true(fabsf(got[0][i] - got[1][i]) < 1e-3f);
        if (!rounds)
            assert_memory_equal(got[0], got[1], SAMPLES * out * sizeof(float));
        free(got[0]);
        free(got[1]);
    }
}

TEST(seed_step_and_sample_make_a_difference)
{
    static const struct {
        uint64_t seed;
        int64_t step, first;
    } others[] = {{8, 3, 0}, {7 + (UINT64_C(1) << 32), 3, 0}, {7, 4, 0}, {7, 3, SAMPLES}};
    for (int k = 0; k < LAYERS; k++) {
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
TEST(dropout_keeps_its_share_and_the_mean)
{
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

TEST(all_or_nothing_can_be_dropped)
{
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

TEST(flips_turn_about_half)
{
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
TEST(crops_come_from_everywhere)
{
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

/* ---- images that are moved ---- */

static const hpct_random_affine *how; /* of the layer */
static void (*layer)(hpct_model *, const hpct_random_affine *);

static void add_layer(hpct_model *model)
{
    layer(model, how);
}

/* One sample of a picture of 1 x 5 cells, 1 2 3 4 5. */
static void assert_moved(void (*add)(hpct_model *, const hpct_random_affine *),
                         const hpct_random_affine *settings, const float want[5])
{
    layer = add;
    how = settings;
    for (int b = 0; b < 2; b++) {
        hpct_model *model = model_of(HPCT_SHAPE(1, 5, 1), add_layer, backends[b]);
        float *y = outputs(model, SAMPLES, 1, 0, 0, true);
        for (int i = 0; i < 5 * SAMPLES; i++) {
            if (!(fabsf(y[i] - want[i % 5]) < 1e-5f))
                fail_msg("%s: cell %d is %g, not %g", backends[b], i % 5, (double) y[i],
                         (double) want[i % 5]);
        }
        free(y);
        hpct_model_free(model);
    }
}

/* By 0.4 of 5 cells to the right: 2; with 0.5, 2.5. */
TEST(cells_outside_are_filled)
{
    hpct_random_affine two = {.width = {0.4, 0.4}, .fill_value = -7}, more = two, left = two;
    more.width[0] = more.width[1] = 0.5;
    left.width[0] = left.width[1] = -0.4;
    assert_moved(hpct_model_add_random_translation, &two, (float[]){2, 1, 1, 2, 3});
    assert_moved(hpct_model_add_random_translation, &left, (float[]){3, 4, 5, 5, 4});
    assert_moved(hpct_model_add_random_translation, &more, (float[]){2.5f, 1.5f, 1, 1.5f, 2.5f});
    two.fill_mode = more.fill_mode = left.fill_mode = HPCT_FILL_CONSTANT;
    assert_moved(hpct_model_add_random_translation, &two, (float[]){-7, -7, 1, 2, 3});
    assert_moved(hpct_model_add_random_translation, &more, (float[]){-7, -7, -3, 1.5f, 2.5f});
    two.fill_mode = HPCT_FILL_NEAREST;
    assert_moved(hpct_model_add_random_translation, &two, (float[]){1, 1, 1, 2, 3});
    two.fill_mode = left.fill_mode = HPCT_FILL_WRAP;
    assert_moved(hpct_model_add_random_translation, &two, (float[]){4, 5, 1, 2, 3});
    assert_moved(hpct_model_add_random_translation, &left, (float[]){3, 4, 5, 1, 2});
}

/* Around the centre; a half turn is the picture backwards. */
TEST(pictures_are_zoomed_and_turned)
{
    hpct_random_affine half = {.height = {0.5, 0.5}}, in = {.width = {-0.5, -0.5}},
                       near = {.width = {-0.6, -0.6}, .nearest = true};
    assert_moved(hpct_model_add_random_rotation, &half, (float[]){5, 4, 3, 2, 1});
    assert_moved(hpct_model_add_random_zoom, &in, (float[]){2, 2.5f, 3, 3.5f, 4});
    assert_moved(hpct_model_add_random_zoom, &near, (float[]){2, 3, 3, 3, 4});
    in.square = true; /* with the height's, 0 */
    assert_moved(hpct_model_add_random_zoom, &in, (float[]){1, 2, 3, 4, 5});
}

/* ---- images of other tones ---- */

static void contrast_of_half(hpct_model *model)
{
    hpct_model_add_random_contrast(
        model, &(hpct_random_tone){.factor = {0.5, 0.8}, .value_range = {-100, 4.5}});
}

static void brighter(hpct_model *model)
{
    hpct_model_add_random_brightness(
        model, &(hpct_random_tone){.factor = {0.5, 0.5}, .value_range = {-1, 4}});
}

/* Uniformly from 0.5 to 1.8 times the distance from the mean of the picture, 3, at most 4.5; half
 * of the range, 2.5, is added, at most to 4. */
TEST(tones_are_of_the_range)
{
    for (int b = 0; b < 2; b++) {
        hpct_model *model = model_of(HPCT_SHAPE(1, 5, 1), contrast_of_half, backends[b]);
        float least = 9, most = 0;
        for (int step = 0; step < 100; step++) {
            float *y = outputs(model, SAMPLES, 1, step, 0, true);
            for (int s = 0; s < SAMPLES; s++) {
                const float *x = y + 5 * s, factor = x[2] - x[1];
                assert_true(fabsf(x[0] - (3 - 2 * factor)) < 1e-5f && x[2] == 3);
                assert_true(fabsf(x[4] - fminf(3 + 2 * factor, 4.5f)) < 1e-5f);
                least = fminf(least, factor);
                most = fmaxf(most, factor);
            }
            free(y);
        }
        assert_true(least >= 0.5f && least < 0.52f && most > 1.78f && most <= 1.8f);
        hpct_model_free(model);
        model = model_of(HPCT_SHAPE(1, 5, 1), brighter, backends[b]);
        float *y = outputs(model, SAMPLES, 1, 0, 0, true);
        for (int i = 0; i < 5 * SAMPLES; i++)
            assert_true(y[i] == (i % 5 == 0 ? 3.5f : 4));
        free(y);
        hpct_model_free(model);
    }
}

TEST(inference_draws_nothing)
{
    static void (*const idle[])(hpct_model *) = {drop, flip, move, tone};
    for (int k = 0; k < 8; k++) {
        hpct_model *model = model_of(HPCT_SHAPE(5, 7, 2), idle[k / 2], backends[k % 2]);
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
TEST(backward_drops_what_forward_dropped)
{
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
        hpct_run_build_options options = {
            .backend = backends[b], .batch_sizes = &one, .num_batch_sizes = 1};
        assert_int_equal(hpct_model_build(model, &options), HPCT_OK);
        hpct_backend_batch_sums sums;
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
