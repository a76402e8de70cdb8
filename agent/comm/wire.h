/* agent/comm/wire.h - conversion of fp32 to 16 bits and back for messages, and sums of received
 * values. Parallel loops; no messages here. */
#ifndef HPCT_AGENT_COMM_WIRE_H
#define HPCT_AGENT_COMM_WIRE_H

#include <hpctrain/strategy.h>
#include <stddef.h>
#include <stdint.h>

/* A 16-bit message of `count` values: a float scale for decoding (1 for bf16), then the values. In
 * units of floats, so that consecutive messages are aligned. */
static inline size_t hpct_comm_wire_floats(size_t count)
{
    return 1 + (count + 1) / 2;
}

/* wire is bf16 or fp16. Rounds to nearest even. fp16: the scale is a power of two that maps the
 * largest of src to 2^14 … 2^15; 1 if a value is infinite or NaN, which are kept. */
void hpct_comm_wire_encode(hpct_wire wire, size_t count, const float *src, float *message);
void hpct_comm_wire_decode(hpct_wire wire, size_t count, const float *message, float *dst);

/* dst += decoded message. */
void hpct_comm_wire_add(hpct_wire wire, size_t count, const float *message, float *dst);

/* dst[i] = terms[0][i] + terms[1][i] + …, in that order; dst may be one of the terms. */
void hpct_comm_wire_sum(size_t count, const float *const *terms, int num, float *dst);

#endif
