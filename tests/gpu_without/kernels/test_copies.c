/* Copies of many parameters in one launch, beside conversions by the compiler's own types. */
#include "tests/gpu_without/kernels/cuda_backend.h"
#include "tests/unit/unit.h"

#include "nn/backend/bf16.h"
#include "nn/backend/cuda/ops.h"

#include <stdlib.h>
#include <string.h>

#define NUM 400  /* more than two launches take */
#define APART 32 /* numbers between them, which begin at multiples of 64 bytes */
#define POISON 0xa5

static size_t count_of(int i)
{
    static const size_t sizes[] = {1, 3, 4, 5, 4095, 4096, 4097, 10, 12289, 64};
    return sizes[(size_t) i % (sizeof sizes / sizeof *sizes)];
}

static size_t room_of(int i)
{
    return (count_of(i) + 2 * APART - 1) / APART * APART;
}

static uint16_t expected(hpct_precision values, float x)
{
    uint16_t bits;
    _Float16 half = (_Float16) x;
    if (values == HPCT_BF16)
        return hpct_backend_bf16_of(x);
    memcpy(&bits, &half, sizeof bits);
    return bits;
}

TEST(copies_are_rounded)
{
    static hpct_backend_param_copy copies[NUM];
    size_t floats = 0, at = 0;
    for (int i = 0; i < NUM; i++)
        floats += room_of(i);
    float *from = aligned_alloc(64, floats * sizeof *from);
    uint16_t *to = aligned_alloc(64, floats * sizeof *to);
    assert_non_null(from);
    assert_non_null(to);
    for (size_t i = 0; i < floats; i++)
        from[i] = (float) ((double) (i * 2654435761u % 1000003) / 1000003.0 - 0.5);
    for (int i = 0; i < NUM; at += room_of(i++))
        copies[i] =
            (hpct_backend_param_copy){.from = from + at, .to = to + at, .count = count_of(i)};
    for (hpct_precision values = HPCT_BF16; values <= HPCT_FP16; values++) {
        memset(to, POISON, floats * sizeof *to);
        assert_int_equal(hpct_cuda_copy_params(values, copies, NUM), HPCT_OK);
        at = 0;
        for (int i = 0; i < NUM; at += room_of(i++)) {
            for (size_t k = 0; k < room_of(i); k++)
                assert_int_equal(to[at + k], k < count_of(i) ? expected(values, from[at + k])
                                                             : POISON << 8 | POISON);
        }
    }
    free(from);
    free(to);
}
