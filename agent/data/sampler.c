/* The order of the samples: a Fisher-Yates shuffle with numbers that depend on (seed, pass,
 * position) only: SplitMix64's finaliser (Steele, Lea, Flood 2014) of a counter. */
#include "agent/data/sampler.h"

#include "base/status.h"

#include <stdbool.h>
#include <stdlib.h>

struct hpct_data_sampler {
    hpct_data_sampler_options options;
    int64_t steps;
    int full, tail;  /* this rank's share of a full batch and of a short one */
    uint32_t *order; /* [samples] of `pass` */
    uint64_t pass;
    uint32_t *indices; /* [full] */
};

uint64_t hpct_data_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

void hpct_data_shuffle(uint32_t *order, size_t count, uint64_t seed, uint64_t pass)
{
    uint64_t key = hpct_data_mix(seed + 0x9e3779b97f4a7c15u);
    key = hpct_data_mix(key ^ hpct_data_mix(pass + 0xd1b54a32d192ed03u));
    for (size_t i = 0; i < count; i++)
        order[i] = (uint32_t) i;
    for (size_t i = count; i > 1; i--) {
        /* A number below i: the high half of a 64 by 64 bit product (Lemire 2019). The bias is
         * below 2^-32. */
        uint64_t random = hpct_data_mix(key + i * 0x9e3779b97f4a7c15u);
        size_t j = (size_t) (((unsigned __int128) random * i) >> 64);
        uint32_t swap = order[i - 1];
        order[i - 1] = order[j];
        order[j] = swap;
    }
}

uint64_t hpct_data_sample_bits(uint64_t seed, uint64_t pass, uint32_t sample)
{
    uint64_t key = hpct_data_mix(seed + 0x632be59bd9b4e019u);
    key = hpct_data_mix(key ^ hpct_data_mix(pass + 0xd1b54a32d192ed03u));
    return hpct_data_mix(key + (sample + (uint64_t) 1) * 0x9e3779b97f4a7c15u);
}

int64_t hpct_data_slice(int64_t total, int rank, int size, int64_t *begin)
{
    int64_t each = total / size, more = total % size;
    *begin = each * rank + (rank < more ? rank : more);
    return each + (rank < more ? 1 : 0);
}

static void go_to_pass(hpct_data_sampler *sampler, uint64_t pass)
{
    hpct_data_shuffle(sampler->order, sampler->options.samples, sampler->options.seed, pass);
    sampler->pass = pass;
}

hpct_status hpct_data_sampler_new(hpct_data_sampler **out, const hpct_data_sampler_options *options)
{
    int64_t samples = (int64_t) options->samples, batch = options->global_batch, begin;
    hpct_data_sampler *sampler = calloc(1, sizeof *sampler);
    if (sampler == NULL)
        return hpct_fail_memory(sizeof *sampler);
    sampler->options = *options;
    sampler->full = (int) hpct_data_slice(batch, options->rank, options->size, &begin);
    sampler->steps = options->steps_per_epoch;
    if (sampler->steps == 0) {
        sampler->steps = (samples + batch - 1) / batch;
        sampler->tail =
            (int) hpct_data_slice(samples % batch, options->rank, options->size, &begin);
    }
    sampler->order = malloc(options->samples * sizeof *sampler->order);
    sampler->indices = malloc(((size_t) sampler->full + 1) * sizeof *sampler->indices);
    if (sampler->order == NULL || sampler->indices == NULL) {
        hpct_data_sampler_free(sampler);
        return hpct_fail_memory(options->samples * sizeof *sampler->order);
    }
    go_to_pass(sampler, 0);
    *out = sampler;
    return HPCT_OK;
}

void hpct_data_sampler_free(hpct_data_sampler *sampler)
{
    if (sampler == NULL)
        return;
    free(sampler->order);
    free(sampler->indices);
    free(sampler);
}

int64_t hpct_data_sampler_steps_per_epoch(const hpct_data_sampler *sampler)
{
    return sampler->steps;
}

int hpct_data_sampler_full_count(const hpct_data_sampler *sampler)
{
    bool passes = sampler->options.steps_per_epoch > 0;
    size_t batch = (size_t) sampler->options.global_batch;
    return passes || sampler->options.samples >= batch ? sampler->full : 0;
}

int hpct_data_sampler_short_count(const hpct_data_sampler *sampler)
{
    return sampler->tail;
}

int hpct_data_sampler_global_count(const hpct_data_sampler *sampler, int64_t step)
{
    const hpct_data_sampler_options *options = &sampler->options;
    int64_t left = (int64_t) options->samples - step * options->global_batch;
    bool is_short = options->steps_per_epoch == 0 && left < options->global_batch;
    return is_short ? (int) left : options->global_batch;
}

hpct_data_batch hpct_data_sampler_batch(hpct_data_sampler *sampler, int64_t epoch, int64_t step)
{
    const hpct_data_sampler_options *options = &sampler->options;
    int64_t samples = (int64_t) options->samples, full = options->global_batch, begin;
    int64_t position; /* position in the endless stream of passes */
    if (options->steps_per_epoch == 0)
        position = epoch * samples + step * full;
    else
        position = (epoch * options->steps_per_epoch + step) * full;
    int64_t global = hpct_data_sampler_global_count(sampler, step);
    int64_t count = hpct_data_slice(global, options->rank, options->size, &begin);
    position += begin;
    hpct_data_batch batch = {sampler->indices, (int) count, (int) global, position};
    for (int64_t i = 0; i < count; i++, position++) {
        uint64_t pass = (uint64_t) (position / samples);
        if (pass != sampler->pass)
            go_to_pass(sampler, pass);
        sampler->indices[i] = sampler->order[position % samples];
    }
    return batch;
}
