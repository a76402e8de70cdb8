/* agent/data/sampler.h - selects the samples of global batch t: a function of (seed, pass) only, so
 * that every rank computes the same order and takes its own slice of each batch.
 * Independent of pictures and communication. */
#ifndef HPCT_AGENT_DATA_SAMPLER_H
#define HPCT_AGENT_DATA_SAMPLER_H

#include <hpctrain/status.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hpct_data_sampler hpct_data_sampler;

typedef struct hpct_data_sampler_options {
    size_t samples;          /* of the data set, 1 to 2^32 - 1 */
    int global_batch;        /* samples of a step over all ranks */
    int64_t steps_per_epoch; /* 0: one pass per epoch, whose last batch may be short. Else the
                                samples are an endless stream of passes, cut into full batches. */
    int rank, size;
    uint64_t seed;
} hpct_data_sampler_options;

/* One rank's part of one global batch. */
typedef struct hpct_data_batch {
    const uint32_t *indices; /* [count], valid until the next call */
    int count;               /* may be 0 for a short batch */
    int global_count;        /* over all ranks */
    int64_t position;        /* position of the first index in the endless stream of passes */
} hpct_data_batch;

hpct_status hpct_data_sampler_new(hpct_data_sampler **out,
                                  const hpct_data_sampler_options *options);
void hpct_data_sampler_free(hpct_data_sampler *sampler);

int64_t hpct_data_sampler_steps_per_epoch(const hpct_data_sampler *sampler);

/* This rank's possible counts: in a full batch and in a short one; 0 if there is none. */
int hpct_data_sampler_full_count(const hpct_data_sampler *sampler);
int hpct_data_sampler_short_count(const hpct_data_sampler *sampler);

/* Samples over all ranks in step `step` (from 0) of any epoch. Thread-safe. */
int hpct_data_sampler_global_count(const hpct_data_sampler *sampler, int64_t step);

/* Step `step` of epoch `epoch`, both from 0. Shuffles when a new pass begins. */
hpct_data_batch hpct_data_sampler_batch(hpct_data_sampler *sampler, int64_t epoch, int64_t step);

/* Rank `rank`'s slice of `total`: [*begin, *begin + count); slices differ by at most 1. */
int64_t hpct_data_slice(int64_t total, int rank, int size, int64_t *begin);

/* order[count]: the permutation of 0 … count-1 in pass `pass` of a run with this seed. */
void hpct_data_shuffle(uint32_t *order, size_t count, uint64_t seed, uint64_t pass);

/* 64 random bits of a sample in a pass, for augmentation. */
uint64_t hpct_data_sample_bits(uint64_t seed, uint64_t pass, uint32_t sample);

/* A hash of x: each of its bits affects all 64 bits of the result. */
uint64_t hpct_data_mix(uint64_t x);

#endif
