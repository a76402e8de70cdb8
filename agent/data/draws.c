/* Random numbers of one sample: a hash of (sample, purpose, count). */
#include "agent/data/draws.h"

#include "agent/data/sampler.h"

#include <math.h>

#define GOLDEN 0x9e3779b97f4a7c15u

hpct_data_draws hpct_data_draws_for(uint64_t sample_bits, int purpose)
{
    return (hpct_data_draws){
        .key = hpct_data_mix(sample_bits ^ hpct_data_mix((uint64_t) purpose * GOLDEN))};
}

static uint64_t next(hpct_data_draws *draws)
{
    return hpct_data_mix(draws->key + ++draws->count * GOLDEN);
}

double hpct_data_draws_uniform(hpct_data_draws *draws, double low, double high)
{
    return low + (high - low) * ((double) (next(draws) >> 11) * 0x1p-53);
}

uint32_t hpct_data_draws_below(hpct_data_draws *draws, uint32_t count)
{
    return (uint32_t) ((next(draws) >> 32) * count >> 32);
}

/* In (0, 1). */
static double open_unit(hpct_data_draws *draws)
{
    return ((double) (next(draws) >> 12) + 0.5) * 0x1p-52;
}

static double normal(hpct_data_draws *draws)
{
    double radius = sqrt(-2 * log(open_unit(draws)));
    return radius * cos(2 * M_PI * open_unit(draws));
}

/* Logarithm of a number of the distribution Gamma(alpha, 1): Marsaglia and Tsang, A Simple Method
 * for Generating Gamma Variables, 2000. A small alpha gives numbers that only a logarithm holds. */
static double log_gamma_draw(hpct_data_draws *draws, double alpha)
{
    double d = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3, c = 1 / sqrt(9 * d), v, x;
    do {
        do {
            x = normal(draws);
            v = 1 + c * x;
        } while (v <= 0);
        v = v * v * v;
    } while (log(open_unit(draws)) >= x * x / 2 + d - d * v + d * log(v));
    return log(d * v) + (alpha < 1 ? log(open_unit(draws)) / alpha : 0);
}

double hpct_data_draws_beta(hpct_data_draws *draws, double alpha)
{
    double one = log_gamma_draw(draws, alpha), other = log_gamma_draw(draws, alpha);
    return 1 / (1 + exp(other - one));
}
