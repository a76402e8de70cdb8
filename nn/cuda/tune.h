/* nn/cuda/tune.h - choosing by measurement among several ways of computing the same: the time of
 * each on this device, and where choices are kept between runs. Used while a model is built. */
#ifndef HPCT_NN_CUDA_TUNE_H
#define HPCT_NN_CUDA_TUNE_H

#include "nn/cuda/choices.h"

/* One replica at a time chooses: around all of these, and what is done with a choice. */
void hpct_tune_lock(void);
void hpct_tune_unlock(void);

/* The choices of the thread's device with these libraries; opened by the first call. Within the
 * lock. */
hpct_status hpct_tune_choices(hpct_choices **out);

/* Of the thread's device: what was chosen since the last call comes to the disk, if that takes it;
 * the next run measures what it does not find. */
void hpct_tune_keep(void);

/* Seconds of one call of run(argument), which only enqueues, on the device alone, as where a step
 * is replayed: what calling takes does not count. The shortest of a few, short ones many together,
 * after one that is not counted; fewer where they take far longer than `best`, if that is not 0.
 * Waits for the stream. Fails when run does, or what it enqueued. */
hpct_status hpct_tune_time(hpct_status (*run)(void *argument), void *argument, double best,
                           double *seconds);

/* Device memory for measuring, not zero; NULL when there is not that much. It waits. */
void *hpct_tune_memory(size_t bytes);
void hpct_tune_release(void *memory); /* NULL is allowed */

/* The largest workspace that is worth its memory on this device. */
hpct_status hpct_tune_workspace_limit(size_t *bytes);

#endif
