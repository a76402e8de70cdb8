/* tests/gpu_without/libraries/described_gpu.h - a GPU that is not there, for programs with the GPU
 * module's files: cuDNN's own library proposes engines and makes plans from a description of a
 * device (cuDNN 9.11 or later), and runs none of them. Descriptions are in
 * tests/fixtures/gpu/cudnn.
 *
 * Programs are linked with $(described_gpu_wraps): in place of a device's handle cuDNN gets the
 * description, and what the module measures is made up. Engines that are compiled when a plan is
 * made need a driver, and are not among those found. */
#ifndef HPCT_TESTS_GPU_WITHOUT_LIBRARIES_DESCRIBED_GPU_H
#define HPCT_TESTS_GPU_WITHOUT_LIBRARIES_DESCRIBED_GPU_H

#include "nn/backend/cuda/choices.h"

/* Whether this cuDNN takes descriptions. */
bool described_gpu_supported(void);

/* Makes the described device the calling thread's, as one that nothing is known of. Fails if the
 * file cannot be read, or cuDNN does not take what it says. `choices`: kept ones, which stay the
 * caller's. */
hpct_status described_gpu_open(const char *name, hpct_cuda_choices *choices);
void described_gpu_close(void); /* also if none is open */

/* Engines that were timed so far. */
extern int described_gpu_measured;

#endif
