/* agent/data: augmentation. What is drawn, transforms and mixing against their definitions; that
 * the operations have Keras' numbers is in tests/peers/augment.t. */
#include "agent/data/augment.h"
#include "agent/data/colour.h"
#include "agent/data/draws.h"
#include "agent/data/mix.h"
#include "agent/data/sampler.h"
#include "base/status.h"
#include "tests/unit/unit.h"

#include <math.h>

#define CASES 20000

static void assert_near(const char *what, double value, double want, double within)
{
    if (!(fabs(value - want) <= within))
        fail_msg("%s is %g, not %g", what, value, want);
}

/* ---- what is drawn ---- */

typedef struct moments {
    double low, high, mean, variance;
} moments;

/* Of a number of each of CASES samples. */
static moments moments_of(double (*number)(uint64_t bits, double how), double how)
{
    moments m = {INFINITY, -INFINITY, 0, 0};
    for (uint32_t i = 0; i < CASES; i++) {
        double x = number(hpct_data_sample_bits(7, 3, i), how);
        m.low = fmin(m.low, x);
        m.high = fmax(m.high, x);
        m.mean += x / CASES;
        m.variance += x * x / CASES;
    }
    m.variance -= m.mean * m.mean;
    return m;
}

static hpct_data_augmentation drawn(const hpct_dataset_options *options, uint64_t bits)
{
    hpct_data_augmentation out;
    hpct_data_augment_draw(options, bits, 11, 11, &out);
    return out;
}

/* In turns; the picture is a square. */
static double angle_of(uint64_t bits, double factor)
{
    hpct_data_augmentation a = drawn(&(hpct_dataset_options){.rotation = factor}, bits);
    return atan2(a.geometry.yx, a.geometry.xx) / (2 * M_PI);
}

static double zoom_of(uint64_t bits, double factor)
{
    hpct_data_augmentation a = drawn(&(hpct_dataset_options){.zoom = factor}, bits);
    assert_true(a.geometry.xx == a.geometry.yy);
    return a.geometry.xx;
}

/* Of a picture of 11 x 11. */
static double shift_right_of(uint64_t bits, double factor)
{
    return drawn(&(hpct_dataset_options){.translation = factor}, bits).geometry.x0 / -11;
}

static double shift_down_of(uint64_t bits, double factor)
{
    hpct_data_affine geometry =
        drawn(&(hpct_dataset_options){.translation = factor}, bits).geometry;
    assert_true(geometry.xx == 1 && geometry.yy == 1 && geometry.xy == 0 && geometry.yx == 0);
    assert_true(geometry.x0 != geometry.y0);
    return geometry.y0 / -11;
}

static double contrast_of(uint64_t bits, double factor)
{
    return drawn(&(hpct_dataset_options){.contrast = factor}, bits).contrast;
}

/* Uniform over the whole range of Keras' layers. */
TEST(factors_are_uniform)
{
    const struct {
        double (*number)(uint64_t, double);
        double factor, low, high;
    } cases[] = {{angle_of, 0.2, -0.2, 0.2}, {angle_of, 0.05, -0.05, 0.05},
                 {zoom_of, 0.3, 0.7, 1.3},   {shift_right_of, 0.2, -0.2, 0.2},
                 {shift_down_of, 1, -1, 1},  {contrast_of, 0.4, 0.6, 1.4},
                 {contrast_of, 1, 0, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double width = cases[i].high - cases[i].low;
        moments m = moments_of(cases[i].number, cases[i].factor);
        assert_true(m.low >= cases[i].low && m.high <= cases[i].high);
        assert_near("the lowest", m.low, cases[i].low, width / 1000);
        assert_near("the highest", m.high, cases[i].high, width / 1000);
        assert_near("the mean", m.mean, (cases[i].low + cases[i].high) / 2, width / 100);
        assert_near("the variance", m.variance, width * width / 12, width * width / 200);
    }
}

static double share_of(uint64_t bits, double alpha)
{
    return (double) hpct_data_mixing_draw(&(hpct_dataset_options){.mixup = alpha}, bits, 50, 11, 11)
        .share;
}

/* Beta(a, a) has mean 1/2 and variance 1 / (4 (2 a + 1)); where a is tiny it is 0 or 1. */
TEST(shares_are_of_the_beta_distribution)
{
    const double alphas[] = {1e-4, 0.2, 0.5, 1, 1.5, 8, 100};
    for (size_t i = 0; i < sizeof alphas / sizeof *alphas; i++) {
        moments m = moments_of(share_of, alphas[i]);
        double want = 1 / (4 * (2 * alphas[i] + 1));
        assert_true(m.low >= 0 && m.high <= 1);
        assert_near("the mean", m.mean, 0.5, 0.015);
        assert_near("the variance", m.variance, want, want / 25);
    }
}

static double other_of(uint64_t bits, double samples)
{
    return hpct_data_mixing_draw(&(hpct_dataset_options){.mixup = 1}, bits, (size_t) samples, 11,
                                 11)
        .other;
}

static double cut_of(uint64_t bits, double mixup)
{
    return hpct_data_mixing_draw(&(hpct_dataset_options){.mixup = mixup, .cutmix = 1}, bits, 50, 11,
                                 11)
        .cut;
}

TEST(others_are_of_the_whole_data_set)
{
    moments m = moments_of(other_of, 50);
    assert_true(m.low == 0 && m.high == 49);
    assert_near("the mean", m.mean, 24.5, 0.5);
    assert_near("CutMix alone", moments_of(cut_of, 0).mean, 1, 1e-9);
    assert_near("one of two", moments_of(cut_of, 0.2).mean, 0.5, 0.02);
}

/* One option's draws do not change with another one, and passes and samples differ. */
TEST(draws_are_independent)
{
    hpct_dataset_options alone = {.contrast = 0.5},
                         both = {.contrast = 0.5, .rotation = 0.1, .rand_augment = 3};
    uint64_t bits = hpct_data_sample_bits(1, 2, 3);
    double contrast = drawn(&alone, bits).contrast;
    assert_true(contrast == drawn(&both, bits).contrast);
    assert_true(contrast != drawn(&alone, hpct_data_sample_bits(1, 3, 3)).contrast);
    assert_true(contrast != drawn(&alone, hpct_data_sample_bits(1, 2, 4)).contrast);
    assert_true(contrast != drawn(&alone, hpct_data_sample_bits(2, 2, 3)).contrast);
}

TEST(operations_are_drawn_alike)
{
    int counts[HPCT_DATA_RAND_OPERATIONS] = {0};
    hpct_data_rand_draw draws[HPCT_DATA_RAND_AUGMENT_MOST];
    for (uint32_t i = 0; i < CASES / 10; i++) {
        hpct_data_rand_augment_draw(hpct_data_sample_bits(7, 0, i), 10, 0.5, draws);
        for (int k = 0; k < 10; k++)
            counts[draws[k].operation]++;
    }
    for (int i = 0; i < HPCT_DATA_RAND_OPERATIONS; i++)
        assert_within(counts[i], CASES / HPCT_DATA_RAND_OPERATIONS - 150,
                      CASES / HPCT_DATA_RAND_OPERATIONS + 150);
}

TEST(options_out_of_range_are_refused)
{
    const hpct_dataset_options bad[] = {
        {.rotation = 1.1},    {.zoom = -0.1},
        {.contrast = NAN},    {.rand_augment = 17},
        {.rand_augment = -1}, {.mixup = -1},
        {.translation = 1.5}, {.cutmix = 101},
        {.mixup = INFINITY},  {.rand_augment = 1, .rand_augment_factor = 1.5},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hpct_dataset *dataset = NULL;
        assert_int_equal(hpct_data_augment_check(&bad[i]), HPCT_ERR_USAGE);
        assert_int_equal(
            hpct_dataset_synthetic(&dataset, HPCT_SHAPE(4, 4, 3), 2, 4, HPCT_TRAIN, &bad[i]),
            HPCT_ERR_USAGE);
        assert_int_equal(hpct_dataset_open_as(&dataset, "/dev/null", HPCT_TRAIN, &bad[i]),
                         HPCT_ERR_USAGE);
        assert_null(dataset);
    }
    assert_int_equal(hpct_data_augment_check(&(hpct_dataset_options){.rotation = 1,
                                                                     .zoom = 1,
                                                                     .translation = 1,
                                                                     .contrast = 1,
                                                                     .rand_augment = 16,
                                                                     .rand_augment_factor = 1,
                                                                     .mixup = 100,
                                                                     .cutmix = 100}),
                     HPCT_OK);
}

/* ---- transforms ---- */

/* d c b a | a b c d | d c b a, and between the outer ones the outer one. */
static double reflected(double at, int length)
{
    double period = 2.0 * length;
    at = fmod(fmod(at + 0.5, period) + period, period);
    at = (at >= length ? period - at : at) - 0.5;
    return fmin(fmax(at, 0), length - 1);
}

static double value_at(const hpct_data_canvas *p, double x, double y, int c)
{
    x = reflected(x, p->width);
    y = reflected(y, p->height);
    int left = (int) x, top = (int) y;
    int right = left + 1 < p->width ? left + 1 : left, below = top + 1 < p->height ? top + 1 : top;
#define AT(y, x) ((double) p->values[((y) *p->width + (x)) * p->channels + c])
    double above = AT(top, left) + (AT(top, right) - AT(top, left)) * (x - left);
    double under = AT(below, left) + (AT(below, right) - AT(below, left)) * (x - left);
    return above + (under - above) * (y - top);
}

static void fill(const hpct_data_canvas *canvas, uint64_t seed)
{
    for (size_t i = 0; i < hpct_data_canvas_floats(canvas); i++)
        canvas->values[i] = (float) (hpct_data_sample_bits(seed, 0, (uint32_t) i) % 256);
}

static void check_transform(hpct_data_affine_sampler *sampler, const char *name,
                            const hpct_data_affine *how, int round)
{
    static float values[40 * 40 * 4], before[40 * 40 * 4], copy[40 * 40 * 4];
    hpct_data_canvas canvas = {values, 1 + round * 7 % 40, 1 + round * 13 % 40, 1 + round % 4};
    hpct_data_canvas old = canvas;
    old.values = copy;
    fill(&canvas, (uint64_t) round);
    memcpy(copy, values, sizeof copy);
    assert_int_equal(hpct_data_affine_apply(sampler, how, &canvas, before), HPCT_OK);
    for (int i = 0; i < (int) hpct_data_canvas_floats(&canvas); i++) {
        int c = i % canvas.channels, x = i / canvas.channels % canvas.width;
        int y = i / canvas.channels / canvas.width;
        double want = value_at(&old, how->xx * x + how->xy * y + how->x0,
                               how->yx * x + how->yy * y + how->y0, c);
        if (fabs((double) values[i] - want) > 0.02)
            fail_msg("%s: %dx%dx%d: (%d, %d) is %g, not %g", name, canvas.height, canvas.width,
                     canvas.channels, y, x, (double) values[i], want);
    }
}

TEST(pictures_are_transformed_as_defined)
{
    for (int v = 0; hpct_data_affine_variants[v] != NULL; v++) {
        hpct_data_affine_sampler *sampler;
        if (!hpct_data_affine_variants[v]->supported())
            continue;
        assert_int_equal(hpct_data_affine_sampler_new(&sampler), HPCT_OK);
        hpct_data_affine_sampler_use(sampler, hpct_data_affine_variants[v]);
        for (int round = 0; round < unit_cases(200); round++) {
            hpct_data_draws draws = hpct_data_draws_for((uint64_t) round, 1);
            hpct_data_affine how = {
                hpct_data_draws_uniform(&draws, -2, 2),   hpct_data_draws_uniform(&draws, -2, 2),
                hpct_data_draws_uniform(&draws, -99, 99), hpct_data_draws_uniform(&draws, -2, 2),
                hpct_data_draws_uniform(&draws, -2, 2),   hpct_data_draws_uniform(&draws, -99, 99)};
            check_transform(sampler, hpct_data_affine_variants[v]->name, &how, round);
        }
        hpct_data_affine_sampler_free(sampler);
    }
}

/* A transform of a transformed picture is their composition. */
TEST(transforms_are_composed_in_order)
{
    hpct_data_affine turn = hpct_data_affine_rotation(30, 9, 12),
                     zoom = hpct_data_affine_zoom(0.7, 9, 12);
    hpct_data_affine both = hpct_data_affine_compose(&turn, &zoom);
    double x = zoom.xx * 3 + zoom.xy * 4 + zoom.x0, y = zoom.yx * 3 + zoom.yy * 4 + zoom.y0;
    assert_near("x", both.xx * 3 + both.xy * 4 + both.x0, turn.xx * x + turn.xy * y + turn.x0,
                1e-9);
    assert_near("y", both.yx * 3 + both.yy * 4 + both.y0, turn.yx * x + turn.yy * y + turn.y0,
                1e-9);
    assert_near("the centre's x", both.xx * 5.5 + both.xy * 4 + both.x0, 5.5, 1e-9);
    assert_near("the centre's y", both.yx * 5.5 + both.yy * 4 + both.y0, 4, 1e-9);
}

/* Rotation, zoom and translation of a sample, one after the other. */
TEST(translation_comes_last)
{
    uint64_t bits = hpct_data_sample_bits(1, 2, 3);
    hpct_data_affine turn = drawn(&(hpct_dataset_options){.rotation = 0.2}, bits).geometry,
                     zoom = drawn(&(hpct_dataset_options){.zoom = 0.3}, bits).geometry,
                     shift = drawn(&(hpct_dataset_options){.translation = 0.4}, bits).geometry;
    hpct_data_affine all =
        drawn(&(hpct_dataset_options){.rotation = 0.2, .zoom = 0.3, .translation = 0.4}, bits)
            .geometry;
    hpct_data_affine want = hpct_data_affine_compose(&turn, &zoom);
    want = hpct_data_affine_compose(&want, &shift);
    assert_near("x0", all.x0, want.x0, 1e-12);
    assert_near("y0", all.y0, want.y0, 1e-12);
    assert_near("xy", all.xy, want.xy, 1e-12);
}

/* ---- mixing ---- */

TEST(pictures_are_mixed_by_share)
{
    static float values[6 * 5 * 2], other[6 * 5 * 2];
    hpct_data_canvas canvas = {values, 6, 5, 2}, second = {other, 6, 5, 2};
    fill(&canvas, 1);
    fill(&second, 2);
    float first = values[7];
    hpct_data_mixing_apply(&(hpct_data_mixing){.share = 0.25f}, &canvas, other);
    assert_near("a value", values[7], 0.25 * first + 0.75 * other[7], 1e-4);
}

/* The cells from x0 to below x1 are the other's; the share is the area that is left. */
TEST(rectangles_are_cut_by_area)
{
    for (uint32_t round = 0; round < 500; round++) {
        float values[8 * 10] = {0}, other[8 * 10];
        hpct_data_canvas canvas = {values, 8, 10, 1};
        hpct_data_mixing m = hpct_data_mixing_draw(&(hpct_dataset_options){.cutmix = 1},
                                                   hpct_data_sample_bits(5, 0, round), 50, 8, 10);
        double area = (double) (m.x1 - m.x0) * (double) (m.y1 - m.y0);
        for (size_t i = 0; i < 80; i++)
            other[i] = 1;
        hpct_data_mixing_apply(&m, &canvas, other);
        assert_true(m.x0 >= 0 && m.x1 <= 10.0001f && m.y0 >= 0 && m.y1 <= 8.0001f);
        assert_near("the share", (double) m.share, 1 - area / 80, 1e-5);
        for (int i = 0; i < 80; i++) {
            float x = (float) (i % 10), y = (float) (i / 10);
            assert_int_equal(values[i] == 1, x >= m.x0 && x < m.x1 && y >= m.y0 && y < m.y1);
        }
    }
}
