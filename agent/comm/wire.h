/* agent/comm/wire.h - numbers as they travel: fp32 to 16 bits and back, and sums of what came.
 * Loops over memory, in parallel where they are long; no messages here. */
#ifndef HPCT_COMM_WIRE_H
#define HPCT_COMM_WIRE_H

#include <hpctrain/strategy.h>
#include <stddef.h>
#include <stdint.h>

/* A message of `count` numbers in 16 bits: a float that decoding multiplies by (1 for bf16), then
 * the numbers. In floats, so that messages behind one another stay aligned. */
static inline size_t hpct_wire_floats(size_t count)
{
    return 1 + (count + 1) / 2;
}

/* wire is bf16 or fp16. Rounds to the nearest, ties to even. fp16: the factor is a power of two and
 * brings the largest of src to 2^14 … 2^15; it is 1 where one of them is infinite or no number,
 * which are then so in the message too. */
void hpct_wire_encode(hpct_wire wire, size_t count, const float *src, float *message);
void hpct_wire_decode(hpct_wire wire, size_t count, const float *message, float *dst);

/* dst += what the message says. */
void hpct_wire_add(hpct_wire wire, size_t count, const float *message, float *dst);

/* dst[i] = terms[0][i] + terms[1][i] + …, in that order; one of the terms may be dst itself. */
void hpct_wire_sum(size_t count, const float *const *terms, int num, float *dst);

#endif
