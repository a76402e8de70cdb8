/* Batches made by the GPU's kernel, here on the host, of a data set's bytes: each picture beside
 * hpct_data_resize. */
#include "tests/gpu_without/kernels/cuda_backend.h"
#include "tests/gpu_without/kernels/gather_host.h"
#include "tests/unit/unit.h"

#include "base/fp16.h"
#include "nn/backend/bf16.h"
#include "nn/backend/cuda/cuda.h"
#include "nn/graph/rng.h"

#include <math.h>

static uint64_t draws;

static int pick(int low, int high)
{
    return low + (int) (hpct_graph_uniform(11, 3, draws++) * (float) (high - low + 1));
}

static size_t picture_bytes(const hpct_backend_pictures *p)
{
    return (size_t) p->height * (size_t) p->width * (size_t) p->channels;
}

static size_t sample_floats(const hpct_backend_pictures *p)
{
    return (size_t) p->to_height * (size_t) p->to_width * (size_t) p->channels;
}

/* The caller frees pixels and labels. */
static hpct_backend_pictures random_pictures(size_t count)
{
    hpct_backend_pictures p = {.count = count,
                               .height = pick(1, 12),
                               .width = pick(1, 12),
                               .channels = pick(1, 4),
                               .factor = pick(0, 1) == 0 ? 1 / 255.0f : 1 / 127.5f,
                               .offset = (float) -pick(0, 1)};
    bool same = pick(0, 2) == 0;
    p.to_height = same ? p.height : pick(1, 30);
    p.to_width = same ? p.width : pick(1, 30);
    uint8_t *pixels = malloc(count * picture_bytes(&p));
    int32_t *labels = malloc(count * sizeof *labels);
    for (size_t i = 0; i < count * picture_bytes(&p); i++)
        pixels[i] = (uint8_t) pick(0, 255);
    for (size_t i = 0; i < count; i++)
        labels[i] = pick(0, 3);
    p.pixels = pixels;
    p.labels = labels;
    return p;
}

static void free_pictures(hpct_backend_pictures *p)
{
    free((void *) (uintptr_t) p->pixels);
    free((void *) (uintptr_t) p->labels);
}

static hpct_drawn random_draw(const hpct_backend_pictures *p)
{
    int most = pick(0, 2) == 0 ? 0 : pick(0, 1) == 0 ? 3 : 40; /* beyond the picture, too */
    return (hpct_drawn){.index = (uint32_t) pick(0, (int) p->count - 1),
                        .move_y = (int16_t) pick(-most, most),
                        .move_x = (int16_t) pick(-most, most),
                        .flip = (uint32_t) pick(0, 1)};
}

static float value_at(hpct_precision values, const float *memory, size_t i)
{
    uint16_t low;
    memcpy(&low, (const char *) memory + i * sizeof low, sizeof low);
    return values == HPCT_FP32   ? memory[i]
           : values == HPCT_BF16 ? hpct_backend_bf16_value(low)
                                 : hpct_fp16_value(low);
}

TEST(pictures_are_hpct_resizes)
{
    static const double tolerance[] = {
        [HPCT_FP32] = 2e-6, [HPCT_BF16] = 0x1p-8, [HPCT_FP16] = 0x1p-11};
    for (int i = 0; i < unit_cases(90); i++) {
        hpct_backend_pictures p = random_pictures((size_t) pick(1, 9));
        hpct_precision values = (hpct_precision) (i % HPCT_PRECISIONS);
        int n = pick(1, 6);
        size_t each = sample_floats(&p);
        float *got = malloc((size_t) n * each * sizeof *got),
              *expected = malloc(each * sizeof *got);
        hpct_drawn drawn[6];
        int32_t labels[6];
        memset(got, 0xff, (size_t) n * each * sizeof *got);
        for (int s = 0; s < n; s++)
            drawn[s] = random_draw(&p);
        hpct_backend_gather_call call = {&p, n, drawn, values, got, labels};
        assert_int_equal(hpct_cuda_gather_values(&call), HPCT_OK);
        for (int s = 0; s < n; s++) {
            assert_true(gather_host(&p, drawn[s], expected));
            assert_int_equal(labels[s], p.labels[drawn[s].index]);
            for (size_t k = 0; k < each; k++) {
                double value = (double) value_at(values, got, (size_t) s * each + k);
                if (!(fabs(value - (double) expected[k]) <= tolerance[values]))
                    fail_msg("%dx%d to %dx%d, %d channels, moved %d,%d flip %d: %g is not %g",
                             p.height, p.width, p.to_height, p.to_width, p.channels,
                             drawn[s].move_y, drawn[s].move_x, (int) drawn[s].flip, value,
                             (double) expected[k]);
            }
        }
        free(got);
        free(expected);
        free_pictures(&p);
    }
}
