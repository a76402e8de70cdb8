/* agent/data: resizing, and the pipeline's batches. */
#include "agent/data/mix.h"
#include "agent/data/pipeline.h"
#include "agent/data/prepare.h"
#include "agent/data/resize.h"
#include "base/progress.h"
#include "tests/unit/agent/data/pictures.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <time.h>
#include <unistd.h>

static uint64_t state_of_random = 88172645463325252u;

static uint32_t draw(uint32_t n)
{
    state_of_random ^= state_of_random << 13;
    state_of_random ^= state_of_random >> 7;
    state_of_random ^= state_of_random << 17;
    return (uint32_t) (state_of_random >> 11) % n;
}

/* ---- resizing ---- */

/* The definition, one output float at a time, in double precision. */
static double resized_at(const hpct_data_picture *src, int height, int width, int y, int x, int c)
{
    double fy = fmax((y + 0.5) * src->height / height - 0.5, 0);
    double fx = fmax((x + 0.5) * src->width / width - 0.5, 0);
    int y0 = (int) fy, x0 = (int) fx;
    int y1 = y0 + 1 < src->height ? y0 + 1 : y0, x1 = x0 + 1 < src->width ? x0 + 1 : x0;
#define AT(y, x) ((double) src->pixels[((y) *src->width + (x)) * src->channels + c])
    double top = AT(y0, x0) + (AT(y0, x1) - AT(y0, x0)) * (fx - x0);
    double bottom = AT(y1, x0) + (AT(y1, x1) - AT(y1, x0)) * (fx - x0);
    return top + (bottom - top) * (fy - y0);
}

static double prepared_at(const hpct_data_picture *src, const hpct_data_preparation *how, int y,
                          int x, int c)
{
    int from_y = y + how->move_y, from_x = x + how->move_x;
    if (from_y < 0 || from_y >= how->height || from_x < 0 || from_x >= how->width)
        return how->offset;
    if (how->flip)
        from_x = how->width - 1 - from_x;
    return resized_at(src, how->height, how->width, from_y, from_x, c) * how->factor + how->offset;
}

TEST(pictures_are_resized_as_defined)
{
    static uint8_t bytes[50 * 50 * 4];
    static float out[60 * 60 * 4];
    for (int v = 0; hpct_data_resize_variants[v] != NULL; v++) {
        hpct_data_resizer *resizer;
        if (!hpct_data_resize_variants[v]->supported())
            continue;
        assert_int_equal(hpct_data_resizer_new(&resizer), HPCT_OK);
        hpct_data_resizer_use(resizer, hpct_data_resize_variants[v]);
        for (int round = 0; round < unit_cases(400); round++) {
            hpct_data_picture src = {.pixels = bytes,
                                     .height = 1 + (int) draw(50),
                                     .width = 1 + (int) draw(50),
                                     .channels = 1 + (int) draw(4)};
            bool same = draw(4) == 0;
            hpct_data_preparation how = {
                .height = same ? src.height : 1 + (int) draw(60),
                .width = same ? src.width : 1 + (int) draw(60),
                .factor = 1 / 127.5f,
                .offset = -1,
                .flip = draw(2) == 0,
                .move_y = (int) draw(9) - 4,
                .move_x = draw(2) == 0 ? 0 : (int) draw(9) - 4,
            };
            for (int i = 0; i < src.height * src.width * src.channels; i++)
                bytes[i] = (uint8_t) draw(256);
            assert_int_equal(hpct_data_resize(resizer, &src, &how, out), HPCT_OK);
            for (int i = 0; i < how.height * how.width * src.channels; i++) {
                int c = i % src.channels, x = i / src.channels % how.width;
                int y = i / src.channels / how.width;
                double want = prepared_at(&src, &how, y, x, c);
                if (fabs(out[i] - want) > 1e-4)
                    fail_msg("%s: %dx%d to %dx%d: (%d, %d) is %g, not %g",
                             hpct_data_resize_variants[v]->name, src.height, src.width, how.height,
                             how.width, y, x, out[i], want);
            }
        }
        hpct_data_resizer_free(resizer);
    }
}

/* ---- batches ---- */

static hpct_data_batch sampled(void *from, int64_t number)
{
    hpct_data_sampler *sampler = from;
    int64_t steps = hpct_data_sampler_steps_per_epoch(sampler);
    return hpct_data_sampler_batch(sampler, number / steps, number % steps);
}

typedef struct batches {
    hpct_data_sampler *sampler;
    hpct_data_pipeline *pipeline;
} batches;

static batches open_batches(const hpct_dataset *dataset, const hpct_data_sampler_options *sampling,
                            int64_t count, int threads, bool training)
{
    batches b;
    assert_int_equal(hpct_data_sampler_new(&b.sampler, sampling), HPCT_OK);
    hpct_data_pipeline_options options = {.way = hpct_data_input_from_host(dataset, training),
                                          .dataset = dataset,
                                          .batches = count,
                                          .largest = hpct_data_sampler_full_count(b.sampler),
                                          .training = training,
                                          .seed = sampling->seed,
                                          .threads = threads,
                                          .batch = sampled,
                                          .from = b.sampler};
    assert_int_equal(hpct_data_pipeline_open(&b.pipeline, &options), HPCT_OK);
    return b;
}

static void close_batches(batches *b)
{
    hpct_data_pipeline_close(b->pipeline);
    hpct_data_sampler_free(b->sampler);
}

#define SAMPLES 37
#define BATCH 10
#define EPOCHS 3
#define STEPS (4 * EPOCHS)

/* All batches of a run, one after the other, as `ranks` ranks get them with so many threads. */
static void collect(const hpct_dataset *dataset, int ranks, int threads, float *pixels,
                    int32_t *labels)
{
    size_t elements = dataset->elements;
    hpct_waits waits;
    uint32_t progress = hpct_read_progress(&waits);
    for (int rank = 0; rank < ranks; rank++) {
        hpct_data_sampler_options sampling = {
            .samples = SAMPLES, .global_batch = BATCH, .rank = rank, .size = ranks, .seed = 5};
        batches b = open_batches(dataset, &sampling, STEPS, threads, true);
        for (int64_t step = 0; step < STEPS; step++) {
            hpct_data_input input;
            int64_t begin, global = step % 4 == 3 ? SAMPLES % BATCH : BATCH;
            int64_t count = hpct_data_slice(global, rank, ranks, &begin);
            assert_int_equal(hpct_data_pipeline_next(b.pipeline, &input), HPCT_OK);
            assert_int_equal(input.count, count);
            assert_int_equal(input.global_count, global);
            assert_int_equal((uintptr_t) input.pixels % 64, 0);
            int64_t at = step / 4 * SAMPLES + step % 4 * BATCH + begin;
            memcpy(pixels + (size_t) at * elements, input.pixels,
                   (size_t) count * elements * sizeof *pixels);
            memcpy(labels + at, input.labels, (size_t) count * sizeof *labels);
            for (int64_t i = 0; i < count && input.others != NULL; i++) /* fixed by them, too */
                labels[at + i] += 10 * input.others[i] + 100 * (int32_t) (1e6f * input.shares[i]);
        }
        assert_true(hpct_data_pipeline_waited(b.pipeline) > 0);
        close_batches(&b);
    }
    if (!hpct_dataset_is_plain(dataset, true)) /* each sample is, for the watch */
        assert_true(hpct_read_progress(&waits) - progress >= EPOCHS * SAMPLES);
}

static hpct_dataset *synthetic(const hpct_dataset_options *options)
{
    hpct_dataset *dataset;
    assert_int_equal(
        hpct_dataset_synthetic(&dataset, HPCT_SHAPE(9, 8, 3), 5, SAMPLES, HPCT_TRAIN, options),
        HPCT_OK);
    return dataset;
}

/* The same floats whatever the number of ranks and threads; plain, resized or augmented. */
TEST(batches_depend_on_seed_and_step_alone)
{
    static const hpct_dataset_options options[] = {
        {0},
        {.scaling = HPCT_SCALE_SYMMETRIC, .flip = true, .crop = 3},
        {.height = 12, .width = 11, .flip = true},
        {.height = 12, .width = 11, .rotation = 0.2, .zoom = 0.5, .contrast = 0.5},
        {.translation = 0.3},
        {.rand_augment = 3, .rand_augment_factor = 0.7, .crop = 1},
        {.flip = true, .rotation = 0.1, .mixup = 0.3, .cutmix = 1},
    };
    size_t most = (size_t) EPOCHS * SAMPLES * 12 * 11 * 3;
    float *first = calloc(most, sizeof *first), *again = calloc(most, sizeof *again);
    static int32_t labels[EPOCHS * SAMPLES], other[EPOCHS * SAMPLES];
    for (size_t o = 0; o < sizeof options / sizeof options[0]; o++) {
        hpct_dataset *dataset = synthetic(&options[o]);
        size_t bytes = (size_t) EPOCHS * SAMPLES * dataset->elements * sizeof *first;
        collect(dataset, 1, 1, first, labels);
        for (int ranks = 1; ranks <= 4; ranks *= 2) {
            for (int threads = 1; threads <= 5; threads = threads * 2 + (threads == 2)) {
                memset(again, 0, bytes);
                collect(dataset, ranks, threads, again, other);
                assert_memory_equal(first, again, bytes);
                assert_memory_equal(labels, other, sizeof labels);
            }
        }
        hpct_dataset_free(dataset);
    }
    free(first);
    free(again);
}

/* About half of the pictures are mirrored, moves are spread, and passes differ. */
TEST(augmentation_is_as_asked)
{
    int flips = 0, moves[7] = {0}, alike = 0;
    const int cases = 7000;
    for (uint32_t i = 0; i < (uint32_t) cases; i++) {
        uint64_t a = hpct_data_sample_bits(3, 0, i), b = hpct_data_sample_bits(3, 1, i);
        flips += (int) (a & 1);
        moves[(a >> 32 & 0x7fffff) * 7 >> 23]++;
        alike += (a & 1) == (b & 1);
    }
    assert_true(abs(flips - cases / 2) < 200);
    assert_true(abs(alike - cases / 2) < 200);
    for (int i = 0; i < 7; i++)
        assert_true(abs(moves[i] - cases / 7) < 150);
}

/* Also where a batch goes from one pass to the next, on the second of two ranks. */
TEST(augmentation_follows_pass_and_sample)
{
    hpct_dataset *dataset = synthetic(&(hpct_dataset_options){.flip = true});
    uint32_t order[SAMPLES];
    hpct_data_sampler_options sampling = {.samples = SAMPLES,
                                          .global_batch = BATCH,
                                          .steps_per_epoch = 5,
                                          .rank = 1,
                                          .size = 2,
                                          .seed = 5};
    batches b = open_batches(dataset, &sampling, 15, 2, true);
    for (int at = BATCH / 2, step = 0; step < 15; step++, at += BATCH) {
        hpct_data_input input;
        assert_int_equal(hpct_data_pipeline_next(b.pipeline, &input), HPCT_OK);
        for (int i = 0; i < BATCH / 2; i++) {
            uint64_t pass = (uint64_t) (at + i) / SAMPLES;
            hpct_data_shuffle(order, SAMPLES, 5, pass);
            uint32_t index = order[(at + i) % SAMPLES];
            size_t column = (hpct_data_sample_bits(5, pass, index) & 1) != 0 ? 7 : 0;
            float want = (float) dataset->pixels[index * 216 + column * 3] / 255.0f;
            assert_true(fabsf(input.pixels[i * 216] - want) < 1e-6f);
        }
    }
    close_batches(&b);
    hpct_dataset_free(dataset);
}

/* A picture is the same in a pass whatever the batch that it is in. */
TEST(augmentation_does_not_follow_the_batch)
{
    static float pictures[2][SAMPLES][216];
    hpct_dataset *dataset = synthetic(
        &(hpct_dataset_options){.flip = true, .rotation = 0.1, .rand_augment = 2, .mixup = 0.5});
    for (int global = 5, which = 0; which < 2; global = 13, which++) {
        hpct_data_input input;
        uint32_t order[SAMPLES];
        hpct_data_sampler_options sampling = {
            .samples = SAMPLES, .global_batch = global, .size = 1, .seed = 5};
        batches b = open_batches(dataset, &sampling, (SAMPLES + global - 1) / global, 2, true);
        hpct_data_shuffle(order, SAMPLES, 5, 0);
        for (int at = 0; at < SAMPLES; at += input.count) {
            assert_int_equal(hpct_data_pipeline_next(b.pipeline, &input), HPCT_OK);
            for (int i = 0; i < input.count; i++)
                memcpy(pictures[which][order[at + i]], input.pixels + i * 216,
                       sizeof pictures[0][0]);
        }
        close_batches(&b);
    }
    assert_memory_equal(pictures[0], pictures[1], sizeof pictures[0]);
    hpct_dataset_free(dataset);
}

/* A mixed picture is made of two as they would be alone, before they are scaled. */
TEST(mixed_pictures_are_of_two)
{
    hpct_dataset_options options = {.scaling = HPCT_SCALE_SYMMETRIC, .flip = true, .crop = 2};
    hpct_dataset *alone = synthetic(&options);
    options.mixup = 0.7;
    hpct_dataset *mixed = synthetic(&options);
    hpct_data_preparer *one, *both;
    assert_int_equal(hpct_data_preparer_new(&one, alone), HPCT_OK);
    assert_int_equal(hpct_data_preparer_new(&both, mixed), HPCT_OK);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        float first[216], second[216], got[216];
        hpct_data_to_prepare what = {.index = i, .training = true, .seed = 4, .pass = 2};
        hpct_data_prepared a = {.pixels = first}, b = {.pixels = second}, c = {.pixels = got};
        uint32_t other =
            hpct_data_mixing_draw(&options, hpct_data_sample_bits(4, 2, i), SAMPLES, 9, 8).other;
        assert_int_equal(hpct_data_prepare(one, &what, &a), HPCT_OK);
        assert_int_equal(hpct_data_prepare(both, &what, &c), HPCT_OK);
        what.index = other;
        assert_int_equal(hpct_data_prepare(one, &what, &b), HPCT_OK);
        assert_true(a.share == 1 && a.other == a.label);
        assert_int_equal(c.label, a.label);
        assert_int_equal(c.other, b.label);
        for (int k = 0; k < 216; k++)
            assert_true(fabsf(got[k] - (c.share * first[k] + (1 - c.share) * second[k])) < 1e-5f);
    }
    hpct_data_preparer_free(one);
    hpct_data_preparer_free(both);
    hpct_dataset_free(alone);
    hpct_dataset_free(mixed);
}

/* Evaluation sees the pictures as they are. */
TEST(only_training_augments)
{
    hpct_dataset *dataset = synthetic(&(hpct_dataset_options){.flip = true, .crop = 2});
    assert_false(hpct_dataset_is_plain(dataset, true));
    assert_true(hpct_dataset_is_plain(dataset, false));
    hpct_dataset_free(dataset);
    hpct_dataset *deep = synthetic(&(hpct_dataset_options){.rotation = 0.5, .mixup = 1}),
                 *plain = synthetic(NULL);
    hpct_data_preparer *one, *both;
    float got[216], want[216];
    hpct_data_prepared a = {.pixels = want}, b = {.pixels = got};
    hpct_data_to_prepare what = {.index = 3};
    assert_false(hpct_dataset_is_plain(deep, true));
    assert_int_equal(hpct_data_preparer_new(&one, plain), HPCT_OK);
    assert_int_equal(hpct_data_preparer_new(&both, deep), HPCT_OK);
    assert_int_equal(hpct_data_prepare(one, &what, &a), HPCT_OK);
    assert_int_equal(hpct_data_prepare(both, &what, &b), HPCT_OK);
    assert_memory_equal(got, want, sizeof got);
    hpct_data_preparer_free(one);
    hpct_data_preparer_free(both);
    hpct_dataset_free(deep);
    hpct_dataset_free(plain);
}

TEST(cut_pictures_end_the_run)
{
    static uint8_t seed[4096];
    const char *folder = pictures_folder();
    size_t size = pictures_seed("picture/png", seed, sizeof seed);
    for (int i = 0; i < 5; i++) {
        char name[32];
        snprintf(name, sizeof name, "a/%d.png", i);
        pictures_write(folder, name, seed, i == 3 ? size - 20 : size, false);
    }
    hpct_dataset *dataset;
    hpct_data_input input;
    /* So little memory that nothing is decoded before it is needed. */
    hpct_dataset_options little = {.height = 4, .width = 4, .memory = 10};
    assert_int_equal(hpct_dataset_open_as(&dataset, folder, HPCT_TRAIN, &little), HPCT_OK);
    hpct_data_sampler_options sampling = {.samples = 5, .global_batch = 5, .size = 1};
    batches b = open_batches(dataset, &sampling, 4, 2, false);
    assert_int_equal(hpct_data_pipeline_next(b.pipeline, &input), HPCT_ERR_DATA);
    assert_non_null(strstr(hpct_last_error(), "a/3.png"));
    close_batches(&b);
    hpct_dataset_free(dataset);
}
