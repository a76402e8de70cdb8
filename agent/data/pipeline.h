/* agent/data/pipeline.h - the batches of a run, in order, ready for the model: decoded, resized,
 * scaled and augmented by threads that prefetch. A plain gather of bytes in memory is done by the
 * caller's own thread, which costs less than waking another.
 * Uses data sets and samplers; independent of models and ranks, except for the type of drawn
 * samples. */
#ifndef HPCT_AGENT_DATA_PIPELINE_H
#define HPCT_AGENT_DATA_PIPELINE_H

#include "agent/data/dataset.h"
#include "agent/data/sampler.h"
#include "base/drawn.h"

typedef struct hpct_data_pipeline hpct_data_pipeline;

/* Allocator of batches, 64-byte aligned, for callers that copy them to a device. All NULL:
 * malloc. */
typedef struct hpct_data_pipeline_memory {
    void *(*take)(const void *owner, size_t bytes);
    void (*give_back)(const void *owner, void *memory);
    const void *owner;
} hpct_data_pipeline_memory;

/* How pictures reach the model. */
typedef enum hpct_data_input_way {
    HPCT_DATA_INPUT_WORKERS, /* worker threads prefetch into buffers */
    HPCT_DATA_INPUT_DIRECT,  /* the caller's thread gathers unencoded bytes from memory */
    HPCT_DATA_INPUT_DEVICE,  /* the data set is on a device: batches are sample numbers and their
                           augmentation */
} hpct_data_input_way;

/* For a data set in host memory: DIRECT if nothing is decoded, resized or augmented. */
hpct_data_input_way hpct_data_input_from_host(const hpct_dataset *dataset, bool training);

typedef struct hpct_data_pipeline_options {
    hpct_data_input_way way;
    const hpct_dataset *dataset;
    int64_t batches; /* number of batches */
    int largest;     /* samples of the largest batch */
    bool training;   /* augment, if the data set's options say so */
    uint64_t seed;   /* seed of augmentation, a function of (seed, pass, sample) only */
    int threads;     /* workers, unless the data set's options set them; at least 1 */
    /* The indices of batch `number`; called for 0, 1, 2 … in the threads that call open and
     * next. */
    hpct_data_batch (*batch)(void *from, int64_t number);
    void *from;
    bool on_demand; /* `batch` is called only by next, for the batch it returns: no prefetching */
    hpct_data_pipeline_memory memory;
    float *pixels;     /* DIRECT: destination, [largest][sample] … */
    int32_t *labels;   /* … and [largest]; both NULL: own memory, as with WORKERS */
    hpct_drawn *drawn; /* DEVICE: [largest], owned by the caller */
} hpct_data_pipeline_options;

/* A batch; valid until the next call of hpct_data_pipeline_next. */
typedef struct hpct_data_input {
    float *pixels;           /* [count][sample], 64-byte aligned; NULL with DEVICE */
    int32_t *labels;         /* [count]; NULL with DEVICE */
    const uint32_t *indices; /* [count] of the samples; NULL with DEVICE, which has `drawn` */
    /* [count] each, of mixed samples (agent/data/mix.h), else NULL: the other label of a sample,
     * and the share of the own one. */
    int32_t *others;
    float *shares;
    int count, global_count;
} hpct_data_input;

/* Bytes that a pipeline for this data set allocates for batches of `largest`, besides the options'
 * pixels and labels; without its threads' buffers for one picture. */
size_t hpct_data_pipeline_bytes(const hpct_dataset *dataset, int largest, bool training);

/* Starts preparing the first batches at once. */
hpct_status hpct_data_pipeline_open(hpct_data_pipeline **out,
                                    const hpct_data_pipeline_options *options);

/* Returns the next batch; waits for it, and prepares samples meanwhile. HPCT_ERR_DATA naming a
 * picture that cannot be decoded. Allocates only for a picture larger than all before. */
hpct_status hpct_data_pipeline_next(hpct_data_pipeline *pipeline, hpct_data_input *out);

/* Seconds spent in hpct_data_pipeline_next so far: the step's wait for input. */
double hpct_data_pipeline_waited(const hpct_data_pipeline *pipeline);

void hpct_data_pipeline_close(hpct_data_pipeline *pipeline);

#endif
