/* agent/data/pipeline.h - the batches of a run, in order, ready for the model: decoded, resized,
 * scaled and augmented by threads that work ahead of the step. What is a plain gather of bytes in
 * memory is done by the caller's own thread, which costs less than telling another.
 * Knows data sets and samplers; nothing of models or ranks, but for the form of what is drawn. */
#ifndef HPCT_DATA_PIPELINE_H
#define HPCT_DATA_PIPELINE_H

#include "agent/data/dataset.h"
#include "agent/data/sampler.h"
#include "nn/drawn.h"

typedef struct hpct_pipeline hpct_pipeline;

/* Memory for batches, 64-byte aligned, for who copies them elsewhere. All NULL: malloc's. */
typedef struct hpct_pipeline_memory {
    void *(*take)(const void *owner, size_t bytes);
    void (*give_back)(const void *owner, void *memory);
    const void *owner;
} hpct_pipeline_memory;

typedef struct hpct_pipeline_options {
    const hpct_dataset *dataset;
    int64_t batches; /* that there will be */
    int largest;     /* samples in the largest of them */
    bool training;   /* augment, if the data set is to be */
    uint64_t seed;   /* of augmentation, a function of (seed, pass, sample) alone */
    int threads;     /* that work ahead, unless the data set's options say; at least 1 */
    /* The indices of batch `number`; called for 0, 1, 2 … by the threads of open and next. */
    hpct_batch (*batch)(void *from, int64_t number);
    void *from;
    bool on_demand; /* `batch` is called only for what is asked for next: nothing is done ahead */
    hpct_pipeline_memory memory;
    float *pixels;     /* where a plain gather goes: [largest][sample] … */
    int32_t *labels;   /* … and [largest]; both NULL: memory of its own, as with all others */
    hpct_drawn *drawn; /* [largest], the caller's. Not NULL: somebody else makes the pictures, and
                          batches are the numbers of samples with what was drawn for them */
} hpct_pipeline_options;

/* A batch that is ready; valid until the next one is asked for. */
typedef struct hpct_input {
    float *pixels;   /* [count][sample], 64-byte aligned; NULL with the options' drawn */
    int32_t *labels; /* [count]; likewise */
    int count, global_count;
} hpct_input;

/* Bytes that a pipeline for this data set has for batches of `largest`, besides the options' pixels
 * and labels; without what its threads need for one picture at a time. */
size_t hpct_pipeline_bytes(const hpct_dataset *dataset, int largest, bool training);

/* Begins with the first batches at once. */
hpct_status hpct_pipeline_open(hpct_pipeline **out, const hpct_pipeline_options *options);

/* The next batch; waits for it, and helps. HPCT_ERR_DATA naming a picture that cannot be decoded.
 * Allocates nothing but what a picture larger than all before needs. */
hpct_status hpct_pipeline_next(hpct_pipeline *pipeline, hpct_input *out);

/* Seconds that hpct_pipeline_next has taken so far: what the step had to wait for its input. */
double hpct_pipeline_waited(const hpct_pipeline *pipeline);

void hpct_pipeline_close(hpct_pipeline *pipeline);

#endif
