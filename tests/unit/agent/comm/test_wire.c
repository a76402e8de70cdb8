/* Numbers in 16 bits against the compiler's own half and against arithmetic in double; sums. */
#include "agent/comm/wire.h"
#include "tests/unit/unit.h"

#include <float.h>
#include <math.h>

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407U;
    return (uint32_t) (*state >> 32);
}

/* One number through a message whose factor is 1 for the others' sake: 2^14 goes with it. */
static float through(hpct_wire wire, float x)
{
    float in[2] = {x, 16384.0f}, message[2] = {0}, out[2];
    hpct_comm_wire_encode(wire, 2, in, message);
    assert_true(message[0] == 1.0f);
    hpct_comm_wire_decode(wire, 2, message, out);
    return out[0];
}

#ifdef __FLT16_MANT_DIG__
TEST(fp16_conversion_matches_the_compiler)
{
    uint64_t random = 1;
    for (int i = 0; i < unit_cases(200000); i++) {
        /* of all signs and fractions, from below the smallest half to just below 2^15 */
        uint32_t exponent = 127 - 27 + next_random(&random) % 42;
        float x = float_of((next_random(&random) & 0x807fffff) | exponent << 23);
        if (fabsf(x) >= 16384.0f)
            continue;
        float y = through(HPCT_WIRE_FP16, x);
        assert_true(y == (float) (_Float16) x);
        assert_int_equal(signbit(y), signbit(x));
    }
}
#endif

/* To the nearest multiple of the last of 8 bits, ties to even, which rint does. */
TEST(bf16_rounds_to_nearest)
{
    uint64_t random = 2;
    for (int i = 0; i < unit_cases(200000); i++) {
        float x = float_of(next_random(&random));
        if (!isnormal(x) || fabsf(x) > 1e38f)
            continue;
        int exponent;
        double fraction = frexp((double) x, &exponent);
        assert_true((double) through(HPCT_WIRE_BF16, x) ==
                    ldexp(rint(ldexp(fraction, 8)), exponent - 8));
    }
}

TEST(ties_go_to_even)
{
    assert_true(through(HPCT_WIRE_FP16, 2049.0f) == 2048.0f);
    assert_true(through(HPCT_WIRE_FP16, 2051.0f) == 2052.0f);
    assert_true(through(HPCT_WIRE_FP16, 0x1p-25f) == 0.0f);
    assert_true(through(HPCT_WIRE_FP16, 0x1.8p-24f) == 0x1p-23f);
    assert_true(through(HPCT_WIRE_BF16, 257.0f) == 256.0f);
    assert_true(through(HPCT_WIRE_BF16, 259.0f) == 260.0f);
}

TEST(nothing_overflows_in_fp16)
{
    const float sizes[] = {3e38f, 1e30f, 65520.0f, 1.0f, 1e-6f, 1e-30f, FLT_MIN, 1e-40f};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        float in[3] = {sizes[i], -sizes[i], sizes[i] / 3}, message[3] = {0}, out[3];
        hpct_comm_wire_encode(HPCT_WIRE_FP16, 3, in, message);
        hpct_comm_wire_decode(HPCT_WIRE_FP16, 3, message, out);
        for (int k = 0; k < 3; k++)
            assert_true(fabs((double) out[k] - in[k]) <= fabs((double) in[k]) * 0x1p-11 + 0x1p-149);
    }
}

TEST(zeros_and_nan)
{
    for (hpct_wire wire = HPCT_WIRE_BF16; wire <= HPCT_WIRE_FP16; wire++) {
        float in[5] = {0.0f, INFINITY, -INFINITY, NAN, 3.0f}, message[4] = {0}, out[5];
        hpct_comm_wire_encode(wire, 5, in, message);
        hpct_comm_wire_decode(wire, 5, message, out);
        assert_true(out[0] == 0 && out[1] == INFINITY && out[2] == -INFINITY && out[4] == 3.0f);
        assert_true(isnan(out[3]));
        float zeros[2] = {0, -0.0f};
        hpct_comm_wire_encode(wire, 2, zeros, message);
        hpct_comm_wire_decode(wire, 2, message, out);
        assert_true(out[0] == 0 && out[1] == 0 && signbit(out[1]));
    }
}

/* Longer than a block, and than what threads share; one of the terms is where the sum goes. */
TEST(sums)
{
    const size_t lengths[] = {0, 1, 17, 4097, 70001};
    uint64_t random = 3;
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        size_t n = lengths[l];
        float *memory = test_malloc((5 * n + 1) * sizeof *memory), *a = memory, *b = a + n,
              *c = b + n, *want = c + n,
              *message = test_calloc(hpct_comm_wire_floats(n), sizeof *a);
        for (size_t i = 0; i < 3 * n; i++)
            memory[i] = (float) (next_random(&random) % 2000) - 1000.0f;
        for (size_t i = 0; i < n; i++)
            want[i] = (a[i] + b[i]) + c[i];
        hpct_comm_wire_sum(n, (const float *[]){a, b, c}, 3, b);
        assert_memory_equal(b, want, n * sizeof *b);
        hpct_comm_wire_encode(HPCT_WIRE_FP16, n, a, message); /* whole numbers below 2048: exact */
        hpct_comm_wire_add(HPCT_WIRE_FP16, n, message, b);
        for (size_t i = 0; i < n; i++)
            assert_true(b[i] == want[i] + a[i]);
        test_free(memory);
        test_free(message);
    }
}
