/* nn/backend/cuda/tune.h - selection by measurement among several ways of computing the same: times
 * on this device, and choices kept between runs. Used while a model is built. */
#ifndef HPCT_NN_BACKEND_CUDA_TUNE_H
#define HPCT_NN_BACKEND_CUDA_TUNE_H

#include "nn/backend/cuda/choices.h"

/* Must be held while measuring and using choices: one replica tunes at a time. */
void hpct_cuda_tune_lock(void);
void hpct_cuda_tune_unlock(void);

/* The choices of the thread's device and library versions; opened by the first call. With the lock
 * held. */
hpct_status hpct_cuda_tune_choices(hpct_cuda_choices **out);

/* Writes the thread's device's choices since the last call to disk; on failure the next run
 * measures again. */
void hpct_cuda_tune_keep(void);

/* Seconds of one call of run(argument), which only enqueues: device time only, as in a replayed
 * step, without the host's call overhead. Minimum of some measurements, of many calls if these are
 * short, after a warm-up; fewer if they take much longer than `best`, unless that is 0.
 * Synchronous. Fails if run or its work fails. */
hpct_status hpct_cuda_tune_time(hpct_status (*run)(void *argument), void *argument, double best,
                                double *seconds);

/* Device memory for measuring, filled with nonzero values; NULL if there is not enough.
 * Synchronous. */
void *hpct_cuda_tune_memory(size_t bytes);
void hpct_cuda_tune_release(void *memory); /* NULL is allowed */

/* Maximum acceptable workspace on this device. */
hpct_status hpct_cuda_tune_workspace_limit(size_t *bytes);

#endif
