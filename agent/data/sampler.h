/* agent/data/sampler.h - which samples make up global batch t: a function of (seed, pass) alone, so
 * that every rank computes the same order and takes its own slice of each batch.
 * Knows nothing of pictures or communication. */
#ifndef HPCT_DATA_SAMPLER_H
#define HPCT_DATA_SAMPLER_H

#include <hpctrain/status.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hpct_sampler hpct_sampler;

typedef struct hpct_sampler_options {
    size_t samples;          /* in the data set, 1 to 2^32 - 1 */
    int global_batch;        /* samples in a step over all ranks */
    int64_t steps_per_epoch; /* 0: one pass an epoch, the last batch may be short. Else the samples
                                are one endless stream of passes, cut into full batches. */
    int rank, size;
    uint64_t seed;
} hpct_sampler_options;

/* One rank's part of one global batch. */
typedef struct hpct_batch {
    const uint32_t *indices; /* [count], valid until the next call */
    int count;               /* may be 0 for a short batch */
    int global_count;        /* over all ranks */
    int64_t position;        /* of the first index in the endless stream of passes */
} hpct_batch;

hpct_status hpct_sampler_new(hpct_sampler **out, const hpct_sampler_options *options);
void hpct_sampler_free(hpct_sampler *sampler);

int64_t hpct_sampler_steps_per_epoch(const hpct_sampler *sampler);

/* The counts of this rank that can occur: of a full batch and of a short one; 0 where there is
 * none. */
int hpct_sampler_full_count(const hpct_sampler *sampler);
int hpct_sampler_short_count(const hpct_sampler *sampler);

/* Samples over all ranks in step `step` of any epoch, from 0. From any thread. */
int hpct_sampler_global_count(const hpct_sampler *sampler, int64_t step);

/* Step `step` of epoch `epoch`, both from 0. Going on to a new pass shuffles. */
hpct_batch hpct_sampler_batch(hpct_sampler *sampler, int64_t epoch, int64_t step);

/* The slice of `total` that is rank's: [*begin, *begin + count); slices differ by 1 at most. */
int64_t hpct_slice(int64_t total, int rank, int size, int64_t *begin);

/* order[count]: the numbers 0 … count-1 as pass `pass` of a run with this seed has them. */
void hpct_shuffle(uint32_t *order, size_t count, uint64_t seed, uint64_t pass);

/* 64 random bits of a sample in a pass: what augmentation draws from. */
uint64_t hpct_sample_bits(uint64_t seed, uint64_t pass, uint32_t sample);

/* 64 bits that all change with any bit of x. */
uint64_t hpct_mix(uint64_t x);

#endif
