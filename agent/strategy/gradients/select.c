/* Radix selection: finds the k-th largest magnitude from its highest bits down: 11, 10 and 10
 * bits. */
#include "agent/strategy/gradients/select.h"

#include <string.h>

static uint32_t magnitude(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits & UINT32_C(0x7fffffff);
}

/* The bin, from the top, that contains the *k-th largest; *k becomes its rank within the bin. */
static uint32_t find_bin(const uint32_t *histogram, size_t *k)
{
    uint32_t bin = HPCT_GRAD_SELECT_BINS - 1;
    while (bin > 0 && histogram[bin] < *k) {
        *k -= histogram[bin];
        bin--;
    }
    return bin;
}

/* The next `bits` bits of the k-th largest, among values whose higher bits are `prefix`. */
static uint32_t refine(size_t count, const float *values, uint32_t prefix, int shift, int bits,
                       size_t *k, uint32_t *histogram)
{
    uint32_t mask = (UINT32_C(1) << bits) - 1;
    memset(histogram, 0, HPCT_GRAD_SELECT_BINS * sizeof *histogram);
    for (size_t i = 0; i < count; i++) {
        uint32_t m = magnitude(values[i]);
        if (m >> (shift + bits) == prefix)
            histogram[m >> shift & mask]++;
    }
    return prefix << bits | find_bin(histogram, k);
}

void hpct_grad_select_largest(size_t count, size_t k, const float *gradient, float *residue,
                              size_t first, hpct_grad_pair *pairs, uint32_t *histogram)
{
    size_t equal = k, num = 0;
    memset(histogram, 0, HPCT_GRAD_SELECT_BINS * sizeof *histogram);
    for (size_t i = 0; i < count; i++) {
        residue[i] += gradient[i];
        histogram[magnitude(residue[i]) >> 20]++;
    }
    uint32_t kth = find_bin(histogram, &equal);
    kth = refine(count, residue, kth, 10, 10, &equal, histogram);
    kth = refine(count, residue, kth, 0, 10, &equal, histogram);
    for (size_t i = 0; i < count && num < k; i++) {
        uint32_t m = magnitude(residue[i]);
        if (m < kth || (m == kth && equal == 0))
            continue;
        equal -= m == kth; /* number of values equal to the k-th that are selected */
        pairs[num++] = (hpct_grad_pair){(uint32_t) (first + i), residue[i]};
        residue[i] = 0;
    }
}
